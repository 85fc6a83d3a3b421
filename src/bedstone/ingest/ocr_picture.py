"""Prepare a picture for OCR: clean, upright and large enough; and tell where its points are in the original."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bedstone.ingest.page_words import WIDTH, PageWords, Word
from bedstone.ingest.text_slope import find_slope, measure_text_height

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_SIDE = 6_000  # pixels: larger pictures are scaled down
# Small pictures are scaled up, the narrowest by three; those with large letters by less.
MIN_WIDTH = 1_000
SMALL_WIDTH = 900
MIN_SMALL_SCALE = 1.5
# Pixels from the top of a tall letter to the bottom of a low one: text below the first height is scaled up to the
# second. Text of 11 points has 17 pixels at 150 dpi.
MIN_TEXT_HEIGHT = 14.0
GOOD_TEXT_HEIGHT = 20.0
MAX_SCALE = 4.0
MAX_SCALED_PIXELS = 12_000_000
LIGHTING_SIDE = 400  # pixels of the reduced picture that the lighting is measured on
MIN_PAPER_LEVEL = 100
MAX_DARK_LEVEL = 110  # of most of a picture with bright letters on a dark ground
MAX_INK_LEVEL = 140
# Noise: the share of the ink in pixels without a neighbour, and how much neighbours on paper differ.
MIN_SPECKS = 0.05
MIN_GRAIN = 25.0
MIN_INK_SHARE = 0.01  # of the picture; specks on paler text say nothing
MIN_NOISY_SIDE = 1_000  # pixels: letters of smaller pictures are lost with the noise
NOISE_STEP = 3  # every third row is measured
# Ruled lines: pixels, the share of the picture (one tenth), and the thickness from which they are not lines.
MIN_LINE_LENGTH = 100
LINE_FRACTION = 10
MAX_LINE_THICKNESS = 10
MIN_TURN = 0.8  # degrees: Tesseract reads what is less tilted as well as straight text
QUARTER = 90


@dataclass(frozen=True)
class Placement:
    """How a picture was scaled, then turned counterclockwise, on a canvas that holds all of it."""

    original: tuple[int, int]
    scale: float = 1.0
    degrees: float = 0.0

    def find(self, words: Iterable[Word], size: tuple[int, int]) -> PageWords:
        """Return words, whose boxes are in pixels of the prepared picture of a size, as words of the original."""
        unit = WIDTH / self.original[0]
        found = []
        for word in words:
            corners = [
                self._point(x, y, size) for x in (word.x, word.x + word.width) for y in (word.y, word.y + word.height)
            ]
            left, right = _within((x for x, _ in corners), self.original[0])
            top, bottom = _within((y for _, y in corners), self.original[1])
            sides = (round(side * unit) for side in (left, top, right - left, bottom - top))
            found.append(Word(word.text, *sides))
        return PageWords(max(1, round(self.original[1] * unit)), found)

    def _point(self, x: float, y: float, size: tuple[int, int]) -> tuple[float, float]:
        angle = math.radians(self.degrees)
        right, down = x - size[0] / 2, y - size[1] / 2
        back_right = right * math.cos(angle) - down * math.sin(angle)
        back_down = right * math.sin(angle) + down * math.cos(angle)
        return back_right / self.scale + self.original[0] / 2, back_down / self.scale + self.original[1] / 2


@dataclass(frozen=True)
class Prepared:
    """A grey picture for OCR, where it comes from, and what was done to it, in words."""

    image: "Image"
    placement: Placement
    done: tuple[str, ...] = ()

    def turn(self, quarters: int) -> "Prepared":
        """Return the picture turned counterclockwise by quarters."""
        if not quarters:
            return self
        from PIL.Image import Transpose  # noqa: PLC0415

        turns = {1: Transpose.ROTATE_90, 2: Transpose.ROTATE_180, 3: Transpose.ROTATE_270}
        degrees = self.placement.degrees + QUARTER * quarters
        return Prepared(
            self.image.transpose(turns[quarters]),
            replace(self.placement, degrees=degrees),
            (*self.done, f"turned by {QUARTER * (4 - quarters)} degrees"),
        )

    def without_lines(self) -> "Prepared":
        """Return the picture without the long thin lines of tables and forms, which hide the text between them."""
        return replace(self, image=_remove_lines(self.image))


def prepare(picture: "Image") -> Prepared:
    """Return a picture with dark letters on white paper, straight and large enough to recognize."""
    from PIL.Image import Resampling  # noqa: PLC0415

    image, done = flatten(picture), []
    if _is_dark(image):
        image = image.point(lambda level: 255 - level)
        done.append("inverted")
    image = _even_lighting(image)
    if (filtered := _filter_noise(image)) is not None:
        image = filtered
        done.append("noise removed")
    prepared = _resize(Prepared(image, Placement(image.size), tuple(done)), _choose_scale(image))
    degrees = find_slope(prepared.image)
    if abs(degrees) < MIN_TURN:
        return prepared
    image = prepared.image.rotate(degrees, Resampling.BICUBIC, expand=True, fillcolor=255)
    placement = replace(prepared.placement, degrees=degrees)
    return Prepared(image, placement, (*prepared.done, f"deskewed by {abs(degrees):.1f} degrees"))


def prepare_plainly(picture: "Image") -> Prepared:
    """Return a picture as it is, only scaled: where `prepare` corrects what is right."""
    image = flatten(picture)
    return _resize(Prepared(image, Placement(image.size)), _choose_scale(image))


def _resize(prepared: Prepared, scale: float) -> Prepared:
    from PIL.Image import Resampling  # noqa: PLC0415

    if scale == 1.0:
        return prepared
    image = prepared.image
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    scale = size[0] / image.width
    done = (*prepared.done, f"upscaled {scale:.1f} times") if scale > 1 else prepared.done
    resampling = Resampling.LANCZOS if scale > 1 else Resampling.BOX
    return Prepared(image.resize(size, resampling), replace(prepared.placement, scale=scale), done)


def flatten(image: "Image") -> "Image":
    """Return a picture in grey, on white where it is transparent."""
    from PIL import Image as Pictures  # noqa: PLC0415

    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        layer = image.convert("RGBA")
        flat = Pictures.new("RGB", layer.size, "white")
        flat.paste(layer, mask=layer.getchannel("A"))
        image = flat
    return image.convert("L")


def _within(values: Iterable[float], limit: int) -> tuple[float, float]:
    """Return the least and the greatest value, inside the picture."""
    known = sorted(values)
    return max(0.0, min(known[0], limit)), max(0.0, min(known[-1], limit))


def _is_dark(image: "Image") -> bool:
    """Return whether most of a picture is dark: bright letters on a dark ground."""
    small = image.copy()
    small.thumbnail((LIGHTING_SIDE, LIGHTING_SIDE))
    counts = small.histogram()
    return sum(counts[:MAX_DARK_LEVEL]) > sum(counts) / 2


def _choose_scale(image: "Image") -> float:
    """Return the factor that makes small text large enough, and a picture small enough."""
    longest = max(image.size)
    if longest > MAX_SIDE:
        return MAX_SIDE / longest
    height = measure_text_height(image)
    if image.width < MIN_WIDTH and longest < MAX_SIDE // 3:
        factor = 3.0 if image.width < SMALL_WIDTH else 2.0
        if height is not None and height > MIN_TEXT_HEIGHT:
            factor = min(factor, max(MIN_SMALL_SCALE, GOOD_TEXT_HEIGHT / height))
    elif height is not None and height < MIN_TEXT_HEIGHT:
        factor = GOOD_TEXT_HEIGHT / height
    else:
        factor = 1.0
    room = math.sqrt(MAX_SCALED_PIXELS / (image.width * image.height))
    return max(1.0, min(factor, MAX_SCALE, room, MAX_SIDE / longest))


def _filter_noise(image: "Image") -> "Image | None":
    """Return a picture without specks or grain; None if it has none, since filters blur small letters."""
    import numpy as np  # noqa: PLC0415
    from PIL import ImageFilter  # noqa: PLC0415

    pixels = np.asarray(image)
    if min(pixels.shape) < MIN_NOISY_SIDE:
        return None
    rows = pixels[1:-1:NOISE_STEP].astype(np.int16)
    differences = np.abs(2 * rows[:, 1:-1] - rows[:, :-2] - rows[:, 2:])
    dark = pixels < MAX_INK_LEVEL
    alone = dark[1:-1, 1:-1] & ~(dark[:-2, 1:-1] | dark[2:, 1:-1] | dark[1:-1, :-2] | dark[1:-1, 2:])
    ink = int(dark.sum())
    if ink >= MIN_INK_SHARE * dark.size and int(alone.sum()) >= MIN_SPECKS * ink:
        return image.filter(ImageFilter.MedianFilter(3))
    if float(np.median(differences)) >= MIN_GRAIN:
        return image.filter(ImageFilter.GaussianBlur(0.8))
    return None


def _even_lighting(image: "Image") -> "Image":
    """Make the paper white: shadows, yellowed pages and coloured cells hide the text on them."""
    from PIL import Image as Pictures  # noqa: PLC0415
    from PIL import ImageChops, ImageFilter  # noqa: PLC0415

    shrunk = max(2, max(image.size) // LIGHTING_SIDE)
    small = image.resize((max(1, image.width // shrunk), max(1, image.height // shrunk)), Pictures.Resampling.BOX)
    paper = small.filter(ImageFilter.MaxFilter(9)).filter(ImageFilter.MedianFilter(9))
    paper = paper.filter(ImageFilter.GaussianBlur(4)).resize(image.size, Pictures.Resampling.BILINEAR)
    lit = ImageChops.add(image, ImageChops.invert(paper))
    # Bright letters on a dark ground stay as they are: there the paper is not the brightest.
    return Pictures.composite(lit, image, paper.point(lambda level: 255 if level > MIN_PAPER_LEVEL else 0))


def _remove_lines(image: "Image") -> "Image":
    """Remove long thin lines."""
    import numpy as np  # noqa: PLC0415
    from PIL import Image as Pictures  # noqa: PLC0415

    pixels = np.array(image)
    dark = pixels < MAX_INK_LEVEL
    length = max(MIN_LINE_LENGTH, max(image.size) // LINE_FRACTION)
    across, down = _runs(dark, length), _runs(dark.T, length).T
    thick_across, thick_down = _runs(dark, MAX_LINE_THICKNESS), _runs(dark.T, MAX_LINE_THICKNESS).T
    lines = (across & ~thick_down) | (down & ~thick_across)
    if not lines.any():
        return image
    pixels[lines] = 255
    return Pictures.fromarray(pixels)


def _runs(dark: Any, length: int) -> Any:
    """Mark the dark pixels in horizontal runs of at least this length."""
    import numpy as np  # noqa: PLC0415

    height, width = dark.shape
    edges = np.diff(np.pad(dark, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    (rows, starts), (_, ends) = np.nonzero(edges == 1), np.nonzero(edges == -1)
    is_long = ends - starts >= length
    steps = np.zeros((height, width + 1), np.int8)
    steps[rows[is_long], starts[is_long]] = 1
    steps[rows[is_long], ends[is_long]] = -1
    return np.cumsum(steps, axis=1, dtype=np.int8)[:, :width] > 0
