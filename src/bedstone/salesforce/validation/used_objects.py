"""The objects that a query uses, as far as a schema knows them."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from bedstone.salesforce.graph.model import ObjectSchema, SchemaGraph
from bedstone.salesforce.soql.tree import Path, Query, SemiJoin, Source, TypeOf

Chains = dict[str, tuple[str, ...]]


def used_objects(query: Query, graph: SchemaGraph) -> list[str]:
    """Return the names of the objects that a query reads, the first one first; unknown ones end their path."""
    return list(dict.fromkeys(_select(query, query.sources[0].name, graph)))


def _select(query: Query | SemiJoin, name: str, graph: SchemaGraph) -> Iterator[str]:
    """Yield the objects of one FROM, of the paths from it, and of the selects inside."""
    root = graph.get(name)
    yield root.name if root is not None else name
    if root is None:
        yield from _semi_joins(query, graph)
        return
    chains = _chains(query.sources, root)
    for node in _nodes(query):
        if isinstance(node, Path):
            yield from _parents(_full_path(node, chains)[:-1], root, graph)
        elif isinstance(node, TypeOf):
            yield from _parents(_full_path(node.relationship, chains)[:-1], root, graph)
            yield from (branch.type for branch in node.branches)
        elif isinstance(node, SemiJoin):
            yield from _select(node, node.sources[0].name, graph)
        elif isinstance(node, Query):
            child = root.by_child.get(node.sources[0].path.parts[-1].lower())
            if child is not None:
                yield from _select(node, child.object, graph)


def _semi_joins(query: Query | SemiJoin, graph: SchemaGraph) -> Iterator[str]:
    for node in _nodes(query):
        if isinstance(node, SemiJoin):
            yield from _select(node, node.sources[0].name, graph)


def _nodes(root: Query | SemiJoin) -> Iterator[Path | TypeOf | Query | SemiJoin]:
    """Yield the paths and inner selects of a select, without what stands inside of those."""
    waiting: list[object] = [getattr(root, item.name) for item in fields(root) if item.name != "sources"]
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, Path | TypeOf | Query | SemiJoin):
            yield node
        elif isinstance(node, tuple):
            waiting += node
        elif is_dataclass(node):
            waiting += [getattr(node, item.name) for item in fields(node)]


def _chains(sources: tuple[Source, ...], root: ObjectSchema) -> Chains:
    """Return what the aliases of FROM stand for, as relationships from the object."""
    chains: Chains = {root.name.lower(): ()}
    if sources[0].alias:
        chains[sources[0].alias.lower()] = ()
    for other in sources[1:]:
        first, *rest = other.path.parts
        chains[(other.alias or other.path.parts[-1]).lower()] = (*chains.get(first.lower(), (first,)), *rest)
    return chains


def _full_path(path: Path, chains: Chains) -> tuple[str, ...]:
    first, *rest = path.parts
    return (*chains[first.lower()], *rest) if rest and first.lower() in chains else path.parts


def _parents(relationships: tuple[str, ...], root: ObjectSchema, graph: SchemaGraph) -> Iterator[str]:
    """Yield the objects along a path; a relationship to several objects ends it."""
    owner: ObjectSchema | None = root
    for name in relationships:
        link = owner.by_relationship.get(name.lower()) if owner is not None else None
        if link is None or len(link.reference_to) != 1:
            return
        yield link.reference_to[0]
        owner = graph.get(link.reference_to[0])
