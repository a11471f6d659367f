# SPDX-License-Identifier: Apache-2.0
"""Runs the blocks of code in pages as they stand there.

The blocks of a page are one session: each `sh` block continues in the shell of the one before. The session begins at
the root of the tree, with a home folder of its own; `<!-- after: PAGE -->` in the page puts it behind the blocks of
that page. A `python` block is a program. A comment in front of a block adds to it:

  <!-- file: NAME -->        the block is written to NAME in the home folder
  <!-- exit: N -->           the exit code that the last command, or the program, has (0)
  <!-- output -->            of a `text` block: its lines occur in this order in what the block before it printed;
                             `...` stands for anything
  <!-- needs: torch -->      runs where that module can be imported (by $ASSAY_TORCH_PYTHON, if set), else it is listed
  <!-- needs: wheel -->      runs where pip reaches a package index, and ci/wheel.sh has left a wheel: it is in ~/Downloads
  <!-- not run: REASON -->   is listed

A block is one of these, or an error. Prints what was not run, and why; exit 1 when a block does not do what it says."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from . import ROOT

PAGES = ["README.md", "properties/plugins/DECLARATION.md", "properties/python/OTHERS.md",
         *(str(p.relative_to(ROOT)) for p in sorted(ROOT.glob("*/guides/*.md")))]
DIRECTIVE = re.compile(r"^<!-- (file|exit|output|needs|not run)(?:: (.+?))? -->$")
AFTER = re.compile(r"^<!-- after: (\S+) -->$", re.M)
WHEELS = ROOT / "build/simt/wheel"
LIMIT_S = 1800  # for all pages behind one set-up page


class PageError(Exception):
    """A page that cannot be run, or does not do what it says."""


class Block:
    def __init__(self, page, line, language, directives):
        self.page, self.line, self.language, self.directives, self.text = page, line, language, directives, ""

    @property
    def place(self):
        return f"{self.page}:{self.line}"


def parse(page, text):
    """The blocks of a page, in order."""
    blocks, directives, current = [], {}, None
    for number, line in enumerate(text.splitlines(), 1):
        if current is not None:
            if line.rstrip() == "```":
                blocks.append(current)
                current, directives = None, {}
            else:
                current.text += line + "\n"
        elif line.startswith("```"):
            current = Block(page, number, line[3:].strip(), directives)
        elif match := DIRECTIVE.match(line):
            directives[match.group(1)] = match.group(2) or ""
        elif line.strip():
            if directives:
                raise PageError(f"{page}:{number}: a comment of a block without a block behind it")
    if current is not None:
        raise PageError(f"{current.place}: a block without an end")
    return blocks


def kind(block):
    """What is done with a block: run, python, file, output or listed."""
    d = block.directives
    if "not run" in d:
        if len(d["not run"]) < 8:
            raise PageError(f"{block.place}: why is it not run?")
        return "listed"
    if "file" in d:
        return "file"
    if block.language in ("sh", "python"):
        return "run"
    if block.language == "text" and "output" in d:
        return "output"
    raise PageError(f"{block.place}: a block of '{block.language}' that is neither run, nor a file, nor output, nor listed")


def check_output(block, printed):
    """The lines of an output block, in order, in what was printed."""
    at, lines = 0, printed.splitlines()
    for wanted in block.text.splitlines():
        if wanted.strip() in ("", "..."):
            continue
        pattern = ".*".join(re.escape(part) for part in wanted.rstrip().split("..."))
        found = next((i for i in range(at, len(lines)) if re.fullmatch(pattern, lines[i].rstrip())), None)
        if found is None:
            raise PageError(f"{block.place}: '{wanted}' is not printed by the block before; it printed\n{printed}")
        at = found + 1


def missing(need, pythons):
    """Empty, or why what a block needs is not here."""
    if need == "torch":
        return "" if can_import(pythons["torch"], "torch") else "no PyTorch here (ASSAY_TORCH_PYTHON names a Python that has it)"
    if need == "wheel" and not list(WHEELS.glob("*.whl")):
        return "no wheel in build/simt/wheel (ci/wheel.sh makes it)"
    if need == "wheel":
        asked = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", pythons["scratch"], "scikit-build-core"],
                               capture_output=True, check=False)
        return "" if asked.returncode == 0 else "pip reaches no package index"
    raise PageError(f"nobody knows how to look for '{need}'")


def can_import(python, module):
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


def commands(text):
    """A block's commands, a line each: `a && b` as two, so that the session ends at the first that fails."""
    quoted = re.compile(r"""("[^"]*"|'[^']*')""")
    split = []
    for line in text.replace("\\\n", " ").splitlines():
        parts = quoted.split(line)
        split += "".join(part if i % 2 else part.replace(" && ", "\n") for i, part in enumerate(parts)).splitlines()
    return [line for line in split if line.strip() and not line.lstrip().startswith("#")]


def script(block, number, pythons):
    """What the session does for a block."""
    begin = f"printf '\\n@@ {number}\\n'; printf '\\n@@ {number}\\n' >&2\n"
    if kind(block) == "file":
        return begin + f"cat >\"$HOME\"/{shlex.quote(block.directives['file'])} <<'@@END'\n{block.text}@@END\n"
    if block.language == "python":
        python = shlex.quote(pythons["torch"] if block.directives.get("needs") == "torch" else "python3")
        first, last = [], f"{python} - <<'@@END'\n{block.text}@@END"
    else:
        if block.directives.get("needs") == "torch":
            begin += f"python3() {{ {shlex.quote(pythons['torch'])} \"$@\"; }}\n"
        *first, last = commands(block.text)
    code = block.directives.get("exit", "0")
    return begin + "\n".join(first) + (f"\nset +e\n{last}\n__code=$?\nset -e\n[ $__code -eq {code} ] || "
                                       f"{{ echo \"exit code $__code, the page says {code}\" >&2; exit 99; }}\n")


