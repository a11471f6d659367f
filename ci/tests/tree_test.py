#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tree.py sees what is wrong on purpose in a small tree, and nothing in the tree as it is."""
import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "ci"))
import tree  # noqa: E402

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
HACKING = """<!-- map -->
ci/             scripts
corpus/seeds/   inputs
kernels/arch/   below
kernels/decode/ above
<!-- /map -->
<!-- layers -->
| folder | includes |
|---|---|
| `kernels/arch` | |
| `kernels/decode` | `kernels/arch` |
<!-- /layers -->
"""
BELOW, ABOVE = "kernels/arch/below.h", "kernels/decode/above.h"
TREE = {
    "HACKING.md": HACKING,
    "ci/tree.py": (ROOT / "ci/tree.py").read_text(),
    BELOW: SPDX + "inline int below() { return 1; }\n",
    ABOVE: SPDX + '#include "kernels/arch/below.h"\n',
    "corpus/seeds/a/1": "x",
    "kernels/decode/CMakeLists.txt": "# SPDX-License-Identifier: Apache-2.0\nassay_add_test(above_test SOURCES tests/above_test.cpp)\n",
    "kernels/decode/tests/above_test.cpp": SPDX,
}
INCLUDE = '#include "kernels/arch/below.h"\n'
MISTAKES = [  # file, what stands there, what stands there instead, what is said of it
    (ABOVE, INCLUDE, "", "nothing in kernels/decode includes kernels/arch, which HACKING.md allows it"),
    (BELOW, "inline", '#include "kernels/decode/above.h"\ninline', "includes kernels/decode/above.h"),
    ("HACKING.md", "| `kernels/decode` | `kernels/arch` |", "| `kernels/decode` | |", "includes kernels/arch/below.h"),
    ("HACKING.md", "| `kernels/decode` | `kernels/arch` |", "", "stands in no folder"),
    ("HACKING.md", "kernels/decode/ above\n", "", "kernels/decode is not named"),
    ("HACKING.md", "kernels/decode/ above\n", "kernels/decode/ above\nkernels/host/ none\n", "kernels/host is no folder"),
    (BELOW, "return 1", "return threadIdx.x", ""),  # where instructions may stand
    (ABOVE, INCLUDE, INCLUDE + "inline int above() { return threadIdx.x; }\n", "instruction outside kernels/arch"),
    (ABOVE, INCLUDE, INCLUDE + "inline void above() { below<<<1, 1>>>(); }\n", "launch outside kernels/host"),
    (BELOW, "inline", "\n" * 600 + "inline", "lines (limit 600)"),
    (BELOW, "inline", "//" + "-" * 99 + "\ninline", "a comment wider than 100 columns"),
    (BELOW, "return 1", "return __shfl(1)", ""),
    (ABOVE, INCLUDE, INCLUDE + "// threadIdx, <<<1, 1>>>\n", ""),
    (ABOVE, INCLUDE, "  #  include \"kernels/arch/below.h\"\n#include \"kernels/decode_more/x.h\"\n", "includes kernels/decode_more/x.h"),
    ("HACKING.md", "<!-- /map -->", "", "has no block 'map'"),
    *(("corpus/seeds/a/1", "x", "x" * count, said) for count, said in ((4096, ""), (4097, "corpus/seeds/a: 1 files, 4097 bytes"))),
    ("kernels/decode/CMakeLists.txt", "above_test SOURCES tests/above_test.cpp", "other SOURCES tests/other.cpp", "no CMakeLists.txt names it"),
    ("kernels/decode/CMakeLists.txt", "above_test SOURCES tests/above_test.cpp", "other SOURCES tests/", ""),
    (BELOW, SPDX, "", "no SPDX line"),
    (BELOW, "inline", "// \u00e9\ninline", "not ASCII"),
    (BELOW, "inline", "//" + "-" * 98 + "\ninline", ""),
    (BELOW, SPDX, "\n\n" + SPDX, ""),
    (BELOW, SPDX, "\n\n\n" + SPDX, "no SPDX line"),
    (BELOW, "inline", "\n" * 598 + "inline", ""),
    # Files that are not there yet.
    *((name, "", "x\n", f"{name}: no SPDX line") for name in ("ci/a.py", "ci/a.sh", "ci/a.cmake", "kernels/arch/CMakeLists.txt", "ci/a.c")),
    *((name, "", "\u00e9\n", "") for name in ("ci/a.md", "ci/a.csv", "ci/a.json")),
    *((f"kernels/{folder}/a.h", "", SPDX + "asm volatile(0); __syncthreads();\n", f"instruction outside kernels/arch: kernels/{folder}/a.h:2") for folder in ("host", "decode/deep")),
    *((f"kernels/{folder}/a.h", "", SPDX + "inline int asm_of; a<<b;\n", "") for folder in ("decode/deep",)),
    ("kernels/arch/tests/a_try.cpp", "", SPDX + "k<<<1, 2>>>();\n", ""),
    ("kernels/arch/a.h", "", SPDX + "k<<<1, 2>>>();\n", "launch outside kernels/host: kernels/arch/a.h:2"),
    ("kernels/decode/tests/other.h", "", SPDX + '#include "anything.h"\n', ""),
    ("kernels/decode/a.def", "", SPDX + '#include "anything.h"\n', "kernels/decode/a.def:2 includes anything.h; kernels/decode may include kernels/decode, kernels/arch"),
    ("kernels/decode/tests/new_test.cu", "", SPDX, "new_test.cu: no CMakeLists.txt names it"),
    ("kernels/decode/tests/above_more_test.cpp", "", SPDX, "above_more_test.cpp: no CMakeLists.txt names it"),
    ("kernels/decode/CMakeLists.txt", "above_test SOURCES tests/above_test.cpp", "above", ""),
    ("kernels/decode/CMakeLists.txt", "above_test SOURCES tests/above_test.cpp", "tests_of/ above_tests", "no CMakeLists.txt names it"),
    ("CMakeLists.txt", "", "# SPDX-License-Identifier: Apache-2.0\nabove_test\n", ""),
    *((f"corpus/seeds/a/{size}", "", "x" * 4096, "") for size in range(1)),
    *((f"{folder}/x.txt", "", "", f"{folder} is not named") for folder in ("kernels/new", "oracle/new", "properties/new", "corpus/new", "properties/tools/new", "properties/cli/new", "fuzz")),
    *((f"{folder}/x.txt", "", "", "") for folder in ("other", "kernels/arch/deep/er", "ci/deep", "kernels/tests", "kernels/decode/tests/deep")),
    ("HACKING.md", "| `kernels/decode` | `kernels/arch` |", "| `kernels/decode` | `kernels/arch/below.h`, `kernels/decode/none.h` |", "nothing in kernels/decode includes kernels/decode/none.h"),
    ("HACKING.md", "| `kernels/decode` | `kernels/arch` |", "| `kernels/decode/above.h` | `kernels/arch` |\n| `kernels/decode` | |", ""),
    ("HACKING.md", "| `kernels/decode` | `kernels/arch` |", "| `kernels/decode` | `kernels/arch` |\n| `kernels/decode/above.h` | |", "includes kernels/arch/below.h; kernels/decode/above.h may include kernels/decode/above.h"),
]


