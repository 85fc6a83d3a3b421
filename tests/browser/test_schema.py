"""The pages about a schema in a real browser: from the list to an object, around it, and on to another one."""

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from support.browsing import check_pages
from support.demo_org import Running, log_in
from support.processes import Listening, bedstone, listening

LONG = "An_Object_With_A_Name_That_Is_As_Long_As_An_Org_Allows_It_To_Be_In_Every_Case__c"
MANY = 401  # more objects than a page names at once
PATH = (
    "/salesforce/paths?from=Account&to=Warranty_Claim__c&via=Contact.AccountId,Case.ContactId,Warranty_Claim__c.Case__c"
)
# Letters that stand outside of the shape they are written on, and shapes or letters that cover each other.
COVERED = """() => {
  const box = (element) => element.getBoundingClientRect();
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const svg = document.querySelector(".diagram-space svg");
  const outside = [...svg.querySelectorAll(".node, .center")].filter((part) => {
    const shape = box(part.querySelector("rect"));
    const isOutside = (text) => box(text).right > shape.right || box(text).left < shape.left;
    return [...part.querySelectorAll("text")].some(isOutside);
  });
  const parts = [...svg.querySelectorAll("rect, .label, .group")];
  const covering = parts.filter((one, place) => parts.slice(place + 1).some((other) => meet(box(one), box(other))));
  return [...outside, ...covering].map((part) => part.outerHTML);
}"""


