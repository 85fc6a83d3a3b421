"""Draw the pages of an original as pictures, in the worker process: PDF, pictures and SVG drawings."""

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from bedstone.ingest.extraction import ExtractionError, ReadOptions
from bedstone.ingest.page_words import PageWords
from bedstone.ingest.picture_sizes import Size, find_scale, fit

if TYPE_CHECKING:
    from PIL.Image import Image

RENDERING_VERSION = 1  # a higher one makes all pictures anew
MAX_PAGES = 20_000  # that are measured and drawn
MAX_STRETCH = 500  # of the longer side of a page to the shorter one
WEBP_QUALITY = 80
WEBP_METHOD = 2  # 29 ms for a page of text 900 pixels wide; 4 takes 59 ms and saves 3 % of its 81 KB
ORIENTATION = 0x0112  # the EXIF tag
SIDEWAYS = range(5, 9)  # its values for pictures that lie on their side
DEFAULT_SIZE = (612.0, 792.0)  # points, of a page that cannot be measured


class Original(Protocol):
    """An open original; `notes` says what its pictures do not show."""

    notes: Sequence[str]

    def sizes(self) -> list[Size]:
        """Return the width and height of each page."""
        ...

    def draw(self, page: int, width: int) -> "Image":
        """Return a page, counted from 1, about so many pixels wide."""
        ...

    def words(self, page: int) -> PageWords:
        """Return where the words of a page stand."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


def is_drawable(format_name: str) -> bool:
    """Return whether the pages of files in a format can be drawn."""
    return format_name in ("pdf", "jpg", "png", "svg")


@contextmanager
def open_original(path: Path, format_name: str) -> Iterator[Original]:
    """Open an original, or use the one that is still open: a reader asks for one page after another."""
    global _open  # noqa: PLW0603 - one process serves one original at a time
    key = (path, path.stat().st_mtime_ns, format_name)
    if _open is None or _open[0] != key:
        if _open is not None:
            _open[1].close()
            _open = None
        _open = (key, _opener(format_name)(path))
    yield _open[1]


_open: tuple[tuple[Path, int, str], Original] | None = None


def _opener(format_name: str) -> Any:
    if format_name == "svg":
        from bedstone.ingest.svg_rendering import SvgOriginal  # noqa: PLC0415 - loads the XML parser

        return SvgOriginal
    return PdfOriginal if format_name == "pdf" else PictureOriginal


def encode(image: "Image") -> bytes:
    """Return a picture as WebP."""
    target = io.BytesIO()
    image.convert("RGB").save(target, "WEBP", quality=WEBP_QUALITY, method=WEBP_METHOD)
    return target.getvalue()


class PdfOriginal:
    """A PDF: rotation and crop boxes are as in any viewer, form fields and comments are drawn."""

    def __init__(self, path: Path) -> None:
        from bedstone.ingest.formats.pdf.reader import open_document  # noqa: PLC0415 - loads pdfium

        self._document = open_document(path, ReadOptions())
        excess = len(self._document) - MAX_PAGES
        self.notes = [f"Only the first {MAX_PAGES:,} pages are shown; {excess:,} more are not."] if excess > 0 else []

    def sizes(self) -> list[Size]:
        """Return the sizes in points; a page that cannot be drawn counts as large as the one before."""
        import pypdfium2  # noqa: PLC0415

        sizes: list[Size] = []
        for number in range(min(len(self._document), MAX_PAGES)):
            try:
                width, height = self._document.get_page_size(number)
            except pypdfium2.PdfiumError:
                width = height = 0.0
            sizes.append((width, height) if _is_plausible((width, height)) else (sizes or [DEFAULT_SIZE])[-1])
        return sizes

    def draw(self, page: int, width: int) -> "Image":
        """Draw a page."""
        with self._page(page) as found:
            size = found.get_size()
            if not _is_plausible(size):
                raise ExtractionError("damaged", "The page has no size, or one that cannot be drawn.")
            bitmap = found.render(scale=find_scale(size, width), rev_byteorder=True, limit_image_cache=True)
            image: Image = bitmap.to_pil()
            return image

    def words(self, page: int) -> PageWords:
        """Return the words of the text layer."""
        from bedstone.ingest.formats.pdf.words import page_words  # noqa: PLC0415

        with self._page(page) as found:
            return page_words(found)

    @contextmanager
    def _page(self, number: int) -> Iterator[Any]:
        import pypdfium2  # noqa: PLC0415

        _check_page(number, min(len(self._document), MAX_PAGES))
        try:
            page = self._document[number - 1]
        except pypdfium2.PdfiumError:
            raise ExtractionError("damaged", "The page is corrupt.") from None
        try:
            yield page
        finally:
            page.close()

    def close(self) -> None:
        """Close the document."""
        self._document.close()


class PictureOriginal:
    """A bitmap, upright as its camera noted it; only TIFF has several pages, the others show their first frame."""

    notes: Sequence[str] = ()

    def __init__(self, path: Path) -> None:
        self._path = path

    def sizes(self) -> list[Size]:
        """Return the sizes in pixels."""
        with self._picture() as picture:
            frames = _frames(picture)
            self.notes = [f"Only the first {MAX_PAGES:,} pages are shown."] if frames > MAX_PAGES else ()
            sizes = []
            for number in range(min(frames, MAX_PAGES)):
                picture.seek(number)
                sizes.append(_upright_size(picture))
            return sizes

    def draw(self, page: int, width: int) -> "Image":
        """Draw a page, never larger than it is."""
        from PIL import Image, ImageOps  # noqa: PLC0415

        with self._picture() as picture:
            _check_page(page, min(_frames(picture), MAX_PAGES) if page > 1 else 1)
            picture.seek(page - 1)
            size, orientation = _upright_size(picture), _orientation(picture)
            target = fit(size, min(width, round(size[0])))
            if orientation in SIDEWAYS:
                target = (target[1], target[0])
            picture.draft("RGB", target)  # a JPEG is decoded no larger than it must be
            small = _flatten(picture).resize(target, Image.Resampling.LANCZOS, reducing_gap=2.0)
            small.getexif()[ORIENTATION] = orientation
            return ImageOps.exif_transpose(small)

    def words(self, page: int) -> PageWords:
        """Return no words: a picture has no text layer."""
        _check_page(page, page)
        return PageWords(1)

    @contextmanager
    def _picture(self) -> Iterator["Image"]:
        from PIL import Image, UnidentifiedImageError  # noqa: PLC0415

        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            with Image.open(self._path) as picture:
                yield picture
        except (Image.DecompressionBombError, Image.DecompressionBombWarning):
            raise ExtractionError("too_large", "The picture has too many pixels.") from None
        except (UnidentifiedImageError, OSError, EOFError, SyntaxError, ValueError):
            raise ExtractionError("damaged", "Not a picture, or the file is corrupt.") from None

    def close(self) -> None:
        """Do nothing: the file is open only while it is drawn."""


def _is_plausible(size: Size) -> bool:
    return min(size) > 0 and max(size) <= MAX_STRETCH * min(size)


def _check_page(number: int, count: int) -> None:
    if not 1 <= number <= count:
        raise ExtractionError("page_missing", f"Page {number:,} does not exist.")


def _frames(picture: "Image") -> int:
    return int(getattr(picture, "n_frames", 1)) if picture.format == "TIFF" else 1


def _orientation(picture: "Image") -> int:
    """Return how the camera was held; Pillow turns TIFF itself."""
    return 1 if picture.format == "TIFF" else int(picture.getexif().get(ORIENTATION, 1))


def _upright_size(picture: "Image") -> Size:
    width, height = picture.size
    return (float(height), float(width)) if _orientation(picture) in SIDEWAYS else (float(width), float(height))


def _flatten(picture: "Image") -> "Image":
    """Return a picture on white; one with more than 8 bits for each pixel with the range that it uses."""
    from PIL import Image  # noqa: PLC0415

    picture.load()
    if picture.mode.startswith(("I", "F")):
        grey = picture.convert("F")
        low, high = (float(level) for level in grey.getextrema())  # type: ignore[arg-type]
        scale = 255 / max(high - low, 1e-9)
        return grey.point(lambda level: level * scale - low * scale).convert("L")
    if picture.has_transparency_data:
        layer = picture.convert("RGBA")
        flat = Image.new("RGB", layer.size, "white")
        flat.paste(layer, mask=layer.getchannel("A"))
        return flat
    return picture.convert("RGB")
