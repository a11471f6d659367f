#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ci/docs.py accepts right pages, blocks, figures and results, and refuses each mistake."""
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import docs  # noqa: E402
import pages  # noqa: E402
from pages import blocks, figures, links, names, pictures, properties, results, site  # noqa: E402

PAGES = {
    "README.md": "# One\n\n[two](room/README.md#a-heading-of-two), [code](room/code.h), [room](room)\n\n"
                 "```\n[no](link)\n```\n\n    [nor](this)\n\n`[nor](this)`\n\n~~~\n```\n[no](link)\n~~~\n\n| " + "wide " * 40 + "|\n",
    "room/README.md": "# Two\n\n## A heading, of `two`\n\n[back](../README.md#one) [here](#two)\n",
    "room/code.h": "int x;\n",
    "room/BOUNDS.md": "# Long\n" + "a line\n" * 300,
    "properties/measured/notes.md": "# Notes\n" + "a line\n" * 300,
    "properties/plugins/templates/README.md": "# mine\n\n[there](only.md)\n",
}
WRONG_PAGES = [  # page, what stands there, what stands there instead, what is said
    ("README.md", "room/README.md#a", "rooms/README.md#a", "there is no rooms/README.md#a-heading-of-two"),
    ("README.md", "#a-heading-of-two", "#a-heading", "has no heading #a-heading"),
    ("README.md", "(room/code.h)", "(room/coda.h)", "there is no room/coda.h"),
    ("README.md", "(room)", "(../elsewhere)", "leaves the tree"),
    ("README.md", "# One\n", "# One\n\n<img src=\"room/none.svg\">\n", "there is no room/none.svg"),
    ("README.md", "# One\n", "# One\n" + "w" * 121 + "\n", "121 characters"),
    ("README.md", "# One\n", "# One\n" + "w " * 60 + "| w\n", "characters"),
    ("README.md", "# One\n", "# One\n\n<a href=\"gone\">x</a> [named](room \"title\")\n", "there is no gone"),
    ("README.md", "# One\n", "# One\n\n[x](gone.md \"title\")\n", "there is no gone.md"),
    ("room/BOUNDS.md", "# Long", "[x](gone.md)", "room/BOUNDS.md:1: there is no gone.md"),
    ("room/README.md", "[here](#two)", "[here](#three)", "has no heading #three"),
    ("README.md", "# One\n", "# One\n" + "a line\n" * 200, "lines, at most 200"),
    ("room/README.md", "# Two\n", "# Two\n" + "a line\n" * 80, "lines, at most 80"),
    ("room/README.md", "# Two\n", "# Two\n\n## Same\n\n## Same\n", "two headings are #same"),
]



