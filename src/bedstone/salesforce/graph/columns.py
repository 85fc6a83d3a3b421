"""The columns a query selects by default, and SELECT statements."""

from collections.abc import Iterable, Sequence

from bedstone.salesforce.graph.model import AUDIT_FIELDS, Field, ObjectSchema

MAX_COLUMNS = 10
# Columns of the objects that every org has.
USUAL_COLUMNS: dict[str, tuple[str, ...]] = {
    "Account": ("Id", "Name", "Industry", "Type", "AnnualRevenue", "NumberOfEmployees", "Owner.Name"),
    "Contact": ("Id", "Name", "FirstName", "LastName", "Email", "Phone", "Account.Name"),
    "Lead": ("Id", "Name", "Company", "Status", "Email", "Owner.Name"),
    "Opportunity": ("Id", "Name", "StageName", "Amount", "CloseDate", "Account.Name", "Owner.Name"),
    "Case": ("Id", "CaseNumber", "Subject", "Status", "Priority", "Account.Name", "Owner.Name"),
    "Task": ("Id", "Subject", "Status", "Priority", "ActivityDate", "Owner.Name"),
    "Event": ("Id", "Subject", "ActivityDateTime", "DurationInMinutes", "Owner.Name"),
    "User": ("Id", "Name", "Username", "Email", "IsActive", "UserRole.Name"),
    "Campaign": ("Id", "Name", "Status", "Type", "StartDate", "EndDate"),
    "CampaignMember": ("Id", "ContactId", "LeadId", "Status"),
    "Product2": ("Id", "Name", "ProductCode", "Family", "IsActive"),
    "PricebookEntry": ("Id", "UnitPrice", "Product2.Name", "Pricebook2.Name", "IsActive"),
    "Quote": ("Id", "Name", "Status", "ExpirationDate", "GrandTotal"),
    "Order": ("Id", "OrderNumber", "Name", "Status", "EffectiveDate", "TotalAmount"),
    "CaseComment": ("Id", "CommentBody", "CreatedDate"),
    "OpportunityContactRole": ("Id", "Role", "IsPrimary", "Contact.Name"),
    "OpportunityLineItem": ("Id", "Name", "Quantity", "UnitPrice", "TotalPrice"),
}


def default_columns(item: ObjectSchema, limit: int = MAX_COLUMNS) -> list[str]:
    """Return Id, the name, then the most informative fields; never all of them."""
    usual = [name for name in USUAL_COLUMNS.get(item.name, ()) if has_column(item, name)]
    if usual:
        return usual[:limit]
    names = ["Id"]
    if item.name_field is not None:
        names.append(item.name_field.name)
    useful = sorted((field for field in item.fields if _is_useful(field)), key=_priority)
    names += [field.name for field in useful if field.name not in names]
    owner = item.by_relationship.get("owner")
    if owner is not None and len(names) < limit:
        names.append("Owner.Name")
    return names[:limit]


def short_columns(item: ObjectSchema) -> list[str]:
    """Return the few columns that a subquery selects."""
    return [name for name in default_columns(item, 4) if "." not in name]


def has_column(item: ObjectSchema, name: str) -> bool:
    """Whether a name is a field, or a field of a parent."""
    relationship, _, field = name.rpartition(".")
    if not relationship:
        return item.field(field) is not None
    return relationship.lower() in item.by_relationship


def build_select(columns: Iterable[str], source: str, clauses: Sequence[str] = ()) -> str:
    """Return a SELECT statement; empty clauses are left out."""
    return " ".join([f"SELECT {', '.join(dict.fromkeys(columns))} FROM {source}", *(part for part in clauses if part)])


def _is_useful(field: Field) -> bool:
    if field.type in ("reference", "id", "base64", "address", "location", "anyType") or field.is_deprecated:
        return False
    if field.name.lower() in AUDIT_FIELDS or field.name in ("SystemModstamp", "IsDeleted", "LastModifiedDate"):
        return False
    return not (field.type == "textarea" and field.length > 255)  # noqa: PLR2004 - too long for a list


def _priority(field: Field) -> tuple[int, str]:
    """Required fields come first, then states, dates and amounts."""
    name = field.name.lower()
    if not field.nillable and field.createable and not field.is_defaulted:
        return 0, name
    if "status" in name or "stage" in name:
        return 1, name
    if field.type in ("date", "datetime"):
        return (2 if name != "createddate" else 5), name
    if field.type in ("currency", "double", "percent"):
        return 3, name
    return (4 if field.type in ("picklist", "email", "phone") else 6), name
