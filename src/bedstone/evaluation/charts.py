"""Runs of an evaluation as a bar chart in SVG."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

COLOURS = ("#2b6cb0", "#dd6b20", "#2f855a", "#805ad5", "#b83280", "#718096")
# Over whatever is behind it, light or dark.
STYLE = "<style>text{fill:#1a202c}@media(prefers-color-scheme:dark){text{fill:#e2e8f0}}</style>"
LABEL_LETTERS = 18
SHARES = ("quality", "by_category")
LABEL_WIDTH, BAR_WIDTH, BAR_HEIGHT, GAP, HEAD = 130, 420, 16, 14, 40
PANELS: Sequence[tuple[str, tuple[str, ...]]] = (
    ("MRR@5", ("quality", "mrr@5")),
    ("nDCG@5", ("quality", "ndcg@5")),
    ("hit@5", ("quality", "hit@5")),
    ("nDCG@10", ("quality", "ndcg@10")),
    ("recall@10", ("quality", "recall@10")),
    ("MRR@10", ("quality", "mrr@10")),
    ("search p50, ms", ("search_ms", "p50")),
    ("CPU a search, ms", ("cpu_ms_per_search",)),
    ("memory, MB", ("peak_rss_mb",)),
)


def bar_chart(runs: Mapping[str, Mapping[str, Any]], title: str) -> str:
    """One group of bars per figure, one bar per run; shares end at one, every other group has a scale of its own."""
    parts: list[str] = []
    y = HEAD + 20 * (1 + (len(runs) - 1) // 4)
    for label, path in (*PANELS, *_categories(runs.values())):
        values = [_value(run, path) for run in runs.values()]
        if all(value is None for value in values):
            continue
        largest = 1.0 if path[0] in SHARES else max(value or 0.0 for value in values)
        middle = y + len(values) * BAR_HEIGHT / 2 + 4
        parts.append(f'<text x="{LABEL_WIDTH - 8}" y="{middle:.0f}" text-anchor="end">{escape(label)}</text>')
        for number, value in enumerate(values):
            parts += _bar(y + number * BAR_HEIGHT, value, largest, COLOURS[number % len(COLOURS)])
        y += len(values) * BAR_HEIGHT + GAP
    width = LABEL_WIDTH + BAR_WIDTH + 80
    legend = [_key(number, name) for number, name in enumerate(runs)]
    frame = f'width="{width}" height="{y}" viewBox="0 0 {width} {y}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {frame} font-family="system-ui, sans-serif" font-size="12">',
            STYLE,
            f'<text x="12" y="22" font-size="15" font-weight="600">{escape(title)}</text>',
            *legend,
            *parts,
            "</svg>\n",
        ]
    )


def _categories(runs: Iterable[Mapping[str, Any]]) -> list[tuple[str, tuple[str, ...]]]:
    """MRR@5 of each category of questions that a run tells apart."""
    told = [found for run in runs if isinstance(found := run.get("by_category"), Mapping)]
    names = dict.fromkeys(name for found in told for name in found if len(found) > 1)
    return [(str(name)[:LABEL_LETTERS], ("by_category", name, "mrr@5")) for name in names]


def _bar(y: float, value: float | None, largest: float, colour: str) -> list[str]:
    if value is None:
        return []
    length = BAR_WIDTH * value / largest if largest else 0
    return [
        f'<rect x="{LABEL_WIDTH}" y="{y}" width="{length:.1f}" height="{BAR_HEIGHT - 3}" rx="2" fill="{colour}"/>',
        f'<text x="{LABEL_WIDTH + length + 6:.1f}" y="{y + BAR_HEIGHT - 5}">{value:g}</text>',
    ]


def _key(number: int, name: str) -> str:
    x, y = 12 + number % 4 * 150, HEAD + number // 4 * 20
    square = f'<rect x="{x}" y="{y - 10}" width="11" height="11" rx="2" fill="{COLOURS[number % len(COLOURS)]}"/>'
    return f'{square}<text x="{x + 16}" y="{y}">{escape(name)}</text>'


def _value(run: Mapping[str, Any], path: Sequence[str]) -> float | None:
    value: Any = run
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return float(value) if isinstance(value, int | float) else None
