"""Write the settings of single corpora into a configuration file, and leave the rest of it as it is."""

import json
import re
import tomllib
from itertools import pairwise
from pathlib import Path

import platformdirs

from bedstone.errors import InvalidSetting
from bedstone.settings.loading import CONFIG_NAME
from bedstone.settings.sections import CorpusTuning, Settings

TABLE = "[[search.tuning]]"
HEADER = re.compile(r"^\s*\[", re.MULTILINE)


def tuning_file(settings: Settings) -> Path:
    """Return the configuration file in force, or the user's: a new one in the working folder would move the data."""
    if settings.config_files:
        return settings.config_files[0]
    return Path(platformdirs.user_config_dir("bedstone", appauthor=False)) / CONFIG_NAME


def format_tuning(tuning: CorpusTuning) -> str:
    """Return the settings of a corpus as a configuration file has them."""
    values = tuning.model_dump(exclude_none=True)
    return "\n".join([TABLE, *(f"{key} = {json.dumps(value)}" for key, value in values.items())]) + "\n"


def write_tuning(file: Path, tuning: CorpusTuning) -> None:
    """Put the settings of a corpus into a configuration file, in place of those it has for this corpus."""
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    kept = _without(text, tuning.corpus)
    written = "\n\n".join([*filter(None, [kept.rstrip()]), format_tuning(tuning)])
    before, after = _parse(text), _parse(written)
    if after is None or _others(before or {}, tuning.corpus) != _others(after, tuning.corpus):
        raise InvalidSetting(f"Cannot edit {file}. Add these lines yourself:\n{format_tuning(tuning)}")
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.tmp")
    draft.write_text(written, encoding="utf-8")
    if file.exists():
        draft.chmod(file.stat().st_mode)
    draft.replace(file)


def _without(text: str, corpus: str) -> str:
    """Return a file without the table of a corpus; a table ends where the next one begins."""
    starts = [match.start() for match in HEADER.finditer(text)]
    kept = text[: starts[0]] if starts else text
    for start, end in pairwise([*starts, len(text)]):
        block = text[start:end]
        tables = (_parse(block) or {}).get("search", {})
        entries = tables.get("tuning") if isinstance(tables, dict) else None
        is_replaced = block.strip().startswith(TABLE) and entries and entries[0].get("corpus") == corpus
        kept += _trailing_comments(block) if is_replaced else block
    return kept


def _trailing_comments(block: str) -> str:
    """Return the comments at the end of a table: they are about the next one."""
    lines = block.splitlines(keepends=True)
    last = max(number for number, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#"))
    return "".join(lines[last + 1 :])


def _parse(text: str) -> dict[str, object] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _others(tree: dict[str, object], corpus: str) -> dict[str, object]:
    """Return everything but the settings of a corpus."""
    search = tree.get("search")
    if not isinstance(search, dict):
        return tree
    entries = [item for item in search.get("tuning", []) if item.get("corpus") != corpus]
    others = {key: value for key, value in search.items() if key != "tuning"}
    rest = {key: value for key, value in tree.items() if key != "search"}
    return rest | ({"search": others | ({"tuning": entries} if entries else {})} if others or entries else {})
