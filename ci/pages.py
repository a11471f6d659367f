#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the pages (*.md) to what their readers count on.

Usage: pages.py [ROOT]
Every link to a file of the tree finds it, and every anchor its heading; lines have at most 120 characters outside
tables; a page has at most 200 lines, a README of a folder 60. What measures or lists for reference has no limit of
lines: pages with a name in capital letters (MEASURED.md, BOUNDS.md), README.md, HACKING.md and CHANGELOG.md aside, and
journals of results. Prints what is wrong; exit 1."""
import pathlib
import re
import subprocess
import sys

MAX_COLUMNS, MAX_LINES, MAX_README = 120, 200, 60
FENCE = re.compile(r"^\s*(```|~~~)")
HEADING = re.compile(r"^(#{1,6}) (.+?)\s*#*$")
# [text](target), ![text](target), src="target", srcset="target"; code spans are taken out before.
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|\b(?:src|srcset|href)=\"([^\"]+)\"")
LIMITED = ("README.md", "HACKING.md", "CHANGELOG.md")
TEMPLATES = "properties/plugins/templates/"  # pages of projects elsewhere: what they link to lies beside them there


def lines_outside_code(text):
    """(number, line) of what is no code: neither between fences nor a paragraph that is indented."""
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


def slug(heading):
    """The anchor of a heading, as GitHub makes it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def anchors(text):
    """Every anchor of a page; a heading that stands there twice is a complaint of its own."""
    made = [slug(match.group(2)) for _, line in lines_outside_code(text) if (match := HEADING.match(line))]
    return made + re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text)


def links(text):
    for number, line in lines_outside_code(text):
        for match in LINK.finditer(re.sub(r"`[^`]*`", "", line)):
            yield number, match.group(1) or match.group(2)


def unlimited(page):
    name = pathlib.PurePosixPath(page).name
    return (name.split(".")[0].isupper() and name not in LIMITED) or name == "journal.md"


def check_links(root, page, pages, files):
    folders = {str(parent) for file in files for parent in pathlib.PurePosixPath(file).parents}
    for number, target in links(pages[page]):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = page if not path else str(pathlib.PurePosixPath(page).parent / path)
        there = (root / there).resolve()
        if root not in (there, *there.parents):
            yield f"{page}:{number}: {target} leaves the tree"
            continue
        there = there.relative_to(root).as_posix()
        if there not in files and there not in folders:
            yield f"{page}:{number}: there is no {target}"
        elif anchor and there in pages and anchor not in anchors(pages[there]):
            yield f"{page}:{number}: {there} has no heading #{anchor}"


def check(root, files):
    files = {file for file in files if (root / file).is_file()}
    pages = {file: (root / file).read_text() for file in sorted(files) if file.endswith(".md")}
    for page, text in pages.items():
        if not page.startswith(TEMPLATES):
            yield from check_links(root, page, pages, files)
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > MAX_COLUMNS and not line.lstrip().startswith("|"):
                yield f"{page}:{number}: {len(line)} characters, at most {MAX_COLUMNS} outside tables"
        limit = MAX_README if page.endswith("/README.md") else MAX_LINES
        if text.count("\n") > limit and not unlimited(page):
            yield f"{page}: {text.count(chr(10))} lines, at most {limit}"
        made = anchors(text)
        for anchor in sorted({name for name in made if made.count(name) > 1}):
            yield f"{page}: two headings are #{anchor}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"], check=True, capture_output=True, text=True)
    wrong = list(check(root, listed.stdout.splitlines()))
    print("\n".join(wrong) if wrong else "pages: links, lengths and headings: ok")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
