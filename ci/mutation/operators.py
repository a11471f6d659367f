# SPDX-License-Identifier: Apache-2.0
"""Operators of mutants: what one node of the syntax tree may wrongly be. Conventional ones; gpu_operators.py has the rest.

An operator yields (start, end, kind, replacement): kind `expression` or `statement`, as ci/wrong.py has it."""
import re

RELATIONAL = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",)}
ARITHMETIC = {"+": ("-",), "-": ("+",), "*": ("+", "/"), "/": ("*",), "%": ("/", "*"), "<<": (">>",), ">>": ("<<",),
              "&": ("|",), "|": ("&",), "^": ("|", "&")}
ASSIGNMENT = {"+=": ("-=", "="), "-=": ("+=",), "*=": ("/=", "="), "/=": ("*=",), "|=": ("&=", "="), "^=": ("=",),
              "&=": ("|=",)}
WIDE = re.compile(r"^(const )?u?int64_t$")
NUMBER = re.compile(r"^(const )?(float|Number|R)$")
#: Names that stand for one another where a hand slips: strides, ends of ranges, operands, stages.
SIBLINGS = [(r"stride_batch$", "stride_head"), (r"stride_head$", "stride_batch"), (r"stride_row$", "stride_head"),
            (r"stride_token$", "stride_head"), (r"page_bytes$", "token_bytes"), (r"token_bytes$", "page_bytes"),
            (r"^k_", "v_"), (r"^v_", "k_"), (r"^o_stride", "lse_stride"), (r"^k$", "v"), (r"^v$", "k"),
            (r"begin$", "end"), (r"end$", "begin"), (r"_a$", "_b"), (r"_b$", "_a"), (r"^a$", "b"), (r"^b$", "a"),
            (r"^stage$", "free_stage"), (r"^free_stage$", "stage"), (r"^x$", "y"), (r"^y$", "x"), (r"^m$", "d"),
            (r"^d$", "m"), (r"^row$", "head"), (r"^head$", "row"), (r"^request$", "head"), (r"^slot$", "page"),
            (r"^page$", "slot"), (r"^low$", "high"), (r"^high$", "low"), (r"^x0$", "x1"), (r"^x1$", "x0"),
            (r"^first$", "last"), (r"^last$", "first"), (r"^first_slot$", "next_slot"), (r"^full$", "empty"),
            (r"^empty$", "full"), (r"^issue$", "signal"), (r"^signal$", "issue"), (r"^scale$", "inverse")]


def operator_of(tree, node):
    """The sign between two operands; empty where it is a macro's or an overload's."""
    if len(node.children) != 2:
        return ""
    return tree.text[node.children[0].end:node.children[1].start].strip()


def with_sign(tree, node, sign):
    left, right = node.children
    return f"{tree.text_of(left)} {sign} {tree.text_of(right)}"


def whole(node, text):
    return node.start, node.end, "expression", text


def relational(tree, node):
    if node.kind == "BINARY_OPERATOR":
        for sign in RELATIONAL.get(operator_of(tree, node), ()):
            yield whole(node, with_sign(tree, node, sign))


def arithmetic(tree, node):
    if node.kind == "BINARY_OPERATOR":
        for sign in ARITHMETIC.get(operator_of(tree, node), ()):
            yield whole(node, with_sign(tree, node, sign))


def operand(tree, node):
    """One operand is lost."""
    if node.kind == "BINARY_OPERATOR" and operator_of(tree, node) in ARITHMETIC:
        for child in node.children:
            yield whole(node, tree.text_of(child))


def assignment(tree, node):
    if node.kind == "COMPOUND_ASSIGNMENT_OPERATOR" and node.parent.kind != "FOR_STMT":
        for sign in ASSIGNMENT.get(operator_of(tree, node), ()):
            yield whole(node, with_sign(tree, node, sign))


def logical(tree, node):
    if node.kind == "BINARY_OPERATOR" and operator_of(tree, node) in ("&&", "||"):
        yield whole(node, with_sign(tree, node, "||" if operator_of(tree, node) == "&&" else "&&"))
        for child in node.children:
            yield whole(node, tree.text_of(child))
    if node.kind == "UNARY_OPERATOR" and tree.text[node.start] == "!":
        yield whole(node, tree.text[node.start + 1:node.end])


