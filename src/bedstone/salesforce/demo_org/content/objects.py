"""The company's own objects: master-detail, junction, formula, dependent and multi-select picklists, a geolocation."""

from collections.abc import Sequence

from bedstone.salesforce.demo_org.schema import FieldType, ObjectType, RecordType, Schema, load_schema
from bedstone.salesforce.ids import make_id

BOTH = ("Group", "User")
KNOWLEDGE = "knowledge"
MODELS = ("Haul", "Barrow", "Porter")
COLOURS = {"Haul": ("Slate", "Moss", "Brick"), "Barrow": ("Slate", "Sand"), "Porter": ("White", "Signal Yellow")}
ARTICLE_RECORD_TYPES = (
    RecordType(make_id("012", 71), "FAQ", "FAQ"),
    RecordType(make_id("012", 72), "How_To", "How To"),
    RecordType(make_id("012", 73), "Troubleshooting", "Troubleshooting"),
)


def text(name: str, label: str, length: int = 255, **more: object) -> FieldType:
    return FieldType(name, "string", label, length=length, **more)  # type: ignore[arg-type]


def number(name: str, label: str, kind: str = "double", **more: object) -> FieldType:
    return FieldType(name, kind, label, groupable=False, **more)  # type: ignore[arg-type]


def pick(name: str, label: str, values: Sequence[str], **more: object) -> FieldType:
    return FieldType(name, "picklist", label, length=255, values=tuple(values), **more)  # type: ignore[arg-type]


def lookup(name: str, label: str, *targets: str, **more: object) -> FieldType:
    relationship = name.replace("__c", "__r") if name.endswith("__c") else name.removesuffix("Id")
    return FieldType(name, "reference", label, length=18, reference_to=targets, relationship=relationship, **more)  # type: ignore[arg-type]


def master(name: str, label: str, target: str, order: int = 0) -> FieldType:
    return lookup(name, label, target, nillable=False, master_detail=order)


def system(*, owned: bool = True, name: FieldType | None = None) -> tuple[FieldType, ...]:
    """Return the fields every object has."""
    fields = [FieldType("Id", "id", "Record ID", length=18, nillable=False, read_only=True)]
    if owned:
        fields.append(lookup("OwnerId", "Owner ID", *BOTH, nillable=False))
    fields += [
        FieldType("IsDeleted", "boolean", "Deleted", nillable=False, read_only=True),
        name or text("Name", "Name", 80, name_field=True, nillable=False),
        FieldType("CreatedDate", "datetime", "Created Date", nillable=False, read_only=True, groupable=False),
        lookup("CreatedById", "Created By ID", "User", nillable=False, read_only=True),
        FieldType(
            "LastModifiedDate", "datetime", "Last Modified Date", nillable=False, read_only=True, groupable=False
        ),
        lookup("LastModifiedById", "Last Modified By ID", "User", nillable=False, read_only=True),
        FieldType("SystemModstamp", "datetime", "System Modstamp", nillable=False, read_only=True, groupable=False),
    ]
    return tuple(fields)


def auto(label: str, pattern: str) -> FieldType:
    return text("Name", label, 80, name_field=True, nillable=False, read_only=True, auto_number=pattern)


