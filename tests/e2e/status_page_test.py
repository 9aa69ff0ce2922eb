"""The status page of a daemon that serves and trains, in Chromium: what each view shows, and what it does with clicks.

/usr/bin/python3 tests/e2e/status_page_test.py --pictures docs/status_page   makes the pictures of the docs."""

import gzip
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

import numpy as np
import torch

from tests.e2e import serve_models
from tests.e2e.daemon import ROOT, request
from tests.e2e.page_browser import StatusPage
from tests.e2e.training.training_daemon import COMPLETED, TrainingDaemon, training
from tests.e2e.training.training_models import Mlp, clusters, save

# Names are shown unchanged, whatever they contain.
ODD_NAME = "<img src=x onerror=alert(1)>'\"; $(x)"
# What ctest installs of clients/python, for the fixture python_client.
PYTHON_CLIENT = os.environ.get("TENSORD_PYTHON_CLIENT", os.path.join(ROOT, "build/dev/python_client"))
ROW = struct.pack("<4f", 1, 2, 3, 4)
RATES = (0.002, 0.01, 0.1)
RAISED = r"^got 3 rows \(serve_models\.py:\d+\); inputs: x FP32\[3, 4\]$"


class Traffic(threading.Thread):
    """Calls the models until it is stopped; `raises` fails now and then."""

    def __init__(self, stub, has_shapes):
        super().__init__(daemon=True)
        self.stub, self.has_shapes, self.is_stopped = stub, has_shapes, threading.Event()

    def run(self):
        count = 0
        image = np.random.default_rng(0).random((1, 1, 32, 32), np.float32).tobytes()
        while not self.is_stopped.wait(0.015 + 0.01 * np.sin(time.monotonic() / 7)):
            count += 1
            if self.has_shapes:
                self.stub.ModelInfer(request("shapes", [("image", "FP32", [1, 1, 32, 32], image)]))
            self.stub.ModelInfer(request("linear", [("x", "FP32", [1, 4], ROW)]))
            if count % 3 == 0:
                self.stub.ModelInfer(request("identity", [("x", "FP32", [4], ROW)]))
            if count % 40 == 0:
                self.stub.ModelInfer.future(request("raises", [("x", "FP32", [3, 4], ROW * 3)])).exception()

    def stop(self):
        self.is_stopped.set()
        self.join()


