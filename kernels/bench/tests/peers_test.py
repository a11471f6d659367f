# SPDX-License-Identifier: Apache-2.0
"""Test of what peers.py makes of cells and results: order, table, verdict, JSON. No GPU, no PyTorch."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

BENCH = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(BENCH))
import peers  # noqa: E402
from peer_kernels import report  # noqa: E402
from peer_kernels.versions import taken  # noqa: E402


def ran(us, mean):
    return {"us": us, "mean_error": mean, "max_error": 10 * mean}


def cell(name, v1, v2, **of_peers):
    names = {"cuda": "FlashInfer CUDA cores", "tensor": "FlashInfer tensor cores", "xqa": "XQA", "sdpa": "SDPA contiguous"}
    return {
        "cell": name,
        "kind": "decode",
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


class Versions(unittest.TestCase):
    def test_an_option_goes_to_versions_that_take_it(self):
        self.assertEqual(taken(lambda a, uniform_q_len=0: None, uniform_q_len=3), {"uniform_q_len": 3})
        self.assertEqual(taken(lambda a, causal=False: None, uniform_q_len=3), {})
        self.assertEqual(taken(lambda a, **more: None, uniform_q_len=3), {"uniform_q_len": 3})


class PeersTest(unittest.TestCase):
    def test_verdict(self):
        self.assertEqual(report.verdict(AHEAD["ours"], AHEAD["peers"]), (True, True, True))
        self.assertEqual(report.verdict(SLOW["ours"], SLOW["peers"]), (False, True, True))
        self.assertEqual(report.verdict(INEXACT["ours"], INEXACT["peers"]), (True, False, False))
        self.assertIsNone(report.verdict(ALONE["ours"], ALONE["peers"]))

    def test_a_kernel_of_ours_without_a_result_is_no_winner(self):
        broken = cell("broken", {"refused": "x"}, {"refused": "x"}, cuda=ran(16.0, 1e-6))
        self.assertIsNone(report.verdict(broken["ours"], broken["peers"]))

    def test_summary_names_the_cells_behind_and_the_refusals(self):
        text = report.summary([AHEAD, SLOW, INEXACT])
        self.assertIn("at least as fast as the fastest peer: 2 of 3 cells\n  not in: slow", text)
        self.assertIn("no larger than the fastest peer's: 2 of 3 cells\n  not in: inexact", text)
        self.assertIn("XQA: Error: no\n    ahead, slow, inexact", text)

    def test_rows_are_aligned(self):
        kernels = [*AHEAD["ours"], *AHEAD["peers"]]
        for cell, quotient in ((AHEAD, " 0.833"), (SLOW, " 1.500"), (ALONE, "     -")):
            row = report.cell_row(cell)
            self.assertEqual(len(report.header(kernels)), len(row))
            self.assertTrue(row.endswith(quotient), row)
        self.assertIn("10.00 0.800", report.cell_row(AHEAD))

    def test_json_has_an_entry_per_kernel_with_the_peers(self):
        result = report.to_json({"device": "D"}, [AHEAD])
        entry = json.loads(json.dumps(result))["cells"][1]
        self.assertEqual((result["device"], entry["kernel"], entry["us"]), ("D", "paged_attention_v2", 10.0))
        self.assertEqual(entry["floor_fraction"], 0.8)
        self.assertEqual((entry["kind"], entry["ratio"]), ("decode", 10.0 / 12.0))
        self.assertEqual(entry["peers"]["XQA"], {"refused": "Error: no"})
        self.assertEqual(entry["peers"]["FlashInfer tensor cores"]["mean_error"], 3e-6)

    def test_reason_is_one_line(self):
        self.assertEqual(report.reason(ValueError("\n first \nsecond")), "ValueError: first")
        self.assertEqual(report.reason(KeyError()), "KeyError: no message")
        built = RuntimeError("Ninja build failed.\nnvcc ...\na.cu(1): error: no such thing\nb.cu(2): error: nor this")
        self.assertEqual(report.reason(built), "RuntimeError: a.cu(1): error: no such thing")

    def test_cells_stand_kind_by_kind_and_pairs_are_merged_in_place_too(self):
        kinds = {"merge 4": "merge_states", "merge 2": "merge_state", "tree": "cascade", "prefix": "prefix"}
        cells = [{"name": name, "kind": kind, "kv_dtype": "bf16"} for name, kind in {**kinds, "b1": "decode"}.items()]
        cells.append({"name": "fp8 tree", "kind": "cascade", "kv_dtype": "e4m3"})
        names = [c["name"] for c in peers.choose(cells, peers.KINDS, "")]
        self.assertEqual(names, ["b1", "tree", "prefix", "merge 2", "merge 2 in place", "merge 4"])
        self.assertEqual([c["name"] for c in peers.choose(cells, ["merge_state in place"], "")], ["merge 2 in place"])
        self.assertEqual([c["name"] for c in peers.choose(cells, peers.KINDS, "tr")], ["tree"])

    def test_every_kernel_of_every_kind_has_a_column(self):
        torch = types.ModuleType("torch")
        torch.__getattr__ = lambda name: name
        sys.modules["torch"] = torch
        try:
            kinds = peers.load_kinds()
        finally:
            del sys.modules["torch"]
        self.assertEqual([*kinds], peers.KINDS)
        for kind in kinds.values():
            columns = [report.SHORT[kernel] for kernel in (*kind.ours, *kind.peers, *kind.flat)]
            self.assertEqual(len(set(columns)), len(columns))
            self.assertLessEqual(max(len(column) for column in columns), 6)

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
