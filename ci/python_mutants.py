#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the tests that CI runs see of small changes of our Python (ci/mutation/python_operators.py).

python_mutants.py ROOM --results CSV [--sample N] [--seed S] [--build build/simt] [--python PYTHON] [--seconds 300]
python_mutants.py --summary CSV

ROOM is assay, assay_torch or ci. A copy of HEAD is changed, never the tree. The tests that run a line, by Debian's
python3-coverage, run on each of its mutants until one fails; where none runs it in the process of the test, and where the
room starts processes of its own, those of the room's list. Results are appended mutant by mutant, and the same command goes on
where it ended. Outcomes: killed, survived, and hung after --seconds of processor time, which is
a kill, too. Which tests run a line is kept beside the results. In the column triage a person writes
`equivalent` or `hole`, and why. The score is of all but the equivalent ones; its interval is Wilson's, 95 %."""
import argparse
import collections
import contextlib
import csv
import json
import os
import pathlib
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "ci"))
from mutation.python_operators import mutants_of  # noqa: E402
from mutation_score import wilson  # noqa: E402
from wrong import table  # noqa: E402

#: Sources, tests, and tests whose lines run in processes of their own.
ROOMS = {
    "assay": (
        "properties/python/assay", "properties/python/tests",
        ["test_process.py", "test_adapters.py", "test_gate.py", "test_check.py"],
    ),
    "assay_torch": ("kernels/torch/assay_torch", "kernels/torch/tests", ["test_judged.py"]),
    "ci": ("ci", "ci/tests", []),
}
#: What of ci CI runs on the tree itself, by the name of the file.
ON_THE_TREE = {"docs": ["check"], "workflows": [""], "tree": ["layers", "shape"]}
#: Files of ci whose test bears another name.
TRIED_BY = {**dict.fromkeys(("gate_trial", "mutation_score"), "trials"), **dict.fromkeys(("machine_mutants", "order_sites"), "mutants")}
#: Tests that take seconds: the last ones.
LONG = re.compile(r"drawn|_calls|dump_files|transformers\.py|batching|shared_prompts|compile|opcheck|one_graph|captur|profil")
#: Runs pytest in a fork of a process that has imported what takes seconds. The first example that fails is enough: none is shrunk.
SERVER = """
import json, os, resource, sys
import coverage, hypothesis, numpy, pytest
try:
    import torch, transformers.generation.continuous_batching, transformers.models.llama.modeling_llama
except ImportError:
    pass
phases = [phase for phase in hypothesis.Phase if phase.name not in ("shrink", "explain")]
hypothesis.settings.register_profile("mutants", phases=phases)
hypothesis.settings.load_profile("mutants")
class Contexts:
    def __init__(self, watch):
        self.watch = watch
    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        self.watch.switch_context(f"{item.path.name}::" + item.nodeid.split("::", 1)[1].split("[")[0])
        yield
        self.watch.switch_context("")
for line in sys.stdin:
    folder, seconds, out, covered, arguments = json.loads(line)
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
        os.dup2(1, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(folder)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        if covered:
            watch = coverage.Coverage(config_file="coveragerc")
            watch.start()
        code = int(pytest.main(arguments, plugins=[Contexts(watch)] if covered else []))
        if covered:
            watch.stop()
            watch.save()
        sys.stdout.flush()
        os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        os.killpg(child, 9)  # what a test has started and not ended
    except ProcessLookupError:
        pass
    print(code, flush=True)
"""
FIELDS = ["room", "file", "line", "operator", "text", "outcome", "by", "triage"]


def environment(tree, build):
    library = build / "kernels/api/libassay_simt.so"
    return {
        **os.environ, "PYTHONPATH": f"{tree}/kernels/torch:{tree}/properties/python", "PYTHONDONTWRITEBYTECODE": "1",
        "ASSAY_PROGRAM": str(build / "assay"), "ASSAY_LIBRARY_SIMT": str(library), "ASSAY_ELEMENT_BITS": str(build / "properties/assay_element_bits"),
    }  # fmt: skip


