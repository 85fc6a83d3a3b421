"""Names in a query to fields of the schema; names that are not there, to the ones that were probably meant."""

from collections.abc import Callable
from dataclasses import dataclass, field

from bedstone.salesforce.graph.model import NAME_OBJECT, Field, ObjectSchema, SchemaGraph, name_field
from bedstone.salesforce.graph.names import Suggestions, listed, suggest
from bedstone.salesforce.soql.tree import Path, Source, Span
from bedstone.salesforce.validation.findings import Findings

DEEPEST_UP, MOST_PARENTS = 5, 55
# What an unknown name is instead, if it is known as a value: a sentence for the message.
Grounding = Callable[[str, ObjectSchema], str | None]


@dataclass(frozen=True)
class Resolved:
    """A field of an object. `owner` is None for a field of Name, which stands for several objects."""

    field: Field
    owner: ObjectSchema | None
    is_dotted: bool = False


@dataclass
class Scope:
    """One FROM: its object, and what aliases stand for."""

    graph: SchemaGraph
    findings: Findings
    root: ObjectSchema
    ground: Grounding | None = None
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    parents: set[tuple[str, ...]] = field(default_factory=set)

    def add_sources(self, sources: tuple[Source, ...]) -> None:
        """Aliases of the object, and of relationships from it."""
        self.names[self.root.name.lower()] = ()
        self.names[sources[0].path.parts[-1].lower()] = ()
        if sources[0].alias:
            self.names[sources[0].alias.lower()] = ()
        for other in sources[1:]:
            parts = other.path.parts
            if parts[0].lower() not in self.names:
                message = f"FROM can name one object; {other.name!r} must be a relationship of {self.root.name}."
                self.findings.error("OBJECT_SECOND", message, "FROM", other.path.span)
                continue
            chain = self.names[parts[0].lower()] + parts[1:]
            self.owner_of(chain, other.path.span, "FROM")
            self.names[(other.alias or parts[-1]).lower()] = chain

    def parts(self, path: Path) -> tuple[str, ...]:
        """A path from the root, without aliases."""
        first = path.parts[0].lower()
        if len(path.parts) > 1 and first in self.names:
            return self.names[first] + path.parts[1:]
        return path.parts

    def resolve(self, path: Path, clause: str) -> Resolved | None:
        """A field, or None after saying what is wrong."""
        parts = self.parts(path)
        if not all(parts):
            self.findings.error("SYNTAX", f'"{path.name}" is not a path.', clause, path.span)
            return None
        if len(parts) > 1:
            found = self.owner_of(parts[:-1], path.span, clause, path)
            if found is None:
                return None
            if found == NAME_OBJECT:
                return self._of_name(parts, path, clause)
            assert isinstance(found, ObjectSchema)
            owner = found
        else:
            owner = self.root
        item = owner.field(parts[-1])
        if item is None:
            self._unknown_field(parts[-1], owner, path, clause)
            return None
        if item.is_deprecated:
            self.findings.warning("DEPRECATED", f'"{item.name}" is deprecated.', clause, path.span)
        return Resolved(item, owner, len(parts) > 1)

    def owner_of(
        self, relationships: tuple[str, ...], span: Span, clause: str, path: Path | None = None
    ) -> ObjectSchema | str | None:
        """The object at the end of a chain, `Name` for several, or None after saying what is wrong."""
        if len(relationships) > DEEPEST_UP:
            shown = ".".join(relationships)
            message = f'Path "{shown}" goes {len(relationships)} levels up; {DEEPEST_UP} is the maximum.'
            self.findings.error("DEPTH_UP", message, clause, span)
            return None
        owner = self.root
        for depth, name in enumerate(relationships, start=1):
            link = owner.by_relationship.get(name.lower())
            if link is None:
                self._unknown_parent(name, owner, clause, path or Path(relationships, span))
                return None
            self.parents.add(tuple(part.lower() for part in relationships[:depth]))
            if is_polymorphic(link):
                if depth < len(relationships):
                    message = (
                        f'"{link.relationship}" can point to several objects; only fields of Name are allowed by dot. '
                        f"Use TYPEOF, or filter on {link.relationship}.Type."
                    )
                    self.findings.error("POLYMORPHIC_FIELD", message, clause, span)
                    return None
                return NAME_OBJECT
            target = self.graph.get(link.reference_to[0]) if link.reference_to else None
            if target is None:
                missing = link.reference_to[0] if link.reference_to else "the target"
                self.findings.info("SCHEMA_UNKNOWN", f"{missing} was not synced: what is asked of it is not checked.")
                return None
            owner = target
        return owner

    def _of_name(self, parts: tuple[str, ...], path: Path, clause: str) -> Resolved | None:
        item = name_field(parts[-1])
        if item is None:
            relationship = parts[-2]
            message = (
                f'"{relationship}" can point to several objects; only fields of Name are allowed by dot. '
                f"Use TYPEOF, or filter on {relationship}.Type."
            )
            self.findings.error("POLYMORPHIC_FIELD", message, clause, path.span)
            return None
        return Resolved(item, None, is_dotted=True)

    def _unknown_field(self, name: str, owner: ObjectSchema, path: Path, clause: str) -> None:
        span = (path.span[1] - len(name), path.span[1]) if path.span[1] else path.span
        if (hint := self._grounded(name, owner)) is not None:
            self.findings.error("HALLUCINATED_ENTITY", hint, clause, span)
            return
        found = suggest(name, {item.name: item.label for item in owner.fields})
        meant = f' Did you mean "{found.names[0]}"?' if found else ""
        message = f'Field "{name}" does not exist on {owner.name} ({clause}).{meant}'
        self.findings.error("FIELD_UNKNOWN", message, clause, span, found.certain)
        if found.certain:
            self.findings.name_corrected(name, found.certain, owner.name, clause, span)

    def _unknown_parent(self, name: str, owner: ObjectSchema, clause: str, path: Path) -> None:
        start = self._start_of(name, path)
        place = (start, start + len(name))
        by_field = owner.field(name)
        if by_field is not None and by_field.relationship:
            rest = path.parts[-1]
            message = (
                f'"{by_field.name}.{rest}" uses the field name; use the relationship name: '
                f'"{by_field.relationship}.{rest}".'
            )
            self.findings.error("ID_FOR_RELATIONSHIP", message, clause, place, by_field.relationship)
            return
        if (hint := self._grounded(name, owner)) is not None:
            self.findings.error("HALLUCINATED_ENTITY", hint, clause, place)
            return
        links = {item.relationship: item for item in owner.fields if item.relationship}
        found = suggest(name, {str(key): item.label for key, item in links.items()})
        meant = ""
        if found:
            target = "/".join(links[found.names[0]].reference_to[:3])
            meant = f' Did you mean "{found.names[0]}" (to {target})?'
        known = listed(sorted(str(key) for key in links))
        message = f'{owner.name} has no parent relationship "{name}".{meant} Available: {known}.'
        self.findings.error("RELATIONSHIP_UNKNOWN", message, clause, place, found.certain)
        if found.certain:
            self.findings.name_corrected(name, found.certain, owner.name, clause, place)

    def _start_of(self, name: str, path: Path) -> int:
        """Where a part of a path stands in the text."""
        position = path.span[0]
        for part in path.parts:
            if part == name:
                break
            position += len(part) + 1
        return position

    def _grounded(self, name: str, owner: ObjectSchema) -> str | None:
        if self.ground is None or suggest(name, {item.name: item.label for item in owner.fields}).certain:
            return None
        return self.ground(name, owner)


def is_polymorphic(link: Field) -> bool:
    """Whether a field may point to several objects."""
    return len(link.reference_to) > 1


def suggest_object(name: str, graph: SchemaGraph) -> Suggestions:
    """Objects that were probably meant."""
    return suggest(name, graph.names.near(name))
