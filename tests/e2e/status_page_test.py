"""The status page of a daemon that serves and trains, in headless Chromium. With a path as argument, a screenshot of the
page goes there: /usr/bin/python3 tests/e2e/status_page_test.py docs/status_page.png"""

import json
import os
import struct
import sys
import time
import unittest
import urllib.request

import torch
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from tests.e2e import serve_models
from tests.e2e.daemon import request
from tests.e2e.training.training_daemon import COMPLETED, TrainingDaemon
from tests.e2e.training.training_models import Mlp, clusters, save

WAIT_S = 60
# Names are shown unchanged, whatever they contain.
ODD_NAME = "<i>odd"


def browser(*flags):
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                 *flags):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)


class StatusPageTest(unittest.TestCase):
    screenshot = None

    @classmethod
    def setUpClass(cls):
        cls.server = TrainingDaemon("--strict-readiness", "false")
        for name in ("identity", "linear", "raises"):
            serve_models.save(serve_models.MODELS[name](), cls.server.models, name)
        torch.manual_seed(0)
        save(Mlp(), cls.server.models, "mlp")
        os.makedirs(os.path.join(cls.server.models, ODD_NAME, "1"), exist_ok=True)
        with open(os.path.join(cls.server.models, ODD_NAME, "1", "model.pt"), "w") as out:
            out.write("no archive")
        inputs, labels = clusters(600, 64, 10, seed=1)
        cls.server.save_data("clusters.pt", x=inputs, y=labels)
        cls.server.start()
        cls.address = f"http://{cls.server.daemon.ready['metrics']}/"
        cls.call_models(40)
        job = cls.server.create(name="clusters", epochs=6)
        cls.job, _ = cls.server.watch(job.id)
        cls.page = browser("--window-size=1200,1180")
        cls.page.get(cls.address)

    @classmethod
    def tearDownClass(cls):
        cls.page.quit()
        cls.server.close()

    @classmethod
    def call_models(cls, times):
        stub = cls.server.daemon.stub
        row = struct.pack("<4f", 1, 2, 3, 4)
        three_rows = request("raises", [("x", "FP32", [3, 4], row * 3)])
        for i in range(times):
            stub.ModelInfer(request("linear", [("x", "FP32", [1, 4], row)]))
            stub.ModelInfer(request("identity", [("x", "FP32", [4], row)]))
            if i % 10 == 0:
                call = stub.ModelInfer.future(three_rows)
                assert call.exception() is not None

    def wait(self, condition):
        return WebDriverWait(self.page, WAIT_S, poll_frequency=0.1).until(condition)

    def model(self, key):
        """The card of a model version, as text, once it has its numbers."""
        return self.wait(lambda page: page.execute_script(
            "const card = document.querySelector('[data-model=' + JSON.stringify(arguments[0]) + ']');"
            "return card && card.innerText", key))

    def style(self, selector, name):
        return self.page.execute_script(
            "return getComputedStyle(document.querySelector(arguments[0])).getPropertyValue(arguments[1])", selector, name)

    def test_json(self):
        with urllib.request.urlopen(self.address + "status.json") as answer:
            status = json.load(answer)
        models = {(model["name"], model["version"]): model for model in status["models"]}
        linear = models["linear", "1"]
        self.assertEqual(linear["state"], "READY")
        self.assertGreaterEqual(linear["counts"]["requests"], 40)
        for histogram in ("request", "queue", "compute"):
            self.assertEqual(sum(linear["counts"][histogram]["buckets"]), linear["counts"][histogram]["count"])
            self.assertEqual(len(linear["counts"][histogram]["buckets"]), len(status["bucket_limits"]) + 1)
        self.assertEqual(models["raises", "1"]["counts"]["failed"], 4)
        job = status["jobs"][0]
        self.assertEqual((job["state"], job["name"]), ("COMPLETED", "clusters"))
        self.assertEqual(job["curve"]["step"][-1], self.job.progress.step)
        self.assertTrue(status["server"]["ready"])
        self.assertTrue(any(owner["bytes"] > 0 for owner in status["memory"]))

    def test_models_and_their_states(self):
        shown = self.model("linear/1")
        self.assertIn("READY", shown)
        self.assertRegex(shown, r"REQUESTS\s+\d+|requests\s+\d+")
        self.assertRegex(shown, r"(µs|ms)")
        name, state, reason = self.wait(lambda page: page.execute_script(
            "const card = [...document.querySelectorAll('[data-model]')].find(c => c.dataset.model.startsWith('<i>'));"
            "return card && ['h3', '.pill', '.reason'].map((part) => card.querySelector(part).textContent)"))
        self.assertEqual((name, state), (ODD_NAME, "UNAVAILABLE"))
        self.assertTrue(reason)
        self.assertFalse(self.page.find_elements(By.CSS_SELECTOR, "h3 i"))
        bars = self.page.execute_script(
            "return [...document.querySelectorAll('[data-model=\"linear/1\"] figure:nth-child(2) rect title')]"
            ".map((title) => title.textContent)")
        total = sum(int(title.rsplit(" ", 1)[1]) for title in bars)
        self.assertGreaterEqual(total, 40)

    def test_numbers_follow_the_server(self):
        def requests(page):
            return page.execute_script(
                "return Number(document.querySelector('[data-model=\"identity/1\"] .numbers b').textContent)")

        before = self.wait(requests)
        self.call_models(5)
        self.wait(lambda page: requests(page) >= before + 5)
        # The throughput line has points after two samples.
        self.wait(lambda page: page.find_elements(By.CSS_SELECTOR, '[data-model="identity/1"] polyline'))

    def test_memory_and_jobs(self):
        self.wait(lambda page: page.find_elements(By.CSS_SELECTOR, "#memory .fill"))
        shown, points = self.wait(lambda page: page.execute_script(
            "const card = document.querySelector('[data-job]');"
            "return card && [card.innerText, card.querySelector('polyline.loss').getAttribute('points')]"))
        self.assertIn("clusters", shown)
        self.assertIn("COMPLETED", shown)
        self.assertEqual(self.job.state, COMPLETED)
        points = points.split()
        self.assertGreater(len(points), 5)
        heights = [float(point.split(",")[1]) for point in points]
        self.assertGreater(heights[-1], heights[0])  # the loss fell, and y grows downwards

    def test_light_and_dark(self):
        button = self.page.find_element(By.ID, "theme")
        colors = {}
        for theme in ("light", "dark"):
            while button.text != theme:
                button.click()
            colors[theme] = (self.style("body", "background-color"), self.style("body", "color"))
        self.assertNotEqual(colors["light"], colors["dark"])
        for scheme in ("dark", "light"):
            while button.text != "system":
                button.click()
            self.page.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                      {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
            self.assertEqual(self.wait(lambda page: self.style("body", "background-color") == colors[scheme][0]), True)

    def test_nothing_from_outside_and_no_errors(self):
        self.wait(lambda page: page.execute_script("return Number(document.body.dataset.polls) >= 2"))
        names = self.page.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
        self.assertTrue(names)
        self.assertTrue(all(name.startswith(self.address) for name in names), names)
        errors = [entry for entry in self.page.get_log("browser") if entry["level"] == "SEVERE"]
        self.assertEqual(errors, [])

    def test_narrow_screens(self):
        self.page.set_window_size(500, 900)
        try:
            self.wait(lambda page: page.find_elements(By.CSS_SELECTOR, "[data-model]"))
            self.assertLessEqual(*self.page.execute_script(
                "return [document.documentElement.scrollWidth, window.innerWidth]"))
        finally:
            self.page.set_window_size(1200, 1180)

    def test_zz_the_server_goes(self):
        self.wait(lambda page: page.execute_script("return Number(document.body.dataset.polls) >= 1"))
        if self.screenshot:
            self.take_screenshot()
        self.assertFalse(self.page.find_element(By.ID, "offline").is_displayed())
        self.server.daemon.stop()
        self.wait(lambda page: page.find_element(By.ID, "offline").is_displayed())

    def take_screenshot(self):
        stub, row = self.server.daemon.stub, struct.pack("<4f", 1, 2, 3, 4)
        end = time.monotonic() + 30
        while time.monotonic() < end:
            stub.ModelInfer(request("linear", [("x", "FP32", [1, 4], row)]))
            if int(end * 10 - time.monotonic() * 10) % 3:
                stub.ModelInfer(request("identity", [("x", "FP32", [4], row)]))
        self.page.set_window_size(1200, 1040)
        self.page.execute_script("document.querySelectorAll('[data-model^=\"<i>\"], [data-model=\"raises/1\"]')"
                                 ".forEach((card) => card.remove())")
        self.page.save_screenshot(self.screenshot)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].endswith(".png"):
        StatusPageTest.screenshot = sys.argv.pop(1)
    unittest.main()
