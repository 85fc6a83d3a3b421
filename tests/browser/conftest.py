"""A real browser, and a page in it that notices script errors and violations of the content policy."""

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        if os.environ.get("CI"):
            pytest.fail("Chromium not found; .ci/run installs it.")
        pytest.skip("Chromium not found")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page without dialogs, script errors or violations of the content policy."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    alarms: list[str] = []

    def note_dialog(dialog: Dialog) -> None:
        alarms.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def note_console(message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith(
            "Failed to load resource"
        ):  # a refused request is expected
            alarms.append(message.text)

    page.on("dialog", note_dialog)
    page.on("pageerror", lambda error: alarms.append(str(error)))
    page.on("console", note_console)
    yield page
    page.close()
    assert alarms == []
