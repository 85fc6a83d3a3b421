"""Classify objects and fields by name, type and relationships."""

from collections.abc import Mapping
from dataclasses import dataclass

from bedstone.salesforce.graph.model import AUDIT_FIELDS, Field, ObjectSchema, SchemaGraph

DERIVED = ("Share", "Feed", "History", "ChangeEvent")
SUFFIXES = {"__c": "custom", "__x": "external", "__mdt": "metadata_type", "__e": "platform_event", "__b": "big_object"}
CORE = frozenset(
    "Account Contact Lead Opportunity Case Campaign Contract Order Quote Product2 Pricebook2 Asset Task Event User "  # noqa: SIM905
    "ContentDocument ContentVersion".split()
)
SETUP = frozenset(
    "AuthProvider AuthSession LoginHistory LoginGeo SetupAuditTrail PermissionSet PermissionSetAssignment "  # noqa: SIM905
    "PermissionSetGroup PermissionSetLicense PermissionSetLicenseAssign Profile UserRole TwoFactorInfo "
    "SessionPermSetActivation ConnectedApplication OauthToken VerificationHistory ApexClass ApexTrigger ApexPage "
    "ApexComponent CustomField CustomObject CustomTab CustomPermission FieldPermissions ObjectPermissions "
    "SetupEntityAccess UserPackageLicense PackageLicense TenantSecret NamedCredential ExternalDataSource "
    "PlatformCachePartition".split()
)
MAIN_OBJECTS = frozenset({"Account", "Contact", "Opportunity"})
NAMESPACED_PARTS = 3  # namespace, name and suffix
# Weight of a match in an object, by category.
WEIGHTS: Mapping[str, float] = {
    "business_core": 1.0,
    "business_extended": 0.9,
    "managed_package": 0.7,
    "external_object": 0.6,
    "big_object": 0.6,
    "custom_metadata": 0.4,
    "system": 0.3,
    "system_derived": 0.3,
    "platform_event": 0.2,
}
UNKNOWN_WEIGHT = 0.8


@dataclass(frozen=True)
class Verdict:
    """A category with its confidence and reason; the highest priority wins."""

    category: str
    confidence: float
    priority: int
    reason: str


def kind_of(name: str, graph: SchemaGraph) -> str:
    """Return standard, custom, external, metadata_type, platform_event, big_object, or system for a derived object."""
    if is_derived(name, graph):
        return "system"
    return next((kind for suffix, kind in SUFFIXES.items() if name.endswith(suffix)), "standard")


def is_derived(name: str, graph: SchemaGraph) -> bool:
    """Return whether an object is derived from another: a share, feed, history or change event."""
    if name.endswith(tuple(f"__{suffix}" for suffix in DERIVED)):
        return True
    return any(name.endswith(suffix) and graph.get(name.removesuffix(suffix)) is not None for suffix in DERIVED)


def namespace_of(name: str) -> str | None:
    """Return the namespace of the managed package of an object."""
    parts = name.split("__")
    return parts[0] if len(parts) >= NAMESPACED_PARTS else None


def object_verdicts(item: ObjectSchema, graph: SchemaGraph) -> list[Verdict]:
    """Return all categories of an object, the best first."""
    name = item.name
    verdicts: list[Verdict] = []
    if name in CORE:
        verdicts.append(Verdict("business_core", 0.98, 100, "a core business object"))
    if name in SETUP:
        verdicts.append(Verdict("system", 0.95, 98, "a setup object"))
    if is_derived(name, graph):
        verdicts.append(Verdict("system_derived", 0.95, 95, "derived from another object"))
    for suffix, category in (
        ("__mdt", "custom_metadata"),
        ("__e", "platform_event"),
        ("__x", "external_object"),
        ("__b", "big_object"),
    ):
        if name.endswith(suffix):
            verdicts.append(Verdict(category, 0.99, 95, f"its name ends with {suffix}"))
    namespace = namespace_of(name)
    if namespace is not None:
        is_tool = namespace.lower() in ("tooling", "metadata")
        verdict = ("system", 0.95, 85) if is_tool else ("managed_package", 0.9, 80)
        verdicts.append(Verdict(*verdict, f"its namespace is {namespace}"))
    targets = {edge.parent for edge in graph.parents(name) if edge.field.name.lower() not in AUDIT_FIELDS}
    if main := sorted(targets & MAIN_OBJECTS):
        verdicts.append(Verdict("business_extended", 0.85, 70, f"points to {', '.join(main)}"))
    if item.is_custom:
        verdicts.append(Verdict("business_extended", 0.6, 40, "a custom object"))
    elif not (targets & (CORE - {"User"})) and not item.searchable:
        verdicts.append(Verdict("system", 0.7, 50, "not searchable and without references to business objects"))
    else:
        verdicts.append(Verdict("business_core", 0.7, 50, "a standard object"))
    return sorted(verdicts, key=lambda verdict: -verdict.priority)


def category_of(item: ObjectSchema, graph: SchemaGraph) -> str:
    """Return the best category of an object."""
    return object_verdicts(item, graph)[0].category


def field_verdicts(item: Field) -> list[Verdict]:
    """Return all categories of a field, the best first."""
    name = item.name.lower()
    verdicts: list[Verdict] = []
    if name in AUDIT_FIELDS or name in ("createddate", "lastmodifieddate", "systemmodstamp", "isdeleted"):
        verdicts.append(Verdict("system", 0.98, 100, "records who changed a record, and when"))
    if item.type in ("date", "datetime"):
        verdicts.append(Verdict("temporal", 0.95, 90, f"its type is {item.type}"))
    if item.type == "reference":
        verdicts.append(Verdict("relationship", 0.95, 90, "points to records"))
    for word, confidence in (("status", 0.9), ("stage", 0.9), ("phase", 0.85)):
        if word in name:
            verdicts.append(Verdict("lifecycle", confidence, 80, f"its name contains {word}"))
    if item.type == "currency" or "amount" in name or "revenue" in name:
        verdicts.append(Verdict("financial", 0.9, 80, "an amount of money"))
    elif "price" in name:
        verdicts.append(Verdict("financial", 0.85, 80, "a price"))
    if item.type in ("email", "phone", "address"):
        verdicts.append(Verdict("contact", 0.9, 75, f"its type is {item.type}"))
    if not verdicts:
        verdicts.append(Verdict("descriptive", 0.5, 10, f"a field of type {item.type}"))
    return sorted(verdicts, key=lambda verdict: -verdict.priority)
