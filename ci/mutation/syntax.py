# SPDX-License-Identifier: Apache-2.0
"""The syntax tree of kernel sources as plain nodes with places in their files, by libclang."""
import ctypes
import pathlib
import re
import subprocess
import sys

# Beside Debian's own Python the package is not on the path.
sys.path.append("/usr/lib/python3/dist-packages")
try:
    from clang import cindex
except ImportError:  # the caller says what is missing
    cindex = None
MISSING = "needs libclang's Python binding: apt-get install python3-clang-14"

#: What holds code that runs.
FUNCTIONS = {"FUNCTION_DECL", "CXX_METHOD", "CONSTRUCTOR", "FUNCTION_TEMPLATE", "CONVERSION_FUNCTION", "LAMBDA_EXPR"}
SCOPES = {"NAMESPACE", "CLASS_DECL", "STRUCT_DECL", "CLASS_TEMPLATE", "CLASS_TEMPLATE_PARTIAL_SPECIALIZATION",
          "LINKAGE_SPEC", "UNEXPOSED_DECL"}
#: Names, types, and what only the compiler computes.
SKIPPED = {"TYPE_REF", "TEMPLATE_REF", "NAMESPACE_REF", "PARM_DECL", "TYPE_ALIAS_DECL", "TYPEDEF_DECL", "ENUM_DECL",
           "USING_DECLARATION", "USING_DIRECTIVE", "STRING_LITERAL", "CXX_NULL_PTR_LITERAL_EXPR"}


class Node:
    """A cursor: its kind, text [start, end) of the file, children, and why no schema holds what is inside."""

    def __init__(self, kind, start, end, parent, cursor=None):
        self.kind, self.start, self.end, self.parent = kind, start, end, parent
        self.name = cursor.spelling if cursor else ""
        self.type = cursor.type.spelling if cursor and kind in ("VAR_DECL", "FIELD_DECL") else ""
        self.returns = cursor.result_type.spelling if cursor and kind in FUNCTIONS else ""
        self.children, self.arguments = [], []
        self.compile_time = parent.compile_time if parent else ""

    def walk(self):
        yield self
        for child in self.children:
            yield from child.walk()

    def ancestor(self, kinds):
        node = self.parent
        while node is not None and node.kind not in kinds:
            node = node.parent
        return node


class Place(ctypes.Structure):
    """Where a location stands in a file: an argument of a macro is where it is written."""

    @staticmethod
    def of(location):
        file, offset = cindex.c_object_p(), ctypes.c_uint()
        unused = ctypes.c_uint()
        cindex.conf.lib.clang_getFileLocation(location, ctypes.byref(file), ctypes.byref(unused),
                                              ctypes.byref(unused), ctypes.byref(offset))
        return offset.value


def template_arguments(text):
    """[start, end) of everything in <...> behind a name without a space, as clang-format writes template arguments."""
    spans, opened = [], []
    for match in re.finditer(r"(?<=\w)<(?![<=])|>|[;{}]", text):
        if match[0] == "<":
            opened.append(match.end())
        elif match[0] == ">" and opened and text[match.start() - 1] not in "- ":
            spans.append((opened.pop(), match.start()))
        elif match[0] in ";{}":
            opened.clear()
    return spans


def kind_of(cursor):
    try:
        return cursor.kind.name
    except ValueError:  # one that this binding has no name for
        return "UNEXPOSED_EXPR"


