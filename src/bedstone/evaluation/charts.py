"""Draw runs of an evaluation as an SVG bar chart."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from bedstone.evaluation.report import read_figure

COLOURS = ("#2b6cb0", "#dd6b20", "#2f855a", "#805ad5", "#b83280", "#718096")
# The background is transparent, so the text follows the colour scheme of the page.
STYLE = "<style>text{fill:#1a202c}@media(prefers-color-scheme:dark){text{fill:#e2e8f0}}</style>"
MAX_LABEL_LENGTH = 18
SHARES = ("quality", "by_category")
LABEL_WIDTH = 130
BAR_WIDTH = 420
BAR_HEIGHT = 16
GAP = 14
HEADER_HEIGHT = 40
PANELS: Sequence[tuple[str, tuple[str, ...]]] = (
    ("MRR@5", ("quality", "mrr@5")),
    ("nDCG@5", ("quality", "ndcg@5")),
    ("hit@5", ("quality", "hit@5")),
    ("nDCG@10", ("quality", "ndcg@10")),
    ("recall@10", ("quality", "recall@10")),
    ("MRR@10", ("quality", "mrr@10")),
    ("search p50, ms", ("search_ms", "p50")),
    ("CPU per search, ms", ("cpu_ms_per_search",)),
    ("memory, MB", ("peak_rss_mb",)),
)


def bar_chart(runs: Mapping[str, Mapping[str, Any]], title: str) -> str:
    """Draw a group of bars per figure, one bar per run; shares are scaled to 1, other groups to their maximum."""
    parts: list[str] = []
    y = HEADER_HEIGHT + 20 * (1 + (len(runs) - 1) // 4)
    for label, path in (*PANELS, *_category_panels(runs.values())):
        values = [read_figure(run, path) for run in runs.values()]
        if all(value is None for value in values):
            continue
        maximum = 1.0 if path[0] in SHARES else max(value or 0.0 for value in values)
        middle = y + len(values) * BAR_HEIGHT / 2 + 4
        parts.append(f'<text x="{LABEL_WIDTH - 8}" y="{middle:.0f}" text-anchor="end">{escape(label)}</text>')
        for number, value in enumerate(values):
            parts += _draw_bar(y + number * BAR_HEIGHT, value, maximum, COLOURS[number % len(COLOURS)])
        y += len(values) * BAR_HEIGHT + GAP
    width = LABEL_WIDTH + BAR_WIDTH + 80
    legend = [_legend_entry(number, name) for number, name in enumerate(runs)]
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


def _category_panels(runs: Iterable[Mapping[str, Any]]) -> list[tuple[str, tuple[str, ...]]]:
    """List MRR@5 of each category, if a run has several."""
    groups = [group for run in runs if isinstance(group := run.get("by_category"), Mapping) and len(group) > 1]
    names = dict.fromkeys(name for group in groups for name in group)
    return [(str(name)[:MAX_LABEL_LENGTH], ("by_category", name, "mrr@5")) for name in names]


def _draw_bar(y: float, value: float | None, maximum: float, colour: str) -> list[str]:
    if value is None:
        return []
    length = BAR_WIDTH * value / maximum if maximum else 0
    return [
        f'<rect x="{LABEL_WIDTH}" y="{y}" width="{length:.1f}" height="{BAR_HEIGHT - 3}" rx="2" fill="{colour}"/>',
        f'<text x="{LABEL_WIDTH + length + 6:.1f}" y="{y + BAR_HEIGHT - 5}">{value:g}</text>',
    ]


def _legend_entry(number: int, name: str) -> str:
    x, y = 12 + number % 4 * 150, HEADER_HEIGHT + number // 4 * 20
    square = f'<rect x="{x}" y="{y - 10}" width="11" height="11" rx="2" fill="{COLOURS[number % len(COLOURS)]}"/>'
    return f'{square}<text x="{x + 16}" y="{y}">{escape(name)}</text>'
