#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""page_blocks.py runs right pages to their end, and says what is wrong with wrong ones."""
import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "ci"))
import page_blocks  # noqa: E402

SETUP = "# Set up\n\n```sh\necho kept >~/assay\nexport WORD=said\n```\n"
RIGHT = """# A page

<!-- after: setup.md -->
<!-- file: program.py -->
```python
import sys
print("from a file", sys.argv[1])
sys.exit(3)
```

<!-- exit: 3 -->
```sh
cd ~ && python3 program.py $WORD
```

<!-- output -->
```text
from ... said
```

```python
print("one\\ntwo\\nthree")
```

<!-- output -->
```text
one
...
three
```

<!-- not run: needs a machine from the future -->
```sh
false
```

```sh
test "$(cat assay)" = kept && test "$PWD" = ~
```
"""
MISTAKES = [  # what stands there, what stands there instead, what is said
    ("sys.exit(3)", "sys.exit(0)", "exit code 0, the page says 3"),
    ("<!-- exit: 3 -->\n", "", "exit code 3, the page says 0"),
    ("from ... said", "from ... written", "'from ... written' is not printed"),
    ("one\n...\nthree", "three\n...\none", "'one' is not printed"),
    ("print(\"one", "print(undefined, \"one", "NameError"),
    ("= kept", "= lost", "exit code 1"),
    ("cd ~ && python3 program.py", "false && true\ncd ~\npython3 program.py", "exit code 1"),
    ("<!-- file: program.py -->\n```python", "```c", "a block of 'c'"),
    ("<!-- not run: needs a machine from the future -->", "<!-- not run: no -->", "why is it not run?"),
    ("<!-- not run: needs a machine from the future -->\n", "", "exit code 1"),
    ("<!-- output -->\n```text\nfrom", "```text\nfrom", "a block of 'text'"),
    ("= ~\n```\n", "= ~\n", "without an end"),
    ("# A page\n\n", "# A page\n\n<!-- exit: 1 -->\nwords\n", "without a block behind it"),
    ("<!-- exit: 3 -->", "<!-- needs: luck -->", "nobody knows how to look for 'luck'"),
]


def said_of(page):
    """(complaints, blocks that ran, blocks that did not)."""
    with tempfile.TemporaryDirectory() as work:
        root = pathlib.Path(work)
        (root / "setup.md").write_text(SETUP)
        (root / "page.md").write_text(page)
        (root / "home").mkdir()
        page_blocks.ROOT = root
        try:
            complaints, count, not_run = page_blocks.run(["page.md"], root / "home")
        except page_blocks.PageError as error:
            return [str(error)], 0, 0
        return complaints, count, len(not_run)


def surroundings():
    """What is wrong with the environment of a session, whose home and tools are its own."""
    os.environ["ASSAY_PAGE_BLOCKS_TEST"] = "seen"
    found = page_blocks.environment(pathlib.Path("/home/of/a/page"))
    wrong = [name for name in ("ASSAY_PAGE_BLOCKS_TEST", "PYTHONPATH", "ASSAY_PROGRAM") if name in found]
    wrong += [name for name, value in (("HOME", "/home/of/a/page"), ("PYTHONDONTWRITEBYTECODE", "1"), ("GIT_CONFIG_COUNT", "2")) if found.get(name) != value]
    page = RIGHT.replace('test "$(cat assay)"', 'test -z "${ASSAY_PAGE_BLOCKS_TEST:-}" && test "$(cat assay)"')
    return wrong + said_of(page)[0]


def main():
    failed = 0
    if wrong := surroundings():
        print("the environment of a page:", wrong)
        failed += 1
    if (said := said_of(RIGHT)) != ([], 7, 1):
        print("a right page:", said)
        failed += 1
    for old, new, expected in MISTAKES:
        complaints, _, _ = said_of(RIGHT.replace(old, new, 1))
        if old not in RIGHT or not any(expected in line for line in complaints):
            print(f"{old!r} -> {new!r}: expected {expected!r}, got {complaints}")
            failed += 1
    print(f"page_blocks_test: {len(MISTAKES) + 1 - failed} of {len(MISTAKES) + 1} pages judged rightly")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
