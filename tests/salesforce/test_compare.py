"""Two schemas compared."""

from bedstone.salesforce.graph.compare import compare_schemas
from support.schemas import a_field, a_name, a_schema, an_object


def test_schemas_are_compared_object_by_object() -> None:
    before = a_schema(
        an_object("Old__c"), an_object("Car__c", a_name(), a_field("Size__c", length=80), a_field("Gone__c"))
    )
    after = a_schema(
        an_object("New__c"),
        an_object(
            "Car__c", a_name(), a_field("Size__c", "picklist", "S", "L", length=40), a_field("Must__c", nillable=False)
        ),
    )
    found = compare_schemas(before, after, ["car__c", "new__c", "none__c", "old__c"])
    assert [(entry.object, entry.field, entry.change, entry.severity, entry.what) for entry in found] == [
        ("Car__c", "Gone__c", "removed", "breaking", None),
        ("Car__c", "Must__c", "added", "breaking", None),
        ("Car__c", "Size__c", "changed", "breaking", "type string to picklist"),
        ("Car__c", "Size__c", "changed", "breaking", "length 80 to 40"),
        ("Car__c", "Size__c", "changed", "safe", "values added: S, L"),
        ("New__c", None, "added", "safe", None),
        ("Old__c", None, "removed", "breaking", None),
    ]