def write(files, work):
    for path, text in files.items():
        (pathlib.Path(work) / path).parent.mkdir(parents=True, exist_ok=True)
        (pathlib.Path(work) / path).write_text(text)


def as_program(files):
    """(exit code, what tree.py prints) for a repository of these files."""
    with tempfile.TemporaryDirectory() as work:
        write(files, work)
        subprocess.run(["git", "init", "-q"], cwd=work, check=True)
        subprocess.run(["git", "add", "."], cwd=work, check=True)
        ran = subprocess.run([sys.executable, "-B", "ci/tree.py", "shape"], cwd=work, text=True, capture_output=True, check=False)
    return ran.returncode, ran.stdout + ran.stderr


def said_of(files):
    """The same in this process."""
    tree.found.clear()
    tree.used.clear()
    listed = mock.Mock(stdout="\n".join(sorted(files)))
    with tempfile.TemporaryDirectory() as work, contextlib.redirect_stdout(io.StringIO()) as said, mock.patch.object(tree, "ROOT", pathlib.Path(work)), \
            mock.patch.object(tree.subprocess, "run", return_value=listed), mock.patch.object(sys, "argv", ["tree.py", "shape"]):
        write(files, work)
        try:
            code = tree.main()
        except SystemExit as error:
            print(error.code)
            code = 1
    return code, said.getvalue()


def main():
    failed, mistakes = 0, [("HACKING.md", "", "", "")] + MISTAKES
    for run, (path, old, new, expected) in zip([as_program] * 2 + [said_of] * len(MISTAKES), mistakes):
        code, said = run({**TREE, path: TREE[path].replace(old, new, 1) if old or path in TREE else new})
        if old not in TREE.get(path, "") or code != bool(expected) or expected not in said:
            print(f"{path}: {old!r} -> {new!r}: expected {expected!r}, got {code}: {said}")
            failed += 1
    long = {f"ci/{name}": "# SPDX-License-Identifier: Apache-2.0\n" * lines for name, lines in (("a.py", 301), ("b.sh", 420), ("c.py", 300), ("d.py", 333), ("e.md", 500))}
    _, said = said_of({**TREE, **long})
    if [line.split() for line in said.splitlines()[:-1]] != [["ci/b.sh", "420", "lines"], ["ci/d.py", "333", "lines"], ["ci/a.py", "301", "lines"]]:
        print(f"files above the soft limit, the longest first: {said}")
        failed += 1
    print(f"tree_test: {len(MISTAKES) + 1 - failed} of {len(MISTAKES) + 1} trees judged rightly")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
