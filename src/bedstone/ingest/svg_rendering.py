"""Draw SVG without scripts, other files and the network: what could name them is removed before it is drawn."""

import io
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from bedstone.ingest.archives import parse_xml
from bedstone.ingest.extraction import ExtractionError, Notes
from bedstone.ingest.page_words import PageWords
from bedstone.ingest.picture_sizes import Size, fit

if TYPE_CHECKING:
    from lxml import etree
    from PIL.Image import Image

MAX_BYTES = 20_000_000
SVG = "{http://www.w3.org/2000/svg}"
DROPPED = frozenset({"script", "foreignObject", "iframe", "audio", "video", "handler", "listener"})
# The rasteriser reads files that an address names, so the only ones left are inside the drawing.
SAFE_ADDRESS = re.compile(r"\s*(?:#|data:image/(?:png|jpeg|jpg|gif|webp)[;,])", re.IGNORECASE)
OUTSIDE = re.compile(r"@import[^;]*;?|url\(\s*[\"']?\s*(?!#)[^\s\"'#)][^)]*\)?", re.IGNORECASE)
FUNCTION = re.compile(r"\b(light-dark|var)\(", re.IGNORECASE)
MAX_FUNCTIONS = 1_000  # of one style
LENGTH = re.compile(r"\s*\+?(\d{0,9}\.?\d{1,9}(?:e[+-]?\d{1,2})?)\s*(px|pt|pc|mm|cm|in|em|ex|)\s*", re.IGNORECASE)
PIXELS = {"": 1, "px": 1, "pt": 96 / 72, "pc": 16, "mm": 96 / 25.4, "cm": 96 / 2.54, "in": 96, "em": 16, "ex": 8}
DPI = 96.0
DEFAULT_SIZE = (300.0, 150.0)  # pixels, as browsers have it
MAX_SIDE = 1e6
NO_FONTS = "The text of the drawing is not shown: the server has no fonts."
LEFT_OUT = "Scripts, web pages inside the drawing and files that it refers to are not shown."
# Most drawings ask for Helvetica or Arial. What the machine lacks is drawn with the first of these that it has.
FONTS = {
    "Arial": "arial.ttf",
    "Liberation Sans": "LiberationSans-Regular.ttf",
    "DejaVu Sans": "DejaVuSans.ttf",
    "Noto Sans": "NotoSans-Regular.ttf",
    "Helvetica": "Helvetica.ttc",
}


class SvgOriginal:
    """A drawing, on white."""

    def __init__(self, path: Path) -> None:
        if path.stat().st_size > MAX_BYTES:
            raise ExtractionError("too_large", "The drawing exceeds the 20 MB limit.")
        self._root = parse_xml(path.read_bytes(), Notes())
        if self._root.tag not in (f"{SVG}svg", "svg"):
            raise ExtractionError("damaged", "Not a drawing, or the file is corrupt.")
        self._size = _size(self._root)
        has_text = next(self._root.iter(f"{SVG}text", "text"), None) is not None
        self.notes: Sequence[str] = [
            *([LEFT_OUT] if _make_safe(self._root) else []),
            *([NO_FONTS] if has_text and _font() is None else []),
        ]
        if self._root.get("viewBox") is None:
            self._root.set("viewBox", f"0 0 {self._size[0]:g} {self._size[1]:g}")

    def sizes(self) -> list[Size]:
        """Return the size in pixels."""
        return [self._size]

    def draw(self, page: int, width: int) -> "Image":
        """Draw the only page."""
        import resvg_py  # noqa: PLC0415 - only the worker process needs it
        from lxml import etree  # noqa: PLC0415
        from PIL import Image  # noqa: PLC0415

        if page != 1:
            raise ExtractionError("page_missing", f"Page {page:,} does not exist.")
        for name, pixels in zip(("width", "height"), fit(self._size, width), strict=True):
            self._root.set(name, str(pixels))
        font = _font()
        try:
            picture = resvg_py.svg_to_bytes(
                svg_string=etree.tostring(self._root, encoding="unicode"),
                background="white",
                dpi=DPI,
                font_family=font,
                serif_family=font,
                sans_serif_family=font,
            )
        except ValueError:
            raise ExtractionError("damaged", "The drawing is not valid, or has too many elements.") from None
        return Image.open(io.BytesIO(picture))

    def words(self, page: int) -> PageWords:
        """Return no words: where the renderer puts them is not known."""
        return PageWords(1)

    def close(self) -> None:
        """Do nothing: the file is read."""


