"""Inference over REST with the real daemon: JSON, binary tensors, generation, malformed bodies. NVIDIA's client is in
clients/tritonclient_http_test.py."""

import gzip
import http.client
import json
import os
import random
import socket
import struct
import unittest
import zlib

from tests.e2e.daemon import request
from tests.e2e.processes import wait_until
from tests.e2e.rest import RestTest, X, tensor


class InferTest(RestTest):
    def test_json_in_and_out(self):
        answer = self.infer("identity", X, id="seven")
        self.assertEqual(answer, {"id": "seven", "model_name": "identity", "model_version": "1", "outputs": [
            {"name": "y", "datatype": "FP32", "shape": [2], "data": [1.0, 2.5]}]})
        answer = self.post("/v2/models/identity/versions/1/infer", {"inputs": [tensor("x", "FP32", [1], 4)]})
        self.assertEqual(answer["outputs"][0]["data"], [4.0])
        answer = self.infer("batched", tensor("x", "FP32", [2, 2], [[1, 2], [3, 4]]))
        self.assertEqual(answer["outputs"][0]["data"], [1.0, 2.0, 3.0, 4.0])
        answer = self.infer("words", tensor("words", "BYTES", [2], ["a", "é\""]))
        self.assertEqual(answer["outputs"][0]["data"], ["aa", "é\"é\""])

    def test_members_that_are_null_are_absent(self):
        body = {"id": None, "parameters": None, "outputs": None, "inputs": [{**X, "parameters": None}]}
        self.assertEqual(self.post("/v2/models/identity/infer", body)["outputs"][0]["data"], [1.0, 2.5])
        body = {"inputs": [X], "outputs": [{"name": "y", "parameters": {"binary_data": None, "classification": None}}], "parameters": {"p": None}}
        self.assertEqual(self.post("/v2/models/identity/infer", body)["outputs"][0]["data"], [1.0, 2.5])
        self.assertIn("'inputs'", self.post("/v2/models/identity/infer", {"inputs": None}, status=400)["error"])

    def binary(self, head, tensors, path="/v2/models/identity/infer", headers=None, coding=lambda body: body):
        head_json = json.dumps(head).encode()
        headers = {"Inference-Header-Content-Length": str(len(head_json)), **(headers or {})}
        code, headers, body = self.ask("POST", path, coding(head_json + tensors), headers)
        self.assertEqual(code, 200, body)
        if headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        if headers.get("Content-Encoding") == "deflate":
            body = zlib.decompress(body)
        length = int(headers.get("Inference-Header-Content-Length", len(body)))
        return json.loads(body[:length]), body[length:]

    def test_binary_tensors(self):
        data = struct.pack("<3f", 1, 2, 3)
        head = {"inputs": [tensor("x", "FP32", [3], binary_data_size=12)], "parameters": {"binary_data_output": True}}
        answer, tensors = self.binary(head, data)
        self.assertEqual(answer["outputs"], [tensor("y", "FP32", [3], binary_data_size=12)])
        self.assertEqual(tensors, data)
        head["outputs"] = [{"name": "y"}]  # listed outputs have parameters of their own
        self.assertEqual(self.binary(head, data)[0]["outputs"][0]["data"], [1.0, 2.0, 3.0])
        large = os.urandom(3 << 20)
        head = {"inputs": [tensor("x", "FP32", [len(large) // 4], binary_data_size=len(large))],
                "outputs": [{"name": "y", "parameters": {"binary_data": True}}]}
        self.assertEqual(self.binary(head, large)[1], large)
        half = struct.pack("<2e", 1.5, -2)
        head = {"inputs": [tensor("x", "FP16", [2], binary_data_size=4)], "parameters": {"binary_data_output": True}}
        self.assertEqual(self.binary(head, half, "/v2/models/half/infer")[1], half)
        invalid = struct.pack("<I", 2) + b"\xff\0" + struct.pack("<I", 0)
        head = {"inputs": [tensor("words", "BYTES", [2], binary_data_size=len(invalid))],
                "parameters": {"binary_data_output": True}}
        self.assertIn(struct.pack("<I", 4) + b"\xff\0\xff\0" + struct.pack("<I", 0),
                      self.binary(head, invalid, "/v2/models/words/infer")[1])

    def test_tensors_are_received_and_sent_where_they_lie(self):
        copied = lambda: self.daemon.metric("tensord_copied_bytes_total", model="identity")
        before, size = copied(), 4 << 20
        head = {"inputs": [tensor("x", "FP32", [size // 4], binary_data_size=size)], "parameters": {"binary_data_output": True}}
        for padding in range(0, 7, 3):  # at any offset after the JSON
            head["id"] = "1" * padding
            self.binary(head, bytes(size))
        self.assertEqual(self.ask("POST", "/v2/models/identity/infer", bytes(size), {"Inference-Header-Content-Length": "0"})[0], 200)
        self.assertEqual(copied(), before)

    def test_a_body_without_json_is_the_one_input(self):
        data = struct.pack("<3f", 1, 2, 3)
        code, headers, body = self.ask("POST", "/v2/models/identity/infer", data,
                                       {"Inference-Header-Content-Length": "0"})
        self.assertEqual(code, 200, body)
        self.assertEqual(body[int(headers["Inference-Header-Content-Length"]):], data)
        # For strings it is a single one, and the model must accept one.
        self.assertIn("the model must have input shape [1]", self.error("POST", "/v2/models/words/infer", b"text", 400,
                                                                        {"Inference-Header-Content-Length": "0"}))
        code, headers, body = self.ask("POST", "/v2/models/word/infer", b"text", {"Inference-Header-Content-Length": "0"})
        self.assertEqual(code, 200, body)
        self.assertIn(struct.pack("<I", 8) + b"texttext", body)

    def test_compressed_bodies(self):
        data = struct.pack("<4f", 1, 2, 3, 4) * 1000
        head = {"inputs": [tensor("x", "FP32", [4000], binary_data_size=16000)],
                "outputs": [{"name": "y", "parameters": {"binary_data": True}}]}
        for name, coding in (("gzip", gzip.compress), ("deflate", zlib.compress), ("identity", lambda body: body)):
            headers = {"Content-Encoding": name, "Accept-Encoding": name}
            self.assertEqual(self.binary(head, data, headers=headers, coding=coding)[1], data)
        _, headers, body = self.ask("POST", "/v2/models/identity/infer", b"x", {"Content-Encoding": "br"})
        self.assertEqual(json.loads(body)["error"], "Unsupported compression type")
        self.assertEqual(headers["Accept-Encoding"], "gzip, deflate")
        self.assertIn("cannot be unpacked",
                      self.error("POST", "/v2/models/identity/infer", b"xyz", 400, {"Content-Encoding": "gzip"}))

    def test_chunked_bodies(self):
        request_json = json.dumps({"inputs": [X]}).encode()
        code, _, body = self.ask("POST", "/v2/models/identity/infer", iter([request_json[:9], request_json[9:40], request_json[40:]]))
        self.assertEqual((code, json.loads(body)["outputs"][0]["data"]), (200, [1.0, 2.5]))

    def test_errors_are_the_protocols(self):
        path = "/v2/models/identity/infer"

        def refused(status, *inputs, **more):
            return self.infer("identity", *inputs, status=status, **more)["error"]

        self.assertEqual(self.error("POST", path, b"nope", 400),
                         "failed to parse the request JSON buffer: Invalid value. at 0")
        self.assertIn("The document is empty.", self.error("POST", path, b"", 400))
        self.assertIn("nesting depth exceeds", self.error("POST", path, b"[" * 100000, 400))
        self.assertIn("But no field is set", refused(400, tensor("x", "FP32", [2])))
        self.assertIn("shape does not match", refused(400, tensor("x", "FP32", [3], [1, 2])))
        self.assertIn("Shape does not match", refused(400, tensor("x", "FP32", [1], [1, 2])))
        for ragged in ([[1, 2, 3], [4]], [[1], [2, 3, 4]], [1, [2, 3, 4]]):
            self.assertIn("lists are ragged", refused(400, tensor("x", "FP32", [4], ragged)))
        for shape in (-1, 1.5, 1e30):
            self.assertIn("Unable to parse 'shape'", refused(400, tensor("x", "FP32", [shape], [1])))
        y = {**X, "name": "y"}
        for field, inputs in (("inputs[0].shape", [tensor("x", "FP32", [-1], [1])]), ("inputs[1].shape", [y, {**X, "shape": "a"}]),
                              ("inputs[1].datatype", [y, {**X, "datatype": 3}]), ("inputs[0]", [{"name": "x", "shape": [1]}]),
                              ("inputs[0].parameters.p", [{**X, "parameters": {"p": [1]}}]), ("inputs", [3])):
            self.assertIn(f"(field '{field}", refused(400, *inputs))
        self.assertIn("unexpected inference input 'z'", refused(400, tensor("z", "FP32", [1], [1])))
        self.assertIn("data-type is 'INT32', but model 'identity' expects 'FP32'",
                      refused(400, tensor("x", "INT32", [1], [1])))
        self.assertIn("unexpected shape", refused(400, tensor("x", "FP32", [1, 1], [1])))
        self.assertIn("parameter keys starting with 'triton_'", refused(400, X, parameters={"triton_x": 1}))
        self.assertIn("has invalid type", refused(400, X, parameters={"p": [1]}))
        self.assertIn("receiving FP16 data via JSON is not supported",
                      self.infer("half", tensor("x", "FP16", [1], [1]), status=400)["error"])
        head = json.dumps({"inputs": [tensor("x", "FP16", [1], binary_data_size=2)]}).encode()
        self.assertIn("sending FP16 data via JSON is not supported",
                      self.error("POST", "/v2/models/half/infer", head + b"ab", 400,
                                 {"Inference-Header-Content-Length": str(len(head))}))
        self.assertIn("inference header size should be in range (0, 4), got: 9",
                      self.error("POST", path, b"abcd", 400, {"Inference-Header-Content-Length": "9"}))
        self.assertIn("unknown model: 'none' is not found", self.infer("none", X, status=404)["error"])
        self.assertIn("HTTP end point doesn't support models with decoupled transaction policy",
                      self.infer("count", tensor("x", "FP32", [1], [2]), status=501)["error"])
        self.assertIn("got 3 rows", self.infer("raises", tensor("x", "FP32", [3], [1, 2, 3]), status=400)["error"])
        self.assertEqual(self.error("GET", path, None, 405), "Method Not Allowed")
        for method, place in (("POST", "/v2/nothing"), ("GET", "/v2/models/identity/versions/1/x"), ("GET", "/v2/healt/live")):
            self.assertIn("GET /v2/openapi.json has all", self.error(method, place, b"" if method == "POST" else None, 404))
        for place in ("/v1/models/identity:predict", "/v3/models", "/v3", "/V2/models", "/v10/x", "/v21/models"):
            self.assertEqual(self.error("POST", place, b"{}", 404),
                             f"the protocol {place.split('/')[1]} is not served; v2 is, as POST /v2/models/NAME/infer")

    def test_data_of_another_length_names_its_input(self):
        for values, said in (([1], "Failed to parse 'data' field"), ([1, 2, 3], "Unable to parse 'data'"), ([[1, 2], [3]], "Unable to parse 'data'"),
                             ([], "Failed to parse 'data' field"), ([[1], 2], "Unable to parse 'data': its lists are ragged")):
            error = self.infer("identity", tensor("x", "FP32", [2], values), status=400)["error"]
            self.assertIn(said, error)
            self.assertTrue(error.endswith(" (input 'x' of shape [2] has 2 elements)"), error)
        head = json.dumps({"inputs": [tensor("x", "FP32", [1], binary_data_size=4)]}).encode()
        self.assertIn("3 bytes more than its inputs' binary_data_size",
                      self.error("POST", "/v2/models/identity/infer", head + b"abcdefg", 400, {"Inference-Header-Content-Length": str(len(head))}))

    def test_classes_and_statistics_are_those_of_grpc(self):
        before = self.get("/v2/models/identity/stats")["model_stats"][0]["inference_stats"]["success"]["count"]
        answer = self.infer("batched", tensor("x", "FP32", [1, 2], [1, 3]),
                            outputs=[{"name": "y", "parameters": {"classification": 1}}])
        self.assertEqual(answer["outputs"][0], tensor("y", "BYTES", [1, 1], ["3.000000:1"]))
        self.infer("identity", X)
        self.daemon.stub.ModelInfer(request("identity", [("x", "FP32", [1], struct.pack("<f", 1))]))
        after = self.get("/v2/models/identity/versions/1/stats")["model_stats"][0]
        self.assertEqual(after["inference_stats"]["success"]["count"], before + 2)
        self.assertEqual(after["version"], "1")

    def test_generate(self):
        answer = self.post("/v2/models/identity/generate", {"id": "3", "x": [1, 2], "parameters": {"p": "q"}})
        self.assertEqual(answer, {"id": "3", "model_name": "identity", "model_version": "1", "y": [1.0, 2.0]})
        self.assertEqual(self.post("/v2/models/identity/generate", {"x": 5})["y"], 5.0)
        self.assertEqual(self.post("/v2/models/words/generate", {"words": "ab"})["OUTPUT__0"], "abab")
        self.assertEqual(self.post("/v2/models/batched/generate", {"x": [1, 2]})["y"], [1.0, 2.0])
        self.assertIn("can not convert input 'x'", self.post("/v2/models/batched/generate", {"x": 1}, 400)["error"])
        self.assertIn("Converting keyword: 'parameters': parameter 'nested' has invalid type.",
                      self.post("/v2/models/identity/generate", {"x": 1, "parameters": {"nested": {"a": 1}}}, 400)["error"])
        self.assertIn("attempt to access JSON non-string as string",
                      self.post("/v2/models/words/generate", {"words": {"a": "b"}}, 400)["error"])
        self.assertIn("input 'x' already exists in request",
                      self.error("POST", "/v2/models/identity/generate", b'{"x": 1, "x": 2}', 400))
        self.assertIn("Expected JSON object for keyword: 'parameters'",
                      self.post("/v2/models/identity/generate", {"x": 1, "parameters": 2}, 400)["error"])
        self.assertEqual(self.post("/v2/models/count/generate", {"x": [1, 7]})["OUTPUT__0"], [1.0, 7.0])
        self.assertIn("exactly 1 response", self.post("/v2/models/count/generate", {"x": 3}, 500)["error"])
        self.assertIn("not found", self.post("/v2/models/none/generate", {"x": 3}, 404)["error"])

    def test_generate_stream(self):
        code, headers, body = self.ask("POST", "/v2/models/count/generate_stream", json.dumps({"x": [3]}))
        self.assertEqual((code, headers["Content-Type"]), (200, "text/event-stream; charset=utf-8"))
        events = [json.loads(line[6:]) for line in body.decode().split("\n\n") if line]
        self.assertEqual([event["OUTPUT__0"] for event in events], [3.0, 4.0, 5.0])
        code, headers, body = self.ask("POST", "/v2/models/identity/generate_stream", json.dumps({"x": [3]}))
        self.assertEqual(json.loads(body[6:])["y"], 3.0)
        self.assertIn("invalid type", self.post("/v2/models/count/generate_stream", {"x": 1, "q": []}, 400)["error"])

    def test_a_client_that_goes_cancels_its_request(self):
        body = json.dumps({"inputs": [tensor("x", "FP32", [1], [0]), tensor("rounds", "INT64", [1], [10**9])]})
        head = f"POST /v2/models/sleepy/infer HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection((self.host, int(self.port))) as client:
            client.sendall((head + body).encode())
            wait_until(lambda: self.daemon.metric("tensord_in_flight_requests", model="sleepy") == 1)
        wait_until(lambda: self.daemon.metric("tensord_in_flight_requests", model="sleepy") == 0)

    def test_mutated_bodies_break_nothing(self):
        whole = json.dumps({"id": "1", "inputs": [X], "outputs": [{"name": "y"}]}).encode()
        rng = random.Random(1)
        codes = set()
        connection = http.client.HTTPConnection(self.host, int(self.port), timeout=300)
        for _ in range(600):
            body = bytearray(whole)
            for _ in range(rng.randrange(1, 4)):
                at = rng.randrange(len(body))
                if rng.random() < 0.5:
                    body[at] = rng.randrange(256)
                else:
                    del body[at:at + rng.randrange(1, 12)]
            headers = {"Inference-Header-Content-Length": str(rng.randrange(len(body) + 3))} if rng.random() < 0.2 else {}
            connection.request("POST", "/v2/models/identity/infer", bytes(body), headers)
            answer = connection.getresponse()
            answered = answer.read()
            codes.add(answer.status)
            if answer.status != 200:
                self.assertIn("error", json.loads(answered))
        connection.close()
        self.assertLessEqual(codes, {200, 400, 404, 500, 501})
        self.assertIn(200, codes)
        self.assertEqual(self.infer("identity", X)["outputs"][0]["data"], [1.0, 2.5])


    def test_mutated_binary_bodies_break_nothing(self):
        head = json.dumps({"inputs": [tensor("x", "FP32", [4], binary_data_size=16)], "outputs": [
            {"name": "y", "parameters": {"binary_data": True}}]}).encode()
        data = struct.pack("<4f", 1, 2, 3, 4)
        rng = random.Random(2)
        codes = set()
        connection = http.client.HTTPConnection(self.host, int(self.port), timeout=300)
        for _ in range(600):
            mutated, tail, length = bytearray(head), data, None
            for _ in range(rng.randrange(0, 3)):
                at = rng.randrange(len(mutated))
                mutated[at:at + rng.randrange(0, 4)] = rng.choice((b"9", b"-", b"{", b'"', b"e", b"\xff", b"", b"1844674407370955161"))
            if rng.random() < 0.3:
                tail = rng.choice((b"", data[:7], data + data, bytes(100)))
            if rng.random() < 0.3:
                length = rng.choice(("-1", "abc", "0", "1e3", "+5", " 7", "99999999999999999999", str(len(mutated) - 1), str(len(mutated) + 16)))
            headers = {"Inference-Header-Content-Length": length or str(len(mutated))}
            body = bytes(mutated) + tail
            if rng.random() < 0.3:
                coding = rng.choice(("gzip", "deflate"))
                body = bytearray(gzip.compress(body) if coding == "gzip" else zlib.compress(body))
                if rng.random() < 0.5:
                    body[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
                headers["Content-Encoding"] = coding
            connection.request("POST", "/v2/models/identity/infer", bytes(body), headers)
            answer = connection.getresponse()
            out = answer.read()
            codes.add(answer.status)
            if answer.status != 200:
                self.assertIn("error", json.loads(out))
        connection.close()
        self.assertLessEqual(codes, {200, 400, 404, 500, 501})
        self.assertIn(200, codes)
        self.assertEqual(self.binary(json.loads(head), data)[1], data)


class OriginTest(RestTest):
    flags = ("--http-allow-origin", "https://app.example.org", "--http-allow-origin", "http://localhost:3000")

    def test_pages_of_allowed_origins(self):
        path, asks = "/v2/models/identity/infer", {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
        for origin in ("https://app.example.org", "http://localhost:3000"):
            code, headers, body = self.ask("OPTIONS", path, headers={"Origin": origin, **asks})
            self.assertEqual((code, body, headers["Access-Control-Allow-Origin"]), (200, b"", origin))
            self.assertIn("POST", headers["Access-Control-Allow-Methods"])
            code, headers, _ = self.ask("POST", path, json.dumps({"inputs": [X]}), {"Origin": origin})
            self.assertEqual((code, headers["Access-Control-Allow-Origin"], headers["Vary"]), (200, origin, "Origin"))
            code, headers, _ = self.ask("GET", "/v2/models/none", headers={"Origin": origin})
            self.assertEqual((code, headers["Access-Control-Allow-Origin"]), (404, origin))
        for others in ({"Origin": "https://evil.example.org"}, {}):
            code, headers, _ = self.ask("OPTIONS", path, headers={**others, **asks})
            self.assertEqual((code, headers.get("Access-Control-Allow-Origin")), (405, None))
            code, headers, _ = self.ask("POST", path, json.dumps({"inputs": [X]}), others)
            self.assertEqual((code, headers.get("Access-Control-Allow-Origin"), headers["Vary"]), (200, None, "Origin"))


class SizeTest(RestTest):
    flags = ("--http-max-input-size", "1MB", "--model-control-mode", "explicit", "--load-model", "*")

    def test_what_a_request_may_bring(self):
        path, limit = "/v2/models/identity/infer", 1 << 20
        whole = json.dumps({"inputs": [X]}).encode()
        for body, headers in ((whole.ljust(limit), {}), (gzip.compress(whole.ljust(limit)), {"Content-Encoding": "gzip"}),
                              (bytes(limit), {"Inference-Header-Content-Length": "0"})):
            self.assertEqual(self.ask("POST", path, body, headers)[0], 200, headers)
        too_large = whole.ljust(limit + 1)
        json_message = f"request JSON size of {limit + 1} bytes exceeds the maximum allowed input size of {limit} bytes"
        # Also where nobody knows before it is there, and before it is there.
        self.assertIn(json_message, self.error("POST", path, too_large, 400))
        self.assertIn(json_message, self.error("POST", path, iter([too_large[:9], too_large[9:]]), 400))
        self.assertIn(json_message, self.error("POST", "/v2/models/identity/generate", too_large, 400))
        self.assertIn(json_message, self.error("POST", "/v2/repository/models/identity/load", too_large, 400))
        self.assertIn(f"Decompressed data size exceeds the maximum allowed value of {limit} bytes",
                      self.error("POST", path, gzip.compress(too_large), 400, {"Content-Encoding": "gzip"}))
        raw = {"Inference-Header-Content-Length": "0"}
        raw_message = f"Raw input has a byte_size ({limit + 4} bytes) that exceeds the maximum allowed value of {limit} bytes"
        self.assertIn(raw_message, self.error("POST", path, bytes(limit + 4), 400, raw))
        self.assertIn(raw_message, self.error("POST", path, iter([bytes(limit), bytes(4)]), 400, raw))
        # A tensor behind the JSON is not text that grows when it is read.
        head = json.dumps({"inputs": [tensor("x", "FP32", [limit], binary_data_size=4 * limit)],
                           "parameters": {"binary_data_output": True}}).encode()
        code, _, body = self.ask("POST", path, head + bytes(4 * limit), {"Inference-Header-Content-Length": str(len(head))})
        self.assertEqual((code, body[-4 * limit:]), (200, bytes(4 * limit)))
        short = json.dumps({"inputs": [tensor("x", "FP32", [300_000], [0] * 300_000)]}).encode()
        self.assertLess(len(short), limit)
        self.assertIn("JSON input 'x' has a byte_size (1200000 bytes) that exceeds", self.error("POST", path, short, 400))

    def test_index(self):
        deep = b'{"ready":' + b"[" * 250_000 + b"]" * 250_000 + b"}"
        self.assertEqual(self.error("POST", "/v2/repository/index", deep, 400), "Invalid value for 'ready': expected a boolean")


if __name__ == "__main__":
    unittest.main()
