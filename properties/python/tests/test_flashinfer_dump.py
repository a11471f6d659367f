# SPDX-License-Identifier: Apache-2.0
"""Dumps of FlashInfer: right calls are inside, wrong ones are found and kept, the rest is named; files are treated as hostile."""
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from assay import from_float32
from assay._engines import dump_files, dump_judge
from assay._judge import record as judge_record
from flashinfer_dump import Dump, merged
from test_judge import HEADS, KV_HEADS, PAGE, Call, library  # noqa: F401  (a fixture)
from test_judge_masks import KEYS, SCALE, Masked, flat, packed

DECODE, PREFILL, RAGGED = (f"Batch{name}Wrapper" for name in ("DecodeWithPagedKVCache", "PrefillWithPagedKVCache", "PrefillWithRaggedKVCache"))
CASCADE = "MultiLevelCascadeAttentionWrapper"
LOG2E = np.float32(1.4426950408889634)


def tables(call):
    """indptr, indices, last_page_len."""
    counts = -(-call.lens // PAGE)
    entries = np.concatenate([call.table[r, :n] for r, n in enumerate(counts)]).astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return indptr, entries, np.where(counts > 0, call.lens - (counts - 1) * PAGE, 0).astype(np.int32)


def decode_call(seed=1):
    call = Call(seed=seed)
    call.__dict__.update(q=call.q[: len(call.lens)], cu=np.arange(len(call.lens) + 1, dtype=np.int32))
    return call


def decode(dump, call, result=None, run={}, plan={}, self_id=11, made=("NHD", False, True), outputs=True):
    pool = np.stack([call.k, call.v], 1)
    out, lse = call.run() if result is None else result
    dump.call(f"{DECODE}.__init__", self_id, (np.zeros(8, np.float32), *made), dict(backend="fa2"))
    dump.call(f"{DECODE}.plan", self_id, (*tables(call), HEADS, KV_HEADS, 32, PAGE), plan)
    dump.call(f"{DECODE}.run", self_id, (call.q, pool), dict(return_lse=True, **run), lambda: (out, lse * LOG2E), outputs)


def prefill(dump, call, result=None, plan={}, self_id=12, layout="NHD", made=True):
    kv = [call.k, call.v] if layout == "NHD" else [np.ascontiguousarray(c.transpose(0, 2, 1, 3)) for c in (call.k, call.v)]
    out, lse = call.run() if result is None else result
    if made:
        dump.call(f"{PREFILL}.__init__", self_id, (np.zeros(8, np.float32), layout))
    dump.call(f"{PREFILL}.plan", self_id, (call.cu, *tables(call), HEADS, KV_HEADS, 32, PAGE), dict(causal=True, **plan))
    return dump.call(f"{PREFILL}.run", self_id, (call.q, tuple(kv)), dict(return_lse=True), lambda: (out, lse * LOG2E))


def ragged(dump, call, result=None):
    slots = [call.table[r, t // PAGE] * PAGE + t % PAGE for r, n in enumerate(call.lens) for t in range(n)]
    k, v = (cache.reshape(-1, *cache.shape[2:])[slots] for cache in (call.k, call.v))
    tokens = np.concatenate([[0], np.cumsum(call.lens)]).astype(np.int32)
    dump.call(f"{RAGGED}.plan", 13, (call.cu, tokens, HEADS, KV_HEADS, 32, True))
    out, _ = call.run() if result is None else result
    dump.call(f"{RAGGED}.run", 13, (call.q, k, v), {}, lambda: (out,))


def states(seed=3):
    draw = np.random.default_rng(seed)
    return from_float32(draw.standard_normal((2, 5, 4, 64)), "bf16"), draw.standard_normal((2, 5, 4)).astype(np.float32) * 3


def merges(dump, spoil=lambda out: out):
    o, lse = states()
    out, total = merged(o, lse)
    dump.call("merge_state", None, (o[0], lse[0], o[1], lse[1]), {}, lambda: (spoil(out), total))
    dump.call("merge_states", None, (o.transpose(1, 0, 2, 3), lse.transpose(1, 0, 2)), {}, lambda: (spoil(out), total))


def cascade(dump, spoil=lambda out: out, levels=2, merge=lambda step, a, b: merged(*map(np.stack, zip(a, b))), left_out=()):
    """The last level runs first, each other one is merged into its state in place. `merge` of a step may be wrong."""
    calls = [decode_call(seed) for seed in range(1, levels + 1)]
    for call in calls:
        call.q = calls[0].q
    pools = np.stack([calls[0].k, calls[0].v], 1)

    def compute():
        state = prefill(dump, calls[0], self_id=30)
        for step, call in enumerate(calls[1:]):
            other = prefill(dump, call, self_id=31 + step)
            if step not in left_out:
                dump.call("merge_state_in_place", None, (*state, *other))
            state = merge(step, state, other)
        return (spoil(state[0]),)

    dump.call(f"{CASCADE}.plan", 20, ([calls[0].cu] * 2, 7), {})
    dump.call(f"{CASCADE}.run", 20, (calls[0].q, pools), {}, compute)


def outcomes(**options):
    """{name: verdict or reason} of ./dump; several of a name in a list."""
    out = {}
    for _, name, outcome, _ in dump_judge.judged("dump", **options):
        out.setdefault(name, []).append(getattr(outcome, "verdict", outcome))
    return out


@pytest.mark.parametrize("form", ["safetensors", "pt"])
def test_right_calls_are_inside(form):
    if form == "pt":
        pytest.importorskip("torch")
    dump = Dump("dump", form)
    decode(dump, decode_call())
    prefill(dump, Call(), layout="HND")
    prefill(dump, Call(seed=2), layout="HND", self_id=14, made=False)
    window = Call(seed=5)
    window.window = 6
    prefill(dump, window, plan=dict(window_left=6), self_id=15)
    ragged(dump, Call(seed=4))
    merges(dump)
    assert outcomes() == {
        f"{DECODE}.run": ["inside"], f"{PREFILL}.run": ["inside"] * 3, f"{RAGGED}.run": ["inside"], "merge_state": ["inside"], "merge_states": ["inside"],
    }  # fmt: skip


@pytest.mark.parametrize("files", ["safetensors", "pt"])
@pytest.mark.parametrize("form", ["custom_mask", "packed_custom_mask"])
def test_masks_of_a_plan(form, files):
    if files == "pt":
        pytest.importorskip("torch")
    dump, masked = Dump("dump", files), Masked()
    call = Call()
    call.__dict__.update(q=masked.q, k=masked.k, v=masked.v, table=masked.table, lens=np.array(KEYS), cu=masked.cu)
    mask = flat(masked.masks) if form == "custom_mask" else packed(masked.masks)
    for result in (masked.run(), masked.run([~m for m in masked.masks])):
        dump.call(f"{PREFILL}.__init__", 12, (np.zeros(8, np.float32), "NHD"))
        dump.call(f"{PREFILL}.plan", 12, (masked.cu, *tables(call), 4, 2, 16, PAGE), {form: mask, "causal": True, "sm_scale": SCALE})
        dump.call(f"{PREFILL}.run", 12, (masked.q, (masked.k, masked.v)), {}, lambda: (result[0],))
    assert outcomes() == {f"{PREFILL}.run": ["inside", "outside"]}


def test_the_plan_before_the_run_counts():
    dump, first, second = Dump("dump"), decode_call(), decode_call(2)
    decode(dump, first)
    decode(dump, second)
    assert outcomes() == {f"{DECODE}.run": ["inside"] * 2}


def rolled(array):
    return np.roll(array, 1, axis=1)


#: Each writes a dump in which one call is wrong.
WRONG = {
    "decode": lambda d: decode(d, decode_call(), (rolled(decode_call().run()[0]), decode_call().run()[1])),
    "decode: lse of base e": lambda d: decode(d, decode_call(), (decode_call().run()[0], decode_call().run()[1] / LOG2E)),
    "decode: planned scale left out": lambda d: decode(d, decode_call(), plan=dict(sm_scale=0.25)),
    "decode: k_scale left out": lambda d: decode(d, decode_call(), run=dict(k_scale=0.5)),
    "decode: window of the run": lambda d: decode(d, decode_call(), run=dict(window_left=3)),
    "decode: planned softcap": lambda d: decode(d, decode_call(), plan=dict(logits_soft_cap=1.0)),
    "decode: sinks": lambda d: decode(d, decode_call(), run=dict(sinks=np.full(HEADS, 2, np.float32))),
    "prefill: not causal": lambda d: prefill(d, Call(), plan=dict(window_left=0)),
    "prefill: window off by one": lambda d: prefill(d, Call(), plan=dict(window_left=20)),
    "ragged": lambda d: ragged(d, Call(), (rolled(Call().run()[0]), None)),
    "merges": lambda d: merges(d, rolled),
    "cascade": lambda d: cascade(d, rolled),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_calls_are_found_and_kept(wrong):
    WRONG[wrong](Dump("dump"))
    kept = [(outcome.verdict, path) for _, _, outcome, path in dump_judge.judged("dump", findings="kept") if not isinstance(outcome, str)]
    assert "outside" in [verdict for verdict, _ in kept], kept
    assert all(path is None or judge_record.judge(path).verdict == verdict for verdict, path in kept)


@pytest.mark.parametrize(
    "write, name, why",
    [
        (lambda d: decode(d, decode_call(), plan=dict(pos_encoding_mode="ROPE_LLAMA")), f"{DECODE}.run", "positions are encoded in the kernel (ROPE_LLAMA)"),
        (lambda d: decode(d, decode_call(), run=dict(v_scale=3.0)), f"{DECODE}.run", "v_scale is 3"),
        (lambda d: decode(d, decode_call(), outputs=False), f"{DECODE}.run", "there is no output"),
        (lambda d: prefill(d, Call(), plan=dict(packed_custom_mask=np.zeros(9, np.uint8))), f"{PREFILL}.run", "ValueError: assay: packed_mask is uint8 of"),
        (lambda d: d.call(f"{DECODE}.run", 9, (np.zeros(3, np.float32),) * 2, {}, lambda: (np.zeros(3, np.float32),)), f"{DECODE}.run", "its plan is not"),
        (lambda d: d.call("rmsnorm", None, (np.zeros(3, np.float32),)), "rmsnorm", "rmsnorm is not known"),
        (lambda d: d.call("merge_state_in_place", None, (*map(np.float32, states()[0]), *states()[1])), "merge_state_in_place", "it writes in place"),
    ],
)
def test_what_is_not_judged_is_named(write, name, why):
    write(Dump("dump"))
    assert [o for o in outcomes()[name] if o.startswith(why)], outcomes()


def test_the_command():
    dump = Dump("dump")
    decode(dump, decode_call())
    merges(dump, rolled)
    dump.call("rmsnorm", None, (np.zeros(3, np.float32),))
    run = [sys.executable, "-B", "-m", "assay", "judge"]
    ran = subprocess.run([*run, "dump"], text=True, capture_output=True)
    assert ran.returncode == 1 and "dump: 3 calls judged, 2 findings, 1 calls not judged" in ran.stdout, ran
    assert "not judged (1): rmsnorm: rmsnorm is not known" in ran.stdout and f"{DECODE}.run: inside" in ran.stdout
    line = next(line for line in ran.stdout.splitlines() if "reproduce: " in line).split("reproduce: python3 -m assay judge ")[1]
    assert subprocess.run([*run, line], capture_output=True).returncode == 1
    Dump("empty")
    assert subprocess.run([*run, "empty"], capture_output=True).returncode == 4


def files_of(name):
    return sorted(pathlib.Path("dump").glob(f"*{name}_call*"))[-1]


SAFE = "inputs.safetensors"


@pytest.mark.parametrize(
    "damage, why",
    [
        (lambda f: (f / SAFE).write_bytes(b"\xff" * 64), "inputs.safetensors has a header of 18446744073709551615 bytes"),
        (lambda f: (f / SAFE).write_bytes(b"\x02" + bytes(7) + b"[]"), "inputs.safetensors has no table"),
        (lambda f: (f / SAFE).write_bytes(b"\x02" + bytes(7) + b"{,"), "inputs.safetensors has no header"),
        (lambda f: (f / SAFE).write_bytes((f / SAFE).read_bytes()[:-4]), "inputs.safetensors: arg_"),
        (lambda f: (f / SAFE).write_bytes((f / SAFE).read_bytes().replace(b'"BF16"', b'"BF61"')), "inputs.safetensors: arg_"),
        (lambda f: (f / SAFE).write_bytes((f / SAFE).read_bytes().replace(b'"shape": [4,', b'"shape": [9,')), "inputs.safetensors: arg_"),
        (lambda f: (f / "metadata.jsonl").write_text("{"), "metadata.jsonl is no JSON"),
        (lambda f: (f / "metadata.jsonl").write_text("[" * 100000), "metadata.jsonl is no JSON"),
        (lambda f: (f / "metadata.jsonl").write_text(""), "metadata.jsonl holds no record"),
        (lambda f: (f / "metadata.jsonl").write_text('{"function_name": 3}'), "/metadata.jsonl: function_name is no text"),
    ],
)
def test_damaged_files_are_named(damage, why):
    decode(Dump("dump"), decode_call())
    damage(files_of("run"))
    (said,) = [reasons for reasons in outcomes().values()]
    assert why in said[0], said


def test_a_file_too_large_is_not_opened(monkeypatch):
    decode(Dump("dump"), decode_call())
    monkeypatch.setattr(dump_files, "MOST_TENSORS", 1000)
    assert any("at most 1000 are read" in reason for reasons in outcomes().values() for reason in reasons)


def test_a_pickle_is_not_executed():
    torch = pytest.importorskip("torch")
    dump = Dump("dump", "pt")
    decode(dump, decode_call())

    class Bomb:
        def __reduce__(self):
            return (pathlib.Path.touch, (pathlib.Path("executed"),))

    torch.save({"arg_1": Bomb()}, files_of("run") / "inputs.pt")
    assert "inputs.pt is not read" in outcomes()[f"{DECODE}.run"][0] and not pathlib.Path("executed").exists()


def test_metadata_with_anything_in_it_ends_no_run():
    decode(Dump("dump"), decode_call())
    draw, path = np.random.default_rng(1), files_of("plan") / "metadata.jsonl"
    good = json.loads(path.read_text().splitlines()[-1])
    for _ in range(150):
        changed = json.loads(json.dumps(good))
        key = draw.choice(list(changed["input_metadata"]) + ["function_signature", "self_id", "input_metadata"])
        value = [None, -1, 1e308, "x", [], {}, {"type": "torch.Tensor"}, {"type": "list", "items": [1]}][draw.integers(8)]
        (changed["input_metadata"] if key in changed["input_metadata"] else changed)[key] = value
        path.write_text(json.dumps(changed))
        for said in outcomes().values():
            assert all(isinstance(s, str) for s in said)