def _make_safe(root: "etree._Element") -> bool:
    """Remove what is not drawn, and every reference to something outside; return whether there was any."""
    was_unsafe = False
    for element in list(root.iter()):
        name = element.tag.rpartition("}")[2] if isinstance(element.tag, str) else None
        if name is None or name in DROPPED:
            above = element.getparent()
            has_substitute = above is not None and str(above.tag).endswith("switch")
            was_unsafe |= name in DROPPED and not has_substitute
            _remove(element)
            continue
        for attribute, value in [(str(name), str(value)) for name, value in element.attrib.items()]:
            is_address = attribute.rpartition("}")[2] in ("href", "src", "base")
            if attribute.lower().startswith("on") or (is_address and not SAFE_ADDRESS.match(value)):
                was_unsafe |= name != "a"  # what a link leads to is never shown
                del element.attrib[attribute]
            elif not is_address and "(" in value:
                was_unsafe |= OUTSIDE.search(value) is not None
                element.set(attribute, _resolve(OUTSIDE.sub("none", value)))
        if name == "style" and element.text:
            was_unsafe |= OUTSIDE.search(element.text) is not None
            element.text = _resolve(OUTSIDE.sub("none", element.text))
    return was_unsafe


def _resolve(css: str) -> str:
    """Replace the functions of CSS that the renderer does not know: the light colour, the value of no variable."""
    for _ in range(MAX_FUNCTIONS):
        found = FUNCTION.search(css)
        if found is None:
            break
        arguments, end = _arguments(css, found.end())
        chosen = arguments[0] if found[1].lower() == "light-dark" else ",".join(arguments[1:])
        css = f"{css[: found.start()]}{chosen.strip() or 'inherit'}{css[end:]}"
    return css


def _arguments(css: str, start: int) -> tuple[list[str], int]:
    """Return the arguments of a function that begin here, and where it ends."""
    arguments, depth, begin = [], 0, start
    for at in range(start, len(css)):
        char = css[at]
        if char == "(":
            depth += 1
        elif char in "),;" and (depth == 0 or char == ";"):
            arguments.append(css[begin:at])
            begin = at + 1
            if char != ",":
                return arguments, at + (char == ")")
        elif char == ")":
            depth -= 1
    return [*arguments, css[begin:]], len(css)


def _remove(element: "etree._Element") -> None:
    """Remove an element, but not the text behind it."""
    above = element.getparent()
    if above is None:
        return
    if element.tail:
        before = element.getprevious()
        if before is not None:
            before.tail = (before.tail or "") + element.tail
        else:
            above.text = (above.text or "") + element.tail
    above.remove(element)


def _size(root: "etree._Element") -> Size:
    """Return the width and height in pixels; those of the view box, or a default, if none are given."""
    given = [_pixels(root.get(name, "")) for name in ("width", "height")]
    view = [_number(part) for part in re.split(r"[\s,]+", root.get("viewBox", "").strip())]
    box = view[2:4] if len(view) == 4 and all(view[2:4]) else None  # noqa: PLR2004
    if not all(given) and box and box[0] and box[1]:
        known = [one / other for one, other in zip(given, box, strict=True) if one and other]
        scale = known[0] if known else 1.0
        given = [box[0] * scale, box[1] * scale]
    width, height = given[0] or DEFAULT_SIZE[0], given[1] or DEFAULT_SIZE[1]
    if max(width, height) > MAX_SIDE:
        scale = MAX_SIDE / max(width, height)
        width, height = max(width * scale, 1e-3), max(height * scale, 1e-3)
    return width, height


def _pixels(text: str) -> float | None:
    found = LENGTH.fullmatch(text)
    return (float(found[1]) * PIXELS[found[2].lower()] or None) if found else None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < float("inf") else None


@lru_cache(maxsize=1)
def _font() -> str | None:
    """Return a family of fonts that this machine has."""
    from PIL import ImageFont  # noqa: PLC0415

    for family, file in FONTS.items():
        try:
            ImageFont.truetype(file)
        except OSError:
            continue
        return family
    return None
