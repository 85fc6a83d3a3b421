"""The SOQL workbench in this process: checks with fixes, suggestions, rows, downloads, and pages without a script."""

import csv
import io
import json
import re
from collections.abc import AsyncIterator
from functools import partial
from html import escape, unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from bedstone.services.schema.service import SchemaService
from bedstone.web.soql.table import build_table
from support.cost import relative_cost
from support.demo_org import Running, V, log_in
from support.processes import bedstone
from support.site import Site, make_settings, open_site

HOSTILE = "<img src=x onerror=alert(1)>"
PART = {"x-part": "1"}
MAX_COST = 10  # times a unit of work: make bench-pages has the limit in milliseconds
MAX_PAGE_BYTES = 150_000
MANY_OBJECTS = 5_000


def write_describes(folder: Path, objects: int = 0) -> Path:
    """Write objects as an org describes them, with hostile labels and values."""
    folder.mkdir(parents=True, exist_ok=True)
    link = {"type": "reference", "referenceTo": ["Account"], "relationshipName": "Account"}
    value = {"value": HOSTILE, "label": HOSTILE, "active": True}
    own = [
        {"name": "AccountId", "label": "Account", **link},
        {"name": "Stage__c", "label": HOSTILE, "type": "picklist", "picklistValues": [value]},
        *({"name": f"Field{number}__c", "label": f"Field {number}", "type": "string"} for number in range(150)),
    ]
    for name, fields in (("Account", []), ("Contact", own), *((f"Thing{number}__c", []) for number in range(objects))):
        common = [
            {"name": "Id", "label": f"{name} ID", "type": "id"},
            {"name": "Name", "label": f"{name} {HOSTILE}", "type": "string", "nameField": True},
        ]
        described = {"name": name, "label": f"{name} {HOSTILE}", "fields": [*common, *fields], "queryable": True}
        (folder / f"{name}.json").write_text(json.dumps(described))
    return folder


