# SPDX-License-Identifier: Apache-2.0
"""A folder of FlashInfer's dumps, call by call: judged, or named with the reason why not."""
import re

from .._judge import record
from . import dump_files
from .flashinfer_calls import CASCADE, Calls, NotJudged, Setup


def judged(dump, like=None, max_rows=0, findings=None):
    """(folder, name, outcome, path) of every call that computes something: a JudgeReport, or text that says why there is
    none. What fails is kept in the folder `findings` and named by path."""
    calls = Calls(like, max_rows)
    listed = dump_files.folders(dump)
    within = {folder: _within(listed, folder, first, last) for folder, first, last in listed if _name(folder).endswith(tuple(f"{owner}.run" for owner in CASCADE))}
    # Merges inside a cascade are judged with it: what they write is in the call behind them.
    of_cascades = {f for inner in within.values() for f in inner if _name(f) == "merge_state_in_place"}
    for folder, _, _ in listed:
        if folder in of_cascades:
            continue
        # Until its record is read, a call is known by its folder alone.
        name = _name(folder)
        try:
            read = dump_files.read(dump, folder)
            name = read.name
            inside = [(inner.name, inner.arguments, inner.results) for inner in (dump_files.read(dump, f) for f in within.get(folder, ()))]
            joined = calls.calls_of(name, read.self_id, read.arguments, read.extra, read.results, inside)
            reports = [(call, call.judge()) for call in joined]
        except Setup:
            continue
        except (NotJudged, dump_files.DumpError) as error:
            yield folder, name, str(error), None
        except (ValueError, TypeError, KeyError, AttributeError, IndexError, OSError) as error:
            # A dump may hold anything in the place of a tensor or a number.
            yield folder, name, f"{type(error).__name__}: {error}", None
        else:
            for call, report in reports:
                yield folder, name, report, None if report.passed or findings is None else record.keep(call, report, findings)


def _name(folder):
    match = re.search(r"_pid\d+_(.+)_call\d+", folder)
    return match[1] if match else folder


def _process(folder):
    match = re.search(r"_pid(\d+)_", folder)
    return match and match[1]


def _within(listed, folder, first, last):
    """Folders of the calls of the same process that began and ended inside one. Others write to the same session."""
    return [inner for inner, begin, end in listed if first < begin and end < last and _process(inner) == _process(folder)]
