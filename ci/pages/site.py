# SPDX-License-Identifier: Apache-2.0
"""Collects the pages of the tree for the site.

Every *.md of the tree that is no template, and every file that one of them links to, goes under its own path to
OUT/pages, and OUT/mkdocs.yml gets the lists of the navigation. A link to a folder becomes one to its README."""
import os
import re
import shutil
import sys

from . import ROOT, TEMPLATES, links, tree_files

CONFIG = ROOT / "ci/site/mkdocs.yml"
HIDDEN = ".github/"  # mkdocs leaves out folders that begin with a dot


def shown(path):
    """Where a page stands in the site."""
    return path.replace(HIDDEN, "github/", 1)


def linked(page, text, files):
    """Files of the tree, pages aside, that a page links to."""
    for _, target in links.links(text):
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

    out, code = [], {number for number, _ in links.lines_outside_code(text)}
    for number, line in enumerate(text.splitlines(), 1):
        out.append(re.sub(r"(\]\()([^)\s]+)(\))", link, line) if number in code else line)
    # mkdocs takes the title from a heading in the first line.
    begin = next((at for at, line in enumerate(out) if line.startswith("# ")), 0)
    return "\n".join(out[begin:]) + "\n"


def title(page):
    return page.removesuffix(".md").removesuffix("/README") or page


def collect(out):
    files = tree_files()
    names = {name for name in files if name.endswith(".md") and not name.startswith(TEMPLATES)}
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
    config, lists = CONFIG.read_text(), {"MEASURED": "", "REFERENCE": ""}
    for name in sorted(name for name in names if name not in config):
        # Many pages have similar headings, so the navigation shows paths.
        lists["MEASURED" if name.startswith(links.NOTES) else "REFERENCE"] += (
            f"\n      - {title(name)}: {shown(name)}")
    for word, lines in lists.items():
        config = config.replace(f": {word}", f":{lines}", 1)
    (out / "mkdocs.yml").write_text(config)
    print(f"site: {len(names)} pages, {len(wanted)} files that they link to")
    return []
