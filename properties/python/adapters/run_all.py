# SPDX-License-Identifier: Apache-2.0
"""Judges all adapters, each in a process of its own, and prints a table of verdicts.

python3 run_all.py [--build] [--budget 60s | --cases N] [--seed N] [--only NAME,..] [--out FOLDER] [FILE.py:NAME ..]
"""
import argparse
import concurrent.futures
import importlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
FILES = ("torch_sdpa", "flashinfer_decode", "flashinfer_merge", "flashinfer_cascade", "xqa", "triton_decode")
COLUMNS = ("adapter", "verdict", "cases", "properties", "covered", "seconds", "first finding, or why there is none")


def adapters():
    """FILE.py:NAME of every kernel in FILES, in order."""
    for file in FILES:
        module = importlib.import_module(file)
        for name, value in vars(module).items():
            if getattr(value, "__assay__", None) and value.__module__ == file:
                yield f"{HERE / file}.py:{name}"


def loaded(target):
    """Module and function of FILE.py:NAME. The folder comes first, so that workers find the module by its name."""
    path, _, name = target.rpartition(":")
    path = pathlib.Path(path).resolve()
    sys.path.insert(0, str(path.parent))
    module = importlib.import_module(path.stem)
    return module, getattr(module, name)


def one(target, options):
    """In a process of its own: what a check of one adapter says, as a dictionary."""
    import assay

    begin = time.time()
    module, kernel = loaded(target)
    if hasattr(module, "prepare"):
        module.prepare()  # whatever keeps it from running here is the row's reason
    prepared = time.time() - begin
    result = assay.check(
        kernel,
        cases=options.cases,
        budget=options.budget,
        seed=options.seed,
        threads=options.threads,
        patience=options.patience,
        only=getattr(module, "ONLY", {}).get(kernel.__name__),
        out=os.path.join(options.out, kernel.__name__, "findings"),
        program=options.program,
    )
    return {
        "exit_code": result.exit_code,
        "prepare_seconds": round(prepared, 1),
        "declaration": kernel.__assay__.to_json(),
        "report": result.report,
        "text": result.text,
        "findings": [vars(finding) for finding in result.findings],
    }


def child(arguments, limit, **environment):
    """Runs this file again. Returns its output, or the reason why there is none; ends all that it started."""
    command = [sys.executable, os.path.abspath(__file__), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                               start_new_session=True, env={**os.environ, **environment})
    try:
        text, _ = process.communicate(timeout=limit)
        why = "" if process.returncode == 0 else (text.strip().splitlines() or [f"ended with {process.returncode}"])[-1]
        return text, why
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        text, _ = process.communicate()
        return text, f"not done after {limit} s"


def judged(target, options, passed_on):
    """The row of one adapter, whatever happens to it."""
    name, begin = target.rpartition(":")[2], time.time()
    folder = pathlib.Path(options.out, name)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "result.json"
    file.unlink(missing_ok=True)
    text, why = child(["--one", target, "--json", str(file), *passed_on], options.limit)
    row = {"adapter": name, "target": target, "seconds": round(time.time() - begin, 1)}
    if why or not file.exists():
        return {**row, "verdict": "not run", "why": why or "wrote no result", "output": text}
    return {**row, **summary(json.loads(file.read_text())), "file": str(file)}


def summary(said):
    """Of what `one` says: verdict, cases, properties [passed, failed, not proven], covered and the first finding."""
    kernel, runs = said["report"]["kernels"][0], said["report"]["runs"]
    failed = {f["property"] for f in said["findings"]}
    proven = {r["property"] for r in runs if r["cases"] and not (r["undecided"] or r["error"])} - failed
    verdict = {0: "pass", 1: "FAIL"}.get(said["exit_code"], "no proof")
    finding = said["findings"][0] if said["findings"] else None
    classes, missing = len(kernel["classes"]), len(kernel["not_covered"])
    return {
        "verdict": verdict,
        "cases": kernel["cases"],
        "properties": [len(proven), len(failed), len({r["property"] for r in runs} - proven - failed)],
        "covered": [classes, classes + missing],
        "not_covered": kernel["not_covered"],
        "envelope": kernel["envelope"],
        "median_budget": kernel["median_budget"],
        "why": f"{finding['property']}: {finding['message']}" if finding else "; ".join(kernel["gaps"]),
        "smallest_case": finding["case"] if finding else "",
        "findings": said["findings"],
    }


