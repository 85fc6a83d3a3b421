"""Arguments and results of the graph tools, as in the contract; what it does not print is optional."""

from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from bedstone.toolkit import Arguments, Result

MAX_ROWS = 1_000
MAX_FIELDS = 100  # of an object in one answer, unless the caller asks for more
MAX_RELATED = 50  # related objects of one distance, likewise


class GraphArguments(Arguments):
    """Every tool takes `orgId`; `spellings` maps other names that clients use to the names of the contract."""

    spellings: ClassVar[dict[str, str]] = {}

    org_id: str | None = Field(None, alias="orgId", description="Id or name of the org")

    @classmethod
    def parse(cls, arguments: dict[str, Any]) -> Self:
        """Validate the arguments; another spelling is accepted unless the contract's name is present too."""
        known = {field.alias or name for name, field in cls.model_fields.items()}
        renamed = {}
        for name, value in arguments.items():
            official = cls.spellings.get(name, name) if name not in known else name
            renamed[official if official not in arguments or official == name else name] = value
        return super().parse(renamed)


OBJECT_SPELLINGS = dict.fromkeys(("objectName", "apiName", "sobject", "object"), "objectApiName")


class ListObjects(GraphArguments):
    category: str | None = Field(None, description="Only objects of this category, such as standard or custom")
    search: str | None = Field(None, description="Only objects with this text in their name or label")
    limit: int = Field(MAX_ROWS, ge=1, le=MAX_ROWS)
    cursor: str | None = Field(None, description="Cursor from the previous answer, for the next objects")


class GetObject(GraphArguments):
    spellings: ClassVar = {"objectApiName": "apiName", "objectName": "apiName", "object": "apiName"}

    api_name: str = Field(alias="apiName", description="API name of the Salesforce object (case insensitive)")
    search: str | None = Field(None, description="Only fields and relationships with this text in their name or label")
    type: str | None = Field(None, description="Only fields of this type, such as picklist, reference or date")
    limit: int = Field(
        MAX_FIELDS, ge=1, le=MAX_ROWS, description="Maximum number of fields, and of relationships, in one answer"
    )
    cursor: str | None = Field(None, description="nextCursor of the previous answer, for the next fields")


class FindObject(GraphArguments):
    spellings: ClassVar = OBJECT_SPELLINGS

    object_api_name: str = Field(
        alias="objectApiName", description="API name of the Salesforce object (case insensitive)"
    )


class GenerateSoql(GraphArguments):
    spellings: ClassVar = OBJECT_SPELLINGS | {"where": "whereClause"}

    object_api_name: str = Field(alias="objectApiName", description="API name of the Salesforce object")
    fields: list[str] | None = Field(None, description="Fields to include in the query")
    where_clause: str | None = Field(None, alias="whereClause", description="WHERE clause for the query")
    limit: int | None = Field(None, ge=0, le=50_000, description="Limit the number of records returned")


class ValidateSoql(GraphArguments):
    spellings: ClassVar = {"soql": "query"}

    query: str = Field(description="The SOQL query to validate")


class MediateIntent(GraphArguments):
    spellings: ClassVar = {"question": "query"}

    query: str = Field(min_length=1, description="Natural language query describing the desired data")


class ResolveEntity(GraphArguments):
    spellings: ClassVar = {
        "value": "entityName",
        "concept": "entityName",
        "type": "entityType",
        "objectContext": "targetObject",
    }

    entity_name: str = Field(
        alias="entityName", min_length=1, description='The name/value to resolve (e.g., "Microsoft", "High Priority")'
    )
    entity_type: Literal["company", "person", "status", "priority", "unknown"] = Field(
        "unknown", alias="entityType", description="Type hint"
    )
    target_object: str | None = Field(None, alias="targetObject", description='Target object context (e.g., "Account")')