def constant(tree, node):
    text = tree.text_of(node)
    if node.kind == "INTEGER_LITERAL" and re.fullmatch(r"[0-9a-fA-FxX']+[uUlL]*", text):
        yield whole(node, f"{text} + 1")
        if text.rstrip("uUlL") != "0":
            yield whole(node, f"{text} - 1")
    elif node.kind == "FLOATING_LITERAL":
        suffix = "f" if text.endswith("f") else ""
        for wrong in ("0.0", "1.0", "2.0"):
            if float(text.rstrip("f").replace("'", "")) != float(wrong):
                yield whole(node, wrong + suffix)
    elif node.kind == "CXX_BOOL_LITERAL_EXPR":
        yield whole(node, "false" if text == "true" else "true")


def arguments(tree, node):
    """Two neighbouring arguments in each other's place, of a call or of what a function returns."""
    spans = node.arguments
    if node.kind == "RETURN_STMT" and node.children and node.children[0].kind == "INIT_LIST_EXPR":
        spans = [(c.start, c.end) for c in node.children[0].children]
    for (start, end), (next_start, next_end) in zip(spans, spans[1:]):
        first, second = tree.text[start:end], tree.text[next_start:next_end]
        if not (node.start < start < end <= next_start < next_end <= node.end) or first == second:
            continue
        if any(part.lstrip().startswith(("[", '"')) for part in (first, second)):
            continue  # a lambda or a name is no argument of the other's kind
        text = tree.text[node.start:start] + second + tree.text[end:next_start] + first + tree.text[next_end:node.end]
        if node.kind == "CALL_EXPR":
            yield whole(node, text)
        else:
            yield node.start, node.end + 1, "statement", text + ";"


def sibling(tree, node):
    """Another stride, index, stage or operand."""
    if node.kind not in ("DECL_REF_EXPR", "MEMBER_REF_EXPR", "UNEXPOSED_EXPR"):
        return
    match = re.search(r"\b([A-Za-z_]\w*)$", tree.text_of(node))
    if match is None or re.match(r"\s*[(<]", tree.text[node.end:node.end + 2]):
        return
    trailing = "_" if match[1].endswith("_") else ""
    for find, other in SIBLINGS:
        name, count = re.subn(find, other, match[1].removesuffix("_"))
        if count:
            yield whole(node, tree.text[node.start:node.start + match.start(1)] + name + trailing)


def index(tree, node):
    """The first element instead of the one meant."""
    if node.kind == "ARRAY_SUBSCRIPT_EXPR" and len(node.children) == 2:
        base, at = node.children
        if not re.fullmatch(r"\d+", tree.text_of(at)):
            yield whole(node, f"{tree.text_of(base)}[0]")


def loop(tree, node):
    """A bound off by one; relational and constant have the others."""
    if node.kind == "BINARY_OPERATOR" and node.parent.kind == "FOR_STMT" and operator_of(tree, node) in RELATIONAL:
        bound = tree.text_of(node.children[1])
        for wrong in (f"({bound}) - 1", f"({bound}) + 1"):
            yield whole(node, f"{tree.text_of(node.children[0])} {operator_of(tree, node)} {wrong}")


def condition(tree, node):
    """What is guarded always or never happens."""
    if node.parent is not None and node.parent.kind == "IF_STMT" and node.parent.children[0] is node:
        before = tree.text[node.parent.start:node.start]
        if re.fullmatch(r"if\s*\(\s*", before) and re.match(r"\s*\)", tree.text[node.end:]):
            yield whole(node, "true")
            yield whole(node, "false")
    if node.kind == "CONDITIONAL_OPERATOR" and len(node.children) == 3:
        yield whole(node, tree.text_of(node.children[1]))
        yield whole(node, tree.text_of(node.children[2]))


def is_statement(node):
    parent = node.parent
    if parent is None:
        return False
    if parent.kind == "COMPOUND_STMT":
        return True
    if parent.kind == "IF_STMT":
        return parent.children[0] is not node
    return parent.kind in ("FOR_STMT", "WHILE_STMT", "CXX_FOR_RANGE_STMT") and parent.children[-1] is node


