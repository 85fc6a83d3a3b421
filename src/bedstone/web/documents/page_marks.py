"""Draw over the picture of a page: a frame around the passage that is cited, and the words that were found."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedstone.search.matching import Matcher
from bedstone.services.knowledge.errors import PageNotFound
from bedstone.web.documents.reading import page_texts

if TYPE_CHECKING:
    from bedstone.ingest.locating import Box
    from bedstone.ingest.page_words import PageWords
    from bedstone.services.knowledge.records import FileDocument
    from bedstone.services.knowledge.service import KnowledgeBase

WIDTH = 612.0  # of the drawing, in the unit of its lines: the points of a letter
PADDING = 9.0  # between a passage and its frame
WORD_PADDING = 1.5
MAX_WORDS = 400
MAX_SKIPPED = 4.0  # times the height of a line, between two lines in one frame
# Their colours are here too, for browsers that show the drawing as a picture of its own.
FRAME = '<rect class="page-passage" fill="none" stroke="#b4530f" stroke-width="2.5" rx="6" {place}/>'
WORD = '<rect class="page-found" fill="#ffd666" fill-opacity=".55" {place}/>'
DRAWING = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}">{marks}</svg>'


@dataclass(frozen=True)
class Area:
    """A rectangle of the drawing."""

    left: float
    top: float
    right: float
    bottom: float

    def __or__(self, other: "Area") -> "Area":
        return Area(
            min(self.left, other.left),
            min(self.top, other.top),
            max(self.right, other.right),
            max(self.bottom, other.bottom),
        )

    def contains(self, other: "Area") -> bool:
        """Return whether the middle of another area is in this one."""
        x, y = (other.left + other.right) / 2, (other.top + other.bottom) / 2
        return self.left <= x <= self.right and self.top <= y <= self.bottom

    def grown(self, by: float, height: float) -> "Area":
        """Return a larger area that does not leave the page."""
        left, top = max(2.0, self.left - by), max(2.0, self.top - by)
        return Area(left, top, min(WIDTH - 2, self.right + by), min(height - 2, self.bottom + by))

    def __str__(self) -> str:
        width, height = self.right - self.left, self.bottom - self.top
        return f'x="{self.left:.1f}" y="{self.top:.1f}" width="{max(width, 0):.1f}" height="{max(height, 0):.1f}"'


def draw_marks(base: "KnowledgeBase", document: "FileDocument", page: int, chunk_id: str, query: str) -> str:
    """Return a drawing in the shape of a page, with marks where its text is known."""
    sizes = base.originals.page_sizes(document)
    if not 0 < page <= len(sizes):
        raise PageNotFound(f"Page {page:,} of {document.filename} does not exist.", document_id=document.id)
    width, height = sizes[page - 1]
    height *= WIDTH / width
    frames = frame_lines(_lines(base, document, page, chunk_id, height))
    words = _found_words(base, document, page, query) if query else []
    if frames:
        words = [word for word in words if any(frame.contains(word) for frame in frames)]
    marks = [WORD.format(place=word.grown(WORD_PADDING, height)) for word in join_words(words[:MAX_WORDS])]
    marks += [FRAME.format(place=frame.grown(PADDING, height)) for frame in frames]
    return DRAWING.format(width=WIDTH, height=height, marks="".join(marks))


def frame_lines(lines: Iterable[Area]) -> list[Area]:
    """Return an area around the lines of each column."""
    frames: list[Area] = []
    last: Area | None = None
    for line in lines:
        if last is not None and _goes_on(last, line):
            frames[-1] |= line
        else:
            frames.append(line)
        last = line
    return frames


def _goes_on(last: Area, line: Area) -> bool:
    """Return whether a line stands below or beside the one before it, in the same column."""
    height = max(last.bottom - last.top, line.bottom - line.top)
    is_beside = min(last.bottom, line.bottom) - max(last.top, line.top) > 0
    is_below = last.top < line.top and line.top - last.bottom < MAX_SKIPPED * height
    return is_beside or (is_below and line.left < last.right and last.left < line.right)


def join_words(words: Iterable[Area]) -> list[Area]:
    """Return words in a row as one area."""
    joined: list[Area] = []
    for word in words:
        last = joined[-1] if joined else None
        height = word.bottom - word.top
        if last is not None and abs(last.top - word.top) < height / 2 and 0 <= word.left - last.right < height:
            joined[-1] = last | word
        else:
            joined.append(word)
    return joined


def _lines(base: "KnowledgeBase", document: "FileDocument", page: int, chunk_id: str, height: float) -> list[Area]:
    heads = [head for head in base.contents.heads(document.id) if head.id == chunk_id]
    texts = [part for stored in base.contents.read(heads) for part in page_texts(stored)]
    found = base.originals.boxes(document, page, [text for number, text in texts if number in (None, page)])
    return [_scale(box, height) for boxes in found for box in boxes]


def _scale(box: "Box", height: float) -> Area:
    return Area(box.x * WIDTH, box.y * height, (box.x + box.w) * WIDTH, (box.y + box.h) * height)


def _found_words(base: "KnowledgeBase", document: "FileDocument", page: int, query: str) -> Sequence[Area]:
    words: PageWords | None = base.originals.words(document, page)
    if words is None:
        return []
    from bedstone.ingest.page_words import WIDTH as UNITS  # noqa: PLC0415 - for pictures only

    matcher, scale = Matcher(query), WIDTH / UNITS
    return [
        Area(word.x * scale, word.y * scale, (word.x + word.width) * scale, (word.y + word.height) * scale)
        for word in words.words
        if matcher.find(word.text)
    ]
