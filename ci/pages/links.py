# SPDX-License-Identifier: Apache-2.0
"""Links, headings and lengths of pages.

Every link to a file of the tree finds it, and every anchor its heading. Lines have at most 120 characters outside
tables. A page has at most 200 lines, a README of a folder 80. Pages with a name in capital letters (BOUNDS.md, but not
README, HACKING and CHANGELOG) and the notes in properties/measured and kernels/bench/results have no limit of lines."""
import functools
import pathlib
import re

from . import ROOT, TEMPLATES, tree_files

MAX_COLUMNS, MAX_LINES, MAX_README = 120, 200, 80
FENCE = re.compile(r"^\s*(```|~~~)")
HEADING = re.compile(r"^(#{1,6}) (.+?)\s*#*$")
# [text](target), ![text](target), src="target", srcset="target"; code spans are removed before.
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|\b(?:src|srcset|href)=\"([^\"]+)\"")
LIMITED = ("README", "HACKING", "CHANGELOG")
NOTES = ("properties/measured/", "kernels/bench/results/")


def lines_outside_code(text):
    """(number, line) of lines that are no code: neither between fences nor in an indented paragraph."""
    inside, indented, blank = None, False, True
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if fence and inside in (None, fence.group(1)):
            inside = None if inside else fence.group(1)
        elif not inside:
            indented = line.startswith("    ") and (indented or blank)
            if not indented:
                yield number, line
        blank = not line.strip()


def anchors(text):
    """Every anchor of a page, as GitHub makes it; one that occurs twice is a complaint of its own."""
    for _, line in lines_outside_code(text):
        if match := HEADING.match(line):
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match.group(2)).replace("`", "")
            yield re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")


def links(text):
    lines = dict(lines_outside_code(text))
    outside = "\n".join(lines.get(number, "") for number in range(1, max(lines, default=0) + 1))
    # A code span may continue in the next line of its paragraph.
    spans_out = re.sub(r"`(?:[^`\n]|\n(?!\n))*`", lambda span: "\n" * span.group().count("\n"), outside)
    for number, line in enumerate(spans_out.splitlines(), 1):
        for match in LINK.finditer(line):
            yield number, match.group(1) or match.group(2)


def check_links(root, page, pages, there_is, anchors_of):
    """there_is: files and folders; anchors_of: a function of a page."""
    for number, target in links(pages[page]):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (root / (page if not path else pathlib.PurePosixPath(page).parent / path)).resolve()
        if root not in (there, *there.parents):
            yield f"{page}:{number}: {target} leaves the tree"
            continue
        there = there.relative_to(root).as_posix()
        if there not in there_is:
            yield f"{page}:{number}: there is no {target}"
        elif anchor and there in pages and anchor not in anchors_of(there):
            yield f"{page}:{number}: {there} has no heading #{anchor}"


def check(root=ROOT, files=None):
    files = tree_files(root) if files is None else files
    pages = {file: (root / file).read_text() for file in sorted(files) if file.endswith(".md")}
    there_is = {*files, *(str(parent) for file in files for parent in pathlib.PurePosixPath(file).parents)}
    anchors_of = functools.cache(lambda page: set(anchors(pages[page])))
    for page, text in pages.items():
        if not page.startswith(TEMPLATES):
            yield from check_links(root, page, pages, there_is, anchors_of)
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > MAX_COLUMNS and not line.lstrip().startswith("|"):
                yield f"{page}:{number}: {len(line)} characters, at most {MAX_COLUMNS} outside tables"
        stem = pathlib.PurePosixPath(page).stem
        limit = MAX_README if page.endswith("/README.md") else MAX_LINES
        unlimited = page.startswith(NOTES) or (stem.isupper() and stem not in LIMITED)
        if text.count("\n") > limit and not unlimited:
            yield f"{page}: {text.count(chr(10))} lines, at most {limit}"
        made = list(anchors(text))
        for anchor in sorted({name for name in made if made.count(name) > 1}):
            yield f"{page}: two headings are #{anchor}"
