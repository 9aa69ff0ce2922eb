"""Chromium without a window, for tests of the status page."""

import os

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

WAIT_S = 60
MAX_PICTURE_BYTES = 150_000


def browser(*flags):
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                 *flags):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)


class StatusPage:
    """A tab with the status page; use as a context manager."""

    def __init__(self, address, width=1280, height=800, dark=False):
        self.address = address
        self.driver = browser()
        self.resize(width, height)
        self.set_dark(dark)
        self.open()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.driver.quit()

    def open(self, where="#/"):
        self.driver.get("about:blank")
        self.driver.get(self.address + where)

    def resize(self, width, height):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def set_dark(self, dark):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})

    def go(self, where):
        """As a click on a link does, without loading the page again."""
        self.script("location.hash = arguments[0]", where)

    def script(self, code, *arguments):
        return self.driver.execute_script(code, *arguments)

    def wait(self, code, *arguments):
        """The first true value of a JavaScript expression."""
        return WebDriverWait(self.driver, WAIT_S, poll_frequency=0.1).until(
            lambda _: self.script(f"return {code}", *arguments), f"in vain: {code}")

    def wait_polls(self, count=2):
        """Waits for so many further answers of the server."""
        before = self.script("return Number(document.body.dataset.polls || 0)")
        self.wait(f"Number(document.body.dataset.polls || 0) >= {before + count}")

    def text(self, selector):
        return self.script("return document.querySelector(arguments[0])?.innerText", selector)

    def texts(self, selector):
        return self.script("return [...document.querySelectorAll(arguments[0])].map((node) => node.innerText)", selector)

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def keys(self, *keys):
        ActionChains(self.driver).send_keys(*keys).perform()

    def select_all(self):
        ActionChains(self.driver).key_down(Keys.CONTROL).send_keys("a").key_up(Keys.CONTROL).perform()

    def style(self, selector, name):
        return self.script("return getComputedStyle(document.querySelector(arguments[0])).getPropertyValue(arguments[1])", selector, name)

    def curve(self, chart):
        """The points of a chart's lines, as Chart.js has them: [[[x, y], …], …]."""
        return self.script("""
            const canvas = document.querySelector(`[data-chart="${arguments[0]}"] canvas`);
            return Chart.getChart(canvas).data.datasets.map((set) => set.data.map(({ x, y }) => [x, isNaN(y) ? null : y]));""", chart)

    def errors(self):
        """What the console has since the last call: errors, and what the content policy refused."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def requested(self):
        return self.script("return performance.getEntriesByType('resource').map((entry) => entry.name)")

    def is_wider_than_screen(self):
        return self.script("return document.documentElement.scrollWidth > innerWidth")

    def is_in_view(self, selector):
        """Whether the whole element is visible without scrolling."""
        return self.script("""
            const box = document.querySelector(arguments[0])?.getBoundingClientRect();
            return Boolean(box) && box.width > 0 && box.top >= 0 && box.bottom <= innerHeight && box.right <= innerWidth;""", selector)

    def picture(self, path):
        """A picture of the screen for the docs, with few colors so that it stays small."""
        self.driver.save_screenshot(path)
        shrink(path)


def shrink(path):
    from PIL import Image
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(255, dither=Image.Dither.NONE).save(path, optimize=True)
    size = os.path.getsize(path)
    if size > MAX_PICTURE_BYTES:
        raise AssertionError(f"{path} has {size} bytes")