@pytest.fixture(scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """The pages of a schema that was imported from files."""
    folder = tmp_path_factory.mktemp("site")
    async with open_site(make_settings(folder, "salesforce_graph")) as site:
        schemas: SchemaService = await site.app.services["salesforce_graph"].open()
        schemas.import_folder("one", write_describes(folder / "describes"))
        yield site


@pytest.fixture(scope="module")
async def org_site(demo: Running, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """The pages of an org that can be queried."""
    folder = tmp_path_factory.mktemp("org")
    log_in(demo, folder / "data")
    synced = bedstone("salesforce", "sync-schema", "--data-dir", folder / "data")
    assert synced.returncode == 0, synced.stderr
    for name in ("=1+1", HOSTILE):
        made = demo.http.post(f"{V}/sobjects/Contact", json={"LastName": name, "Title": "Tester"})
        assert made.status_code == 201
    async with open_site(make_settings(folder, "salesforce_graph")) as site:
        yield site


async def check(site: Site, query: str, at: str = "/salesforce", **form: str) -> str:
    response = await site.post(f"{at}/soql/check", {"query": query, **form}, **PART)
    assert response.status_code == 200, response.text
    return response.text


async def run(site: Site, query: str, **form: str) -> str:
    response = await site.post("/salesforce/soql/run", {"query": query, **form}, **PART)
    assert response.status_code == 200, response.text
    return response.text


def fixes(fragment: str) -> list[tuple[str, str, str, str]]:
    """Return from, to, text and label of each button that fixes something."""
    found = re.findall(r'<button [^>]*data-from="(\d+)" data-to="(\d+)" data-text="([^"]*)">([^<]*)<', fragment)
    return [(start, end, unescape(text), unescape(label)) for start, end, text, label in found]


def suggestions(fragment: str) -> list[str]:
    return [unescape(text) for text in re.findall(r'data-insert="([^"]*)"', fragment)]


async def complete(site: Site, marked: str, at: str = "/salesforce") -> str:
    query, position = marked.replace("|", "", 1), marked.index("|")
    return await site.text(f"{at}/soql/complete?q={quote(query)}&at={position}")


# Checks


async def test_each_error_has_its_place_and_a_button_that_names_its_fix(site: Site) -> None:
    query = "SELECT Id,\n  Nmae FROM Contact WHERE Name == '\N{GRINNING FACE}' LIMIT 1"
    fragment = await check(site, query)
    assert ">2 errors<" in fragment
    for start, end, text, label in fixes(fragment):
        units = query.encode("utf-16-le")
        wrong = units[2 * int(start) : 2 * int(end)].decode("utf-16-le")
        assert (wrong, text, label) in {("Nmae", "Name", "Use Name"), ("==", "=", "Use =")}
    assert len(fixes(fragment)) == 2
    assert ">Fix both<" in fragment
    assert ">2:3</a>" in fragment
    corrected = re.search(r'data-query="([^"]+)"', fragment)
    assert corrected
    assert unescape(corrected[1]) == "SELECT Id, Name\nFROM Contact\nWHERE Name = '\N{GRINNING FACE}'\nLIMIT 1"


async def test_a_missing_limit_is_a_warning_with_a_fix_that_keeps_the_lines(site: Site) -> None:
    fragment = await check(site, "SELECT Id\nFROM Contact")
    assert ">Valid<" in fragment
    assert fixes(fragment) == [("22", "22", "\nLIMIT 200", "Add LIMIT 200")]
    assert fixes(await check(site, "SELECT Id FROM Contact")) == [("22", "22", " LIMIT 200", "Add LIMIT 200")]
    assert fixes(await check(site, "SELECT Id FROM Contact OFFSET 5")) == []


async def test_what_a_query_contains_is_text_in_its_check(site: Site) -> None:
    fragment = await check(site, f"SELECT Id FROM Acount WHERE Name = '{HOSTILE}' AND {HOSTILE}")
    assert HOSTILE not in fragment
    page = await site.text(f"/salesforce/soql?q={quote(HOSTILE)}")
    assert HOSTILE not in page
    assert escape(HOSTILE) in page


async def test_an_empty_query_is_not_an_error(site: Site) -> None:
    fragment = await check(site, " ")
    assert ">Empty<" in fragment
    assert "data-blocked" in fragment
    assert "error" not in fragment


async def test_only_what_certainly_fails_keeps_a_query_from_running(org_site: Site) -> None:
    unknown = await check(org_site, "SELECT Nope FROM Contact LIMIT 1")
    assert ">1 error<" in unknown
    assert "data-blocked" not in unknown
    assert "the org decides" in unknown
    for wrong in ("SELECT Id FROM Contact WHERE", "SELECT Id FROM Contact WHERE Name = 5 LIMIT 1"):
        assert "data-blocked" in await check(org_site, wrong)
    assert "data-blocked" not in await check(org_site, "SELECT Id FROM Contact")


async def test_line_ends_of_browsers_do_not_shift_places(site: Site) -> None:
    assert fixes(await check(site, "SELECT Id,\r\n\r\nNmae FROM Contact LIMIT 1"))[0][:2] == ("12", "16")


async def test_the_fields_are_sent_for_another_object_only(site: Site) -> None:
    assert 'data-object="Contact"' in await check(site, "SELECT Id FROM Contact", object="Account")
    assert "data-object" not in await check(site, "SELECT Id FROM Contact", object="Contact")
    assert "data-object" not in await check(site, "SELECT Id FROM Nothing", object="Contact")


async def test_fields_are_filtered_by_name_and_label_and_say_how_many_there_are(site: Site) -> None:
    page = await site.text("/salesforce/soql?q=SELECT+Id+FROM+Contact")
    assert ">154 fields<" in page
    assert "100 of 155: filter by name or label." in page
    assert 'href="/salesforce/objects/Contact"' in page
    assert HOSTILE not in page
    found = await site.text("/salesforce/soql/fields?object=contact&filter=field 14")
    assert [name for name in suggestions(found) if not name.startswith("Field14")] == []
    assert len(suggestions(found)) == 11
    assert "No field has this" in await site.text("/salesforce/soql/fields?object=Contact&filter=zzz")
    await site.text("/salesforce/soql/fields?object=Nothing", status=404)


async def test_a_query_is_formatted_or_the_reason_why_not_is_told(site: Site) -> None:
    form = {"query": "select Id, Name from Contact where Name = 'x' limit 5"}
    response = await site.post("/salesforce/soql/format", form, **PART)
    assert response.text == "SELECT Id, Name\nFROM Contact\nWHERE Name = 'x'\nLIMIT 5"
    wrong = await site.post("/salesforce/soql/format", {"query": "SELECT Id FROM"}, **PART)
    assert wrong.status_code == 400
    assert "Only a query without syntax errors can be formatted" in wrong.text


# Suggestions


async def test_suggestions_come_as_options_that_are_text(site: Site) -> None:
    fragment = await complete(site, "SELECT Id, sta| FROM Contact")
    assert suggestions(fragment)[0] == "Stage__c"
    assert 'role="option"' in fragment
    assert 'data-start="11" data-end="14"' in fragment
    values = await complete(site, "SELECT Id FROM Contact WHERE Stage__c = '|")
    assert suggestions(values) == [f"{HOSTILE}'"]
    assert HOSTILE not in values
    assert suggestions(await complete(site, "SELECT Id FROM Acc|", "/salesforce/orgs/one")) == ["Account"]


async def test_suggestions_without_a_place_or_with_a_wrong_one_are_harmless(site: Site) -> None:
    for at in ("", "-1", "x", "9" * 30, "٣"):
        assert "<ul" in await site.text(f"/salesforce/soql/complete?q=SELECT+Id+FROM+Acc&at={quote(at)}")
    assert suggestions(await site.text(f"/salesforce/soql/complete?q={'(' * 20_000}")) == []
    await site.text("/salesforce/orgs/none/soql/complete?q=SELECT", status=404)


# Rows


async def test_a_schema_from_files_says_before_a_run_that_no_org_is_connected(site: Site) -> None:
    page = await site.text("/salesforce/soql")
    assert "This schema was imported from files" in page
    assert re.search(r'id="run"[^>]* disabled data-without-org title="This schema was imported from files', page)
    refused = await run(site, "SELECT Id FROM Account")
    assert 'role="alert"' in refused
    assert "No org is connected" in refused
    download = await site.post("/salesforce/soql/rows.csv", {"query": "SELECT Id FROM Account"}, accept="text/html")
    assert download.status_code == 400
    assert "No org is connected" in download.text


async def test_rows_of_an_org_are_text_and_come_in_pages(org_site: Site) -> None:
    found = await run(org_site, "SELECT LastName, Account.Name FROM Contact WHERE Title = 'Tester'")
    assert HOSTILE not in found
    assert escape(HOSTILE) in found
    assert "<th>LastName</th><th>Account.Name</th>" in found
    query = "SELECT Id FROM Contact ORDER BY Id"
    first = await run(org_site, query)
    assert ">100 loaded, <" in first
    cursor = re.search(r'data-cursor="([^"]+)"', first)
    assert cursor
    second = await run(org_site, query, cursor=cursor[1])
    ids = [set(re.findall('data-copy-text="(003[^"]+)', page)) for page in (first, second)]
    assert [len(found) for found in ids] == [100, 100]
    assert not ids[0] & ids[1]
    assert 'role="alert"' in await run(org_site, "SELECT Id FROM Account", cursor=cursor[1])


async def test_an_answer_says_how_many_and_how_long(org_site: Site) -> None:
    found = await run(org_site, "SELECT Name FROM Account LIMIT 3")
    assert re.search(r"3 records</h2>", found)
    assert re.search(r'data-total="3" data-milliseconds="\d+"', found)
    assert re.search(r"</time>, \d+ ms<", found)
    counted = await run(org_site, "SELECT COUNT() FROM Account")
    assert re.search(r"COUNT\(\) is [\d,]+</h2>", counted)
    assert '<th class="right">COUNT()</th>' in counted
    nothing = await run(org_site, "SELECT Id FROM Account WHERE Name = 'no such name'")
    assert "no record matches" in nothing


async def test_children_are_tables_of_their_own_in_the_row(org_site: Site) -> None:
    found = await run(org_site, "SELECT Name, (SELECT Id, LastName FROM Contacts) FROM Account ORDER BY Name LIMIT 5")
    assert re.search(r"<details><summary>\d+ rows?</summary><table", found)
    assert "<th>LastName</th>" in found
    assert "attributes" not in found


@pytest.mark.parametrize(
    ("fault", "title"),
    [
        ("limit-over", "The org&#39;s API calls of the day are used up"),
        ("api-off", "The connected user may not read this"),
        ("unavailable", "The org did not answer"),
    ],
)
@pytest.mark.usefixtures("calm")
async def test_what_an_org_refuses_is_told_in_plain_words(
    demo: Running, org_site: Site, fault: str, title: str
) -> None:
    demo.faults(fault)
    found = await run(org_site, "SELECT Id FROM Account LIMIT 1")
    assert 'role="alert"' in found
    assert title in found


async def test_an_unknown_field_is_told_in_the_words_of_the_schema(org_site: Site) -> None:
    found = await run(org_site, "SELECT Nope FROM Contact LIMIT 1")
    assert "The org does not know a field of the query" in found
    assert "Nope" in found
    assert 'href="/salesforce"' in found


async def test_rows_are_downloaded_without_formulas(org_site: Site) -> None:
    query = "SELECT LastName, Account.Name FROM Contact WHERE Title = 'Tester' ORDER BY LastName"
    response = await org_site.post("/salesforce/soql/rows.csv", {"query": query})
    assert response.headers["content-disposition"] == 'attachment; filename="rows.csv"'
    rows: list[Any] = list(csv.reader(io.StringIO(response.text)))
    assert rows == [["LastName", "Account.Name"], [HOSTILE, ""], ["'=1+1", ""]]
    counted = await org_site.post("/salesforce/soql/rows.csv", {"query": "SELECT COUNT() FROM Contact"})
    assert counted.text.startswith("COUNT()\r\n")
    wrong = await org_site.post("/salesforce/soql/rows.csv", {"query": "SELECT Nope FROM Contact"}, accept="text/html")
    assert wrong.status_code == 400
    assert "SELECT Nope FROM Contact</textarea>" in wrong.text  # the form keeps its input


# Without a script, and with several orgs


async def test_every_form_returns_the_whole_page_without_a_script(org_site: Site) -> None:
    form = {"query": "SELECT Name FROM Account ORDER BY Name LIMIT 2", "csrf": await org_site.csrf()}
    for path, text in (("run", "2 records</h2>"), ("check", ">Valid<"), ("format", "\nLIMIT 2</textarea>")):
        response = await org_site.http.post(f"/salesforce/soql/{path}", data=form)
        assert response.status_code == 200
        assert "<html" in response.text
        assert text in response.text
    wrong = await org_site.http.post("/salesforce/soql/run", data=form | {"query": "SELECT FROM"})
    assert "SELECT FROM</textarea>" in wrong.text
    assert 'role="alert"' in wrong.text
    for path in ("run", "check", "format", "rows.csv"):
        refused = await org_site.http.post(f"/salesforce/soql/{path}", data={"query": form["query"]})
        assert refused.status_code == 403


async def test_the_org_is_chosen_first_where_none_is_the_default(tmp_path: Path) -> None:
    async with open_site(make_settings(tmp_path, "salesforce_graph")) as site:
        schemas: SchemaService = await site.app.services["salesforce_graph"].open()
        for name in ("one", "two & three"):
            schemas.import_folder(name, write_describes(tmp_path / "describes"))
        page = await site.text("/salesforce/soql?q=SELECT+Id+FROM+Account")
        assert 'href="/salesforce/orgs/two%20%26%20three/soql?q=SELECT%20Id%20FROM%20Account"' in page
        chosen = await site.text("/salesforce/orgs/two%20%26%20three/soql?q=SELECT+Id+FROM+Account")
        assert 'data-at="/salesforce/orgs/two%20%26%20three"' in chosen
        await site.text("/salesforce/orgs/four/soql", status=404)


async def test_an_org_without_a_schema_has_a_workbench(demo: Running, tmp_path: Path) -> None:
    log_in(demo, tmp_path / "data")
    async with open_site(make_settings(tmp_path, "salesforce_graph")) as site:
        assert "the schema is not synced yet" in await site.text("/salesforce/soql?q=SELECT+Id+FROM+Account")
        assert "2 records</h2>" in await run(site, "SELECT Id FROM Account LIMIT 2")  # the org decides


async def test_the_page_is_small_and_quick_with_thousands_of_objects(tmp_path: Path) -> None:
    async with open_site(make_settings(tmp_path, "salesforce_graph")) as site:
        schemas: SchemaService = await site.app.services["salesforce_graph"].open()
        schemas.import_folder("one", write_describes(tmp_path / "describes", MANY_OBJECTS))
        for path in (
            "/salesforce/soql",
            "/salesforce/soql?q=SELECT+Id+FROM+Contact",
            "/salesforce/soql/complete?q=SELECT+Id+FROM+t",
        ):
            text = await site.text(path)
            assert await relative_cost(partial(site.text, path), rounds=5) < MAX_COST, path
            assert len(text.encode()) < MAX_PAGE_BYTES, path


# Cells


def cells(record: dict[str, Any]) -> list[tuple[str, str, str]]:
    (row,) = build_table([record], "", 1).rows
    return [(cell.kind, cell.text, cell.value) for cell in row]


def test_each_kind_of_value_is_shown_in_its_way() -> None:
    record = {
        "Id": "001000000000001AAA",
        "Paid": "001000000000001AAA!",
        "Total": 1234567.5,
        "Flag": True,
        "Empty": None,
    }
    assert cells(record) == [
        ("id", "001000000000001AAA", ""),
        ("text", "001000000000001AAA!", ""),
        ("number", "1,234,567.5", "1234567.5"),
        ("text", "true", ""),
        ("text", "", ""),
    ]
    assert cells({"expr0": 2024}) == [("number", "2024", "2024")]  # a year
    assert cells({"Price": 12.0}) == [("number", "12", "12")]
    ((kind, shown, value),) = cells({"Text": "line\n" * 100})
    assert (kind, len(shown) < 100, len(value)) == ("long", True, 500)


def test_thousands_are_separated_in_a_column_with_large_numbers_only() -> None:
    table = build_table([{"A": 9547, "B": 2024}, {"A": 10260, "B": 2025}], "", 2)
    assert [[cell.text for cell in row] for row in table.rows] == [["9,547", "2024"], ["10,260", "2025"]]
    assert list(table.are_numbers) == [True, True]
