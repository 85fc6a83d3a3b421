"""The SOQL workbench in a real browser, most of it without a mouse."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect

from support.browsing import AXE_RULES, check_pages
from support.demo_org import Running, V, log_in
from support.processes import Listening, bedstone, listening

HOSTILE = "<img src=x onerror=alert(3)>"
WORKBENCH = "/salesforce/soql"
BROKEN = "SELECT Name, Modell__c\nFROM Bike__c\nWHERE Sold_On__c > LAST_365_DAYS\nLIMIT 20"
CONTACTS = "SELECT Id FROM Contact ORDER BY Id"
MAX_TABS = 80
WITHOUT_STORAGE = """
for (const name of ["getItem", "setItem", "removeItem"]) {
  Storage.prototype[name] = () => { throw new DOMException("denied", "SecurityError"); };
}
"""


@pytest.fixture(scope="module")
def server(demo: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    """A server with an org; two of its contacts have names that something could run."""
    folder = tmp_path_factory.mktemp("soql")
    log_in(demo, folder / "data")
    made = bedstone("salesforce", "sync-schema", "--data-dir", folder / "data")
    assert made.returncode == 0, made.stderr
    for name in ("=1+1", HOSTILE):
        record = {"LastName": name, "Title": "Tester"}
        assert demo.http.post(f"{V}/sobjects/Contact", json=record).status_code == 201
    options = ("--data-dir", folder / "data", "--toolsets", "salesforce_graph")
    with listening(*options, log=folder / "log") as server:
        yield server


def open_workbench(page: Page, server: Listening, query: str = "") -> Locator:
    """Open the workbench with a query, and return its editor."""
    page.goto(f"{server.base}{WORKBENCH}?q={quote(query)}")
    editor = page.get_by_label("Query", exact=True)
    expect(page.locator(".editor > pre")).to_be_attached()  # the script is ready
    return editor


def tab_to(page: Page, target: Locator, key: str = "Tab") -> None:
    """Press Tab until a control has the focus."""
    for _ in range(MAX_TABS):
        if target.count() and target.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{target} cannot be reached with {key}")


def clipboard(page: Page) -> str:
    text: str = page.evaluate("navigator.clipboard.readText()")
    return text


def test_a_query_is_written_completed_fixed_run_sorted_and_copied_with_the_keyboard_only(
    server: Listening, page: Page
) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{server.base}{WORKBENCH}?q=")
    editor, keyboard = page.get_by_label("Query", exact=True), page.keyboard
    options = page.get_by_role("option")
    tab_to(page, editor)
    keyboard.press("Control+Space")
    expect(options).to_have_text(["SELECT"])
    keyboard.press("Enter")
    keyboard.type("Name, Milage_km__c FROM Bik")
    expect(options).to_contain_text(["Bike__c"])
    keyboard.press("ArrowDown")
    keyboard.press("Tab")
    expect(editor).to_have_value("SELECT Name, Milage_km__c FROM Bike__c")
    keyboard.type(" WHERE Model__c = 'por")
    expect(options).to_contain_text(["Porter"])
    keyboard.press("ArrowDown")
    keyboard.press("Enter")
    keyboard.type(" LIMIT 20")
    expect(page.locator("#check-state")).to_contain_text("1 error")
    tab_to(page, page.get_by_role("button", name="Use Mileage_km__c"))
    keyboard.press("Enter")
    expect(page.locator("#check-state")).to_have_text("Valid")
    expect(editor).to_be_focused()
    query = "SELECT Name, Mileage_km__c FROM Bike__c WHERE Model__c = 'Porter' LIMIT 20"
    expect(editor).to_have_value(query)
    keyboard.press("Control+Enter")
    rows = page.locator("#rows tbody tr")
    expect(rows).to_have_count(20)
    expect(editor).to_be_focused()
    head = page.get_by_role("columnheader", name="Mileage_km__c")
    tab_to(page, head.get_by_role("button"))
    keyboard.press("Enter")
    expect(head).to_have_attribute("aria-sort", "ascending")
    numbers = [int(text.replace(",", "")) for text in rows.locator("td.number").all_inner_texts()]
    assert numbers == sorted(numbers)
    keyboard.press("Space")
    expect(head).to_have_attribute("aria-sort", "descending")
    tab_to(page, page.get_by_role("button", name="Copy", exact=True), "Shift+Tab")
    keyboard.press("Enter")
    expect(page.locator(".toast")).to_have_text("Copied 20 rows")
    lines = clipboard(page).split("\n")
    assert lines[0] == "Name\tMileage_km__c"
    assert [int(line.split("\t")[1]) for line in lines[1:]] == sorted(numbers, reverse=True)


# Suggestions


def test_suggestions_follow_the_pattern_of_a_combobox_and_never_steal_enter(server: Listening, page: Page) -> None:
    editor = open_workbench(page, server)
    listed = page.get_by_role("listbox", name="Suggestions")
    editor.press_sequentially("SELECT Id FROM Acc")
    expect(listed).to_be_visible()
    expect(editor).to_have_attribute("role", "combobox")
    expect(editor).to_have_attribute("aria-expanded", "true")
    expect(editor).to_have_attribute("aria-controls", "suggestions")
    expect(editor).not_to_have_attribute("aria-activedescendant", "option-1")
    page.keyboard.press("Enter")  # nothing is chosen: a new line
    expect(editor).to_have_value("SELECT Id FROM Acc\n")
    expect(listed).to_be_hidden()
    expect(editor).not_to_have_attribute("role", "combobox")
    page.keyboard.press("Backspace")
    page.keyboard.press("Control+Space")
    expect(editor).to_have_attribute("aria-activedescendant", "option-1")
    page.keyboard.press("ArrowDown")
    expect(editor).to_have_attribute("aria-activedescendant", "option-2")
    expect(page.locator("#option-2")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Escape")
    expect(listed).to_be_hidden()
    expect(editor).to_have_value("SELECT Id FROM Acc")
    editor.press_sequentially("o")
    expect(listed).to_be_visible()
    page.keyboard.press("Tab")  # nothing is chosen: Tab leaves the editor
    expect(editor).not_to_be_focused()
    expect(listed).to_be_hidden()


def test_a_path_is_completed_step_by_step_and_can_be_undone(server: Listening, page: Page) -> None:
    editor = open_workbench(page, server, "SELECT Id,  FROM Contact LIMIT 5")
    editor.evaluate("box => { box.focus(); box.setSelectionRange(11, 11); }")
    editor.press_sequentially("Acc")
    for name in ("Account", "Owner"):
        option = page.get_by_role("option").filter(has=page.locator(f'code:text-is("{name}")'))
        option.filter(has_text="to ").last.click()
        expect(page.get_by_role("option").first).to_be_visible()  # the next step opens by itself
        if name == "Account":
            editor.press_sequentially("Own")
    expect(editor).to_have_value("SELECT Id, Account.Owner. FROM Contact LIMIT 5")
    editor.press_sequentially("Nam")
    page.get_by_role("option", name="Name string", exact=True).click()
    expect(editor).to_have_value("SELECT Id, Account.Owner.Name FROM Contact LIMIT 5")
    page.keyboard.press("Control+z")
    expect(editor).to_have_value("SELECT Id, Account.Owner.Nam FROM Contact LIMIT 5")


def test_a_function_leaves_the_caret_between_its_parentheses(server: Listening, page: Page) -> None:
    editor = open_workbench(page, server, " FROM Account")
    editor.evaluate("box => { box.focus(); box.setSelectionRange(0, 0); }")
    editor.press_sequentially("SELECT MAX")
    page.get_by_role("option", name="MAX() function").click()
    editor.press_sequentially("AnnualRev")
    expect(page.get_by_role("option")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(editor).to_have_value("SELECT MAX(AnnualRevenue) FROM Account")


# Checks


def test_errors_are_underlined_at_their_place_and_fixed_with_a_button(server: Listening, page: Page) -> None:
    editor = open_workbench(page, server, BROKEN)
    expect(page.locator(".editor mark")).to_have_text(["Modell__c", "LAST_365_DAYS"])
    run = page.get_by_role("button", name="Run")
    expect(run).to_be_disabled()
    expect(run).to_have_attribute("title", "Fix the errors first")
    page.get_by_role("link", name="3:20").click()
    chosen = "box => box.value.slice(box.selectionStart, box.selectionEnd)"
    assert editor.evaluate(chosen) == "LAST_365_DAYS"
    editor.press("Home")
    editor.press_sequentially("  ")
    expect(page.locator(".editor mark")).to_have_text(["Modell__c", "LAST_365_DAYS"])  # they move with their words
    page.get_by_role("button", name="Use LAST_N_DAYS:365").click()
    expect(page.locator("#check-state .state")).to_have_text("1 error")
    expect(run).to_be_enabled()  # the org may have the field by now
    page.get_by_role("button", name="Fix it").click()
    expect(editor).to_have_value(
        BROKEN.replace("Modell", "Model").replace("LAST_365_DAYS", "LAST_N_DAYS:365").replace("WHERE", "  WHERE")
    )
    expect(page.locator(".editor mark")).to_have_count(0)
    run.click()
    expect(page.locator("#rows-title")).to_contain_text("records")


def test_both_errors_are_fixed_at_once_and_undone_at_once(server: Listening, page: Page) -> None:
    editor = open_workbench(page, server, BROKEN)
    page.get_by_role("button", name="Fix both").click()
    expect(page.locator("#check-state")).to_have_text("Valid")
    expect(editor).to_be_focused()
    page.keyboard.press("Control+z")
    expect(editor).to_have_value(BROKEN)
    expect(page.locator("#check-state")).to_contain_text("2 errors")


def test_the_editor_grows_counts_its_lines_and_shows_what_it_colours(server: Listening, page: Page) -> None:
    editor = open_workbench(page, server, "SELECT Id")
    before = editor.bounding_box()
    editor.fill("\n".join(["SELECT Id, Name", "FROM Account", *[f"-- line {number}" for number in range(30)]]))
    after = editor.bounding_box()
    assert before
    assert after
    assert after["height"] > 2 * before["height"]
    expect(page.locator(".editor .line")).to_have_count(32)
    mirror = page.locator(".editor > pre").bounding_box()
    assert mirror
    assert abs(mirror["height"] - after["height"]) < 2
    assert page.locator(".editor .word").all_inner_texts() == ["SELECT", "FROM"]
    editor.fill(f"SELECT Id FROM Account WHERE Name = '{HOSTILE}'")
    expect(page.locator(".editor .text")).to_have_text(f"'{HOSTILE}'")
    expect(page.locator(".editor img")).to_have_count(0)


def test_a_query_is_formatted(server: Listening, page: Page) -> None:
    editor = open_workbench(page, server, "select Id from Contact where Name = 'x' limit 5")
    page.get_by_role("button", name="Format").click()
    expect(editor).to_have_value("SELECT Id\nFROM Contact\nWHERE Name = 'x'\nLIMIT 5")
    editor.fill("SELECT Id FROM")
    page.get_by_role("button", name="Format").click()
    expect(page.locator(".toast")).to_contain_text("Only a query without syntax errors")
    expect(editor).to_have_value("SELECT Id FROM")


# Fields


def test_fields_of_the_object_are_filtered_and_inserted_with_the_keyboard(server: Listening, page: Page) -> None:
    editor = open_workbench(page, server, "SELECT Id FROM Contact LIMIT 5")
    expect(page.get_by_role("heading", name="Contact")).to_be_visible()
    editor.evaluate("box => { box.focus(); box.setSelectionRange(9, 9); }")
    tab_to(page, page.get_by_label("Filter fields of Contact"))
    page.keyboard.type("birthd")
    expect(page.locator(".pick button")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(editor).to_have_value("SELECT Id, Birthdate FROM Contact LIMIT 5")
    expect(page.locator(".pick button")).to_be_focused()
    editor.fill("SELECT  FROM Account LIMIT 5")
    expect(page.get_by_role("heading", name="Account")).to_be_visible()
    editor.evaluate("box => { box.focus(); box.setSelectionRange(7, 7); }")
    first = page.locator(".pick button").first
    tab_to(page, first)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(editor).to_have_value("SELECT Name FROM Account LIMIT 5")
    page.get_by_label("Filter fields of Account").fill("owner")
    expect(page.locator(".pick button")).to_have_text(
        ["OwnerId reference to User", "Owner to User", "Ownership picklist"]
    )
    page.locator(".pick button").nth(1).click()
    expect(editor).to_have_value("SELECT Name, Owner. FROM Account LIMIT 5")
    expect(page.get_by_role("option").first).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Open Account").click()
    expect(page).to_have_url(f"{server.base}/salesforce/objects/Account")


# Rows


def test_what_an_org_says_is_text_and_is_downloaded_without_formulas(server: Listening, page: Page) -> None:
    open_workbench(page, server, "SELECT LastName, Account.Name FROM Contact WHERE Title = 'Tester' LIMIT 9")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Run").click()
    table = page.locator("#rows table")
    expect(table).to_contain_text(HOSTILE)
    expect(table.locator("th")).to_have_text(["LastName", "Account.Name"])
    expect(table.locator("img")).to_have_count(0)
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    text = download.value.path().read_text()
    assert text.splitlines()[0] == "LastName,Account.Name"
    assert "'=1+1," in text
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.locator(".toast")).to_have_text("Copied 2 rows")
    assert "'=1+1\t" in clipboard(page)
    page.get_by_role("button", name="Markdown").click()
    expect(page.locator(".toast")).to_have_text("Copied 2 rows")
    assert "| &lt;img src=x onerror=alert(3)> |  |" in clipboard(page)


def test_more_rows_are_loaded_sorted_with_the_others_and_all_are_downloaded(
    demo: Running, server: Listening, page: Page
) -> None:
    open_workbench(page, server, "SELECT Mileage_km__c FROM Bike__c ORDER BY Id").focus()
    page.keyboard.press("Control+Enter")
    rows = page.locator("#rows tbody tr")
    expect(rows).to_have_count(100)

    def numbers() -> list[int]:
        return [int(text.replace(",", "")) for text in rows.locator("td.number").all_inner_texts()]

    first = numbers()
    head = page.get_by_role("columnheader", name="Mileage_km__c")
    head.get_by_role("button").click()
    head.get_by_role("button").click()
    assert numbers() == sorted(first, reverse=True)
    expect(page.locator("#sort-note")).to_contain_text("Sorted among the 100 rows that are loaded")
    more = page.get_by_role("button", name="More rows")
    more.click()
    expect(rows).to_have_count(200)
    expect(more).to_be_focused()
    expect(page.locator("#rows-shown")).to_have_text("200 loaded,")
    assert numbers() == sorted(numbers(), reverse=True)
    head.get_by_role("button").click()  # the order of the org again
    assert numbers()[:100] == first
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    lines = download.value.path().read_text().splitlines()
    assert len(lines) == demo.query("SELECT COUNT() FROM Bike__c")["totalSize"] + 1


def test_ids_are_copied_and_are_one_stop_of_the_tab_key(server: Listening, page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_workbench(page, server, f"{CONTACTS} LIMIT 5").focus()
    page.keyboard.press("Control+Enter")
    ids = page.locator("#rows td .copy")
    expect(ids).to_have_count(5)
    tab_to(page, ids.first)
    page.keyboard.press("ArrowDown")
    expect(ids.nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".toast")).to_have_text("Copied")
    assert clipboard(page) == ids.nth(1).inner_text()
    page.keyboard.press("Tab")
    expect(page.locator("#rows :focus")).to_have_count(0)


def test_children_and_counts_are_shown(server: Listening, page: Page) -> None:
    editor = open_workbench(page, server, "SELECT Name, (SELECT Id, LastName FROM Contacts) FROM Account LIMIT 5")
    page.get_by_role("button", name="Run").click()
    first = page.locator("td.children details").first
    first.locator("summary").click()
    expect(first.locator("th")).to_have_text(["Id", "LastName"])
    editor.fill("SELECT COUNT() FROM Contact")
    expect(page.get_by_text("The query has changed since")).to_be_visible()
    page.keyboard.press("Control+Enter")
    expect(page.locator("#rows-title")).to_contain_text("COUNT() is")
    expect(page.locator("#history-list")).to_contain_text("COUNT() is")


@pytest.mark.usefixtures("calm")
def test_a_failed_run_says_what_to_do_and_keeps_the_query(demo: Running, server: Listening, page: Page) -> None:
    editor = open_workbench(page, server, f"{CONTACTS} LIMIT 5")
    demo.faults("limit-over")
    page.get_by_role("button", name="Run").click()
    alert = page.locator("#rows").get_by_role("alert")
    expect(alert).to_contain_text("The org's API calls of the day are used up")
    expect(alert).to_contain_text("Run the query again tomorrow")
    expect(editor).to_have_value(f"{CONTACTS} LIMIT 5")
    expect(page.locator("#history-list li")).to_have_count(0)


def test_a_query_is_shared_as_a_link(server: Listening, page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    editor = open_workbench(page, server)
    editor.fill("SELECT Id\nFROM Account\nLIMIT 3")
    page.get_by_role("button", name="Share").click()
    expect(page.locator(".toast")).to_have_text("Link copied")
    page.goto(clipboard(page))
    expect(editor).to_have_value("SELECT Id\nFROM Account\nLIMIT 3")


# History and saved queries


def test_queries_are_remembered_saved_and_removed(server: Listening, page: Page) -> None:
    editor = open_workbench(page, server, f"{CONTACTS} LIMIT 3")
    page.keyboard.press("Control+Enter")
    history = page.locator("#history-list li")
    expect(history).to_have_count(1)
    expect(history).to_contain_text("3 records")
    page.get_by_role("button", name="Save", exact=True).click()
    name = page.get_by_label("Name of the query")
    expect(name).to_be_focused()
    expect(name).to_have_value("Contact")
    name.fill(HOSTILE)
    page.keyboard.press("Enter")
    saved = page.locator("#saved-list li")
    expect(saved.get_by_role("link")).to_have_text(HOSTILE)
    expect(history.get_by_role("link")).to_have_text(HOSTILE)  # a saved query goes by its name
    editor.fill("SELECT Id FROM Account LIMIT 1")
    page.keyboard.press("Control+Enter")
    expect(history).to_have_count(2)
    page.reload()
    expect(history).to_have_count(2)
    saved.get_by_role("link").click()
    expect(editor).to_have_value(f"{CONTACTS} LIMIT 3")
    history.first.get_by_role("button").click()
    expect(history).to_have_count(1)
    page.get_by_role("button", name="Undo").click()
    expect(history).to_have_count(2)
    page.get_by_role("button", name="Clear").click()
    expect(history).to_have_count(0)
    saved.get_by_role("button").click()
    expect(page.locator("#saved")).to_be_hidden()
    page.reload()
    expect(page.locator("#saved")).to_be_hidden()


def test_history_is_bounded_and_what_else_is_stored_does_no_harm(server: Listening, page: Page) -> None:
    page.goto(f"{server.base}{WORKBENCH}")
    org = page.locator(".workbench").get_attribute("data-org")
    entry = {"query": "SELECT Id FROM Account", "rows": 1, "milliseconds": 2, "at": 1_700_000_000_000}
    wrong = [None, 5, {"query": 7}, {**entry, "at": 1e300}, {**entry, "rows": "many"}]
    entries = json.dumps(
        [*wrong, *({**entry, "query": f"SELECT Id FROM Account LIMIT {number}"} for number in range(90))]
    )
    page.evaluate("([org, entries]) => localStorage.setItem(`bedstone.soql.history.${org}`, entries)", [org, entries])
    page.evaluate("org => localStorage.setItem(`bedstone.soql.saved.${org}`, '{not json')", org)
    page.reload()
    expect(page.locator("#history-list li")).to_have_count(50)
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#rows-title")).to_be_visible()
    expect(page.locator("#history-list li")).to_have_count(50)
    stored = json.loads(page.evaluate("org => localStorage.getItem(`bedstone.soql.history.${org}`)", org))
    assert len(stored) == 50


def test_the_page_works_where_the_browser_stores_nothing(server: Listening, page: Page) -> None:
    page.add_init_script(WITHOUT_STORAGE)
    open_workbench(page, server, f"{CONTACTS} LIMIT 3")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#rows tbody tr")).to_have_count(3)
    expect(page.locator("#history-list li")).to_have_count(1)
    expect(page.locator(".toast")).to_contain_text("storage is full or off")


# Without a script, without an org


def test_a_query_runs_without_a_script(browser: Browser, server: Listening) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{server.base}{WORKBENCH}")
    editor = page.get_by_label("Query", exact=True)
    expect(page.get_by_role("button", name="Share")).to_be_hidden()
    editor.fill("SELECT Nmae FROM Account LIMIT 2")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("Did you mean")).to_be_visible()
    editor.fill("SELECT Name FROM Account LIMIT 2")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#rows tbody tr")).to_have_count(2)
    expect(editor).to_have_value("SELECT Name FROM Account LIMIT 2")
    context.close()


def test_a_schema_from_files_is_checked_but_not_run(page: Page, tmp_path: Path) -> None:
    fields = [{"name": "Id", "label": "ID", "type": "id"}, {"name": "Name", "label": "Name", "type": "string"}]
    (tmp_path / "describes").mkdir()
    described = {"name": "Account", "label": "Account", "fields": fields, "queryable": True}
    (tmp_path / "describes" / "Account.json").write_text(json.dumps(described))
    data = ("--data-dir", tmp_path / "data")
    made = bedstone("salesforce", "sync-schema", "--from", tmp_path / "describes", "--name", "one", *data)
    assert made.returncode == 0, made.stderr
    with listening(*data, "--toolsets", "salesforce_graph", log=tmp_path / "log") as server:
        editor = open_workbench(page, server, "SELECT Nmae FROM Account LIMIT 1")
        expect(page.get_by_text("This schema was imported from files")).to_be_visible()
        page.get_by_role("button", name="Use Name").click()
        expect(page.locator("#check-state")).to_have_text("Valid")
        expect(page.get_by_role("button", name="Run")).to_be_disabled()
        expect(page.get_by_role("button", name="CSV")).to_be_disabled()
        editor.press("Control+Enter")
        expect(page.get_by_role("status").filter(has_text="no org is connected")).to_be_attached()
        expect(page.locator("#rows")).to_be_empty()


# Access


def test_the_workbench_is_accessible_in_both_themes_and_on_phones(browser: Browser, server: Listening) -> None:
    check_pages(browser, server.base, WORKBENCH, f"{WORKBENCH}?q={quote(BROKEN)}", f"{WORKBENCH}?q=")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_rows_suggestions_and_history_are_accessible(browser: Browser, server: Listening, scheme: str) -> None:
    context = browser.new_context(bypass_csp=True, color_scheme="dark" if scheme == "dark" else "light")
    page = context.new_page()
    editor = open_workbench(
        page, server, "SELECT Id, Name, AnnualRevenue, Description, (SELECT Id FROM Contacts) FROM Account"
    )
    editor.focus()
    page.keyboard.press("Control+Enter")
    expect(page.locator("#rows tbody tr").first).to_be_visible()
    page.locator("td.children summary").first.click()
    page.get_by_role("columnheader", name="Name").get_by_role("button").first.click()
    page.get_by_role("button", name="Save", exact=True).click()
    page.keyboard.press("Enter")
    expect(page.locator("#history-list li")).to_have_count(1)
    editor.press("Control+End")
    editor.press_sequentially(" WH")
    expect(page.get_by_role("option").first).to_be_visible()
    violations = Axe().run(page, options=AXE_RULES).response["violations"]
    assert violations == [], [(item["id"], item["nodes"][0]["html"]) for item in violations]
    for width in (360, 768, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()
