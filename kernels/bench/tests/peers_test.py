# SPDX-License-Identifier: Apache-2.0
"""Test of what peers.py makes of results: table, verdict, JSON. No GPU, no PyTorch."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BENCH = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(BENCH))
import peers  # noqa: E402


def ran(us, mean):
    return {"us": us, "mean_error": mean, "max_error": 10 * mean}


def cell(name, v1, v2, **of_peers):
    names = {"cuda": "FlashInfer CUDA cores", "tensor": "FlashInfer tensor cores", "xqa": "XQA", "sdpa": "SDPA contiguous"}
    return {
        "cell": name,
        "kv_dtype": "bf16",
        "bytes": 1000,
        "floor_us": 8.0,
        "ours": {"paged_attention_v1": v1, "paged_attention_v2": v2},
        "peers": {long: of_peers.get(short, {"refused": "Error: no"}) for short, long in names.items()},
    }


AHEAD = cell("ahead", ran(20.0, 2e-6), ran(10.0, 1e-6), cuda=ran(16.0, 1e-6), tensor=ran(12.0, 3e-6))
SLOW = cell("slow", ran(20.0, 1e-6), ran(18.0, 1e-6), tensor=ran(12.0, 3e-6))
INEXACT = cell("inexact", ran(20.0, 1e-6), ran(10.0, 4e-6), cuda=ran(16.0, 1e-6), tensor=ran(12.0, 3e-6))
ALONE = cell("alone", ran(20.0, 1e-6), ran(10.0, 1e-6))


class PeersTest(unittest.TestCase):
    def test_verdict(self):
        self.assertEqual(peers.verdict(AHEAD["ours"], AHEAD["peers"]), (True, True, True))
        self.assertEqual(peers.verdict(SLOW["ours"], SLOW["peers"]), (False, True, True))
        self.assertEqual(peers.verdict(INEXACT["ours"], INEXACT["peers"]), (True, False, False))
        self.assertIsNone(peers.verdict(ALONE["ours"], ALONE["peers"]))

    def test_a_kernel_of_ours_without_a_result_is_no_winner(self):
        broken = cell("broken", {"refused": "x"}, {"refused": "x"}, cuda=ran(16.0, 1e-6))
        self.assertIsNone(peers.verdict(broken["ours"], broken["peers"]))

    def test_summary_names_the_cells_behind_and_the_refusals(self):
        text = peers.summary([AHEAD, SLOW, INEXACT])
        self.assertIn("at least as fast as the fastest peer: 2 of 3 cells\n  not in: slow", text)
        self.assertIn("no larger than the fastest peer's: 2 of 3 cells\n  not in: inexact", text)
        self.assertIn("XQA: Error: no\n    ahead, slow, inexact", text)

    def test_rows_are_aligned(self):
        kernels = [*AHEAD["ours"], *AHEAD["peers"]]
        row = peers.cell_row("ahead", 8.0, {**AHEAD["ours"], **AHEAD["peers"]})
        self.assertEqual(len(peers.header(kernels)), len(row))
        self.assertIn("10.00 0.800", row)

    def test_json_has_an_entry_per_kernel_with_the_peers(self):
        result = peers.to_json({"device": "D"}, [AHEAD])
        entry = json.loads(json.dumps(result))["cells"][1]
        self.assertEqual((result["device"], entry["kernel"], entry["us"]), ("D", "paged_attention_v2", 10.0))
        self.assertEqual(entry["floor_fraction"], 0.8)
        self.assertEqual(entry["peers"]["XQA"], {"refused": "Error: no"})
        self.assertEqual(entry["peers"]["FlashInfer tensor cores"]["mean_error"], 3e-6)

    def test_reason_is_one_line(self):
        self.assertEqual(peers.reason(ValueError("\n first \nsecond")), "ValueError: first")
        self.assertEqual(peers.reason(KeyError()), "KeyError: no message")

    def test_without_pytorch_it_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "torch.py").write_text("raise ImportError('none here')\n")
            done = subprocess.run(
                [sys.executable, str(BENCH / "peers.py")],
                env={**os.environ, "PYTHONPATH": folder},
                capture_output=True,
                text=True,
            )
        self.assertEqual((done.returncode, done.stderr), (3, "peers: no PyTorch: none here\n"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
