"""Split a documentation page into blocks without the markup of site generators, which no reader sees.

Svelte, Docusaurus, Hugo, Jekyll, MkDocs, MyST and MDX add their own signs to Markdown: ids of headings, shortcodes,
imports, markers of containers. They are hidden before parsing, byte for byte, so that every block stays in its place.
Code is never touched.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyromark

from bedstone.ingest.markdown import OPTIONS, Block, markdown_blocks

HIDDEN = b"\x01"  # stands for a byte that is not shown
GAP = re.compile(r"[ \t]+\x01+(?=[\s.,;:!?)]|$)|\x01+")
ALERT = re.compile(r"^\[!([A-Za-z]+)\][+-]?")  # GitHub, Obsidian
SUSPECT = re.compile(
    rb"\{(?:[#%]|\{[<%]|/\*|:?[ \t]*[#.]|[a-z:]+\}`)|\](?:\([^)\n]{0,200}|:[ \t]+)\{\{|^[ \t>]*(?::::|!!!|\?\?\?)"
    rb"|^(?:import|export)\b|^\([\w.:-]+\)=",
    re.MULTILINE,
)
FENCED_CODE = re.compile(rb"^ {0,3}(`{3,}|~{3,})[^`\n]*\n(?:.*\n)*?(?: {0,3}\1[`~]*[ \t\r]*$|\Z)", re.MULTILINE)
ATTRIBUTE = rb"""(?:[#.][\w:-]+|[\w-]+=(?:"[^"\n]*"|'[^'\n]*'|[\w-]+))"""
SVELTE_BLOCKS = rb"(?:if|each|await|key|snippet)\}"
HEADING_ID = (  # {#id}, {/* id */}, {: #id .class}
    rb"\{#(?!" + SVELTE_BLOCKS + rb")[\w:.-]+\}|\{/\*[ \t]*#?[\w.-]+[ \t]*\*/\}"
    rb"|\{:?[ \t]*(?!#" + SVELTE_BLOCKS + rb")" + ATTRIBUTE + rb"(?:[ \t]+" + ATTRIBUTE + rb")*[ \t]*\}"
)
SPHINX_ROLES = (
    rb"(?:ref|doc|term|numref|eq|any|download|func|class|meth|mod|attr|data|obj|exc|const|envvar|option|confval|abbr"
    rb"|kbd|guilabel|menuselection|file|command|program|pep|rfc|[a-z]+:[a-z]+)"
)
# Without a title of its own, a container shows its kind as the title.
ADMONITIONS = (
    rb"note|tip|info|warning|danger|caution|important|check|success|question|failure|bug|example|quote|abstract"
    rb"|seealso|attention|hint|error|todo"
)
JEKYLL_LINES = (
    rb"(?:include|include_relative|include_cached|highlight|endhighlight|raw|endraw|comment|endcomment|capture"
    rb"|endcapture|assign)"
)
# In each pattern, the groups are hidden.
PATTERNS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        rb"^[ \t]{0,3}#{1,6}[ \t]+\S.*?(" + HEADING_ID + rb")[ \t]*#*[ \t\r]*$",
        rb"^[ \t]{0,3}[^\s#].*?(" + HEADING_ID + rb")[ \t\r]*$(?=\n[ \t]{0,3}(?:=+|-+)[ \t\r]*$)",
        rb"^(\([\w.:-]+\)=)[ \t\r]*$",  # MyST
        rb"^[ \t>]*(:{3,}[ \t]*[\w-]+\[)[^\]\n]*(\])",  # Docusaurus
        rb"^[ \t>]*(:{3,}[ \t]*\{?)(?:" + ADMONITIONS + rb")(\}?)[ \t\r]*$",
        rb"^[ \t>]*(:{3,}[ \t]*(?!(?:" + ADMONITIONS + rb")\}?[ \t\r]*$)(?:\{[^}\n]*\}|[A-Za-z][\w-]*)?)",
        rb"^[ \t>]*((?:!!!|\?\?\?\+?)[ \t]+)[\w-]+(?:[ \t]+[\w-]+)*[ \t\r]*$",  # MkDocs
        rb"^[ \t>]*((?:!!!|\?\?\?\+?)[ \t]+[\w-]+(?:[ \t]+[\w-]+)*[ \t]+\")[^\"\n]*(\")[ \t\r]*$",
        rb"(\{\{[<%](?!/\*)[^\n{}]{0,200}?\btext=\")[^\"\n{}]+(\"[^\n{}]{0,300}?[>%]\}\})",  # Hugo, with text to show
        rb"(\{\{[<%](?!/\*)[^\n{}]{0,200}?\bterm_id=\")[^\"\n{}]+(\"[^\n{}]{0,300}?[>%]\}\})",
        rb"(\{\{[<%](?!/\*)[^\n]{0,300}?[>%]\}\})",
        rb"(\{%-?[ \t]*(?:link|post_url|data)[ \t]+[^\n%]{1,300}?-?%\})",  # Jekyll
        rb"^[ \t]*(\{%-?[ \t]*" + JEKYLL_LINES + rb"\b[^\n]*%\})[ \t\r]*$",
        rb"(\{%-?[ \t]*raw[ \t]*-?%\})[^\n]*?(\{%-?[ \t]*endraw[ \t]*-?%\})",
        rb"^(import[ \t]+(?:[\w*{$][^;'\"`]{0,500}?[ \t\n]from[ \t]+)?(?:'[^'\n]+'|\"[^\"\n]+\");?)[ \t\r]*$",  # MDX
    )
)
MDX_PATTERNS = (
    re.compile(
        rb"^(export[ \t]+(?:default|const|let|var|function|async|class|\{|\*)[\s\S]{0,4000}?)(?=\n[ \t\r]*\n|\Z)",
        re.MULTILINE,
    ),
    re.compile(rb"(\{/\*[\s\S]{0,2000}?\*/\})"),
)
# GitHub's conditions on the version; pages without the first one may be about the others.
VERSION_CONDITIONS = re.compile(rb"(\{%-?[ \t]*(?:ifversion|elsif|else|endif)\b[^\n%]{0,200}?-?%\})")
QUOTED = re.compile(r"\"([^\"]+)\"")
ROLE = re.compile(rb"(\{" + SPHINX_ROLES + rb"\})`[^`<\n]*?([ \t]*<[^`>\n]*>)?`")
# Template tags make Markdown take a link for text; any word in their place is a valid address.
ADDRESS = re.compile(rb"\]\([ \t]*((?:\([^()\n]*\)|[^()\n])*?\{[{%](?:\([^()\n]*\)|[^()\n])*)\)")
DEFINITION = re.compile(rb"^[ \t]{0,3}\[[^\]\n]+\]:[ \t]+(\{[{%][^\n]*?[%}]\}\S*)", re.MULTILINE)
Span = tuple[int, int]


