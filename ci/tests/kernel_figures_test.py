#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kernel_figures.py sees a kernel that spills, one that no SM can launch, and one that the table has otherwise."""
import contextlib
import ctypes
import io
import os
import pathlib
import struct
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import kernel_figures  # noqa: E402


def said(threads=256, registers=64, stack=0, table=None, size=0):
    row = ["sm_90a", "kernel", "64", str(threads), str(registers), str(stack), "0"]
    return list(kernel_figures.faults([row], [row if table is None else table], size))


def elf(sections, symbols=()):
    """A 64-bit ELF image of sections {name: bytes}."""
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in symbols)
    table = b"".join(struct.pack("<I20x", strings.index(name.encode() + b"\0")) for name in symbols)
    bodies = {**sections, ".strtab": strings, ".symtab": table, ".shstrtab": b""}
    names = b"".join(name.encode() + b"\0" for name in bodies)
    bodies[".shstrtab"] = names
    data, headers = b"", b""
    for name, body in bodies.items():
        link = list(bodies).index(".strtab") if name == ".symtab" else 0
        headers += struct.pack("<IIQQQQIIQQ", names.index(name.encode() + b"\0"), 1, 0, 0, 64 + len(data), len(body), link, 0, 0, 0)
        data += body
    head = b"\x7fELF\x02\x01".ljust(40, b"\0") + struct.pack("<Q", 64 + len(data)) + bytes(10) + struct.pack("<HHH", 64, len(bodies), len(bodies) - 1)
    return head + data + headers


def info(*attributes):
    return b"\x01\x30\x00\x00" + b"".join(struct.pack(f"<BBH{len(words)}I", 4, number, 4 * len(words), *words) for number, *words in attributes)


def zstd(body):
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_compress.restype = ctypes.c_size_t
    out = ctypes.create_string_buffer(len(body) + 1000)
    size = library.ZSTD_compress(out, ctypes.c_size_t(len(out)), body, ctypes.c_size_t(len(body)), 3)
    return out.raw[:size]


def fatbin(*entries):
    """Of (kind, architecture, body) each; those of an architecture above 99 are compressed, with padding behind them."""
    parts = b""
    for kind, arch, body in entries:
        packed = zstd(body) if arch > 99 else b""
        parts += struct.pack("<HHIQI8xI24xQ", kind, 0, 64, len(packed) + 7 if packed else len(body), len(packed), arch, len(body)) + (packed + bytes(7) if packed else body)
    return struct.pack("<IHHQ", kernel_figures.FATBIN_MAGIC, 1, 16, len(parts)) + parts


ONE, TWO = "_ZN5assay6n_cuda3oneILi64EEEvNS_1PE", "_ZN5assay6n_cuda3twoENS_1PE"


class Binary(unittest.TestCase):
    def rows(self, *fatbins):
        with tempfile.NamedTemporaryFile() as file:
            file.write(elf({".nv_fatbin": b"".join(fatbins)}))
            file.flush()
            return kernel_figures.read_binary(file.name)

    def test_figures_are_read(self):
        symbols = [TWO, "device_function", ONE, "_Z5benchv"]
        of_all = info((0x2F, 2, 40), (0x11, 2, 8), (0x12, 2, 24), (0x2F, 0, 255), (0x12, 0, 0), (0x11, 1, 99), (0x2F, 1, 99), (0x30, 2, 99))
        cubin = elf({f".text.{ONE}": b"x", f".text.{TWO}": b"x", ".text._Z5benchv": b"x", ".nv.info": of_all, f".nv.info.{ONE}": info((0x05, 128, 2, 2), (0x06, 7, 7)),
                     f".nv.shared.{TWO}": bytes(32), f".nv.local.{TWO}": bytes(16)}, symbols)
        spilt = [["sm_90", "one", "64", "512", "40", "24", "0"], ["sm_90", "two", "", "0", "255", "16", "32"]]
        twice = [("sm_80", *row[1:]) for row in spilt] + [tuple(row) for row in spilt]
        read = self.rows(bytes(8), fatbin((1, 70, b"ptx"), (2, 80, cubin)), bytes(8), fatbin((2, 90, cubin)), fatbin((2, 90, cubin)))
        self.assertEqual(read, sorted(twice, key=lambda row: (row[1], row[0])))
        packed = self.rows(fatbin((2, 120, cubin), (1, 70, b"ptx"), (2, 90, cubin)))
        self.assertEqual(packed, [(arch, *row[1:]) for row in spilt for arch in ("sm_120", "sm_90")])
        broken = fatbin((2, 120, cubin)).replace(struct.pack("<Q", len(cubin)), struct.pack("<Q", len(cubin) + 1))
        self.assertRaisesRegex(SystemExit, "cannot be decompressed", self.rows, broken)

    def test_attributes_end_with_their_section(self):
        self.assertEqual(list(kernel_figures.attributes(b"\x03\x11\x00\x00" + info((7, 1, 2), (9,)))), [(7, (1, 2)), (9, ())])

    def test_what_is_no_binary_is_refused(self):
        self.assertRaisesRegex(SystemExit, "not a 64-bit ELF", kernel_figures.Elf, b"\x7fELF\x01\x01" + bytes(99))
        self.assertRaisesRegex(SystemExit, "no kernel in", self.rows, fatbin((2, 90, elf({".text._Z5benchv": b"x"}))))

    def test_rows_are_in_the_order_of_numbers(self):
        rows = [("a", "k", "128", "1"), ("a", "k", "64", "1"), ("b", "k", "64", "1"), ("a", "j", "x", "1")]
        self.assertEqual([rows.index(row) for row in sorted(rows, key=kernel_figures.sort_key)], [3, 1, 2, 0])


