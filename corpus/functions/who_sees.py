#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which of the twelve wrong functions a checker with a tolerance sees, which the proposed check sees, and which assay.

who_sees.py [--csv FILE] [NAME...]    a row for each of these functions (the twelve, and two that are right). It needs torch."""
import argparse
import csv
import sys

import assay
import callables
import proposed_check
import tolerance_check
import torch
from assay._callable.calling import Caller

SHAPE = dict(batch=8, heads=16, kv_heads=4, head_dim=64, keys=2000, page_size=16)  #: the smallest of the benchmark's
FUNCTIONS = {function.__name__: function for function in (callables.plain, callables.bf16_weights, *callables.WRONG)}


def model_of(function):
    """A function of NumPy tensors behind the benchmark's interface, over the same memory."""
    caller = Caller(function, "numpy")

    def model(query, kv_cache, block_table, seq_lens):
        q, cache = (tensor.view(torch.int16).numpy().view("u2") for tensor in (query, kv_cache))
        shape = dict(page_size=cache.shape[1], num_qo_heads=q.shape[1], num_kv_heads=cache.shape[2], head_dim=q.shape[2], keys=0)
        k, v = cache[..., : q.shape[2]], cache[..., q.shape[2] :]
        tensors = dict(q=q, k_cache=k, v_cache=v, page_table=block_table.numpy(), seq_lens=seq_lens.numpy())
        out, _ = caller.call(shape, q.shape[2] ** -0.5, tensors)
        return torch.from_numpy(out.view("i2")).view(torch.bfloat16)

    return model


def by_tolerance(function):
    """(largest error over what is allowed in the benchmark's own calls, the names of calls that fail)."""
    errors = tolerance_check.errors(model_of(function), **SHAPE)
    return errors["times 1"], [name for name, error in errors.items() if error > 1]


def by_proposal(function):
    torch.manual_seed(1)
    inputs = tolerance_check.drawn(**SHAPE)
    return proposed_check.seen(model_of(function), tolerance_check.reference, inputs)


def by_assay(function):
    shape = "batch={batch},heads={heads}/{kv_heads},head_dim={head_dim},keys={keys},page_size={page_size}".format(**SHAPE)
    verdict = assay.judge_callable(function, shape, seed=1, device="numpy")
    return verdict.verdict, [stage.stage for stage in verdict.failed()]


def row(name):
    error, fails = by_tolerance(FUNCTIONS[name])
    verdict, stages = by_assay(FUNCTIONS[name])
    said = {"tolerance": f"fails: {', '.join(fails)}" if fails else "passes", "proposal": ", ".join(by_proposal(FUNCTIONS[name])) or "passes"}
    return {"name": name, "error": f"{error:.2f}", **said, "assay": f"{verdict}: {stages[0]}" if stages else verdict}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", type=argparse.FileType("w"), help="write the rows there, too")
    parser.add_argument("names", nargs="*", metavar="NAME")
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(FUNCTIONS):
        parser.error(f"{sorted(unknown)[0]!r}, expected some of {', '.join(FUNCTIONS)}")
    rows = []
    print(f"{'function':28} {'error / tolerance':18} {'its checker':30} {'proposed check':18} assay")
    for name in asked.names or FUNCTIONS:
        rows.append(made := row(name))
        print(f"{name:28} {made['error']:18} {made['tolerance']:30} {made['proposal']:18} {made['assay']}", flush=True)
    if asked.csv:
        table = csv.DictWriter(asked.csv, rows[0], lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


if __name__ == "__main__":
    sys.exit(main())
