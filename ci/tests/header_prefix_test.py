#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""That nothing is precompiled in front of a header which it does not reach itself."""
import pathlib
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


if __name__ == "__main__":
    unittest.main()
