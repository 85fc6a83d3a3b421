"""Small schemas, built in memory: objects with the fields a test needs."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from bedstone.salesforce.graph.model import Child, Choice, Field, ObjectSchema, SchemaGraph
from bedstone.salesforce.graph.names import words_of


def a_schema(*objects: ObjectSchema) -> SchemaGraph:
    """Return a schema of some objects; each lookup gives its parent a child relationship, as in an org."""
    return SchemaGraph.of(replace(item, children=tuple(_children(item.name, objects))) for item in objects)


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


def _children(name: str, objects: tuple[ObjectSchema, ...]) -> Iterator[Child]:
    """Yield the lookups to an object; the first one of each child object has a relationship name."""
    for child in objects:
        links = [field.name for field in child.fields if name in field.reference_to]
        relationship = child.plural.replace(" ", "") + ("__r" if child.is_custom else "")
        for place, link in enumerate(links):
            yield Child(child.name, link, relationship if place == 0 else None)


def _label(name: str) -> str:
    return " ".join(words_of(name.removesuffix("Id") or name)).title()
