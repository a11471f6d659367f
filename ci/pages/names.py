# SPDX-License-Identifier: Apache-2.0
"""The table "Names beside others" of properties/python/JUDGE.md: its columns of assay name fields of the C headers and
arguments of Python functions that are there."""
import ast
import re

from abi_structs import ROOT, text_of

PAGE = ROOT / "properties/python/JUDGE.md"
HEADING = "## Names beside others"
#: By column: the headers, or a module and those of its functions that count (all of them: None).
COLUMNS = {
    "`assay.h`": ("assay.h",),
    "`assay_judge.h`": ("assay_judge.h",),
    "`assay.judge`": ("properties/python/assay/judging.py", {"attention_call", "merge_call"}),
    "`assay_torch`": ("kernels/torch/assay_torch/functions.py", None),
}


def arguments(path, functions):
    """Names of the arguments of a module's functions, which is not imported."""
    found = [node for node in ast.parse((ROOT / path).read_text()).body if isinstance(node, ast.FunctionDef)]
    return {a.arg for f in found if functions is None or f.name in functions for a in (*f.args.args, *f.args.kwonlyargs)}


def there(column):
    """The names that a column may have."""
    source = COLUMNS[column]
    return set(re.findall(r"\w+", text_of(source))) if source[0].endswith(".h") else arguments(*source)


def table(text):
    """Cells of the table's lines, the heading first."""
    lines = text.partition(HEADING + "\n")[2].partition("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return rows[:1] + rows[2:]


def check(text=None):
    head, *rows = table(PAGE.read_text() if text is None else text) or [[]]
    if not rows or head[1 : 1 + len(COLUMNS)] != list(COLUMNS):
        yield f"{PAGE.name}: {HEADING!r} has no table with the columns {', '.join(COLUMNS)}"
        return
    for at, column in enumerate(COLUMNS, 1):
        known = there(column)
        for row in rows:
            for name in re.findall(r"`([\w.]+)`", row[at]):
                if name.rpartition(".")[2] not in known:
                    yield f"{PAGE.name}: {row[0]}: {column[1:-1]} has no {name}"
