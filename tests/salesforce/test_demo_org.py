"""The demo org in its own process, with a client written by others and with plain HTTP."""

import re
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from simple_salesforce.api import Salesforce
from simple_salesforce.exceptions import SalesforceAuthenticationFailed, SalesforceMalformedRequest

from bedstone.salesforce.demo_org.errors import ApiError
from bedstone.salesforce.demo_org.faults import NAMES
from bedstone.salesforce.demo_org.org import DemoOrg, open_org
from bedstone.salesforce.demo_org.rest import RestApi
from bedstone.salesforce.ids import long_id, make_id
from bedstone.salesforce.soql.quoting import like_string, soql_string
from support.demo_org import Running, V, running
from support.processes import bedstone


@pytest.fixture(scope="module")
def org(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoOrg]:
    org = open_org(tmp_path_factory.mktemp("org"))
    yield org
    org.close()


@pytest.fixture(autouse=True)
def well(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "demo" in request.fixturenames:
        request.getfixturevalue("demo").faults()


def outside(demo: Running, monkeypatch: pytest.MonkeyPatch, **login: Any) -> Any:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(demo.folder / "demo-authority.pem"))
    return Salesforce(**login)


def test_a_client_written_by_others_works_unchanged(demo: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    place = f"localhost:{demo.https_port}"
    by_token = outside(demo, monkeypatch, instance=place, session_id=demo.token)
    assert by_token.query("SELECT COUNT() FROM Account")["totalSize"] == 240
    by_password = outside(
        demo,
        monkeypatch,
        username="admin@kestrel.example",
        password="demo",
        security_token="",
        domain=f"{place}/_login/",
    )
    by_client = outside(
        demo, monkeypatch, consumer_key="demo-client", consumer_secret="demo-secret", domain=f"{place}/_login/"
    )
    for client in (by_password, by_client):
        described = client.Account.describe()
        assert {field["name"] for field in described["fields"]} >= {"Id", "Name", "Industry", "OwnerId"}
        assert len(client.describe()["sobjects"]) > 70
        names = [row["Name"] for row in client.query_all_iter("SELECT Name FROM Contact")]
        assert len(names) == 426
        found = client.search("FIND {Lighthouse OR Connor} IN ALL FIELDS RETURNING Account(Id, Name)")
        assert found["searchRecords"][0]["Name"] == "O'Connor's Bikes"
        made = client.Contact.create({"LastName": "Ünal", "Email": "u@example.com"})
        assert made["success"]
        assert client.Contact.update(made["id"], {"FirstName": "Zeynep"}) == 204
        assert client.Contact.get(made["id"])["Name"] == "Zeynep Ünal"
        assert client.Contact.delete(made["id"]) == 204
        with pytest.raises(SalesforceMalformedRequest) as caught:
            client.query("SELECT Nothing FROM Account")
        content: Any = caught.value.content
        assert content[0]["errorCode"] == "INVALID_FIELD"
        assert client.limits()["DailyApiRequests"]["Max"] == 15_000
    with pytest.raises(SalesforceAuthenticationFailed):
        outside(
            demo,
            monkeypatch,
            username="admin@kestrel.example",
            password="x",
            security_token="",
            domain=f"{place}/_login/",
        )


def test_describes_are_complete_and_told_only_once(demo: Running) -> None:
    first = demo.http.get(f"{V}/sobjects/Bike__c/describe")
    described = first.json()
    fields = {field["name"]: field for field in described["fields"]}
    assert len(fields["Model__c"]) == 57
    assert [value["value"] for value in fields["Model__c"]["picklistValues"]] == ["Haul", "Barrow", "Porter"]
    assert fields["Colour__c"]["controllerName"] == "Model__c"
    assert fields["Price_per_km__c"]["calculated"]
    assert {child["relationshipName"] for child in described["childRelationships"]} >= {"Service_Visits__r"}
    again = demo.http.get(
        f"{V}/sobjects/Bike__c/describe", headers={"If-Modified-Since": first.headers["last-modified"]}
    )
    assert (again.status_code, again.content) == (304, b"")
    requests = [
        {
            "method": "GET",
            "url": f"{V}/sobjects/{name}/describe",
            "referenceId": name,
            "httpHeaders": {"If-Modified-Since": first.headers["last-modified"]},
        }
        for name in ("Account", "Contact")
    ]
    answers = demo.http.post(f"{V}/composite", json={"compositeRequest": requests}).json()["compositeResponse"]
    assert [answer["httpStatusCode"] for answer in answers] == [304, 304]


def test_long_answers_come_in_pages(demo: Running) -> None:
    demo.faults("small-batches")
    page = demo.query("SELECT Id, Name FROM Account ORDER BY Name LIMIT 12")
    assert (page["totalSize"], page["done"], len(page["records"])) == (12, False, 5)
    seen = page["records"]
    while not page["done"]:
        page = demo.http.get(page["nextRecordsUrl"]).json()
        assert page["totalSize"] == 12
        seen += page["records"]
    assert len({row["Id"] for row in seen}) == 12
    assert [row["Name"].upper() for row in seen] == sorted(row["Name"].upper() for row in seen)
    lost = demo.http.get(f"{V}/query/01gNOTHING-5")
    assert (lost.status_code, lost.json()[0]["errorCode"]) == (400, "INVALID_QUERY_LOCATOR")


def test_records_are_checked_changed_and_found_by_other_keys(demo: Running) -> None:
    refused = {
        "REQUIRED_FIELD_MISSING": {"Model__c": "Haul"},
        "INVALID_FIELD": {"Name": "x", "Nothing": 1},
        "INVALID_OR_NULL_FOR_RESTRICTED_PICKLIST": {"Name": "x", "Model__c": "Tank"},
        "STRING_TOO_LONG": {"Name": "x" * 81, "Model__c": "Haul"},
        "MALFORMED_ID": {"Name": "x", "Model__c": "Haul", "Rider__c": "abc"},
        "FIELD_INTEGRITY_EXCEPTION": {"Name": "x", "Model__c": "Haul", "Rider__c": make_id("001", 1)},
        "JSON_PARSER_ERROR": {"Name": "x", "Model__c": "Haul", "Sold_On__c": "soon"},
    }
    for code, values in refused.items():
        answer = demo.http.post(f"{V}/sobjects/Bike__c", json=values)
        assert (answer.status_code, answer.json()[0]["errorCode"]) == (400, code)
    made = demo.http.patch(f"{V}/sobjects/Bike__c/Frame_Number__c/KX26V99999", json={"Name": "New", "Model__c": "Haul"})
    assert (made.status_code, made.json()["created"]) == (201, True)
    again = demo.http.patch(f"{V}/sobjects/Bike__c/Frame_Number__c/KX26V99999", json={"Name": "Newer"})
    assert (again.status_code, again.json()["created"]) == (200, False)
    assert demo.http.get(f"{V}/sobjects/Bike__c/Frame_Number__c/KX26V99999").json()["Name"] == "Newer"
    double = demo.http.post(
        f"{V}/sobjects/Bike__c", json={"Name": "x", "Model__c": "Haul", "Frame_Number__c": "KX26V99999"}
    )
    assert double.json()[0]["errorCode"] == "DUPLICATE_VALUE"
    bike = made.json()["id"]
    visit = demo.http.post(f"{V}/sobjects/Service_Visit__c", json={"Bike__c": bike, "Date__c": "2026-05-01"}).json()[
        "id"
    ]
    assert demo.http.delete(f"{V}/sobjects/Bike__c/{bike}").status_code == 204
    gone = demo.http.get(f"{V}/sobjects/Service_Visit__c/{visit}")
    assert (gone.status_code, gone.json()[0]["errorCode"]) == (404, "ENTITY_IS_DELETED")
    everything = demo.http.get(
        f"{V}/queryAll", params={"q": f"SELECT IsDeleted FROM Bike__c WHERE Id = '{bike[:15]}'"}
    ).json()
    assert everything["records"][0]["IsDeleted"] is True
    collection = {
        "records": [{"attributes": {"type": "Lead"}, "LastName": "A", "Company": "B"}, {"attributes": {"type": "Lead"}}]
    }
    rows = demo.http.post(f"{V}/composite/sobjects", json=collection).json()
    assert [row["success"] for row in rows] == [True, False]


def test_articles_are_searched_read_and_sorted_into_categories(demo: Running) -> None:
    fields = "Id, Title WHERE PublishStatus = 'Online' AND Language = 'en_US' LIMIT 5"
    statement = f"FIND {{belt AND tension}} RETURNING KnowledgeArticleVersion({fields})"
    found = demo.http.get(f"{V}/search", params={"q": statement}).json()["searchRecords"]
    assert {row["Title"] for row in found} == {
        f"How to tension the belt of the {name}" for name in ("Haul", "Barrow", "Porter")
    }
    narrowed = demo.http.get(
        f"{V}/search", params={"q": f"{statement} WITH DATA CATEGORY Models__c AT Porter__c"}
    ).json()
    assert [row["Title"] for row in narrowed["searchRecords"]] == ["How to tension the belt of the Porter"]
    listed = demo.http.get(
        f"{V}/support/knowledgeArticles", params={"q": "flat tyre"}, headers={"Accept-Language": "en-US"}
    ).json()
    whole = demo.http.get(listed["articles"][0]["url"]).json()
    assert "<ol>" in next(item["value"] for item in whole["layoutItems"] if item["name"] == "Steps__c")
    groups = demo.http.get(f"{V}/support/dataCategoryGroups", params={"topCategoriesOnly": "false"}).json()[
        "categoryGroups"
    ]
    assert {group["name"] for group in groups} == {"Topics", "Models"}
    counts = demo.query(
        "SELECT Language, PublishStatus, COUNT(Id) n FROM Knowledge__kav GROUP BY Language, PublishStatus"
    )
    assert {(row["Language"], row["PublishStatus"]): row["n"] for row in counts["records"]} == {
        ("en_US", "Online"): 120,
        ("en_US", "Draft"): 12,
        ("en_US", "Archived"): 12,
        ("de", "Online"): 36,
        ("fr", "Online"): 36,
    }


def test_it_misbehaves_on_demand(demo: Running) -> None:
    assert set(demo.faults()["known"]) == set(NAMES)
    demo.faults("limit-near")
    assert re.fullmatch(r"api-usage=\d+/15000", demo.http.get(f"{V}/limits").headers["sforce-limit-info"])
    demo.faults("limit-over")
    over = demo.http.get(f"{V}/limits")
    assert (over.status_code, over.json()[0]["errorCode"]) == (403, "REQUEST_LIMIT_EXCEEDED")
    demo.faults("unavailable")
    assert demo.http.get(f"{V}/limits").status_code == 503
    demo.faults("knowledge-off")
    off = demo.query("SELECT Id FROM KnowledgeArticleVersion")
    assert off == [{"message": "sObject type 'KnowledgeArticleVersion' is not supported.", "errorCode": "INVALID_TYPE"}]
    names = {item["name"] for item in demo.http.get(f"{V}/sobjects").json()["sobjects"]}
    assert "KnowledgeArticleVersion" not in names
    demo.faults("fixed-clock")
    day = demo.query("SELECT COUNT() FROM Opportunity WHERE CloseDate = LAST_N_DAYS:30")["totalSize"]
    assert day > 0
    demo.faults("slow")
    started = time.monotonic()
    demo.http.get(f"{V}/limits")
    assert time.monotonic() - started >= 0.3
    stranger = demo.http.get(f"{V}/limits", headers={"Authorization": "Bearer nobody"})
    assert (stranger.status_code, stranger.json()[0]["errorCode"]) == (401, "INVALID_SESSION_ID")
    assert demo.http.get(f"{V}/limits", headers={"Host": "evil.example"}).status_code in (403, 421)
    refused = bedstone("salesforce", "demo", "--fault", "gravity")
    assert (refused.returncode, "Unknown faults: gravity" in refused.stderr) == (1, True)


def test_malformed_requests_get_the_orgs_own_errors(demo: Running) -> None:
    for method, path, status, code in (
        ("GET", f"{V}/nothing", 404, "NOT_FOUND"),
        ("GET", f"{V}/sobjects/Nothing/describe", 404, "NOT_FOUND"),
        ("GET", f"{V}/sobjects/Account/{make_id('001', 99999)}", 404, "NOT_FOUND"),
        ("DELETE", f"{V}/query", 405, "METHOD_NOT_ALLOWED"),
        ("GET", "/services/data/v99.0/limits", 404, "NOT_FOUND"),
        ("GET", "/services/data/v20.0/limits", 410, "UNSUPPORTED_API_VERSION"),
        ("POST", f"{V}/sobjects/Account", 400, "JSON_PARSER_ERROR"),
        ("POST", f"{V}/composite", 400, "JSON_PARSER_ERROR"),
    ):
        answer = demo.http.request(method, path)
        assert (answer.status_code, answer.json()[0]["errorCode"]) == (status, code), path
    broken = demo.http.post(f"{V}/sobjects/Account", content=b"{not json")
    assert broken.json()[0]["errorCode"] == "JSON_PARSER_ERROR"
    missing = demo.http.get(f"{V}/search", params={"q": "FIND {} RETURNING Account"})
    assert missing.json()[0]["errorCode"] == "MALFORMED_SEARCH"
    wrong = demo.query("SELECT Id\nFROM Account\nWHERE Name LIKE OR")[0]
    assert wrong["message"].endswith("ERROR at Row:3:Column:17\nunexpected token: 'OR'")


HOSTILE = [
    "O'Connor's Bikes",
    'The "Quick" Courier',
    "100% Cargo",
    "Back\\slash Ltd",
    "Müller_Räder",
    "名古屋自転車",
    "Björk & Søn",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_values_match_what_they_literally_are(demo: Running, name: str) -> None:
    for condition in (
        f"Name = {soql_string(name)}",
        f"Name LIKE {like_string(name)}",
        f"Name IN ({soql_string(name)})",
    ):
        rows = demo.query(f"SELECT Name FROM Account WHERE {condition}")["records"]
        assert [row["Name"] for row in rows] == [name]
    for attack in (f"{name}' OR Name LIKE '%", f"{name}%", f"{name}\\", f"{name}' --"):
        assert demo.query(f"SELECT Name FROM Account WHERE Name = {soql_string(attack)}")["totalSize"] == 0


def test_a_killed_org_loses_no_write(tmp_path: Path) -> None:
    with running(tmp_path) as first:
        ids = [
            first.http.post(f"{V}/sobjects/Account", json={"Name": f"Kept {number}"}).json()["id"]
            for number in range(20)
        ]
        first.process.kill()
        first.process.wait(10)
    with running(tmp_path) as second:
        rows = second.query("SELECT Id FROM Account WHERE Name LIKE 'Kept %'")["records"]
        assert {row["Id"] for row in rows} == set(ids)
    (file,) = tmp_path.glob("demo-org-*.sqlite")
    assert sqlite3.connect(file).execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_ids_have_a_checksum() -> None:
    assert long_id("001000000000001") == "001000000000001AAA"
    made = make_id("a01", 123_456)
    assert long_id(made[:15]) == long_id(made.lower()) == long_id(made.upper()) == made
    for wrong in ("", "001", "001000000000001AA", "001-00000000001", "001000000000001A!A"):
        assert long_id(wrong) is None


def test_versions_have_their_seasons(org: DemoOrg) -> None:
    versions = RestApi(org).versions()
    assert versions[-1] == {"label": "Winter '27", "url": "/services/data/v68.0", "version": "68.0"}
    assert versions[0]["label"] == "Summer '14"


def test_all_or_none_means_it(demo: Running) -> None:
    records = [
        {"attributes": {"type": "Lead"}, "LastName": "AllOrNone", "Company": "B"},
        {"attributes": {"type": "Lead"}},
    ]
    rows = demo.http.post(f"{V}/composite/sobjects", json={"allOrNone": True, "records": records}).json()
    assert [row["success"] for row in rows] == [True, False]
    tree = [
        {"attributes": {"type": "Lead", "referenceId": "a"}, "LastName": "AllOrNone", "Company": "B"},
        {"attributes": {"type": "Lead", "referenceId": "b"}, "Nothing": 1},
    ]
    assert demo.http.post(f"{V}/composite/tree/Lead", json={"records": tree}).status_code == 400
    assert demo.query("SELECT COUNT() FROM Lead WHERE LastName = 'AllOrNone'")["totalSize"] == 0


def test_writes_at_once_do_not_mix(demo: Running) -> None:
    def post(number: int) -> str:
        made = httpx2.post(
            f"http://127.0.0.1:{demo.port}{V}/sobjects/Case",
            json={"Subject": f"At once {number}"},
            headers={"Authorization": f"Bearer {demo.token}"},
        )
        return str(made.json()["id"])

    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(post, range(40)))
    rows = demo.query("SELECT Id, CaseNumber FROM Case WHERE Subject LIKE 'At once %'")["records"]
    assert {row["Id"] for row in rows} == set(ids)
    assert len({row["CaseNumber"] for row in rows}) == 40


@pytest.mark.parametrize(
    ("path", "params"),
    [
        ("search", {"q": "FIND {battery} RETURNING Case(Id ORDER BY Foo)"}),
        ("search", {"q": "FIND {battery} RETURNING KnowledgeArticleVersion(Id WHERE Foo = 'x')"}),
        ("search", {"q": "FIND {" + "(" * 2000 + "a" + ")" * 2000 + "}"}),
        ("parameterizedSearch", {"q": "", "sobject": "Account"}),
        ("parameterizedSearch", {"q": "x", "sobject": "Account", "fields": "Id) , User(Id, Email"}),
        ("query", {"q": "SELECT Id FROM Name"}),
        ("query", {"q": "SELECT Id FROM Account WHERE CreatedDate > 0001-01-01T00:00:00+14:00"}),
    ],
)
def test_odd_requests_get_an_answer_of_the_org(demo: Running, path: str, params: dict[str, str]) -> None:
    answer = demo.http.get(f"{V}/{path}", params=params)
    assert answer.status_code == 400
    assert answer.json()[0]["errorCode"]


def test_odd_values_are_refused(demo: Running) -> None:
    for body in (b'{"Name": "x", "AnnualRevenue": NaN}', b'{"Name": "x", "NumberOfEmployees": 1e30}', b"[" * 100_000):
        assert demo.http.post(f"{V}/sobjects/Account", content=body).json()[0]["errorCode"] == "JSON_PARSER_ERROR"
    contact = demo.query("SELECT Id FROM Contact LIMIT 1")["records"][0]["Id"]
    cleared = demo.http.patch(f"{V}/sobjects/Contact/{contact}", json={"LastName": None})
    assert cleared.json()[0]["errorCode"] == "REQUIRED_FIELD_MISSING"
    demo.http.patch(f"{V}/sobjects/Part__c/Part_Number__c/%2541", json={"Name": "Percent"})
    assert (
        demo.query("SELECT Part_Number__c FROM Part__c WHERE Name = 'Percent'")["records"][0]["Part_Number__c"] == "%41"
    )


def test_subtotals_categories_and_scopes(org: DemoOrg) -> None:
    def rows(statement: str) -> list[Any]:
        found: list[Any] = org.queries.run(statement, V)["records"]
        return found

    total = org.queries.run("SELECT COUNT() FROM Opportunity", V)["totalSize"]
    rollup = "SELECT StageName, COUNT(Id) n, COUNT(StageName) m FROM Opportunity GROUP BY ROLLUP(StageName)"
    (whole,) = rows(f"{rollup} HAVING GROUPING(StageName) = 1")
    assert (whole["StageName"], whole["n"], whole["m"]) == (None, total, total)
    assert len(rows(f"{rollup} HAVING GROUPING(StageName) = 0")) == 8
    assert rows(f"{rollup} ORDER BY GROUPING(StageName), StageName")[-1]["StageName"] is None
    stages = [
        row["StageName"] for row in rows("SELECT StageName FROM Opportunity GROUP BY StageName ORDER BY StageName")
    ]
    assert stages[0] == "Prospecting"
    with pytest.raises(ApiError, match="grouped or aggregated: Amount"):
        rows("SELECT Name FROM Opportunity GROUP BY Name HAVING Amount > 1")
    online = "SELECT COUNT() FROM KnowledgeArticleVersion WHERE PublishStatus = 'Online' AND Language = 'en_US'"
    counts = [
        org.queries.run(f"{online}{more}", V)["totalSize"]
        for more in ("", " WITH DATA CATEGORY Topics__c AT Display__c", " WITH DATA CATEGORY Foo__c AT Bar__c")
    ]
    assert counts == [120, 12, 0]
    mine = org.queries.run("SELECT COUNT() FROM Account USING SCOPE mine", V)["totalSize"]
    assert mine == org.queries.run(f"SELECT COUNT() FROM Account WHERE OwnerId = '{org.user}'", V)["totalSize"]
    with pytest.raises(ApiError, match="Scope"):
        rows("SELECT Id FROM Account USING SCOPE nonsense")


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("SELECT TYPEOF What WHEN Account THEN Phone END, What.Name FROM Task", "TYPEOF and by a path"),
        ("SELECT Id, (SELECT Id FROM Contacts LIMIT 1 OFFSET 1) FROM Account LIMIT 2", "OFFSET in a subquery"),
        ("SELECT Id FROM Account WHERE Id IN (SELECT OwnerId FROM Contact)", "same object type"),
        ("SELECT Id FROM Account a, a.Foo f", "relationship 'Foo'"),
        ("SELECT Id FROM Account WHERE DAY_ONLY(CreatedDate) = TODAY", "date literal"),
        ("SELECT Id FROM Opportunity WHERE FORMAT(Amount) = '1'", "filter"),
        ("SELECT Id FROM Opportunity ORDER BY toLabel(StageName)", "sorted"),
        ("SELECT FIELDS(ALL) FROM Account", "LIMIT of at most 200"),
    ],
)
def test_what_an_org_refuses_is_refused(org: DemoOrg, statement: str, reason: str) -> None:
    with pytest.raises(ApiError, match=reason):
        org.queries.run(statement, V)


