#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pages.py sees what is wrong on purpose in small pages, and nothing in right ones."""
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "ci"))
import pages  # noqa: E402

RIGHT = {
    "README.md": "# One\n\n[two](room/README.md#a-heading-of-two), [code](room/code.h), [room](room)\n\n"
                 "```\n[no](link)\n```\n\n    [nor](this)\n\n`[nor](this)`\n\n| " + "wide " * 40 + "|\n",
    "room/README.md": "# Two\n\n## A heading, of `two`\n\n[back](../README.md#one) [here](#two)\n",
    "room/code.h": "int x;\n",
    "room/BOUNDS.md": "# Long\n" + "a line\n" * 300,
    "properties/plugins/templates/README.md": "# mine\n\n[there](only.md)\n",
}
MISTAKES = [  # page, what stands there, what stands there instead, what is said
    ("README.md", "room/README.md#a", "rooms/README.md#a", "there is no rooms/README.md#a-heading-of-two"),
    ("README.md", "#a-heading-of-two", "#a-heading", "has no heading #a-heading"),
    ("README.md", "(room/code.h)", "(room/coda.h)", "there is no room/coda.h"),
    ("README.md", "(room)", "(../elsewhere)", "leaves the tree"),
    ("README.md", "# One\n", "# One\n\n<img src=\"room/none.svg\">\n", "there is no room/none.svg"),
    ("README.md", "# One\n", "# One\n" + "w" * 121 + "\n", "121 characters"),
    ("README.md", "[no](link)", "w" * 121, "121 characters"),
    ("room/README.md", "[here](#two)", "[here](#three)", "has no heading #three"),
    ("README.md", "# One\n", "# One\n" + "a line\n" * 200, "lines, at most 200"),
    ("room/README.md", "# Two\n", "# Two\n" + "a line\n" * 60, "lines, at most 60"),
    ("room/README.md", "# Two\n", "# Two\n\n## Same\n\n## Same\n", "two headings are #same"),
]


def said_of(tree):
    with tempfile.TemporaryDirectory() as work:
        root = pathlib.Path(work).resolve()
        for path, text in tree.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        return list(pages.check(root, list(tree)))


def main():
    failed = 0
    if said := said_of(RIGHT):
        print("right pages:", said)
        failed += 1
    for page, old, new, expected in MISTAKES:
        said = said_of({**RIGHT, page: RIGHT[page].replace(old, new, 1)})
        if old not in RIGHT[page] or not any(expected in line for line in said):
            print(f"{page}: {old!r} -> {new[:40]!r}: expected {expected!r}, got {said}")
            failed += 1
    print(f"pages_test: {len(MISTAKES) + 1 - failed} of {len(MISTAKES) + 1} trees judged rightly")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
