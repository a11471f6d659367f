#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the tree with the tables of HACKING.md.

tree.py layers    includes, places of instructions and launches, the directory map, tests, limits, SPDX, ASCII
tree.py shape     the same; it also prints files above the soft limit of lines

Prints every violation; exit 1 when there is one."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CODE = (".h", ".cuh", ".cpp", ".cu", ".c", ".inl", ".def")
LIMITED = CODE + (".py", ".sh", ".cmake", "CMakeLists.txt")
MAX_LINES, SOFT_LINES, MAX_COLUMNS = 600, 300, 100
MAX_SEEDS, MAX_SEED_FOLDER, MAX_SEED = 100, 64 << 10, 4 << 10
INSTRUCTION = re.compile(r"\basm\b|threadIdx|blockIdx|__shfl|__shared__|__syncthreads")
LAUNCH = re.compile(r"<<<")

found = []
used = set()  # (row, allowance) of the include rules


def block(page, name):
    """The lines of a page between <!-- name --> and <!-- /name -->."""
    text = (ROOT / page).read_text()
    match = re.search(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", text, re.S)
    if not match:
        sys.exit(f"{page} has no block '{name}'")
    return match.group(1).splitlines()


def rules():
    """[(folder or file, [allowed prefixes])], the most specific first."""
    table = []
    for line in block("HACKING.md", "layers"):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) < 2 or not cells[0].startswith("`"):
            continue
        folder = cells[0].strip("`")
        table.append((folder, [folder] + re.findall(r"`([^`]+)`", cells[1])))
    return sorted(table, key=lambda rule: -len(rule[0]))


def under(path, prefix):
    return path == prefix or path.startswith(prefix.rstrip("/") + "/")


def check_includes(path, text, table):
    # Tests may look at whatever they need to build and compare.
    if "/tests/" in path:
        return
    rule = next((r for r in table if under(path, r[0])), None)
    if rule is None:
        if path.endswith(CODE):
            found.append(f"layer: {path} stands in no folder of HACKING's include rules")
        return
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if not match:
            continue
        allowed = [prefix for prefix in rule[1] if under(match.group(1), prefix)]
        used.update((rule[0], prefix) for prefix in allowed)
        if not allowed:
            found.append(f"layer: {path}:{number} includes {match.group(1)}; {rule[0]} may include {', '.join(rule[1])}")


def check_allowances(table):
    """A row allows what its folder includes, and no more."""
    for folder, (_, *allowed) in table:
        for prefix in allowed:
            if (folder, prefix) not in used:
                found.append(f"layer: nothing in {folder} includes {prefix}, which HACKING.md allows it")


def check_instructions(path, text):
    if not path.startswith("kernels/"):
        return
    for number, line in enumerate(text.splitlines(), 1):
        code = line.split("//")[0]
        if INSTRUCTION.search(code) and not path.startswith(("kernels/arch/", "kernels/bench/")):
            found.append(f"instruction outside kernels/arch: {path}:{number}")
        if LAUNCH.search(code) and not path.startswith(("kernels/host/", "kernels/arch/tests/", "kernels/bench/")):
            found.append(f"launch outside kernels/host: {path}:{number}")


def check_limits(path, text):
    lines = text.count("\n")
    if lines > MAX_LINES:
        found.append(f"{path} has {lines} lines (limit {MAX_LINES})")
    if "SPDX-License-Identifier" not in "".join(text.splitlines(True)[:3]):
        found.append(f"{path}: no SPDX line")
    if not text.isascii():
        found.append(f"{path}: not ASCII")
    if path.endswith(CODE):  # clang-format breaks code, and leaves comments as they are
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > MAX_COLUMNS and line.lstrip().startswith("//"):
                found.append(f"{path}:{number}: a comment wider than {MAX_COLUMNS} columns")


def check_seeds(files):
    """Start inputs of a fuzz target stay few and small (corpus/README.md)."""
    folders = {}
    for path in files:
        if path.startswith("corpus/seeds/") and (ROOT / path).is_file():
            folders.setdefault(path.split("/")[2], []).append((ROOT / path).stat().st_size)
    for target, sizes in folders.items():
        if len(sizes) > MAX_SEEDS or sum(sizes) > MAX_SEED_FOLDER or max(sizes) > MAX_SEED:
            found.append(f"corpus/seeds/{target}: {len(sizes)} files, {sum(sizes)} bytes, the largest {max(sizes)}; "
                         f"at most {MAX_SEEDS}, {MAX_SEED_FOLDER} and {MAX_SEED}")


def check_tests(files):
    """A test that no CMakeLists.txt above it names, by its file, its stem or its folder, is compiled by none."""
    for path in files:
        name = re.fullmatch(r"(.*/)(\w+)_test\.(cpp|cu|c)", path)
        if name:
            lists = [folder / "CMakeLists.txt" for folder in (ROOT / path).parents if folder == ROOT or ROOT in folder.parents]
            names = rf"\b{name[2]}(_test)?\b|(^|[\s(/])tests/(?=[\s)]|$)"
            if not any(re.search(names, file.read_text(), re.M) for file in lists if file.is_file()):
                found.append(f"{path}: no CMakeLists.txt names it")


def check_map(files):
    """Every folder that holds files below kernels, oracle, properties, corpus is named, and no other."""
    named = {line.split()[0].rstrip("/") for line in block("HACKING.md", "map") if re.match(r"[a-z]", line)}
    depth = {"kernels": 2, "oracle": 2, "properties": 2, "corpus": 2, "fuzz": 2, "ci": 1}
    tree = set()
    for path in files:
        parts = [part for part in path.split("/")[:-1] if part != "tests"]
        if parts and parts[0] in depth:
            floor = parts[:2] in (["properties", "tools"], ["properties", "cli"])  # rooms are one folder deeper
            tree.add("/".join(parts[: depth[parts[0]] + floor]))
    tops = {"kernels", "properties", "corpus", "oracle"}
    for folder in sorted((tree - tops) ^ (named - tops)):
        found.append(f"HACKING.md directory map: {folder} is " + ("not named" if folder in tree else "no folder"))


def shape(files):
    """Files above the soft limit, the longest first."""
    lengths = {path: (ROOT / path).read_text(errors="replace").count("\n")
               for path in files if path.endswith(CODE + (".py", ".sh")) and (ROOT / path).is_file()}
    for path in sorted(lengths, key=lambda path: -lengths[path]):
        if lengths[path] > SOFT_LINES:
            print(f"{path:<56} {lengths[path]} lines")


def layers(files):
    table = rules()
    for path in files:
        if not (ROOT / path).is_file() or not path.endswith(LIMITED):
            continue
        text = (ROOT / path).read_text(errors="replace")
        check_limits(path, text)
        if path.endswith(CODE):
            check_includes(path, text, table)
            check_instructions(path, text)
    check_allowances(table)
    check_map(files)
    check_tests(files)
    check_seeds(files)
    print("\n".join(found) if found else "layers, limits and map: ok")


def main():
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    if sys.argv[1:] == ["shape"]:
        shape(files)
    layers(files)
    return 1 if found else 0


if __name__ == "__main__":
    if sys.argv[1:] not in (["layers"], ["shape"]):
        sys.exit(__doc__)
    sys.exit(main())
