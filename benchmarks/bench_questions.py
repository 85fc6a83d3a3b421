"""How many questions are read right, judged by running the expected query and ours on the demo org.

Questions come from tests/fixtures and, if it is there, from the data folder next to the checkout (or
$BEDSTONE_BENCH_DATA). `--show` prints every question that is not read right.
"""

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from support.question_judge import a_judge, count

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("BEDSTONE_BENCH_DATA", ROOT.parent / "shared" / "data"))


def question_sets() -> dict[str, list[dict[str, Any]]]:
    fixtures = ROOT / "tests" / "fixtures"
    sets = {name: json.loads((fixtures / f"{name}.json").read_text()) for name in ("questions", "plain_questions")}
    dev = DATA / "salesforce" / "nl2soql_dev.json"
    if dev.exists():
        cases = json.loads(dev.read_text())["cases"]
        sets["nl2soql_dev"] = [case for case in cases if not case.get("gold_defect")]
    return sets


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="bedstone-bench-") as folder, a_judge(Path(folder)) as judge:
        print("| set | questions | right | wrong | refused |\n| --- | --- | --- | --- | --- |")
        missed = []
        for name, cases in question_sets().items():
            judged = [judge.judge(case["question"], case["soql"]) for case in cases]
            print(f"| {name} | {len(cases)} | {' | '.join(str(number) for number in count(judged).values())} |")
            missed += [item for item in judged if item.outcome != "right"]
        for item in missed if "--show" in sys.argv else ():
            print(f"\n{item.outcome}: {item.question}\n  ours      {item.soql}\n  expected  {item.expected}")


if __name__ == "__main__":
    main()
