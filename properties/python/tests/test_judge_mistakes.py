# SPDX-License-Identifier: Apache-2.0
"""What a first user does wrong: each mistake is answered by the name of the argument, and most by its value."""
import inspect
import re

import assay
import numpy as np
import pytest
from assay import judging
from assay._judge.names import OTHERS
from test_judge import library  # noqa: F401  (a fixture)

LENS, PAGE, DIM = np.array([40, 7, 64], np.int32), 16, 64
draw = np.random.default_rng(0)
K, V = (draw.normal(size=(12, PAGE, 2, DIM)).astype(np.float16) for _ in range(2))
Q = draw.normal(size=(3, 8, DIM)).astype(np.float16)
TABLE = np.arange(12, dtype=np.int32).reshape(3, 4)


def attention(keys=1 << 30, scale=DIM**-0.5, cap=0.0):
    """(O, LSE) of the newest keys of each request."""
    out, lse = np.zeros(Q.shape), np.zeros(Q.shape[:2])
    for r, n in enumerate(LENS):
        k, v = (x[TABLE[r]].reshape(-1, 2, DIM)[:n][-keys:].astype(float).repeat(4, 1) for x in (K, V))
        scores = np.einsum("nhd,hd->hn", k, Q[r].astype(float)) * scale
        scores = cap * np.tanh(scores / cap) if cap else scores
        weights = np.exp(scores)
        out[r], lse[r] = np.einsum("hn,nhd->hd", weights, v) / weights.sum(1)[:, None], np.log(weights.sum(1))
    return out.astype(np.float16), lse.astype(np.float32)


O, LSE = attention()
PAGES = dict(seq_lens=LENS, page_table=TABLE)
#: What is said, and the call: outputs, cache and options.
MISTAKES = {
    "assay.judge has no argument window: it is window_left": (O, (K, V), dict(PAGES, window=(3, 0))),
    "has no argument softcap: it is logits_soft_cap": (O, (K, V), dict(PAGES, softcap=30.0)),
    "has no argument block_table: it is page_table": (O, (K, V), dict(seq_lens=LENS, block_table=TABLE)),
    "has no argument return_lse\n": (O, (K, V), dict(PAGES, return_lse=True)),
    "missing a required argument: 'kv_cache'": (O, None, PAGES),
    "seq_lens is float64, expected int32 or int64": (O, (K, V), dict(PAGES, seq_lens=LENS.astype(float))),
    "without a page_table its cache holds at most 16": (O, (K, V), dict(seq_lens=LENS)),
    "kv_layout='HND' would make it 2": (O, (K.swapaxes(1, 2), V.swapaxes(1, 2)), PAGES),
    "q's axis 0 is 3 long, expected [rows 8": (O.swapaxes(0, 1), (K, V), PAGES),
    "lse_base is 'natural', expected 'e' or 2": (O, (K, V), dict(PAGES, lse=LSE, lse_base="natural")),
    "the LSE were asked for in base 2": (O, (K, V), dict(PAGES, lse=LSE / np.float32(np.log(2)))),
    "k and v were exchanged": (O, (V, K), PAGES),
    "window_left were 15\n": (attention(16)[0], (K, V), dict(PAGES, window_left=16)),  # counted the own key
    "if window_left were 15\n": (attention(16)[0], (K, V), PAGES),  # forgot it
    "sm_scale were 0.1\n": (attention(scale=0.1)[0], (K, V), PAGES),
    "logits_soft_cap were 2\n": (attention(cap=2.0)[0], (K, V), PAGES),
}


@pytest.mark.parametrize("words", MISTAKES)
def test_each_mistake_is_named(words):
    out, cache, options = MISTAKES[words]
    with pytest.raises((TypeError, ValueError, assay.AttentionError)) as raised:
        if "assay.judge" in words:
            assay.judge(out, Q, cache, **options)
        else:
            assay.assert_attention(*((out, Q) if cache is None else (out, Q, cache)), **options, findings=None)
    assert words.removeprefix("assay.") in f"{raised.value}\n" and "attention_call" not in str(raised.value)


