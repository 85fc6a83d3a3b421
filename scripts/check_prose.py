"""Find wording and names that a native reader would stumble over, and say what to write instead.

    scripts/check_prose.py [PATH ...]

Reads Markdown, HTML and JavaScript (without code spans), and comments, docstrings, messages and names in Python. Prints one line for each
finding and exits with 1 if there is one. A line that must stay as it is, because a contract prints it or other packages use the name,
carries the comment `# prose: ok` (in Markdown and HTML `<!-- prose: ok -->`). Files that start with a "Generated" comment are skipped: fix
their source instead.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

DEFAULT_PATHS = (
    "src",
    "benchmarks",
    "scripts",
    "docs",
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "RELEASING.md",
    ".github",
)
SUFFIXES = {".py", ".md", ".html", ".js"}
MARKER = "prose: ok"
GENERATED = "<!-- Generated"
MARKUP_CODE = re.compile(r"`[^`]*`|\{%.*?%\}|\{\{.*?\}\}")

WORDING = [line.split("\t") for line in Path(__file__).with_name("wording.tsv").read_text("utf-8").splitlines()[1:]]
PROSE = [(re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), instead) for pattern, instead in WORDING]

SUPERLATIVE = re.compile(
    r"_*(?:MOST|LEAST|LONGEST|SHORTEST|LARGEST|SMALLEST|BIGGEST|FEWEST|HIGHEST|LOWEST|DEEPEST|WIDEST|LATEST|EARLIEST|OLDEST)(?:_|$)"
)
PARTICIPLE = re.compile(
    r"_*(?:\w{2,}ed|shown|found|known|held|made|taken|given|kept|said|told|written|chosen|drawn|meant|built"
    r"|sent|done|gone|seen|left|brought|bound|caught|laid|lost|paid|sought|sold|spent|spoken|stuck|thought|thrown|torn|worn|wound)"
)
VERBS_IN_ED = frozenset("bleed breed embed exceed feed need proceed seed shed shred speed succeed wed".split())


@dataclass(frozen=True, order=True)
class Finding:
    """One wording or name to change."""

    path: str
    line: int
    wording: str
    instead: str

    def __str__(self) -> str:
        return f'{self.path}:{self.line}: "{self.wording}": {self.instead}'


def check_file(path: Path) -> list[Finding]:
    """Return the findings in one file, in the order of its lines."""
    source = path.read_text(encoding="utf-8")
    if source.startswith(GENERATED):
        return []
    lines = source.splitlines()
    found = check_python(source, str(path)) if path.suffix == ".py" else check_markup(source, str(path))
    return sorted(finding for finding in found if MARKER not in lines[finding.line - 1])


def check_markup(source: str, path: str) -> Iterator[Finding]:
    """Check the text of Markdown, HTML or JavaScript, without code blocks, inline code and template tags."""
    is_code = False
    for number, line in enumerate(source.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code:
            yield from _check_text(MARKUP_CODE.sub("``", line), path, number)


def check_python(source: str, path: str) -> Iterator[Finding]:
    """Check the comments, strings and names of a Python module."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield from _check_text(token.string, path, token.start[0])
    for node in ast.walk(ast.parse(source)):
        yield from _check_node(node, path, source)


def _check_node(node: ast.AST, path: str, source: str) -> Iterator[Finding]:
    match node:
        case ast.Constant(value=str(text)) if " " in text:
            yield from _check_string(node, text, path, source)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            if _is_participle(name):
                yield Finding(
                    path,
                    node.lineno,
                    name,
                    "name what it does (a verb) or what it returns (a noun); is_/has_ for booleans",
                )
        case ast.Module(body=body) | ast.ClassDef(body=body):
            for statement in body:
                yield from _check_constants(statement, path)


def _check_string(node: ast.Constant, text: str, path: str, source: str) -> Iterator[Finding]:
    """Check a string literal; one over several lines may carry the marker on any of them."""
    last = node.end_lineno or node.lineno
    if any(MARKER in line for line in source.splitlines()[node.lineno - 1 : last]):
        return
    for offset, line in enumerate(text.splitlines()):
        yield from _check_text(line, path, min(node.lineno + offset, last))


def _check_text(text: str, path: str, line: int) -> Iterator[Finding]:
    for pattern, instead in PROSE:
        for match in pattern.finditer(text):
            yield Finding(path, line, match[0], f"write: {instead}")


def _check_constants(statement: ast.stmt, path: str) -> Iterator[Finding]:
    """Check the constants that a module or class assigns."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    for target in targets:
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        if isinstance(target, ast.Tuple) and all(_is_constant(name) for name in names):
            yield Finding(path, statement.lineno, ast.unparse(target), "assign one constant per line")
        for name in names:
            if isinstance(name, ast.Name) and SUPERLATIVE.match(name.id):
                yield Finding(path, statement.lineno, name.id, "name limits MAX_... or MIN_...")


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id.isupper()


def _is_participle(name: str) -> bool:
    bare = name.strip("_")
    return "_" not in bare and bare not in VERBS_IN_ED and bool(PARTICIPLE.fullmatch(name))


def collect_files(paths: Sequence[str]) -> Iterator[Path]:
    """List the files to check; folders are searched for the suffixes above."""
    for path in map(Path, paths):
        if path.is_dir():
            yield from sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES)
        else:
            yield path


def main(arguments: Sequence[str]) -> int:
    """Print the findings; return 1 if there are any."""
    paths = arguments or [path for path in DEFAULT_PATHS if Path(path).exists()]
    found = [finding for file in collect_files(paths) for finding in check_file(file)]
    for finding in found:
        print(finding)
    if found:
        print(f"{len(found)} {'place' if len(found) == 1 else 'places'} to reword.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