def cells(row):
    properties, covered = row.get("properties"), row.get("covered")
    why = " ".join(row["why"].split())
    return (
        row["adapter"],
        row["verdict"],
        str(row.get("cases", "-")),
        f"{properties[0]}/{properties[1]}" if properties else "-",
        f"{covered[0]} of {covered[1]}" if covered else "-",
        f"{row['seconds']:.0f}",
        why if len(why) <= 140 else why[:137] + "...",
    )


def table(rows):
    """Text with aligned columns; properties are passed/failed, covered are classes of cases."""
    lines = [COLUMNS, *map(cells, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(COLUMNS) - 1)]
    return "\n".join(" | ".join([*(c.ljust(w) for c, w in zip(line, widths)), line[-1]]).rstrip() for line in lines)


def build(options, targets):
    """Compiles what the adapters' files name in BUILDS, several at once. Says what could not be."""
    jobs = []
    for path in dict.fromkeys(target.rpartition(":")[0] for target in targets):
        try:
            module = importlib.import_module(pathlib.Path(path).stem)
        except Exception as error:
            print(f"{path}: {type(error).__name__}: {error}")
            continue
        if hasattr(module, "prepare"):
            jobs += [f"{path}:{i}" for i in range(len(getattr(module, "BUILDS", [0])))]
    # Each starts compilers of its own: half as many again as there are cores, in all.
    compilers = str(max(1, 3 * (os.cpu_count() or 2) // (2 * options.jobs)))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        began = {pool.submit(child, ["--build-one", job], options.limit, MAX_JOBS=compilers): job for job in jobs}
        for done in concurrent.futures.as_completed(began):
            print(f"built {began[done]}: {done.result()[1] or 'ready'}", flush=True)


def build_one(job):
    path, _, which = job.rpartition(":")
    sys.path.insert(0, str(pathlib.Path(path).parent))
    module = importlib.import_module(pathlib.Path(path).stem)
    module.prepare(*([int(which)] if hasattr(module, "BUILDS") else []))


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", nargs="*", help="FILE.py:NAME in the place of all adapters")
    parser.add_argument("--budget", help="time for each adapter's cases, 60s")
    parser.add_argument("--cases", type=int, help="cases per property, in the place of a budget")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="names, or beginnings of names, of adapters: xqa,torch_math")
    parser.add_argument("--out", default="adapters_out", help="folder for results and findings")
    parser.add_argument("--threads", type=int, default=4, help="processes that run a kernel, each with its own context")
    parser.add_argument("--patience", default="120s", help="how long a call may take")
    parser.add_argument("--limit", type=float, default=1800, help="seconds for one adapter, or one thing to compile")
    parser.add_argument("--jobs", type=int, default=6, help="things compiled at once")
    parser.add_argument("--build", action="store_true", help="compile first, all adapters at once")
    parser.add_argument("--program", help="the program assay, in the place of ASSAY_PROGRAM")
    for hidden in ("--one", "--build-one", "--json"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    options = parsed()
    if options.build_one:
        return build_one(options.build_one)
    if options.one:
        said = one(options.one, options)
        pathlib.Path(options.json).write_text(json.dumps(said))
        return None
    options.out = os.path.abspath(options.out)
    targets = options.target or list(adapters())
    if options.only:
        targets = [t for t in targets if t.rpartition(":")[2].startswith(tuple(options.only.split(",")))]
    if options.build:
        build(options, targets)
    passed_on = [f"--{name}={value}" for name in ("budget", "cases", "seed", "out", "threads", "patience", "program")
                 if (value := getattr(options, name)) is not None]  # fmt: skip
    rows = []
    for target in targets:
        rows.append(judged(target, options, passed_on))
        print(f"{rows[-1]['adapter']}: {rows[-1]['verdict']}", file=sys.stderr, flush=True)
        pathlib.Path(options.out, "results.json").write_text(json.dumps(rows, indent=1))
    print(table(rows))
    return None


if __name__ == "__main__":
    sys.exit(main())
