"""Names of any script: folded for comparison, never erased; suggestions that keep the meaning."""

import pytest

from bedstone.salesforce.graph.folding import fold
from bedstone.salesforce.graph.names import squeeze, suggest
from bedstone.salesforce.graph.object_names import ObjectNames
from bedstone.salesforce.questions.grounding import Grounder
from bedstone.salesforce.synonyms import plain_words
from bedstone.salesforce.validation import validate
from support.schemas import a_field, a_lookup, a_name, a_schema, an_object

GRAPH = a_schema(
    an_object(
        "Deal__c",
        a_name(),
        a_field("Outcome__c", "picklist", "成立", "受注", label="結果", is_restricted=True),
        a_field("State__c", "picklist", "Открыта", "Новая", is_restricted=True),
        a_field("Groesse__c", label="Größe"),
        plural="商談",
    ),
    an_object("Zakaz__c", a_name(), a_field("Number__c"), plural="Заказы"),
)
SERVICE = a_schema(
    an_object("User", a_name()),
    an_object(
        "Account",
        *(a_name(), a_lookup("OwnerId", "User", "Group"), a_field("BillingCity"), a_field("ShippingCity")),
        a_field("NumberOfEmployees", "int", label="Employees"),
    ),
    an_object(
        "Case",
        *(a_name("CaseNumber"), a_field("SuppliedName", label="Name"), a_field("SuppliedPhone", label="Phone")),
        *(a_field("Address1"), a_field("IsActive", "boolean"), a_lookup("AccountId", "Account")),
        a_field("Origin", "picklist", "Phone", "Web"),
    ),
    an_object("kfleet__Device__c", a_name(), a_field("kfleet__Serial__c", label="Serial")),
)
GROUNDER = Grounder(SERVICE, ObjectNames(SERVICE))


@pytest.mark.parametrize(
    ("written", "same"),
    [
        ("Größe", "grosse"),
        ("STRASSE", "Straße"),
        ("Malmö", "malmo"),
        ("Ørsted", "Orsted"),
        ("ПИСЬМО", "письмо"),
        ("Ёлка", "елка"),
        ("ﾅｺﾞﾔ", "ナゴヤ"),
        ("\uff21\uff43\uff4d\uff45", "acme"),
        ("مُحَمَّد", "محمد"),
        ("Cafe\u0301", "Café"),
    ],
)
def test_case_width_and_accents_do_not_matter(written: str, same: str) -> None:
    assert fold(written) == fold(same)
    assert squeeze(written) == squeeze(same) != ""


@pytest.mark.parametrize(
    ("one", "other"),
    [("失注", "成立"), ("が", "か"), ("Москва", "Минск"), ("قاهرة", "محمد"), ("й", "и"), ("हिन्दी", "हन्द")],
)
def test_letters_of_every_script_are_kept(one: str, other: str) -> None:
    assert "" != squeeze(one) != squeeze(other) != ""
    assert plain_words(one) != plain_words(other)


@pytest.mark.parametrize(
    ("written", "known"), [("失注", "成立"), ("失注", "受注"), ("закрыта", "Открыта"), ("؟", "!"), ("--", "++")]
)
def test_another_word_is_not_a_typo(written: str, known: str) -> None:
    assert not suggest(written, {known: known})


@pytest.mark.parametrize(("written", "known"), [("Открыто", "Открыта"), ("Größ", "Größe"), ("Grosse", "Größe")])
def test_a_typo_is_one_in_other_scripts_too(written: str, known: str) -> None:
    assert suggest(written, {"Name": known}).names or suggest(written, {known: known}).names


def test_validation_suggests_no_value_of_another_meaning() -> None:
    for value, field in (("失注", "Outcome__c"), ("Закрыта", "State__c")):
        report = validate(f"SELECT Id FROM Deal__c WHERE {field} = '{value}' LIMIT 1", GRAPH)
        assert report.corrected is None
        assert not any("Did you mean" in item.message for item in report.messages)


def test_an_object_is_found_by_a_name_in_its_own_script_only() -> None:
    names = ObjectNames(GRAPH)
    assert [found.object.name for found in names.find("商談")] == ["Deal__c"]
    assert [found.object.name for found in names.find("заказы")] == ["Zakaz__c"]
    assert [names.find(text) for text in ("未知", "Сделки", "غير", "", "?")] == [[]] * 5


@pytest.mark.parametrize(
    ("query", "suggestion", "corrected"),
    [
        ("SELECT Name FROM Case LIMIT 1", '"CaseNumber"', None),
        ("SELECT Phone FROM Case LIMIT 1", '"SuppliedPhone"', None),
        ("SELECT Address2 FROM Case LIMIT 1", '"Address1"', None),
        ("SELECT IsInactive FROM Case LIMIT 1", '"IsActive"', None),
        ("SELECT City FROM Account LIMIT 1", '"BillingCity" or "ShippingCity"', None),
        ("SELECT ModifiedDate FROM Account LIMIT 1", '"LastModifiedDate"', None),
        (
            "SELECT Serial__c FROM kfleet__Device__c LIMIT 1",
            '"kfleet__Serial__c"',
            "SELECT kfleet__Serial__c FROM kfleet__Device__c LIMIT 1",
        ),
        ("SELECT AccountName FROM Case LIMIT 1", '"Account.Name"', "SELECT Account.Name FROM Case LIMIT 1"),
        ("SELECT OwnerName FROM Account LIMIT 1", '"Owner.Name"', "SELECT Owner.Name FROM Account LIMIT 1"),
        (
            "SELECT Id FROM Case WHERE Account_Name = 'x' LIMIT 1",
            '"Account.Name"',
            "SELECT Id FROM Case WHERE Account.Name = 'x' LIMIT 1",
        ),
        (
            "SELECT Employees FROM Account LIMIT 1",
            '"NumberOfEmployees"',
            "SELECT NumberOfEmployees FROM Account LIMIT 1",
        ),
    ],
)
def test_a_correction_keeps_the_meaning_and_a_suggestion_asks(
    query: str, suggestion: str, corrected: str | None
) -> None:
    report = validate(query, SERVICE, ground=GROUNDER.explain_unknown_name)
    assert f"Did you mean {suggestion}?" in report.messages[0].message
    assert report.corrected == corrected
