# SPDX-License-Identifier: Apache-2.0
"""One vLLM engine on the CPU with a tiny random Llama: vllm_serving.py HEAD_DIM OUT.json [wrong] [shared] [fp8] [kept]. Run by
test_vllm.py, with ASSAY_VLLM_BACKEND and without. Writes the greedy tokens of each request, and the log-probabilities of the two best of each.
kept: what a request has is appended to OUT.json.kept as soon as it ends; what stands there already is not computed again.
wrong: a backend that leaves out the newest key. shared: prompts begin alike, and trees share all that they can. fp8: an e4m3 cache."""
import json
import os
import random
import sys
import tempfile

os.environ.update(VLLM_CPU_KVCACHE_SPACE="1", HF_HUB_OFFLINE="1", VLLM_ENABLE_V1_MULTIPROCESSING="0")
REQUESTS, TOKENS = 32, 16


def make_model(folder, head_dim):
    """Weights so large that a token depends on what attention says (vLLM's own dummy weights are a thousandth)."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=head_dim,
        vocab_size=1024, max_position_embeddings=2048, initializer_range=0.15, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    LlamaForCausalLM(config).to(torch.float16).save_pretrained(folder)


def leave_out_the_newest_key():
    from assay_torch import vllm_cpu

    right = vllm_cpu.paged_attention

    def wrong(q, kv, table, lens, **more):
        return right(q, kv, table, lens - 1, **more)

    vllm_cpu.paged_attention = wrong


def share_all_that_can_be():
    """With 16 requests of a toy the model of bytes would see no gain."""
    from assay_torch import vllm_cpu

    right = vllm_cpu.options_of
    vllm_cpu.options_of = lambda impl: dict(right(impl), num_splits=1)
    vllm_cpu.prefill, own = lambda *tensors, num_splits, **more: own(*tensors, **more), vllm_cpu.prefill


def said_of(result):
    one = result.outputs[0]
    best = [sorted((x.logprob for x in step.values()), reverse=True)[:2] for step in one.logprobs]
    return {"tokens": list(one.token_ids), "best": best}


def keep(llm, prompts, sampling, path):
    """Serves what does not stand in the file, a line a request; a line without its end is of an engine that was killed."""
    done = {}
    if os.path.exists(path):
        for line in open(path).read().splitlines(keepends=True):
            if line.endswith("\n"):
                done.update([json.loads(line)])
    print(f"kept: {len(done)} requests", flush=True)
    engine = llm.llm_engine
    for i in range(len(prompts)):
        if i not in done:
            engine.add_request(str(i), prompts[i], sampling[i])
    with open(path, "w") as file:
        for pair in done.items():
            file.write(json.dumps(pair) + "\n")
        while engine.has_unfinished_requests():
            for result in engine.step():
                if result.finished:
                    done[int(result.request_id)] = said_of(result)
                    file.write(json.dumps([int(result.request_id), done[int(result.request_id)]]) + "\n")
                    file.flush()
    return [done[i] for i in range(len(prompts))]


def main(head_dim, out, wrong, shared, fp8, kept):
    import torch
    from vllm import LLM, SamplingParams

    if wrong:
        leave_out_the_newest_key()
    if shared and os.environ.get("ASSAY_VLLM_BACKEND"):
        share_all_that_can_be()
    torch.set_num_threads(2)
    rng = random.Random(0)
    lengths = [1 + rng.randrange(9) if i % 3 == 0 else 10 + rng.randrange(290) for i in range(REQUESTS)]
    first = [rng.randrange(3, 1000) for _ in range(140)] if shared else []  # more than a block of 128
    prompts = [{"prompt_token_ids": first + [rng.randrange(3, 1000) for _ in range(n)]} for n in lengths]
    with tempfile.TemporaryDirectory() as model:
        make_model(model, head_dim)
        llm = LLM(
            model=model, skip_tokenizer_init=True, enforce_eager=True, dtype="float16", max_model_len=512,
            max_num_batched_tokens=512, max_num_seqs=16, seed=0, kv_cache_dtype="fp8" if fp8 else "auto",
        )  # fmt: skip
        sampling = [
            SamplingParams(max_tokens=TOKENS + i % 5, temperature=0, detokenize=False, ignore_eos=True, logprobs=2)
            for i in range(REQUESTS)
        ]
        if kept:
            said = keep(llm, prompts, sampling, f"{out}.kept")
        else:
            said = [said_of(result) for result in llm.generate(prompts, sampling, use_tqdm=False)]
    with open(out, "w") as file:
        json.dump(said, file)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], *(word in sys.argv[3:] for word in ("wrong", "shared", "fp8", "kept")))
