"""Make the animated picture of the README: drop a PDF, ask, see the cited page: `make animation`."""

import io
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from support.processes import listening

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "images" / "ask.gif"
MANUAL = ROOT / "demo" / "files" / "porter-workshop-manual.pdf"
QUESTION = "when to replace a brake disc"
SIZE = (1280, 800)
SHOWN = (896, 560)
COLOURS = 128
SHORT_MS = 90
LONG_MS = 2_200


class Film:
    """Pictures of a page, each with how long it is shown."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._frames: list[Image.Image] = []
        self._lengths: list[int] = []

    def take(self, milliseconds: int) -> None:
        picture = Image.open(io.BytesIO(self._page.screenshot())).convert("RGB").resize(SHOWN, Image.Resampling.LANCZOS)
        self._frames.append(picture.quantize(COLOURS, dither=Image.Dither.NONE))
        self._lengths.append(milliseconds)

    def save(self, file: Path) -> None:
        first, *others = self._frames
        first.save(file, save_all=True, append_images=others, duration=self._lengths, loop=0, optimize=True)


def main() -> None:
    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    if browser_path is None:
        sys.exit("Chromium not found. Install chromium or google-chrome.")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        options = ("--data-dir", Path(folder) / "data", "--toolsets", "everything,knowledge")
        with listening(*options, log=Path(folder) / "log") as server:
            browser = driver.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
            film = Film(page)
            record(page, film, server.base)
            browser.close()
    film.save(PICTURE)
    sys.stderr.write(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size // 1024} KB\n")


def record(page: Page, film: Film, base: str) -> None:
    """Drop the manual, ask the question, open the page that answers it."""
    page.goto(f"{base}/documents")
    film.take(1_200)
    page.set_input_files("input[type=file] >> nth=0", str(MANUAL))
    for _ in range(4):
        film.take(250)
        page.wait_for_timeout(250)
    page.get_by_text("Ready", exact=True).first.wait_for()
    film.take(1_500)
    page.goto(f"{base}/search")
    box = page.get_by_label("Search everything")
    for end in range(2, len(QUESTION) + 1, 2):
        box.fill(QUESTION[:end])
        film.take(SHORT_MS)
    page.locator("#preview img.paper").wait_for()
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(500)
    film.take(LONG_MS)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.locator(".passage.found").wait_for()
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(1_000)
    film.take(2 * LONG_MS)


if __name__ == "__main__":
    main()
