#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns corpus/mutants/*.mutant into one instrumented copy of the kernel headers.

Mutant schemata: every mutant is compiled into the same binary behind a run-time switch, so N mutants
cost one compilation and N runs (Untch, Offutt, Harrold 1993). ci/wrong.py has the format of a mutant.

Usage: make_schemata.py MUTANT_DIR[,MUTANT_DIR...] SOURCE_ROOT OUTPUT_DIR
Writes OUTPUT_DIR/<file> for every mutated file, OUTPUT_DIR/mutant_table.inc and mutant_omitted.inc.

A mutant whose text is not (or no longer) in the kernels is left out with a warning and named in
mutant_omitted.inc, so that an edited kernel builds and is judged at once; mutants_test fails on it.
"""
import pathlib
import re
import sys

import wrong

#: What is written here; lists of instantiations beside it are the build's.
SOURCES = (".cuh", ".h", ".cpp")


def fail(message):
    sys.exit(f"make_schemata: {message}")


def initialisers(place):
    """A declaration as the expression that it is made from."""
    if place["kind"] != "declaration":
        return place
    parts = [re.fullmatch(r"([^=]*=)([^=].*);", place[key]) for key in ("find", "replace")]
    if None in parts or len({"".join(part[1].split()) for part in parts}) != 1:
        fail(f"{place['name']}: find and replace are not two declarations of one name")
    front = (place.get("after") or "") + " " + parts[0][1]
    find, replace = (part[2].strip() for part in parts)
    return {**place, "kind": "expression", "after": front.strip(), "find": find, "replace": replace}


def places(mutant):
    """The mutant once per place."""
    yield initialisers(mutant)
    also = {key: mutant.get(f"also_{key}") for key in ("file", "find", "replace")}
    if any(value is not None for value in also.values()):
        if None in also.values():
            fail(f"{mutant['name']}: also_file, also_find and also_replace go together")
        yield initialisers({**mutant, "after": "", **also})


def schema(original, alternatives, kind):
    """One guarded alternative per mutant: `alternatives` are (id, text) in the place of `original`."""
    if kind == "expression":
        text = f"({original})"
        for number, other in alternatives:
            text = f"(::assay::mutants::is_active({number}) ? ({other}) : {text})"
        return text
    text = f"{{ {original} }}"
    for number, other in alternatives:
        text = f"if (::assay::mutants::is_active({number})) {{ {other} }} else {text}"
    return f"{{ {text} }}"  # behind an `if` without braces, too


def span(place, sources):
    return wrong.span(place, sources[place["file"]])


def placed(mutants, sources):
    """The mutants that can be compiled, numbered from 1, and why the others cannot."""
    kept, omitted = [], []
    for m in mutants:
        errors = [error for _, error in (span(p, sources) for p in places(m)) if error]
        if errors:
            omitted.append((m["name"], errors[0]))
        else:
            kept.append({**m, "id": len(kept) + 1})
    return kept, omitted


class Part:
    """A text with alternatives, and the parts that lie in it."""

    def __init__(self, start, end, places):
        self.start, self.end, self.places, self.inner = start, end, places, []

    def holds(self, other):
        return self.start <= other.start and other.end <= self.end


def parts(groups, file, sources):
    """The texts with alternatives that lie in no other."""
    outer, opened = [], []
    every = [Part(*span(group[0], sources)[0], group) for group in groups]
    for part in sorted(every, key=lambda p: (p.start, -p.end)):
        while opened and opened[-1].end <= part.start:
            opened.pop()
        if opened and (not opened[-1].holds(part) or (part.start, part.end) == (opened[-1].start, opened[-1].end)):
            fail(f"{opened[-1].places[0]['name']} and {part.places[0]['name']} overlap in {file}")
        (opened[-1].inner if opened else outer).append(part)
        opened.append(part)
    return outer


def rendered(source, start, end, inner):
    """Of [start, end): what lies within is wrong in turn, each only where what is around it is right."""
    text, at = "", start
    for part in inner:
        original = rendered(source, part.start, part.end, part.inner)
        text += source[at:part.start] + schema(original, [(p["id"], p["replace"]) for p in part.places], part.places[0]["kind"])
        at = part.end
    return text + source[at:end]


def instrument(source, file, groups, sources):
    """The file with every alternative in its place."""
    header = '#include "corpus/mutants/active.h"\n'
    text = rendered(source, 0, len(source), parts(groups, file, sources))
    return text.replace("#pragma once\n", "#pragma once\n" + header, 1) if "#pragma once\n" in text else header + text


def is_special(mutant):
    """Whether the kill matrix leaves it out."""
    return "true" if "needs" in mutant or mutant.get("set", "1") != "1" else "false"


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    root, out = map(pathlib.Path, sys.argv[2:])
    mutants = []
    for mutant_dir in sys.argv[1].split(","):
        files = sorted(pathlib.Path(mutant_dir).glob("*.mutant"))
        if not files:
            fail(f"no .mutant file in {mutant_dir}")
        mutants += map(wrong.parse, files)
    sources = {p["file"]: (root / p["file"]).read_text() for m in mutants for p in places(m)}
    mutants, omitted = placed(mutants, sources)
    by_file = {file: {} for file in sources}
    for m in mutants:
        for p in places(m):
            by_file[p["file"]].setdefault((span(p, sources)[0], p["kind"]), []).append(p)
    for file, groups in by_file.items():
        write(out / file, instrument(sources[file], file, groups.values(), sources))
    for path in [path for path in (out / "kernels").rglob("*") if path.suffix in SOURCES]:
        if str(path.relative_to(out)) not in by_file:
            path.unlink()  # a file of an earlier run would be found before the kernel's own
    rows = "".join(
        f'{{{m["id"]}, "{m["name"]}", "{m["file"]}", "{m["why"]}", "{m["kernels"]}", {is_special(m)}, "{m.get("seen_by", "")}"}},\n'
        for m in mutants
    )
    write(out / "mutant_table.inc", rows)
    write(out / "mutant_omitted.inc", "".join(f'"{name}",\n' for name, _ in omitted))
    for name, why in omitted:
        print(f"warning: mutant {name} left out: {why}", file=sys.stderr)


def write(path, text):
    """Leaves an unchanged file alone, so nothing recompiles."""
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


main()