class FilterRecommendation(GraphArguments):
    spellings: ClassVar = {"objectName": "sobject", "objectApiName": "sobject", "fieldName": "field"}

    sobject: str = Field(description="Salesforce object name")
    field: str = Field(description="Field name")
    value: str = Field(min_length=1, description='Natural language value (e.g., "high", "Microsoft")')


class ExecuteSoql(GraphArguments):
    spellings: ClassVar = {"soql": "query"}

    query: str = Field(description="SOQL query to execute")
    max_rows: int = Field(200, alias="maxRows", ge=1, le=2_000, description="Maximum number of records in one answer")
    cursor: str | None = Field(None, description="nextCursor of the previous answer, for the next records")


class ExploreRelationships(GraphArguments):
    spellings: ClassVar = {"sourceObject": "sourceObjectApiName", "targetObject": "targetObjectApiName"}

    source_object_api_name: str = Field(alias="sourceObjectApiName", description="API name of the source object")
    target_object_api_name: str = Field(alias="targetObjectApiName", description="API name of the target object")
    max_depth: int = Field(5, alias="maxDepth", ge=1, le=5, description="Maximum path depth to search")
    max_paths: int = Field(10, alias="maxPaths", ge=1, le=50, description="Maximum number of paths")
    include_audit: bool = Field(
        False, alias="includeAudit", description="Include paths through audit fields (CreatedById, LastModifiedById)"
    )


class FindRelated(GraphArguments):
    spellings: ClassVar = OBJECT_SPELLINGS

    object_api_name: str = Field(alias="objectApiName", description="API name of the Salesforce object")
    max_depth: int = Field(2, alias="maxDepth", ge=1, le=5, description="Maximum relationship depth to search")
    limit: int = Field(MAX_RELATED, ge=1, le=MAX_ROWS, description="Maximum number of objects per distance")
    cursor: str | None = Field(None, description="nextCursor of the previous answer, for the next objects")


class GenerateSamples(GraphArguments):
    spellings: ClassVar = OBJECT_SPELLINGS

    object_api_name: str = Field(alias="objectApiName", description="API name of the Salesforce object")
    count: int = Field(5, ge=1, le=200, description="Number of records to generate")
    include_related: bool = Field(False, alias="includeRelated", description="Whether to include related objects")
    seed: int = Field(0, description="Seed of the generator; the same seed gives the same records")


class SemanticSearch(GraphArguments):
    spellings: ClassVar = {"type": "searchType", "objectContext": "targetObject", "concept": "query", "limit": "topK"}

    query: str = Field(min_length=1, description="Natural language search query")
    search_type: Literal["objects", "fields"] = Field(
        "objects", alias="searchType", description="'objects' or 'fields'"
    )
    target_object: str | None = Field(None, alias="targetObject", description="Limit field search to specific object")
    top_k: int = Field(10, alias="topK", ge=1, le=100, description="Number of results")


class GroundEntity(GraphArguments):
    spellings: ClassVar = {"entityName": "value", "concept": "value", "objectContext": "targetObject"}

    value: str = Field(min_length=1, description='The value to ground (e.g., "Microsoft", "Closed Won")')
    target_object: str | None = Field(None, alias="targetObject", description="Target object context")
    enable_sosl_fallback: bool = Field(
        False, alias="enableSoslFallback", description="Enable SOSL search for instance data verification"
    )


class SchemaCategory(GraphArguments):
    spellings: ClassVar = {"objectApiName": "objectName", "object": "objectName", "field": "fieldName"}

    object_name: str = Field(alias="objectName", description="Object API name")
    field_name: str | None = Field(None, alias="fieldName", description="Field API name")


class ToSoql(GraphArguments):
    spellings: ClassVar = {"query": "question"}

    question: str = Field(min_length=1, description="What to find, in plain English")


class CompareSchemas(GraphArguments):
    other_org_id: str = Field(alias="otherOrgId", description="Id or name of the org to compare with")
    object_api_name: str | None = Field(None, alias="objectApiName", description="Only this object")