class Faults(unittest.TestCase):
    def test_registers_are_given_out_in_eights(self):
        self.assertEqual(said(256, 256), [])
        self.assertEqual(len(said(257, 249)), 1)
        self.assertEqual(len(said(520, 121)), 1)  # 62,920 as they are, 66,560 in eights

    def test_what_else_is_a_fault(self):
        self.assertIn("8 bytes of stack", said(stack=8)[0])
        self.assertIn("absent", said(table=["sm_90a", "another", "64", "1", "1", "0", "0"])[0])
        self.assertEqual([len(said(size=size)) for size in (0, kernel_figures.MAX_BYTES, kernel_figures.MAX_BYTES + 1)], [0, 0, 1])
        self.assertIn("stripped", said(size=1 << 40)[0])

    def test_a_kernel_that_is_gone_is_a_fault(self):
        gone = ["sm_90a", "another", "64", "256", "40", "0", "8"]
        self.assertEqual(list(kernel_figures.faults([], [gone], 0)),
                         ["sm_90a another <64>: absent; table: threads 256, registers 40, stack 0, shared 8"])

    def test_the_program_ends_with_what_is_wrong(self):
        row = ("sm_90a", "kernel", "64", "256", "64", "0", "0")
        with tempfile.NamedTemporaryFile("w+") as table:
            for words, stack, code, said in (((), "0", 1, "absent"), (("--write",), "0", None, "figures of 1 kernels as in"), ((), "0", None, "64 registers at most"),
                                             ((), "8", 1, "2 faults"), (("--write",), "8", 1, "8 bytes of stack"), (("--wrte",), "0", "Registers", "")):
                read = mock.patch.multiple(kernel_figures, read_binary=lambda path: [(*row[:5], stack, row[6])], stripped_bytes=lambda path: 9)  # noqa: B023
                with read, mock.patch.object(sys, "argv", ["x", *words, "binary", table.name]), contextlib.redirect_stdout(io.StringIO()) as printed:
                    try:
                        ended = kernel_figures.main()
                    except SystemExit as error:
                        ended = error.code if isinstance(error.code, int) else error.code.split()[0].rstrip(",")
                self.assertEqual(ended, code, words)
                self.assertIn(said, printed.getvalue())

    def test_words_of_the_program(self):
        rows = [(arch, "kernel", str(dims), "256", "64", "0", "0") for arch in ("sm_80", "sm_90") for dims in range(24)]

        def ran(*words, table=rows, binary=rows):
            """(what it ends with, lines that it prints, the files that it reads, the table afterwards)."""
            read, printed = [], io.StringIO()
            with tempfile.NamedTemporaryFile("w+") as file:
                file.write("".join(",".join(row) + "\n" for row in [kernel_figures.COLUMNS, *table]))
                file.flush()
                patched = mock.patch.multiple(kernel_figures, read_binary=lambda path: read.append(path) or binary, stripped_bytes=lambda path: read.append(path) or 2_000_000, TABLE=file.name)
                with patched, mock.patch.object(sys, "argv", ["x", *words]), contextlib.redirect_stdout(printed):
                    try:
                        code = kernel_figures.main()
                    except SystemExit as error:
                        code = error.code
                return code, printed.getvalue().splitlines(), read, pathlib.Path(file.name).read_text().splitlines()

        code, lines, read, _ = ran()
        self.assertEqual((code, read), (None, ["build/cuda/assay"] * 2))
        self.assertRegex(lines[0], "^figures of 48 kernels as in .*: no stack, 64 registers at most; 2.0 MB stripped$")
        self.assertEqual(ran("--only", "sm_90", "other", binary=rows[24:])[::2], (None, ["other"] * 2))
        self.assertEqual(ran("--only", "sm_80", binary=rows[24:])[0], 1)
        code, lines, _, _ = ran(table=rows[:25])
        self.assertEqual((code, len(lines), lines[20], lines[21][:9]), (1, 22, "and 3 more", "23 faults"))
        self.assertEqual(len(ran(table=rows[:28])[1]), 21)
        self.assertEqual(ran("--write", table=rows[:3])[::3], (None, [",".join(row) for row in [kernel_figures.COLUMNS, *rows]]))
        for words, said in ((("--write", "--only", "sm_90"), "not --only"), (("a", "b", "c"), "Usage"), (("--only",), "Usage")):
            code, _, read, table = ran(*words, table=rows[:3])
            self.assertIn(said, code)
            self.assertEqual((read, len(table)), ([], 4))



