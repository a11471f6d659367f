#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of properties in properties/PROPERTIES.md, from `assay list properties --json`.

properties_table.py ASSAY            exit 1 when the page is stale
properties_table.py ASSAY --write    writes it"""
import difflib
import json
import pathlib
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parent.parent / "properties" / "PROPERTIES.md"
BEGIN, END = "<!-- properties -->\n", "<!-- /properties -->\n"
GROUPS = {
    ("paged", "cascade", "merge_state", "merge_states"): "all",
    ("paged", "cascade"): "attention",
    ("merge_state", "merge_states"): "merges",
}


def table(properties):
    yield "| property | families | needs | runs without | compared | statement | catches |"
    yield "|---|---|---|---|---|---|---|"
    for p in properties:
        families = GROUPS.get(tuple(p["families"]), ", ".join(p["families"]))
        without = "any feature" if len(p["without"]) == 6 else ", ".join(p["without"])
        compared = p["comparison"].replace("*", "\\*")
        cells = [p["name"], families, ", ".join(p["needs"]), without, compared, p["statement"], p["catches"]]
        yield "| " + " | ".join(cells) + " |"


def main(assay, write):
    command = [assay, "--json", "-", "list", "properties"]
    listed = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    text = PAGE.read_text()
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    new = head + BEGIN + "\n".join(table(json.loads(listed.stdout)["properties"])) + "\n" + END + tail
    if write:
        PAGE.write_text(new)
    elif new != text:
        sys.stdout.writelines(difflib.unified_diff(text.splitlines(True), new.splitlines(True), "the page", "assay list"))
        sys.exit(f"{PAGE} is stale: ci/properties_table.py {assay} --write")


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[2:] not in ([], ["--write"]):
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:] == ["--write"])
