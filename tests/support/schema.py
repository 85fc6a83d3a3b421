"""A small schema in memory: a few standard objects, and some that have rules of their own."""

from collections import defaultdict
from typing import Any

from bedstone.salesforce.graph.model import Child, Choice, Field, ObjectSchema, SchemaGraph

CHILD_NAMES = {"Opportunity": "Opportunities", "Account": "ChildAccounts"}
LONG_TEXT = {"filterable": False, "sortable": False, "groupable": False, "length": 32_000}


def a_field(spec: str, **options: Any) -> Field:
    """Read `Name`, `Amount:currency`, `AccountId>Account`, `WhatId>Account,Case` or `Industry=Banking,Retail`."""
    if ">" in spec:
        name, targets = spec.split(">")
        options |= {"reference_to": tuple(targets.split(",")), "relationship": name.removesuffix("Id")}
        return Field(name, name, "reference", **options)
    if "=" in spec:
        name, values = spec.split("=")
        kind = options.pop("kind", "picklist")
        return Field(name, name, kind, choices=tuple(Choice(value, value) for value in values.split(",")), **options)
    name, _, kind = spec.partition(":")
    return Field(name, name, kind or "string", **options)


def an_object(name: str, specs: str, *fields: Field, **options: Any) -> ObjectSchema:
    """Make an object with an id, an owner and the fields that every object has."""
    common = "Id:id Name OwnerId>User CreatedDate:datetime CreatedById>User LastModifiedById>User"
    made = [a_field(spec) for spec in f"{common} {specs}".split()]
    return ObjectSchema(name, name, f"{name}s", (*made, *fields), **options)


def a_schema(*more: ObjectSchema) -> SchemaGraph:
    """Make the schema of the examples; `Asset` is an object that was not synced."""
    objects = [*_sales(), *_service(), *_special(), *more]
    children: dict[str, list[Child]] = defaultdict(list)
    for item in objects:
        for field in item.fields:
            if field.name in ("AccountId", "ParentId", "WhatId"):
                for target in field.reference_to:
                    children[target].append(Child(item.name, field.name, CHILD_NAMES.get(item.name, f"{item.name}s")))
    for item in objects:
        object.__setattr__(item, "children", tuple(children[item.name]))
    return SchemaGraph.of(objects, unsynced=["Asset"])


def _sales() -> list[ObjectSchema]:
    return [
        an_object(
            "Account",
            "ParentId>Account Site Phone:phone AnnualRevenue:currency BillingCity BillingAddress:address "
            "Industry=Banking,Retail",
            a_field("Rating=Hot,Warm,Cold", is_restricted=True),
            a_field("Description:textarea", **LONG_TEXT),
            a_field("Legacy_Code__c", is_deprecated=True),
            prefix="001",
            scopes=("everything", "mine", "team"),
        ),
        an_object(
            "Contact",
            "AccountId>Account LastName Email:email",
            a_field("Interests__c=Golf,Sailing", kind="multipicklist", groupable=False),
            prefix="003",
        ),
        an_object(
            "Opportunity",
            "AccountId>Account StageName Amount:currency CloseDate:date IsWon:boolean",
            a_field("ExpectedRevenue:currency", is_calculated=True),
            prefix="006",
        ),
    ]


def _service() -> list[ObjectSchema]:
    return [
        an_object("Case", "AccountId>Account ContactId>Contact Subject Status Priority", prefix="500"),
        an_object("Task", "WhatId>Account,Case,Opportunity WhoId>Contact,Lead Subject", prefix="00T"),
        an_object("User", "ManagerId>User Email:email", prefix="005"),
    ]


def _special() -> list[ObjectSchema]:
    return [
        an_object("ContentDocumentLink", "LinkedEntityId>Account,Contact ContentDocumentId>ContentDocument"),
        an_object("Knowledge__kav", "PublishStatus=Online,Draft"),
        an_object("EntityDefinition", "QualifiedApiName"),
        an_object("Invoice__x", "Total__c:currency"),
        an_object("AccountChangeEvent", "", queryable=False),
    ]
