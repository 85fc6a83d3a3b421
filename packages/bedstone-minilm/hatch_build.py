"""Makes the model before the wheel is packed."""

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ModelHook(BuildHookInterface):  # type: ignore[type-arg]
    """Runs once per build; an editable install uses the files in place."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the model unless it is there."""
        root = Path(self.root)
        sys.path.insert(0, str(root))
        from make_model import make_model  # noqa: PLC0415

        make_model(root / "src" / "bedstone_minilm")
