"""Facts about standard objects, gathered from the data beside the project into the demo org's schema.

    scripts/make_demo_schema.py [DATA]

Writes src/bedstone/salesforce/demo_org/standard_objects.json: names, types, lengths, flags, references, picklist values.
Nothing else of the data goes into the package; where each fact comes from is said in the NOTICE beside it.
"""

import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any

DATA = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2] / "shared" / "data" / "salesforce"
TARGET = Path(__file__).parents[1] / "src" / "bedstone" / "salesforce" / "demo_org" / "standard_objects.json"

OBJECTS = """
Account Contact Lead Opportunity OpportunityLineItem OpportunityContactRole OpportunityHistory Case CaseComment
CaseHistory Task Event User UserRole Profile PermissionSet PermissionSetAssignment Group GroupMember QueueSobject Product2
Pricebook2 PricebookEntry Campaign CampaignMember Contract Order OrderItem Quote QuoteLineItem Asset Solution Entitlement
EmailMessage EmailTemplate ContentDocument ContentVersion ContentDocumentLink Attachment Note Document Folder RecordType
Organization BusinessHours Holiday ServiceContract WorkOrder WorkOrderLineItem Individual Topic TopicAssignment FeedItem
FeedComment CollaborationGroup Report Dashboard AccountContactRelation AccountContactRole AccountHistory LoginHistory
ApexClass ApexTrigger CronTrigger AsyncApexJob
""".split()
NAMES = {
    "Case": "CaseNumber",
    "Contract": "ContractNumber",
    "Order": "OrderNumber",
    "OrderItem": "OrderItemNumber",
    "Solution": "SolutionName",
    "Task": "Subject",
    "Event": "Subject",
    "ContentDocument": "Title",
    "ContentVersion": "Title",
    "Note": "Title",
    "EmailMessage": "Subject",
    "WorkOrder": "WorkOrderNumber",
    "WorkOrderLineItem": "LineItemNumber",
    "QuoteLineItem": "LineNumber",
}
PEOPLE = ["Contact", "Lead"]
THINGS = ["Account", "Asset", "Campaign", "Case", "Contract", "Opportunity", "Order", "Product2", "Quote", "Solution"]
TARGETS = {
    ("Task", "WhoId"): PEOPLE,
    ("Task", "WhatId"): THINGS,
    ("Event", "WhoId"): PEOPLE,
    ("Event", "WhatId"): THINGS,
    ("Case", "OwnerId"): ["Group", "User"],
    ("Lead", "OwnerId"): ["Group", "User"],
    ("Task", "OwnerId"): ["Group", "User"],
    ("ContentDocumentLink", "LinkedEntityId"): ["Account", "Case", "Contact", "Opportunity"],
    ("Attachment", "ParentId"): ["Account", "Case", "Contact", "Opportunity"],
    ("Note", "ParentId"): ["Account", "Case", "Contact", "Opportunity"],
    ("FeedItem", "ParentId"): ["Account", "Case", "CollaborationGroup", "Contact", "Opportunity", "User"],
    ("TopicAssignment", "EntityId"): ["Account", "Case", "Contact", "Opportunity"],
    ("EmailMessage", "RelatedToId"): ["Account", "Case", "Opportunity"],
    ("GroupMember", "UserOrGroupId"): ["Group", "User"],
    ("Group", "RelatedId"): ["UserRole"],
}
PICKLISTS = {
    ("Task", "Status"): ["Not Started", "In Progress", "Completed", "Waiting on someone else", "Deferred"],
    ("Task", "Priority"): ["High", "Normal", "Low"],
    ("Contract", "Status"): ["Draft", "In Approval Process", "Activated"],
    ("Order", "Status"): ["Draft", "Activated"],
    ("Quote", "Status"): [
        "Draft",
        "Needs Review",
        "In Review",
        "Approved",
        "Rejected",
        "Presented",
        "Accepted",
        "Denied",
    ],
    ("Asset", "Status"): ["Shipped", "Installed", "Registered", "Obsolete", "Purchased"],
    ("WorkOrder", "Status"): ["New", "In Progress", "On Hold", "Completed", "Closed", "Cannot Complete", "Canceled"],
    ("Campaign", "Type"): [
        "Conference",
        "Webinar",
        "Trade Show",
        "Email",
        "Advertisement",
        "Referral Program",
        "Other",
    ],
    ("Campaign", "Status"): ["Planned", "In Progress", "Completed", "Aborted"],
    ("Product2", "Family"): ["Bikes", "Batteries", "Accessories", "Services"],
}
MAX_PICKLIST_VALUES = 60
TYPES = {"address", "anyType", "base64", "boolean", "combobox", "currency", "date", "datetime", "double", "email", "id", "int",
         "location", "multipicklist", "percent", "phone", "picklist", "reference", "string", "textarea", "time", "url"}  # fmt: skip