def environment(home):
    env = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "LC_ALL", "CPATH", "ASSAY_TOOLKIT_HIDDEN", "CCACHE_DIR",
                                                         "SSL_CERT_FILE", "PIP_INDEX_URL", "PIP_CERT", "PIP_CONFIG_FILE", "OPENBLAS_CORETYPE")}
    env.update(HOME=str(home), PYTHONDONTWRITEBYTECODE="1", GIT_CONFIG_COUNT="2", PIP_DISABLE_PIP_VERSION_CHECK="1",
               GIT_CONFIG_KEY_0="user.name", GIT_CONFIG_VALUE_0="reader", GIT_CONFIG_KEY_1="user.email", GIT_CONFIG_VALUE_1="r@example.org")
    env["PATH"] = "/usr/bin:/bin:" + env["PATH"]  # the distribution's python3, which has what ci/setup.sh installs
    env.setdefault("CCACHE_DIR", os.path.expanduser("~/.cache/ccache"))
    return env


class Session:
    """Pages behind one set-up page, in one shell: a home folder a page."""

    def __init__(self, home):
        self.home, self.script, self.blocks, self.outputs, self.not_run = home, "", [], [], []
        self.pythons = {"torch": os.environ.get("ASSAY_TORCH_PYTHON", "/usr/bin/python3"), "scratch": str(home)}

    def add(self, page, text):
        """The page's blocks behind what there is, in the same shell."""
        previous = None
        for block in parse(page, text):
            what, reason = kind(block), block.directives.get("not run", "")
            if what == "output" and previous is not None:
                self.outputs.append((block, previous))
                continue
            if what == "output":
                reason = "the block before it is not run"
            elif not reason and "needs" in block.directives:
                reason = missing(block.directives["needs"], self.pythons)
            if reason:
                self.not_run.append((block, reason))
                previous = None
                continue
            previous = len(self.blocks)
            self.script += script(block, previous, self.pythons)
            self.blocks.append(block)

    def add_alone(self, page, text):
        """The page in a shell and a home of its own, which knows what the set-up page left."""
        home = shlex.quote(str(self.home / page.replace("/", "-")))
        # What the set-up page put into its home is in this one, too.
        self.script += f"(mkdir -p {home}; for f in ~/assay ~/Downloads; do [ ! -e $f ] || ln -s $f {home}/; done; export HOME={home}\n"
        self.add(page, text)
        self.script += "exit 0)\n"

    def run(self):
        """Complaints."""
        log = self.home / "session.log"
        if WHEELS.is_dir():
            (self.home / "Downloads").symlink_to(WHEELS)
        with log.open("w+") as out:
            try:
                code = subprocess.run(["bash", "-c", "set -euo pipefail\n" + self.script], cwd=ROOT, env=environment(self.home),
                                      stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, timeout=LIMIT_S,
                                      check=False).returncode
            except subprocess.TimeoutExpired:
                code = f"none within {LIMIT_S} s"
        printed = {}
        for number, text in re.findall(r"@@ (\d+)\n(.*?)(?=\n@@ \d+\n|\Z)", log.read_text(errors="replace"), re.S):
            printed[int(number)] = printed.get(int(number), "") + text
        if code != 0:
            last = max(printed, default=0)
            yield f"{self.blocks[last].place}: exit code {code}\n{self.blocks[last].text}\n{printed.get(last, '')[-4000:]}"
            return
        for block, number in self.outputs:
            try:
                check_output(block, printed[number])
            except PageError as error:
                yield str(error)


def sessions(pages):
    """{set-up page or None: [pages behind it]}."""
    groups = {}
    for page in pages:
        after = AFTER.search((ROOT / page).read_text())
        groups.setdefault(after.group(1) if after else None, []).append(page)
    # A set-up page runs in front of those behind it, and not once more.
    groups[None] = [page for page in groups.get(None, []) if page not in groups]
    return groups


def run(pages, home):
    """(complaints, blocks that ran, [(block, reason)] of the others)."""
    complaints, count, not_run = [], 0, []
    for index, (after, group) in enumerate(sessions(pages).items()):
        folder = home / str(index)
        folder.mkdir()
        session = Session(folder)
        if after:
            session.add(after, (ROOT / after).read_text())
        for page in group:
            session.add_alone(page, (ROOT / page).read_text())
        complaints += session.run()
        count += len(session.blocks) + len(session.outputs)
        not_run += session.not_run
    return complaints, count, not_run


def main(pages, only_list, keep):
    pages = pages or PAGES
    try:
        if only_list:
            for page in pages:
                for block in parse(page, (ROOT / page).read_text()):
                    print(f"{block.place}: {kind(block)} {block.directives.get('not run', '')}")
            return 0
        home = pathlib.Path(tempfile.mkdtemp(prefix="assay-pages-", dir=keep))
        complaints, count, not_run = run(pages, home)
    except PageError as error:
        print(error)
        return 1
    if not keep:
        shutil.rmtree(home, ignore_errors=True)
    print("".join(complaint + "\n" for complaint in complaints) + f"pages: {count} blocks, and {len(not_run)} that are not run:")
    for block, reason in not_run:
        print(f"  {block.place}: {reason}")
    return 1 if complaints else 0
