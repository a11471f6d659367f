# SPDX-License-Identifier: Apache-2.0
"""Requests that begin with the same prompt, served by the continuous batching of transformers: our decode flat and by prefix trees,
sdpa and eager, in the same engine. Prints a row for each: time of attention, of a step, tokens a second, and how its tokens compare
with those that eager says to be the best behind the same tokens.

    python3 kernels/torch/examples/shared_prompts.py --json RESULT.json --commit COMMIT

The model is a Llama with random weights. Needs a GPU, where decode steps of ours run in CUDA graphs; `--tiny` is for a CPU."""
import argparse
import contextlib
import gc
import json
import sys
import time

import torch
import transformers
from assay_torch import transformers_batching
from transformers.generation.continuous_batching import model_runner

VOCABULARY = 8192
SIZES = dict(requests=64, shared=4096, own=64, new=96, page=256, hidden=4096, layers=4, heads=32, kv_heads=8, head_dim=128)
TINY = dict(requests=4, shared=40, own=5, new=6, page=16, hidden=256, layers=2, heads=4, kv_heads=2, head_dim=64)
PROFILED, WARM = 8, 8  # decode steps


def model_of(s, device):
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=s["hidden"], intermediate_size=2 * s["hidden"], num_hidden_layers=s["layers"], num_attention_heads=s["heads"],
        num_key_value_heads=s["kv_heads"], head_dim=s["head_dim"], vocab_size=VOCABULARY, max_position_embeddings=1 << 16,
        bos_token_id=1, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    with torch.device(device):
        return transformers.LlamaForCausalLM(config).to(torch.float16).eval()


def prompts_of(s):
    generator = torch.Generator().manual_seed(1)
    new = lambda n: torch.randint(3, VOCABULARY - 1, (n,), generator=generator).tolist()  # noqa: E731
    shared = new(s["shared"])
    return [shared + new(s["own"]) for _ in range(s["requests"])]


def implementations(model):
    """What sets each kind of attention, and whether it has block tables."""
    sdpa = "sdpa" if transformers_batching.has_page_size() else "paged|sdpa"
    return {
        "flat": (lambda: transformers_batching.use_in_batches(model), True),
        "trees": (lambda: transformers_batching.use_in_batches(model, trees=True), True),
        "sdpa": (lambda: setattr(model.config, "_attn_implementation", sdpa), False),
        "eager": (lambda: setattr(model.config, "_attn_implementation", "paged|eager"), False),
    }


