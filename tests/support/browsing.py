"""What every page must pass in a real browser: axe-core in both themes, and no sideways scrolling on a phone."""

from typing import Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

AXE_RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WIDTHS = (360, 768, 1024, 1280)


def check_pages(browser: Browser, base: str, *paths: str) -> None:
    """Assert that pages are accessible in both themes and never scroll sideways."""
    for scheme in SCHEMES:
        context = browser.new_context(bypass_csp=True, color_scheme=scheme, viewport={"width": 1280, "height": 860})
        page = context.new_page()
        for path in paths:
            page.set_viewport_size({"width": 1280, "height": 860})
            page.goto(f"{base}{path}")
            expect(page.get_by_role("heading", level=1)).to_have_count(1)
            page.wait_for_load_state("networkidle")
            violations = Axe().run(page, options=AXE_RULES).response["violations"]
            assert violations == [], (scheme, path, [(item["id"], item["nodes"][0]["html"]) for item in violations])
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 800})
                assert page.evaluate("document.documentElement.scrollWidth") <= width, (path, width)
        context.close()
