"""The status page in Chromium with no model and with fifty, on narrow and dark screens, by keyboard alone, with tokens, and
over a restart of the daemon."""

import os
import re
import struct
import tempfile
import unittest

from selenium.webdriver.common.keys import Keys

from tests.e2e import serve_models
from tests.e2e.daemon import Daemon, request
from tests.e2e.page_browser import StatusPage

# The names of CSS colors by which texts stand on backgrounds.
PAIRS = [("text", "page"), ("text", "card"), ("text", "raised"), ("soft", "page"), ("soft", "card"), ("soft", "raised"), ("blue", "card"),
         ("blue", "page"), ("blue", "raised"), ("good", "good-back"), ("warn", "warn-back"), ("bad", "bad-back"), ("bad", "card"),
         ("bad", "raised"), ("warn", "card"), ("card", "blue")]
LINES = ["blue", "teal", "violet", "red", *(f"run{i}" for i in range(1, 9))]


def luminance(color):
    parts = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def serve(folder, *flags):
    return Daemon(folder, "--allow-http", "true", "--http-port", "0", *flags)


class NoModelsTest(unittest.TestCase):
    def test_an_empty_page_says_what_to_do(self):
        with tempfile.TemporaryDirectory() as folder, serve(folder) as daemon, StatusPage(f"http://{daemon.ready['http']}/") as page:
            page.wait_polls()
            self.assertIn("No models yet", page.text(".models .empty"))
            self.assertIn("model.pt", page.text(".models .empty"))
            self.assertIn("Start the server again", page.text(".models .empty"))
            self.assertFalse(page.find("input[type=search]").is_displayed())
            self.assertFalse(page.is_wider_than_screen())
            page.go("#/models/none/1")
            page.wait("document.querySelector('.model')?.innerText.includes('There is no model none, version 1.')")
            page.go("#/jobs/none")
            page.wait("document.querySelector('.jobs')?.innerText.includes('There is no such job')")
            self.assertEqual(page.errors(), [])


class FiftyModelsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        for i in range(48):
            serve_models.save(serve_models.Identity(), cls.folder.name, f"model_{i:02}_with_quite_a_long_name")
        serve_models.save(serve_models.Raises(), cls.folder.name, "raises")
        serve_models.save(serve_models.Linear(), cls.folder.name, "linear")
        serve_models.save(serve_models.Linear(), cls.folder.name, "linear", version=2)
        with open(os.path.join(cls.folder.name, "linear", "config.pbtxt"), "w") as config:
            config.write("version_policy { all {} }\n")
        cls.daemon = serve(cls.folder.name)
        cls.page = StatusPage(f"http://{cls.daemon.ready['http']}/")
        cls.page.wait_polls()

    @classmethod
    def tearDownClass(cls):
        cls.page.driver.quit()
        cls.daemon.__exit__()
        cls.folder.cleanup()

    def setUp(self):
        self.page.resize(1280, 800)
        self.page.set_dark(False)
        self.page.open()
        row = struct.pack("<4f", 1, 2, 3, 4)
        self.daemon.stub.ModelInfer(request("model_40_with_quite_a_long_name", [("x", "FP32", [4], row)]))
        self.daemon.stub.ModelInfer.future(request("raises", [("x", "FP32", [3, 4], row * 3)])).exception()
        self.page.wait_polls()

    def tearDown(self):
        self.assertEqual(self.page.errors(), [])

    def focused(self):
        return self.page.script("const one = document.activeElement; return one.id || one.textContent || one.placeholder")

    def test_what_needs_a_look_comes_first(self):
        page = self.page
        self.daemon.stub.ModelInfer(request("model_40_with_quite_a_long_name", [("x", "FP32", [1], struct.pack("<f", 1))]))
        page.wait("document.querySelectorAll('[data-model]')[1]?.className === 'active'")
        self.assertEqual(page.script("return [...document.querySelectorAll('[data-model]')].slice(0, 2).map((row) => row.dataset.model)"),
                         ["raises/1", "model_40_with_quite_a_long_name/1"])
        self.assertEqual(len(page.script("return [...document.querySelectorAll('[data-model]')]")), 51)
        self.assertTrue(page.is_in_view('[data-model="raises/1"]'))
        # An idle model is one line.
        heights = page.script("return [...document.querySelectorAll('tbody.idle')].map((row) => row.getBoundingClientRect().height)")
        self.assertLess(max(heights), 30)

    def test_no_screen_scrolls_sideways(self):
        page = self.page
        for view in ("#/", "#/models/linear/2", "#/models/raises"):
            page.go(view)
            page.wait_polls(1)
            for width in (1280, 1000, 700, 400, 320):
                page.resize(width, 800)
                page.script("return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
                self.assertFalse(page.is_wider_than_screen(), f"{view} at {width}")
        page.resize(400, 800)
        page.go("#/")
        page.wait("document.querySelector('[data-model]')")
        self.assertTrue(page.is_in_view('[data-model="raises/1"]'))

    def test_contrast(self):
        page = self.page
        colors = {}
        for dark in (False, True):
            page.set_dark(dark)
            for name in {name for pair in PAIRS for name in pair} | set(LINES):
                colors[name] = page.script("""
                    const probe = document.body.appendChild(document.createElement("span"));
                    probe.style.color = `var(--${arguments[0]})`;
                    const color = getComputedStyle(probe).color;
                    probe.remove();
                    return color;""", name)
            for front, back in PAIRS:
                self.assertGreaterEqual(contrast(colors[front], colors[back]), 4.5, f"{front} on {back}, dark: {dark}")
            for line in LINES:
                self.assertGreaterEqual(contrast(colors[line], colors["card"]), 3, f"{line}, dark: {dark}")

    def test_light_and_dark(self):
        page = self.page
        chart = "return Chart.getChart(document.querySelector('[data-chart=CPU] canvas')).options.scales.x.ticks.color"
        colors, charts = {}, {}
        for dark in (False, True):
            page.set_dark(dark)
            page.wait_polls(1)
            colors[dark], charts[dark] = page.style("body", "background-color"), page.script(chart)
        self.assertNotEqual(colors[False], colors[True])
        self.assertNotEqual(charts[False], charts[True])
        button = page.find("#theme")
        for text, expected in (("Light", False), ("Dark", True), ("Auto", True)):
            button.click()
            self.assertEqual(button.text, text)
            self.assertEqual(page.style("body", "background-color"), colors[expected])
            self.assertEqual(page.script(chart), charts[expected])

    def test_by_keyboard(self):
        page = self.page
        page.keys("/")
        self.assertEqual(page.script("return document.activeElement.type"), "search")
        page.keys("linear")
        self.assertEqual(page.texts("[data-model] a"), ["linear", "linear"])
        page.keys(Keys.ESCAPE)
        self.assertEqual(len(page.texts("[data-model] a")), 51)
        page.keys("linear")
        # From the filter by the sorting to the first model; where the focus is can be seen at every stop.
        stops = []
        for _ in range(20):
            page.keys(Keys.TAB)
            stops.append(self.focused())
            self.assertNotEqual(page.script("return getComputedStyle(document.activeElement).outlineStyle"), "none", stops)
            if stops[-1] == "linear":
                break
        self.assertEqual(stops, ["Model", "Requests/s", "Median", "p99", "Queue p99", "Failed", "In flight", "Memory", "Last request", "linear"])
        page.wait_polls(2)
        self.assertEqual(self.focused(), "linear")  # polls do not take the focus away
        page.keys(Keys.ENTER)
        page.wait("document.querySelector('textarea')")
        self.assertEqual(self.focused_id(), "main")
        self.assertEqual(page.texts(".versions a"), ["v1", "v2"])
        for _ in range(6):
            page.keys(Keys.TAB)
            if page.script("return document.activeElement.tagName") == "TEXTAREA":
                break
        page.select_all()
        page.keys("1 2 3 4", Keys.ENTER)
        page.wait("document.querySelector('.answer pre')")
        self.assertEqual(len(page.text(".answer pre").split(",")), 3)
        # A slash is a slash where one types.
        page.keys("/")
        self.assertTrue(page.script("return document.querySelector('textarea').value").endswith("/"))

    def focused_id(self):
        return self.page.script("return document.activeElement.id")


class RestartTest(unittest.TestCase):
    def test_the_page_survives_a_restart(self):
        with tempfile.TemporaryDirectory() as folder:
            serve_models.save(serve_models.Linear(), folder, "linear")
            row = struct.pack("<4f", 1, 2, 3, 4)
            with serve(folder) as daemon:
                port = daemon.ready["http"].rsplit(":", 1)[1]
                for _ in range(20):
                    daemon.stub.ModelInfer(request("linear", [("x", "FP32", [1, 4], row)]))
                page = StatusPage(f"http://{daemon.ready['http']}/")
                page.open("#/models/linear/1")
                page.wait_polls(3)
                self.assertFalse(page.find("#notice").is_displayed())
                daemon.stop()
                page.wait("document.getElementById('notice').innerText.includes('does not answer since')")
                self.assertIn("20 requests", page.text(".facts"))
            try:
                with Daemon(folder, "--allow-http", "true", "--http-port", port):
                    page.wait("document.getElementById('notice').innerText.includes('was restarted at')")
                    page.wait("document.querySelector('.facts').innerText.includes('0 requests')")
                    page.wait_polls(2)
                    # Counters that began anew are no negative rates, and no line is drawn over the gap.
                    rates = [rate for _, rate in page.curve("Requests/s")[0]]
                    self.assertIn(None, rates)
                    self.assertTrue(all(rate is None or rate >= 0 for rate in rates), rates)
                    page.find("textarea").clear()
                    page.find("textarea").send_keys("[[1, 2, 3, 4]]\n")
                    page.wait("document.querySelector('.answer pre')")
            finally:
                page.driver.quit()


class TokenTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        serve_models.save(serve_models.Linear(), cls.folder.name, "linear")
        cls.tokens = os.path.join(cls.folder.name, "tokens")
        cls.write("all admin", "statistics watcher")
        cls.daemon = serve(cls.folder.name, "--access-tokens", cls.tokens, "--grpc-ssl-reload-secs", "1")

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()
        cls.folder.cleanup()

    @classmethod
    def write(cls, *lines):
        with open(cls.tokens, "w") as out:
            out.write("\n".join(lines) + "\n")

    def open(self, token):
        return StatusPage(f"http://any:{token}@{self.daemon.ready['http']}/")

    def test_a_token_in_the_address_opens_everything(self):
        with self.open("admin") as page:
            page.wait_polls()
            page.go("#/models/linear/1")
            page.wait("document.querySelector('textarea')")
            page.find("textarea").clear()
            page.find("textarea").send_keys("[[1, 2, 3, 4]]\n")
            page.wait("document.querySelector('.answer pre')")
            code = page.script("return document.querySelector('.code pre').textContent")
            self.assertIn('"Authorization: Bearer $TOKEN"', code)
            self.assertNotIn("admin", page.script("return document.body.innerText"))
            self.assertEqual(page.errors(), [])

    def test_a_token_for_numbers_shows_numbers_only(self):
        with self.open("watcher") as page:
            page.wait_polls()
            self.assertEqual(page.texts("[data-model] a"), ["linear"])
            page.go("#/models/linear/1")
            page.wait("document.querySelector('.thirds').innerText.includes(\"not for calls of 'model-config'\")")
            self.assertFalse(page.script("return Boolean(document.querySelector('textarea'))"))

    def test_a_wrong_token(self):
        with self.open("wrong") as page:
            self.assertNotIn("linear", page.script("return document.body ? document.body.innerText : ''"))

    def test_a_token_that_is_withdrawn(self):
        with self.open("admin") as page:
            page.wait_polls()
            self.write("all other")
            try:
                page.wait("document.getElementById('notice').innerText.includes('refused this page')")
                self.assertEqual(page.texts("[data-model] a"), ["linear"])  # what was shown stays
                self.assertEqual(page.text("#notice button"), "Load again")
            finally:
                self.write("all admin", "statistics watcher")


if __name__ == "__main__":
    unittest.main()
