"""Resolve the names of a query to objects and fields of the schema, and suggest the ones that were probably meant."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from bedstone.salesforce.graph.model import NAME_OBJECT, Field, ObjectSchema, SchemaGraph, name_field
from bedstone.salesforce.graph.names import Suggestions, join_names, suggest
from bedstone.salesforce.soql import write
from bedstone.salesforce.soql.tree import Call, Expression, Path, Source, Span, TypeOf
from bedstone.salesforce.validation.findings import Findings

MAX_LEVELS_UP = 5
NAME_PARENTS = {"profile": "Profile", "userrole": "UserRole"}  # relationships of Name itself
# Given an unknown name and its object: a sentence for the message if the name is known as a value, else None.
Ground = Callable[[str, ObjectSchema], str | None]


class Resolved(NamedTuple):
    """A field of an object. `owner` is None for a field of Name, which stands for several objects."""

    field: Field
    owner: ObjectSchema | None


@dataclass
class Scope:
    """One FROM: its object, and what its aliases stand for."""

    graph: SchemaGraph
    findings: Findings
    root: ObjectSchema
    ground: Ground | None = None
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    parents: set[tuple[str, ...]] = field(default_factory=set)
    broken: frozenset[str] = frozenset()  # aliases of relationships that do not exist
    _suggestions: dict[tuple[str, str], Suggestions] = field(default_factory=dict)
    _grounds: dict[tuple[str, str], str | None] = field(default_factory=dict)

    def add_sources(self, sources: tuple[Source, ...]) -> None:
        """Learn the aliases of the object, and of relationships from it."""
        self.names[self.root.name.lower()] = ()
        if sources[0].alias:
            self.names[sources[0].alias.lower()] = ()
        for other in sources[1:]:
            parts = other.path.parts
            if parts[0].lower() not in self.names:
                message = f"FROM can name one object; {other.name!r} must be a relationship of {self.root.name}."
                self.findings.error("OBJECT_SECOND", message, "FROM", other.path.span)
                continue
            chain = self.names[parts[0].lower()] + parts[1:]
            alias = (other.alias or parts[-1]).lower()
            if self.owner_of(chain, other.path, "FROM") is None:
                self.broken |= {alias}
            self.names[alias] = chain

    def parts(self, path: Path) -> tuple[str, ...]:
        """Return a path from the root, without aliases."""
        parts = path.parts
        if len(parts) > 1 and (chain := self.names.get(parts[0].lower())) is not None:
            return chain + parts[1:]
        return parts

    def key(self, expression: Expression) -> str:
        """Return an expression in one spelling, without aliases."""
        if isinstance(expression, Path):
            parts = expression.parts
            return (parts[0] if len(parts) == 1 else ".".join(self.parts(expression))).lower()
        if isinstance(expression, Call):
            return f"{expression.name.lower()}({', '.join(self.key(item) for item in expression.arguments)})"
        return write(expression).lower()

    def resolve(self, path: Path, clause: str) -> Resolved | None:
        """Return a field, or None after reporting what is wrong."""
        owner: ObjectSchema | str | None = self.root
        parts = path.parts
        if len(parts) > 1:
            if parts[0].lower() in self.broken:
                return None  # reported in FROM
            parts = self.parts(path)
        if not all(parts):
            self.findings.error("SYNTAX", f'"{path.name}" is not a path.', clause, path.span)
            return None
        if len(parts) > 1:
            owner = self.owner_of(parts[:-1], path, clause)
        if not isinstance(owner, ObjectSchema):
            return self._name_field(parts, path, clause) if owner == NAME_OBJECT else None
        item = owner.by_name.get(parts[-1].lower())
        if item is None:
            self._unknown_field(parts[-1], owner, path, clause)
            return None
        if item.is_deprecated:
            self.findings.add("warning", "DEPRECATED", f'"{item.name}" is deprecated.', clause, path.span)
        return Resolved(item, owner)

    def owner_of(self, relationships: tuple[str, ...], path: Path, clause: str) -> ObjectSchema | str | None:
        """Return the object at the end of a chain, `Name` for several, or None after reporting what is wrong."""
        if len(relationships) > MAX_LEVELS_UP:
            message = (
                f'Path "{".".join(relationships)}" goes {len(relationships)} levels up; {MAX_LEVELS_UP} is the maximum.'
            )
            self.findings.error("DEPTH_UP", message, clause, path.span)
            return None
        owner = self.root
        names = tuple(map(str.lower, relationships))
        for depth, name in enumerate(relationships, start=1):
            link = owner.by_relationship.get(names[depth - 1])
            if link is None:
                self._unknown_parent(name, owner, clause, path, depth)
                return None
            self.parents.add(names[:depth])
            if is_polymorphic(link):
                return self._beyond_name(link, relationships[depth:], path, clause)
            target = self.graph.get(link.reference_to[0]) if link.reference_to else None
            if target is None:
                missing = link.reference_to[0] if link.reference_to else "the target"
                self.findings.schema_unknown(f"{missing} was not synced: references to it are not checked.")
                return None
            owner = target
        return owner

    def find_child(self, source: Source) -> ObjectSchema | None:
        """Return the object of a child subquery, or None after reporting what is wrong."""
        parts = source.path.parts
        if len(parts) > 1 and parts[0].lower() in self.names:
            parts = parts[1:]
        found = self.graph.child_object(self.root, parts[-1]) if len(parts) == 1 else None
        if found is None:
            self._unknown_child(parts[-1], source)
            return None
        return found[1]

    def find_typeof(self, node: TypeOf) -> Field | None:
        """Return the relationship of a TYPEOF, or None after reporting what is wrong."""
        *parents, name = self.parts(node.relationship)
        owner: ObjectSchema | str | None = self.root
        if parents:
            owner = self.owner_of(tuple(parents), node.relationship, "SELECT")
        if not isinstance(owner, ObjectSchema):
            return None
        link = owner.by_relationship.get(name.lower())
        if link is None:
            known = sorted(
                str(item.relationship) for item in owner.fields if item.relationship and is_polymorphic(item)
            )
            message = f'{owner.name} has no parent relationship "{name}". With several types: {join_names(known)}.'
            self.findings.error("RELATIONSHIP_UNKNOWN", message, "SELECT", node.relationship.span)
        return link

    def _beyond_name(self, link: Field, rest: tuple[str, ...], path: Path, clause: str) -> ObjectSchema | str | None:
        """Return where a chain leads that goes on after a polymorphic relationship."""
        if not rest:
            return NAME_OBJECT
        target = NAME_PARENTS.get(rest[0].lower())
        found = self.graph.get(target) if target else None
        if found is None:
            self._polymorphic(link.relationship, path, clause)
            return None
        inner = Scope(self.graph, self.findings, found, self.ground)
        return inner.owner_of(rest[1:], path, clause) if rest[1:] else found

    def _name_field(self, parts: tuple[str, ...], path: Path, clause: str) -> Resolved | None:
        item = name_field(parts[-1])
        if item is None:
            self._polymorphic(parts[-2], path, clause)
            return None
        return Resolved(item, None)

    def _polymorphic(self, relationship: str | None, path: Path, clause: str) -> None:
        message = (
            f'"{relationship}" can point to several objects; only fields of Name are allowed by dot. '
            f"Use TYPEOF, or filter on {relationship}.Type."
        )
        self.findings.error("POLYMORPHIC_FIELD", message, clause, path.span)

    def _unknown_field(self, name: str, owner: ObjectSchema, path: Path, clause: str) -> None:
        if self.findings.is_full:
            return
        span = (path.span[1] - len(name), path.span[1]) if path.span[1] else path.span
        if (hint := self._explain_value(name, owner)) is not None:
            self.findings.error("HALLUCINATED_ENTITY", hint, clause, span)
            return
        found = self._suggest_field(name, owner)
        meant = found.question
        link = owner.by_relationship.get(name.lower())
        if link is not None:  # a record cannot be compared: its name or its id can
            meant = f' "{name}" is a record: use {link.relationship}.Name, or {link.name} with an id.'
            found = Suggestions(found.names)
        message = f'Field "{name}" does not exist on {owner.name} ({clause}).{meant}'
        self.findings.error("FIELD_UNKNOWN", message, clause, span, found.certain)
        if found.certain:
            self.findings.correct_name(name, found.certain, owner.name, clause, span)

    def _suggest_field(self, name: str, owner: ObjectSchema) -> Suggestions:
        key = (owner.name, name.lower())
        if key not in self._suggestions:
            found = suggest(name, {item.name: item.label for item in owner.fields})
            self._suggestions[key] = found if found.certain else self._related_name(name, owner) or found
        return self._suggestions[key]

    def _related_name(self, name: str, owner: ObjectSchema) -> Suggestions:
        """Return the field of a parent that was written as one word, or what this object has instead of a name."""
        if name.lower() == "name" and owner.name_field is not None:  # a name is not the same as a number or a subject
            return Suggestions((owner.name_field.name,))
        for link in owner.by_relationship.values():
            bare = str(link.relationship).removesuffix("__r").lower()
            rest = name.lower().removeprefix(bare).lstrip("_")
            target = self.graph.get(link.reference_to[0]) if len(link.reference_to) == 1 else None
            field = target.field(rest) if target is not None else name_field(rest)
            if name.lower().startswith(bare) and rest and field is not None:
                path = f"{link.relationship}.{field.name}"
                return Suggestions((path,), path if rest != "id" else None)
        return Suggestions()

    def _unknown_parent(self, name: str, owner: ObjectSchema, clause: str, path: Path, depth: int) -> None:
        if self.findings.is_full:
            return
        span = self._span_of(name, path, depth)
        by_field = owner.field(name)
        if by_field is not None and by_field.relationship:
            rest = path.parts[-1]
            message = (
                f'"{by_field.name}.{rest}" uses the field name; use the relationship name: '
                f'"{by_field.relationship}.{rest}".'
            )
            self.findings.error("ID_FOR_RELATIONSHIP", message, clause, span, by_field.relationship)
            return
        if (hint := self._explain_value(name, owner)) is not None:
            self.findings.error("HALLUCINATED_ENTITY", hint, clause, span)
            return
        links = {item.relationship: item for item in owner.fields if item.relationship}
        found = suggest(name, {key: item.label for key, item in links.items()})
        meant = ""
        if found:
            target = "/".join(links[found.names[0]].reference_to[:3])
            meant = f' Did you mean "{found.names[0]}" (to {target})?'
        message = f'{owner.name} has no parent relationship "{name}".{meant} Available: {join_names(sorted(links))}.'
        self.findings.error("RELATIONSHIP_UNKNOWN", message, clause, span, found.certain)
        if found.certain:
            self.findings.correct_name(name, found.certain, owner.name, clause, span)

    def _span_of(self, name: str, path: Path, depth: int) -> Span:
        """Return where a part of a path stands in the text, which lacks the parts an alias stands for."""
        missing = len(self.parts(path)) - len(path.parts)
        index = depth - 1 - missing
        if not 0 <= index < len(path.parts) or path.parts[index].lower() != name.lower():
            index = next((at for at, part in enumerate(path.parts) if part.lower() == name.lower()), -1)
        if index < 0:
            return path.span
        start = path.span[0] + sum(len(part) + 1 for part in path.parts[:index])
        return start, start + len(name)

    def _unknown_child(self, name: str, source: Source) -> None:
        root = self.root
        known = {child.relationship: child.object for child in root.children if child.relationship}
        if name.lower() in root.by_child:
            self.findings.schema_unknown(f"The object behind {name} was not synced.")
            return
        by_object = [key for key, child in known.items() if child.lower() == name.lower()]
        found = suggest(name, dict.fromkeys(known, ""))
        if len(by_object) == 1:
            found = Suggestions(tuple(by_object), by_object[0])
        hint = f' Did you mean "{found.names[0]}"?' if found else ""
        message = (
            f'{root.name} has no child relationship "{name}".{hint} '
            "The subquery must name the relationship, not the object."
        )
        span = (source.path.span[1] - len(name), source.path.span[1])
        self.findings.error("CHILD_UNKNOWN", message, "FROM", span, found.certain)
        if found.certain:
            self.findings.correct_name(name, found.certain, root.name, "FROM", span)

    def _explain_value(self, name: str, owner: ObjectSchema) -> str | None:
        found = self._suggest_field(name, owner)
        is_part = any(known.lower().endswith(name.lower()) for known in found.names)  # Email for ContactEmail
        if self.ground is None or found.certain or is_part or name.lower() in owner.by_relationship:
            return None
        key = (owner.name, name)
        if key not in self._grounds:
            self._grounds[key] = self.ground(name, owner)
        return self._grounds[key]


def find_object(source: Source, graph: SchemaGraph, findings: Findings, ground: Ground | None) -> ObjectSchema | None:
    """Return the object that FROM names, or None after reporting what is wrong."""
    item = graph.get(source.name)
    if item is not None or not graph.objects:
        return item
    span = source.path.span
    if source.name in graph.problems or source.name.lower() in graph.unsynced:
        findings.schema_unknown(f"{source.name} is not synced: only the syntax was checked.")
        return None
    found = suggest_object(source.name, graph)
    if not found.certain and ground is not None:
        unknown = ObjectSchema(source.name, source.name, source.name, ())
        if (hint := ground(source.name, unknown)) is not None:
            findings.error("HALLUCINATED_ENTITY", hint, "FROM", span)
            return None
    meant = f' Did you mean "{found.names[0]}"?' if found else ""
    message = f'Object "{source.name}" does not exist in this org.{meant}'
    findings.error("OBJECT_UNKNOWN", message, "FROM", span, found.certain)
    if found.certain:
        findings.correct_name(source.name, found.certain, "this org", "FROM", span)
    return None


def is_polymorphic(link: Field) -> bool:
    """Whether a field may point to several objects."""
    return len(link.reference_to) > 1


def suggest_object(name: str, graph: SchemaGraph) -> Suggestions:
    """Return the objects that were probably meant."""
    return suggest(name, graph.names.near(name))
