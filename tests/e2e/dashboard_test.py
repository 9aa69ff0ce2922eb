"""The dashboard's queries and the rules of deploy/, run by real Prometheus servers that scrape a daemon under load."""

import json
import os
import re
import socket
import subprocess
import tempfile
import threading
import unittest
import urllib.error
import urllib.parse
import urllib.request
from typing import List

import numpy as np
import torch
import yaml

from tests.e2e import serve_models
from tests.e2e.processes import wait_until
from tests.e2e.training import training_models
from tests.e2e.daemon import ROOT, Daemon, grpc, request, training
from tests.e2e.training.training_daemon import FAILED, TrainingDaemon
from tests.needed_programs import needs

RULES = [os.path.join(ROOT, "deploy", "prometheus", "rules", name) for name in ("recording.yml", "alerts.yml")]
RUNBOOKS = os.path.join(ROOT, "docs", "runbooks")
SUBSTITUTES = {"$__rate_interval": "10s", "$job": ".*", "$instance": ".*", "$model": ".*", "$version": ".*",
               "$training_job": ".*"}
METRIC = re.compile(r"\b(?:\w+:)?(?:tensord|process)_\w+(?::\w+)?")  # of the daemon, or recorded
CONFIGS = {"cached": "response_cache { enable: true }\n",
           "batched": 'max_batch_size: 8\ndynamic_batching { }\ninput { name: "x" data_type: TYPE_FP32 dims: [ 4 ] }\n',
           "pieces": "model_transaction_policy { decoupled: true }\n"}


class Pieces(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> List[torch.Tensor]:
        return [row for row in x]


class Large(torch.nn.Module):
    """A megabyte."""

    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.ones(1 << 18))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.rows[0]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def groups_of(file):
    with open(file) as rules:
        return yaml.safe_load(rules)["groups"]


class Prometheus:
    """Scrapes every second, and its alerts fire without delay."""

    def __init__(self, folder, targets, *flags):
        os.makedirs(folder)
        self.folder = folder
        rules = os.path.join(folder, "rules.yml")
        groups = [group for file in RULES for group in groups_of(file)]
        for group in groups:
            for rule in group["rules"]:
                rule.pop("for", None)
        with open(rules, "w") as file:
            yaml.safe_dump({"groups": groups}, file)
        config = os.path.join(folder, "prometheus.yml")
        with open(config, "w") as file:
            yaml.safe_dump({"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [rules],
                            "scrape_configs": [{"job_name": "tensord", "static_configs": [{"targets": targets}]}]},
                           file)
        self.port = free_port()
        with open(os.path.join(folder, "log"), "w") as log:
            self.process = subprocess.Popen(
                ["prometheus", "--config.file", config, "--storage.tsdb.path", os.path.join(folder, "tsdb"),
                 "--web.listen-address", f"127.0.0.1:{self.port}", *flags], stdout=subprocess.DEVNULL, stderr=log)

    def has_begun(self):
        """Whether it has scraped the daemon often enough for rates."""
        if self.process.poll() is not None:
            with open(os.path.join(self.folder, "log")) as log:
                raise AssertionError(f"Prometheus ended: {log.read()}")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=10).close()
            return len(self.query('count_over_time(up{job="tensord"}[1m]) > 3')) == 2
        except (urllib.error.URLError, ConnectionError):
            return False

    def ask(self, path, **arguments):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?" + urllib.parse.urlencode(arguments)
        try:
            with urllib.request.urlopen(url, timeout=300) as response:
                return json.load(response)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{arguments}: {error.read().decode()}") from error

    def query(self, expr):
        return self.ask("query", query=expr)["result"]

    def firing(self):
        return [alert for alert in self.ask("alerts")["alerts"] if alert["state"] == "firing"]

    def names_firing(self):
        return {alert["labels"]["alertname"] for alert in self.firing()}

    def close(self):
        self.process.kill()
        self.process.wait()