@pytest.fixture(scope="module")
def server(demo: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    """A server of the demo org, synced."""
    folder = tmp_path_factory.mktemp("schema")
    data = ("--data-dir", folder / "data")
    log_in(demo, folder / "data")
    made = bedstone("salesforce", "sync-schema", *data)
    assert made.returncode == 0, made.stderr
    with listening(*data, "--toolsets", "salesforce_graph", log=folder / "log") as server:
        yield server


def test_from_the_list_to_an_object_and_around_it(server: Listening, page: Page) -> None:
    page.goto(f"{server.base}/salesforce")
    page.get_by_placeholder("Name or label").fill("agreement")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Dealer Agreement").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Dealer Agreement")
    page.locator("svg").get_by_role("link", name=re.compile("^Account: is pointed to by Dealer__c, master")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Account")
    page.get_by_placeholder("Object or field").fill("workshop")
    page.keyboard.press("Enter")
    expect(page.locator(".diagram-space .node")).to_have_count(1)
    page.get_by_role("link", name="List", exact=True).click()
    expect(page.locator("tbody").first).to_contain_text("Service_Visits__r")
    page.get_by_role("link", name="Two steps").click()
    page.get_by_role("link", name="Visit_Part__c").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("From Account to Visit Part")


def test_the_diagram_is_used_with_the_keyboard(server: Listening, page: Page) -> None:
    page.goto(f"{server.base}/salesforce/objects/Bike__c")
    page.get_by_role("region", name="Diagram").focus()
    page.keyboard.press("Tab")
    focused = page.locator("svg a:focus")
    expect(focused).to_have_attribute("href", re.compile("/objects/"))
    name = (focused.get_attribute("aria-label") or "").partition(":")[0]
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/objects/{name}$"))


def test_sorting_and_types_need_no_button(server: Listening, page: Page) -> None:
    page.goto(f"{server.base}/salesforce")
    page.get_by_label("Sort").select_option("Most pointed to")
    expect(page.locator("tbody tr").first).to_contain_text("User")
    page.goto(f"{server.base}/salesforce/objects/Account")
    page.get_by_label("Type", exact=True).select_option(label="picklist (8)")
    expect(page.locator("#fields tbody tr")).to_have_count(8)
    industry = page.locator("#field-Industry")
    assert "Utilities" not in industry.inner_text()
    industry.get_by_text("and 29 more").click()
    assert "Utilities" in industry.inner_text()


def test_pages_work_without_a_script(server: Listening, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{server.base}/salesforce")
    page.get_by_label("Sort").select_option("Most fields")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("tbody tr").first).to_contain_text("Permission Set")
    page.goto(f"{server.base}{PATH}")
    expect(page.locator(".route")).to_contain_text("Warranty_Claim__c")
    expect(page.get_by_role("heading", name="First rows")).to_be_hidden()
    context.close()


def test_a_field_is_marked_and_its_name_copied(server: Listening, browser: Browser) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{server.base}/salesforce/objects/Account?fields=AnnualRevenue#field-AnnualRevenue")
    row = page.locator("#field-AnnualRevenue")
    expect(row).to_have_class("found")
    expect(row).to_be_in_viewport()
    row.get_by_title("Copy the name").click()
    expect(page.get_by_role("status")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "AnnualRevenue"
    context.close()


def test_a_way_is_found_told_counted_and_opened_as_a_query(server: Listening, page: Page) -> None:
    page.goto(f"{server.base}/salesforce/objects/Account")
    page.get_by_label("Find a path from Account to").fill("warranty claim")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("From Account to Warranty Claim")
    page.get_by_role("link", name=re.compile("^Contact and Case")).click()
    expect(page.locator(".route")).to_contain_text("54 records")
    expect(page.locator(".hop").last).to_contain_text("lookup, all filled")
    rows = page.get_by_role("region", name="First rows")
    expect(rows.locator("tbody tr")).to_have_count(3)
    expect(rows.locator("th")).to_have_text(["Warranty Claim", "Decided On", "Amount", "Case", "Contact", "Account"])
    page.get_by_role("link", name="Nested by account").click()
    expect(page.locator("pre")).to_contain_text("FROM Contacts")
    expect(rows.locator("th")).to_have_text(["Account", "Contacts"])
    expect(page.get_by_role("button", name="Share")).to_have_attribute("data-copy-text", page.url)
    page.get_by_role("link", name="Swap: from Warranty_Claim__c to Account").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("From Warranty Claim to Account")
    page.get_by_role("link", name="Open in SOQL").click()
    expect(page).to_have_url(re.compile(r"/salesforce/soql\?q=SELECT"))


def test_a_wrong_name_is_kept_and_corrected_by_one_click(server: Listening, page: Page) -> None:
    page.goto(f"{server.base}/salesforce")
    page.get_by_role("combobox", name="From").fill("Acount")
    page.get_by_role("combobox", name="to").fill("Case")
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_role("combobox", name="From")).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("combobox", name="From")).to_have_value("Acount")
    page.locator("#wrong-from").get_by_role("link", name="Account", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("From Account to Case")


def test_an_unknown_object_leads_on(server: Listening, page: Page) -> None:
    page.goto(f"{server.base}/salesforce/objects/Bikes__c")
    expect(page.get_by_role("heading", level=1)).to_have_text("No object is called Bikes__c")
    page.get_by_role("link", name="Open Bike__c").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Bike")


@pytest.mark.one_server("a server syncs for itself alone")
def test_the_first_sync_begins_with_a_click_and_shows_its_result(
    demo: Running, page: Page, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("first")
    log_in(demo, folder / "data")
    options = ("--data-dir", folder / "data", "--toolsets", "salesforce_graph")
    with listening(*options, log=folder / "log") as server:
        page.goto(f"{server.base}/salesforce")
        page.get_by_role("button", name="Sync now").click()
        expect(page.locator("tbody").first).to_contain_text("Warranty Claim", timeout=60_000)  # it reloads by itself


def test_a_sync_begins_with_a_click(server: Listening, page: Page) -> None:
    page.goto(f"{server.base}/salesforce")
    page.get_by_role("button", name="Sync now").click()
    expect(page).to_have_url(f"{server.base}/salesforce")
    expect(page.locator(".meta .state")).to_have_text(re.compile("Syncing|In step"))


def test_a_phone_shows_the_list_first_and_the_diagram_scrolls_in_itself(server: Listening, browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(f"{server.base}/salesforce/objects/Account")
    first = page.locator("ul.rows li").first
    expect(first).to_contain_text("points here")
    region = page.get_by_role("region", name="Diagram")
    list_box, diagram_box = first.bounding_box(), region.bounding_box()
    assert list_box
    assert diagram_box
    assert list_box["y"] < diagram_box["y"]
    assert region.evaluate("part => part.scrollWidth > part.clientWidth")
    page.get_by_role("link", name="Show all 42").click()
    expect(page.locator("tbody").first).to_contain_text("ProvidedAssets")
    page.close()


@pytest.mark.parametrize("name", ["Account", "User", "Task", "Bike__c", "AccountContactRelation"])
def test_nothing_covers_anything_in_a_drawn_diagram(server: Listening, page: Page, name: str) -> None:
    page.goto(f"{server.base}/salesforce/objects/{name}")
    assert page.evaluate(COVERED) == []


def test_pages_are_accessible_and_fit_every_screen(server: Listening, browser: Browser) -> None:
    check_pages(
        browser,
        server.base,
        "/salesforce",
        "/salesforce?search=zzz",
        "/salesforce/objects/Account",
        "/salesforce/objects/Account?view=two-steps",
        "/salesforce/objects/Account?view=list",
        "/salesforce/objects/Account?fields=Industry",
        "/salesforce/objects/Bikes__c",
        "/salesforce/paths",
        "/salesforce/paths?from=Acount&to=Nothing",
        "/salesforce/paths?from=Task&to=Bike__c",
        PATH,
    )


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    """A server of a schema with very many objects, long names among them, and of a second one."""
    folder = tmp_path_factory.mktemp("large")
    describes = folder / "describes"
    describes.mkdir()
    link = {"name": f"{LONG[:-3]}Link__c", "label": "Link", "type": "reference", "referenceTo": [LONG]}
    names = [LONG, *(f"Thing_{number}_{LONG[-40:]}" for number in range(40)), *(f"Other{n}" for n in range(MANY))]
    for name in names:
        fields = [{"name": "Id", "label": "Id", "type": "id"}, *([link] if name.startswith("Thing") else [])]
        (describes / f"{name}.json").write_text(json.dumps({"name": name, "label": name, "fields": fields}))
    data = ("--data-dir", folder / "data")
    for org in ("one", "two"):
        made = bedstone("salesforce", "sync-schema", "--from", describes, "--name", org, *data)
        assert made.returncode == 0, made.stderr
    with listening(*data, "--toolsets", "salesforce_graph", log=folder / "log") as server:
        yield server


def test_long_names_stay_in_their_boxes(large: Listening, page: Page) -> None:
    page.goto(f"{large.base}/salesforce/orgs/one/objects/{LONG}")
    expect(page.locator(".diagram-space .node")).to_have_count(24)
    assert page.evaluate(COVERED) == []


def test_of_very_many_names_those_that_fit_are_offered(large: Listening, page: Page) -> None:
    page.goto(f"{large.base}/salesforce/orgs/one")
    offered = page.locator("datalist option[value=Other399]")
    expect(offered).to_have_count(0)
    page.get_by_role("combobox", name="From").press_sequentially("other39")
    expect(offered).to_have_count(1)


def test_each_of_several_orgs_has_its_pages(large: Listening, browser: Browser, page: Page) -> None:
    page.goto(f"{large.base}/salesforce")
    page.get_by_role("link", name="two").click()
    page.get_by_role("link", name="Other0", exact=True).click()
    expect(page).to_have_url(f"{large.base}/salesforce/orgs/two/objects/Other0")
    page.get_by_role("link", name="two", exact=True).click()
    page.get_by_role("navigation", name="Orgs").get_by_role("link", name="one").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Schema of one")
    page.goto(f"{large.base}/salesforce/objects/Other0")
    expect(page.locator("main")).to_contain_text("Known: one, two")
    check_pages(browser, large.base, "/salesforce", "/salesforce/orgs/two", f"/salesforce/orgs/one/objects/{LONG}")
