# SPDX-License-Identifier: Apache-2.0
"""A judge that waits for candidates: takes one after another on descriptor 0 and answers with verdicts.

Not started by hand. It has imported everything before the first candidate comes, and each candidate still gets a process
of its own, which this one starts: nothing of an earlier candidate is left in it but the code of the judge.
"""
import faulthandler
import json
import sys

from ..worker import Channel, plain
from . import isolation


def _verdict(judge_callable, request, options):
    try:
        made = judge_callable(request.pop("target"), **request, **options).to_json()
    except (ValueError, OSError) as error:
        return {"error": plain(str(error))}
    return {"verdict": made}


def main():
    isolation.end_with_parent()
    if not isolation.is_open(0):
        return
    isolation.unreadable()  # to the end: a later verdict is not to be changed either
    faulthandler.enable(all_threads=False)
    given = json.loads(sys.argv[1])
    from .judge import judge_callable
    from .process import Limits

    options = {"limits": Limits(**given["limits"]), "threads": given["threads"]}
    channel = Channel(0)
    while (request := channel.receive()) is not None:
        channel.send(_verdict(judge_callable, request, options))


if __name__ == "__main__":
    main()
