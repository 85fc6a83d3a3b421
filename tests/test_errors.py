"""The error tree in `errors.py` is drawn by hand; it has every error of the project, each defined once."""

import ast
import re
from collections import Counter
from pathlib import Path

import bedstone
from bedstone import errors

SOURCE = Path(bedstone.__file__).parent


def error_classes() -> Counter[str]:
    """Return the names of all subclasses of `BedstoneError`, and how often each is defined."""
    classes = [
        (node.name, {base.id for base in node.bases if isinstance(base, ast.Name)})
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    found = {"BedstoneError"}
    while more := {name for name, bases in classes if bases & found} - found:
        found |= more
    return Counter(name for name, bases in classes if name == "BedstoneError" or bases & found)


def test_the_tree_has_every_error_and_each_is_defined_once() -> None:
    defined = error_classes()
    assert {name: count for name, count in defined.items() if count > 1} == {}
    tree = (errors.__doc__ or "").partition("\n\n")[2]
    assert set(re.findall(r"\b[A-Z]\w+", tree)) == set(defined)


def test_an_error_is_named_after_its_class_unless_it_has_a_code() -> None:
    class NoSuchThing(errors.NotFound):
        pass

    class Special(NoSuchThing):
        code = "SPECIAL"

    class Plain(Special):
        pass

    assert (NoSuchThing.code, Special.code, Plain.code) == ("no_such_thing", "SPECIAL", "plain")
