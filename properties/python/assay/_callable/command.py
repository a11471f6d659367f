# SPDX-License-Identifier: Apache-2.0
"""`python -m assay judge-callable FILE.py:NAME`: a verdict on a function of tensors."""
import argparse
import json
import sys

from .. import arithmetic
from .judge import judge_callable
from .process import Limits
from .shape import Shape
from .stages import ASSUMPTIONS

USAGE = 2  #: exit code, that of the program


def parser():
    made = argparse.ArgumentParser(
        prog="assay judge-callable", description="Runs a function of tensors on inputs made for it, in a process of its own, and judges what it returns.",
        epilog="Exit codes: 0 pass; 1 finding, another arithmetic than claimed, or contract; 2 usage; 4 undecided.",
    )  # fmt: skip
    made.add_argument("target", help="FILE.py:NAME or MODULE:NAME")
    made.add_argument("--shape", default="", help=f"such as batch=8,heads=32/8,head_dim=128,keys=1024,page_size=16 (what is missing: {Shape()})")
    made.add_argument("--like", default=arithmetic.WIDEST, choices=arithmetic.names(), metavar="NAME", help=f"the arithmetic that is claimed ({arithmetic.WIDEST})")
    made.add_argument("--assume", default="", metavar="WORDS", help=f"what the interface excludes: {', '.join(ASSUMPTIONS)}")
    made.add_argument("--deterministic", action="store_true", help="the same call must give the same bits")
    made.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda", "numpy"), help="where tensors are (a GPU where there is one)")
    made.add_argument("--lse-base", default="e", choices=("e", "2"), help="of a second result, the LSE (e)")
    made.add_argument("--seed", type=int, metavar="N", help="of everything drawn (the system's random numbers)")
    made.add_argument("--keep-going", action="store_true", help="all stages, also behind the first that fails")
    made.add_argument("--hint-seconds", type=float, default=2.0, metavar="S", help="processor time for suppositions about a cause (2)")
    limits = Limits()
    made.add_argument("--load-seconds", type=float, default=limits.load_seconds, metavar="S", help=f"to load the module, compilation included ({limits.load_seconds:g})")
    made.add_argument("--call-seconds", type=float, default=limits.call_seconds, metavar="S", help=f"of a call ({limits.call_seconds:g})")
    made.add_argument("--gigabytes", type=float, default=limits.gigabytes, metavar="GB", help=f"of memory of the host ({limits.gigabytes:g})")
    made.add_argument("--json", metavar="FILE", help="write the verdict to FILE; -: to standard output, one line a stage and one for the verdict")
    return made


def main(arguments):
    options = parser().parse_args(arguments)
    lines = options.json == "-"
    try:
        verdict = judge_callable(
            options.target, options.shape, like=options.like, seed=options.seed, assume=tuple(filter(None, options.assume.split(","))),
            device=options.device, deterministic=options.deterministic, keep_going=options.keep_going,
            lse_base=2 if options.lse_base == "2" else "e", hint_seconds=options.hint_seconds,
            limits=Limits(options.load_seconds, options.call_seconds, options.gigabytes), each=_line if lines else None,
        )  # fmt: skip
        if options.json and not lines:
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump(verdict.to_json(), file, indent=1)
    except (ValueError, OSError) as error:
        print(f"assay judge-callable: {str(error).removeprefix('assay: ')}", file=sys.stderr)
        return USAGE
    if lines:
        print(json.dumps({**verdict.to_json(), "stages": len(verdict.stages)}))
    print(verdict, file=sys.stderr if lines else sys.stdout)
    return verdict.exit_code


def _line(stage):
    print(json.dumps(stage.to_json()), flush=True)