class Tests:
    """Runs pytest on a tree: `run` gives (exit code, output)."""

    def __init__(self, tree, room, options):
        self.tree, self.folder, self.options, self.server = tree, tree / ROOMS[room][1], options, None
        self.out = tree / "pytest.out"

    def run(self, arguments, covered=False):
        if self.server is None:
            command = [self.options.python, "-B", "-c", SERVER]
            self.server = subprocess.Popen(command, env=environment(self.tree, self.options.build), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        seconds = self.options.seconds * (10 if covered else 1)
        self.server.stdin.write(json.dumps([str(self.folder), seconds, str(self.out), covered, arguments]) + "\n")
        self.server.stdin.flush()
        return int(self.server.stdout.readline()), self.out.read_text(errors="replace")

    def close(self):
        if self.server is not None:
            self.server.communicate()


def contexts(tests_run, tree, room, options):
    """{(file, line): tests} of one run of the tests of a room, but for those whose lines run elsewhere."""
    sources, tests, apart = ROOMS[room]
    folder = tree / tests
    (folder / "coveragerc").write_text(f"[run]\nsource = {tree / sources}\n")
    kept = options.results.with_suffix(".lines.json")
    if room == "ci":
        return {}
    if kept.exists():
        return {(file, int(line)): names for file, lines in json.loads(kept.read_text()).items() for line, names in lines.items()}
    code, said = tests_run.run(["-q", "-p", "no:cacheprovider", *(f"--ignore={name}" for name in apart), "."], covered=True)
    if code:
        sys.exit(f"the tests fail without a mutant:\n{said[-2000:]}")
    code = ("import coverage, json; d = coverage.CoverageData(); d.read(); "
            "print(json.dumps({f: d.contexts_by_lineno(f) for f in d.measured_files()}))")  # fmt: skip
    held = subprocess.run([options.python, "-c", code], cwd=folder, text=True, capture_output=True, check=True).stdout
    out = collections.defaultdict(dict)
    for file, lines in json.loads(held).items():
        for line, names in lines.items():
            out[pathlib.Path(file).name][line] = [name for name in names if name]
    kept.write_text(json.dumps(out))
    return contexts(tests_run, tree, room, options)


def tests_of(tree, room, path, line, covering):
    """Commands, in the order in which they run."""
    _, tests, apart = ROOMS[room]
    folder = tree / tests
    if room == "ci":
        on_tree = [[str(path), *argument.split()] for argument in ON_THE_TREE.get(path.stem, [])]
        return [["/usr/bin/python3", "-B", *command] for command in ([str(folder / f"{TRIED_BY.get(path.stem, path.stem)}_test.py")], *on_tree, [str(folder / "programs_test.py")])]
    found = [name for name in dict.fromkeys(covering.get((path.name, line), [])) if (folder / name.split("::")[0]).exists()]
    found.sort(key=lambda name: bool(LONG.search(name)))
    anywhere = [*(f"--ignore={name}" for name in apart), "."]
    lists = [found, apart if _starts(path) else [] if found else anywhere]
    return [["-x", "-q", "--tb=no", "-p", "no:cacheprovider", *names] for names in lists if names]


def _starts(path):
    return path.stem in ("worker", "worker_errors", "loading", "checking", "spec", "case", "program", "declaration", "__main__")


def outcome(tests_run, tree, room, path, mutant, covering, options):
    source = path.read_text()
    path.write_text(mutant.apply(source))
    try:
        for arguments in tests_of(tree, room, path, mutant.line, covering):
            if room == "ci":
                limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (options.seconds, options.seconds))  # noqa: E731
                ran = subprocess.run(arguments, cwd=tree, env=environment(tree, options.build), text=True, capture_output=True, check=False, preexec_fn=limit)
                code, said = ran.returncode, ran.stdout
            else:
                code, said = tests_run.run(arguments)
            if code in (-signal.SIGXCPU, -signal.SIGKILL):
                return "hung", ""
            if code not in (0, 5):
                by = re.search(r"^(?:FAILED|ERROR) (\S+)", said, re.M)
                return "killed", by[1] if by else "an error"
        return "survived", ""
    finally:
        path.write_text(source)


def drawn(room, options):
    """(file, Mutant) of a room: all, or as many as asked for, each as likely."""
    folder = ROOT / ROOMS[room][0]
    files = [f for f in sorted(folder.glob("*.py" if room == "ci" else "**/*.py")) if room != "ci" or (folder / "tests" / f"{TRIED_BY.get(f.stem, f.stem)}_test.py").exists()]
    every = [(f.relative_to(ROOT), mutant) for f in files for mutant in mutants_of(f.read_text())]
    print(f"{room}: {len(every)} mutants of {len(files)} files")
    random.Random(options.seed).shuffle(every)
    return every[: options.sample or len(every)]


def summary(path):
    rows = table(path)
    for room in sorted({row["room"] for row in rows}):
        own = [row for row in rows if row["room"] == room]
        counted = [row for row in own if not row["triage"].startswith("equivalent")]
        killed = sum(row["outcome"] in ("killed", "hung") for row in counted)
        low, high = wilson(killed, len(counted))
        print(f"{room}: {killed} of {len(counted)} killed, {100 * killed / len(counted):.1f} % ({100 * low:.1f} to {100 * high:.1f}), "
              f"{len(own) - len(counted)} equivalent")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("room", nargs="?", choices=ROOMS)
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--summary", type=pathlib.Path)
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/simt")
    parser.add_argument("--python", default=os.environ.get("ASSAY_TORCH_PYTHON", "/usr/bin/python3"))
    options = parser.parse_args()
    if options.summary:
        return summary(options.summary)
    options.build = options.build.resolve()
    done = {(r["file"], r["line"], r["operator"], r["text"]) for r in table(options.results)} if options.results.exists() else set()
    with tempfile.TemporaryDirectory() as work, options.results.open("a", newline="") as file, contextlib.ExitStack() as ends:
        tree = pathlib.Path(work)
        # A clone, for scripts that ask git.
        subprocess.run(["git", "clone", "-q", "--shared", ROOT, tree], check=True)
        writer = csv.DictWriter(file, FIELDS)
        if not done and not file.tell():
            writer.writeheader()
        tests_run = ends.enter_context(contextlib.closing(Tests(tree, options.room, options)))
        covering = contexts(tests_run, tree, options.room, options)
        for path, mutant in drawn(options.room, options):
            source = (ROOT / path).read_text().encode()
            text = f"{source[mutant.begin : mutant.end].decode()} -> {mutant.new}".replace("\n", " ")
            row = dict(room=options.room, file=str(path), line=str(mutant.line), operator=mutant.operator, text=text[:200])
            if (row["file"], row["line"], row["operator"], row["text"]) in done:
                continue
            row["outcome"], row["by"] = outcome(tests_run, tree, options.room, tree / path, mutant, covering, options)
            writer.writerow({**row, "triage": ""})
            file.flush()
            print(f"{row['outcome']:9} {row['file']}:{row['line']} {row['text'][:80]} {row['by']}", flush=True)
    return summary(options.results)


if __name__ == "__main__":
    main()
