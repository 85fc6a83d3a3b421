"""Take screenshots of all pages with the demo content, for the README: `make screenshots`."""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from support.processes import BEDSTONE, Listening, bedstone, listening

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
PAGES = {
    "home": "/",
    "search": "/search?q=how+do+I+fix+a+flat+tyre",
    "beside": "/search/beside?q=how+do+I+fix+a+flat+tyre",
    "documents": "/documents",
    "document": "/documents?name=manual",
    "unread": "/documents?status=failed",
    "docs": "/docs",
    "folder": "/docs/corpora/docs",
    "file": "/docs/corpora/docs/guides/errors-and-retries.md",
    "chunk": "/docs/chunk?id=guides/errors-and-retries.md%23errors-and-retries/backoff&context=1",
    "salesforce": "/salesforce",
    "object": "/salesforce/objects/Bike__c",
    "fields": "/salesforce/objects/Case?fields=status",
    "relationships": "/salesforce/objects/Account/relationships",
    "paths": "/salesforce/paths?from=Account&to=Bike__c",
    "soql": "/salesforce/soql?q=SELECT+Id,+Account.Nme+FROM+Contact+WHERE+CreatedDate+%3E+LAST_365_DAYS",
    "rows": "/salesforce/soql?q=SELECT+Name,+Account.Name,+Email+FROM+Contact+ORDER+BY+Name+LIMIT+20",
    "articles": "/salesforce/articles",
    "article": "/salesforce/articles?title=battery",
    "tools": "/tools",
    "tool": "/tools/search_docs?query=rate+limits",
    "quality": "/quality",
    "problem": "/nowhere",
}
CLICKS = {  # clicked before the screenshot is taken
    "document": "tbody a",
    "unread": "tbody a",
    "rows": "#run",
    "article": "tbody a",
    "tool": "#call button",
}
IN_README = ("home", "search", "documents", "folder", "object", "soql", "tool", "quality")
WIDE = (1280, 860)
NARROW = (390, 844)


def main() -> None:
    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    if browser_path is None:
        sys.exit("Chromium not found. Install chromium or google-chrome.")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", type=Path, help="folder for the screenshots that the README does not show")
    others = parser.parse_args().all or ROOT / ".cache" / "screenshots"
    others.mkdir(parents=True, exist_ok=True)
    IMAGES.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        serve_demo(Path(folder)) as server,
        sync_playwright() as driver,
    ):
        browser = driver.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        for size, scheme, suffix in ((WIDE, "light", ""), (NARROW, "dark", "-narrow")):
            page = browser.new_page(
                viewport={"width": size[0], "height": size[1]}, color_scheme="dark" if scheme == "dark" else "light"
            )
            page.wait_for_timeout(15_000 if not suffix else 0)  # the server reads and syncs the demo content
            for name, path in PAGES.items():
                target = IMAGES if name in IN_README and not suffix else others
                take_screenshot(page, f"{server.base}{path}", CLICKS.get(name), target / f"{name}{suffix}.png")
        browser.close()
    sys.stderr.write(f"Screenshots for the README in {IMAGES.relative_to(ROOT)}, all others in {others}\n")


@contextmanager
def serve_demo(folder: Path) -> Iterator[Listening]:
    """Serve the demo content, with a corrupt file and two runs of an evaluation."""
    data, demo = folder / "data", ROOT / "demo"
    options = ("--config", demo / "bedstone.toml", "--data-dir", data)
    corrupt = folder / "corrupt.pdf"
    corrupt.write_bytes(b"%PDF-1.7 cut off")
    built = bedstone("docs", "build", demo / "docs", *options)
    assert built.returncode == 0, built.stderr
    bedstone("knowledge", "add", corrupt, *options)
    for provider in ("none", "minilm"):
        index = folder / provider
        bedstone("docs", "build", "--docs-dir", demo / "docs", "--out", index, "--embedding-provider", provider)
        server = (BEDSTONE, "serve", "--toolsets", "docs", "--docs-index", index)
        bedstone(
            *("eval", "run", "--cases", demo / "questions.json", "--name", "demo", "--data-dir", data, "--", *server)
        )
    with listening(*options, log=folder / "log") as server:
        yield server


def take_screenshot(page: Page, address: str, click: str | None, file: Path) -> None:
    page.goto(address)
    page.wait_for_load_state("networkidle")
    if click:
        page.locator(click).first.click()
        page.wait_for_timeout(500)
        page.wait_for_load_state("networkidle")
    page.screenshot(path=file)


if __name__ == "__main__":
    main()
