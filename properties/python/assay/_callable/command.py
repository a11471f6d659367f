# SPDX-License-Identifier: Apache-2.0
"""`python -m assay judge-callable`: a verdict on a function of tensors, or on each of a file of them."""
import argparse
import json
import sys

from .. import arithmetic
from . import batch, task
from .judge import judge_callable
from .process import Limits
from .shape import Shape
from .stages import ASSUMPTIONS

USAGE = 2  #: exit code, that of the program
JOBS = task.whole(1, 256)  #: the type of --jobs
_INTERRUPTED = 130  #: exit code, that of shells


def parser():
    made = argparse.ArgumentParser(
        prog="assay judge-callable", description="Runs a function of tensors on inputs made for it, in a process of its own, and judges what it returns.",
        epilog="Exit codes: 0 pass; 1 finding, another arithmetic than claimed, or contract; 2 usage; 4 undecided. Of a batch that of its worst verdict; "
        "2 where nothing is wrong but lines.",
    )  # fmt: skip
    made.add_argument("target", nargs="?", help="FILE.py:NAME or MODULE:NAME")
    _add_batch(made)
    made.add_argument("--shape", default="", help=f"such as batch=8,heads=32/8,head_dim=128,keys=1024,page_size=16 (what is missing: {Shape()})")
    made.add_argument("--adapter", metavar="FILE.py:NAME", help="a function that makes the function of tensors from the target, such as a class")
    made.add_argument("--like", default=arithmetic.WIDEST, choices=arithmetic.names(), metavar="NAME", help=f"the arithmetic that is claimed ({arithmetic.WIDEST})")
    made.add_argument("--assume", default="", metavar="WORDS", help=f"what the interface excludes: {', '.join(ASSUMPTIONS)}")
    made.add_argument("--deterministic", action="store_true", help="the same call must give the same bits")
    made.add_argument("--capturable", action="store_true", help="a CUDA graph must be able to hold a call (else: where a capture fails, replays are not judged)")
    made.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda", "numpy"), help="where tensors are (a GPU where there is one)")
    made.add_argument("--lse-base", default="e", choices=("e", "2"), help="of a second result, the LSE (e)")
    made.add_argument("--seed", type=int, metavar="N", help="of everything drawn (the system's random numbers)")
    made.add_argument("--keep-going", action="store_true", help="all stages, also behind the first that fails")
    made.add_argument("--explain", action="store_true", help="judge all of a call that is wrong, and look for the cause")
    add_limits(made)
    made.add_argument("--json", metavar="FILE", help="write the verdict to FILE; -: to standard output, one line a stage and one for the verdict. Of a batch: a "
                      "line a result, where the next run with this FILE goes on; without it to standard output")  # fmt: skip
    return made


def add_limits(made):
    """Options of what a candidate may take, for commands that judge candidates."""
    limits = Limits()
    made.add_argument("--load-seconds", type=task.positive, default=limits.load_seconds, metavar="S", help=f"to load the module, compilation included ({limits.load_seconds:g})")
    made.add_argument("--call-seconds", type=task.positive, default=limits.call_seconds, metavar="S", help=f"of a call ({limits.call_seconds:g})")
    made.add_argument("--gigabytes", type=task.positive, default=limits.gigabytes, metavar="GB", help=f"of memory of the host ({limits.gigabytes:g})")


def limits_of(options):
    return Limits(options.load_seconds, options.call_seconds, options.gigabytes)


def _add_batch(made):
    batched = made.add_argument_group("batches", "candidates of a file; options stand for what its lines leave out")
    batched.add_argument("--batch", metavar="FILE", help='a JSON object a line: {"target": "f.py:name", "shape": "...", "id": "..."}; also adapter, like, assume '
                         "(a list), seed, deterministic, capturable, device, lse_base, keep_going, explain. A candidate can read FILE and the results: better no seed in them")  # fmt: skip
    batched.add_argument("--jobs", type=JOBS, default=None, metavar="N", help="candidates at once (1)")
    batched.add_argument("--html", metavar="FILE", help="a table of the results")


def _words(options):
    return list(filter(None, options.assume.split(",")))


def _base(options):
    return 2 if options.lse_base == "2" else "e"


def _batch(options):
    defaults = {"shape": options.shape, "adapter": options.adapter, "like": options.like, "assume": _words(options), "seed": options.seed, "deterministic": options.deterministic,
                "capturable": options.capturable, "device": options.device, "keep_going": options.keep_going, "explain": options.explain, "lse_base": _base(options)}  # fmt: skip
    try:
        return batch.run(options.batch, options.json, options.html, options.jobs or 1, limits_of(options), defaults)
    except (ValueError, OSError) as error:
        return _usage(error)
    except KeyboardInterrupt:
        print("assay judge-callable: interrupted; with the same --json FILE the next run goes on", file=sys.stderr)
        return _INTERRUPTED


def _usage(error):
    print(f"assay judge-callable: {str(error).removeprefix('assay: ')}", file=sys.stderr)
    return USAGE


def main(arguments):
    made = parser()
    options = made.parse_args(arguments)
    if (options.target is None) == (options.batch is None):
        made.error("one of a target and --batch is needed")
    if options.batch is None and (options.jobs or options.html):
        made.error("--jobs and --html are for --batch")
    return _one(options) if options.batch is None else _batch(options)


def _one(options):
    lines = options.json == "-"
    try:
        verdict = judge_callable(
            options.target, options.shape, adapter=options.adapter, like=options.like, seed=options.seed, assume=tuple(_words(options)),
            device=options.device, deterministic=options.deterministic, capturable=options.capturable,
            keep_going=options.keep_going, explain=options.explain, lse_base=_base(options),
            limits=limits_of(options), each=_line if lines else None,
        )  # fmt: skip
        if options.json and not lines:
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump(verdict.to_json(), file, indent=1)
    except (ValueError, OSError) as error:
        return _usage(error)
    if lines:
        print(json.dumps({**verdict.to_json(), "stages": len(verdict.stages)}))
    print(verdict, file=sys.stderr if lines else sys.stdout)
    return verdict.exit_code


def _line(stage):
    print(json.dumps(stage.to_json()), flush=True)
