"""Where people and agents see what was left out of a text: on its page, and in the metadata of `knowledge-get`."""

from pathlib import Path

from support.corpus import corpus
from support.doors import DOORS, payload
from support.site import make_settings, open_site

ROW = '<tr><td>Harbour Supplies Ltd</td><td>repeated line</td><td class="right number">23</td><td>2-24</td></tr>'


async def test_people_and_agents_see_what_was_left_out(tmp_path: Path) -> None:
    invoices = next(file for file in corpus() if file.name == "invoices.pdf")
    settings = make_settings(tmp_path, "knowledge")
    async with open_site(settings) as site:
        document = await site.add(invoices.name, invoices.content)
        async with DOORS["http-handshake"](list(site.app.toolsets.values())) as door:
            got = payload(await door.call("knowledge-get", {"document_id": document, "max_characters": 100_000}))
    assert got["metadata"]["left_out"] == {"page number": 24, "repeated line": 23}
    assert all(f"Invoice 2026-{1037 + number}" in got["text"] for number in range(24))
    async with open_site(settings) as site:  # as stored
        facts = await site.text(f"/documents/{document}?view=facts")
        first, second = [await site.text(f"/documents/{document}?page={number}") for number in (1, 2)]
    assert ROW in facts
    assert "Page 1 of 24, Page 2 of 24, " in facts
    assert "repeated line (23)" in facts
    for page in (first, second):
        assert "Left out on this page" in page
        assert "Page numbers, on 24 pages" in page
    assert "“Harbour Supplies Ltd”, the same on 23 pages, kept once" in second
    assert "kept once" not in first  # that is where it is kept


async def test_nothing_is_said_where_nothing_was_left_out(tmp_path: Path) -> None:
    async with open_site(make_settings(tmp_path, "knowledge")) as site:
        document = await site.add("tides.txt", b"High water is at noon.")
        for view in ("", "facts"):
            assert "Left out" not in await site.text(f"/documents/{document}?view={view}")
