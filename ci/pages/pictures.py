# SPDX-License-Identifier: Apache-2.0
"""The pictures of pages, from committed results: NAME.svg for a light page and NAME-dark.svg for a dark one.

They need Python alone, so that the same data gives the same bytes everywhere."""
import csv
import json

from . import ROOT, results

FONT = "font-family=\"system-ui, 'Segoe UI', Helvetica, Arial, sans-serif\""
THEMES = {
    "": {"ink": "#1f2328", "soft": "#59636e", "grid": "#d0d7de", "ours": "#0969da", "peer": "#8c959f", "wrong": "#cf222e", "on": "#ffffff",
         "terms": ["#0969da", "#bc4c00", "#8250df", "#1a7f37", "#9a6700", "#8c959f"]},
    "-dark": {"ink": "#e6edf3", "soft": "#9198a1", "grid": "#3d444d", "ours": "#58a6ff", "peer": "#656c76", "wrong": "#ff7b72", "on": "#0d1117",
              "terms": ["#58a6ff", "#f0883e", "#bc8cff", "#3fb950", "#d29922", "#656c76"]},
}
PEERS = ("FlashInfer CUDA cores", "FlashInfer tensor cores", "XQA")
TERMS = {"output_rounding": "rounding of the output", "p_rounding": "rounding of the weights", "weights": "scores and exponentials",
         "accumulation": "sums of P V", "normalisation": "row sum and division", "merge": "merge of splits"}


class Svg:
    def __init__(self, width, height, theme, alt):
        self.theme = theme
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
                      f'role="img" {FONT}>', f"<title>{alt}</title>"]

    def rect(self, x, y, width, height, color):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{color}"/>')

    def line(self, x1, y1, x2, y2, color, width=1.0, dash=""):
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}" stroke-width="{width}"{dashed}/>')

    def text(self, x, y, words, size=13, anchor="start", color=None, bold=False):
        weight = ' font-weight="600"' if bold else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{color or self.theme["ink"]}"'
                          f"{weight}>{words}</text>")

    def dot(self, x, y, color):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{color}"/>')

    def curve(self, points, color):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')

    def __str__(self):
        return "\n".join(self.parts) + "\n</svg>\n"


def speed(theme):
    """Decode cells of one model in bf16: the share of the memory floor, ours and the best peer."""
    result = results.load(ROOT / "kernels/bench/results/h200-2026-11-27-peers.json")
    cells = {}
    for row in result["cells"]:
        if row["kernel"].startswith("paged_attention_"):
            cells.setdefault(row["cell"], []).append(row)
    compared = []
    for name, rows in cells.items():
        peers = [(p["us"], peer) for peer, p in rows[0]["peers"].items() if peer in PEERS and "us" in p]
        if peers:
            ours, floor = min(row["us"] for row in rows), rows[0]["floor_us"]
            compared.append((name, floor / ours, floor / min(peers)[0], min(peers)[1]))
    # One model at one length each: every batch and length that is timed.
    shown = [cell for cell in compared if cell[0].startswith("llama8b b") and len(cell[0].split()) == 3]
    wins = sum(ours >= peer for _, ours, peer, _ in compared)
    # Narrow, so that it can be read on a telephone.
    width, row, left, right, top = 480, 24, 134, 14, 80
    height = top + row * len(shown) + 40
    svg = Svg(width, height, theme, f"Decode reaches the memory floor more closely than the best peer in {wins} of {len(compared)} cells")
    svg.text(0, 17, f"Decode: at least as fast as FlashInfer and XQA in {wins} of {len(compared)} cells", 12.5, bold=True)
    svg.text(0, 37, f"share of the memory floor (a plain read of the KV cache), Llama 8B, bf16, {result['device'].removeprefix('NVIDIA ')}", 11,
             color=theme["soft"])
    svg.rect(left, 52, 12, 10, theme["ours"])
    svg.text(left + 18, 62, "assay", 12)
    svg.rect(left + 70, 52, 12, 10, theme["peer"])
    svg.text(left + 88, 62, "best of FlashInfer and XQA", 12)
    scale = width - left - right
    for share in (0, 25, 50, 75, 100):
        x = left + scale * share / 100
        svg.line(x, top - 8, x, height - 34, theme["ink"] if share == 100 else theme["grid"], 1.5 if share == 100 else 1)
        svg.text(x, height - 20, f"{share} %", 11, "end" if share == 100 else "middle", theme["soft"])
    for at, (name, ours, peer, _) in enumerate(shown):
        y = top + row * at
        batch, keys = name.split()[1:]
        svg.text(left - 8, y + 13, f"batch {batch[1:]}, {keys} keys", 12, "end")
        svg.rect(left, y, scale * ours, 12, theme["ours"])
        svg.rect(left, y + 12, scale * peer, 7, theme["peer"])
        svg.text(left + scale * ours - 5, y + 10, f"{100 * ours:.0f} %", 11, "end", theme["on"])
    svg.text(0, height - 3, f"{result['date']}, commit {result['commit']}, FlashInfer {result['flashinfer']}, torch {result['torch']}", 10,
             color=theme["soft"])
    return svg


