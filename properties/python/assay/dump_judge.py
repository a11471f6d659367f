# SPDX-License-Identifier: Apache-2.0
"""A folder of FlashInfer's dumps, call by call: judged, or named with the reason why not."""
import re

from . import dump_files, judge_record
from .flashinfer_calls import Calls, NotJudged, Setup


def judged(dump, like=None, rows=0, findings=None):
    """(folder, name, outcome, path) of every call that computes something: a JudgeReport, or text that says why there is
    none. What fails is kept in the folder `findings` and named by path."""
    calls = Calls(like, rows)
    listed = dump_files.folders(dump)
    for folder, first, last in listed:
        # Until its record is read, a call is known by its folder alone.
        match = re.search(r"_pid\d+_(.+)_call\d+", folder)
        name = match[1] if match else folder
        try:
            read = dump_files.read(dump, folder)
            name = read.name
            within = [inner for inner, begin, end in listed if first < begin and end < last] if "Cascade" in name else []
            inside = [(inner.name, inner.results) for inner in (dump_files.read(dump, f) for f in within)]
            call = calls.call_of(name, read.self_id, read.arguments, read.extra, read.results, inside)
            report = call.judge()
        except Setup:
            continue
        except (NotJudged, dump_files.DumpError) as error:
            yield folder, name, str(error), None
        except (ValueError, TypeError, KeyError, AttributeError, IndexError, OSError) as error:
            # A dump may hold anything in the place of a tensor or a number.
            yield folder, name, f"{type(error).__name__}: {error}", None
        else:
            yield folder, name, report, None if report.passed or findings is None else judge_record.keep(call, report, findings)
