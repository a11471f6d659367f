# SPDX-License-Identifier: Apache-2.0
"""`python -m assay judge FILE...`: judges again what was written when a call failed."""
import argparse
import sys

from . import judge_record

PASS, FINDING, USAGE = 0, 1, 2  #: exit codes, those of the program


def main(arguments):
    parser = argparse.ArgumentParser(prog="assay judge", description="Judges calls of attention that are in files.")
    parser.add_argument("path", nargs="+", help=".npz that assert_attention or the fixture assay_judge has written")
    paths = parser.parse_args(arguments).path
    return max(_file(path) for path in paths)


def _file(path):
    """The exit code of one file, with what there is to say printed."""
    try:
        report = judge_record.judge(path)
    except (judge_record.RecordError, OSError) as error:
        print(f"assay judge: {path}: {error}", file=sys.stderr)
        return USAGE
    print(f"{path}: {report}")
    return PASS if report.passed else FINDING