def page_blocks(source: str, *, is_mdx: bool = False) -> list[Block]:
    """Return the top-level blocks of a page, with the text that a reader of the site sees.

    The ids of headings are made of their whole text, as in indexes that exist.
    """
    data = source.encode()
    hidden = _hide(data, is_mdx=is_mdx) if SUSPECT.search(FENCED_CODE.sub(b"", data)) else data
    blocks = markdown_blocks(source if hidden == data else hidden.decode())
    return [
        _readable(block, data, hidden) if hidden != data or block.plain.startswith("[!") else block for block in blocks
    ]


def readable_source(source: str, *, is_mdx: bool = False) -> str:
    """Return a page as Markdown without the markup of site generators."""
    data = source.encode()
    if not SUSPECT.search(FENCED_CODE.sub(b"", data)):
        return source
    return GAP.sub("", _hide(data, is_mdx=is_mdx).decode())


def _readable(block: Block, data: bytes, hidden: bytes) -> Block:
    plain = ALERT.sub(r"\1", GAP.sub("", block.plain).strip())
    if not block.level:
        return replace(block, plain=plain)
    source = data[block.start : block.end]
    if source == hidden[block.start : block.end]:
        return block
    raw = markdown_blocks(source.decode())[0].plain
    if not plain:  # the heading is a shortcode: its argument says most
        plain = quoted[1] if (quoted := QUOTED.search(raw)) else raw
    return replace(block, plain=" ".join(plain.split()), slug_text=raw)


def _hide(data: bytes, *, is_mdx: bool) -> bytes:
    patterns = [*PATTERNS, ROLE, *(MDX_PATTERNS if is_mdx else ())]
    patterns += [VERSION_CONDITIONS] if b"ifversion" in data else []
    if not any(pattern.search(data) for pattern in (ADDRESS, DEFINITION, *patterns)):
        return data
    hidden = bytearray(data)
    code = list(_code_spans(data.decode()))
    for pattern in (ADDRESS, DEFINITION):
        for start, end in _find_outside(pattern, data, code):
            hidden[start:end] = b"x" * (end - start)
    for pattern in patterns:
        for start, end in _find_outside(pattern, bytes(hidden), code):
            hidden[start:end] = _blank(hidden[start:end])
    return bytes(hidden)


def _blank(text: bytes | bytearray) -> bytes:
    """Return hidden bytes; the ends of lines stay, because they end blocks."""
    return re.sub(rb"[^\n]", HIDDEN, bytes(text))


def _find_outside(pattern: re.Pattern[bytes], data: bytes, code: Sequence[Span]) -> Iterator[Span]:
    """Yield the spans of a pattern's groups outside code."""
    for match in pattern.finditer(data):
        spans = [match.span(number) for number in range(1, pattern.groups + 1) if match[number]]
        # The text of a role looks like code; its name is outside.
        if not any(_overlaps(code, span) for span in (spans[:1] if pattern is ROLE else spans)):
            yield from spans


def _overlaps(code: Sequence[Span], span: Span) -> bool:
    """Return whether a span shares a byte with one of the sorted spans of code."""
    before = bisect_left(code, (span[1],))
    return before > 0 and code[before - 1][1] > span[0]


def _code_spans(source: str) -> Iterator[Span]:
    """Yield where the page has code: blocks and inline."""
    for event, span in pyromark.events_with_range(source, options=OPTIONS):
        kind, detail = next(iter(event.items())) if isinstance(event, dict) else (event, None)
        if kind == "Code" or (kind == "Start" and isinstance(detail, dict) and "CodeBlock" in detail):
            yield span["start"], span["end"]