def kills(theme):
    """Mutants made by a program: what the usual rules see of them, and what `assay check` sees."""
    with (ROOT / "corpus/mutants/machine-20261126.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["outcome"] != "unviable" and row["triage"] in ("", "hole")]
    seen = {"every element within 1e-2": "1e-2", "98 % of elements within 1e-2": "98%", "every element within 1e-3": "1e-3",
            "at most twice a plain run's error": "2x"}
    bars = [(words, sum(rule in row["usual"].split() or row["usual"] == "ended" for row in rows)) for words, rule in seen.items()]
    bars.append(("assay check", sum(row["outcome"] != "survived" for row in rows)))
    svg = Svg(480, 218, theme, f"assay check sees {bars[-1][1]} of {len(rows)} wrong kernels, the usual rules at most {max(b for _, b in bars[:-1])}")
    svg.text(0, 18, f"{len(rows)} kernels made wrong by a program: how many a rule rejects", 12.5, bold=True)
    left, scale = 196, 206
    for at, (words, count) in enumerate(bars):
        y = 40 + 34 * at
        color = theme["ours"] if words == "assay check" else theme["peer"]
        svg.text(left - 8, y + 16, words, 11.5, "end", bold=words == "assay check")
        svg.rect(left, y, scale * count / len(rows), 24, color)
        svg.text(left + scale * count / len(rows) + 6, y + 16, f"{count} ({100 * count / len(rows):.0f} %)", 12)
    svg.text(0, 214, "corpus/mutants/machine-20261126.csv", 10, color=theme["soft"])
    return svg


def interval(theme):
    """One element: where the exact value is, what two declared arithmetics allow, and where two kernels landed."""
    data = json.loads((ROOT / "oracle/guides/interval.json").read_text())
    exact, right = data["exact"], data["right_kernel"]
    reach = 1.25 * max(claim["allowed"] for claim in data["claims"])
    left, width = 96, 380
    at = lambda value: left + width * (value - exact + reach) / (2 * reach)  # noqa: E731
    svg = Svg(480, 350, theme, "The interval of an element under two declarations, and its terms")
    svg.text(0, 18, f"One output: {data['element']}", 13, bold=True)
    for row, claim in enumerate(data["claims"]):
        y = 66 + 44 * row
        svg.text(left - 10, y + 5, claim["like"], 13, "end", bold=True)
        svg.rect(at(exact - claim["allowed"]), y - 9, at(exact + claim["allowed"]) - at(exact - claim["allowed"]), 18, theme["grid"])
        svg.line(at(exact), y - 14, at(exact), y + 14, theme["ink"], 2)
        svg.dot(at(right), y, theme["ours"])
        svg.text(left + width, y - 13, f"exact +- {claim['allowed']:.3g}", 11, "end", theme["soft"])
    y = 158
    svg.line(at(exact), 44, at(exact), y - 12, theme["ink"], 1, "3 3")
    svg.text(at(exact), y, f"exact {exact:.9g}", 12, "middle")
    distance = (data["one_key_lost"] - exact) / max(claim["allowed"] for claim in data["claims"])
    svg.dot(5, y + 20, theme["ours"])
    svg.text(16, y + 24, f"a right kernel: {right:.6f}", 12)
    svg.dot(180, y + 20, theme["wrong"])
    svg.text(191, y + 24, f"one key lost: {data['one_key_lost']:.6f}, {distance:.0f} x what fa2 allows", 12)
    svg.text(0, 216, "What each is allowed for", 13, bold=True)
    names = sorted({term for claim in data["claims"] for term in claim["terms"]}, key=list(TERMS).index)
    largest = max(claim["allowed"] for claim in data["claims"])
    for row, claim in enumerate(data["claims"]):
        x, y = left, 228 + 26 * row
        svg.text(left - 10, y + 13, claim["like"], 12, "end")
        for name in names:
            length = width * claim["terms"].get(name, 0) / largest
            svg.rect(x, y, length, 17, theme["terms"][names.index(name)])
            x += length
    for index, name in enumerate(names):
        x, y = (index % 2) * 230 + 10, 290 + 20 * (index // 2)
        svg.rect(x, y, 11, 11, theme["terms"][index])
        svg.text(x + 17, y + 10, TERMS[name], 12)
    return svg


def growth(theme):
    """A campaign: the features that each task has seen, over its own time, from its first point on."""
    data = json.loads((ROOT / "properties/tools/campaign/growth.json").read_text())
    tasks = [task for task in data["tasks"] if task["growth"]]
    width, high, row, top = 214, 44, 84, 46
    height = top + row * ((len(tasks) + 1) // 2) + 14
    svg = Svg(480, height, theme, f"Features of {len(tasks)} tasks of a campaign over time")
    svg.text(0, 17, "What each task has seen, over its time", 13, bold=True)
    svg.text(0, 35, data["words"], 11, color=theme["soft"])
    for at, task in enumerate(tasks):
        x, y = (at % 2) * 258, top + row * (at // 2) + 18
        seconds, _, features = task["growth"][-1]
        svg.text(x, y, task["name"], 12, bold=True)
        svg.text(x + width, y, f"{features:,} in {seconds:.0f} s", 11, "end", theme["soft"])
        foot = y + 8 + high
        svg.line(x, foot, x + width, foot, theme["grid"])
        svg.curve([(x + width * when / seconds, foot - high * seen / features) for when, _, seen in task["growth"]], theme["ours"])
    svg.text(0, height - 3, "properties/tools/campaign/growth.json", 10, color=theme["soft"])
    return svg


PICTURES = {"kernels/bench/results/front": speed, "corpus/mutants/kills": kills, "oracle/guides/interval": interval,
            "properties/tools/campaign/growth": growth}


def pictures():
    """(path, text) of every picture."""
    for name, draw in PICTURES.items():
        for end, theme in THEMES.items():
            yield ROOT / f"{name}{end}.svg", str(draw(theme))


def check():
    for path, text in pictures():
        if not path.exists() or path.read_text() != text:
            yield f"{path.relative_to(ROOT)} is not what its data says: ci/docs.py pictures --write"


def write():
    for path, text in pictures():
        path.write_text(text)
    return []