def test_what_stands_close_to_a_refusal_runs(org: DemoOrg) -> None:
    def rows(statement: str) -> list[Any]:
        found: list[Any] = org.queries.run(statement, V)["records"]
        return found

    (account,) = rows("SELECT Id, (SELECT Id FROM Contacts LIMIT 1 OFFSET 1) FROM Account LIMIT 1")
    assert "Website" in rows(f"SELECT FIELDS(ALL) FROM Account WHERE Id = '{account['Id']}'")[0]
    assert rows("SELECT Id FROM Account WHERE OwnerId IN (SELECT OwnerId FROM Contact) LIMIT 1")
    ends = "SELECT MIN(StageName) a, MAX(StageName) b FROM Opportunity"
    assert [(row["a"], row["b"]) for row in rows(ends)] == [("Prospecting", "Closed Lost")]
    many = " OR ".join(f"Name = 'x{number}'" for number in range(1_500))
    assert rows(f"SELECT Id FROM Account WHERE {many}") == []
    total = rows("SELECT FORMAT(CloseDate) day, COUNT(Id) n FROM Opportunity GROUP BY ROLLUP(CloseDate)")
    assert [row["n"] for row in total if row["day"] is None] == [sum(row["n"] for row in total if row["day"])]


def test_search_takes_wildcards_conditions_and_categories(demo: Running) -> None:
    def titles(term: str) -> set[str]:
        statement = f"FIND {{{term}}} RETURNING KnowledgeArticleVersion(Title)"
        found = demo.http.get(f"{V}/search", params={"q": statement}).json()["searchRecords"]
        return {row["Title"] for row in found}

    assert titles("b?ttery") == titles("bat*ry") == titles("battery")
    assert titles("batt*") > titles("battery")
    assert titles("zz?zz") == titles("?") == set()

    def parameterized(**more: Any) -> Any:
        wanted = {"name": "KnowledgeArticleVersion", "where": "PublishStatus = 'Online'", **more.pop("entry", {})}
        asked = {"q": "belt", "fields": ["Title"], "sobjects": [wanted], **more}
        return demo.http.post(f"{V}/parameterizedSearch", json=asked).json()

    categories = [{"groupName": "Models__c", "operator": "AT", "categories": ["Porter__c"]}]
    all_found, narrowed = parameterized(), parameterized(dataCategories=categories, snippet=120)
    assert 0 < len(narrowed["searchRecords"]) < len(all_found["searchRecords"])
    assert "<mark>" in narrowed["searchRecords"][0]["snippet.text"]
    injected = parameterized(entry={"where": "Title = 'x'), Account(Id"})
    assert injected[0]["errorCode"] == "INVALID_SEARCH"
    assert parameterized(entry={"where": "Title = 'x' LIMIT 1"})[0]["errorCode"] == "INVALID_SEARCH"


