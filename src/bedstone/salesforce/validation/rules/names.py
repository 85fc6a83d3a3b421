"""Names that the schema does not have; `scope` reports them while it resolves a path."""

from bedstone.salesforce.validation.rule import Rule

RULES = (
    Rule(
        "SCHEMA_UNKNOWN",
        "An object that is not synced is not checked: only the syntax is.",
        "SELECT Id FROM Asset LIMIT 1",
        None,
        "Sync the object; the query itself may be correct.",
        severity="info",
    ),
    Rule(
        "OBJECT_UNKNOWN",
        "FROM names an object of the org.",
        "SELECT Id FROM Acount LIMIT 1",
        "SELECT Id FROM Account LIMIT 1",
    ),
    Rule(
        "OBJECT_SECOND",
        "FROM names one object; what follows are relationships of it.",
        "SELECT Id FROM Contact c, Account a LIMIT 1",
        "SELECT Id, a.Name FROM Contact c, c.Account a LIMIT 1",
    ),
    Rule(
        "FIELD_UNKNOWN",
        "A field exists on the object that a path leads to.",
        "SELECT Id, Nmae FROM Account LIMIT 1",
        "SELECT Id, Name FROM Account LIMIT 1",
    ),
    Rule(
        "NAME_CORRECTED",
        "If only one name can be meant, the corrected query uses it.",
        "SELECT Id, Industri FROM Account LIMIT 1",
        "SELECT Id, Industry FROM Account LIMIT 1",
        severity="correction",
    ),
    Rule(
        "RELATIONSHIP_UNKNOWN",
        "A path goes through parent relationships that exist.",
        "SELECT Acount.Name FROM Contact LIMIT 1",
        "SELECT Account.Name FROM Contact LIMIT 1",
    ),
    Rule(
        "ID_FOR_RELATIONSHIP",
        "A path uses the name of the relationship, not of the field that holds the id.",
        "SELECT AccountId.Name FROM Contact LIMIT 1",
        "SELECT Account.Name FROM Contact LIMIT 1",
    ),
    Rule(
        "CHILD_UNKNOWN",
        "A child subquery names the relationship, not the object.",
        "SELECT Id, (SELECT Id FROM Contact) FROM Account LIMIT 1",
        "SELECT Id, (SELECT Id FROM Contacts) FROM Account LIMIT 1",
    ),
    Rule(
        "POLYMORPHIC_FIELD",
        "A relationship to several objects offers only the fields of Name.",
        "SELECT What.Industry FROM Task LIMIT 1",
        "SELECT TYPEOF What WHEN Account THEN Industry END FROM Task LIMIT 1",
    ),
    Rule(
        "DEPTH_UP",
        "A path goes at most five levels up.",
        "SELECT Account.Parent.Parent.Parent.Parent.Parent.Name FROM Contact LIMIT 1",
        "SELECT Account.Parent.Parent.Parent.Parent.Name FROM Contact LIMIT 1",
    ),
    Rule(
        "HALLUCINATED_ENTITY",
        "A name is not a value that records of the org have.",
        "SELECT Id FROM Account WHERE Banking = true",
        "SELECT Id FROM Account WHERE Industry = 'Banking'",
    ),
    Rule(
        "DEPRECATED",
        "A field is not deprecated.",
        "SELECT Id, Legacy_Code__c FROM Account LIMIT 1",
        "SELECT Id FROM Account LIMIT 1",
        severity="warning",
    ),
    Rule(
        "SYNTAX",
        "A path has a name between two dots.",
        "SELECT Account..Name FROM Contact LIMIT 1",
        "SELECT Account.Name FROM Contact LIMIT 1",
    ),
)
