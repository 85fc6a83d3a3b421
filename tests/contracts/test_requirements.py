import re
from pathlib import Path

from contracts.requirements import REQUIREMENTS


def test_every_requirement_is_proved_by_a_test() -> None:
    tests = "\n".join(path.read_text() for path in Path(__file__).parents[1].rglob("test_*.py"))
    proved = {name for call in re.findall(r"@proves\(([^)]*)\)", tests) for name in re.findall(r'"([^"]+)"', call)}
    assert not set(REQUIREMENTS) - proved
