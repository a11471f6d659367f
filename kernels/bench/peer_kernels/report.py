# SPDX-License-Identifier: Apache-2.0
"""What peers.py makes of results: table, verdict, JSON. The standard library alone."""

SHORT = {
    "paged_attention_v1": "v1",
    "paged_attention_v2": "v2",
    "paged_attention_v1 early": "v1 e",
    "paged_attention_v2 early": "v2 e",
    "paged_attention_v1 by torch": "v1 t",
    "paged_attention_v2 by torch": "v2 t",
    "FlashInfer CUDA cores": "FI-cc",
    "FlashInfer tensor cores": "FI-tc",
    "XQA": "XQA",
    "SDPA contiguous": "SDPA",
    "cascade_attention": "ours",
    "FlashInfer cascade": "FI-ca",
    "FlashInfer cascade FA2": "FI-ca2",
    "FlashInfer composed FA2": "FI-co2",
    "FlashInfer composed FA3": "FI-co3",
    "FlashInfer flat": "FI-fl",
    "paged_attention_v2 flat": "v2-fl",
    "FlashInfer prefill FA2": "FI-p2",
    "FlashInfer prefill FA3": "FI-p3",
    "FlashInfer prefill FA3 rows": "FI-p3r",
    "FlashInfer single FA2": "FI-s2",
    "FlashInfer single FA3 rows": "FI-s3r",
    "SDPA cuDNN": "cuDNN",
    "SDPA FlashAttention": "SD-FA",
    "merge_state": "ours",
    "merge_state in place": "ours",
    "merge_states": "ours",
    "FlashInfer merge_state": "FI",
    "FlashInfer merge_state_in_place": "FI",
    "FlashInfer merge_states": "FI",
}


def reason(error):
    """An exception as one line: the first, or that of a compiler's first error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or ["no message"]
    return f"{type(error).__name__}: {next((line for line in lines if ': error' in line), lines[0])}"[:200]


def text_us(result, floor):
    """'us fraction' of a kernel in the table; a dash when it has no result."""
    if "us" not in result:
        return f"{'-':>15}"
    return f"{result['us']:9.2f} {floor / result['us']:5.3f}"


def cell_row(cell):
    """A cell's line: floor, every kernel, and ours / fastest peer."""
    floor, results = cell["floor_us"], {**cell["ours"], **cell["peers"]}
    times = "".join(" " + text_us(r, floor) for r in results.values())
    quotient = ratio(cell["ours"], cell["peers"])
    return f"{cell['cell']:<28} {floor:8.2f}{times} " + (f"{quotient:6.3f}" if quotient else f"{'-':>6}")


def header(kernels):
    columns = "".join(f" {SHORT[k] + ' us':>9} {'frac':>5}" for k in kernels)
    return f"{'cell':<28} {'floor us':>8}{columns} {'ratio':>6}"


def error_row(name, results):
    errors = [f"{r['mean_error'] * 1e6:11.2f}" if "us" in r else f"{'-':>11}" for r in results.values()]
    return f"{name:<28}" + "".join(errors)


def fastest(results):
    """The result of the fastest kernel that ran, or None."""
    return min((r for r in results.values() if "us" in r), key=lambda r: r["us"], default=None)


def ratio(ours, peers):
    """Time of the fastest of ours over that of the fastest peer; None where either has none."""
    mine, theirs = fastest(ours), fastest(peers)
    return mine["us"] / theirs["us"] if mine and theirs else None


def verdict(ours, peers):
    """Compares the faster of ours with the fastest peer, and its mean error with that of the fastest
    and of the most accurate peer: three booleans, or None when no peer ran."""
    mine, theirs = fastest(ours), fastest(peers)
    if mine is None or theirs is None:
        return None
    least = min(r["mean_error"] for r in peers.values() if "us" in r)
    return (
        mine["us"] <= theirs["us"],
        mine["mean_error"] <= theirs["mean_error"],
        mine["mean_error"] <= least,
    )


def summary(cells):
    """The closing lines of one kind of cells: errors, refusals, and the cells in which a peer is ahead."""
    kernels = [*cells[0]["ours"], *cells[0]["peers"]]
    lines = ["", "mean |O - float64 reference| x 1e6"]
    lines.append(f"{'cell':<28}" + "".join(f"{SHORT[k]:>11}" for k in kernels))
    lines += [error_row(c["cell"], {**c["ours"], **c["peers"]}) for c in cells]
    refused = {}
    for c in cells:
        for peer, r in {**c["ours"], **c["peers"]}.items():
            if "refused" in r:
                refused.setdefault((peer, r["refused"]), []).append(c["cell"])
    lines += ["", "no result:"] if refused else []
    lines += [f"  {peer}: {why}\n    {', '.join(names)}" for (peer, why), names in refused.items()]
    verdicts = {c["cell"]: verdict(c["ours"], c["peers"]) for c in cells}
    judged = {name: v for name, v in verdicts.items() if v is not None}
    lines.append("")
    for i, what in enumerate(
        (
            "at least as fast as the fastest peer",
            "mean error no larger than the fastest peer's",
            "mean error no larger than that of the most accurate peer",
        )
    ):
        behind = [name for name, v in judged.items() if not v[i]]
        lines.append(f"{what}: {len(judged) - len(behind)} of {len(judged)} cells")
        lines += [f"  not in: {', '.join(behind)}"] if behind else []
    return "\n".join(lines)


def to_json(about, cells):
    """Results as data: one entry per cell and kernel of ours, the peers of the cell in each."""
    entries = []
    for c in cells:
        for kernel, r in c["ours"].items():
            if "us" in r:
                entries.append(
                    {
                        "cell": c["cell"],
                        "kind": c["kind"],
                        "kernel": kernel,
                        "kv_dtype": c["kv_dtype"],
                        "bytes": c["bytes"],
                        "floor_us": c["floor_us"],
                        "floor_fraction": c["floor_us"] / r["us"],
                        **r,
                        "ratio": ratio({kernel: r}, c["peers"]),
                        "peers": c["peers"],
                    }
                )
    return {**about, "cells": entries}
