"""The pages about a schema in this process: objects, what is around them, the ways between them, unknown names."""

import json
import re
from collections.abc import AsyncIterator, Mapping
from html import escape, unescape
from itertools import product
from pathlib import Path
from urllib.parse import quote

import anyio
import pytest

from bedstone.salesforce.graph.path_queries import joins
from bedstone.services.schema.service import OrgSchema, SchemaService
from bedstone.settings import Settings
from bedstone.web.schema.path_story import Hop, Stop, Way, a, lower, name_shapes, tell_ways
from support.demo_org import Running, V, log_in
from support.processes import bedstone
from support.site import Site, make_settings, open_site

HOSTILE = "<img src=x onerror=alert(1)>"
MANY = 410  # more objects than a page names at once
CLAIMS = "from=Account&to=Warranty_Claim__c"
BY_CONTACT = "Contact.AccountId,Case.ContactId,Warranty_Claim__c.Case__c"


def describe(name: str, *fields: Mapping[str, object], label: str = "") -> dict[str, object]:
    """Return an object as an org describes it."""
    common = [
        {"name": "Id", "label": f"{name} ID", "type": "id"},
        {"name": "Name", "label": f"{name} Name", "type": "string", "nameField": True, "nillable": False},
    ]
    return {"name": name, "label": label or name, "labelPlural": f"{label or name}s", "fields": [*common, *fields]}


def refer(name: str, *targets: str, **facts: object) -> dict[str, object]:
    link = {"type": "reference", "referenceTo": list(targets), "relationshipName": name.removesuffix("Id")}
    return {"name": name, "label": name.removesuffix("Id"), **link, **facts}


def write_schema(folder: Path, many: int = 0) -> Path:
    """Write a few objects with hostile labels, long lists of values and fields, and very many others."""
    folder.mkdir(parents=True, exist_ok=True)
    values = [{"value": f"{number} {HOSTILE}", "label": "x", "active": True} for number in range(60)]
    stage = {"name": "Stage__c", "label": HOSTILE, "type": "picklist", "picklistValues": values}
    more = [{"name": f"Field{number}__c", "label": f"Field {number}", "type": "string"} for number in range(120)]
    helpful = {"name": "Helped__c", "label": "Helped", "type": "double", "inlineHelpText": f"Ask {HOSTILE}"}
    objects = [
        describe("Account", refer("ParentId", "Account"), stage, helpful, *more, label=f"Account {HOSTILE}"),
        describe("Contact", refer("AccountId", "Account"), refer("OwnerId", "Account", "Nowhere")),
        describe("Case", refer("ContactId", "Contact")),
        describe("Island__c"),
        *(describe(f"Thing{number}__c", label=f"Thing {number}") for number in range(many)),
    ]
    for item in objects:
        (folder / f"{item['name']}.json").write_text(json.dumps(item))
    return folder