def test_what_is_off_is_told_by_what_a_statement_names_not_by_its_words(demo: Running) -> None:
    demo.faults("knowledge-off")
    try:
        assert demo.query("SELECT Id FROM Account WHERE Name = 'Knowledge__kav'")["totalSize"] == 0
        inner = "SELECT Id FROM Account WHERE OwnerId IN (SELECT OwnerId FROM Knowledge__kav)"
        assert demo.query(inner)[0]["errorCode"] == "INVALID_TYPE"
    finally:
        demo.faults()


def test_lists_of_articles_keep_what_was_asked_for_from_page_to_page(demo: Running) -> None:
    asked: dict[str, str | int] = {"q": "belt", "pageSize": 2}
    first = demo.http.get(f"{V}/support/knowledgeArticles", params=asked).json()
    second = demo.http.get(first["nextPageUrl"]).json()
    assert (second["pageNumber"], "q=belt" in second["currentPageUrl"]) == (2, True)
    assert not {row["id"] for row in first["articles"]} & {row["id"] for row in second["articles"]}
    ordered = demo.http.get(f"{V}/support/knowledgeArticles", params={"sort": "Title", "order": "ASC"}).json()
    names = [row["title"] for row in ordered["articles"]]
    assert names == sorted(names, key=str.upper)
    for wrong in ({"pageSize": 0}, {"pageNumber": 0}, {"order": "sideways"}, {"sort": "colour"}):
        refused = demo.http.get(f"{V}/support/knowledgeArticles", params=wrong).json()
        assert refused[0]["errorCode"] == "INVALID_PARAMETER"


def test_columns_are_told_also_when_there_are_no_rows(demo: Running) -> None:
    statement = "SELECT Id, Account.Owner.Name, (SELECT Role FROM OpportunityContactRoles) FROM Opportunity"
    asked = {"q": f"{statement} WHERE Name = 'none'", "columns": "true"}
    told = demo.http.get(f"{V}/query", params=asked).json()
    columns = {column["columnName"]: column for column in told["columnMetadata"]}
    assert (list(columns), told["entityName"]) == (["Id", "Account", "OpportunityContactRoles"], "Opportunity")
    assert columns["Account"]["joinColumns"][0]["joinColumns"][0]["columnName"] == "Name"
    assert columns["OpportunityContactRoles"]["aggregate"]