SETUP = "# Set up\n\n```sh\necho kept >~/assay\nexport WORD=said\n```\n"
SESSION = """# A page

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

<!-- exit: 5 -->
```python
print("one\\ntwo\\nthree")
raise SystemExit(5)
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
WRONG_SESSIONS = [  # what stands there, what stands there instead, what is said
    ("sys.exit(3)", "sys.exit(0)", "exit code 0, the page says 3"),
    ("<!-- exit: 3 -->\n", "", "exit code 3, the page says 0"),
    ("from ... said", "from ... written", "'from ... written' is not printed"),
    ("one\n...\nthree", "three\n...\none", "'one' is not printed"),
    ("one\n...\nthree", "one\none", "'one' is not printed"),
    ("one\n...\nthree", "one\nthre", "'thre' is not printed"),
    ("SystemExit(5)", "SystemExit(6)", "exit code 6, the page says 5"),
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



SITE = {
    "README.md": "words\n# One\n\n[two](room/README.md#a), [room](room#b) ![p](room/p.svg) [hidden](.github/X.md) [web](https://x) [here](#one)\n"
                 "```\n[no](room)\n```\n",
    ".github/X.md": "# X\n\n[back](../README.md) [up](../room/)\n", "room/README.md": "# Two\n\n[code](code.h#L3)\n", "room/code.h": "int x;\n", "room/p.svg": "<svg/>",
    "room/unlinked.h": "", "kernels/bench/results/n.md": "# N\n", "properties/plugins/templates/README.md": "# mine\n",
    "mkdocs.yml": "nav:\n  - One: README.md\n  - Notes: MEASURED\n  - All: REFERENCE\n",
}
COLLECTED = {
    "pages/README.md": "# One\n\n[two](room/README.md#a), [room](room/README.md#b) ![p](room/p.svg) [hidden](github/X.md) [web](https://x) [here](#one)\n"
                       "```\n[no](room)\n```\n",
    "pages/github/X.md": "# X\n\n[back](../README.md) [up](../room/README.md)\n", "pages/room/README.md": SITE["room/README.md"],
    "pages/room/code.h": "int x;\n", "pages/room/p.svg": "<svg/>", "pages/kernels/bench/results/n.md": "# N\n",
    "mkdocs.yml": "nav:\n  - One: README.md\n  - Notes:\n      - kernels/bench/results/n: kernels/bench/results/n.md\n"
                  "  - All:\n      - .github/X: github/X.md\n      - room: room/README.md\n",
}
WRONG_NAMES = [
    ("| `kv.page_size` |", "| `kv.page_sizes` |", "slots of a page: assay.h has no kv.page_sizes"),
    ("`kv.page_indptr` | `page_table`, `page_indptr` |", "`kv.page_indptr` | `page_table`, `indptr_of_pages` |", "the same as CSR: assay_judge.h has no indptr_of_pages"),
    ("| `kv_indptr`, `cu_seqlens_k` |", "| `kv_indptr`, `cu_seqlens_kv` |", "ragged keys: assay.judge has no cu_seqlens_kv"),
    ("| `max_q_len` |", "| `max_seqlen_q` |", "most query tokens: assay_torch has no max_seqlen_q"),
    ("| `assay.h` | `assay_judge.h` |", "| `assay_judge.h` | `assay.h` |", "has no table with the columns"),
    ("## Names beside others", "## Names", "has no table with the columns"),
]
PROPERTY = {"name": "p", "families": ["paged", "cascade"], "needs": ["a", "b"], "without": ["x"] * 6, "comparison": "a * b", "statement": "s", "catches": "c"}
CELLS = [
    {"cell": "cascade b16 p8192 u128", "us": 25.13, "floor_us": 10.9, "flops": 2e9, "bytes": 41943040},
    {"cell": "prefix b16 p8192", "us": 20.23, "peers": {"other": {"us": 17.76}}},
    {"cell": "cascade b64 p2048 u256", "us": 1337.4, "floor_us": 18.7},
]


class Docs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()

    def write(self, tree):
        for path, text in tree.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text)

    def test_links(self):
        self.write(PAGES)
        self.assertEqual(list(links.check(self.root, set(PAGES))), [])
        for page, old, new, expected in WRONG_PAGES:
            with self.subTest(old=old, new=new[:40]):
                self.assertIn(old, PAGES[page])
                self.write({**PAGES, page: PAGES[page].replace(old, new, 1)})
                self.assertIn(expected, "\n".join(links.check(self.root, set(PAGES))))

    def session(self, page):
        """(complaints, blocks that ran, blocks that did not)."""
        with tempfile.TemporaryDirectory() as home:
            self.write({"setup.md": SETUP, "page.md": page})
            blocks.ROOT = self.root
            try:
                complaints, count, not_run = blocks.run(["page.md"], pathlib.Path(home))
            except blocks.PageError as error:
                return [str(error)], 0, 0
            return complaints, count, len(not_run)

    def test_blocks(self):
        self.assertEqual(self.session(SESSION), ([], 7, 1))
        for old, new, expected in WRONG_SESSIONS:
            with self.subTest(old=old, new=new):
                self.assertIn(old, SESSION)
                self.assertIn(expected, "\n".join(self.session(SESSION.replace(old, new, 1))[0]))

    def test_what_a_block_needs_is_looked_for(self):
        wheels = self.root / "wheel"
        pythons = {"torch": "/bin/true", "scratch": "scratch"}
        with mock.patch.object(blocks, "WHEELS", wheels), mock.patch.object(blocks.subprocess, "run") as ran:
            for code, need, said in ((0, "torch", ""), (1, "torch", "no PyTorch here"), (0, "wheel", "no wheel in")):
                ran.return_value = mock.Mock(returncode=code)
                self.assertEqual(blocks.missing(need, pythons)[: len(said) or None], said)
            wheels.mkdir()
            (wheels / "a.whl").write_text("")
            for code, said in ((0, ""), (1, "pip reaches no package index")):
                ran.return_value = mock.Mock(returncode=code)
                self.assertEqual(blocks.missing("wheel", pythons), said)
            self.assertEqual(ran.call_args.args[0][1:], ["-m", "pip", "download", "-q", "--no-deps", "-d", "scratch", "scikit-build-core"])

    def test_blocks_that_need_something_or_follow_what_is_not_run(self):
        page = "<!-- needs: torch -->\n```sh\npython3 -c 'import sys; print(sys.argv[0])' && false || echo said\n```\n\n<!-- output -->\n```text\nsaid\n```\n"
        for found, ran, left in (("", 2, []), ("not here", 0, ["not here", "the block before it is not run"])):
            with mock.patch.object(blocks, "missing", lambda need, pythons: found), mock.patch.dict("os.environ", ASSAY_TORCH_PYTHON="/usr/bin/python3"):  # noqa: B023
                self.write({"page.md": page})
                blocks.ROOT = self.root
                with tempfile.TemporaryDirectory() as home:
                    complaints, count, not_run = blocks.run(["page.md"], pathlib.Path(home))
            self.assertEqual((complaints, count, [reason for _, reason in not_run]), ([], ran, left))

    def test_pages_behind_one_set_up_page_are_one_session(self):
        self.write({"setup.md": "", "a.md": "<!-- after: setup.md -->\n", "b.md": "words\n", "c.md": "\n<!-- after: setup.md -->\n"})
        blocks.ROOT = self.root
        self.assertEqual(blocks.sessions(["setup.md", "a.md", "b.md", "c.md"]), {None: ["b.md"], "setup.md": ["a.md", "c.md"]})

    def test_commands_of_a_block_end_at_the_first_that_fails(self):
        text = "a && b\n# words\n\nc 'x && y' && d \"e && f\" \\\n  g\n  # more\n"
        self.assertEqual([line.split() for line in blocks.commands(text)], [["a"], ["b"], ["c", "'x", "&&", "y'"], ["d", '"e', "&&", 'f"', "g"]])

    def test_the_program_lists_runs_and_keeps(self):
        self.write({"a.md": "<!-- not run: it takes an hour -->\n```sh\nfalse\n```\n\n```sh\ntrue\n```\n", "b.md": "```sh\nfalse\n```\n", "c.md": "```sh\n"})
        blocks.ROOT = self.root
        for pages, only_list, keep, code, said in ((["a.md"], True, None, 0, "a.md:2: listed it takes an hour\na.md:6: run \n"), (["c.md"], True, None, 1, "c.md:1: a block without an end\n"),
                                                   (["a.md"], False, None, 0, "pages: 1 blocks, and 1 that are not run:\n  a.md:2: it takes an hour\n"),
                                                   (["b.md"], False, str(self.root), 1, "pages: 1 blocks, and 0 that are not run:\n")):  # fmt: skip
            with mock.patch("builtins.print") as printed:
                self.assertEqual(blocks.main(pages, only_list, keep), code)
            lines = "".join(f"{' '.join(map(str, call.args))}\n" for call in printed.call_args_list)
            self.assertTrue(lines.endswith(said), lines)
        self.assertEqual(len(list(self.root.glob("assay-pages-*"))), 1)

    def figures(self, row, mark="<!-- measured: result.json -->"):
        self.write({"result.json": json.dumps({"cells": CELLS}),
                    "page.md": f"words\n\n{mark}\n| cell | us |\n|---|---|\n{row}\n\nwords\n"})
        return "\n".join(figures.check([self.root / "page.md"]))

    def test_figures(self):
        for row in ("| 16 requests | 25.1 | 10.9, **17.76** peer | 42 MB | 0.434 v2 |", "| 64 requests | 1,337 | 18.7 |",
                    "| TFLOP/s | 25.13 | 80 |"):  # 2e9 in 25.13 us
            self.assertEqual(self.figures(row), "", row)
        for row in ("| 16 requests | 25.2 |", "| 16 requests | 25.10 |", "| two cells | 25.1 | 18.7 |"):
            self.assertIn("nearest is", self.figures(row))
        self.assertIn("without figures", self.figures("| 16 requests | fast |"))
        self.assertIn("there is no", self.figures("| 16 requests | 25.1 |", "<!-- measured: gone.json -->"))
        self.assertIn("times without a result", self.figures("| 16 requests | 25.1 |", "words"))

    def test_numbers_of_a_row(self):
        row = {"cell": "prefix b16 fp8", "us": 4, "early_us": 2.5, "floor_us": 1, "bytes": 3e6, "deep": {"peer": {"us": 7}}, "same": True, "words": "8"}
        self.assertEqual(sorted(figures.numbers_in(row)), [1, 2.5, 4, 7, 3e6])
        self.assertEqual(list(figures.derived(row)), [3, 0.25, 0.4])
        for lacking, left in (("bytes", [0.25, 0.4]), ("us", [3, 0.4]), ("early_us", [3, 0.25]), ("floor_us", [3])):
            for value in ({}, {lacking: 0}) if lacking != "bytes" else ({},):
                self.assertEqual(list(figures.derived({**{name: of for name, of in row.items() if name != lacking}, **value})), left, lacking)
        self.assertEqual(figures.sizes_of("cascade b16 fp8 p8192 e5m2 plain"), {"b16", "p8192"})
        for text, found in (("1,234.5", [(1234.5, 0.05)]), ("7 %, 42 MB", [(7, 0.5), (42, 0.5)]), ("a1 2b x-3 4.5x 3.0.1", []), ("**17.76** 0.434 v2", [(17.76, 0.005), (0.434, 0.0005)])):
            self.assertEqual([(number, round(half, 6)) for number, half in figures.shown(text)], found)

    def test_figures_are_of_the_results_of_their_own_table(self):
        """Tables of one page, by every list of results that stands in front of one, in any order."""
        lists = [some for count in (1, 2) for some in itertools.permutations("ab", count)]
        for name, us in (("a", 25.13), ("b", 61.4)):
            self.write({f"{name}.json": json.dumps({"cells": [{**CELLS[0], "us": us}, {**CELLS[1], "cell": f"cell of {name}"}]})})
        for tables in itertools.permutations(lists, 2):
            for figure, of in (("25.13", "a"), ("61.4", "b")):
                self.write({"page.md": "".join(f"<!-- measured: {' '.join(f'{name}.json' for name in some)} -->\n| cell | us |\n|---|---|\n| x | {figure} |\n\n" for some in tables)})
                said = list(figures.check([self.root / "page.md"]))
                self.assertEqual(len(said), sum(of not in some for some in tables), (tables, said))

    def test_the_nearest_cell_is_the_one_that_lacks_least(self):
        for row, lacking in (("| x | 25.13 | 20.23 | 9 |", "'cascade b16 p8192 u128' without 9"), ("| x | 9 | 1337.4 | 18.7 |", "'cascade b64 p2048 u256' without 9"),
                             ("| x | 20.23 | 9 | 18.7 | 1337.4 | 8 |", "'cascade b64 p2048 u256' without 20.23, 9, 8")):  # fmt: skip
            self.assertIn(f"nearest is {lacking}\n", self.figures(row) + "\n")

    def git(self, *arguments):
        return subprocess.run(["git", "-C", self.root, *arguments], capture_output=True, text=True, check=True).stdout

    def test_results(self):
        self.git("init", "-q")
        self.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "one")
        head = self.git("rev-parse", "--short=12", "HEAD").strip()
        right = {"device": "NVIDIA H200", "date": "2026-11-25", "commit": head, "cells": []}

        def complaints(**fields):
            self.write({"new.json": json.dumps(right | fields)})
            return list(results.check(self.root))

        self.assertEqual(complaints(), [])
        self.assertEqual(results.load(self.root / "new.json")["commit"], head)
        for wrong in ({"commit": "unknown"}, {"commit": ""}, {"commit": f"{head}-dirty"}, {"commit": "0123456789ab"},
                      {"device": ""}, {"date": None}):
            self.assertEqual(len(complaints(**wrong)), 1, wrong)
            with self.assertRaises(SystemExit):
                results.load(self.root / "new.json")
        self.write({"also.json": "{}", "fine.json": json.dumps(right)})
        self.assertEqual(complaints(date=""), ['also.json: no "device"', 'new.json: no "date"'])

    def test_files_of_a_tree_are_those_that_git_does_not_ignore(self):
        self.git("init", "-q")
        self.write({".gitignore": "ignored\nbuild/\n", "a.md": "", "gone.md": "", "folder/b.md": ""})
        self.git("add", ".")
        (self.root / "gone.md").unlink()
        self.write({"new.md": "", "ignored": "", "build/page.md": ""})
        self.assertEqual(pages.tree_files(self.root), {".gitignore", "a.md", "folder/b.md", "new.md"})

    def test_every_mistake_of_a_tree_is_said(self):
        tree = {"a.md": "# A\n[x](gone)\n[y](lost#z)\n[z](#none)\n" + "w" * 121 + "\n\n# B\n# B\n", "b.md": "# A\n[x](gone)\n"}
        self.write(tree)
        said = [line.partition(" ")[0] for line in links.check(self.root, set(tree))]
        self.assertEqual(said, ["a.md:2:", "a.md:3:", "a.md:4:", "a.md:5:", "a.md:", "b.md:2:"])
        table = "<!-- measured: result.json -->\n| cell | us |\n|---|---|\n| x | 9 |\n| y | fast |\n| z | 8 |\n\n| w | us |\n"
        self.write({"result.json": json.dumps({"cells": CELLS}), "page.md": table + table})
        said = [line.split(":")[1] for line in figures.check([self.root / "page.md"])]
        self.assertEqual(said, ["4", "5", "6", "8", "12", "13", "14", "16"])

    def test_site(self):
        self.write(SITE)
        with mock.patch.multiple(site, ROOT=self.root, CONFIG=self.root / "mkdocs.yml", tree_files=lambda: set(SITE)):
            self.write({"out/pages/old.md": "of an earlier run"})
            site.collect(self.root / "out")
            made = {path.relative_to(self.root / "out").as_posix(): path.read_text() for path in (self.root / "out").rglob("*") if path.is_file()}
            self.assertEqual(made, COLLECTED)
            self.write({"README.md": "[folder](kernels)\n"})
            self.assertRaisesRegex(SystemExit, "kernels is a folder without a README", site.collect, self.root / "out")

    def test_the_table_of_properties(self):
        others = [{**PROPERTY, "families": f, "without": w} for f, w in ((["paged"], ["x", "y"]), (["merge_state", "merge_states"], []))]
        rows = ["| p | attention | a, b | any feature | a \\* b | s | c |", "| p | paged | a, b | x, y | a \\* b | s | c |", "| p | merges | a, b |  | a \\* b | s | c |"]
        self.write({"page.md": f"head\n{properties.BEGIN}old\n{properties.END}tail\n"})
        program = self.root / "assay"
        program.write_text(f"#!/bin/sh\necho '{json.dumps({'properties': [PROPERTY, *others]})}'\n")
        program.chmod(0o755)
        with mock.patch.object(properties, "PAGE", self.root / "page.md"):
            self.assertEqual(list(properties.check(program, False))[-3:], rows)
            self.assertEqual([list(properties.check(program, write)) for write in (True, False)], [[], []])
        self.assertEqual((self.root / "page.md").read_text().splitlines()[4:-2], rows)

    def test_the_table_of_names(self):
        self.assertEqual(list(names.check()), [])
        text = names.PAGE.read_text()
        for old, new, expected in WRONG_NAMES:
            with self.subTest(new=new):
                self.assertIn(old, text)
                self.assertIn(expected, "\n".join(names.check(text.replace(old, new, 1))))

    def test_pictures_are_of_their_data(self):
        data = ["one"]
        with mock.patch.multiple(pictures, ROOT=self.root, PICTURES={"a": lambda theme: data[0] + theme["ink"]}):
            self.assertEqual([len(list(pictures.check())), pictures.write(), list(pictures.check())], [2, [], []])
            self.assertEqual({path.name for path in self.root.glob("*")}, {"a.svg", "a-dark.svg"})
            data[0] = "two"
            self.assertEqual(len(list(pictures.check())), 2)

    def test_every_command_says_what_is_wrong_and_ends_with_it(self):
        names, said = ["links", "results", "figures", "pictures", "properties", "site"], []

        def complain(name):
            return lambda *given: said.append((name, *given)) or ([name] if name == wrong else [])

        out = pathlib.Path("x")
        commands = {"links": [("links",)], "results": [("results",)], "pictures": [("pictures",)], "figures x": [("figures", [out])],
                    "check": [(name,) for name in names[:4]], "pictures --write": [("write",)], "properties x": [("properties", "x", False)],
                    "properties x --write": [("properties", "x", True)], "site x": [("site", out)]}  # fmt: skip
        for command, calls in commands.items():
            for wrong in ("", *(name for name, *_ in calls)):
                said.clear()
                with mock.patch.multiple(docs, EVERY={name: complain(name) for name in names[:4]}), mock.patch.object(figures, "check", complain("figures")), \
                        mock.patch.object(pictures, "write", complain("write")), mock.patch.object(properties, "check", complain("properties")), \
                        mock.patch.object(site, "collect", complain("site")), mock.patch.object(sys, "argv", ["docs.py", *command.split()]), \
                        mock.patch("builtins.print") as printed, self.assertRaises(SystemExit) as ended:
                    docs.main()
                self.assertEqual((said, ended.exception.code), (calls, int(bool(wrong))), command)
                self.assertIn(wrong or f"{command.split()[0]}: ok", printed.call_args.args[0])
        with mock.patch.object(blocks, "main", lambda *given: given), mock.patch.object(sys, "argv", ["docs.py", "blocks", "a", "--list", "--keep", "k"]):
            self.assertRaisesRegex(SystemExit, r"\['a'\], True, 'k'", docs.main)


if __name__ == "__main__":
    unittest.main()
