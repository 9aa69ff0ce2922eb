"""REST calls other than inference with the real daemon: metadata, repository, settings, curl, a page in Chromium,
tokens."""

import base64
import gzip
import json
import os
import shutil
import struct
import subprocess
import tempfile
import time
import unittest

from tests.e2e.rest import RestTest, X, tensor


class ControlTest(RestTest):
    flags = ("--model-control-mode", "explicit", "--load-model", "*", "--allow-client-shm", "true")

    def test_metadata_and_configuration(self):
        self.assertEqual(self.get("/v2")["name"], "tensord")
        self.assertIn("binary_tensor_data", self.get("/v2")["extensions"])
        self.assertEqual(self.get("/v2/models/identity"), {
            "name": "identity", "versions": ["1"], "platform": "pytorch_libtorch",
            "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1]}],
            "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1]}]})
        config = self.get("/v2/models/batched/config")
        self.assertEqual((config["max_batch_size"], config["input"][0]["dims"]), (4, [2]))
        self.assertEqual(config["default_model_filename"], "model.pt")  # also if a copy of it is served
        self.assertEqual(self.get("/v2/models/identity/ready"), {"name": "identity", "ready": True})
        self.assertEqual(self.get("/v2/models/none/ready", 503), {"name": "none", "ready": False})
        self.assertIn("not found", self.get("/v2/models/none", 404)["error"])
        self.assertGreater(len(self.get("/v2/models/stats")["model_stats"]), 5)

    def test_repository(self):
        index = self.post("/v2/repository/index")
        self.assertIn({"name": "identity", "version": "1", "state": "READY", "reason": ""}, index)
        self.assertIsNone(self.post("/v2/repository/models/identity/unload"))
        self.assertEqual(self.get("/v2/models/identity/ready", 503)["ready"], False)
        names = [model["name"] for model in self.post("/v2/repository/index", {"ready": True})]
        self.assertNotIn("identity", names)
        self.assertIsNone(self.post("/v2/repository/models/identity/load"))
        self.assertTrue(self.get("/v2/models/identity/ready")["ready"])
        with open(os.path.join(self.folder.name, "identity", "1", "model.pt"), "rb") as archive:
            file = base64.b64encode(archive.read()).decode()
        config = json.dumps({"name": "brought", "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [-1]}]})
        self.post("/v2/repository/models/brought/load", {"parameters": {"config": config, "file:1/model.pt": file}})
        self.assertEqual(self.infer("brought", X)["outputs"][0]["data"], [1.0, 2.5])
        self.post("/v2/repository/models/brought/unload", {"parameters": {"unload_dependents": False}})
        self.assertIn("not supported", self.post("/v2/repository/r/models/m/load", status=501)["error"])
        self.assertIn("base64", self.post("/v2/repository/models/brought/load",
                                          {"parameters": {"file:1/model.pt": "!"}}, 400)["error"])
        self.post("/v2/repository/models/nothing/load", status=404)

    def test_settings(self):
        self.assertEqual(self.get("/v2/trace/setting")["trace_level"], ["OFF"])
        self.assertEqual(self.post("/v2/trace/setting", {"trace_rate": "5"})["trace_rate"], "5")
        self.assertEqual(self.post("/v2/models/identity/trace/setting", {"trace_rate": 7})["trace_rate"], "7")
        self.assertEqual(self.post("/v2/models/identity/trace/setting", {"trace_rate": None})["trace_rate"], "5")
        self.post("/v2/trace/setting", {"trace_file": "x"}, 501)
        self.assertIs(self.get("/v2/logging")["log_info"], True)
        self.assertEqual(self.post("/v2/logging", {"log_verbose_level": 1, "log_error": None})["log_verbose_level"], 1)
        self.post("/v2/logging", {"log_verbose_level": 0})
        self.post("/v2/logging", {"log_file": "x"}, 501)
        self.post("/v2/logging", b"{", 400)

    def test_shared_memory(self):
        name = f"/tensord_rest_{os.getpid()}"
        data = struct.pack("<4f", 1, 2, 3, 4)
        with open("/dev/shm" + name, "wb") as region:
            region.write(data + bytes(16))
        try:
            base = "/v2/systemsharedmemory"
            self.post(f"{base}/region/r/register", {"key": name, "byte_size": 32})
            self.assertEqual(self.get(f"{base}/status"), [{"name": "r", "key": name, "offset": 0, "byte_size": 32}])
            self.assertIn("already", self.post(f"{base}/region/r/register", {"key": name, "byte_size": 32}, 400)["error"])
            source = tensor("x", "FP32", [4], shared_memory_region="r", shared_memory_byte_size=16)
            target = {"name": "y", "parameters": {"shared_memory_region": "r", "shared_memory_byte_size": 16,
                                                  "shared_memory_offset": 16}}
            answer = self.infer("identity", source, outputs=[target])
            self.assertEqual(answer["outputs"], [tensor("y", "FP32", [4])])
            with open("/dev/shm" + name, "rb") as region:
                self.assertEqual(region.read(), data + data)
            # Numbers that no signed one holds, as tritonclient sends them.
            for place, message in (({"shared_memory_byte_size": 16, "shared_memory_offset": 2**64 - 32}, "Invalid offset for"),
                                ({"shared_memory_byte_size": 2**64 - 32, "shared_memory_offset": 31}, "Invalid offset + byte size"),
                                ({"shared_memory_byte_size": 2**64 - 16, "shared_memory_offset": 31}, "Integer overflow detected: ")):
                wrong = {"name": "y", "parameters": {"shared_memory_region": "r", **place}}
                self.assertIn(message, self.infer("identity", source, outputs=[wrong], status=400)["error"])
            self.post(f"{base}/region/r/unregister")
            self.assertEqual(self.get(f"{base}/status"), [])
            self.get(f"{base}/region/r/status", 404)
        finally:
            os.unlink("/dev/shm" + name)

    def test_openapi(self):
        document = self.get("/v2/openapi.json")
        self.assertEqual(document["openapi"], "3.0.3")
        # It lists only existing paths.
        for path, methods in document["paths"].items():
            path = path.replace("{model}", "none").replace("{version}", "1").replace("{region}", "none")
            for method in methods:
                code, _, body = self.ask(method.upper(), path, b"{}" if method == "post" else None)
                self.assertNotEqual(code, 405, (method, path))
                self.assertNotIn(b'"Not Found"', body, (method, path))

    def test_curl(self):
        def curl(*arguments):
            done = subprocess.run(["curl", "-sS", "--max-time", "60", *arguments], capture_output=True, check=True)
            return done.stdout

        url = f"http://{self.host}:{self.port}/v2"
        self.assertEqual(json.loads(curl(f"{url}/health/live")), {"live": True})
        # curl -d sends a form content type, which must not be refused.
        answer = curl("-d", json.dumps({"inputs": [X]}), f"{url}/models/identity/infer")
        self.assertEqual(json.loads(answer)["outputs"][0]["data"], [1.0, 2.5])
        answer = curl("--compressed", "-d", json.dumps({"inputs": [X]}), f"{url}/models/identity/infer")
        self.assertEqual(json.loads(answer)["outputs"][0]["data"], [1.0, 2.5])
        # Above 1 MB curl expects a 100 response.
        large = os.path.join(self.folder.name, "large.json")
        with open(large, "w") as out:
            json.dump({"inputs": [tensor("x", "FP32", [300_000], [0.5] * 300_000)]}, out)
        begin = time.monotonic()
        answer = curl("--data-binary", f"@{large}", "-H", "Expect: 100-continue", f"{url}/models/identity/infer")
        self.assertEqual(len(json.loads(answer)["outputs"][0]["data"]), 300_000)
        self.assertLess(time.monotonic() - begin, 300)
        os.unlink(large)

    def test_a_page_in_a_browser(self):
        if not shutil.which("chromedriver"):
            self.skipTest("there is no chromium")
        from tests.e2e.page_browser import browser

        page = browser()
        try:
            page.get(f"http://{self.host}:{self.port}/")
            page.set_script_timeout(60)
            answer = page.execute_async_script(
                "const done = arguments[arguments.length - 1];"
                "fetch('/v2/models/identity/infer', {method: 'POST', body: arguments[0]})"
                ".then(answer => answer.json()).then(done, error => done(String(error)));",
                json.dumps({"inputs": [X]}))
            self.assertEqual(answer["outputs"][0]["data"], [1, 2.5])
        finally:
            page.quit()


class AccessTest(RestTest):
    @classmethod
    def setUpClass(cls):
        cls.tokens = tempfile.NamedTemporaryFile("w", suffix=".tokens")
        cls.tokens.write("inference caller\nall admin\n")
        cls.tokens.flush()
        cls.flags = ("--access-tokens", cls.tokens.name, "--http-restricted-api", "logging:x-key=secret",
                     "--grpc-restricted-protocol", "trace:admin=hidden", "--http-header-forward-pattern", "x-.*",
                     "--grpc-max-message-size", "1MB")
        super().setUpClass()

    def code(self, method, path, body=None, **headers):
        return self.ask(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})[0]

    def test_tokens_open_what_they_open_over_grpc(self):
        infer, body = "/v2/models/identity/infer", json.dumps({"inputs": [X]})
        self.assertEqual(self.code("POST", infer, body), 401)
        self.assertEqual(self.code("POST", infer, body, Authorization="Bearer wrong"), 401)
        self.assertEqual(self.code("POST", infer, body, Authorization="Bearer caller"), 200)
        basic = base64.b64encode(b"any:caller").decode()
        self.assertEqual(self.code("POST", infer, body, Authorization=f"Basic {basic}"), 200)
        self.assertEqual(self.code("GET", "/v2", Authorization="Bearer caller"), 403)
        self.assertEqual(self.code("GET", "/v2", Authorization="Bearer admin"), 200)
        self.assertEqual(self.code("POST", "/v2/repository/index", Authorization="Bearer caller"), 403)
        self.assertEqual(self.code("POST", "/v2/models/identity/generate", b"{}", Authorization="Bearer none"), 401)
        self.assertEqual(self.code("GET", "/v2/health/live"), 200)
        self.assertEqual(self.code("GET", "/v2/models/identity/ready"), 200)

    def test_restricted_calls_need_their_header(self):
        admin = {"Authorization": "Bearer admin"}
        code, _, body = self.ask("GET", "/v2/logging", None, admin)
        self.assertEqual((code, json.loads(body)["error"]),
                         (403, "This API is restricted, expecting header 'x-key'"))
        self.assertEqual(self.ask("GET", "/v2/logging", None, {**admin, "X-Key": "secret"})[0], 200)
        self.assertEqual(self.ask("GET", "/v2/logging", None, {"X-Key": "secret"})[0], 401)
        # HTTP is restricted like gRPC.
        self.assertEqual(self.ask("GET", "/v2/trace/setting", None, admin)[0], 403)
        self.assertEqual(self.ask("GET", "/v2/trace/setting", None, {**admin, "triton-grpc-protocol-admin": "hidden"})[0],
                         200)

    def test_sizes(self):
        self.assertEqual(self.code("POST", "/v2/models/identity/infer", b"x" * (2 << 20), Authorization="Bearer admin"), 413)
        packed = gzip.compress(b" " * (64 << 20))
        self.assertEqual(self.code("POST", "/v2/models/identity/infer", packed, Authorization="Bearer admin",
                                   Content_Encoding="gzip"), 400)


if __name__ == "__main__":
    unittest.main()