class Sources(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.source, self.binary = self.folder / "kernel.cuh", self.folder / "library.so"
        self.source.write_text("one")
        nvcc = self.folder / "nvcc"
        nvcc.write_text("#!/bin/sh\necho 'release 13.0, V13.0.88'\n")
        nvcc.chmod(0o755)
        self.nvcc = nvcc
        self.table = self.folder / "figures.csv"
        self.table.write_text("sm_90,kernel,64,256,64,0,0")
        for name, value in (("RECORD", str(self.folder / "record")), ("TABLE", str(self.table)), ("sources", lambda: [str(self.source)])):
            self.enterContext(mock.patch.object(kernel_figures, name, value))
        self.enterContext(mock.patch.object(kernel_figures.shutil, "which", lambda _: str(nvcc)))

    def unchanged(self, arch="sm_90"):
        with mock.patch.object(sys, "argv", ["kernel_figures.py", "--unchanged", arch]), self.assertRaises(SystemExit) as ended:
            kernel_figures.main()
        return not ended.exception.code

    def test_a_source_the_table_another_nvcc_and_what_was_never_recorded_are_seen(self):
        self.assertFalse(self.unchanged())
        kernel_figures.record("sm_90")
        self.assertTrue(self.unchanged())
        self.assertFalse(self.unchanged("sm_80"))
        self.source.write_text("two")
        self.assertFalse(self.unchanged())
        self.source.write_text("one")
        self.assertTrue(self.unchanged())
        figures = self.table.read_text()
        self.table.write_text(figures.replace("64,0,0", "65,0,0"))
        self.assertFalse(self.unchanged())
        self.table.write_text(figures)
        self.assertTrue(self.unchanged())
        self.nvcc.write_text("#!/bin/sh\necho 'release 13.1, V13.1.5'\n")
        self.assertFalse(self.unchanged())

    def test_what_is_recorded_was_built_of_today_s_sources(self):
        with self.assertRaisesRegex(SystemExit, "lies in no folder of a build"):
            kernel_figures.build(self.binary)
        (self.folder / "build.ninja").touch()
        inside = self.folder / "kernels/library.so"
        inside.parent.mkdir()
        inside.touch()
        with mock.patch.object(kernel_figures.subprocess, "run") as ran:
            kernel_figures.build(inside)
        self.assertEqual(ran.call_args[0][0], ["ninja", "-C", os.path.realpath(self.folder), "kernels/library.so"])
        self.assertTrue(ran.call_args[1]["check"])

    def test_the_tree_has_sources_of_kernels_and_none_of_tests(self):
        listed = self.real_sources()
        self.assertIn("kernels/decode/paged_attention_v2.cuh", listed)
        self.assertIn("kernels/decode/instantiations.def", listed)
        self.assertFalse([name for name in listed if "/tests/" in name or "/simt/" in name])

    @staticmethod
    def real_sources(real=kernel_figures.sources):
        return real()


if __name__ == "__main__":
    unittest.main()