CUSTOM = (
    ObjectType(
        "Bike__c",
        "Bike",
        "Bikes",
        "a01",
        (
            *system(),
            text(
                "Frame_Number__c",
                "Frame Number",
                11,
                external_id=True,
                unique=True,
                help="Eleven characters on the seat tube",
            ),
            pick("Model__c", "Model", MODELS, restricted=True, nillable=False),
            pick(
                "Colour__c",
                "Colour",
                ("Slate", "Moss", "Brick", "Sand", "White", "Signal Yellow"),
                controller="Model__c",
                depends=COLOURS,
            ),
            FieldType(
                "Options__c",
                "multipicklist",
                "Options",
                length=4099,
                groupable=False,
                sortable=False,
                values=("Rain Cover", "Second Battery", "Child Seat", "GPS Tracker", "Winter Tyres"),
            ),
            lookup("Rider__c", "Rider", "Contact"),
            lookup("Dealer__c", "Dealer", "Account"),
            FieldType("Sold_On__c", "date", "Sold On"),
            number("Price__c", "Price", "currency"),
            number("Mileage_km__c", "Mileage (km)"),
            FieldType("In_Warranty__c", "boolean", "In Warranty", nillable=False),
            number(
                "Price_per_km__c",
                "Price per km",
                formula='CASE WHEN {t}."Mileage_km__c" > 0 THEN {t}."Price__c" / {t}."Mileage_km__c" END',
                read_only=True,
            ),
        ),
    ),
    ObjectType(
        "Service_Visit__c",
        "Service Visit",
        "Service Visits",
        "a02",
        (
            *system(owned=False, name=auto("Visit Number", "SV-{:05}")),
            master("Bike__c", "Bike", "Bike__c"),
            lookup("Workshop__c", "Workshop", "Account"),
            FieldType("Date__c", "date", "Date", nillable=False),
            pick("Kind__c", "Kind", ("Inspection", "Repair", "Recall", "Warranty")),
            pick("Status__c", "Status", ("Planned", "In Progress", "Done", "Cancelled")),
            number("Cost__c", "Cost", "currency"),
            FieldType("Notes__c", "textarea", "Notes", length=32768, filterable=False, sortable=False, groupable=False),
        ),
    ),
    ObjectType(
        "Part__c",
        "Part",
        "Parts",
        "a03",
        (
            *system(),
            text("Part_Number__c", "Part Number", 20, external_id=True, unique=True),
            pick("Category__c", "Category", ("Battery", "Brake", "Drive", "Electronics", "Frame", "Wheel")),
            number("List_Price__c", "List Price", "currency"),
            number("Stock__c", "Stock", "int"),
        ),
    ),
    ObjectType(
        "Visit_Part__c",
        "Visit Part",
        "Visit Parts",
        "a04",
        (
            *system(owned=False, name=auto("Line", "VP-{:06}")),
            master("Visit__c", "Visit", "Service_Visit__c"),
            master("Part__c", "Part", "Part__c", 1),
            number("Quantity__c", "Quantity", "int"),
        ),
    ),
    ObjectType(
        "Warranty_Claim__c",
        "Warranty Claim",
        "Warranty Claims",
        "a05",
        (
            *system(name=auto("Claim Number", "WC-{:05}")),
            lookup("Bike__c", "Bike", "Bike__c"),
            lookup("Case__c", "Case", "Case"),
            pick("Outcome__c", "Outcome", ("Open", "Accepted", "Rejected", "Goodwill")),
            number("Amount__c", "Amount", "currency"),
            FieldType("Decided_On__c", "datetime", "Decided On", groupable=False),
        ),
    ),
    ObjectType(
        "Dealer_Agreement__c",
        "Dealer Agreement",
        "Dealer Agreements",
        "a06",
        (
            *system(owned=False),
            master("Dealer__c", "Dealer", "Account"),
            FieldType("Signed_On__c", "date", "Signed On"),
            number("Discount__c", "Discount", "percent"),
            pick("Tier__c", "Tier", ("Bronze", "Silver", "Gold"), inactive=("Platinum",)),
            FieldType("Exclusive__c", "boolean", "Exclusive", nillable=False),
        ),
    ),
    ObjectType(
        "Test_Ride__c",
        "Test Ride",
        "Test Rides",
        "a07",
        (
            *system(name=auto("Ride", "TR-{:05}")),
            lookup("Lead__c", "Lead", "Lead"),
            lookup("Dealer__c", "Dealer", "Account"),
            FieldType("Starts__c", "datetime", "Starts", groupable=False),
            pick("Model__c", "Model", MODELS),
            number("Stars__c", "Stars", "int"),
            FieldType(
                "Comment__c", "textarea", "Comment", length=1000, sortable=False, groupable=False, filterable=False
            ),
        ),
    ),
    ObjectType(
        "Depot__c",
        "Depot",
        "Depots",
        "a08",
        (
            *system(),
            lookup("Operator__c", "Operator", "Account"),
            number("Place__Latitude__s", "Place (Latitude)"),
            number("Place__Longitude__s", "Place (Longitude)"),
            FieldType(
                "Place__c",
                "location",
                "Place",
                sortable=False,
                groupable=False,
                parts=("Place__Latitude__s", "Place__Longitude__s"),
                read_only=True,
            ),
            number("Bays__c", "Bays", "int"),
            FieldType("Opens__c", "time", "Opens", groupable=False),
        ),
    ),
    ObjectType(
        "Delivery__c",
        "Delivery",
        "Deliveries",
        "a09",
        (
            *system(name=auto("Delivery", "D-{:05}")),
            lookup("Order__c", "Order", "Order"),
            lookup("Depot__c", "Depot", "Depot__c"),
            pick("Status__c", "Status", ("Packed", "Shipped", "Delivered", "Returned")),
            FieldType("Promised__c", "date", "Promised"),
            FieldType("Arrived__c", "datetime", "Arrived", groupable=False),
        ),
    ),
    ObjectType(
        "Feedback__c",
        "Feedback",
        "Feedback",
        "a0A",
        (
            *system(name=auto("Feedback", "F-{:05}")),
            lookup("Rider__c", "Rider", "Contact"),
            lookup("Bike__c", "Bike", "Bike__c"),
            number("Score__c", "Score", "int"),
            FieldType("Words__c", "textarea", "Words", length=255, groupable=False),
            FieldType("Contact_Email__c", "email", "Contact Email", length=80),
        ),
    ),
    ObjectType(
        "Fleet__c",
        "Fleet",
        "Fleets",
        "a0B",
        (
            *system(),
            lookup("Customer__c", "Customer", "Account"),
            lookup("Manager__c", "Manager", "User"),
            number("Bikes__c", "Bikes", "int"),
            FieldType("Website__c", "url", "Website", length=255),
        ),
    ),
    ObjectType(
        "kfleet__Device__c",
        "Device",
        "Devices",
        "a0C",
        (
            *system(),
            lookup("kfleet__Bike__c", "Bike", "Bike__c"),
            text("kfleet__Serial__c", "Serial", 30, external_id=True, unique=True),
            FieldType("kfleet__Last_Seen__c", "datetime", "Last Seen", groupable=False),
            number("kfleet__Battery__c", "Battery", "percent"),
        ),
    ),
    ObjectType(
        "Ride__x",
        "Ride",
        "Rides",
        "x01",
        (
            *system(owned=False, name=text("ExternalId", "External ID", 80, name_field=True, external_id=True)),
            text("DisplayUrl", "Display URL", 255),
            number("Distance__c", "Distance"),
            text("Frame__c", "Frame", 11),
        ),
    ),
)

