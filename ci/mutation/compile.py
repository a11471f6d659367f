# SPDX-License-Identifier: Apache-2.0
"""What the compiler says of mutants: which do not compile, and which are the same machine code."""
import itertools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[2]
#: Folders whose instantiations the build of the mutants has a list of its own of.
PARTS = ("decode", "cascade", "tree")
TARGETS = re.compile(r"assay_(mutants|mutated_calls)\.dir/")
LOCATION = re.compile(r"^(/[^:]+):(\d+):(\d+): (fatal error|error|note): ")
ACTIVE = re.compile(r"is_active\((\d+)\)")


def units(build):
    """(source, command without launcher, output and source) of everything that holds mutants."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if not TARGETS.search(entry["command"]):
            continue
        words = shlex.split(entry["command"])
        first = next(i for i, word in enumerate(words) if pathlib.Path(word).name.startswith(("clang", "g++", "c++")))
        words = words[first:]
        out = words.index("-o")
        kept = words[:out] + words[out + 2:]
        kept.remove("-c")
        kept.remove(entry["file"])
        yield entry["file"], kept


def tree_of(command):
    """The folder of instrumented headers that a command includes first."""
    return pathlib.Path(next(word for word in command if word.startswith("-I")).removeprefix("-I"))


def instrument(folders, out):
    """Runs the generator of schemata; the names of the mutants by number."""
    script = [sys.executable, ROOT / "ci/make_schemata.py", ",".join(map(str, folders)), ROOT, out]
    subprocess.run(script, check=True)
    rows = re.findall(r'^\{(\d+), "([^"]+)"', (out / "mutant_table.inc").read_text(), re.M)
    return {int(number): name for number, name in rows}


def check_syntax(source, command, tree, of_build):
    """What the compiler writes of one unit over another instrumented tree."""
    text = [word.replace(str(of_build), str(tree)) for word in command]
    # g++ looks at syntax alone without what templates become.
    clang = "clang" in pathlib.Path(command[0]).name
    look = ["-fsyntax-only", "-ferror-limit=0"] if clang else ["-S", "-O0", "-g0", "-o", "/dev/null"]
    run = subprocess.run([*text, *look, "-w", "-x", "c++", source.replace(str(of_build), str(tree))],
                         capture_output=True, text=True)
    return run.stderr if run.returncode else ""


def suspects(messages, tree, names):
    """For every error the mutants near it, the likeliest first."""
    found, taken = [], False
    for line in messages.splitlines():
        match = LOCATION.match(line)
        if match is None:
            continue
        if "error" in match[4]:
            taken = False
        if taken or not match[1].startswith(str(tree)):
            continue
        taken = True
        text = pathlib.Path(match[1]).read_text()
        at = sum(map(len, text.splitlines(True)[: int(match[2]) - 1])) + int(match[3]) - 1
        places = [(m.start(), int(m[1])) for m in ACTIVE.finditer(text)]
        before = [number for place, number in places if place <= at][::-1][:6]
        behind = [number for place, number in places if place > at][:6]
        order = before[:1] + [n for pair in zip(before[1:] + [0] * 6, behind + [0] * 6) for n in pair if n]
        found.append(tuple(names[n] for n in order))
    return set(found)


class Viability:
    """Finds the mutants of a folder that do not compile, each confirmed by compiling it alone."""

    def __init__(self, folder, build):
        self.folder, self.units = folder, sorted(units(build))
        self.of_build = tree_of(self.units[0][1])
        self.alone = {}  # by name and source of a unit: whether it compiles

    def errors(self, folder, tree, units):
        """(names of the mutants by number, what is said of each of these units); the stubs of the host side stand in the tree of
        the build."""
        names = instrument([folder], tree)
        if (self.of_build / "calls").is_dir() and not (tree / "calls").exists():
            (tree / "calls").symlink_to(self.of_build / "calls")
        for part in PARTS:
            target = tree / f"kernels/{part}/instantiations.def"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text((self.of_build / f"kernels/{part}/instantiations.def").read_text())
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return names, list(pool.map(lambda u: check_syntax(*u, tree, self.of_build).strip(), units))

    def compiles_alone(self, name, unit):
        key = name, unit[0]
        if key not in self.alone:
            with tempfile.TemporaryDirectory() as folder:
                only = pathlib.Path(folder) / "only"
                only.mkdir()
                (only / f"{name}.mutant").write_text((self.folder / f"{name}.mutant").read_text())
                self.alone[key] = not any(self.errors(only, pathlib.Path(folder) / "tree", [unit])[1])
        return self.alone[key]

    def drop(self):
        """Moves what does not compile to FOLDER/unviable; returns the names."""
        (self.folder / "unviable").mkdir(exist_ok=True)
        dropped = []
        while True:
            with tempfile.TemporaryDirectory() as folder:
                tree = pathlib.Path(folder)
                names, messages = self.errors(self.folder, tree, self.units)
                if not any(messages):
                    return dropped
                groups = [(unit, group) for unit, said in zip(self.units, messages) for group in suspects(said, tree, names)]
            guilty = set()
            for unit, group in groups:
                if guilty.isdisjoint(group):  # else the next round tells
                    guilty.update(itertools.islice((n for n in group if not self.compiles_alone(n, unit)), 1))
            if not guilty:
                sys.exit("mutation: an error that no mutant makes alone\n" + "\n".join(messages).strip()[:2000])
            for name in sorted(guilty):
                (self.folder / f"{name}.mutant").rename(self.folder / "unviable" / f"{name}.mutant")
            dropped += sorted(guilty)
            print(f"do not compile: {len(dropped)}", flush=True)


class SameCode:
    """Whether a mutant, written into the source itself, changes what the compiler makes of it. Each object has sources of its
    own, told by `number`: several may be asked side by side."""

    def __init__(self, build, number=0):
        self.units = sorted(units(build), key=lambda unit: (any(part in unit[0] for part in PARTS), unit[0]))
        self.of_build = tree_of(self.units[0][1])
        self.plain = self.of_build / f"plain{number}"  # the sources with no mutant or one, always under the same paths
        self.right, self.read = {}, {}  # by unit: object code, and what it includes
        shutil.rmtree(self.plain, ignore_errors=True)
        shutil.copytree(ROOT / "kernels", self.plain / "kernels")
        for part in PARTS:
            shutil.copy(self.of_build / f"kernels/{part}/instantiations.def", self.plain / f"kernels/{part}")
        (self.plain / "mutant_table.inc").write_text('{1, "none", "", "", "", false, ""},\n')
        (self.plain / "mutant_omitted.inc").write_text("")

    def run(self, unit, *what):
        source, command = unit
        plain = [word for word in command[1:] if word != f"-I{self.of_build}" and not word.startswith("-g")]
        return subprocess.run([command[0], f"-I{self.plain}", *plain, "-w", "-g0", *what, "-include", "corpus/mutants/active.h",
                               "-x", "c++", source], check=True, capture_output=True, text=True).stdout

    def code(self, unit):
        out = self.plain / "unit.o"
        self.run(unit, "-c", "-o", out)
        return out.read_bytes()

    def includes(self, unit, file):
        if unit[0] not in self.read:
            self.read[unit[0]] = self.run(unit, "-MM")
        return str(self.plain / file) in self.read[unit[0]]

    def right_code(self, unit):
        if unit[0] not in self.right:
            self.right[unit[0]] = self.code(unit)
        return self.right[unit[0]]

    def equal(self, mutant):
        """mutant: the fields of its file."""
        file, at = mutant["file"], int(mutant["at"])
        text = (ROOT / file).read_text()
        pattern = r"\s*".join(re.escape(t) for t in re.findall(r"\w+|[^\w\s]", mutant["find"]))
        end = re.compile(pattern).match(text, at).end()
        lines = "\n" * text[at:end].count("\n")  # what is behind keeps its line
        replacement = f"{{ {mutant['replace']} }}" if mutant["kind"] == "statement" else f"({mutant['replace']})"
        for unit in self.units:
            if not self.includes(unit, file):
                continue
            right = self.right_code(unit)
            try:
                (self.plain / file).write_text(text[:at] + replacement + lines + text[end:])
                if self.code(unit) != right:
                    return False
            finally:
                (self.plain / file).write_text(text)
        return True
