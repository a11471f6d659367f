#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Registers, stack and static shared memory of every compiled kernel, against a committed table.

Usage: kernel_figures.py [--write] [--only ARCH [--record]] [BINARY] [TABLE]
       kernel_figures.py --unchanged ARCH
BINARY (build/cuda/assay) is any program or object with the kernels in it, TABLE
kernels/decode/figures.csv. Fails (exit code 1) when a kernel uses stack or local memory, when a
block of it does not fit into the registers of an SM, when the figures differ from the table, or when
the stripped binary is larger than MAX_BYTES. --only sm_90: of one architecture, which is all that BINARY
holds. --write makes the table from the binary.

--record has ninja bring the binary up to date, and notes in kernels/decode/figures.sources from which sources, with which
nvcc and with which table it was compared. --unchanged says by exit code 0 that all are still those: nothing needs to be
compiled then to know the figures.

Reads the cubins inside the binary itself, because cuobjdump does not come with every toolkit that
can compile: .nv_fatbin holds fat binaries, these one cubin per architecture (plain or zstd), a cubin
is an ELF file whose .nv.info sections name the figures.
"""
import csv
import ctypes
import hashlib
import io
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

BINARY, TABLE, RECORD = "build/cuda/assay", "kernels/decode/figures.csv", "kernels/decode/figures.sources"
NOT_COMPILED = ("/tests/", "/simt/", "kernels/bench/", "kernels/torch/")  # by nvcc, into the library
MAX_BYTES = 40 << 20  # stripped; the kernels compress to 32 MB, and their PTX
SM_REGISTERS = 65536
SHOWN = 20  # faults
COLUMNS = ["arch", "kernel", "arguments", "threads", "registers", "stack", "shared"]
FATBIN_MAGIC, KIND_ELF, ZSTD_MAGIC = 0xBA55ED50, 2, b"\x28\xb5\x2f\xfd"
# Attributes of .nv.info: name -> id. Values are {symbol, number}; of MAX_THREADS {x, y, z}.
REGISTERS, FRAME_SIZE, MIN_STACK, MAX_THREADS = 0x2F, 0x11, 0x12, 0x05


class Elf:
    """Sections and symbols of a 64-bit little-endian ELF image. An absent section is empty."""

    def __init__(self, data):
        if data[:6] != b"\x7fELF\x02\x01":
            sys.exit("kernel_figures: not a 64-bit ELF file")
        self.data = data
        (table,) = struct.unpack_from("<Q", data, 40)
        size, count, names = struct.unpack_from("<HHH", data, 58)
        headers = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * size) for i in range(count)]
        self.sections = {self.string(headers[names][4] + h[0]): h for h in headers}
        self.headers = headers

    def string(self, at):
        return self.data[at : self.data.index(b"\0", at)].decode()

    def body(self, name):
        if name not in self.sections:
            return b""
        h = self.sections[name]
        return self.data[h[4] : h[4] + h[5]]

    def symbols(self):
        strings = self.headers[self.sections[".symtab"][6]][4]
        return [self.string(strings + s[0]) for s in struct.iter_unpack("<I20x", self.body(".symtab"))]


def decompressed(data, size):
    if data[:4] != ZSTD_MAGIC:
        return data
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    out = ctypes.create_string_buffer(size)
    got = zstd.ZSTD_decompress(out, ctypes.c_size_t(size), data, ctypes.c_size_t(len(data)))
    if got != size:
        sys.exit("kernel_figures: a cubin cannot be decompressed")
    return out.raw


def cubins(fatbins):
    """(architecture, cubin) of every fat binary in a .nv_fatbin section."""
    at = 0
    while at + 16 <= len(fatbins):
        magic, _, header, size = struct.unpack_from("<IHHQ", fatbins, at)
        if magic != FATBIN_MAGIC:  # padding between two
            at += 8
            continue
        entry, end = at + header, at + header + size
        while entry < end:
            kind, _, head, payload, packed = struct.unpack_from("<HHIQI", fatbins, entry)
            (arch,) = struct.unpack_from("<I", fatbins, entry + 28)
            (unpacked,) = struct.unpack_from("<Q", fatbins, entry + 56)
            if kind == KIND_ELF:
                body = fatbins[entry + head : entry + head + (packed or payload)]
                yield arch, decompressed(body, unpacked)
            entry += head + payload
        at = end


def attributes(info):
    """(id, words) of the attributes with a body of whole words in a .nv.info section."""
    at = 0
    while at + 4 <= len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if form == 4:
            yield attribute, struct.unpack_from(f"<{size // 4}I", info, at)
            at += size


def kernels(arch, cubin):
    """Rows of a cubin, names still mangled."""
    elf = Elf(cubin)
    symbols = elf.symbols()
    names = [name[6:] for name in elf.sections if name.startswith(".text.")]
    figures = {name: dict.fromkeys(COLUMNS, 0) for name in names}
    for name, row in figures.items():
        row.update(arch=f"sm_{arch}", kernel=name)
        if ".nv.shared." + name in elf.sections:
            row["shared"] = elf.sections[".nv.shared." + name][5]
        if ".nv.local." + name in elf.sections:
            row["stack"] = elf.sections[".nv.local." + name][5]
        for attribute, words in attributes(elf.body(".nv.info." + name)):
            if attribute == MAX_THREADS:
                row["threads"] = words[0] * words[1] * words[2]
    for attribute, words in attributes(elf.body(".nv.info")):
        if attribute not in (REGISTERS, FRAME_SIZE, MIN_STACK) or symbols[words[0]] not in figures:
            continue
        row = figures[symbols[words[0]]]
        column = "registers" if attribute == REGISTERS else "stack"
        row[column] = max(row[column], words[1])
    return figures.values()


def demangle(rows):
    """Splits names like paged_attention_v2<DecodeCore<DecodeTypes<bf16, e4m3>, 128, 2, 8, true> >."""
    mangled = "\n".join(row["kernel"] for row in rows)
    names = subprocess.run(["c++filt"], input=mangled, capture_output=True, text=True, check=True).stdout
    for row, name in zip(rows, names.splitlines()):
        name = name.partition("(assay::")[0]  # the parameters
        row["kernel"], _, arguments = re.sub(r"^void |\w+::|\(\w+\)", "", name).partition("<")
        row["arguments"] = " ".join(re.findall(r"\b(?!Decode|\w+Core\b)\w+", arguments))


def read_binary(path):
    with open(path, "rb") as f:
        elf = Elf(f.read())
    rows = [row for arch, cubin in cubins(elf.body(".nv_fatbin")) for row in kernels(arch, cubin)]
    rows = [row for row in rows if "6n_cuda" in row["kernel"]]  # not those of the bench
    demangle(rows)
    if not rows:
        sys.exit(f"kernel_figures: no kernel in {path}")
    # A kernel that several files instantiate is there several times.
    return sorted({tuple(str(row[c]) for c in COLUMNS) for row in rows}, key=sort_key)


def sort_key(row):
    parts = [row[1], *row[2].split(), row[0]]
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts]


def stripped_bytes(path):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "stripped")
        subprocess.run(["strip", "-o", out, path], check=True)
        return os.path.getsize(out)


def shown(figures):
    if figures is None:
        return "absent"
    return ", ".join(f"{column} {value}" for column, value in zip(COLUMNS[3:], figures))


def faults(rows, table, size):
    """What is wrong, a line each."""
    for row in rows:
        name = f"{row[0]} {row[1]} <{row[2]}>"
        threads, registers, stack = map(int, row[3:6])
        if stack:
            yield f"{name}: {stack} bytes of stack or local memory, expected none"
        if (registers + 7) // 8 * 8 * threads > SM_REGISTERS:
            yield f"{name}: {registers} registers x {threads} threads, an SM has {SM_REGISTERS}"
    old, new = ({tuple(r[:3]): tuple(r[3:]) for r in t} for t in (table, rows))
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key):
            yield f"{key[0]} {key[1]} <{key[2]}>: {shown(new.get(key))}; table: {shown(old.get(key))}"
    if size > MAX_BYTES:
        yield f"{size} bytes stripped, the limit is {MAX_BYTES}"


def sources():
    """Everything of the tree that decides what nvcc makes of the kernels."""
    listed = subprocess.run(["git", "ls-files", "kernels", "ci/cmake", "CMakeLists.txt", "CMakePresets.json"], capture_output=True, text=True, check=True).stdout.split()
    suffixes = (".h", ".cuh", ".cu", ".inl", ".def", ".in", ".cmake", "CMakeLists.txt", "CMakePresets.json")
    return [name for name in listed if name.endswith(suffixes) and not any(part in name for part in NOT_COMPILED)]


def state_of_sources():
    """The version of nvcc, and a digest of the sources and of the table."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    said = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    digest = hashlib.sha256()
    for name in [*sources(), TABLE]:
        with open(name, "rb") as f:
            digest.update(name.encode() + b"\0" + hashlib.sha256(f.read()).digest())
    return re.search(r"V[\d.]+", said)[0], digest.hexdigest()


