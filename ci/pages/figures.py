# SPDX-License-Identifier: Apache-2.0
"""Figures of tables on pages are those of committed results.

A table behind `<!-- measured: RESULT.json ... -->` (paths from the page's folder) is checked: for each row one cell of
the results must have all its figures, rounded as they are shown. The first column names the row and is not checked. A
table whose heading has microseconds ("us") must have such a line."""
import json
import re

from . import ROOT, tree_files

MARK = re.compile(r"^<!-- measured: (.*) -->$")
NUMBER = re.compile(r"(?<![\w.-])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\w])|(?<![\w.-])\d+(?:\.\d+)?(?![\w.]*\w)")


def numbers_in(value):
    """Every number of a row of a result, peers included."""
    if isinstance(value, dict):
        for part in value.values():
            yield from numbers_in(part)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield float(value)


def sizes_of(cell):
    """The words of a cell's name that have a digit, its type not among them."""
    return frozenset(word for word in cell.split() if re.search(r"\d", word) and word not in ("fp8", "e5m2"))


def derived(row):
    """What tables show of a row that is not in it: MB, and fractions of the floor."""
    if "bytes" in row:
        yield row["bytes"] / 1e6
    for time in ("us", "early_us"):
        if row.get(time) and row.get("floor_us"):
            yield row["floor_us"] / row[time]


def cells_of(paths):
    """Name of a cell -> all numbers that were measured of it, in any of the files: of a part of it, too, whose sizes
    are some of its own (the prefix of a cascade), and with another type of cache."""
    rows = [row for path in paths for row in json.loads(path.read_text())["cells"]]
    flops = {row["cell"]: row["flops"] for row in rows if "flops" in row}
    sizes = {row["cell"]: sizes_of(row["cell"]) for row in rows}
    cells = {name: set() for name in sizes}
    for row in rows:
        part = sizes[row["cell"]]
        for name, whole in sizes.items():
            if name == row["cell"] or (part and part <= whole):
                cells[name].update(numbers_in(row), derived(row))
                if row["cell"] in flops and "us" in row:
                    cells[name].add(flops[row["cell"]] / row["us"] / 1e6)  # TFLOP/s
    return cells


def shown(text):
    """The figures of a row's cells: (value, half of the last digit)."""
    for part in NUMBER.findall(text):
        plain = part.replace(",", "")
        digits = len(plain.partition(".")[2])
        yield float(plain), 0.5 * 10**-digits * (1 + 1e-9)


def has(numbers, figure):
    value, half = figure
    return any(abs(n - value) <= half for n in numbers)


def tables(page):
    """(line number, result paths, row) of each row of a marked table; of an unmarked one of times the heading alone,
    without paths."""
    paths, inside = None, 0
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if mark := MARK.match(line):
            paths, inside = [page.parent / name for name in mark.group(1).split()], 0
        elif line.startswith("|"):
            inside += 1
            if paths and inside > 2:  # behind the heading and its rule
                yield number, paths, line
            elif not paths and inside == 1 and re.search(r"\bus\b", line):
                yield number, [], line
        elif inside:
            paths, inside = None, 0


def check_page(page):
    known = {}
    for number, paths, line in tables(page):
        if not paths:
            yield f"{page}:{number}: times without a result: '<!-- measured: RESULT.json -->' goes in front of the table"
            continue
        missing = [path for path in paths if not path.exists()]
        if missing:
            yield f"{page}:{number}: there is no {missing[0]}"
            continue
        cells = known.setdefault(tuple(paths), cells_of(paths))
        columns = [column.strip() for column in line.strip().strip("|").split("|")]
        figures = [figure for column in columns[1:] for figure in shown(column)]
        if not figures:
            yield f"{page}:{number}: a row without figures: {columns[0]}"
            continue
        fits = {name: [f for f in figures if not has(numbers, f)] for name, numbers in cells.items()}
        name, wrong = min(fits.items(), key=lambda item: len(item[1]))
        if wrong:
            values = ", ".join(f"{value:g}" for value, _ in wrong)
            yield f"{page}:{number}: of '{columns[0]}' no cell has all figures; nearest is '{name}' without {values}"


def check(pages=()):
    for page in pages or [ROOT / name for name in sorted(tree_files()) if name.endswith(".md")]:
        yield from check_page(page)
