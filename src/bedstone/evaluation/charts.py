"""Draw runs of an evaluation as SVG: horizontal bars from zero, one measure and one axis per chart."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import floor, log10
from typing import Any

from bedstone.evaluation.history import MAX_NAME_LENGTH, clean_text
from bedstone.evaluation.report import read_figure

MAX_LABEL_LENGTH = 16
MAX_KINDS = 12
MAX_TICKS = 5
MIN_AMOUNT = 1e-6  # less is nothing
MAX_AMOUNT = 1e9  # more is written with an exponent
TOP = 4
GAP = 15  # between groups of bars
BAR_GAP = 3
AXIS_HEIGHT = 24
TEXT_RISE = 4  # from the middle of a line of text to its base
# Of a chart that stands alone. The background is transparent, so the text follows the colour scheme of the viewer.
COLOURS = ("#96450f", "#4a6078", "#2f855a", "#805ad5", "#b83280", "#718096")
STYLE = (
    "<style>text{fill:#474d56}.value{fill:#191c20;font-weight:600}.grid-line{stroke:#dfdbd4}.base{stroke:#857d72}"
    "@media(prefers-color-scheme:dark){text{fill:#b9c0c8}.value{fill:#eef0f2}.grid-line{stroke:#2d333b}}"
    "COLOURS</style>"
)
WIDTH = 640
HEADER_HEIGHT = 40
LEGEND_COLUMNS = 4
MAX_LEGEND_LENGTH = 20


@dataclass(frozen=True)
class Bar:
    """A bar: its value, and the class that says which run it belongs to."""

    value: float | None
    kind: str


@dataclass(frozen=True)
class Group:
    """Bars that share a label."""

    label: str
    bars: Sequence[Bar]


@dataclass(frozen=True)
class Scale:
    """An axis from zero: where it ends, how far its marks are apart, and its unit."""

    maximum: float
    step: float
    unit: str = ""
    decimals: int | None = None  # of values; None chooses

    @classmethod
    def share(cls) -> "Scale":
        """Return the axis of figures from 0 to 1."""
        return cls(1.0, 0.25, decimals=3)

    @classmethod
    def up_to(cls, maximum: float, unit: str) -> "Scale":
        """Return an axis with round marks that reaches a value."""
        if maximum < MIN_AMOUNT:
            return cls(1.0, 0.5, unit)
        rough = maximum / (MAX_TICKS - 1)
        power = 10.0 ** floor(log10(rough))
        step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * (1 - 1e-9))
        return cls(step * -(-maximum // step), step, unit)

    def describe(self, value: float) -> str:
        """Return a value of this axis as people read it."""
        return f"{value:.{self.decimals}f}" if self.decimals is not None else format_amount(value)


def format_amount(value: float) -> str:
    """Return an amount with about three digits."""
    if abs(value) >= MAX_AMOUNT:
        return f"{value:.3g}"
    decimals = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2  # noqa: PLR2004
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


@dataclass(frozen=True)
class Layout:
    """The size of a chart: its width, the room for labels, and the height of a bar."""

    width: int
    label_width: int
    bar_height: int

    @property
    def start(self) -> int:
        """Return where bars begin."""
        return self.label_width + 12

    @property
    def length(self) -> int:
        """Return how long the longest bar is; its value stands behind it."""
        return self.width - 54 - self.start


def draw_chart(groups: Sequence[Group], scale: Scale, layout: Layout) -> str:
    """Return a chart for a page, whose stylesheet has the colours; its label tells the values."""
    elements, height = _draw_bars(groups, scale, layout)
    label = escape("; ".join(_describe_group(group, scale) for group in groups))
    head = f'<svg class="chart" viewBox="0 0 {layout.width} {height}" role="img" aria-label="{label}">'
    return f"{head}{''.join(elements)}</svg>"


def _describe_group(group: Group, scale: Scale) -> str:
    unit = f" {scale.unit}" if scale.unit else ""
    values = [f"{scale.describe(bar.value)}{unit}" for bar in group.bars if bar.value is not None]
    return f"{clean_text(group.label, MAX_NAME_LENGTH)}: {', before '.join(values) or 'not measured'}"


def _draw_bars(groups: Sequence[Group], scale: Scale, layout: Layout) -> tuple[list[str], int]:
    """Return the elements of a chart and its height."""
    parts: list[str] = []
    y, pitch = TOP + 6, layout.bar_height + BAR_GAP
    for group in groups:
        height = len(group.bars) * pitch - BAR_GAP
        middle = y + height / 2 + TEXT_RISE
        label = escape(clean_text(group.label, MAX_LABEL_LENGTH))
        parts.append(f'<text x="{layout.label_width}" y="{middle:g}" text-anchor="end">{label}</text>')
        for number, bar in enumerate(group.bars):
            parts += _draw_bar(bar, y + number * pitch, scale, layout, "axis" if number else "value")
        y += height + GAP
    bottom = y - GAP + 8
    base = f'<line class="base" x1="{layout.start}" x2="{layout.start}" y1="{TOP}" y2="{bottom}"/>'
    return [*_draw_axis(scale, layout, bottom), *parts, base], bottom + AXIS_HEIGHT


def _draw_bar(bar: Bar, y: float, scale: Scale, layout: Layout, text_class: str) -> list[str]:
    if bar.value is None:
        return []
    length = layout.length * min(max(bar.value / scale.maximum, 0.0), 1.0)
    x, middle = layout.start + length + 8, y + layout.bar_height / 2 + TEXT_RISE
    size = f'width="{length:.1f}" height="{layout.bar_height}" rx="2"'
    return [
        f'<rect class="{bar.kind}" x="{layout.start}" y="{y:g}" {size}/>',
        f'<text class="{text_class}" x="{x:.1f}" y="{middle:g}">{scale.describe(bar.value)}</text>',
    ]


def _draw_axis(scale: Scale, layout: Layout, bottom: int) -> list[str]:
    parts = []
    for number in range(round(scale.maximum / scale.step) + 1):
        value = number * scale.step
        x = layout.start + layout.length * value / scale.maximum
        text = format_amount(value)
        parts.append(f'<line class="grid-line" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}"/>')
        parts.append(f'<text class="axis" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{text}</text>')
    if scale.unit:
        x = layout.width - 2
        parts.append(f'<text class="axis" x="{x}" y="{bottom + 16}" text-anchor="end">{escape(scale.unit)}</text>')
    return parts


# Panels of a chart of several runs: their title, their scale (None is from 0 to 1), and the path of each figure.
QUALITY = ("mrr@5", "ndcg@5", "hit@5", "hit@1", "mrr@10", "ndcg@10", "recall@10")
NAMES = {"mrr": "MRR", "ndcg": "nDCG", "hit": "hit", "recall": "recall"}
COSTS: Sequence[tuple[str, str, tuple[str, ...]]] = (
    ("Time of a search, median", "ms", ("search_ms", "p50")),
    ("CPU time of a search", "ms", ("cpu_ms_per_search",)),
    ("Peak memory", "MB", ("peak_rss_mb",)),
)


def name_metric(key: str) -> str:
    """Return a metric as it is written: MRR@5 for `mrr@5`."""
    name, _, depth = key.partition("@")
    return f"{NAMES.get(name, name)}@{depth}"


def bar_chart(runs: Mapping[str, Mapping[str, Any]], title: str) -> str:
    """Draw runs beside each other as a file of its own: quality, each kind of question, then each cost."""
    parts: list[str] = []
    y = HEADER_HEIGHT + 20 * (1 + (len(runs) - 1) // LEGEND_COLUMNS)
    for heading, groups, scale in _panels(runs):
        elements, height = _draw_bars(groups, scale, Layout(WIDTH, 130, 14))
        parts += [
            f'<text x="12" y="{y}" font-weight="600">{escape(heading)}</text>',
            f'<g transform="translate(0 {y + 8})">',
        ]
        parts += [*elements, "</g>"]
        y += height + 34
    colours = "".join(f".run{number}{{fill:{colour}}}" for number, colour in enumerate(COLOURS))
    frame = f'width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {frame} font-family="system-ui, sans-serif" font-size="12">',
            STYLE.replace("COLOURS", colours),
            f'<text x="12" y="22" font-size="15" font-weight="600">{escape(clean_text(title, MAX_NAME_LENGTH))}</text>',
            *(_legend_entry(number, name) for number, name in enumerate(runs)),
            *parts,
            "</svg>\n",
        ]
    )


def _panels(runs: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, list[Group], Scale]]:
    """Return heading, bars and scale of each panel that has a value."""
    quality = [(name_metric(key), ("quality", key)) for key in QUALITY]
    kinds = [(name, ("by_category", name, "mrr@5")) for name in list_kinds(runs.values())[:MAX_KINDS]]
    panels = [("Quality", _groups(runs, quality), Scale.share())]
    panels.append(("MRR@5 by kind of question", _groups(runs, kinds), Scale.share()))
    for heading, unit, path in COSTS:
        groups = _groups(runs, [("", path)])
        maximum = max((bar.value or 0.0 for group in groups for bar in group.bars), default=0.0)
        panels.append((f"{heading}, {unit}", groups, Scale.up_to(maximum, unit)))
    return [panel for panel in panels if panel[1]]


def _groups(runs: Mapping[str, Mapping[str, Any]], figures: Iterable[tuple[str, Sequence[str]]]) -> list[Group]:
    """Return a group for each figure that a run has, with one bar per run."""
    groups = [
        Group(
            label,
            [Bar(read_figure(run, path), f"run{number % len(COLOURS)}") for number, run in enumerate(runs.values())],
        )
        for label, path in figures
    ]
    return [group for group in groups if any(bar.value is not None for bar in group.bars)]


def list_kinds(runs: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the kinds of questions, if a run has several."""
    groups = [group for run in runs if isinstance(group := run.get("by_category"), Mapping) and len(group) > 1]
    return list(dict.fromkeys(name for group in groups for name in group))


def _legend_entry(number: int, name: str) -> str:
    x, y = 12 + number % LEGEND_COLUMNS * 150, HEADER_HEIGHT + number // LEGEND_COLUMNS * 20
    square = f'<rect class="run{number % len(COLOURS)}" x="{x}" y="{y - 10}" width="11" height="11" rx="2"/>'
    return f'{square}<text x="{x + 16}" y="{y}">{escape(clean_text(name, MAX_LEGEND_LENGTH))}</text>'
