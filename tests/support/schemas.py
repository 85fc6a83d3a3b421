"""Small schemas, built in memory: objects with the fields a test needs."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from bedstone.salesforce.graph.model import Child, Choice, Field, ObjectSchema, SchemaGraph
from bedstone.salesforce.graph.names import words_of


def a_schema(*objects: ObjectSchema, unsynced: Sequence[str] = ()) -> SchemaGraph:
    """Return a schema of some objects; each lookup gives its parent a child relationship, as in an org."""
    linked = [replace(item, children=tuple(_children(item.name, objects))) for item in objects]
    return SchemaGraph.of(linked, unsynced=unsynced)


def an_object(name: str, *fields: Field, plural: str | None = None, **facts: Any) -> ObjectSchema:
    """Return an object with Id, CreatedDate, LastModifiedDate and these fields."""
    label = _label(name)
    usual = (
        a_field("Id", "id", nillable=False),
        a_field("CreatedDate", "datetime", createable=False),
        a_field("LastModifiedDate", "datetime", createable=False),
    )
    return ObjectSchema(name, label, plural or f"{label}s", (*usual, *fields), **facts)


def a_field(name: str, type_: str = "string", *values: str, **facts: Any) -> Field:
    """Return a field; the values are those of a picklist."""
    choices = tuple(Choice(value, value) for value in values)
    return Field(name, facts.pop("label", _label(name)), type_, choices=choices, **facts)


def a_name(name: str = "Name", **facts: Any) -> Field:
    """Return the field that names the records of its object."""
    return a_field(name, is_name=True, **facts)


def a_lookup(name: str, *targets: str, **facts: Any) -> Field:
    """Return a field that points to other objects; its relationship is its name without the ending."""
    relationship = f"{name[:-1]}r" if name.endswith("__c") else name.removesuffix("Id")
    return a_field(name, "reference", reference_to=targets, relationship=relationship, **facts)


def some_fields(specs: str) -> Iterator[Field]:
    """Read fields such as `Name`, `Amount:currency`, `WhatId>Account,Case` and `Industry=Banking,Retail`."""
    for spec in specs.split():
        name, sign, rest = re.fullmatch(r"(\w+)([:>=]?)(.*)", spec).groups()  # type: ignore[union-attr]
        match sign:
            case ">":
                yield a_lookup(name, *rest.split(","))
            case "=":
                yield a_field(name, "picklist", *rest.split(","))
            case _:
                yield a_field(name, rest or "string")


def a_crm_schema() -> SchemaGraph:
    """Return six objects as most orgs have them, one of them custom."""
    owner = a_lookup("OwnerId", "User")
    return a_schema(
        an_object(
            "Account",
            *(a_name(label="Account Name"), owner, a_field("Phone", "phone"), a_field("Website", "url")),
            a_field("Industry", "picklist", "Banking", "Energy", "Consulting"),
            a_field("Rating", "picklist", "Hot", "Warm", "Cold"),
            *(a_field("AnnualRevenue", "currency"), a_field("NumberOfEmployees", "int", label="Employees")),
            *(a_field("BillingCity"), a_field("BillingState"), a_field("BillingCountry")),
            a_lookup("ParentId", "Account"),
            prefix="001",
        ),
        an_object(
            "Contact",
            *(a_name(label="Full Name"), a_field("Email", "email"), a_field("Phone", "phone"), a_field("Title")),
            *(a_field("Birthdate", "date"), a_field("MailingCity"), a_lookup("AccountId", "Account"), owner),
            prefix="003",
        ),
        an_object(
            "Opportunity",
            *(a_name(label="Opportunity Name"), a_field("Amount", "currency"), a_field("CloseDate", "date")),
            a_field("StageName", "picklist", "Prospecting", "Negotiation", "Closed Won", "Closed Lost", label="Stage"),
            *(a_field("Probability", "percent"), a_field("IsClosed", "boolean"), a_field("IsWon", "boolean")),
            *(a_lookup("AccountId", "Account"), owner),
            plural="Opportunities",
        ),
        an_object(
            "Case",
            *(a_name("CaseNumber"), a_field("Subject"), a_field("IsClosed", "boolean"), a_field("Reason__c")),
            a_field("Status", "picklist", "New", "In Progress", "Escalated", "Closed"),
            a_field("Priority", "picklist", "High", "Medium", "Low"),
            *(a_lookup("AccountId", "Account"), a_lookup("ContactId", "Contact")),
            a_lookup("OwnerId", "Group", "User"),
            scopes=("everything", "mine"),
        ),
        an_object(
            "User",
            *(a_name(), a_field("Username"), a_field("Email", "email"), a_field("IsActive", "boolean")),
            scopes=("everything",),
        ),
        an_object(
            "Invoice__c",
            *(
                a_name(),
                a_field("Total__c", "currency"),
                a_field("Due_Date__c", "date"),
                a_field("Shipped_On__c", "date"),
            ),
            *(a_field("Channels__c", "multipicklist", "Web", "Fax"), a_field("Grade__c", "picklist", "A", "B")),
            a_lookup("Customer__c", "Account"),
        ),
    )


def a_schema_for_rules() -> SchemaGraph:
    """Return standard objects and some with rules of their own; `Asset` is an object that was not synced."""
    return a_schema(*_sales(), *_service(), *_special(), unsynced=["Asset"])


def _sales() -> Iterator[ObjectSchema]:
    yield _record(
        "Account",
        "ParentId>Account Site Phone:phone AnnualRevenue:currency BillingCity BillingAddress:address "
        "Industry=Banking,Retail",
        a_field("Rating", "picklist", "Hot", "Warm", "Cold", is_restricted=True),
        a_field("Description", "textarea", filterable=False, sortable=False, groupable=False, length=32_000),
        a_field("Legacy_Code__c", is_deprecated=True),
        prefix="001",
        scopes=("everything", "mine", "team"),
    )
    yield _record(
        "Contact",
        "AccountId>Account LastName Email:email",
        a_field("Interests__c", "multipicklist", "Golf", "Sailing", groupable=False),
        prefix="003",
    )
    yield _record(
        "Opportunity",
        "AccountId>Account StageName Amount:currency CloseDate:date IsWon:boolean",
        a_field("ExpectedRevenue", "currency", is_calculated=True),
        plural="Opportunities",
        prefix="006",
    )


def _service() -> Iterator[ObjectSchema]:
    yield _record("Case", "AccountId>Account ContactId>Contact Subject Status Priority", prefix="500")
    yield _record("Task", "WhatId>Account,Case,Opportunity WhoId>Contact,Lead Subject", prefix="00T")
    yield _record("User", "ManagerId>User Email:email", prefix="005")


def _special() -> Iterator[ObjectSchema]:
    yield _record("ContentDocumentLink", "LinkedEntityId>Account,Contact ContentDocumentId>ContentDocument")
    yield _record("Knowledge__kav", "PublishStatus=Online,Draft")
    yield _record("EntityDefinition", "QualifiedApiName")
    yield _record("Invoice__x", "Total__c:currency")
    yield _record("AccountChangeEvent", "", queryable=False)


def _record(name: str, specs: str, *fields: Field, **facts: Any) -> ObjectSchema:
    """Return an object with a name, an owner and these fields."""
    common = "Name OwnerId>User CreatedById>User LastModifiedById>User"
    return an_object(name, *some_fields(f"{common} {specs}"), *fields, **facts)


def _children(name: str, objects: tuple[ObjectSchema, ...]) -> Iterator[Child]:
    """Yield the lookups to an object; the first one of each child object has a relationship name."""
    for child in objects:
        links = [field.name for field in child.fields if name in field.reference_to]
        beginning = "Child" if child.name == name else ""  # as in ChildAccounts
        relationship = beginning + child.plural.replace(" ", "") + ("__r" if child.is_custom else "")
        for place, link in enumerate(links):
            yield Child(child.name, link, relationship if place == 0 else None)


def _label(name: str) -> str:
    return " ".join(words_of(name.removesuffix("Id") or name)).title()
