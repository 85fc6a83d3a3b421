"""Names in a query to fields of the schema; names that are not there, to the ones that were probably meant."""

from collections.abc import Callable
from dataclasses import dataclass, field

from bedstone.salesforce.graph.model import NAME_OBJECT, Field, ObjectSchema, SchemaGraph, name_field
from bedstone.salesforce.graph.names import Suggestions, listed, suggest
from bedstone.salesforce.soql.tree import Path, Source, Span
from bedstone.salesforce.validation.findings import Findings

DEEPEST_UP, MOST_PARENTS = 5, 55
NAME_PARENTS = {"profile": "Profile", "userrole": "UserRole"}  # relationships of Name itself
# What an unknown name is instead, if it is known as a value: a sentence for the message.
Grounding = Callable[[str, ObjectSchema], str | None]


@dataclass(frozen=True)
class Resolved:
    """A field of an object. `owner` is None for a field of Name, which stands for several objects."""

    field: Field
    owner: ObjectSchema | None


@dataclass
class Scope:
    """One FROM: its object, and what aliases stand for."""

    graph: SchemaGraph
    findings: Findings
    root: ObjectSchema
    ground: Grounding | None = None
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    parents: set[tuple[str, ...]] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)  # aliases of what is not there
    _told: dict[tuple[str, str], Suggestions] = field(default_factory=dict)
    _grounds: dict[tuple[str, str], str | None] = field(default_factory=dict)

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
            if self.owner_of(chain, other.path.span, "FROM", other.path) is None:
                self.broken.add((other.alias or parts[-1]).lower())
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
        if len(path.parts) > 1 and path.parts[0].lower() in self.broken:
            return None  # told where it was named
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
        return Resolved(item, owner)

    def owner_of(  # noqa: PLR0911 - one for each way to end
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
                self._unknown_parent(name, owner, clause, path or Path(relationships, span), depth)
                return None
            self.parents.add(tuple(part.lower() for part in relationships[:depth]))
            if is_polymorphic(link):
                beyond = NAME_PARENTS.get(relationships[depth].lower()) if depth < len(relationships) else None
                if beyond is not None and (found := self.graph.get(beyond)) is not None:
                    return self._beyond(found, relationships[depth + 1 :], span, clause, path)
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

    def _beyond(
        self, owner: ObjectSchema, rest: tuple[str, ...], span: Span, clause: str, path: Path | None
    ) -> ObjectSchema | str | None:
        """What a parent of Name leads to."""
        if not rest:
            return owner
        inner = Scope(self.graph, self.findings, owner, self.ground)
        return inner.owner_of(rest, span, clause, path)

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
        return Resolved(item, None)

    def _unknown_field(self, name: str, owner: ObjectSchema, path: Path, clause: str) -> None:
        if self.findings.is_full:
            return
        span = (path.span[1] - len(name), path.span[1]) if path.span[1] else path.span
        if (hint := self._grounded(name, owner)) is not None:
            self.findings.error("HALLUCINATED_ENTITY", hint, clause, span)
            return
        found = self._near(name, owner)
        meant = f' Did you mean "{found.names[0]}"?' if found else ""
        link = owner.by_relationship.get(name.lower())
        if link is not None:  # a record is no value: its name or its id is
            meant = f' "{name}" is a record: use {link.relationship}.Name, or {link.name} with an id.'
            found = Suggestions(found.names)
        message = f'Field "{name}" does not exist on {owner.name} ({clause}).{meant}'
        self.findings.error("FIELD_UNKNOWN", message, clause, span, found.certain)
        if found.certain:
            self.findings.name_corrected(name, found.certain, owner.name, clause, span)

    def _near(self, name: str, owner: ObjectSchema) -> Suggestions:
        key = (owner.name, name.lower())
        if key not in self._told:
            self._told[key] = suggest(name, {item.name: item.label for item in owner.fields})
        return self._told[key]

    def _unknown_parent(self, name: str, owner: ObjectSchema, clause: str, path: Path, depth: int) -> None:
        if self.findings.is_full:
            return
        place = self._place_of(name, path, depth)
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

    def _place_of(self, name: str, path: Path, depth: int) -> Span:
        """Where a part of a path stands in the text: the parts an alias stands for are not there."""
        missing = len(self.parts(path)) - len(path.parts)
        index = depth - 1 - missing
        if not 0 <= index < len(path.parts) or path.parts[index].lower() != name.lower():
            index = next((at for at, part in enumerate(path.parts) if part.lower() == name.lower()), -1)
        if index < 0:
            return path.span
        start = path.span[0] + sum(len(part) + 1 for part in path.parts[:index])
        return start, start + len(name)

    def _grounded(self, name: str, owner: ObjectSchema) -> str | None:
        if self.ground is None or self._near(name, owner).certain or name.lower() in owner.by_relationship:
            return None
        key = (owner.name, name)
        if key not in self._grounds:
            self._grounds[key] = self.ground(name, owner)
        return self._grounds[key]


def is_polymorphic(link: Field) -> bool:
    """Whether a field may point to several objects."""
    return len(link.reference_to) > 1


def suggest_object(name: str, graph: SchemaGraph) -> Suggestions:
    """Objects that were probably meant."""
    return suggest(name, graph.names.near(name))