def label_of(name: str) -> str:
    """Return a label for a name: Account ID for AccountId."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z]*|[a-z]+|\d+", name.removesuffix("__c"))
    text = " ".join(words)
    return re.sub(r"\bId\b", "ID", text)


def read_labels(name: str) -> dict[str, Any]:
    file = DATA / "schema" / "describe" / "cumulusci" / f"{name}_describe.json"
    if not file.exists():
        return {}
    describe = json.loads(file.read_text())
    return {"": (describe["label"], describe["labelPlural"]), **{f["name"]: f["label"] for f in describe["fields"]}}


def compact_field(owner: str, field: dict[str, Any], labels: dict[str, Any]) -> dict[str, Any] | None:
    name, kind = field["name"], field["type"]
    if kind not in TYPES:
        return None
    result: dict[str, Any] = {"name": name, "type": kind, "label": labels.get(name) or label_of(name)}
    if kind == "reference":
        targets = TARGETS.get((owner, name)) or [item for item in field.get("referenceTo", []) if item in OBJECTS]
        if not targets:
            return None
        result |= {"referenceTo": targets, "relationshipName": field.get("relationshipName")}
    if kind in ("picklist", "multipicklist", "combobox"):
        values = PICKLISTS.get((owner, name)) or field.get("picklist") or []
        result["values"] = values[:MAX_PICKLIST_VALUES]
    if field.get("length"):
        result["length"] = field["length"]
    for flag, default in (("nillable", True), ("filterable", True), ("sortable", True), ("groupable", True)):
        if bool(field.get(flag, default)) != default:
            result[flag] = not default
    if field.get("readOnly"):
        result["readOnly"] = True
    if name == NAMES.get(owner, "Name"):
        result["nameField"] = True
    return result


def main() -> None:
    with gzip.open(DATA / "schema" / "core_objects.json.gz") as file:
        known = json.load(file)["objects"]
    objects = {}
    for name in OBJECTS:
        source = known[name]
        labels = read_labels(name)
        best = next(mark for mark in "rja" if any(mark in field["in"] for field in source["fields"]))
        # Custom fields belong to the org that the file was taken from.
        chosen = [field for field in source["fields"] if best in field["in"] and not field["name"].endswith("__c")]
        fields = [compacted for field in chosen if (compacted := compact_field(name, field, labels))]
        inside = {(child, field): relationship for child, field, relationship in source.get("children", []) if field}
        singular, plural = labels.get("") or (label_of(name), label_of(name) + "s")
        objects[name] = {
            "label": singular,
            "labelPlural": plural,
            "keyPrefix": source["keyPrefix"],
            "fields": fields,
            "children": sorted(
                [child, field, name_]
                for (child, field), name_ in inside.items()
                if child in OBJECTS and not field.endswith("__c")
            ),
        }
    TARGET.write_text(json.dumps(objects, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    fields = sum(len(item["fields"]) for item in objects.values())
    sys.stdout.write(f"{len(objects)} objects, {fields} fields, {TARGET.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
