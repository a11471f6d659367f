# SPDX-License-Identifier: Apache-2.0
"""Mutants of Python: one small change a mutant, by the syntax tree. Text (messages, docstrings, annotations) is left as it is."""
import ast
import dataclasses

_COMPARE = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.In: "not in", ast.NotIn: "in",
    ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
_BINARY = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "*", ast.Pow: "*", ast.LShift: ">>",
    ast.RShift: "<<", ast.BitAnd: "|", ast.BitOr: "&",
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Mutant:
    line: int
    operator: str
    begin: int  #: bytes of the file that are replaced
    end: int
    new: str

    def apply(self, source):
        return (source.encode()[: self.begin] + self.new.encode() + source.encode()[self.end :]).decode()


class _Finder(ast.NodeVisitor):
    def __init__(self, source):
        self.source, self.found = source.encode(), []
        self.lines = [0]
        for line in self.source.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))

    def at(self, node):
        return self.lines[node.lineno - 1] + node.col_offset, self.lines[node.end_lineno - 1] + node.end_col_offset

    def text(self, node):
        begin, end = self.at(node)
        return self.source[begin:end].decode()

    def add(self, operator, node, new):
        begin, end = self.at(node)
        self.found.append(Mutant(node.lineno, operator, begin, end, new))

    def visit_JoinedStr(self, node):
        """Messages."""

    def visit_arguments(self, node):
        for default in (*node.defaults, *(d for d in node.kw_defaults if d is not None)):
            self.visit(default)

    def visit_AnnAssign(self, node):
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node):
        self.visit(node.args)
        for decorator in node.decorator_list:
            self.visit(decorator)
        for statement in node.body:
            self.visit(statement)

    def visit_Compare(self, node):
        if len(node.ops) == 1:
            self.add("comparison", node, f"({self.text(node.left)} {_COMPARE[type(node.ops[0])]} {self.text(node.comparators[0])})")
        self.generic_visit(node)

    def visit_BinOp(self, node):
        new = _BINARY.get(type(node.op))
        if new and not any(isinstance(side, ast.Constant) and isinstance(side.value, str) for side in (node.left, node.right)):
            self.add("arithmetic", node, f"({self.text(node.left)} {new} {self.text(node.right)})")
        self.generic_visit(node)

    def visit_BoolOp(self, node):
        other = " or " if isinstance(node.op, ast.And) else " and "
        self.add("and or", node, f"({other.join('(' + self.text(value) + ')' for value in node.values)})")
        self.generic_visit(node)

    def visit_UnaryOp(self, node):
        if isinstance(node.op, (ast.Not, ast.USub)):
            self.add("sign", node, f"({self.text(node.operand)})")
        if not isinstance(node.operand, ast.Constant):
            self.generic_visit(node)

    def visit_Constant(self, node):
        if isinstance(node.value, bool):
            self.add("constant", node, str(not node.value))
        elif isinstance(node.value, int):
            self.add("constant", node, f"({self.text(node)} + 1)")
        elif isinstance(node.value, float):
            self.add("constant", node, f"({self.text(node)} * 2 + 1)")

    def _test(self, node):
        if not isinstance(node.test, ast.Compare) and not (isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not)):
            self.add("condition", node.test, f"(not ({self.text(node.test)}))")
        self.generic_visit(node)

    visit_If = visit_IfExp = visit_While = _test

    def visit_comprehension(self, node):
        for test in node.ifs:
            self.add("filter", test, "True")
        self.generic_visit(node)

    def visit_Return(self, node):
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            self.add("return", node.value, "None")
        self.generic_visit(node)

    def _gone(self, node):
        if not (isinstance(node, ast.Expr) and isinstance(node.value, (ast.Constant, ast.Yield, ast.YieldFrom))):
            self.add("statement", node, "pass")
        self.generic_visit(node)

    visit_Expr = visit_Raise = visit_AugAssign = _gone

    def visit_Slice(self, node):
        for side in (node.lower, node.upper):
            if side is not None:
                self.add("slice", side, "")
        self.generic_visit(node)

    def visit_Call(self, node):
        for keyword in node.keywords:
            if keyword.arg is not None and len(node.keywords) + len(node.args) > 1:
                begin, end = self.at(keyword)
                after = self.source[end:].lstrip(b" \n")
                end = end + self.source[end:].index(b",") + 1 if after[:1] == b"," else end
                self.found.append(Mutant(keyword.value.lineno, "argument", begin, end, ""))
        self.generic_visit(node)


def mutants_of(source):
    """Every Mutant of a module that compiles and differs, in the order of the file."""
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    plain, out = ast.dump(ast.parse(source)), []
    for mutant in sorted(finder.found, key=lambda m: (m.begin, m.end, m.operator)):
        try:
            if ast.dump(ast.parse(mutant.apply(source))) != plain:
                out.append(mutant)
        except SyntaxError:
            continue
    return out
