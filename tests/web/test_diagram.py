"""The layout of a diagram: whatever is around an object, nothing covers anything else."""

from collections.abc import Iterator
from itertools import combinations

import pytest

from bedstone.salesforce.graph.model import Field, ObjectSchema, SchemaGraph
from bedstone.services.schema.search import SchemaSearch
from bedstone.services.schema.service import OrgSchema
from bedstone.web.schema.diagram import (
    CENTER_SIZE,
    FIELD_SIZE,
    LETTER,
    NAME_SIZE,
    Box,
    Diagram,
    Text,
    draw_neighbours,
    text_width,
    wrap,
)
from bedstone.web.schema.neighbours import Group, choose_drawn, count_objects, filter_groups, group_neighbours
from support.schemas import a_crm_schema, a_lookup, a_name, a_schema, an_object

LONG = "An_Object_With_A_Name_That_Is_As_Long_As_An_Org_Allows_It_To_Be_In_Any_Case__c__x"
HEADING_SIZE = 12.0


def an_org(graph: SchemaGraph) -> OrgSchema:
    return OrgSchema("one", {}, graph, SchemaSearch(graph))


def star(children: int, parents: int = 0, *, name: str = "Hub", ending: str = "", **facts: bool) -> OrgSchema:
    """Return an org in which so many objects point to one, and this one to others."""
    up = [a_lookup(f"To{number}Id", f"Parent{number}{ending}") for number in range(parents)]
    objects: list[ObjectSchema] = [an_object(name, a_name(), *up, a_lookup("ParentId", name))]
    objects += [an_object(f"Parent{number}{ending}", a_name()) for number in range(parents)]
    for number in range(children):
        links: list[Field] = [a_lookup(f"{name}Id", name, **facts)]
        links += [a_lookup(f"Other{more}Id", name) for more in range(number % 3)]
        objects.append(an_object(f"Child{number}{'__c' if number % 2 else ''}{ending}", a_name(), *links))
    return an_org(a_schema(*objects))


def draw(org: OrgSchema, name: str, limit: int) -> tuple[Diagram, list[Group]]:
    item = org.graph.get(name)
    assert item is not None
    drawn = choose_drawn(group_neighbours(org, item), limit)
    return draw_neighbours(item.label, len(item.fields), drawn), drawn


def area(text: Text, width: float, size: float) -> Box:
    """Return the area of a text; of a line of letters, what is above and below it."""
    left = {"start": text.x, "middle": text.x - width / 2, "end": text.x - width}[text.anchor]
    return Box(left, text.y - 0.78 * size, width, 0.98 * size)


def labels(diagram: Diagram) -> Iterator[Box]:
    for node in diagram.nodes:
        yield area(node.label, len(node.label.text) * LETTER * FIELD_SIZE, FIELD_SIZE)


def overlap(one: Box, other: Box) -> bool:
    across = one.x < other.right and other.x < one.right
    return across and one.y < other.y + other.height and other.y < one.y + one.height


def check_layout(diagram: Diagram) -> None:
    boxes = [node.box for node in diagram.nodes]
    fields = list(labels(diagram))
    headings = [area(text, text_width(text.text, HEADING_SIZE), HEADING_SIZE) for text in diagram.headings]
    solid = [*boxes, diagram.center]
    for one, other in combinations([*solid, *fields, *headings], 2):
        assert not overlap(one, other), (one, other)
    for part in [*solid, *fields, *headings]:
        assert part.x >= 0, part
        assert part.y >= 0, part
        assert part.right <= diagram.width, part
        assert part.y + part.height <= diagram.height, part
    for node in diagram.nodes:
        assert node.text.x + text_width(node.text.text, NAME_SIZE) <= node.box.right, node.text
    for line in diagram.title:
        assert text_width(line.text, CENTER_SIZE) <= diagram.center.width, line
        assert diagram.center.y < line.y < diagram.center.y + diagram.center.height, line


@pytest.mark.parametrize("parents", [0, 1, 5, 15])
@pytest.mark.parametrize("children", [0, 1, 5, 24, 40, 120])
@pytest.mark.parametrize("limit", [24, 40])
def test_nothing_covers_anything_else(children: int, parents: int, limit: int) -> None:
    org = star(children, parents)
    diagram, drawn = draw(org, "Hub", limit)
    check_layout(diagram)
    rows = sum(len(group.neighbours) for group in drawn)
    assert rows == len(diagram.nodes) == min(limit, children + parents + 1)  # and itself


def test_long_names_are_shortened_and_keep_their_end() -> None:
    org = star(12, 4, name=LONG, ending=f"_{LONG}")
    diagram, _ = draw(org, LONG, 24)
    check_layout(diagram)
    shown = [node.text.text for node in diagram.nodes if not node.neighbour.is_self]
    assert all("…" in text and text.endswith("c__x") for text in shown)
    assert {node.label.text for node in diagram.nodes} >= {"To0Id"}
    assert any(node.label.text.endswith("xId +2") for node in diagram.nodes)