RELATIONSHIPS = {
    ("Bike__c", "Service_Visit__c", "Bike__c"): "Service_Visits__r",
    ("Service_Visit__c", "Visit_Part__c", "Visit__c"): "Visit_Parts__r",
    ("Part__c", "Visit_Part__c", "Part__c"): "Visit_Parts__r",
    ("Bike__c", "Warranty_Claim__c", "Bike__c"): "Warranty_Claims__r",
    ("Case", "Warranty_Claim__c", "Case__c"): "Warranty_Claims__r",
    ("Account", "Dealer_Agreement__c", "Dealer__c"): "Dealer_Agreements__r",
    ("Account", "Bike__c", "Dealer__c"): "Bikes__r",
    ("Contact", "Bike__c", "Rider__c"): "Bikes__r",
    ("Account", "Service_Visit__c", "Workshop__c"): "Service_Visits__r",
    ("Lead", "Test_Ride__c", "Lead__c"): "Test_Rides__r",
    ("Account", "Test_Ride__c", "Dealer__c"): "Test_Rides__r",
    ("Account", "Depot__c", "Operator__c"): "Depots__r",
    ("Order", "Delivery__c", "Order__c"): "Deliveries__r",
    ("Depot__c", "Delivery__c", "Depot__c"): "Deliveries__r",
    ("Contact", "Feedback__c", "Rider__c"): "Feedback__r",
    ("Bike__c", "Feedback__c", "Bike__c"): "Feedback__r",
    ("Account", "Fleet__c", "Customer__c"): "Fleets__r",
    ("Bike__c", "kfleet__Device__c", "kfleet__Bike__c"): "kfleet__Devices__r",
}