def test_without_mistakes_nothing_is_said():
    assert assay.assert_attention(O, Q, (K, V), lse=LSE, **PAGES, findings=None).passed


@pytest.mark.parametrize("out", [attention()[0] * np.float16(1.1), attention()[0][:, ::-1], np.full_like(O, np.nan), np.zeros_like(O)])
def test_no_number_is_named_that_does_not_fit(out):
    with pytest.raises(assay.AttentionError) as raised:
        assay.assert_attention(np.ascontiguousarray(out), Q, (K, V), **PAGES, findings=None)
    assert not any(f"{name} were" in str(raised.value) for name in ("window_left", "sm_scale", "logits_soft_cap"))


#: By what a user calls: whose arguments it takes, and those of its own.
FUNCTIONS = {assay.judge: judging.attention_call, assay.judge_merge: judging.merge_call,
             assay.assert_attention: judging.attention_call, assay.assert_merge: judging.merge_call}  # fmt: skip


#: What a right call is besides, for arguments that do not go with the plainest one.
BESIDE = {
    "seq_lens_before": dict(seq_lens=None), "last_page_len": dict(seq_lens=None, page_table=TABLE.ravel(), page_indptr=np.arange(0, 13, 4)),
    **dict.fromkeys(("cache_batch_idx", "leftpad"), dict(page_table=None)), "lse_layout": dict(lse=LSE),
    **dict.fromkeys(("kv_indptr", "cu_seqlens_k"), dict(page_table=None, seq_lens=None)),
}  # fmt: skip
RIGHT = {assay.judge: dict(PAGES, out=O, q=Q, kv_cache=(K, V)), assay.judge_merge: dict(out=O, o_in=[O, O], lse_in=[LSE, LSE])}


@pytest.mark.parametrize("function, name", [(f, name) for f in RIGHT for name in inspect.signature(FUNCTIONS[f]).parameters], ids=lambda x: x if isinstance(x, str) else x.__name__)
def test_every_argument_is_called_by_its_name(function, name):
    """What no argument may be is refused, and the error begins with the argument."""
    with pytest.raises((TypeError, ValueError), match=f"^assay: {name} is "):
        function(**{**RIGHT[function], **BESIDE.get(name, {}), name: object()})


def names_in(text):
    """The arguments that an answer begins with: `a and b`, `a, which ...`, `a: ...`."""
    return re.match(r"\w+(?: and \w+)*", text)[0].split(" and ")


@pytest.mark.parametrize("function, described", FUNCTIONS.items(), ids=lambda f: f.__name__)
def test_names_of_others_are_answered_by_arguments_of_that_function(function, described):
    """By all that is known of them where the function has it, and by nothing else."""
    own, name = set(inspect.signature(described).parameters), function.__name__
    for other in ["nosuch", *OTHERS]:
        answers = names_in(OTHERS[other]) if other in OTHERS else []
        assert other not in own and len(own & set(answers)) in (0, len(answers))
        with pytest.raises(TypeError) as raised:
            function(O, **{other: 1})
        assert str(raised.value) == f"assay: {name} has no argument {other}" + (f": it is {OTHERS[other]}" if own & set(answers) else "")
    for arguments, options, words in (((), {}, "missing a required argument: 'out'"), ((O, O, O, O), {}, "too many positional arguments"), ((O,), {"out": O}, "multiple values for argument 'out'")):
        with pytest.raises(TypeError) as raised:
            function(*arguments, **options)
        assert str(raised.value) == f"assay: {name}: {words}"


def test_every_name_of_others_is_answered_by_some_function():
    own = {name for described in FUNCTIONS.values() for name in inspect.signature(described).parameters}
    assert [other for other, text in OTHERS.items() if not own.issuperset(names_in(text))] == []
