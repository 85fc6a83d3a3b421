"""Tools in this process: lists, forms made from schemas, and answers for people and as agents see them."""

import json
import re
import shlex
from collections.abc import AsyncIterator
from html import escape, unescape
from pathlib import Path
from urllib.parse import quote

import pytest

from bedstone.web.tools.answers import MAX_ITEMS, MAX_VALUES, render_json, render_readable
from support.site import BASE, Site, make_settings, open_site

HOSTILE = "<img src=x onerror=alert(1)>"
PART = {"x-part": "1"}


@pytest.fixture(scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    folder = tmp_path_factory.mktemp("tools")
    (folder / "guide").mkdir()
    (folder / "guide" / "guide.md").write_text("# Guide\n\nUse the cursor to read on.\n")
    async with open_site(make_settings(folder, "knowledge", "docs", docs={"dir": [folder / "guide"]})) as site:
        await site.add(f"{quote(HOSTILE)}.txt", f"The walrus {HOSTILE} sleeps at noon.".encode())
        yield site


async def test_every_tool_of_every_toolset_is_listed_with_what_it_costs(site: Site) -> None:
    text = await site.text("/tools")
    tools = {name: tool for toolset in site.app.toolsets.values() for name, tool in toolset.tools.items()}
    for name, tool in tools.items():
        assert f'href="/tools/{name}"><code>{name}</code>' in text
        assert str(escape(tool.description, quote=False))[:20] in unescape(text)
        page = await site.text(f"/tools/{name}")
        assert ("reads only</span>" in page) == tool.read_only
        assert f'aria-current="page"><code>{name}</code>' in page
    assert f"{len(tools)} tools that agents can call, about " in text
    for toolset in site.app.toolsets.values():
        assert f"{toolset.title}</h2>" in text
    assert text.count(">deletes</span>") == sum(tool.destructive for tool in tools.values())


async def test_the_list_is_filtered_without_a_script(site: Site) -> None:
    text = await site.text("/tools?find=STATUS")
    assert "<code>knowledge-status</code>" in text
    assert "<code>knowledge-clear</code>" not in text
    nothing = await site.text(f"/tools?find={quote(HOSTILE)}")
    assert "No tool has that in its name or description" in nothing
    assert HOSTILE not in nothing


async def test_a_form_has_the_limits_of_the_schema_and_keeps_what_was_entered(site: Site) -> None:
    page = await site.text(f"/tools/knowledge-search?query=walrus+{quote(HOSTILE)}&top_k=3")
    assert f">walrus {escape(HOSTILE, quote=False)}</textarea>" in page
    assert re.search(
        r'<input[^>]* name="top_k" value="3" placeholder="10" type="number" step="1" min="1" max="50"', page
    )
    assert re.search(r'<textarea[^>]* name="query" [^>]*maxlength="500"[^>]* required', page)
    assert re.search(r'<details class="more whole field"><summary>filters', page)  # JSON is folded while it is empty
    assert "Number of results to return (1 to 50)" in page
    shown = await site.text("/tools/knowledge-show")
    assert "<option>size</option>" in shown
    assert '<option value="">date_added (default)</option>' in shown
    assert "This tool takes no arguments." in await site.text("/tools/knowledge-status")


async def test_a_tool_is_called_with_the_types_of_its_schema(site: Site) -> None:
    given = {"query": "walrus", "top_k": "3", "min_relevance": "0.0", "filters": '{"format": "txt"}'}
    fragment = await site.post("/tools/knowledge-search", given, **PART)
    assert "<html" not in fragment.text
    assert '&#34;top_k&#34;</span>: <span class="value">3</span>' in fragment.text
    assert "<dt>relevance_score</dt>" in fragment.text
    assert HOSTILE not in fragment.text
    assert ">1 result</span>" in fragment.text
    assert re.search(r"<span>[\d.]+ ms</span> <span>about \d+ tokens</span>", fragment.text)
    whole = await site.post("/tools/knowledge-search", given)
    assert "<html" in whole.text
    assert "sleeps at noon" in whole.text
    assert '<details class="more whole field" open><summary>filters' in whole.text
    refused = await site.post("/tools/get_doc", {"chunk_id": "none"}, **PART)
    assert '<span class="state bad">Error</span>' in refused.text
    added = await site.post("/tools/knowledge-add", {"file_path": "/none", "async": "false"}, **PART)
    assert '&#34;async&#34;</span>: <span class="value">false</span>' in added.text
    several = await site.post("/tools/knowledge-add", {"file_path": "/none", "contexts": '["a", "b"]'}, **PART)
    assert "&#34;contexts&#34;</span>: [" in several.text


@pytest.mark.parametrize(
    ("argument", "value", "sentence"),
    [
        ("top_k", "many", "top_k must be a number: many"),
        ("min_relevance", "x", "min_relevance must be a number: x"),
        ("filters", "{", "filters must be valid JSON: {"),
        ("filters", '"\\ud800"', "filters must be valid JSON:"),
        ("filters", "[" * 5_000, "filters must be valid JSON: [[["),
    ],
)
async def test_a_wrong_entry_is_told_at_its_field_and_nothing_is_lost(
    site: Site, argument: str, value: str, sentence: str
) -> None:
    whole = await site.post("/tools/knowledge-search", {"query": "kept as it is", argument: value})
    assert f'<p class="state bad" id="p-{argument}">{sentence}' in whole.text
    assert 'aria-invalid="true"' in whole.text
    assert ">kept as it is</textarea>" in whole.text
    assert value in unescape(whole.text)
    part = await site.post("/tools/knowledge-search", {"query": "x", argument: value}, **PART)
    assert f'data-problem="{argument}"' in part.text


async def test_a_call_can_be_repeated_from_a_command_line(site: Site) -> None:
    given = {"query": "it's $HOME `x`", "top_k": "2", "as": "curl"}
    part = await site.post("/tools/knowledge-search", given, **PART)
    shown = re.search(r'<pre tabindex="0" id="curl">(.*?)</pre>', part.text, re.DOTALL)
    assert shown
    words = shlex.split(unescape(shown[1]).replace("\\\n", ""))
    assert words[:3] == ["curl", "-s", f"{BASE}/mcp/tools/call"]
    call = json.loads(words[-1])
    assert call["params"] == {"name": "knowledge-search", "arguments": {"query": "it's $HOME `x`", "top_k": 2}}
    assert "result</span>" not in part.text  # nothing was called
    wrong = await site.post("/tools/knowledge-search", {"top_k": "many", "as": "curl"}, **PART)
    assert 'data-problem="top_k"' in wrong.text


async def test_a_command_has_the_token_of_a_guarded_server_as_a_variable(tmp_path: Path) -> None:
    async with open_site(make_settings(tmp_path, "knowledge", mcp={"token": "open-sesame-please"})) as site:
        await site.http.post("/login", data={"token": "open-sesame-please"})
        part = await site.post("/tools/knowledge-status", {"as": "curl"}, **PART)
        assert "Bearer $BEDSTONE_TOKEN" in part.text
        assert "open-sesame-please" not in part.text


async def test_a_read_only_server_calls_nothing_that_changes_something(tmp_path: Path) -> None:
    async with open_site(make_settings(tmp_path, "knowledge", read_only=True)) as site:
        text = await site.text("/tools/knowledge-clear")
        assert re.search(r'<button class="btn primary" disabled>', text)
        assert "This tool is off here" in text
        assert "read-only" in (await site.post("/tools/knowledge-clear", {"confirm": "true"}, **PART)).text
        assert "This tool is off here" not in await site.text("/tools/knowledge-status")


async def test_an_unknown_tool_is_answered_with_the_nearest_one(site: Site) -> None:
    text = await site.text("/tools/knowledge-serch", status=404)
    assert "<h1>Unknown tool &#39;knowledge-serch&#39;</h1>" in text
    assert '<a class="btn primary" href="/tools/knowledge-search">Open knowledge-search</a>' in text
    assert (await site.post("/tools/none")).status_code == 404
    assert (await site.http.get("/tools/none")).text == "Unknown tool 'none'. The page Tools lists every tool."


def test_json_is_shown_as_facts_tables_and_texts() -> None:
    flat = [{"name": "a", "count": 1}, {"name": HOSTILE, "count": None}]
    text = render_readable({"ok": True, "rows": flat, "text": "one\ntwo", "none": [], "few": [1, 2.5]})
    assert "<th>name</th><th>count</th>" in text
    assert f"<td>{escape(HOSTILE, quote=False)}</td>" in text
    assert '<dd class="over"><span class="as-is">one\ntwo</span></dd>' in text
    assert "<dt>ok</dt><dd>yes</dd>" in text
    assert '<dd><span class="softer">none</span></dd>' in text
    assert '<span class="number">1</span>, <span class="number">2.5</span>' in text


def test_a_huge_answer_is_shown_in_part() -> None:
    deep: object = "bottom"
    for _ in range(100):
        deep = {"x": deep}
    assert "bottom" not in render_readable(deep)
    long = render_readable({"items": [{"a": {"b": number}} for number in range(5_000)]})
    assert f"{5_000 - MAX_ITEMS:,} more" in long
    wide = render_readable({str(number): number for number in range(10 * MAX_VALUES)})
    assert wide.count('class="number"') < MAX_VALUES
    assert "996,000 more characters" in render_readable({"text": "x" * 1_000_000})


def test_json_in_colour_is_the_same_json() -> None:
    value = {"a<b": [1, -2.5e30, True, None, f'"{HOSTILE}\\', ""], "half": "\ud800", "5": {"true": "false"}}
    text = str(render_json(value))
    assert HOSTILE not in text
    plain = unescape(re.sub(r"</?span[^>]*>", "", text))
    assert json.loads(plain) == value
    assert '<span class="name">&#34;5&#34;</span>' in text
    huge = render_json(["x" * 200_000])
    assert "<span" not in huge
