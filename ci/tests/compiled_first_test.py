#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""That a header counts as compiled alone only where nothing stood in front of it, and an object came of it."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import compiled_first  # noqa: E402


class First(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in ("a.h", "b.h"):
            (self.root / name).write_text("#pragma once\n")

    def headers(self, text, name="x.cpp", include=None, built=True):
        """What counts once a file of that text was compiled."""
        (self.root / name).write_text(text)
        if built:
            (self.root / "x.o").write_text("")
        unit = {"directory": str(self.root), "file": str(self.root / name),
                "command": f"clang++ -I{include or self.root} -o x.o -c {name}"}
        return compiled_first.compiled_first([unit], self.root)

    def test_the_first_alone(self):
        self.assertEqual(self.headers('// A comment.\n#include "a.h"\n#include "b.h"\n'), {"a.h"})

    def test_nothing_behind_something(self):
        self.assertEqual(self.headers('#include <vector>\n#include "a.h"\n'), set())
        self.assertEqual(self.headers('#define X 1\n#include "a.h"\n'), set())
        self.assertEqual(self.headers('#ifdef X\n#include "a.h"\n#endif\n'), set())

    def test_of_several_files_the_first(self):
        (self.root / "one.cpp").write_text('#include "a.h"\n')
        (self.root / "two.cpp").write_text('#include "b.h"\n')
        self.assertEqual(self.headers(f'#include "{self.root}/one.cpp"\n#include "{self.root}/two.cpp"\n', "unity.cxx"), {"a.h"})

    def test_not_what_was_not_built_or_was_another(self):
        self.assertEqual(self.headers('#include "a.h"\n', built=False), set())
        self.assertEqual(self.headers('#include "a.h"\n', include="/tmp/others"), set())
        self.assertEqual(self.headers('#include "a.h"\n', include=f"/tmp/others -I{self.root}"), set())
        self.assertEqual(self.headers('#include "a.h"\n', include=f"{self.root} -I/tmp/others"), {"a.h"})
        self.assertEqual(self.headers('#include "a.h"\n', name="x.c"), set())

    def test_the_program_prints_those_of_a_build(self):
        (self.root / "ci").mkdir()
        shutil.copy(compiled_first.__file__, self.root / "ci/compiled_first.py")
        units = []
        for name in "ba":
            (self.root / f"{name}.cpp").write_text(f'#include "{name}.h"\n')
            (self.root / f"{name}.o").write_text("")
            units.append({"directory": str(self.root), "file": f"{self.root}/{name}.cpp", "command": f"c++ -I{self.root} -o {name}.o -c {name}.cpp"})
        (self.root / "compile_commands.json").write_text(json.dumps(units))
        command = [sys.executable, "-B", self.root / "ci/compiled_first.py", self.root]
        self.assertEqual(subprocess.run(command, text=True, capture_output=True, check=True).stdout, "a.h\nb.h\n")


if __name__ == "__main__":
    unittest.main()
