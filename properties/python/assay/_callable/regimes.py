# SPDX-License-Identifier: Apache-2.0
"""What inputs are like: each regime shows mistakes that the others hide."""
import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class Regime:
    says: str  #: what is in it, for reports and pages
    lengths: str = "full"  #: full, ragged (the first is not the longest), falling, short (none is the longest), empty (some are 0) or one (all but one are)
    score: float = 1.0  #: standard deviation of scores
    value: float = 1.0  #: standard deviation of V
    strong: str = ""  #: "", first, last or edges: where each head has one key that outweighs all others
    special: str = ""  #: "", equal (keys of a head are one key), zero (the strong key is 0), low (all scores far below 0), wide (large K, small q), magnitudes (of V, by head), nan (behind lengths), counts
    pages: str = ""  #: "" (in any order), shared (tables of neighbours begin with the same), consecutive (in a request) or many (in the pool)
    scale: float = 1.0  #: sm_scale, in multiples of 1 / sqrt(head_dim)


REGIMES = {
    "ordinary": Regime("all requests as long as the table, N(0, 1)"),
    "ragged": Regime("lengths of 1 to all keys, the first not the longest; one key of each head outweighs all others", "ragged", strong="edges"),
    "lengths": Regime("lengths of 1 to all keys, N(0, 1)", "ragged"),
    "strong_last": Regime("the last key of each request outweighs all others; the pool has a thousand pages", strong="last", pages="many"),
    "strong_first": Regime("the first key of each request outweighs all others; its pages are consecutive", strong="first", pages="consecutive"),
    "strong_edges": Regime("one key of each head, at an edge of a page, tile or split, outweighs all others", strong="edges"),
    "large_scores": Regime("scores of 32 in standard deviation", score=32.0),
    "small": Regime("q, k and v of 0.1 in standard deviation", score=0.01, value=0.1),
    "magnitudes": Regime("values of V from the smallest normal ones to the largest, by head", special="magnitudes"),
    "short": Regime("no request as long as the table", "short", strong="edges"),
    "longest_first": Regime("requests by their length, the longest first", "falling", strong="edges"),
    "shared_pages": Regime("tables of neighbours begin with the same pages, and some have the same q and length; q of a head is 0", "ragged", strong="edges", pages="shared"),
    "zero_key": Regime("a key of zeros outweighs all others, whose scores are below 0", "ragged", strong="edges", special="zero"),
    "low_scores": Regime("all scores are 150 lower", "ragged", strong="edges", special="low"),
    "wide_keys": Regime("K as large as the dtype allows, and q as small", "ragged", strong="edges", special="wide"),
    "small_scale": Regime("sm_scale is 0.375 / sqrt(head_dim)", scale=0.375),
    "large_scale": Regime("sm_scale is 2.5 / sqrt(head_dim)", scale=2.5),
    "equal_keys": Regime("all keys of a head are equal, so that weights are", "ragged", special="equal"),
    "counts": Regime("q is 0 and V says which key a row is: O counts how often each key counted", "ragged", special="counts"),
    "nan_behind": Regime("NaN behind each length, and in pages that no request has", "ragged", special="nan"),
    "empty": Regime("some requests without a key", "empty"),
    "one_active": Regime("one request with keys, which is not the first", "one"),
}  # fmt: skip


def regime(name):
    if name not in REGIMES:
        raise ValueError(f"assay: regime is {name!r}, expected one of {', '.join(REGIMES)}")
    return REGIMES[name]


def lengths(kind, shape, rng):
    """Keys of each request, at least q_len but for empty ones."""
    most, least, slots = shape.keys, shape.q_len, max(shape.page_size, 1)
    if kind == "full":
        return [most] * shape.batch
    top = most if kind != "short" else max(least, most // 2 + 1)
    edges = [1, slots + 1, slots, slots - 1, top - 1, top // 2, top // 2 + 1, 2 * slots + 1, 129, 64, 128, 256, top - slots]
    # Every second one is at no edge: a kernel may be right for lengths that it knows.
    mixed = [n for edge in rng.permutation(edges) for n in (int(edge), int(rng.integers(least, top + 1)))]
    mixed += [int(rng.integers(least, top + 1)) for _ in range(max(0, shape.batch - len(mixed)))]
    # The longest stands behind the first, which has a page and a slot, or any length.
    first = int(rng.choice([slots + 1, int(rng.integers(least, max(least + 1, top)))]))
    longest = [top] if kind in ("ragged", "falling") and shape.batch > 1 else []
    made = [min(max(n, least), top) for n in [first, *longest, *mixed][: shape.batch]]
    if kind == "one":
        active = int(rng.integers(min(1, shape.batch - 1), shape.batch))
        return [made[active] if request == active else 0 for request in range(shape.batch)]
    if kind == "falling":
        made.sort(reverse=True)
    if kind == "empty":
        made[:: 3] = [0] * len(made[::3])
    return made


def edges(length, slots):
    """Positions in a row of that many keys where a kernel is likely to lose, double or misplace a key."""
    splits = [length * i // parts + d for parts in (2, 4, 8) for i in range(1, parts) for d in (-1, 0)]
    tiles = [at + d for at in (16, 32, 64, 100, 128, 256, 512) for d in (-1, 0)]
    pages = [slots * page + d for page in (1, 2, max(1, length // max(slots, 1))) for d in (-1, 0)]
    ordered = [length - 1, 0, *pages, *splits, *tiles, length - 2]
    return list(dict.fromkeys(at for at in ordered if 0 <= at < length))


def strong_score(length):
    """The score of a key that has 0.88 of the weight beside `length` others with scores near 0."""
    return math.log(max(length, 2)) + 2
