"""Resolve every dependency as wheels for each platform the README names: `make platforms`; needs the package index."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
# uv's macOS is version 13.
PLATFORMS = {
    "x86_64-unknown-linux-gnu": PYTHONS,
    "aarch64-unknown-linux-gnu": PYTHONS,
    "x86_64-unknown-linux-musl": PYTHONS,
    "aarch64-unknown-linux-musl": PYTHONS,
    "x86_64-apple-darwin": PYTHONS,
    "aarch64-apple-darwin": PYTHONS,
    "x86_64-pc-windows-msvc": PYTHONS,
}
MODEL = ROOT / "packages" / "bedstone-minilm" / "pyproject.toml"
# What has no wheel there; the package itself installs and says what is missing.
WITHOUT_OCR = {"aarch64-unknown-linux-musl"}
WITHOUT_MODEL = {"x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"}
WITHOUT_MODEL_ON = {("x86_64-apple-darwin", "3.14"), ("aarch64-apple-darwin", "3.14")}


def resolves(project: Path, platform: str, python: str, *extras: str) -> bool:
    """Whether every dependency has a wheel."""
    command = ["uv", "pip", "compile", "--quiet", "--only-binary", ":all:", "--python-platform", platform]
    command += ["--python-version", python, *(part for extra in extras for part in ("--extra", extra)), str(project)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603 - our own arguments


def main() -> None:
    failures = 0
    for platform, pythons in PLATFORMS.items():
        for python in pythons:
            has_model = platform not in WITHOUT_MODEL and (platform, python) not in WITHOUT_MODEL_ON
            expected = (True, platform not in WITHOUT_OCR, has_model)
            project = ROOT / "pyproject.toml"
            found = (
                resolves(project, platform, python),
                resolves(project, platform, python, "ocr"),
                resolves(MODEL, platform, python),
            )
            marks = ", ".join(
                f"{part} {'yes' if has else 'no'}" for part, has in zip(("base", "ocr", "model"), found, strict=True)
            )
            failures += found != expected
            print(f"{platform:28} {python}: {marks}{'' if found == expected else '  <- not as expected'}")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
