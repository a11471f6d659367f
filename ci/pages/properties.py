# SPDX-License-Identifier: Apache-2.0
"""The table of properties in properties/PROPERTIES.md, from `assay list properties --json`."""
import json
import subprocess

from . import ROOT

PAGE = ROOT / "properties/PROPERTIES.md"
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


def check(assay, write):
    command = [assay, "--json", "-", "list", "properties"]
    listed = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    text = PAGE.read_text()
    head, rest = text.split(BEGIN)
    rows = list(table(json.loads(listed.stdout)["properties"]))
    new = head + BEGIN + "\n".join(rows) + "\n" + END + rest.split(END)[1]
    if write:
        PAGE.write_text(new)
    elif new != text:
        yield f"{PAGE} is stale: ci/docs.py properties {assay} --write; missing are"
        yield from (row for row in rows if row not in text)
