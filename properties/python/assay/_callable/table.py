# SPDX-License-Identifier: Apache-2.0
"""Results of a batch as one HTML file that needs no other. Every text in it may come from a candidate."""
import html
import os
import tempfile

from .verdict import NOT_ASKED, PASS

_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>assay judge-callable</title>
<style>
body { font: 14px sans-serif; margin: 2em; }
table { border-collapse: collapse; }
th, td { border-bottom: 1px solid #ccc; padding: .3em .8em; text-align: left; vertical-align: top; }
td.n { text-align: right; }
td.cause { max-width: 60em; overflow-wrap: anywhere; font-family: monospace; }
tr.pass td.verdict { color: #060; } tr.finding td.verdict { color: #a00; font-weight: bold; }
</style></head><body>
"""
_COLUMNS = ("candidate", "target", "shape", "verdict", "arithmetic", "score", "seconds", "cause")
_NUMBERS = ("score", "seconds")


def _text(value):
    """Escaped, without characters that turn the direction of text or cannot be encoded."""
    return html.escape("".join(c if c.isprintable() else "?" for c in str(value)))


def cause(result):
    """Of the first stage that did not pass, or of an error."""
    if "cause" in result:
        return result["cause"]
    stages = result.get("stages")
    for stage in stages if isinstance(stages, list) else []:
        if isinstance(stage, dict) and stage.get("verdict") not in (PASS, NOT_ASKED):
            return f"{stage.get('stage')}: {stage.get('cause')}"
    return ""


def _row(result):
    values = {**result, "candidate": result.get("id", f"line {result['line']}"), "cause": cause(result)}
    cells = [f'<td class="{"n" if name in _NUMBERS else name}">{_text(values.get(name, ""))}</td>' for name in _COLUMNS]
    return f'<tr class="{_text(result["verdict"])}">{"".join(cells)}</tr>'


def table(results):
    counts = {}
    for result in results:
        counts[result["verdict"]] = counts.get(result["verdict"], 0) + 1
    said = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
    rows = "\n".join(map(_row, results))
    summary = f"<p>{len(results)} candidates: {_text(said)}</p>\n"
    return f"{_HEAD}{summary}<table><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>\n</body></html>\n"


def write(path, results):
    """The whole file or none of it."""
    folder = os.path.dirname(os.path.abspath(path))
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=folder, suffix=".html", delete=False) as file:
        try:
            file.write(table(results))
            os.chmod(file.name, 0o644)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise
