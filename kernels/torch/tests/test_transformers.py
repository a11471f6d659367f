# SPDX-License-Identifier: Apache-2.0
"""A tiny random Llama of transformers writes the same tokens with our decode as with its own eager attention."""
import pytest

torch = pytest.importorskip("torch", minversion="2.4")
transformers = pytest.importorskip("transformers", minversion="5.0")
from assay_torch import transformers_attention


def model(device, implementation, head_dim=64):
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=head_dim,
        vocab_size=1024, initializer_range=0.15, bos_token_id=1, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    made = transformers.LlamaForCausalLM(config).to(torch.float16).to(device).eval()
    made.set_attn_implementation(implementation)
    return made


def written(made, prompt, **more):
    with torch.no_grad():
        return made.generate(prompt, max_new_tokens=24, do_sample=False, **more).tolist()


@pytest.fixture
def calls(monkeypatch):
    """What went to our kernels: [tokens of a call]."""
    transformers_attention.register()
    seen, original = [], transformers_attention.paged_attention
    monkeypatch.setattr(transformers_attention, "paged_attention", lambda q, *a, **k: seen.append(q.shape[1]) or original(q, *a, **k))
    return seen


@pytest.mark.parametrize("length", [5, 40])
def test_tokens_are_those_of_eager(device, calls, length):
    prompt = torch.randint(3, 1000, (3, length), generator=torch.Generator().manual_seed(1)).to(device)
    assert written(model(device, "assay"), prompt) == written(model(device, "eager"), prompt)
    assert calls.count(1) == 2 * 23 and calls.count(5) == (2 if length == 5 else 0)


def test_padding_and_other_shapes_go_to_sdpa(device, calls):
    prompt = torch.randint(3, 1000, (2, 12), generator=torch.Generator().manual_seed(2)).to(device)
    mask = torch.ones_like(prompt)
    prompt[0, :5], mask[0, :5] = 0, 0
    assert written(model(device, "assay"), prompt, attention_mask=mask) == written(model(device, "sdpa"), prompt, attention_mask=mask)
    prompt = prompt[1:]
    assert written(model(device, "assay", head_dim=32), prompt) == written(model(device, "sdpa", head_dim=32), prompt)
    assert not calls


def test_a_wrong_scale_is_seen(device, calls, monkeypatch):
    prompt = torch.randint(3, 1000, (3, 40), generator=torch.Generator().manual_seed(1)).to(device)
    right = transformers_attention.paged_attention
    monkeypatch.setattr(transformers_attention, "paged_attention", lambda *a, **k: right(*a, **{**k, "sm_scale": 0.1}))
    assert written(model(device, "assay"), prompt) != written(model(device, "eager"), prompt)
