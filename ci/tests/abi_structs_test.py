#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The files that ci/abi_structs.py has written: they are current, and laid out as the C compiler lays out the headers."""
import ctypes
import importlib.util
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import abi_structs  # noqa: E402


def structs_of(file):
    """{name in C: struct in Python} of one of the files."""
    spec = importlib.util.spec_from_file_location("module", abi_structs.ROOT / file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    headers, wanted, _ = abi_structs.FILES[file]
    return {name: getattr(module, abi_structs.python_name(name)) for name, _ in abi_structs.bodies(abi_structs.text_of(headers), wanted)}


def otherwise(structs, header):
    """Fields whose place or size, or whose struct's size, are not what the C compiler makes of the header."""
    ours, asked = {}, []
    for name, struct in structs.items():
        for field, _ in struct._fields_:
            at = getattr(struct, field)
            ours[f"{name}.{field}"] = f"{at.offset} {at.size} {ctypes.sizeof(struct)}"
            asked.append(f'printf("{name}.{field} %zu %zu %zu\\n", offsetof({name}, {field}), sizeof(({name} *)0)->{field}, sizeof({name}));')
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder, "layout.c"), pathlib.Path(folder, "layout")
        includes = f'#include <stddef.h>\n#include <stdio.h>\n#include "{header}"\n'
        source.write_text(includes + "int main(void) {\n" + "\n".join(asked) + "\nreturn 0;\n}\n")
        subprocess.run(["cc", "-I", abi_structs.HEADERS, source, "-o", program], check=True)
        theirs = dict(line.split(" ", 1) for line in subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines())
    return [field for field in theirs if theirs[field] != ours[field]]


class AbiStructsTest(unittest.TestCase):
    def test_files_are_what_the_headers_say(self):
        for file, what in abi_structs.FILES.items():
            self.assertEqual((abi_structs.ROOT / file).read_text(), abi_structs.python_of(*what), f"{file}: run ci/abi_structs.py")

    def test_the_program_writes_them(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            shutil.copytree(abi_structs.HEADERS, root / "kernels/abi")
            for file in ("ci/abi_structs.py", *abi_structs.FILES):
                (root / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(abi_structs.__file__, root / "ci/abi_structs.py")
            subprocess.run([sys.executable, "-B", root / "ci/abi_structs.py"], check=True)
            self.assertEqual([(root / file).read_text() for file in abi_structs.FILES], [(abi_structs.ROOT / file).read_text() for file in abi_structs.FILES])

    def test_structs_are_laid_out_as_by_the_compiler(self):
        for file, (headers, *_) in abi_structs.FILES.items():
            structs = structs_of(file)
            self.assertGreaterEqual(len(structs), 7)
            self.assertEqual(otherwise(structs, headers[-1]), [])

    def test_a_wrong_field_is_seen(self):
        wide = type("Wide", (ctypes.Structure,), {"_fields_": [("version", ctypes.c_int64), ("even_lengths", ctypes.c_int32)]})
        self.assertEqual(otherwise({"assay_paged_choice": wide}, "assay.h"), ["assay_paged_choice.version", "assay_paged_choice.even_lengths"])


if __name__ == "__main__":
    unittest.main()