def _article_fields(*, version: bool) -> tuple[FieldType, ...]:
    fields = [
        FieldType("Id", "id", "Knowledge Article Version ID", length=18, nillable=False, read_only=True),
        FieldType("IsDeleted", "boolean", "Is Deleted", nillable=False, read_only=True),
        text("KnowledgeArticleId", "Knowledge Article ID", 18, nillable=False, read_only=True),
        lookup("OwnerId", "Owner ID", "User", nillable=False),
        FieldType("CreatedDate", "datetime", "Created Date", nillable=False, read_only=True, groupable=False),
        lookup("CreatedById", "Created By ID", "User", nillable=False, read_only=True),
        FieldType(
            "LastModifiedDate", "datetime", "Last Modified Date", nillable=False, read_only=True, groupable=False
        ),
        lookup("LastModifiedById", "Last Modified By ID", "User", nillable=False, read_only=True),
        FieldType("SystemModstamp", "datetime", "System Modstamp", nillable=False, read_only=True, groupable=False),
        pick("PublishStatus", "Publication Status", ("Draft", "Online", "Archived"), restricted=True, nillable=False),
        number("VersionNumber", "Version Number", "int"),
        FieldType("IsLatestVersion", "boolean", "Is Latest Version", nillable=False, read_only=True),
        FieldType("IsVisibleInApp", "boolean", "Visible In Internal App", nillable=False),
        FieldType("IsVisibleInPkb", "boolean", "Visible In Public Knowledge Base", nillable=False),
        pick("Language", "Language", ("en_US", "de", "fr"), nillable=False),
        text("Title", "Title", 255, name_field=True, nillable=False),
        text("UrlName", "URL Name", 255, nillable=False),
        text("ArticleNumber", "Article Number", 15, nillable=False, read_only=True),
        FieldType("Summary", "textarea", "Summary", length=1000, sortable=False, groupable=False),
        FieldType("LastPublishedDate", "datetime", "Last Published Date", read_only=True, groupable=False),
        FieldType("FirstPublishedDate", "datetime", "First Published Date", read_only=True, groupable=False),
        number("ArticleTotalViewCount", "View Count", "int", read_only=True),
        text("ArticleType", "Article Type", 80, read_only=True),
        lookup("RecordTypeId", "Record Type ID", "RecordType"),
    ]
    if not version:
        rich = {"filterable": False, "sortable": False, "groupable": False, "rich": True}
        fields += [
            FieldType("Answer__c", "textarea", "Answer", length=131072, **rich),  # type: ignore[arg-type]
            FieldType("Steps__c", "textarea", "Steps", length=131072, **rich),  # type: ignore[arg-type]
            FieldType(
                "Internal_Notes__c",
                "textarea",
                "Internal Notes",
                length=32768,
                filterable=False,
                sortable=False,
                groupable=False,
            ),
            text("Models__c", "Models", 100),
        ]
    return tuple(fields)


KNOWLEDGE_OBJECTS = (
    ObjectType("Knowledge__kav", "Knowledge", "Knowledge", "ka0", _article_fields(version=False),
               record_types=ARTICLE_RECORD_TYPES, feature=KNOWLEDGE),
    ObjectType("KnowledgeArticleVersion", "Knowledge Article Version", "Knowledge Article Versions", "",
               _article_fields(version=True), can_change=False, feature=KNOWLEDGE),
    ObjectType("Knowledge__DataCategorySelection", "Data Category Selection", "Data Category Selections", "02o", (
        FieldType("Id", "id", "ID", length=18, nillable=False, read_only=True),
        FieldType("IsDeleted", "boolean", "Deleted", nillable=False, read_only=True),
        lookup("ParentId", "Parent ID", "Knowledge__kav", nillable=False),
        text("DataCategoryGroupName", "Category Group", 80),
        text("DataCategoryName", "Category", 80),
    ), searchable=False, feature=KNOWLEDGE),
)  # fmt: skip
NAME = ObjectType(
    "Name",
    "Name",
    "Names",
    "",
    (
        FieldType("Id", "id", "ID", length=18, nillable=False, read_only=True),
        text("Name", "Name", name_field=True, read_only=True),
        text("Type", "Type", 40, read_only=True),
        text("FirstName", "First Name", 40, read_only=True),
        text("LastName", "Last Name", 80, read_only=True),
        FieldType("Email", "email", "Email", length=80, read_only=True),
        FieldType("Phone", "phone", "Phone", length=40, read_only=True),
        text("Title", "Title", 128, read_only=True),
        text("Username", "Username", 80, read_only=True),
        FieldType("IsActive", "boolean", "Active", read_only=True),
        lookup("ProfileId", "Profile ID", "Profile", read_only=True),
        lookup("UserRoleId", "Role ID", "UserRole", read_only=True),
        text("Alias", "Alias", 8, read_only=True),
    ),
    searchable=False,
    can_change=False,
)


def demo_schema() -> Schema:
    """Return the standard objects, the company's own, and Knowledge."""
    return load_schema([*CUSTOM, *KNOWLEDGE_OBJECTS, NAME], RELATIONSHIPS)
