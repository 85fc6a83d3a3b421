"""A Python environment with packages that extend Bedstone, installed as pip would install them."""

import os
import shutil
import sysconfig
import tomllib
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

OUTSIDE_PACKAGE = Path(__file__).resolve().parents[1] / "outside_package"


@dataclass(frozen=True)
class Environment:
    """A virtual environment: its interpreter, and the folder of its packages."""

    python: Path
    packages: Path

    @property
    def bedstone(self) -> tuple[str, ...]:
        """The command `bedstone` in this environment."""
        return (str(self.python), "-m", "bedstone")

    def install(self, project: Path) -> None:
        """Install a project: copy its packages, and register its entry points."""
        facts = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for package in (path.parent for path in project.glob("*/__init__.py")):
            shutil.copytree(package, self.packages / package.name, ignore=shutil.ignore_patterns("__pycache__"))
        self.register(facts["name"], facts["version"], facts["entry-points"])

    def register(self, name: str, version: str, entry_points: Mapping[str, Mapping[str, str]]) -> None:
        """Write the metadata of a distribution."""
        information = self.packages / f"{name.replace('-', '_')}-{version}.dist-info"
        information.mkdir()
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        lines = []
        for group, points in entry_points.items():
            lines += [f"[{group}]", *(f"{point} = {target}" for point, target in points.items())]
        (information / "entry_points.txt").write_text("\n".join(lines) + "\n")


def create_environment(folder: Path) -> Environment:
    """Create an environment with the packages of this one; worker processes find it too, as they ignore PYTHONPATH."""
    venv.create(folder, symlinks=os.name != "nt")
    base = {"base": str(folder), "platbase": str(folder)}
    packages = Path(sysconfig.get_path("purelib", "venv", vars=base))
    (packages / "here.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    return Environment(Path(sysconfig.get_path("scripts", "venv", vars=base)) / "python", packages)
