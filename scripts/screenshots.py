"""Pictures of every page, with the demo content, for the README: `make screenshots`."""

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from support.processes import bedstone, listening

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "images"
PAGES = {
    "home": "/",
    "search": "/search?q=how+do+I+fix+a+flat+tyre",
    "documents": "/documents",
    "docs": "/docs/docs",
    "salesforce": "/salesforce",
    "object": "/salesforce/objects/Bike__c",
    "paths": "/salesforce/paths?from=Account&to=Bike__c",
    "soql": "/salesforce/soql?q=SELECT+Id,+Account.Nme+FROM+Contact+WHERE+CreatedDate+%3E+LAST_365_DAYS",
    "tools": "/tools/search_docs",
    "quality": "/quality",
}
WIDE, NARROW = (1280, 860), (390, 844)


def main() -> None:
    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    if browser_path is None:
        sys.exit("There is no Chromium here.")
    PICTURES.mkdir(parents=True, exist_ok=True)
    config = ROOT / "demo" / "bedstone.toml"
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        built = bedstone("docs", "build", ROOT / "demo" / "docs", "--config", config, "--data-dir", data)
        assert built.returncode == 0, built.stderr
        with (
            listening("--config", config, "--data-dir", data, log=Path(folder) / "log") as server,
            sync_playwright() as driver,
        ):
            browser = driver.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
            for size, scheme, suffix in ((WIDE, "light", ""), (NARROW, "dark", "-narrow")):
                page = browser.new_page(
                    viewport={"width": size[0], "height": size[1]},
                    color_scheme="dark" if scheme == "dark" else "light",
                )
                page.wait_for_timeout(15_000 if not suffix else 0)  # the demo content is read and synced meanwhile
                for name, path in PAGES.items():
                    picture(page, f"{server.base}{path}", PICTURES / f"{name}{suffix}.png")
            browser.close()


def picture(page: Page, address: str, file: Path) -> None:
    page.goto(address)
    page.wait_for_load_state("networkidle")
    page.screenshot(path=file)


if __name__ == "__main__":
    main()
