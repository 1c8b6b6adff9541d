"""A real browser: Debian's chromium, driven by selenium. One for all tests of a file: starting it takes seconds."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

WAIT_SECONDS = 60.0


class Browser:
    def __init__(self, driver: Any, endpoint: str) -> None:
        self.driver = driver
        self.endpoint = endpoint.rstrip("/")

    def open(self, page: str, **values: str) -> None:
        self.driver.get(f"{self.endpoint}{page}{'?' + urlencode(values) if values else ''}")

    @property
    def text(self) -> str:
        """What the visitor reads. A part of the page may be replaced at this moment, so it is read by one script."""
        return str(self.driver.execute_script("return document.body.innerText"))

    def find(self, selector: str) -> Any:
        from selenium.webdriver.common.by import By

        self.until(lambda: self.driver.find_elements(By.CSS_SELECTOR, selector), selector)
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def until(self, check: Callable[[], object], what: str = "") -> None:
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, WAIT_SECONDS, 0.1).until(lambda _: check(), what)

    def until_text(self, text: str) -> None:
        self.until(lambda: text in self.text, text)

    def until_no_text(self, text: str) -> None:
        self.until(lambda: text not in self.text, f"no {text}")

    def type_into(self, selector: str, text: str) -> None:
        field = self.find(selector)
        field.clear()
        field.send_keys(text)

    def click(self, selector: str, *, confirm: bool = False) -> None:
        """Click, and agree to what is asked."""
        self.find(selector).click()
        if confirm:
            self.driver.switch_to.alert.accept()

    def screenshot(self, path: Path) -> None:
        self.driver.save_screenshot(str(path))

    def resize(self, width: int, height: int) -> None:
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
        )

    def prefer(self, scheme: str) -> None:
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )

    def problems(self) -> list[str]:
        """What the browser has complained about since the last time, such as a script that the policy forbids."""
        return [entry["message"] for entry in self.driver.get_log("browser")]


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        message = f"there is no {name}: make browser installs it"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return found


@contextmanager
def running_browser(endpoint: str, folder: Path) -> Iterator[Browser]:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    chromium, driver_program = _program("chromium"), _program("chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--no-first-run",
        "--hide-scrollbars",
        f"--user-data-dir={folder}",
        "--window-size=1200,800",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(driver_program))
    try:
        yield Browser(driver, endpoint)
    finally:
        driver.quit()