class Watch:
    """Sees each step of the engine, in the engine's thread. Steps of `requests` tokens are decode steps."""

    def __init__(self, requests, profiled=0):
        self.requests, self.profiled, self.times, self.profile = requests, profiled, [], None

    @contextlib.contextmanager
    def watching(self):
        compute = model_runner.ModelRunner.compute_batch

        def watched(runner, model, batch):
            decodes = batch["input_ids"].shape[1] == self.requests
            if decodes:
                self.times.append(time.perf_counter())
            if decodes and self.profiled and len(self.times) == WARM:
                self._profile(True)
            compute(runner, model, batch)
            if decodes and self.profiled and len(self.times) == WARM + self.profiled - 1:
                self._profile(False)

        model_runner.ModelRunner.compute_batch = watched
        try:
            yield self
        finally:
            model_runner.ModelRunner.compute_batch = compute

    def _profile(self, start):
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        if start:
            kinds = torch.profiler.ProfilerActivity
            self.profile = torch.profiler.profile(activities=[kinds.CPU, kinds.CUDA])
            self.profile.start()
        else:
            self.profile.stop()

    def step_us(self):
        """Median time from a decode step to the next."""
        steps = sorted(b - a for a, b in zip(self.times, self.times[1:]))
        return 1e6 * steps[len(steps) // 2] if steps else float("nan")

    def attention_us(self, layers):
        """Time on the device of what a layer's attention launches, a step: writing new keys, gathering old ones, planning included.
        These are the kernels within the ranges that the profiler shows on the device for `attention`, or, where it shows none, those
        of the operators within the ranges on the host."""
        ranges = [e.time_range for e in self._on_device() if e.name == "attention"]
        kernels = [e.time_range for e in self._on_device() if e.name != "attention"]
        inside = sum(k.end - k.start for k in kernels if any(r.start <= k.start and k.end <= r.end for r in ranges))
        if not ranges:
            inside = sum(e.device_time_total for e in self.profile.events() if e.name == "attention")
        return inside / (layers * self.profiled)

    def _on_device(self):
        return [e for e in self.profile.events() if e.device_type == torch.autograd.DeviceType.CUDA]

    def kernels(self, most=8):
        """Names and times of the kernels that took longest, a step."""
        by_name = {}
        for e in self._on_device():
            if e.name != "attention":
                by_name[e.name[:90]] = by_name.get(e.name[:90], 0.0) + (e.time_range.end - e.time_range.start) / self.profiled
        return sorted(by_name.items(), key=lambda item: -item[1])[:most]


@contextlib.contextmanager
def marked(model):
    """Calls of the attention that is set stand in a profile as `attention`."""
    from transformers import AttentionInterface

    name = model.config._attn_implementation
    plain = AttentionInterface()[name]

    def forward(*given, **more):
        with torch.profiler.record_function("attention"):
            return plain(*given, **more)

    AttentionInterface.register(name, forward)
    try:
        yield
    finally:
        AttentionInterface.register(name, plain)


def serve(model, prompts, s, in_blocks, graphs, watch):
    """Tokens of each request."""
    pages = -(-(s["shared"] + s["own"] + s["new"]) // s["page"]) + 1
    how = transformers.GenerationConfig(max_new_tokens=s["new"], do_sample=False, eos_token_id=VOCABULARY - 1, pad_token_id=0)
    batches = transformers_batching.configuration(
        page_size=s["page"], num_blocks=pages * s["requests"], max_batch_tokens=512, max_requests_per_batch=s["requests"],
        max_blocks_per_request=pages if in_blocks else 0, use_cuda_graph=(False, graphs),
    )  # fmt: skip
    with watch.watching(), torch.no_grad():
        results = model.generate_batch(prompts, generation_config=how, continuous_batching_config=batches, progress_bar=False)
    failed = [r.error for r in results.values() if r.error]
    if failed or len(results) != len(prompts):
        sys.exit(f"shared_prompts: {len(failed)} requests failed: {failed[:1]}")
    by_prompt = {tuple(r.prompt_ids): r.generated_tokens for r in results.values()}
    return [by_prompt[tuple(prompt)] for prompt in prompts]


def others_than_eager(model, prompts, written):
    """(tokens that are not eager's best behind the same tokens, the largest of their gaps to it in steps of fp16)."""
    model.set_attn_implementation("eager")
    others, largest = 0, 0.0
    for prompt, tokens in zip(prompts, written):
        text = torch.tensor([prompt + tokens], device=model.device)
        with torch.no_grad():
            logits = model(text[:, :-1], logits_to_keep=len(tokens)).logits[0].float()
        best = logits.amax(1)
        gaps = best - logits.gather(1, text[0, len(prompt) :, None])[:, 0]
        others += int((gaps > 0).sum())
        largest = max(largest, float((gaps / 2 ** (best.abs().log2().floor() - 10)).max()))
    return others, largest


def same(a, b):
    """How many requests got the same tokens, and how many tokens are the same."""
    return {"requests": sum(x == y for x, y in zip(a, b)), "tokens": sum(u == v for x, y in zip(a, b) for u, v in zip(x, y))}


def row(name, s, device):
    """A kind of attention in an engine of its own: a run that is timed, and on a GPU one that is profiled; and its tokens."""
    model, prompts = model_of(s, device), prompts_of(s)
    choose, in_blocks = implementations(model)[name]
    on_gpu = device == "cuda"
    choose()
    watch = Watch(s["requests"])
    written = serve(model, prompts, s, in_blocks and on_gpu, on_gpu and in_blocks, watch)
    result = {"cell": f"{name} {s['requests']} x {s['shared']}", "step_us": watch.step_us()}
    result["tokens_per_s"] = 1e6 * s["requests"] / result["step_us"]
    if on_gpu:
        choose()
        profiled = Watch(s["requests"], PROFILED)
        with marked(model):
            serve(model, prompts, {**s, "new": 40}, in_blocks, False, profiled)
        result["attention_us"] = profiled.attention_us(s["layers"])
        result["kernels"] = profiled.kernels()
    result["tokens"] = sum(map(len, written))
    result["others"], result["largest_gap"] = others_than_eager(model, prompts, written)
    return result, written


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="where the result goes")
    parser.add_argument("--commit", default="unknown", help="what was built, for the result")
    parser.add_argument("--only", nargs="+", default=["flat", "trees", "sdpa", "eager"])
    parser.add_argument("--tiny", action="store_true", help="a few short requests, on a CPU too")
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    s = TINY if options.tiny else SIZES
    about = dict(
        device=torch.cuda.get_device_name() if device == "cuda" else "CPU", date=time.strftime("%Y-%m-%d", time.gmtime()),
        commit=options.commit, torch=torch.__version__, transformers=transformers.__version__, sizes=s, cells=[],
    )  # fmt: skip
    tokens = {}
    for name in options.only:
        cell, written = row(name, s, device)
        about["cells"].append({**cell, "same_as": {other: same(written, of_other) for other, of_other in tokens.items()}})
        tokens[name] = written
        gc.collect()
        torch.cuda.empty_cache()
        print({k: v for k, v in about["cells"][-1].items() if k != "kernels"}, flush=True)
        for kernel, us in about["cells"][-1].get("kernels", []):
            print(f"    {us:9.1f} us  {kernel}")
        if options.json:
            with open(options.json, "w") as f:
                json.dump(about, f, indent=1)
                f.write("\n")


if __name__ == "__main__":
    main()
