# SPDX-License-Identifier: Apache-2.0
"""vLLM's CPU build serves a small random Llama, and every attention call is judged; then each of tests/vllm_mistakes.py
is put between the engine and the judge, and must be found.

    python3 vllm_engine.py [--requests 32] [--window 48] [--kv-cache-dtype fp8] [--record FILE.npz]

The weights are large enough for attention to choose: with vLLM's own dummy weights all keys weigh the same, and no mistake
in their order shows. --record writes two calls of three requests for tests/test_vllm_shadow.py. Needs vLLM, transformers."""
import argparse
import os
import pathlib
import random
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))
os.environ.update(
    VLLM_CPU_KVCACHE_SPACE="1", HF_HUB_OFFLINE="1", VLLM_ENABLE_V1_MULTIPROCESSING="0", VLLM_LOGGING_LEVEL="WARNING", ASSAY_VLLM_EVERY="1",
    ASSAY_VLLM_ROWS="0",
)  # fmt: skip


def parsed():
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=32)
    parser.add_argument("--window", type=int, default=0)
    parser.add_argument("--kv-cache-dtype", default="auto")
    parser.add_argument("--record")
    return parser.parse_args()


def model(folder, window):
    """A checkpoint whose logits of attention spread over some units."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

    torch.manual_seed(0)
    sizes = dict(
        hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=64, vocab_size=1024,
        max_position_embeddings=2048, initializer_range=0.12, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    made = MistralForCausalLM(MistralConfig(sliding_window=window, **sizes)) if window else LlamaForCausalLM(LlamaConfig(**sizes))
    made.to(torch.bfloat16).save_pretrained(folder)


class Mistakes:
    """Beside the plugin: judges each call again with every mistake."""

    def __init__(self, calls, judging, mistakes, keeps):
        self.keeps = keeps
        self.judging, self.mistakes, self.original = judging, mistakes, calls.BACKENDS["CPU_ATTN"]
        self.tried, self.found, self.recorded = {}, {}, []
        calls.BACKENDS["CPU_ATTN"] = self.call

    def call(self, impl, layer, query, kv_cache, output, metadata, requests):
        arguments = self.original(impl, layer, query, kv_cache, output, metadata, requests)
        self.recorded.append(recorded(impl, query, kv_cache, output, metadata) if self.keeps else None)
        plain = self.mistakes.as_numpy(arguments)
        for mistake in self.mistakes.MISTAKES:
            changes = mistake(plain)
            if changes is None:
                continue
            self.tried[mistake.__name__] = self.tried.get(mistake.__name__, 0) + 1
            report = self.judging.judge(**{**plain, **changes}, max_rows=16)
            self.found[mistake.__name__] = self.found.get(mistake.__name__, 0) + (report.verdict == "outside")
        return arguments


def recorded(impl, query, cache, output, metadata):
    """A call as tests/test_vllm_shadow.py reads it: its pages alone, copied, as the engine uses its buffers again."""
    from assay._judge.tensors import Tensor

    array = lambda tensor: Tensor("tensor", tensor).numpy().copy()  # noqa: E731
    table, lengths, slots = array(metadata.block_table), array(metadata.seq_lens), cache.shape[2]
    pages = np.unique(np.concatenate([table[r, : -(-n // slots)] for r, n in enumerate(lengths)]))
    columns = max(-(-n // slots) for n in lengths)
    new = np.searchsorted(pages, np.clip(table[:, :columns], pages[0], pages[-1])).astype(np.int32)
    rows = int(metadata.num_actual_tokens)
    return {
        "query": array(query[:rows]), "output": array(output[:rows]).reshape(rows, -1), "kv_cache": array(cache[pages.tolist()]),
        "block_table": new, "seq_lens": lengths, "query_start_loc": array(metadata.query_start_loc), "scale": np.float64(impl.scale),
        "sliding_window": np.int64(impl.sliding_window),
    }  # fmt: skip


def record(path, calls):
    """The first call, a prefill, and the last, a decode."""
    np.savez_compressed(path, **{f"{i}.{name}": value for i, call in enumerate((calls[0], calls[-1])) for name, value in call.items()})
    print("recorded", path, pathlib.Path(path).stat().st_size, "bytes")


def main():
    options = parsed()
    import vllm_mistakes
    from assay import judging
    from assay._engines import vllm_calls, vllm_shadow
    from vllm import LLM, SamplingParams
    from vllm.model_executor.layers.attention import Attention

    random.seed(1)
    with tempfile.TemporaryDirectory() as folder:
        model(folder, options.window)
        llm = LLM(
            model=folder, skip_tokenizer_init=True, enforce_eager=True, dtype="bfloat16", max_model_len=512, block_size=32,
            kv_cache_dtype=options.kv_cache_dtype,
        )  # fmt: skip
    # Installed, the entry point has wrapped the layers; from a tree it has not.
    shadow = getattr(Attention.__init__, "assay_shadow", None)
    if shadow is None:
        sys.exit("the plugin is not there: pip install the package into vLLM's environment")
    watched = Mistakes(vllm_calls, judging, vllm_mistakes, bool(options.record))
    lengths = [5, 33, 40] if options.record else [random.choice([1, 5, 17, 31, 32, 33, 40, 64, 100, 250]) for _ in range(options.requests)]
    prompts = [{"prompt_token_ids": [random.randrange(3, 1000) for _ in range(n)]} for n in lengths]
    llm.generate(prompts, SamplingParams(max_tokens=6, temperature=0, detokenize=False, ignore_eos=True), use_tqdm=False)
    print(shadow.counters)
    for name, tried in watched.tried.items():
        print(f"{watched.found[name]:4} of {tried:4} calls  {name}")
    if options.record:
        record(options.record, watched.recorded)
    missed = [m.__name__ for m in vllm_mistakes.MISTAKES if not watched.found.get(m.__name__)]
    sys.exit(f"missed: {missed}" if missed or shadow.counters.findings or not shadow.counters.judged else 0)


if __name__ == "__main__":
    main()