def recorded():
    """{architecture: (nvcc, digest)}"""
    if not os.path.exists(RECORD):
        return {}
    with open(RECORD) as f:
        return {arch: (nvcc, digest) for arch, nvcc, digest in map(str.split, f)}


def build(binary):
    """Has ninja build a binary anew where a source has changed."""
    path = os.path.realpath(binary)
    folder = os.path.dirname(path)
    while not os.path.exists(os.path.join(folder, "build.ninja")):
        if folder == os.path.dirname(folder):
            sys.exit(f"kernel_figures: {binary} lies in no folder of a build: nobody knows of which sources it is")
        folder = os.path.dirname(folder)
    subprocess.run(["ninja", "-C", folder, os.path.relpath(path, folder)], stdout=subprocess.DEVNULL, check=True)


def record(arch):
    """Notes today's sources as those of the binary that was compared."""
    rows = {**recorded(), arch: state_of_sources()}
    with open(RECORD, "w") as f:
        f.writelines(f"{name} {nvcc} {digest}\n" for name, (nvcc, digest) in sorted(rows.items()))


def main():
    if sys.argv[1:2] == ["--unchanged"] and len(sys.argv) == 3:
        sys.exit(recorded().get(sys.argv[2]) != state_of_sources())
    arguments = [a for a in sys.argv[1:] if a not in ("--write", "--record")]
    only = None
    if "--only" in arguments[:-1]:
        at = arguments.index("--only")
        only = arguments[at + 1]
        del arguments[at : at + 2]
    if "--write" in sys.argv and only:
        sys.exit("kernel_figures: --write takes a binary of every architecture, not --only")
    if len(arguments) > 2 or any(a.startswith("-") for a in arguments) or "--record" in sys.argv and not only:
        sys.exit(__doc__)
    binary, table_path = (arguments + [BINARY, TABLE][len(arguments) :])[:2]
    if "--record" in sys.argv:
        build(binary)
    rows = read_binary(binary)
    if "--write" in sys.argv:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([COLUMNS, *rows])
        with open(table_path, "w") as f:
            f.write(text.getvalue())
    with open(table_path) as f:
        table = [row for row in list(csv.reader(f))[1:] if only in (None, row[0])]
    size = stripped_bytes(binary)
    found = list(faults(rows, table, size))
    for line in found[:SHOWN]:
        print("figures:", line)
    if len(found) > SHOWN:
        print(f"and {len(found) - SHOWN} more")
    if found:
        print(f"{len(found)} faults; figures meant to change: ci/kernel_figures.py --write, commit {table_path}")
        sys.exit(1)
    if "--record" in sys.argv:
        record(only)
    most = max(int(row[4]) for row in rows)
    print(
        f"figures of {len(rows)} kernels as in {table_path}: no stack, {most} registers at most; "
        f"{size / 1e6:.1f} MB stripped"
    )


if __name__ == "__main__":
    main()
