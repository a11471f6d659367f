#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mutants of Python (ci/mutation/python_operators.py) of a small source and of tools of ci: as many of each operator as the syntax
tree has places, each a change of that place alone, wherever the place stands in its file.

python_operators_test.py --record writes every mutant of the small source to operators.txt: a change of an operator shows there."""
import ast
import collections
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "ci"))
from mutation.python_operators import mutants_of  # noqa: E402

SMALL = """@decorated(1 < 2, b=3)
def f(a: int = 4 & 5, *, c=not x, **more: "y" if 1 < 2 else 3) -> 6 + 7:
    "x < y"
    z: int = a[b:c] if a in b else -a
    while a and b and c: raise E(f"{a < b}", d=1, e=[i for i in a if i if -i])
    if not a: return
    return g(a=1), g(1, a=1), "x" + a, a % b
"""
#: One of each place that an operator looks at or leaves alone.
EVERY = SMALL + """
async def h(self, *rest):
    'A text.'
    total += 0.5 * -1 // 2 ** 3
    self.flag = True is not False
    yield a or b or not c, x[1], x[:2:3], x[-1:], b"bytes", None, 5j
    if a < b < c: pass
    assert a, b
    for i in range(0, 10, 2): continue
    with open(name, mode="w") as file: file.write(text); file.close()
    await run(a, b=c, d=e,
              **more)
    y = 1 if not x else (2 if x == 2 else 3)
    z = {k: v for k, v in d.items() if k != 1 and v}; w = a >= b, a <= b, a > b, a == b, a not in b, a is None
    return None
"""
RECORDED = pathlib.Path(__file__).parent / "operators.txt"


def lines_of(source):
    for m in mutants_of(source):
        yield f"{m.line} {m.operator}: {' '.join(source.encode()[m.begin : m.end].decode().split())} -> {' '.join(m.new.split()) or 'nothing'}"


def nodes(tree):
    """Of a tree, but for text: messages, annotations."""
    if isinstance(tree, ast.JoinedStr):
        return
    yield tree
    for name, value in ast.iter_fields(tree):
        if name not in ("annotation", "returns"):
            for node in value if isinstance(value, list) else [value]:
                if isinstance(node, ast.AST):
                    yield from nodes(node)


def places(tree):
    """How many mutants an operator makes."""
    count = collections.Counter()
    for node in nodes(tree):
        count["comparison"] += isinstance(node, ast.Compare) and len(node.ops) == 1
        count["and or"] += isinstance(node, ast.BoolOp)
        count["filter"] += isinstance(node, ast.comprehension) and len(node.ifs)
        count["slice"] += isinstance(node, ast.Slice) and (node.lower is not None) + (node.upper is not None)
        count["return"] += isinstance(node, ast.Return) and node.value is not None and ast.dump(node.value) != "Constant(value=None)"
        count["statement"] += isinstance(node, (ast.Raise, ast.AugAssign)) or isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        if isinstance(node, ast.Call) and len(node.args) + len(node.keywords) > 1:
            count["argument"] += sum(keyword.arg is not None for keyword in node.keywords)
    return count


class Operators(unittest.TestCase):
    def test_these_mutants_are_made(self):
        self.assertEqual(list(lines_of(EVERY)), RECORDED.read_text().splitlines())

    def test_each_place_has_its_mutant(self):
        for text in (SMALL, *((ROOT / f"ci/{name}.py").read_text() for name in ("gate_trial", "skipped", "tree"))):
            expected = places(ast.parse(text))
            made = collections.Counter(mutant.operator for mutant in mutants_of(text))
            self.assertEqual({name: made[name] for name in expected}, expected, text[:200])

    def test_a_comparison_is_the_only_one_that_changes(self):
        text = SMALL + (ROOT / "ci/machine_mutants.py").read_text()
        kinds = lambda source: [type(op) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Compare) for op in node.ops]  # noqa: E731
        right = kinds(text)
        for mutant in mutants_of(text):
            if mutant.operator == "comparison":
                self.assertEqual(sum(a is not b for a, b in zip(right, kinds(mutant.apply(text)))), 1)
                self.assertIn(text.splitlines()[mutant.line - 1].strip()[:1], mutant.apply(text).splitlines()[mutant.line - 1])

    def test_text_before_a_place_changes_nothing(self):
        """Bytes are counted, and a letter may have several."""
        plain = [(m.line, m.operator, m.new, m.apply(SMALL)) for m in mutants_of(SMALL)]
        for before in ("# \u00e9\u20ac\n", "x = '\u00e9\u20ac'\n\n", "'\u20ac'\\\n '\u00e9'\n", "\n\n"):
            moved = [(m.line - before.count("\n"), m.operator, m.new, m.apply(before + SMALL)[len(before) :]) for m in mutants_of(before + SMALL)]
            self.assertEqual(moved, plain)
        line = "a = b < 3 and f(c, d=-1)[0:n]"
        plain = [(m.operator, m.apply(line)) for m in mutants_of(line)]
        self.assertEqual([(m.operator, m.apply(f"'\u20ac'; {line}")[5:]) for m in mutants_of(f"'\u20ac'; {line}")], plain)


if __name__ == "__main__":
    if sys.argv[1:] == ["--record"]:
        RECORDED.write_text("\n".join(lines_of(EVERY)) + "\n")
    else:
        unittest.main()