class Load:
    """Clients that cause everything that a panel shows, successes and failures, until it is closed. `small` has room
    for one of its models."""

    def __init__(self, daemon, small):
        x = np.arange(8, dtype=np.float32).reshape(2, 4)
        rows = [("x", "FP32", [2, 4], x.tobytes())]
        stub = daemon.stub
        asks = [lambda: stub.ModelInfer(request("batched", rows), timeout=300),
                lambda: stub.ModelInfer(request("cached", rows), timeout=300),
                lambda: list(stub.ModelStreamInfer(iter([request("pieces", rows)]), timeout=300)),
                lambda: stub.ModelInfer(request("raises", [("x", "FP32", [3, 1], bytes(12))]), timeout=300),
                lambda: stub.ModelInfer(request("nope", rows), timeout=300),
                lambda: [small.stub.ModelInfer(request(name, rows), timeout=300) for name in ("left", "right")]]
        self.is_over = threading.Event()
        self.threads = [threading.Thread(target=self.repeat, args=(ask,)) for ask in asks]
        for thread in self.threads:
            thread.start()

    def repeat(self, ask):
        while not self.is_over.wait(0.05):
            try:
                ask()
            except grpc.RpcError:
                pass

    def close(self):
        self.is_over.set()
        for thread in self.threads:
            thread.join()


