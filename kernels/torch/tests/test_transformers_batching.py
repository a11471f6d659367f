# SPDX-License-Identifier: Apache-2.0
"""Continuous batching of transformers with our decode writes the tokens of eager attention, one request at a time."""
import pytest

torch = pytest.importorskip("torch", minversion="2.4")
transformers = pytest.importorskip("transformers", minversion="5.0")
pytest.importorskip("transformers.generation.continuous_batching")
from assay_torch import transformers_batching
from test_transformers import model

LENGTHS, TOKENS, SHARED, PAGE = (5, 40, 17, 1, 9, 70, 2, 33), 12, 100, 16


def prompts(shared=0):
    """Of these lengths, behind as many tokens that all begin with."""
    generator = torch.Generator().manual_seed(1)
    begin, *ends = (torch.randint(3, 1000, (n,), generator=generator).tolist() for n in (shared, *LENGTHS))
    return [begin + end for end in ends]


def written_in_batches(made, texts=None, **more):
    """The tokens of each prompt; four of eight requests fit into a batch, so that prefills and decodes are mixed."""
    texts = texts or prompts()
    how = transformers.GenerationConfig(max_new_tokens=TOKENS, do_sample=False, eos_token_id=1023, pad_token_id=0)
    cache = transformers_batching.configuration(**{"num_blocks": 64, "max_batch_tokens": 64, "max_blocks_per_request": 0, **more})
    results = made.generate_batch(texts, generation_config=how, continuous_batching_config=cache, progress_bar=False)
    assert len(results) == len(texts) and not [r.error for r in results.values() if r.error]
    by_prompt = {tuple(r.prompt_ids): r.generated_tokens for r in results.values()}
    return [by_prompt[tuple(p)] for p in texts]


def differences(device, ours, dtype=torch.float16, texts=None):
    """Of each request whose tokens are not those of eager: how far apart eager's two best logits are where they part, in steps of
    fp16 at the best."""
    made, gaps = model(device, "eager").to(dtype), []
    how = transformers.GenerationConfig(
        max_new_tokens=TOKENS, do_sample=False, eos_token_id=1023, pad_token_id=0, return_dict_in_generate=True, output_logits=True
    )  # fmt: skip
    for prompt, tokens in zip(texts or prompts(), ours):
        with torch.no_grad():
            said = made.generate(torch.tensor([prompt], device=device), generation_config=how)
        own = said.sequences[0, len(prompt) :].tolist()
        assert len(tokens) == len(own)
        if tokens != own:
            at = [a == b for a, b in zip(tokens, own)].index(False)
            best = said.logits[at][0].float().topk(2).values
            gaps.append(float((best[0] - best[1]) / 2 ** (best[0].log2().floor() - 10)))
    return gaps


def part_at_ties_alone(gaps):
    """Of two best tokens within two steps of a logit either may win. Such requests are few."""
    return all(gap <= 2 for gap in gaps) and len(gaps) <= 2


@pytest.fixture
def calls(monkeypatch):
    """What went to our kernels: tokens of each request of a call."""
    seen, original = [], transformers_batching.paged_attention

    def watched(q, *a, qo_indptr, **k):
        seen.append(qo_indptr.diff().tolist())
        return original(q, *a, qo_indptr=qo_indptr, **k)

    monkeypatch.setattr(transformers_batching, "paged_attention", watched)
    return seen


def test_tokens_are_those_of_eager(device, calls):
    ours = written_in_batches(transformers_batching.use_in_batches(model(device, "sdpa")))
    gaps = differences(device, ours)
    assert part_at_ties_alone(gaps), gaps
    assert sum(n == 1 for counts in calls for n in counts) >= 2 * len(LENGTHS) * (TOKENS - 2)
    assert any(len(set(counts)) > 1 for counts in calls), "tokens of unlike number in one call"


def test_what_is_not_ours_is_plain_pytorch(device, calls):
    """fp32, where no two logits are so near that roundings decide."""
    ours = written_in_batches(transformers_batching.use_in_batches(model(device, "sdpa").float()))
    assert not differences(device, ours, dtype=torch.float32) and not calls


def test_keys_of_a_neighbour_are_seen(device, monkeypatch):
    right = transformers_batching.decode
    wrong = lambda q, k, v, out, requests, options: right(q, k.roll(1, 0), v, out, requests, options)  # noqa: E731
    monkeypatch.setattr(transformers_batching, "decode", wrong)
    ours = written_in_batches(transformers_batching.use_in_batches(model(device, "sdpa")))
    assert not part_at_ties_alone(differences(device, ours))


@pytest.fixture
def block_tables(monkeypatch):
    """On a CPU too, where transformers has none for flash attention. The steps that used them: (requests, by trees)."""
    from transformers.generation.continuous_batching import initialization

    monkeypatch.setattr(initialization, "ensure_decode_fast_path_is_available", lambda *a: None)
    seen, made = [], transformers_batching.Step

    class Watched(made):
        def __init__(self, table, *a):
            super().__init__(table, *a)
            seen.append((len(table), self.trees))

    monkeypatch.setattr(transformers_batching, "Step", Watched)
    return seen


def test_transformers_finds_block_tables(monkeypatch):
    """As it asks on a GPU, for each name that is set."""
    from transformers.generation.continuous_batching import initialization

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for trees in (False, True):
        made = transformers_batching.use_in_batches(model("cpu", "sdpa"), trees)
        asked = transformers_batching.configuration(max_blocks_per_request=14)
        initialization.ensure_decode_fast_path_is_available(made.config, asked, True)
        assert asked.max_blocks_per_request == 14
    made.config._attn_implementation = "sdpa"
    initialization.ensure_decode_fast_path_is_available(made.config, asked, True)
    assert asked.max_blocks_per_request == 0


IN_BLOCKS = dict(page_size=PAGE, max_blocks_per_request=14, max_batch_tokens=256, num_blocks=128)


@pytest.mark.parametrize("trees", [False, True], ids=["flat", "trees"])
def test_tokens_in_blocks_are_those_of_eager(device, block_tables, trees):
    """Prompts begin alike, so that requests share blocks. On CUDA the steps are graphs, with rows of padding."""
    texts = prompts(SHARED)
    ours = written_in_batches(transformers_batching.use_in_batches(model(device, "sdpa"), trees), texts, **IN_BLOCKS)
    gaps = differences(device, ours, texts=texts)
    assert part_at_ties_alone(gaps), gaps
    assert (len(LENGTHS), trees) in block_tables and not any(by_trees != trees for _, by_trees in block_tables)


def test_keys_written_elsewhere_are_seen(device, block_tables, monkeypatch):
    class OneLate(transformers_batching.Step):
        def __init__(self, *a):
            super().__init__(*a)
            self.slots = self.slots + 1

    monkeypatch.setattr(transformers_batching, "Step", OneLate)
    texts = prompts(SHARED)
    ours = written_in_batches(transformers_batching.use_in_batches(model(device, "sdpa")), texts, **IN_BLOCKS)
    assert not part_at_ties_alone(differences(device, ours, texts=texts))


def test_a_type_without_kernels_is_refused_in_blocks(device, block_tables):
    made = transformers_batching.use_in_batches(model(device, "sdpa").float())
    with pytest.raises(AssertionError, match="set it to 0"):
        written_in_batches(made, **IN_BLOCKS)


def test_generate_refuses_the_name(device):
    made = transformers_batching.use_in_batches(model(device, "sdpa"))
    with pytest.raises(ValueError, match="generate_batch alone"):
        made(torch.tensor([[3, 4, 5]], device=device))
