"""A browser for tests of pages."""

import pytest
import requirements


@pytest.fixture(scope="module")
def browser():
    """Debian's browser; Playwright's own would be downloaded."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        program = requirements.found("browser")
        yield playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