class StatusPageTest(unittest.TestCase):
    pictures = None  # the folder of the docs' pictures

    @classmethod
    def setUpClass(cls):
        cls.server = TrainingDaemon("--strict-readiness", "false", "--allow-http", "true", "--http-port", "0")
        for name in ("identity", "linear", "raises", "words", "mixed"):
            serve_models.save(serve_models.MODELS[name](), cls.server.models, name)
        torch.manual_seed(0)
        save(Mlp(), cls.server.models, "mlp")
        cls.add_configurations()
        cls.add_broken("segmentation" if cls.pictures else ODD_NAME)
        if cls.pictures:
            shutil.copytree(os.path.join(ROOT, "examples/models"), cls.server.models, dirs_exist_ok=True)
        inputs, labels = clusters(600, 64, 10, seed=1)
        cls.server.save_data("clusters.pt", x=inputs, y=labels)
        cls.server.start()
        cls.address = f"http://{cls.server.daemon.ready['http']}/"
        cls.traffic = Traffic(cls.server.daemon.stub, bool(cls.pictures))
        cls.traffic.start()
        cls.jobs = [cls.server.create(name=f"rate {rate}", epochs=30, optimizer=training.Optimizer(name="sgd", lr=rate),
                                      evaluation=training.Evaluation(fraction=0.2, metrics=["accuracy", "loss"])).id for rate in RATES]
        cls.finished = [cls.server.watch(job)[0] for job in cls.jobs]
        cls.page = StatusPage(cls.address)

    @classmethod
    def tearDownClass(cls):
        cls.page.driver.quit()
        cls.traffic.stop()
        cls.server.close()

    @classmethod
    def add_configurations(cls):
        words = 'input [ { name: "words" data_type: TYPE_STRING dims: [ -1 ] } ]\n'
        with open(os.path.join(cls.server.models, "words", "config.pbtxt"), "w") as config:
            config.write(words)

    @classmethod
    def add_broken(cls, name):
        os.makedirs(os.path.join(cls.server.models, name, "1"))
        with open(os.path.join(cls.server.models, name, "1", "model.pt"), "w") as out:
            out.write("no archive")

    def setUp(self):
        self.page.resize(1280, 800)
        self.page.open()
        self.page.wait_polls()

    def tearDown(self):
        self.assertEqual(self.page.errors(), [])
        for name in self.page.requested():
            self.assertTrue(name.startswith(self.address), name)

    def status(self, path="status.json"):
        with urllib.request.urlopen(self.address + path) as answer:
            return json.load(answer)

    def cells(self, key):
        return self.page.script("""
            const row = [...document.querySelectorAll("[data-model]")].find((one) => one.dataset.model === arguments[0]);
            return [...row.querySelectorAll("th, td")].map((cell) => cell.innerText);""", key)

    def test_json(self):
        status = self.status()
        models = {(model["name"], model["version"]): model for model in status["models"]}
        linear = models["linear", "1"]
        self.assertEqual(linear["state"], "READY")
        for histogram in ("request", "queue", "compute"):
            self.assertEqual(sum(linear["counts"][histogram]["buckets"]), linear["counts"][histogram]["count"])
            self.assertEqual(len(linear["counts"][histogram]["buckets"]), len(status["bucket_limits"]) + 1)
        self.assertNotIn("request", models["mixed", "1"]["counts"])
        raises = models["raises", "1"]["counts"]
        self.assertGreater(raises["failed"], 0)
        self.assertRegex(raises["last_failure"]["error"], RAISED)
        self.assertLess(abs(raises["last_failure"]["ms"] - status["server"]["now_ms"]), 60_000)
        self.assertEqual(linear["counts"]["last_failure"], {"error": "", "ms": 0})
        self.assertEqual({job["name"] for job in status["jobs"]}, {f"rate {rate}" for rate in RATES})
        self.assertIsNone(status["jobs"][0].get("curve"))
        self.assertTrue(status["server"]["ready"])

    def test_json_of_the_process(self):
        process = self.status()["process"]
        with open(f"/proc/{self.server.daemon.process.pid}/status") as file:
            proc = dict(line.split(":", 1) for line in file)
        self.assertAlmostEqual(process["resident_bytes"], int(proc["VmRSS"].split()[0]) * 1024, delta=20e6)
        self.assertAlmostEqual(process["threads"], int(proc["Threads"]), delta=10)
        self.assertGreater(process["cpu_seconds"], 0)
        self.assertEqual(process["cores"], len(os.sched_getaffinity(0)))
        self.assertIn(process["instruction_set"], ("baseline", "SSE4", "AVX2", "AVX-512"))
        self.assertLess(process["model_bytes"], process["resident_bytes"])

    def test_json_of_a_model_and_a_job(self):
        model = self.status("status/models/linear/versions/1")
        self.assertEqual(model["metadata"]["inputs"], [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}])
        self.assertEqual(model["config"]["name"], "linear")
        self.assertEqual(self.status("status/models/linear")["version"], "1")
        curves = self.status(f"status/jobs/{self.jobs[0]}")
        self.assertEqual(curves["train"]["step"][-1], self.finished[0].progress.step)
        self.assertAlmostEqual(curves["train"]["loss"][-1], self.finished[0].progress.loss)
        self.assertEqual(len(curves["train"]["learning_rate"]), len(curves["train"]["step"]))
        self.assertEqual(curves["metrics"]["accuracy"]["value"][-1], self.finished[0].progress.metrics["accuracy"])
        for path, code in (("status/models/none", 404), ("status/models/linear/versions/x", 400), ("status/jobs/none", 404),
                           ("status/", 404), ("page/none.js", 404), ("page/README.md", 404), ("page/../status.json", 404)):
            with self.assertRaises(urllib.error.HTTPError) as caught:
                self.status(path)
            self.assertEqual(caught.exception.code, code, path)
            caught.exception.close()

    def test_files_have_types(self):
        for name, kind in (("", "text/html; charset=utf-8"), ("page/style.css", "text/css; charset=utf-8"),
                           ("page/app.js", "text/javascript; charset=utf-8"), ("page/icon.svg", "image/svg+xml")):
            with urllib.request.urlopen(self.address + name) as answer:
                self.assertEqual(answer.headers["Content-Type"], kind, name)

    def test_files_are_packed_and_whole(self):
        for coding in ("gzip", "identity"):
            answer = urllib.request.urlopen(urllib.request.Request(self.address + "page/chart.min.js", headers={"Accept-Encoding": coding}))
            with answer, open("/usr/share/javascript/chart.js/chart.min.js", "rb") as file:
                body, whole = answer.read(), file.read()
                if coding == "gzip":
                    self.assertLess(len(body), len(whole) / 2)
                    body = gzip.decompress(body)
                self.assertEqual(body, whole)
                self.assertIn("script-src 'self';", answer.headers["Content-Security-Policy"])
                self.assertNotIn("unsafe", answer.headers["Content-Security-Policy"])

    def test_overview(self):
        page = self.page
        groups = page.script("return [...document.querySelectorAll('[data-model]')].map((row) => row.className)")
        order = ["failing", "training", "active", "idle"]
        self.assertEqual(groups, sorted(groups, key=order.index))
        failing = self.cells("raises/1")
        self.assertEqual(failing[0].split(), ["raises", "v1"])
        self.assertRegex(failing[-1], RAISED)
        self.assertEqual(page.style('[data-model="raises/1"] .note', "color"), page.script(
            "const probe = document.body.appendChild(document.createElement('p')); probe.className = 'bad-text';"
            "const color = getComputedStyle(probe).color; probe.remove(); return color"))
        self.assertGreater(float(self.cells("linear/1")[2]), 5)
        self.assertRegex(self.cells("linear/1")[4], "(µs|ms)$")
        self.assertEqual(self.cells("mixed/1")[2:5], ["0", "–", "–"])
        for chart in ("Requests/s", "Latency", "CPU", "Memory"):
            self.assertTrue(page.is_in_view(f'[data-chart="{chart}"]'))
        self.assertIn("threads", page.text('[data-chart="CPU"]'))
        self.assertRegex(page.text('[data-chart="Memory"]'), r"MB\s+models \d+ % · files \d+ %")
        for selector in ('[data-model="raises/1"]', '[data-model="linear/1"]', "[data-job]"):
            self.assertTrue(page.is_in_view(selector), selector)

    def test_numbers_follow_the_server(self):
        points = self.page.curve("Requests/s")[0]
        self.page.wait_polls(3)
        later = self.page.curve("Requests/s")[0]
        self.assertGreater(len(later), len(points))
        self.assertTrue(all(point[1] > 1 for point in later), later)
        times = [point[0] for point in later]
        self.assertEqual(times, sorted(times))
        windows = self.page.script("return Object.values(Chart.instances).map((chart) => [chart.scales.x.min, chart.scales.x.max])")
        self.assertEqual(len(windows), 4)
        self.assertTrue(all(window == windows[0] for window in windows), windows)
        self.assertEqual(windows[0][1] - windows[0][0], 120_000)
        self.page.script("const select = document.getElementById('window'); select.value = '3600'; select.dispatchEvent(new Event('change'))")
        self.assertEqual(self.page.script("return Object.values(Chart.instances).map((chart) => chart.scales.x.max - chart.scales.x.min)"),
                         [3_600_000] * 4)
        self.page.script("localStorage.clear()")

    def test_filter_and_sorting(self):
        page = self.page
        page.find("input[type=search]").send_keys("LINEA")
        self.assertEqual(page.script("return [...document.querySelectorAll('[data-model]')].map((row) => row.dataset.model)"), ["linear/1"])
        page.find("input[type=search]").clear()
        page.find("input[type=search]").send_keys("got 3 rows")
        self.assertEqual(page.script("return [...document.querySelectorAll('[data-model]')].map((row) => row.dataset.model)"), ["raises/1"])
        page.find("input[type=search]").send_keys("x")
        self.assertIn("No model matches “got 3 rowsx”", page.text(".models .empty"))
        page.find("input[type=search]").clear()
        page.find("input[type=search]").send_keys(" ")
        page.find(".sort").click()
        names = page.script("return [...document.querySelectorAll('[data-model] a')].map((link) => link.textContent)")
        self.assertEqual(names, sorted(names, key=str.lower))
        self.assertEqual(page.find("thead th").get_attribute("aria-sort"), "ascending")
        page.find(".sort").click()
        self.assertEqual(page.find("thead th").get_attribute("aria-sort"), "descending")
        page.find(".sort").click()
        self.assertIsNone(page.find("thead th").get_attribute("aria-sort"))

    def test_hostile_names(self):
        page, key = self.page, f"{ODD_NAME}/1"
        row = self.cells(key)
        self.assertEqual(row[0], f"{ODD_NAME} v1")
        self.assertIn("archive", row[-1])
        self.assertEqual(page.script("return document.querySelectorAll('main img').length"), 0)
        page.script("[...document.querySelectorAll('[data-model] a')].find((link) => link.textContent === arguments[0]).click()", ODD_NAME)
        page.wait("document.querySelector('.model h1')")
        self.assertEqual(page.text("h1"), ODD_NAME)
        self.assertIn("archive", page.text(".model .note"))
        self.assertEqual(page.script("return document.querySelectorAll('main img').length"), 0)

    def open_model(self, name):
        self.page.go(f"#/models/{name}/1")
        self.page.wait("document.querySelector('.signature')")

    def ask(self, text):
        field = self.page.find("textarea")
        field.clear()
        field.send_keys(text + "\n")
        return self.page.wait("!document.querySelector('form button').disabled && document.querySelector('.answer').innerText")

    def test_model(self):
        page = self.page
        self.open_model("linear")
        self.assertIn("x", page.text(".signature table"))
        self.assertIn('"name": "linear"', page.text(".signature pre"))
        self.assertEqual(page.text(".versions"), "v1")
        page.wait_polls(2)
        for chart in ("Requests/s", "Latency", "Queue"):
            self.assertGreater(len(page.curve(chart)[0]), 1)
        for selector in ('[data-chart="Queue"]', ".ask form", ".code pre", ".signature table", ".signature pre"):
            self.assertTrue(page.is_in_view(selector), selector)
        answer = self.ask("[[1, 2, 3, 4]]")
        values = torch.jit.load(os.path.join(self.server.models, "linear", "1", "model.pt"))(torch.tensor([[1.0, 2, 3, 4]]))[0].tolist()
        shown = [float(value) for value in page.text(".answer pre").split(",")]
        self.assertTrue(np.allclose(shown, values, rtol=1e-4), (answer, values))
        self.ask("1 2 3")
        self.assertEqual(page.text(".problem"), "x: 3 values do not fill the shape [-1, 4]")

    def test_errors_of_a_request(self):
        self.open_model("raises")
        self.assertIn("got 4 rows", self.ask("[[1], [2], [3], [4]]"))
        self.page.wait("document.querySelector('.model > .note').innerText.includes('rows')")
        self.page.errors()  # the browser notes the status 400 of the answer

    def test_texts_and_files(self):
        page = self.page
        self.open_model("words")
        page.script("document.querySelector('textarea').value = 'two words\\nmore'")
        page.find("form button").click()
        page.wait("document.querySelector('.answer pre')")
        self.assertIn("more", page.text(".answer pre"))
        self.open_model("linear")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows.npy")
            np.save(path, np.ones((2, 4), np.float32))
            page.find("input[type=file]").send_keys(path)
            page.wait("document.querySelector('textarea').disabled")
            page.find("form button").click()
            page.wait("document.querySelector('.answer pre')")
            self.assertEqual(len(page.text(".answer pre").splitlines()), 2)
            self.assertIn("[2, 3]", page.text(".answer"))

    def code(self, name):
        self.page.script("[...document.querySelectorAll('.code button')].find((one) => one.textContent === arguments[0]).click()", name)
        return self.page.script("return document.querySelector('.code pre').textContent")

    def test_code_does_what_the_form_does(self):
        for model, text in (("linear", "[[1, 2, 3, 4]]"), ("words", "it's \"quoted\" \\ $HOME é")):
            self.open_model(model)
            self.ask(text)
            shown = self.page.text(".answer pre")
            answer = json.loads(subprocess.run(["bash", "-c", self.code("curl")], check=True, capture_output=True, timeout=60).stdout)
            value = answer["outputs"][0]["data"][0]
            self.assertIn(json.dumps(value, ensure_ascii=False) if isinstance(value, str) else f"{value:.5g}"[:6], shown)
            printed = subprocess.run([sys.executable, "-c", self.code("Python")], capture_output=True, text=True, timeout=60,
                                     env={**os.environ, "PYTHONPATH": PYTHON_CLIENT})
            self.assertEqual(printed.returncode, 0, printed.stderr)
            self.assertIn(answer["outputs"][0]["name"], printed.stdout)

    def test_tensors_of_all_types(self):
        """What is typed arrives as the same numbers: encoded, decoded, at the ends of the ranges and beyond."""
        result = self.page.driver.execute_async_script("""
            const done = arguments[arguments.length - 1];
            import(new URL("page/tensors.js", location.origin)).then(({ parseText, decode }) => {
              const through = (text, datatype) => {
                try {
                  const { data, shape } = parseText(text, { name: "x", datatype, shape: null });
                  return [decode(data, datatype, 100).map(String), shape];
                } catch (error) { return "refused: " + error.message; }
              };
              done(arguments[0].map(([text, datatype]) => through(text, datatype)));
            }).catch((error) => done(String(error)));""", [
            ["9223372036854775807 -9223372036854775808", "INT64"], ["18446744073709551615", "UINT64"], ["256", "UINT8"], ["-1", "UINT8"],
            ["[[-128], [127]]", "INT8"], ["1.5", "INT32"], ["65504 65520 1e-8 0.1 NaN -inf", "FP16"], ["0.1 3e38", "BF16"],
            ["true 0", "BOOL"], ["[[1, 2], [3]]", "FP32"], ["[1, 2", "FP32"], ["0.1 1e-300", "FP64"], ["one\ntwo é", "BYTES"]])
        half = [str(float(np.float16(value))) for value in (65504, 1e-8, 0.1)]
        self.assertEqual(result[0], [["9223372036854775807", "-9223372036854775808"], [2]])
        self.assertEqual(result[1], [["18446744073709551615"], [1]])
        for i in (2, 3, 5, 9, 10):
            self.assertTrue(str(result[i]).startswith("refused"), result[i])
        self.assertEqual(result[4], [["-128", "127"], [2, 1]])
        values = result[6][0]
        self.assertEqual([float(values[0]), float(values[2]), float(values[3])], [float(value) for value in half])
        self.assertEqual(values[1:2] + values[4:], ["Infinity", "NaN", "-Infinity"])
        self.assertEqual([float(value) for value in result[7][0]],
                         [float(torch.tensor(value).to(torch.bfloat16)) for value in (0.1, 3e38)])
        self.assertEqual(result[8], [["true", "false"], [2]])
        self.assertEqual([float(value) for value in result[11][0]], [0.1, 1e-300])
        self.assertEqual(result[12], [["one", "two é"], [2]])

    def test_job(self):
        page = self.page
        page.go(f"#/jobs/{self.jobs[0]}")
        page.wait("document.querySelector('.run') && Chart.getChart(document.querySelector('[data-chart=Loss] canvas')).data.datasets[0]?.data.length")
        self.assertEqual(page.text("h1"), f"rate {RATES[0]}")
        self.assertEqual(self.finished[0].state, COMPLETED)
        curves = self.status(f"status/jobs/{self.jobs[0]}")
        losses = page.curve("Loss")
        self.assertEqual([point[1] for point in losses[0]], curves["train"]["loss"])
        self.assertEqual([point[1] for point in losses[1]], curves["metrics"]["loss"]["value"])
        self.assertEqual([point[1] for point in page.curve("Metric")[0]], curves["metrics"]["accuracy"]["value"])
        self.assertEqual([point[1] for point in page.curve("Learning rate")[0]], curves["train"]["learning_rate"])
        for job in self.jobs[1:]:
            page.find(f'[id="run-{job}"]').click()
        page.wait("Chart.getChart(document.querySelector('[data-chart=\"Learning rate\"] canvas')).data.datasets.filter((set) => set.data.length).length === 3")
        for selector in ('[data-chart="Loss"]', '[data-chart="Metric"]', '[data-chart="Learning rate"]', ".runs"):
            self.assertTrue(page.is_in_view(selector), selector)
        # Smoothing averages: less variation, the raw curve remains as another line.
        page.script("const range = document.getElementById('smoothing'); range.value = 0.9; range.dispatchEvent(new Event('input'))")
        smooth, raw = page.curve("Loss")[0], page.curve("Loss")[6]
        self.assertEqual([point[1] for point in raw], curves["train"]["loss"])
        self.assertEqual(smooth[0], raw[0])
        self.assertLess(np.abs(np.diff([point[1] for point in smooth])).mean(), np.abs(np.diff([point[1] for point in raw])).mean())
        page.find("#log").click()
        self.assertEqual(page.script("return Chart.getChart(document.querySelector('[data-chart=Loss] canvas')).scales.y.type"), "logarithmic")
        page.script("localStorage.clear()")

    def test_the_metrics_port_sends_to_the_other(self):
        ready = self.server.daemon.ready
        with StatusPage(f"http://{ready['metrics']}/") as page:
            page.open("#/models/linear/1")
            page.wait("document.querySelector('.ask a')")
            self.assertEqual(page.script("return document.querySelector('.ask a').href"), f"http://{ready['http']}/#/models/linear/1")
            self.assertEqual(page.errors(), [])

    def test_zz_pictures(self):
        if not self.pictures:
            self.skipTest("only with --pictures FOLDER")
        page, folder = self.page, self.pictures
        os.makedirs(folder, exist_ok=True)
        job = self.server.create(name="fine-tuning", epochs=10_000_000)
        time.sleep(125)  # until the charts are full
        page.picture(os.path.join(folder, "overview.png"))
        page.set_dark(True)
        page.wait_polls(1)
        page.picture(os.path.join(folder, "overview_dark.png"))
        page.set_dark(False)
        page.script("document.querySelector('[data-model=\"shapes/1\"] a').click()")
        page.wait("document.querySelector('.signature')")
        self.ask("random:1,1,32,32")
        self.code("Python")
        page.wait_polls(1)
        page.picture(os.path.join(folder, "model.png"))
        page.go(f"#/jobs/{self.jobs[0]}")
        for other in self.jobs[1:]:
            page.wait(f"document.querySelector('[id=\"run-{other}\"]')")
            page.find(f'[id="run-{other}"]').click()
        page.script("const range = document.getElementById('smoothing'); range.value = 0.8; range.dispatchEvent(new Event('input'))")
        page.wait_polls(2)
        page.picture(os.path.join(folder, "job.png"))
        page.script("localStorage.clear()")
        self.server.stub.CancelJob(training.CancelJobRequest(id=job.id))


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "--pictures":
        StatusPageTest.pictures = sys.argv.pop(2)
        sys.argv[1:] = ["StatusPageTest.test_zz_pictures"]
    unittest.main()
