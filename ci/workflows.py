#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds .github against what can be known without running it: workflows.py [FOLDER]

YAML with one key each, scripts that exist and can be run, shell that parses, inputs that are declared, jobs that end,
actions by version, no words of strangers in a script. Prints every violation; exit 1 when there is one."""
import pathlib
import re
import subprocess
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.S)
SCRIPT = re.compile(r"(?:^|[\s/\"])(ci/[\w./-]+\.(?:sh|py))")
CONTEXTS = ("github", "inputs", "runner", "env", "always", "failure", "success", "matrix", "secrets")


class Loader(yaml.SafeLoader):
    """Refuses a key that is there twice; `on` stays a word."""


def mapping(loader, node):
    keys = [loader.construct_object(key) for key, _ in node.value]
    for key in keys:
        if keys.count(key) > 1:
            raise yaml.constructor.ConstructorError(None, None, f"'{key}' twice", node.start_mark)
    return yaml.SafeLoader.construct_mapping(loader, node, deep=True)


Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)
Loader.yaml_implicit_resolvers = {first: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:bool"]
                                  for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()}


def shell(text):
    if EXPRESSION.search(text):
        # It is pasted in before the shell reads it: what a stranger calls a branch would run.
        yield "an expression in a script: hand it over in env"
        return
    checked = subprocess.run(["shellcheck", "--shell=bash", "--severity=warning", "--format=gcc", "-"], input=text, text=True,
                             capture_output=True, check=False)
    yield from checked.stdout.splitlines()
    for script in SCRIPT.findall(text):
        path = ROOT / script
        if not path.is_file() or not path.stat().st_mode & 0o100:
            yield f"{script}: cannot be run"


def step(one, composite):
    if ("run" in one) == ("uses" in one):
        yield "a step runs or uses, one of them"
        return
    if "run" in one:
        yield from shell(one["run"])
        if composite and "shell" not in one:
            yield "a step of an action names its shell"
        return
    uses = one["uses"]
    if uses.startswith("./"):
        if not (ROOT / uses / "action.yml").is_file():
            yield f"{uses}: no action there"
    elif not re.fullmatch(r"[\w.-]+/[\w./-]+@(v\d+|[0-9a-f]{40})", uses):
        yield f"{uses}: an action without a version"


def expressions(value, inputs):
    """Contexts that there are, and inputs that are declared."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from expressions(f"${{{{ {item} }}}}" if key == "if" and "${{" not in str(item) else item, inputs)
    elif isinstance(value, list):
        for item in value:
            yield from expressions(item, inputs)
    elif isinstance(value, str):
        for inside in EXPRESSION.findall(value):
            words = re.findall(r"(?<![\w.'-])([A-Za-z_][\w-]*)((?:\.[\w-]+)*)", re.sub(r"'[^']*'", "''", inside))
            for word, rest in words:
                if word not in CONTEXTS:
                    yield f"'{word}' in an expression: unknown"
                if word == "inputs" and rest[1:] not in inputs:
                    yield f"inputs{rest}: not declared"
        if value.count("${{") != len(EXPRESSION.findall(value)):
            yield f"an expression without its end: {value}"


def steps(list_of_steps, composite, where):
    for number, one in enumerate(list_of_steps, 1):
        name = one.get("name") or one.get("uses") or str(one.get("run", "")).split("\n")[0]
        yield from (f"{where} step {number} ({name}): {line}" for line in step(one, composite))


def workflow(text):
    inputs = ((text.get("on") or {}).get("workflow_dispatch") or {}).get("inputs", {}) if isinstance(text.get("on"), dict) else {}
    yield from expressions(text, inputs)
    if "permissions" not in text:
        yield "no permissions: the token may then do everything"
    for name, job in text["jobs"].items():
        if "runs-on" not in job or "timeout-minutes" not in job:
            yield f"job {name}: no runs-on or no timeout-minutes"
        if "self-hosted" in str(job.get("runs-on")) and "pull_request" in str(text["on"]):
            yield f"job {name}: a pull request would run on a machine of one's own"
        yield from steps(job["steps"], False, f"job {name}")


def action(text):
    yield from expressions(text["runs"], text.get("inputs", {}))
    for name, one in text.get("inputs", {}).items():
        if "description" not in one:
            yield f"input {name}: no description"
    if text["runs"]["using"] != "composite":
        yield "no composite action"
    yield from steps(text["runs"]["steps"], True, "action")


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / ".github"
    found = 0
    for path in sorted([*folder.glob("workflows/*.yml"), *folder.glob("actions/*/action.yml")]):
        try:
            text = yaml.load(path.read_text(), Loader)
            lines = list(action(text) if path.name == "action.yml" else workflow(text))
        except (yaml.YAMLError, KeyError, TypeError) as error:
            lines = [f"{type(error).__name__}: {error}"]
        for line in lines:
            print(f"{path}: {line}")
        found += len(lines)
    if not found:
        print("workflows: ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