def end_of_statement(tree, node):
    """Behind its semicolon; 0 where none follows."""
    match = re.compile(r"\s*;").match(tree.text, node.end)
    return match.end() if match else 0


DROPPED = ("CALL_EXPR", "BINARY_OPERATOR", "COMPOUND_ASSIGNMENT_OPERATOR", "UNARY_OPERATOR", "CONTINUE_STMT",
           "BREAK_STMT", "DO_STMT")


def statement(tree, node):
    """Dropped."""
    plain_return = node.kind == "RETURN_STMT" and tree.text_of(node) == "return"
    if (node.kind in DROPPED or plain_return) and is_statement(node) and end_of_statement(tree, node):
        yield node.start, end_of_statement(tree, node), "statement", ""


def early_return(tree, node):
    """Out before a statement of a function; or with nothing for a value."""
    function = node.ancestor(("FUNCTION_DECL", "CXX_METHOD", "FUNCTION_TEMPLATE", "LAMBDA_EXPR"))
    if function is None or function.kind == "LAMBDA_EXPR":
        return
    of_body = node.parent.kind == "COMPOUND_STMT" and node.parent.parent is function
    if of_body and function.returns == "void" and node.kind not in ("DECL_STMT", "RETURN_STMT"):
        end = end_of_statement(tree, node) or (node.end if tree.text[node.end - 1] in "};" else 0)
        if end and node.parent.children[0] is not node:
            yield node.start, end, "statement", "return;"
    if node.kind == "RETURN_STMT" and node.children and end_of_statement(tree, node):
        yield node.start, end_of_statement(tree, node), "statement", "return {};"


def minimum(tree, node):
    """The other one of minimum and maximum, or one side of it."""
    if node.kind != "CALL_EXPR" or len(node.arguments) != 2:
        return
    (start, end), (next_start, next_end) = node.arguments
    head, sides = tree.text[node.start:start], (tree.text[start:end], tree.text[next_start:next_end])
    match = re.fullmatch(r"(std|arch)::(min|max|max_num|max_nan)(<\w+>)?\(", head)
    if match is None:
        return
    if match[1] == "arch":
        yield whole(node, f"::assay::mutants::least({sides[0]}, {sides[1]})")
    else:
        yield whole(node, f"std::{'min' if match[2] == 'max' else 'max'}{match[3] or ''}({sides[0]}, {sides[1]})")
    for side in sides:
        yield whole(node, side)


def sign(tree, node):
    if node.kind == "UNARY_OPERATOR" and tree.text[node.start] == "-":
        yield whole(node, tree.text[node.start + 1:node.end])
    if node.kind == "BINARY_OPERATOR" and operator_of(tree, node) == "-":
        left, right = node.children
        yield whole(node, f"{tree.text_of(right)} - ({tree.text_of(left)})")


def cast(tree, node):
    """An operand is not widened: what is computed from it is computed narrow."""
    if node.kind == "BINARY_OPERATOR" and operator_of(tree, node) in ARITHMETIC:
        for child in node.children:
            match = re.fullmatch(r"(?:static_cast<\w+>|u?int64_t)([({].*[)}])", tree.text_of(child), re.S)
            if match:
                rest = "(" + match[1][1:-1] + ")"
                yield whole(node, tree.text[node.start:child.start] + rest + tree.text[child.end:node.end])


def narrow(tree, node):
    """A value passes through fewer bits."""
    parent = node.parent
    if parent is None or parent.kind not in ("VAR_DECL",) or parent.children[-1] is not node:
        return
    if "=" not in tree.text[parent.start:node.start] or tree.text_of(node).startswith("{"):
        return
    if WIDE.match(parent.type):
        yield whole(node, f"static_cast<int32_t>({tree.text_of(node)})")
    elif NUMBER.match(parent.type):
        yield whole(node, f"::assay::mutants::to_bf16({tree.text_of(node)})")


CONVENTIONAL = {f.__name__: f for f in (relational, arithmetic, operand, assignment, logical, constant, arguments, sibling,
                                        index, loop, condition, statement, early_return, minimum, sign, cast, narrow)}
