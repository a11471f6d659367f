#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Collects the pages of the tree for the site: collect.py OUT

Every *.md of the tree that is no template, and every file that one of them links to, under their own paths in OUT/pages;
OUT/mkdocs.yml with the parts of the navigation that are lists of what there is. A link to a folder becomes one to its
README. A page that the navigation does not have is an error."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "ci"))
import pages  # noqa: E402

CONFIG = pathlib.Path(__file__).with_name("mkdocs.yml")
DEFECTS = "properties/python/defects/"
MEASURED = ("MEASURED.md", "journal.md", "MACHINE.md")
HIDDEN = ".github/"  # mkdocs leaves out folders that begin with a dot


def shown(path):
    """Where a page stands in the site."""
    return path.replace(HIDDEN, "github/", 1)


def linked(page, text, files):
    """Files of the tree, pages aside, that a page links to."""
    for _, target in pages.links(text):
        path = target.partition("#")[0]
        if not path or re.match(r"[a-z]+:", path):
            continue
        there = os.path.normpath(os.path.join(os.path.dirname(page), path))
        if there in files and not there.endswith(".md"):
            yield there


def rewrite(page, text, files):
    """Links to folders, and to what is shown elsewhere, by the names that they have in the site."""
    folder = os.path.dirname(page)

    def link(match):
        target = match.group(2)
        path, mark, anchor = target.partition("#")
        if not path or re.match(r"[a-z]+:", path):
            return match.group(0)
        there = os.path.normpath(os.path.join(folder, path))
        if there not in files:
            there += "/README.md"
            if there not in files:
                sys.exit(f"{page}: {target} is a folder without a README: link to a file of it")
        return match.group(1) + os.path.relpath(shown(there), os.path.dirname(shown(page)) or ".") + mark + anchor + match.group(3)

    out, code = [], {number for number, _ in pages.lines_outside_code(text)}
    for number, line in enumerate(text.splitlines(), 1):
        out.append(re.sub(r"(\]\()([^)\s]+)(\))", link, line) if number in code else line)
    # mkdocs takes the title from a heading in the first line.
    begin = next((at for at, line in enumerate(out) if line.startswith("# ")), 0)
    return "\n".join(out[begin:]) + "\n"


def title(page):
    return page.removesuffix(".md").removesuffix("/README") or page


def navigation(names):
    """The lists of the navigation: [(title, page)] for each of its three words."""
    lists = {"DEFECTS": [], "REFERENCE": [], "MEASURED": []}
    for name in sorted(names):
        if name.startswith(DEFECTS):
            lists["DEFECTS"].insert(0 if name.endswith("README.md") else len(lists["DEFECTS"]), name)
        elif "/guides/" not in name and name not in ("README.md", "CHANGELOG.md"):
            lists["MEASURED" if name.endswith(MEASURED) else "REFERENCE"].append(name)
    return lists


def main(out):
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True)
    files = {name for name in listed.stdout.splitlines() if (ROOT / name).is_file()}
    names = {name for name in files if name.endswith(".md") and not name.startswith(pages.TEMPLATES)}
    shutil.rmtree(out / "pages", ignore_errors=True)
    wanted = set()
    for name in names:
        text = (ROOT / name).read_text()
        there = out / "pages" / shown(name)
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_text(rewrite(name, text, files))
        wanted.update(linked(name, text, files))
    for name in wanted:
        there = out / "pages" / shown(name)
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, there)
    config = CONFIG.read_text()
    for word, found in navigation(names).items():
        # Of defects the page's own heading; of rooms, where many pages have like headings, the path.
        lines = "".join(f"\n      - {shown(name)}" if word == "DEFECTS" else f"\n      - {title(name)}: {shown(name)}" for name in found)
        config = config.replace(f": {word}", f":{lines}", 1)
    (out / "mkdocs.yml").write_text(config)
    print(f"site: {len(names)} pages, {len(wanted)} files that they link to")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
