"""Quality in this process: figures, charts and questions of saved runs, whatever is in their files."""

import json
import os
import re
from html import escape, unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pytest

from bedstone.evaluation.charts import Scale, format_amount
from bedstone.evaluation.history import RunHistory
from support.site import Site, make_settings, open_site

HOSTILE = "<img src=x onerror=alert(1)>"


def make_run(mrr: float, ranks: list[int | None], **more: Any) -> dict[str, Any]:
    results = [
        {
            "name": f"case {number}",
            "query": f"question {number} {HOSTILE}",
            "category": f"kind {number % 2}",
            "rank": rank,
        }
        for number, rank in enumerate(ranks)
    ]
    return {
        "name": "demo",
        "cases": len(ranks),
        "quality": {"mrr@5": mrr, "ndcg@5": 0.863, "hit@5": 0.8, "hit@1": 0.5},
        "by_category": {"kind 0": {"mrr@5": mrr}, "kind 1": {"mrr@5": 0.25}},
        "search_ms": {"p50": 10 * mrr},
        "cpu_ms_per_search": 4.0,
        "peak_rss_mb": 163.2,
        "results": results,
        **more,
    }


def save(folder: Path, day: int, run: Any) -> str:
    """Save a run of a day and return its id."""
    place = folder / "data" / "evaluations"
    place.mkdir(parents=True, exist_ok=True)
    name = f"2026010{day}-demo"
    text = run if isinstance(run, str) else json.dumps({"at": f"2026-01-0{day}T09:00:00+00:00", **run})
    (place / f"{name}.json").write_text(text)
    return name


async def test_the_latest_run_is_compared_with_the_one_before(tmp_path: Path) -> None:
    save(tmp_path, 1, make_run(0.5, [1, 2, 3, 4, 5]))
    save(tmp_path, 2, make_run(0.75, [1, 3, 2, None, 5]))
    async with open_site(make_settings(tmp_path, "kb")) as site:
        text = await site.text("/quality")
        assert "5 questions with known answers, asked" in text
        assert "Answer first, MRR@5</dt><dd>0.750</dd>" in text
        assert "0.250 better</span>" in text
        assert "Found at all, hit@5</dt><dd>4 <small>of 5</small></dd>" in text
        assert "2.5 ms slower</span>" in text
        assert '<dd class="small softer">as before</dd>' in text
        assert 'aria-label="MRR@5: 0.750, before 0.500; nDCG@5: 0.863, before 0.863;' in text
        assert 'aria-label="Latest: 7.5 ms; Before: 5 ms"' in text
        assert text.count('<svg class="chart"') == 5  # quality, kinds, time, CPU, memory: one measure each
        assert "kind 0 (3)" in text
        order = re.findall(r'<td class="whole"><a href="/search\?q=question%20(\d)', text)
        assert order == ["3", "4", "1", "2", "0"]  # the worst first
        assert HOSTILE not in text
        assert escape(f"question 3 {HOSTILE}") in text
        assert re.search(r"not found</td><td[^>]*><span class=\"worse small\">.*?lost</span>", text)


async def test_questions_are_narrowed_and_counted(tmp_path: Path) -> None:
    save(tmp_path, 1, make_run(0.5, [1, 2, 3, 4, 5]))
    save(tmp_path, 2, make_run(0.75, [1, 3, 2, None, 5]))
    async with open_site(make_settings(tmp_path, "kb")) as site:
        text = await site.text("/quality")
        for title, count in (("All", 5), ("Not found", 1), ("Worse", 2), ("Better", 1)):
            assert f"{title} <b>{count}</b>" in text
        worse = await site.text("/quality?show=worse")
        assert re.findall(r"q=question%20(\d)", worse) == ["3", "1"]
        assert "No question is like that" in await site.text("/quality?show=better&against=20260102-demo&page=9")


async def test_the_set_and_the_run_to_compare_with_are_in_the_address(tmp_path: Path) -> None:
    first = save(tmp_path, 1, make_run(0.25, [4, 4]))
    save(tmp_path, 2, make_run(0.5, [2, 2]))
    save(tmp_path, 3, make_run(0.75, [1, 1]))
    save(tmp_path, 4, make_run(0.9, [1], name=HOSTILE))
    async with open_site(make_settings(tmp_path, "kb")) as site:
        assert "0.900" in await site.text("/quality")  # the set that ran last
        text = await site.text("/quality?set=demo")
        assert "0.250 better" in text
        against = await site.text(f"/quality?set=demo&against={first}")
        assert "0.500 better" in against
        assert f'<option value="{first}" selected>against 2026-01-01 09:00</option>' in against
        assert f"<option selected>{escape(HOSTILE)}</option>" in await site.text(f"/quality?set={quote(HOSTILE)}")
        chart = await site.get(f"/quality/chart.svg?name={quote(HOSTILE)}")
        assert chart.headers["content-type"] == "image/svg+xml"
        assert ElementTree.fromstring(chart.text).tag.endswith("svg")
        assert HOSTILE not in chart.text
        assert "Evaluation" in await site.text("/quality/chart.svg?name=none", status=404)


