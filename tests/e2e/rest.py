"""A daemon with some models, called over HTTP, for the REST tests."""

import http.client
import json
import os
import tempfile
import unittest

from torch import Tensor, nn

from tests.e2e import serve_models
from tests.e2e.daemon import Daemon

FP32 = 'input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]\n'
CONFIGS = {
    "identity": FP32 + 'output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]\n',
    "words": 'input [ { name: "words" data_type: TYPE_STRING dims: [ -1 ] } ]\n',
    "word": 'input [ { name: "words" data_type: TYPE_STRING dims: [ 1 ] } ]\n',
    "half": 'input [ { name: "x" data_type: TYPE_FP16 dims: [ -1 ] } ]\n',
    "count": FP32 + "model_transaction_policy { decoupled: true }\n",
    "batched": 'max_batch_size: 4\ninput [ { name: "x" data_type: TYPE_FP32 dims: [ 2 ] } ]\n'
               'output [ { name: "y" data_type: TYPE_FP32 dims: [ 2 ] } ]\n',
}


class Count(nn.Module):
    """As many responses as the first element says."""

    def forward(self, x: Tensor) -> list[Tensor]:
        out = []
        for i in range(int(x[0])):
            out.append(x + i)
        return out


def make_models(root):
    models = {"identity": serve_models.Identity, "words": serve_models.Words, "word": serve_models.Words, "half": serve_models.Identity,
              "count": Count, "batched": serve_models.Identity, "sleepy": serve_models.Sleepy,
              "raises": serve_models.Raises}
    for name, module in models.items():
        serve_models.save(module(), root, name)
        if name in CONFIGS:
            with open(os.path.join(root, name, "config.pbtxt"), "w") as config:
                config.write(CONFIGS[name])


class RestTest(unittest.TestCase):
    flags = ()

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        make_models(cls.folder.name)
        cls.daemon = Daemon(cls.folder.name, "--allow-http", "true", "--http-port", "0", *cls.flags)
        cls.host, cls.port = cls.daemon.ready["http"].rsplit(":", 1)

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()
        cls.folder.cleanup()

    def ask(self, method, path, body=None, headers=None):
        """Status, headers and body of a response."""
        connection = http.client.HTTPConnection(self.host, int(self.port), timeout=300)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def get(self, path, status=200):
        code, _, body = self.ask("GET", path)
        self.assertEqual(code, status, body)
        return json.loads(body)

    def post(self, path, value=None, status=200, headers=None):
        body = None if value is None else value if isinstance(value, bytes) else json.dumps(value)
        code, _, answer = self.ask("POST", path, body, headers)
        self.assertEqual(code, status, answer)
        return json.loads(answer) if answer else None

    def infer(self, model, *inputs, status=200, headers=None, **more):
        return self.post(f"/v2/models/{model}/infer", {"inputs": list(inputs), **more}, status, headers)

    def error(self, method, path, body, status, headers=None):
        code, _, answer = self.ask(method, path, body, headers)
        self.assertEqual(code, status, answer)
        return json.loads(answer)["error"]


def tensor(name, datatype, shape, data=None, **parameters):
    out = {"name": name, "datatype": datatype, "shape": shape}
    if data is not None:
        out["data"] = data
    if parameters:
        out["parameters"] = parameters
    return out


X = tensor("x", "FP32", [2], [1, 2.5])
