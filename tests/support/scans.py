"""Scanned documents: pages that are pictures of text."""

import io

from PIL import Image, ImageDraw, ImageFont

# Pixels and dots per inch: a strip that is quick to recognize, and a whole A4 page.
STRIP = (1_300, 420, 300)
A4 = (1_240, 1_754, 150)


def scanned_pdf(*pages: str, size: tuple[int, int, int] = STRIP) -> bytes:
    """A PDF whose pages are pictures, one or more lines of text on each."""
    width, height, resolution = size
    images = [_picture(text, width, height) for text in pages]
    buffer = io.BytesIO()
    images[0].save(buffer, "PDF", save_all=True, append_images=images[1:], resolution=resolution)
    return buffer.getvalue()


def _picture(text: str, width: int, height: int) -> Image.Image:
    image = Image.new("L", (width, height), 255)
    drawing, font = ImageDraw.Draw(image), ImageFont.load_default(40)
    for number, line in enumerate(text.splitlines()):
        drawing.text((60, 60 + 60 * number), line, fill=0, font=font)
    return image