async def test_without_runs_the_page_has_the_command_to_copy(tmp_path: Path) -> None:
    async with open_site(make_settings(tmp_path, "kb")) as site:
        text = await site.text("/quality")
        assert "No evaluations yet" in text
        assert '<pre id="command" tabindex="0">bedstone eval run' in text
        assert 'data-copy="command"' in text


ODD_RUNS: dict[str, Any] = {
    "not JSON": "[" * 100_000,
    "a list": "[]",
    "no quality": "{}",
    "quality is a text": {"quality": "good"},
    "numbers that make no sense": {
        "quality": {"mrr@5": -3, "ndcg@5": 1e308, "hit@5": True, "hit@1": "1"},
        "cases": 10**400,
        "errors": "many",
        "search_ms": {"p50": 1e308},
        "cpu_ms_per_search": -1,
        "peak_rss_mb": 5e-324,
    },
    "not numbers": '{"quality": {"mrr@5": NaN, "ndcg@5": Infinity, "hit@5": null}, "cases": {}, "by_category": []}',
    "odd names": {
        "name": "\ud800 " + HOSTILE * 50,
        "at": ["never"],
        "quality": {"mrr@5": 0.5},
        "by_category": {HOSTILE: {"mrr@5": 0.5}, "\udfff\0": {"mrr@5": {}}, "x" * 10_000: 5},
        "results": [5, None, {"name": HOSTILE, "rank": "first"}, {"name": "\ud800", "rank": True, "category": []}],
    },
    "results are a text": {"quality": {"mrr@5": 0.5}, "results": HOSTILE},
}


@pytest.mark.parametrize("run", ODD_RUNS.values(), ids=ODD_RUNS)
async def test_an_odd_file_breaks_neither_the_page_nor_the_chart(tmp_path: Path, run: Any) -> None:
    save(tmp_path, 1, make_run(0.5, [1, 2]))
    save(tmp_path, 2, run)
    async with open_site(make_settings(tmp_path, "kb")) as site:
        await assert_shown(site)
        save(tmp_path, 3, make_run(0.5, [1, 2]))
        await assert_shown(site)
        assert "0.500" in await site.text("/quality?set=demo")


async def assert_shown(site: Site) -> None:
    text = await site.text("/quality")
    assert HOSTILE not in text
    assert len(text) < 150_000
    for name in re.findall(r"<option(?: selected)?>([^<]*)</option>", text):
        drawn = await site.http.get("/quality/chart.svg", params={"name": unescape(name)})
        assert drawn.status_code == 200, name
        ElementTree.fromstring(drawn.text)


async def test_only_regular_files_of_a_size_are_read(tmp_path: Path) -> None:
    save(tmp_path, 1, make_run(0.5, [1, 2]))
    folder = tmp_path / "data" / "evaluations"
    os.mkfifo(folder / "20270101-pipe.json")  # reading it would take forever
    (folder / "20270102-gone.json").symlink_to(tmp_path / "nowhere")
    (folder / "20270103-folder.json").mkdir()
    (folder / "20270104-huge.json").write_text('{"name": "huge", "quality": {}' + " " * 21_000_000 + "}")
    assert list(RunHistory(tmp_path / "data").sets()) == ["demo"]


async def test_many_kinds_and_questions_are_shown_in_part(tmp_path: Path) -> None:
    run = make_run(0.5, [None] * 2_000)
    run["by_category"] = {f"kind {number}": {"mrr@5": number / 100} for number in range(90)}
    save(tmp_path, 1, run)
    async with open_site(make_settings(tmp_path, "kb")) as site:
        text = await site.text("/quality")
        assert "78 better kinds are not shown" in text
        assert text.count('<td class="whole">') == 50
        assert "Page 1 of 40" in text
        assert len(text) < 150_000


async def test_questions_that_could_not_be_asked_are_told(tmp_path: Path) -> None:
    save(tmp_path, 1, make_run(0.5, [1, None], errors=1))
    async with open_site(make_settings(tmp_path, "kb")) as site:
        assert "1 question could not be asked" in await site.text("/quality")


@pytest.mark.parametrize(
    ("maximum", "marks"),
    [
        (3.7, (1.0, 4.0)),
        (163.2, (50.0, 200.0)),
        (0.0, (0.5, 1.0)),
        (1.0, (0.25, 1.0)),
        (5.17, (2.0, 6.0)),
        (1e308, None),
    ],
)
def test_axes_begin_at_zero_and_have_round_marks(maximum: float, marks: tuple[float, float] | None) -> None:
    scale = Scale.up_to(maximum, "ms")
    assert scale.maximum >= maximum
    if marks is not None:
        assert (scale.step, scale.maximum) == marks


@pytest.mark.parametrize(
    ("value", "text"),
    [(3.7, "3.7"), (1.834, "1.83"), (81.13, "81.1"), (163.2, "163"), (0.0, "0"), (12_345.0, "12,345")],
)
def test_amounts_have_about_three_digits(value: float, text: str) -> None:
    assert format_amount(value) == text