@needs("prometheus")
class DashboardTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.server = TrainingDaemon("--cache-config", "local,size=1000000", "--strict-readiness", "false",
                                    "--training-jobs", "2")
        cls.addClassCleanup(cls.server.close)
        cls.make_models(cls.server.models)
        x, y = training_models.clusters(500, 64, 10, seed=3)
        cls.server.save_data("clusters.pt", x=x, y=y)
        daemon = cls.server.start().daemon
        small = cls.start_small()
        load = Load(daemon, small)
        cls.addClassCleanup(load.close)
        targets = [each.ready["metrics"] for each in (daemon, small)]
        cls.prometheus = []
        for name, flags in (("classic", ()), ("native", ("--enable-feature=native-histograms",))):
            cls.prometheus.append(Prometheus(os.path.join(cls.folder.name, name), targets, *flags))
            cls.addClassCleanup(cls.prometheus[-1].close)
        cls.server.create(steps=10_000_000,
                          evaluation=training.Evaluation(fraction=0.2, every_steps=50, metrics=["accuracy"]))
        for server in cls.prometheus:
            wait_until(server.has_begun, "Prometheus", timeout=60)

    @classmethod
    def start_small(cls):
        models = os.path.join(cls.folder.name, "large")
        for name in ("left", "right"):
            serve_models.save(Large(), models, name)
        daemon = Daemon(models, "--model-control-mode", "explicit", "--load-on-demand", "true", "--model-memory-limit",
                        "1500kb")
        cls.addClassCleanup(daemon.__exit__)
        return daemon

    @staticmethod
    def make_models(folder):
        for name, module in (("batched", serve_models.Linear()), ("cached", serve_models.Linear()),
                             ("pieces", Pieces()), ("raises", serve_models.Raises()), ("mlp", training_models.Mlp())):
            serve_models.save(module, folder, name)
        for name, config in CONFIGS.items():
            with open(os.path.join(folder, name, "config.pbtxt"), "w") as file:
                file.write(config)
        os.makedirs(os.path.join(folder, "broken", "1"))
        with open(os.path.join(folder, "broken", "1", "model.pt"), "w") as file:
            file.write("not an archive")

    def all_answer(self, queries):
        """Every query returns data in every Prometheus, at once or soon."""
        for server in self.prometheus:
            left = list(queries)

            def none_left():
                left[:] = [query for query in left if not server.query(query)]
                return not left

            wait_until(none_left, lambda: f"data of {left} in Prometheus {self.prometheus.index(server)}", timeout=60)

    def test_a_dashboard(self):
        with open(os.path.join(ROOT, "deploy", "grafana", "tensord.json")) as file:
            dashboard = json.load(file)

        def filled(expression):
            for name, value in SUBSTITUTES.items():
                expression = expression.replace(name, value)
            self.assertNotIn("$", expression)
            return expression

        buckets = [bool(server.query("tensord_queue_duration_seconds_bucket")) for server in self.prometheus]
        self.assertEqual(buckets, [True, False], "one has classic histograms, the other native ones")
        queries = [filled(target["expr"]) for panel in dashboard["panels"] for target in panel.get("targets", [])]
        self.assertGreater(len(queries), 60)
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "query":
                metric, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]).groups()
                queries.append(f'count by ({label}) ({filled(metric)}) unless count({filled(metric)})')
        self.all_answer(queries)
        for note in dashboard["annotations"]["list"]:
            self.prometheus[0].query(filled(note["expr"]))

    def test_b_rules(self):
        records = [rule["record"] for group in groups_of(RULES[0]) for rule in group["rules"]]
        alerts = [rule for group in groups_of(RULES[1]) for rule in group["rules"]]
        # The metrics in alerts; `up` is not the daemon's.
        asked = {name for rule in alerts for name in METRIC.findall(re.sub(r'"[^"]*"', "", rule["expr"]))}
        self.all_answer([f'{{__name__="{name}"}}' for name in sorted(asked | set(records))])
        for server in self.prometheus:
            for group in server.ask("rules")["groups"]:
                for rule in group["rules"]:
                    self.assertEqual((rule["health"], rule.get("lastError")), ("ok", None), rule["name"])

    def test_c_runbooks(self):
        """Each alert has its runbook page, whose queries are valid."""
        alerts = {rule["alert"]: rule for group in groups_of(RULES[1]) for rule in group["rules"]}
        pages = {name.removesuffix(".md") for name in os.listdir(RUNBOOKS)} - {"README"}
        self.assertEqual(pages, set(alerts))
        for name, rule in alerts.items():
            path = rule["annotations"]["runbook"]
            with open(os.path.join(ROOT, path)) as file:
                content = file.read()
            self.assertEqual(content.splitlines()[0], f"# {name}")
            self.assertIn(rule["labels"]["severity"], content.splitlines()[2])
            for block in re.findall(r"```promql\n(.*?)```", content, re.DOTALL):
                # A query is a line; lines that are indented, or begin with a bracket, belong to the one above.
                for query in re.split(r"\n(?![ )])", block.strip()):
                    self.prometheus[0].query(query)
                    for metric in METRIC.findall(re.sub(r'"[^"]*"', "", query)):
                        self.assertTrue(self.prometheus[0].query(f'{{__name__="{metric}"}}'), (name, metric))

    def test_d_alerts(self):
        daemon = self.server.daemon
        job = self.server.create(steps=1000, optimizer=training.Optimizer(name="sgd", lr=1e30))
        self.server.wait_until(job.id, lambda job: job.state == FAILED)
        wanted = {"TensordModelFailing", "TensordModelNotReady", "TensordModelLoadFailing", "TensordModelsEvicted",
                  "TensordUnknownModelRequests", "TensordTrainingJobFailed"}
        server = self.prometheus[0]
        wait_until(lambda: wanted <= server.names_firing(), lambda: wanted - server.names_firing(), timeout=60)
        firing = server.firing()
        for alert in firing:
            for annotation in alert["annotations"].values():
                self.assertNotRegex(annotation, "{{|<error|<no value")
        not_ready = [alert["annotations"]["summary"] for alert in firing
                     if alert["labels"]["alertname"] == "TensordModelNotReady"
                     and alert["labels"]["instance"] == daemon.ready["metrics"]]
        self.assertEqual(not_ready, [f"broken is not ready on {daemon.ready['metrics']}"])
        self.assertFalse({"TensordDown", "TensordMissing", "TensordRestarting", "TensordErrorBudgetBurnFast",
                          "TensordOutOfMemory", "TensordMemoryNearLimit", "TensordFilesNearLimit"} & server.names_firing())
        daemon.process.kill()
        wait_until(lambda: "TensordDown" in server.names_firing(), server.names_firing, timeout=60)


if __name__ == "__main__":
    unittest.main()
