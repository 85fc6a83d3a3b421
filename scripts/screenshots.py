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
QUESTION = "when+to+replace+a+brake+disc"
PAGES = {
    "home": "/",
    "search": f"/search?q={QUESTION}",
    "compare": f"/search/beside?q={QUESTION}",
    "documents": "/documents",
    "document": f"/search?q={QUESTION}",
    "unread": "/documents?status=failed",
    "docs": "/docs",
    "docs-page": "/docs/corpora/docs/guides/errors-and-retries.md?chunk=guides/errors-and-retries.md%23errors-and-retries/rate-limits&q=rate+limits",
    "knowledge-file": "/knowledge-file?q=battery",
    "articles": "/salesforce/articles?q=brake",
    "article": "/salesforce/articles/How-to-change-the-brake-pads-of-the-Porter",
    "schema": "/salesforce",
    "object": "/salesforce/objects/Account",
    "path": "/salesforce/paths?from=Account&to=Warranty_Claim__c",
    "soql": "/salesforce/soql?q=SELECT+Name,+Modell__c,+Dealer__r.Name%0AFROM+Bike__c%0AWHERE+Sold_On__c+%3E+LAST_365_DAYS",
    "rows": "/salesforce/soql?q=SELECT+Name,+Account.Name,+Email+FROM+Contact+ORDER+BY+Name+LIMIT+20",
    "tools": "/tools",
    "tool": "/tools/search?query=when+to+replace+a+brake+disc",
    "activity": "/activity",
    "quality": "/quality",
    "missing": "/salesforce/objects/Bikes__c",
    "problem": "/nowhere",
}
CLICKS = {  # clicked before the screenshot is taken
    "document": ".result h2 a",
    "unread": "tbody a",
    "rows": "#run",
    "tool": "#call button.primary",
}
IN_README = ("home", "search", "document", "docs-page", "object", "path", "soql", "articles")
WIDE = (1280, 860)
NARROW = (390, 844)
FOLDER = Path(tempfile.gettempdir()) / "kestrel"  # the pictures show paths: the same on every machine
VARIANTS = ((WIDE, "light", ""), (WIDE, "dark", "-dark"), (NARROW, "light", "-phone"), (NARROW, "dark", "-phone-dark"))


def main() -> None:
    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    if browser_path is None:
        sys.exit("Chromium not found. Install chromium or google-chrome.")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", type=Path, help="folder for the screenshots that the README does not show")
    others = parser.parse_args().all or ROOT / ".cache" / "screenshots"
    others.mkdir(parents=True, exist_ok=True)
    IMAGES.mkdir(parents=True, exist_ok=True)
    with serve_demo() as server, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        for size, scheme, suffix in VARIANTS:
            page = browser.new_page(
                viewport={"width": size[0], "height": size[1]}, color_scheme="dark" if scheme == "dark" else "light"
            )
            if not suffix:
                page.wait_for_timeout(15_000)  # the server reads and syncs the demo content
                page.goto(f"{server.base}{PAGES['search']}")  # the first search loads the model
            for name, path in PAGES.items():
                target = IMAGES if name in IN_README and not suffix else others
                take_screenshot(page, f"{server.base}{path}", CLICKS.get(name), target / f"{name}{suffix}.png")
        browser.close()
    sys.stderr.write(f"Screenshots for the README in {IMAGES.relative_to(ROOT)}, all others in {others}\n")


@contextmanager
def serve_demo() -> Iterator[Listening]:
    """Serve a copy of the demo content, with a corrupt file and two runs of an evaluation."""
    FOLDER.mkdir()  # fails if it exists: this run deletes the folder at its end
    demo = shutil.copytree(ROOT / "demo", FOLDER / "demo")
    try:
        data, corrupt = FOLDER / "data", FOLDER / "corrupt.pdf"
        options = ("--config", demo / "bedstone.toml", "--data-dir", data)
        corrupt.write_bytes(b"%PDF-1.7 cut off")
        built = bedstone("docs", "build", demo / "docs", *options)
        assert built.returncode == 0, built.stderr
        bedstone("knowledge", "add", corrupt, *options)
        for provider in ("none", "minilm"):
            index = FOLDER / provider
            bedstone("docs", "build", "--docs-dir", demo / "docs", "--out", index, "--embedding-provider", provider)
            server = (BEDSTONE, "serve", "--toolsets", "docs", "--docs-index", index)
            bedstone(
                *(
                    "eval",
                    "run",
                    "--cases",
                    demo / "questions.json",
                    "--name",
                    "demo",
                    "--data-dir",
                    data,
                    "--",
                    *server,
                )
            )
        with listening(*options, log=FOLDER / "log") as server:
            yield server
    finally:
        shutil.rmtree(FOLDER)


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
