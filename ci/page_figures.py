#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Figures of tables on pages are those of committed results.

Usage: page_figures.py [PAGE...]   (every page of the tree)
A table behind `<!-- measured: RESULT.json ... -->` (paths from the page's folder) is checked: for each row there is a
cell of the results that has all its figures, in some of its rows, as they are shown: rounded to as many digits. The
first column names the row and is not looked at. A table whose heading says microseconds ("us") has to have such a line.
Says each row without such a cell, and each table without such a line, and exits with 1.
"""
import csv
import json
import pathlib
import re
import subprocess
import sys

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


def rows_of(path):
    """Rows of a result, or of a table of peers: a time and the floor of its run for each peer of a cell."""
    if path.suffix == ".json":
        return json.loads(path.read_text())["cells"]
    with path.open() as file:
        return [
            {"cell": row["cell"], "floor_us": float(row["floor_us"]), "us": float(us)}
            for row in csv.DictReader(file)
            for name, us in row.items()
            if us and name not in ("cell", "floor_us")
        ]


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
    rows = [row for path in paths for row in rows_of(path)]
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


def check(page):
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


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    pages = [pathlib.Path(name) for name in sys.argv[1:]]
    if not pages:
        listed = subprocess.run(["git", "-C", str(root), "ls-files", "*.md"], capture_output=True, text=True, check=True)
        pages = [root / name for name in listed.stdout.split()]
    lines = [line for page in pages for line in check(page)]
    print("\n".join(lines), end="\n" if lines else "")
    sys.exit(1 if lines else 0)


if __name__ == "__main__":
    main()
