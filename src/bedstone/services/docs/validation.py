"""Validate a documents folder before a build."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from posixpath import dirname, join, normpath
from urllib.parse import unquote

from bedstone.errors import BedstoneError
from bedstone.services.docs.source.folder import DocumentsFolder, SourceFile
from bedstone.services.docs.source.front_matter import LISTING
from bedstone.services.docs.source.globs import glob_pattern
from bedstone.services.docs.source.manifest import Manifest, ignored_words
from bedstone.services.docs.source.prompt_templates import read_templates

INLINE_CODE = re.compile(r"`[^`\n]*`")
INDENTED_CODE = re.compile(r"(?<=\n\n)(?: {4}|\t).*$", re.MULTILINE)
LINK = re.compile(r"\]\((?:<([^>\n]+)>|((?:[^()\s]|\([^()\s]*\))+))")
DEFINITION = re.compile(r"^ {0,3}\[[^\]^][^\]]*\]: +<?([^\s>]+)", re.MULTILINE)
NOT_RELATIVE = re.compile(r"[a-z][a-z0-9+.-]*:|//|/|#|\{|\?", re.IGNORECASE)


@dataclass
class ValidationReport:
    """The result of a validation: `build --strict` fails on errors, not on warnings."""

    files: int = 0
    chunks: int = 0
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def validate_documents(root: Path, on_progress: Callable[[str, int, int], None]) -> ValidationReport:
    """Resolve every manifest, chunk every file and parse every prompt template."""
    folder = DocumentsFolder(root)
    report = ValidationReport()
    paths = folder.paths()
    facets: set[str] = set()
    governed: dict[str, list[str]] = {}
    without_manifest: list[str] = []
    for number, path in enumerate(paths, start=1):
        on_progress("Validating", number, len(paths))
        try:
            file = folder.read(path)
            report.chunks += len(file.document()[1])
        except BedstoneError as error:
            report.errors.append(error.message)
            continue
        report.errors += [f"{path}: {reason}" for reason in file.problems]
        report.files += 1
        facets |= file.facets.keys()
        report.warnings += _check_file(file, root)
        if folder.manifest_problem(path):  # reported with the manifests
            continue
        if (manifest := folder.manifests.nearest(path)) is None:
            without_manifest.append(path)
        else:
            governed.setdefault(manifest.folder, []).append(manifest.relative_path(path))
    if without_manifest:
        others = f" and {len(without_manifest) - 1} more" if len(without_manifest) > 1 else ""
        report.warnings.append(f"{without_manifest[0]}{others}: no manifest found, chunks start at h2")
    manifests, errors = folder.all_manifests()
    report.errors += errors
    report.warnings += ignored_words(manifests)
    for manifest in manifests:
        report.warnings += _check_manifest(manifest, governed.get(manifest.folder, []), facets)
    _, problems, warnings = read_templates(root, folder.template_paths())
    report.errors += map(str, [*problems, *folder.listing.problems])
    report.warnings += warnings
    report.errors = list(dict.fromkeys(report.errors))
    return report


def _check_file(file: SourceFile, root: Path) -> Iterator[str]:
    if file.front.has_invalid_hint:
        yield f"{file.path}: mcp_chunking_hint ignored, it must be JSON with a valid chunk_by"
    text = INLINE_CODE.sub("", INDENTED_CODE.sub("", LISTING.sub("", file.text)))
    targets = [spaced or plain for spaced, plain in LINK.findall(text)] + DEFINITION.findall(text)
    for target in dict.fromkeys(targets):
        if NOT_RELATIVE.match(target):
            continue
        path = normpath(join(dirname(file.path), re.split(r"[#?]", unquote(target))[0]))
        if not path.startswith("..") and not _exists(root / path):
            yield f"{file.path}: broken link to {target}"


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # not a valid file name
        return False


def _check_manifest(manifest: Manifest, governed: list[str], facets: set[str]) -> Iterator[str]:
    name = manifest.name
    for key in manifest.unknown_keys:
        yield f"{name}: unknown key {key}"
    for number, override in enumerate(manifest.overrides):
        if not any(glob_pattern(override.pattern).fullmatch(path) for path in governed):
            yield f"{name}: manifest.overrides[{number}] matches no file: {override.pattern}"
    for key in sorted(manifest.taxonomy.keys() - facets):
        yield f"{name}: taxonomy.{key} is configured, but no file has it"