@pytest.fixture(scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """The pages of a schema that was imported from files."""
    folder = tmp_path_factory.mktemp("site")
    async with open_site(make_settings(folder, "salesforce_graph", "kb", kb={"file_path": __file__})) as site:
        schemas: SchemaService = await site.app.services["salesforce_graph"].open()
        schemas.import_folder("one", write_schema(folder / "describes", MANY))
        yield site


@pytest.fixture(scope="module")
def org_settings(demo: Running, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("org")
    log_in(demo, folder / "data")
    return make_settings(folder, "salesforce_graph")


@pytest.fixture(scope="module")
async def org_site(demo: Running, org_settings: Settings) -> AsyncIterator[Site]:
    """The pages of the demo org."""
    made = demo.http.post(f"{V}/sobjects/Account", json={"Name": f"0 {HOSTILE}"})
    assert made.status_code == 201
    synced = bedstone("salesforce", "sync-schema", "--data-dir", org_settings.data_folder)
    assert synced.returncode == 0, synced.stderr
    async with open_site(org_settings) as site:
        yield site


async def org_of(site: Site) -> OrgSchema:
    schemas: SchemaService = await site.app.services["salesforce_graph"].open()
    return await schemas.org()


def text_of(page: str) -> str:
    """Return the text of a page without its markup."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", page)))


async def test_objects_are_listed_by_kind_custom_ones_first(org_site: Site) -> None:
    text = await org_site.text("/salesforce")
    assert "<h1>Schema of demo</h1>" in text
    facts = text_of(text)
    assert "78 objects" in facts
    assert "473 relationships" in facts
    parts = re.findall(r'scope="colgroup">([^<]+)<', text)
    assert parts == ["Custom objects 12", "External objects 1", "Standard objects 65"]
    assert text.index("Warranty_Claim__c</code>") < text.index("<code>Account</code>")
    row = text_of(text[text.index("<code>Bike__c</code>") :].partition("</tr>")[0])
    assert row.split() == ["Bike__c", "20", "fields", "4", "Account,", "Contact"]


async def test_the_list_is_narrowed_and_sorted(org_site: Site, site: Site) -> None:
    found = await org_site.text("/salesforce?search=CLAIM&category=custom")
    assert re.findall(r"<code>(\w+)</code>", found) == ["Warranty_Claim__c"]
    most = await org_site.text("/salesforce?sort=pointed")
    assert re.findall(r'<td class="whole"><code>(\w+)</code>', most)[:2] == ["User", "Account"]
    assert 'class="part"' not in most
    assert 'href="?sort=pointed&amp;category=custom"' in most
    nothing = await org_site.text("/salesforce?search=zzz")
    assert "No object matches" in nothing
    assert 'value="zzz"' in nothing
    second = await site.text("/salesforce?page=2")
    assert "Page 2 of 5" in second
    assert "There is no page 99" in await site.text("/salesforce?page=99")


async def test_a_schema_from_files_says_so_and_cannot_be_synced(site: Site) -> None:
    text = await site.text("/salesforce")
    assert "Imported from files" in text
    assert "Sync now" not in text
    assert (await site.post("/salesforce/sync")).status_code == 404


async def test_names_are_completed_at_once_or_while_one_types(org_site: Site, site: Site) -> None:
    small = await org_site.text("/salesforce")
    assert '<option value="Warranty_Claim__c">Warranty Claim</option>' in small
    assert "data-names" not in small
    assert 'data-names="/salesforce/names"' in await site.text("/salesforce")
    options = re.findall(r'value="(\w+)"', (await site.get("/salesforce/names?text=thing+40")).text)
    assert options[:2] == ["Thing40__c", "Thing400__c"]
    assert len(options) == 11


async def test_an_org_is_synced_from_the_page(demo: Running, tmp_path: Path) -> None:
    log_in(demo, tmp_path / "data")
    async with open_site(make_settings(tmp_path, "salesforce_graph")) as site:
        first = await site.text("/salesforce")
        assert "The schema is not synced yet" in first
        for path in ("/salesforce/objects/Account", "/salesforce/paths?from=Account&to=Case"):
            assert (await site.get(path)).headers["location"] == "/salesforce"
        assert (await site.http.post("/salesforce/sync")).status_code == 403  # without the token of the form
        answer = await site.post("/salesforce/sync")
        assert (answer.status_code, answer.headers["location"]) == (303, "/salesforce")
        with anyio.fail_after(60):
            while "In step" not in (text := await site.text("/salesforce")):
                assert "is running" in text or "Syncing" in text
        assert "Sync now" in text


async def test_a_server_that_is_read_only_does_not_sync(org_settings: Settings, org_site: Site) -> None:
    settings = org_settings.model_copy(update={"read_only": True})
    async with open_site(settings) as site:
        assert "Sync now" not in await site.text("/salesforce")
        assert (await site.post("/salesforce/sync")).status_code == 403


async def test_a_failed_sync_is_shown(demo: Running, calm: None, tmp_path: Path) -> None:
    log_in(demo, tmp_path / "data")
    async with open_site(make_settings(tmp_path, "salesforce_graph")) as site:
        demo.faults("api-off")
        await site.post("/salesforce/sync")
        with anyio.fail_after(60):
            while "The last sync failed" not in (text := await site.text("/salesforce")):
                pass
        assert 'role="alert"' in text
        assert "Sync now" in text


async def test_each_of_several_orgs_has_its_pages(tmp_path: Path) -> None:
    describes = write_schema(tmp_path / "describes")
    async with open_site(make_settings(tmp_path, "salesforce_graph")) as site:
        await site.text("/salesforce", status=404)
        schemas: SchemaService = await site.app.services["salesforce_graph"].open()
        for name in ("one", "two & three"):
            schemas.import_folder(name, describes)
        choice = await site.text("/salesforce")
        assert "<h1>Choose an org</h1>" in choice
        assert 'href="/salesforce/orgs/two%20%26%20three"' in choice
        text = await site.text("/salesforce/orgs/two%20%26%20three")
        assert 'href="/salesforce/orgs/two%20%26%20three/objects/Contact"' in text
        assert 'href="/salesforce/orgs/one">one</a>' in text
        around = await site.text("/salesforce/orgs/two%20%26%20three/objects/Contact?view=list")
        assert 'href="/salesforce/orgs/two%20%26%20three/objects/Account"' in around
        moved = await site.get("/salesforce/orgs/one/objects/Contact/relationships?search=acc")
        assert moved.headers["location"] == "/salesforce/orgs/one/objects/Contact?near=acc&view=list"
        await site.text("/salesforce/objects/Contact", status=404)


async def test_an_object_is_drawn_with_those_around_it(org_site: Site) -> None:
    text = await org_site.text("/salesforce/objects/Account")
    assert "<h1>Account</h1>" in text
    assert "23 of 34 objects drawn" in text
    drawn = re.findall(r'<a class="node[^"]*" href="([^"]+)" aria-label="([^"]+)"', text)
    assert len(drawn) == 24  # User points here and is pointed to
    assert (
        "/salesforce/objects/Dealer_Agreement__c",
        "Dealer_Agreement__c: points here by Dealer__c, master-detail",
    ) in drawn
    user = "User: is pointed to by OwnerId, CreatedById, LastModifiedById, lookup"
    assert ("/salesforce/objects/User", user) in drawn
    assert ' style="' not in text


async def test_related_objects_are_filtered_and_the_filter_stays(org_site: Site) -> None:
    text = await org_site.text("/salesforce/objects/Account?near=dealer&fields=name")
    assert len(re.findall(r'<a class="node', text)) == 3
    assert 'href="?near=dealer&amp;fields=name&amp;view=list"' in text
    assert 'name="near" value="dealer"' in text
    nothing = await org_site.text("/salesforce/objects/Account?near=zzz")
    assert "No related object matches" in nothing


async def test_two_steps_are_told_neighbour_by_neighbour(org_site: Site) -> None:
    for address in ("?view=two-steps", "?depth=2"):  # the second is how earlier versions linked to it
        text = await org_site.text(f"/salesforce/objects/Account{address}")
        row = text[text.index('href="/salesforce/objects/Bike__c"') :].partition("</tr>")[0]
        way = "/salesforce/paths?from=Account&amp;to=Warranty_Claim__c&amp;via="
        assert f'href="{way}Bike__c.Dealer__c%2CWarranty_Claim__c.Bike__c"' in row
        assert "Contact" not in text_of(row)  # one step away, so not behind another
        assert "Nothing new is behind" in text


async def test_all_relationships_are_listed_with_their_names_in_a_query(org_site: Site, site: Site) -> None:
    text = await org_site.text("/salesforce/objects/Account?view=list")
    assert "42 relationships" in text
    row = text_of(text[text.index("<code>Asset.AssetProvidedById</code>") :].partition("</tr>")[0])
    assert row.split() == ["Asset.AssetProvidedById", "Account", "lookup", "ProvidedAssets"]
    users = await org_site.text("/salesforce/objects/User?view=list")
    assert "Page 1 of 3" in users
    last = await org_site.text("/salesforce/objects/User?view=list&near_page=3")
    assert "Only by who created or changed a record" in last
    moved = await site.get("/salesforce/objects/Account/relationships?search=contact&page=2")
    assert (moved.status_code, moved.headers["location"]) == (
        307,
        "/salesforce/objects/Account?near=contact&view=list",
    )


async def test_an_object_without_relationships_says_so(site: Site) -> None:
    for view in ("diagram", "two-steps", "list"):
        assert "Nothing points here" in await site.text(f"/salesforce/objects/Island__c?view={view}")


async def test_fields_are_found_by_name_help_or_value(site: Site) -> None:
    for text in ("stage__c", "12 <img", "ASK"):
        page = await site.text(f"/salesforce/objects/Account?fields={quote(text)}")
        rows = re.findall(r'<tr id="field-(\w+)"', page)
        assert rows == (["Helped__c"] if text == "ASK" else ["Stage__c"]), text
    typed = await site.text("/salesforce/objects/Account?type=double")
    assert re.findall(r'<tr id="field-(\w+)"', typed) == ["Helped__c"]
    assert "1 of 125" in text_of(typed)
    second = await site.text("/salesforce/objects/Account?page=2")
    assert "Page 2 of 2" in second
    assert "No field matches" in await site.text("/salesforce/objects/Account?fields=zzz&type=double")


async def test_a_field_that_one_comes_for_is_first_and_marked(site: Site) -> None:
    page = await site.text("/salesforce/objects/Account?fields=field12__C")
    assert re.findall(r'<tr id="field-(\w+)"([^>]*)>', page)[0] == ("Field12__c", ' class="found"')
    named = await site.text("/salesforce/objects/Contact?fields=name")
    assert re.findall(r'<tr id="field-(\w+)"( class="found")?', named)[0] == ("Name", ' class="found"')


async def test_a_long_picklist_is_folded(site: Site) -> None:
    many = await site.text("/salesforce/objects/Account")
    assert "and 57 more</summary>" in many
    assert f"42 {escape(HOSTILE)}" in many
    assert f"43 {escape(HOSTILE)}" not in many
    few = await site.text("/salesforce/objects/Account?fields=stage__c")
    assert f"59 {escape(HOSTILE)}" in few


async def test_a_reference_links_to_what_is_known(site: Site) -> None:
    page = await site.text("/salesforce/objects/Contact")
    row = page[page.index('id="field-OwnerId"') :].partition("</tr>")[0]
    assert 'points to <a href="/salesforce/objects/Account">Account</a>, Nowhere, in a query <code>Owner</code>' in row
    assert "required" in page[page.index('id="field-Name"') :].partition("</tr>")[0]


async def test_a_name_that_no_object_has_leads_to_the_nearest(site: Site, org_site: Site) -> None:
    text = await site.text("/salesforce/objects/Acount", status=404)
    assert "<h1>No object is called Acount</h1>" in text
    assert "Did you mean Account?" in text
    assert '<a class="btn primary" href="/salesforce/objects/Account">' in text
    assert 'name="q" type="search" value="acount"' in text
    assert "Import it again" in text
    assert "No name is near it" in await site.text("/salesforce/objects/qqqqqqqqqqqqqq", status=404)
    plain = await site.http.get("/salesforce/objects/Acount")
    assert (plain.status_code, plain.text) == (404, "No object is called Acount. Did you mean Account?")
    moved = await site.get("/salesforce/objects/Acount/relationships")
    assert "Did you mean Account?" in await site.text(moved.headers["location"], status=404)
    asked = await org_site.text("/salesforce/objects/Bikes__c", status=404)
    assert "Open Bike__c" in asked
    assert "Sync now" in asked
    assert HOSTILE not in await site.text(f"/salesforce/objects/{quote(HOSTILE, safe='')}", status=404)


async def test_a_path_is_told_as_a_story(org_site: Site) -> None:
    text = await org_site.text(f"/salesforce/paths?{CLAIMS}&via={BY_CONTACT}")
    assert "<h1>From Account to Warranty Claim</h1>" in text
    assert "<p>An account has contacts, a contact has cases, a case has warranty claims.</p>" in text
    assert '<h2 id="chosen">Through Contact and Case</h2>' in text
    assert "3 steps, one query" in text
    stops = re.findall(r'<li class="stop[^"]*"><a href="[^"]*/(\w+)">', text)
    assert stops == ["Account", "Contact", "Case", "Warranty_Claim__c"]
    hops = re.findall(r'<li class="hop( up)?"><code>(\w+)</code>', text)
    assert hops == [("", "AccountId"), ("", "ContactId"), ("", "Case__c")]
    query = text_of(text[text.index('<pre id="query-1"') :].partition("</pre>")[0])
    assert "Case__r.Contact.Account.Name FROM Warranty_Claim__c" in query
    nested = await org_site.text(f"/salesforce/paths?{CLAIMS}&via={BY_CONTACT}&shape=nested")
    assert "(SELECT CaseNumber, (SELECT Name," in text_of(nested)
    assert 'aria-current="true">Nested by account</a>' in nested
    assert text.count('<li class="choice">') == 10


async def test_the_way_back_has_the_other_arrows(org_site: Site) -> None:
    text = await org_site.text("/salesforce/paths?from=warranty+claim&to=Account&via=Case__c,ContactId,AccountId")
    assert 'name="from" list="objects" value="Warranty_Claim__c"' in text  # a label was entered
    assert "A warranty claim belongs to a case, a case belongs to a contact" in text
    assert len(re.findall(r'<li class="hop up">', text)) == 3
    assert 'href="?from=Account&amp;to=Warranty_Claim__c" aria-label="Swap' in text


async def test_a_way_that_needs_two_queries_says_so(org_site: Site) -> None:
    via = "Service_Visit__c.Workshop__c,Bike__c,Warranty_Claim__c.Bike__c"
    text = await org_site.text(f"/salesforce/paths?{CLAIMS}&via={via}")
    assert "Needs two queries" in text
    assert text.count("<pre ") == 2
    assert "Service_Visit__c.Bike__c = Warranty_Claim__c.Bike__c." in text
    assert "data-load" not in text[text.index('id="query"') :]


async def test_names_that_do_not_exist_are_kept_and_corrected(site: Site) -> None:
    text = await site.text("/salesforce/paths?from=Acount&to=Contact")
    assert 'value="Acount" placeholder="Account" required autocomplete="off" aria-invalid="true"' in text
    assert 'Did you mean <a href="?from=Account&amp;to=Contact">Account</a>?' in text
    both = await site.text(f"/salesforce/paths?from=qqqqqqqqqqqqq&to={quote(HOSTILE)}")
    assert both.count('aria-invalid="true"') == 2
    assert HOSTILE not in both
    assert escape(HOSTILE) in both
    assert "Choose two objects" in await site.text("/salesforce/paths")
    half = await site.text("/salesforce/paths?from=Account")
    assert "Where should it lead?" in half
    assert re.search(r'<input name="to"[^>]* autofocus', half)


async def test_objects_that_nothing_joins_are_told_plainly(site: Site) -> None:
    text = await site.text("/salesforce/paths?from=Account&to=Island__c")
    assert "No way joins them" in text
    assert 'href="/salesforce/objects/Island__c">Objects around Island__c</a>' in text


async def test_records_on_the_way_are_counted_in_the_org(demo: Running, org_site: Site) -> None:
    form = {"from": "Account", "to": "Warranty_Claim__c", "via": BY_CONTACT}
    text = (await org_site.post("/salesforce/paths/counts", form)).text
    accounts = demo.query("SELECT COUNT() FROM Account")["totalSize"]
    claims = demo.query("SELECT COUNT() FROM Warranty_Claim__c")["totalSize"]
    assert f"{accounts:,} records" in text
    assert f'title="{claims} of {claims} records">lookup, all filled' in text
    assert (await org_site.http.post("/salesforce/paths/counts", data=form)).status_code == 403
    unknown = await org_site.post("/salesforce/paths/counts", {"from": "Account", "to": "Nothing"})
    assert unknown.status_code == 404


async def test_the_first_rows_of_a_query_are_shown(org_site: Site) -> None:
    form = {"from": "Account", "to": "Warranty_Claim__c", "via": BY_CONTACT}
    text = (await org_site.post("/salesforce/paths/rows", form)).text
    assert re.findall(r"<th[^>]*>([^<]+)</th>", text)[0::3] == ["Warranty Claim", "Case"]
    assert text.count("<tr>") == 4  # with the head
    nested = (await org_site.post("/salesforce/paths/rows", {**form, "shape": "nested"})).text
    assert re.findall(r"<th[^>]*>([^<]+)</th>", nested) == ["Account", "Contacts"]
    assert HOSTILE not in nested
    assert escape(HOSTILE) in nested
    two = {**form, "via": "Service_Visit__c.Workshop__c,Bike__c,Warranty_Claim__c.Bike__c"}
    assert (await org_site.post("/salesforce/paths/rows", two)).status_code == 404


async def test_an_org_that_does_not_answer_leaves_the_page_as_it_is(demo: Running, calm: None, org_site: Site) -> None:
    form = {"from": "Bike__c", "to": "Part__c"}
    demo.faults("api-off")
    counts = await org_site.post("/salesforce/paths/counts", form)
    assert (counts.status_code, "records" in counts.text) == (200, False)
    assert "Service Visit" in counts.text
    rows = await org_site.post("/salesforce/paths/rows", form)
    assert rows.status_code == 200
    assert "<table" not in rows.text


async def test_every_query_that_is_offered_is_valid(org_site: Site) -> None:
    """Between many pairs of objects: what the page offers validates, and what it does not offer has a reason."""
    org = await org_of(org_site)
    names = [item.name for item in org.graph.objects.values()]
    offered = without = 0
    for source, target in list(product(names, names))[::23]:
        for way in tell_ways(org.paths.find(source, target, limit=6).paths, org):
            queries = [*way.rows, *([way.nested] if way.nested else [])]
            offered += len(queries)
            without += not way.rows
            assert way.rows or way.problem, way.key
            for query in queries:
                assert org.validate(query.text).valid, query.text
            check_words(way)
    assert offered > 3_000
    assert without < offered / 25  # files must be asked for by id


def check_words(way: Way) -> None:
    """Assert that a way has words, and that several queries say how their rows belong together."""
    assert way.title
    assert way.sentence.endswith(".")
    assert len(name_shapes(way)) == bool(way.rows) + (way.nested is not None)
    if len(way.rows) > 1:
        assert len(joins(way.rows)) == len(way.rows) - 1, way.key
        assert all(join.count(" = ") == 1 for join in joins(way.rows)), way.key


async def test_offered_queries_run_in_the_org(org_site: Site) -> None:
    schemas: SchemaService = await org_site.app.services["salesforce_graph"].open()
    org = await org_of(org_site)
    pairs = [("Account", "Warranty_Claim__c"), ("Task", "Bike__c"), ("Contact", "Case"), ("Account", "Account")]
    for source, target in pairs:
        for way in tell_ways(org.paths.find(source, target, limit=5).paths, org):
            for query in [*way.rows, *([way.nested] if way.nested else [])]:
                page = (await schemas.query(query.with_limit(2).text)).page
                assert page["totalSize"] <= 2, query.text


async def test_stops_take_the_fields_of_the_query(org_site: Site) -> None:
    org = await org_of(org_site)
    way = next(way for way in tell_ways(org.paths.find("Account", "Contact").paths, org) if len(way.path.steps) == 1)
    account, hop, contact = way.route("rows", org.graph, {"SELECT COUNT() FROM Contact": 7})
    assert isinstance(account, Stop)
    assert isinstance(hop, Hop)
    assert isinstance(contact, Stop)
    assert (account.columns, account.records) == (["Name"], None)
    assert contact.columns == ["Name", "Email", "Phone"]
    assert (contact.records, hop.share, hop.goes_up) == (7, "", False)


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("Account", "an account"),
        ("User", "a user"),
        ("Unit", "a unit"),
        ("Update", "an update"),
        ("Warranty Claim", "a warranty claim"),
        ("SLA Process", "a SLA process"),
        ("ApexClass", "an ApexClass"),
    ],
)
def test_labels_read_well_in_a_sentence(label: str, text: str) -> None:
    assert a(label) == text
    assert text.endswith(lower(label))


async def test_pages_are_small(site: Site, org_site: Site) -> None:
    pages = ("", "?sort=pointed", "/objects/Account", "/objects/Account?view=list", "/paths?from=Account&to=Case")
    for one in (site, org_site):
        for path in pages:
            assert len((await one.text(f"/salesforce{path}")).encode()) < 150_000, path