class Tree:
    """The functions of one file of a translation unit."""

    def __init__(self, path, text):
        self.path, self.text = path, text
        self.templates = template_arguments(text)
        self.roots = []

    def text_of(self, node):
        return self.text[node.start:node.end]

    def add(self, cursor, parent=None):
        """Below a scope or a class: functions, and what members are initialised with."""
        kind = kind_of(cursor)
        if kind in SCOPES:
            for child in cursor.get_children():
                self.add(child)
        elif kind in FUNCTIONS or kind == "FIELD_DECL":
            root = self.node(cursor, kind, None)
            if root is not None and root.children:
                self.roots.append(root)

    def node(self, cursor, kind, parent):
        start, end = Place.of(cursor.extent.start), Place.of(cursor.extent.end)
        if end <= start or end > len(self.text):
            return None
        node = Node(kind, start, end, parent, cursor)
        self.mark_compile_time(node, cursor)
        if kind == "CALL_EXPR":
            spans = [(Place.of(a.extent.start), Place.of(a.extent.end)) for a in cursor.get_arguments() if a]
            node.arguments = [(a, b) for a, b in spans if start < a < b < end]  # defaults are not written
        first = self.first_of(node, cursor)
        for child in cursor.get_children():
            self.add_child(node, child, first)
        return node

    def add_child(self, node, cursor, first):
        kind = kind_of(cursor)
        if kind in SKIPPED or kind.startswith("TEMPLATE_") or kind in SCOPES - {"UNEXPOSED_DECL"}:
            return
        if node.kind in FUNCTIONS and kind == "COMPOUND_STMT" and self.text[Place.of(cursor.extent.start)] != "{":
            return  # the body is a macro's
        child = self.node(cursor, kind, node)
        if child is None or child.start < first or child.start < node.start or child.end > node.end:
            return
        # Implicit conversions stand where their operand does.
        if kind == "UNEXPOSED_EXPR" and len(child.children) == 1 and self.same_place(child, child.children[0]):
            child = child.children[0]
            child.parent = node
        node.children.append(child)

    @staticmethod
    def same_place(a, b):
        return (a.start, a.end) == (b.start, b.end)

    def first_of(self, node, cursor):
        """Where the part of a node begins that runs: behind the name and the bounds of a variable."""
        if node.kind not in ("VAR_DECL", "FIELD_DECL"):
            return node.start
        at = Place.of(cursor.location) + len(node.name)
        while match := re.compile(r"\s*\[[^\]]*\]").match(self.text, at):
            at = match.end()
        return at

    def mark_compile_time(self, node, cursor):
        if node.compile_time:
            return
        text = self.text_of(node)
        if node.kind in FUNCTIONS and re.search(r"\bconst(expr|eval)\b", text.split("{")[0]):
            node.compile_time = "constexpr function"
        elif node.kind == "STATIC_ASSERT" or re.match(r"(static |inline )*constexpr\b", text):
            node.compile_time = "constant"
        elif node.parent is not None and node.parent.kind == "IF_STMT" and not node.parent.children:
            if re.match(r"if\s+constexpr\b", self.text_of(node.parent)):
                node.compile_time = "if constexpr"
        if node.parent is not None and any(start <= node.start and node.end <= end for start, end in self.templates):
            node.compile_time = "template argument"


def resource_dir():
    return subprocess.run(["clang", "-print-resource-dir"], check=True, capture_output=True, text=True).stdout.strip()


def trees(root, source, wanted, name="mutation_input.cpp"):
    """Trees of the files that `source` (text of a translation unit) includes or is, for which wanted(path)."""
    unit = str(pathlib.Path(root) / name)
    parsed = cindex.Index.create().parse(
        unit, args=["-std=c++20", f"-I{root}", "-resource-dir", resource_dir(), "-DASSAY_WITH_SIMT"],
        unsaved_files=[(unit, source)])
    errors = [d for d in parsed.diagnostics if d.severity >= cindex.Diagnostic.Error]
    if errors:
        sys.exit(f"mutation: {errors[0]}")
    found = {}
    for cursor in parsed.cursor.get_children():
        if cursor.location.file is None:
            continue
        path = cursor.location.file.name.removeprefix(f"{root}/")
        if not wanted(path):
            continue
        if path not in found:
            found[path] = Tree(path, source if path == name else (pathlib.Path(root) / path).read_text())
        found[path].add(cursor)
    return found