def test_lines_end_in_the_order_in_which_they_begin() -> None:
    """Lines whose ends have the same order as their beginnings cannot cross."""
    diagram, _ = draw(star(24, 8), "Hub", 40)
    for left in (True, False):
        nodes = [node for node in diagram.nodes if (node.box.x < diagram.center.x) == left]
        ports = [float(node.line.split()[-1]) for node in sorted(nodes, key=lambda node: node.box.y)]
        assert ports == sorted(ports)
        assert all(diagram.center.y < port < diagram.center.y + diagram.center.height for port in ports)


def test_the_arrow_ends_at_what_is_pointed_to() -> None:
    diagram, _ = draw(star(1, 1), "Hub", 24)
    for node in diagram.nodes:
        x = float(node.tip[1:].split()[0])
        ends = (diagram.center.x, diagram.center.right) if node.neighbour.points_here else (node.box.x, node.box.right)
        assert x in ends, node.neighbour.name


def test_an_object_that_points_to_itself_is_drawn_once() -> None:
    diagram, _ = draw(an_org(a_crm_schema()), "Account", 24)
    itself = [node for node in diagram.nodes if node.neighbour.is_self]
    assert [node.text.text for node in itself] == ["Account (itself)"]
    assert not itself[0].neighbour.points_here


def test_kinds_of_links_are_told_apart() -> None:
    graph = a_schema(
        an_object("Hub", a_name()),
        an_object("Part__c", a_lookup("Hub__c", "Hub", relationship_type="MASTER_DETAIL")),
        an_object("Note", a_lookup("WhatId", "Hub", "Other")),
        an_object("Other", a_lookup("HubId", "Hub"), a_lookup("SecondId", "Hub"), a_lookup("ThirdId", "Hub")),
    )
    diagram, drawn = draw(an_org(graph), "Hub", 24)
    assert {node.neighbour.name: (node.kind, node.label.text) for node in diagram.nodes} == {
        "Part__c": ("master", "Hub__c"),
        "Note": ("any", "WhatId"),
        "Other": ("lookup", "HubId +2"),
    }
    assert [group.title for group in drawn] == [
        "Custom objects that point to Hub",
        "Standard objects that point to Hub",
        "Can point to several objects",
    ]


def test_every_group_gets_a_share_of_the_places() -> None:
    org = star(60, 3)
    item = org.graph.get("Hub")
    assert item is not None
    groups = group_neighbours(org, item)
    drawn = {group.key: len(group.neighbours) for group in choose_drawn(groups, 24)}
    assert drawn == {"custom": 10, "standard": 10, "up": 4}
    assert count_objects(groups) == 64


def test_who_changed_a_record_is_listed_but_not_drawn() -> None:
    graph = a_schema(
        an_object("User", a_name()),
        an_object("Account", a_lookup("CreatedById", "User"), a_lookup("LastModifiedById", "User")),
        an_object("Case", a_lookup("OwnerId", "User"), a_lookup("CreatedById", "User")),
    )
    org = an_org(graph)
    item = graph.get("User")
    assert item is not None
    groups = {group.key: [neighbour.name for neighbour in group.neighbours] for group in group_neighbours(org, item)}
    assert groups == {"standard": ["Case"], "audit": ["Account"]}
    diagram, _ = draw(org, "User", 24)
    assert [(node.neighbour.name, node.label.text) for node in diagram.nodes] == [("Case", "OwnerId +1")]


def test_related_objects_are_filtered_by_name_label_or_field() -> None:
    org = an_org(a_crm_schema())
    item = org.graph.get("Account")
    assert item is not None
    groups = group_neighbours(org, item)
    for text, names in {"customer": ["Invoice__c"], "CONT": ["Contact"], "nothing": []}.items():
        found = [neighbour.name for group in filter_groups(groups, text) for neighbour in group.neighbours]
        assert found == names, text


@pytest.mark.parametrize(
    ("label", "lines"),
    [
        ("Account", ["Account"]),
        ("Account Contact Relation", ["Account", "Contact", "Relation"]),
        ("AccountContactRelation", ["AccountContact", "Relation"]),
        ("Invoice_Line__c", ["Invoice_", "Line__c"]),
        ("", [""]),
    ],
)
def test_a_label_is_broken_between_words(label: str, lines: list[str]) -> None:
    assert wrap(label, 124) == lines


def test_a_label_without_words_is_shortened() -> None:
    (line,) = wrap("x" * 80, 124)
    assert "…" in line
    assert text_width(line, CENTER_SIZE) <= 124
