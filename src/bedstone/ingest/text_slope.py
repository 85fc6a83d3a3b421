"""Measure the lines of text in a picture: how far they are tilted, and how high their letters are."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL.Image import Image

SLOPE_SIDE = 1_200  # pixels of the reduced copy that the slope is measured on
MAX_SLOPE = 15.0  # degrees
COARSE = 0.5
FINE = 0.1
MAX_POINTS = 60_000  # of ink
MIN_POINTS = 300
MAX_INK_LEVEL = 140
MAX_INK_SHARE = 0.4  # of the picture: with more it is not a page of text
MIN_GAIN = 1.2  # how much clearer the lines must be at the slope than without it
STRIPS = 24  # columns of the picture that the height of letters is measured in
MIN_BANDS = 12
MIN_BAND = 5  # pixels
MAX_BAND = 120


def find_slope(image: "Image") -> float:
    """Return by how many degrees lines of text go down to the right, 0 if that is not clear.

    Lines may run across or, on a page that lies on its side, up and down.
    """
    import numpy as np  # noqa: PLC0415

    x, y = _ink(image)
    if len(x) < MIN_POINTS:
        return 0.0
    coarse = np.arange(-MAX_SLOPE, MAX_SLOPE + COARSE / 2, COARSE)
    across = [_clarity(x, y, slope) for slope in coarse]
    along = [_clarity(-y, x, slope) for slope in coarse]
    if max(along) > max(across):
        x, y, across = -y, x, along
    best = float(coarse[int(np.argmax(across))])
    fine = np.arange(best - COARSE, best + COARSE + FINE / 2, FINE)
    clarity = [_clarity(x, y, slope) for slope in fine]
    slope = float(fine[int(np.argmax(clarity))])
    if max(clarity) < MIN_GAIN * _clarity(x, y, 0.0) or abs(slope) >= MAX_SLOPE:
        return 0.0
    return round(slope, 1)


def measure_text_height(image: "Image") -> float | None:
    """Return how many pixels a line of text is high, from tall letters to low ones; None without enough text."""
    import numpy as np  # noqa: PLC0415

    dark = np.asarray(image) < MAX_INK_LEVEL
    width = dark.shape[1] // STRIPS
    if not width:
        return None
    heights = []
    for strip in range(STRIPS):
        rows = dark[:, strip * width : (strip + 1) * width].any(axis=1)
        edges = np.flatnonzero(np.diff(np.pad(rows, 1).astype(np.int8)))
        bands = edges[1::2] - edges[::2]
        heights.append(bands[(bands >= MIN_BAND) & (bands <= MAX_BAND)])
    bands = np.sort(np.concatenate(heights))
    if len(bands) < MIN_BANDS:
        return None
    # The median row, not the median band: specks and commas are many, but low.
    rows = np.cumsum(bands)
    return float(bands[int(np.searchsorted(rows, rows[-1] / 2))])


def _ink(image: "Image") -> tuple[Any, Any]:
    """Return where the dark pixels of a reduced copy are; none for a picture that is mostly dark."""
    import numpy as np  # noqa: PLC0415

    small = image.reduce(max(1, max(image.size) // SLOPE_SIDE))
    dark = np.asarray(small) < (MAX_INK_LEVEL + 255) // 2  # reducing makes thin strokes pale
    y, x = np.nonzero(dark)
    if len(x) > MAX_INK_SHARE * dark.size:
        return x[:0], y[:0]
    step = max(1, len(x) // MAX_POINTS)
    return x[::step], y[::step]


def _clarity(x: Any, y: Any, slope: float) -> float:
    """Return how clearly lines stand out in a projection: much ink on some rows, little on the next."""
    import numpy as np  # noqa: PLC0415

    rows = np.rint(y - x * np.tan(np.radians(slope))).astype(np.int64)
    counts = np.bincount(rows - rows.min()).astype(np.float64)
    return float(np.square(np.diff(counts)).sum())