class DetectAntiPatterns(GraphArguments):
    spellings: ClassVar = {"soql": "query"}

    query: str = Field(description="The SOQL query to analyze")


class ObjectFacts(Result):
    api_name: str = Field(alias="apiName")
    label: str
    description: str
    category: str


class FieldFacts(Result):
    api_name: str = Field(alias="apiName")
    label: str
    description: str
    type: str
    category: str
    nullable: bool
    unique: bool
    help_text: str | None = Field(alias="helpText")
    reference_to: list[str] | None = Field(None, alias="referenceTo", description="Objects that the field points to")
    relationship_name: str | None = Field(
        None, alias="relationshipName", description="Name for dot notation, such as Account in Account.Name"
    )
    picklist_values: list[str] | None = Field(None, alias="picklistValues", description="Active values")
    picklist_values_left_out: int | None = Field(
        None, alias="picklistValuesLeftOut", description="Number of values left out; search for the field to get all"
    )


class RelationshipFacts(Result):
    source_object: str = Field(alias="sourceObject")
    target_object: str = Field(alias="targetObject")
    relationship_type: Literal["LOOKUP", "MASTER_DETAIL", "HIERARCHICAL"] = Field(alias="relationshipType")
    field_count: int = Field(alias="fieldCount")
    direction: Literal["outgoing", "incoming"]


class ChildRelationshipFacts(Result):
    relationship_name: str = Field(alias="relationshipName", description="Name for a subquery, such as Contacts")
    child_object: str = Field(alias="childObject")
    field: str = Field(description="Field of the child that points here")


class ObjectDetails(Result):
    object: ObjectFacts
    fields: list[FieldFacts]
    relationships: list[RelationshipFacts]
    child_relationships: list[ChildRelationshipFacts] | None = Field(None, alias="childRelationships")
    fields_left_out: int | None = Field(None, alias="fieldsLeftOut", description="Number of fields that follow")
    relationships_left_out: int | None = Field(
        None, alias="relationshipsLeftOut", description="Number of relationships that follow"
    )
    child_relationships_left_out: int | None = Field(
        None, alias="childRelationshipsLeftOut", description="Number of child relationships that follow"
    )
    next_cursor: str | None = Field(None, alias="nextCursor")
    notes: list[str] | None = Field(None, description="What was left out, and how to get it")


class FoundObject(Result):
    found: bool
    api_name: str | None = Field(alias="apiName")
    label: str | None
    relationship_hints: list[str] = Field(alias="relationshipHints")
    relationship_hints_left_out: int | None = Field(
        None,
        alias="relationshipHintsLeftOut",
        description="Number of related objects left out; find-related-objects lists them",
    )
    suggestions: list[str] | None = None


class ValidationMessage(Result):
    type: Literal["error", "warning", "correction", "info"]
    code: str
    message: str
    clause: str | None = None
    line: int | None = None
    column: int | None = None
    original: str | None = None
    corrected: str | None = None


class ValidationResult(Result):
    valid: bool
    messages: list[ValidationMessage]
    corrected_query: str | None = Field(None, alias="correctedQuery")
    notes: list[str] | None = Field(None, description="What to know about the verdict, such as the age of the schema")


class IntentFilter(Result):
    field: str
    operator: str
    value: str
    source: str
    confidence: float


class Intent(Result):
    primary_entity: str | None = Field(alias="primaryEntity")
    explanation: str
    filters: list[IntentFilter]
    intent: Literal["list", "count", "sum", "top", "group"] | None = None
    confidence: float | None = None
    ungrounded_terms: list[str] | None = Field(None, alias="ungroundedTerms")


class Alternative(Result):
    type: str
    suggested_filter: str = Field(alias="suggestedFilter")
    confidence: float


class ResolvedEntity(Result):
    found: bool
    type: str | None
    confidence: float
    suggested_filter: str | None = Field(alias="suggestedFilter")
    alternatives: list[Alternative]
    rows: int | None = Field(None, description="Records that match the filter, if they were counted")


