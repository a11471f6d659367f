#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""That nothing is precompiled in front of a header which it does not reach itself."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import header_prefix  # noqa: E402


class Prefix(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def prefix(self, text, **others):
        for name, content in {"it": text, **others}.items():
            (self.root / f"{name}.h").write_text(content)
        number = header_prefix.prefix_of("it.h", self.root)
        return None if number is None else header_prefix.PREFIXES[number]

    def test_the_longest_that_is_reached_whole(self):
        self.assertEqual(self.prefix("#include <string>\n#include <vector>\n"), {"string", "vector"})
        self.assertEqual(self.prefix("#include <functional>\n#include <string>\n#include <vector>\n"),
                         {"functional", "string", "vector"})

    def test_half_of_one_is_none(self):
        self.assertIsNone(self.prefix("#include <vector>\n#include <map>\n"))

    def test_a_header_of_the_tree_but_not_itself(self):
        own = "kernels/arch/thread.cuh"
        (self.root / own).parent.mkdir(parents=True)
        (self.root / own).write_text("#pragma once\n")
        self.assertEqual(self.prefix(f'#include "{own}"\n'), {own})
        self.assertIsNone(header_prefix.prefix_of(own, self.root))

    def test_through_a_file_of_the_tree(self):
        self.assertEqual(self.prefix('#include "other.h"\n#include <string>\n', other="#include <vector>\n"), {"string", "vector"})

    def test_files_that_include_each_other(self):
        self.assertIsNone(self.prefix('#include "other.h"\n', other='#include "it.h"\n#include <vector>\n'))

    def test_what_stands_in_a_conditional_is_not_reached(self):
        self.assertEqual(self.prefix("#include <string>\n#if defined(X)\n#include <vector>\n#endif\n"), {"string"})
        self.assertEqual(self.prefix('#include <string>\n#ifdef X\n#if Y\n#endif\n#include "other.h"\n#endif\n',
                                     other="#include <vector>\n"), {"string"})

    def test_what_stands_behind_a_conditional_is_reached(self):
        for conditional in ("#if X\n#endif\n", "#ifdef X\n#if Y\n#include <map>\n#endif\n#else\n#endif\n"):
            self.assertEqual(self.prefix(f"#include <string>\n{conditional}#include <vector>\n"), {"string", "vector"}, conditional)

    def test_the_program_writes_the_lists_and_names_one_for_each_header(self):
        (self.root / "ci").mkdir()
        (self.root / "lists").mkdir()
        shutil.copy(header_prefix.__file__, self.root / "ci/header_prefix.py")
        texts = {"none.h": "", **{f"of_{at}.h": "".join(f"#include <{name}>\n" for name in prefix) for at, prefix in enumerate(header_prefix.PREFIXES) if all("/" not in n for n in prefix)}}
        for name, text in texts.items():
            (self.root / name).write_text(text)
        said = subprocess.run([sys.executable, "-B", "ci/header_prefix.py", "lists"], cwd=self.root, input="".join(f"{name}\n" for name in texts),
                              text=True, capture_output=True, check=True).stdout  # fmt: skip
        self.assertEqual(said.splitlines(), [f"{name[3:-2].strip('_') if name != 'none.h' else '-'} {name}" for name in texts])
        for at, prefix in enumerate(header_prefix.PREFIXES):
            self.assertEqual((self.root / f"lists/{at}.h").read_text().split(), [word for name in sorted(prefix) for word in ("#include", f"<{name}>")])


if __name__ == "__main__":
    unittest.main()
