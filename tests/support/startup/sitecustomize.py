"""Add noise to the embedder of a process; Python imports this at startup when its folder is on PYTHONPATH."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))

from support.noise import patch_on_import

sys.path.pop()
patch_on_import()
