"""How large the picture of a page is: as wide as asked for, unless the page is very long."""

MAX_RATIO = 8  # of height to width of a picture: a longer page is drawn narrower
MAX_HEIGHT = 8_000  # pixels
Size = tuple[float, float]


def find_scale(size: Size, width: int) -> float:
    """Return how many pixels a unit of the page has in a picture that is `width` wide, less for a very long page."""
    return min(width / size[0], min(MAX_RATIO * width, MAX_HEIGHT) / size[1])


def fit(size: Size, width: int) -> tuple[int, int]:
    """Return the size of such a picture."""
    scale = find_scale(size, width)
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))
