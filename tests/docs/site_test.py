"""The site of docs/ makes no external requests: a browser that opens every page asks only its own server.

Usage: python3 -m tests.docs.site_test SITE     SITE: the folder that mkdocs built
"""

import functools
import http.server
import json
import pathlib
import sys
import threading
import unittest
from urllib.parse import urlsplit

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions")
IMAGES_ARE_THERE = "return [...document.images].every(image => image.complete && image.naturalWidth > 0)"
WAIT_S = 30
SITE = pathlib.Path()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)


def asked_urls(driver):
    """The URLs that the page requested since the last call, without data URLs."""
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    urls = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    return [url for url in urls if urlsplit(url).scheme in ("http", "https", "ws", "wss")]


class SiteTest(unittest.TestCase):
    def setUp(self):
        handler = functools.partial(Quiet, directory=str(SITE))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.driver = browser()
        self.addCleanup(self.driver.quit)

    def test_pages_ask_their_own_server_alone(self):
        host = f"127.0.0.1:{self.server.server_port}"
        pages = sorted(SITE.rglob("*.html"))
        self.assertGreater(len(pages), 20)
        for page in pages:
            name = str(page.relative_to(SITE))
            with self.subTest(page=name):
                self.driver.get(f"http://{host}/{name}")
                WebDriverWait(self.driver, WAIT_S).until(lambda driver: driver.execute_script(IMAGES_ARE_THERE))
                asked = asked_urls(self.driver)
                self.assertIn(f"http://{host}/{name}", asked)
                self.assertEqual([url for url in asked if urlsplit(url).netloc != host], [])


if __name__ == "__main__":
    SITE = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
