#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tree.py sees what is wrong on purpose in a small tree, and nothing in the tree as it is."""
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
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
]


def said_of(files):
    """What tree.py prints for a repository of these files."""
    with tempfile.TemporaryDirectory() as work:
        for path, text in files.items():
            (pathlib.Path(work) / path).parent.mkdir(parents=True, exist_ok=True)
            (pathlib.Path(work) / path).write_text(text)
        subprocess.run(["git", "init", "-q"], cwd=work, check=True)
        subprocess.run(["git", "add", "."], cwd=work, check=True)
        return subprocess.run([sys.executable, "-B", "ci/tree.py", "shape"], cwd=work, text=True, capture_output=True,
                              check=False)


def main():
    failed = 0
    for path, old, new, expected in [("HACKING.md", "", "", "")] + MISTAKES:
        said = said_of({**TREE, path: TREE[path].replace(old, new, 1)})
        if old not in TREE[path] or said.returncode != bool(expected) or expected not in said.stdout + said.stderr:
            print(f"{path}: {old!r} -> {new!r}: expected {expected!r}, got {said.returncode}: {said.stdout}{said.stderr}")
            failed += 1
    long = {f"ci/{name}": "# SPDX-License-Identifier: Apache-2.0\n" * lines for name, lines in (("a.py", 301), ("b.sh", 420), ("c.py", 300), ("d.py", 333), ("e.md", 500))}
    said = said_of({**TREE, **long})
    if [line.split() for line in said.stdout.splitlines()[:-1]] != [["ci/b.sh", "420", "lines"], ["ci/d.py", "333", "lines"], ["ci/a.py", "301", "lines"]]:
        print(f"files above the soft limit, the longest first: {said.stdout}")
        failed += 1
    print(f"tree_test: {len(MISTAKES) + 1 - failed} of {len(MISTAKES) + 1} trees judged rightly")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