class RecommendedFilter(Result):
    recommended_filter: str = Field(alias="recommendedFilter")
    is_standard_picklist: bool = Field(alias="isStandardPicklist")
    confidence: float | None = None
    valid_values: list[str] | None = Field(None, alias="validValues")


class QueryResult(Result):
    total_size: int = Field(alias="totalSize", description="Number of records that Salesforce reports")
    done: bool
    records: list[dict[str, Any]]
    next_cursor: str | None = Field(None, alias="nextCursor")
    truncated: bool | None = Field(None, description="True if the answer was shortened to the size limit")
    notes: list[str] | None = Field(None, description="What to know about the answer, such as an unknown value")


class Segment(Result):
    source: str = Field(alias="from")
    target: str = Field(alias="to")
    field: str
    direction: Literal["up", "down"]
    relationship_name: str | None = Field(alias="relationshipName")
    child_relationship_name: str | None = Field(alias="childRelationshipName")
    relationship_type: str = Field(alias="relationshipType")
    polymorphic: bool


class FoundPath(Result):
    segments: list[Segment]
    hops: int
    dot_notation: str | None = Field(None, alias="dotNotation")
    soql: str | None = None
    exceeds_soql_limit: bool | None = Field(None, alias="exceedsSoqlLimit")


class FoundPaths(Result):
    source_object: str = Field(alias="sourceObject")
    target_object: str = Field(alias="targetObject")
    path_count: int = Field(alias="pathCount", description="Number of paths in this answer")
    paths: list[FoundPath]
    truncated: bool | None = Field(None, description="True if there are more")


class RelatedObjects(Result):
    source_object: str = Field(alias="sourceObject")
    related_objects: dict[str, list[str]] = Field(alias="relatedObjects", description="Object names by distance")
    truncated: dict[str, int] | None = Field(None, description="Number of objects left out, by distance")
    next_cursor: str | None = Field(None, alias="nextCursor")
    notes: list[str] | None = Field(None, description="What was left out, and how to get it")


class SampleData(Result):
    object: str
    records: list[dict[str, Any]]
    related: dict[str, list[dict[str, Any]]]


class GroundedEntity(Result):
    is_grounded: bool = Field(alias="isGrounded")
    type: str | None
    suggested_filter: str | None = Field(alias="suggestedFilter")
    confidence: float
    evidence: dict[str, Any]
    alternatives: list[Alternative] | None = None


class CategoryAlternative(Result):
    category: str
    confidence: float


class Category(Result):
    category: str
    confidence: float
    source: Literal["heuristic", "manual"]
    reason: str | None = None
    alternatives: list[CategoryAlternative] | None = None


class Translated(Result):
    soql: str
    explanation: str
    confidence: float
    assumptions: list[str]


class SchemaChange(Result):
    object: str
    field: str | None = None
    change: Literal["added", "removed", "changed"]
    severity: Literal["breaking", "safe"]
    what: str | None = None


class SchemaChanges(Result):
    changes: list[SchemaChange]
    truncated: bool | None = None
    changes_left_out: int | None = Field(
        None,
        alias="changesLeftOut",
        description="Number of changes left out; pass objectApiName for those of one object",
    )


class AntiPattern(Result):
    pattern: str
    message: str
    severity: Literal["high", "medium", "low"]


class AntiPatterns(Result):
    patterns: list[AntiPattern]


class GraphStatus(Result):
    org: str
    org_id: str | None = Field(alias="orgId")
    source: str | None
    objects: int
    fields: int
    last_sync: str | None = Field(alias="lastSync")
    age_hours: float | None = Field(alias="ageHours")
    errors: dict[str, str]
    capabilities: list[str]


class OrgLine(Result):
    alias: str
    org_id: str | None = Field(alias="orgId")
    instance: str | None
    read_only: bool = Field(alias="readOnly")
    synced: bool


class OrgList(Result):
    orgs: list[OrgLine]
