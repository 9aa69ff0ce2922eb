"""The manifests and the chart of deploy/: schemas of Kubernetes 1.27, the first with gRPC probes, to 1.37, references
between objects, flags that the daemon knows, KServe's kinds. Planted errors are found."""

import copy
import os
import re
import subprocess
import unittest

from tests.deploy import checks, rendered

VERSIONS = [f"1.{minor}" for minor in range(27, 38, 2)]
OVERLAYS = ["base"] + [f"overlays/{name}" for name in sorted(os.listdir(os.path.join(rendered.KUBERNETES, "overlays")))]


def known_flags(command):
    help_output = subprocess.run([os.environ["TENSORD_BINARY"], command, "--help"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"--[a-z0-9-]+", help_output))


FLAGS = {command: known_flags(command) for command in ("serve", "train", "fetch")}


def faults_of(items):
    return checks.tie_faults(items) + [fault for item in checks.workloads(items) for fault in checks.pod_faults(item, FLAGS)]


class Manifests(unittest.TestCase):
    maxDiff = None

    def expect_valid(self, items):
        self.assertTrue(items)
        faults = [fault for item in items for version in VERSIONS for fault in checks.schema_faults(item, version)]
        self.assertEqual(faults, [])

    def test_files(self):
        files = rendered.plain_files()
        self.assertGreater(len(files), 12)
        for path, items in files.items():
            with self.subTest(os.path.relpath(path, rendered.KUBERNETES)):
                self.expect_valid(items)
                self.assertEqual([fault for item in checks.workloads(items) for fault in checks.pod_faults(item, FLAGS)], [])

    @unittest.skipUnless(rendered.has_kustomize(), "needs kubectl 1.21 or newer")
    def test_overlays(self):
        for folder in OVERLAYS:
            with self.subTest(folder):
                items = rendered.kustomized(folder)
                self.expect_valid(items)
                self.assertEqual(faults_of(items), [])

    @unittest.skipUnless(rendered.has_kustomize(), "needs kubectl 1.21 or newer")
    def test_components_reach_servers_and_trainer(self):
        items = rendered.kustomized("overlays/production")
        pods = [item["spec"]["template"]["spec"]["containers"][0] for item in checks.workloads(items)]
        self.assertEqual(len(pods), 2)
        for container in pods:
            self.assertIn("--grpc-use-ssl-mutual=true", container["args"])
            self.assertIn("--access-tokens=/tokens/tokens", container["args"])
            self.assertIn("httpGet", container["livenessProbe"])
        selector = next(item for item in items if item["kind"] == "ServiceMonitor")["spec"]["selector"]
        watched = [item["metadata"]["name"] for item in items
                   if item["kind"] == "Service" and checks.matches(selector, item["metadata"]["labels"])]
        self.assertEqual(sorted(watched), ["tensord", "tensord-trainer"])
        for item in items:
            if item["kind"] == "Service":
                self.assertEqual(item["spec"]["ports"][0]["appProtocol"], "https")

    def test_runtime_of_kserve(self):
        runtime, service = (checks_of for name in ("serving_runtime", "inference_service") for checks_of in
                            rendered.plain_files()[os.path.join(rendered.KUBERNETES, "kserve", f"{name}.yaml")])
        container, = runtime["spec"]["containers"]
        predictor = service["spec"]["predictor"]["model"]
        # KServe adds the InferenceService's ports to the container.
        pod = {**runtime["spec"], "containers": [{**container, "ports": predictor["ports"]}]}
        template = {"kind": "ServingRuntime", "metadata": runtime["metadata"], "spec": {"template": {"spec": pod}}}
        self.assertEqual(checks.pod_faults(template, FLAGS), [])
        self.assertEqual(runtime["spec"]["protocolVersions"], ["v2", "grpc-v2"])
        seconds = {name: int(value) for name, value in (argument.split("=") for argument in container["args"][1:]) if name.endswith("-secs")}
        # Kubernetes' default if the template does not set it.
        self.assertLess(seconds["--exit-delay-secs"] + seconds["--exit-timeout-secs"], 30)
        model = predictor
        self.assertEqual(model["runtime"], runtime["metadata"]["name"])
        self.assertIn(model["protocolVersion"], runtime["spec"]["protocolVersions"])
        self.assertIn((model["modelFormat"]["name"], model["modelFormat"]["version"]),
                      [(it["name"], it["version"]) for it in runtime["spec"]["supportedModelFormats"]])


class Chart(unittest.TestCase):
    maxDiff = None

    def test_lint(self):
        for values in [[], *([path] for path in rendered.chart_values())]:
            flags = [flag for path in values for flag in ("--values", path)]
            rendered.run(rendered.HELM, "lint", "--strict", rendered.CHART, *flags)

    def test_values(self):
        for values in [(), *((path,) for path in rendered.chart_values())]:
            with self.subTest([os.path.basename(path) for path in values]):
                items = rendered.chart(*values)
                faults = [fault for item in items for version in VERSIONS for fault in checks.schema_faults(item, version)]
                self.assertEqual(faults + faults_of(items), [])

    def test_what_values_give(self):
        everything = next(path for path in rendered.chart_values() if path.endswith("everything-values.yaml"))
        server = next(item for item in rendered.chart(everything) if at_is(item, "StatefulSet", "models"))
        container = server["spec"]["template"]["spec"]["containers"][0]
        for argument in ("--load-model=resnet50", "--load-model=bert", "--load-on-demand=true", "--grpc-max-requests=256",
                         "--model-memory-limit=8000000000", "--grpc-use-ssl-mutual=true", "--access-tokens=/tokens/tokens",
                         "--log-verbose=1"):
            self.assertIn(argument, container["args"])
        self.assertEqual(container["resources"]["limits"]["nvidia.com/gpu"], 2)
        self.assertEqual(container["readinessProbe"]["httpGet"]["port"], "metrics")
        self.assertNotIn("replicas", server["spec"])
        rules = next(item for item in rendered.chart(everything) if item["kind"] == "PrometheusRule")
        self.assertGreater(len([rule for group in rules["spec"]["groups"] for rule in group["rules"] if "alert" in rule]), 5)

    def test_http_and_routes(self):
        routes = next(path for path in rendered.chart_values() if path.endswith("routes-values.yaml"))
        items = {(item["kind"], item["metadata"]["name"]): item for item in rendered.chart(routes)}
        kinds = {kind for kind, _ in items}
        self.assertLessEqual({"Ingress", "HTTPRoute", "GRPCRoute"}, kinds)
        server = next(item for (kind, _), item in items.items() if kind == "Deployment")
        container = server["spec"]["template"]["spec"]["containers"][0]
        self.assertIn("--allow-http=true", container["args"])
        self.assertIn({"name": "http", "containerPort": 8000}, container["ports"])
        service = next(item for (kind, name), item in items.items() if kind == "Service" and not name.endswith("-headless"))
        self.assertIn(80, [port["port"] for port in service["spec"]["ports"]])
        policy = next(item for (kind, _), item in items.items() if kind == "NetworkPolicy")
        self.assertIn({"port": "http", "protocol": "TCP"}, policy["spec"]["ingress"][0]["ports"])
        # Plaintext beside TLS only on request.
        for values, is_there in (("http.enabled=true,tls.secretName=t", False), ("http.enabled=true,tls.secretName=t,http.besideTls=true", True)):
            manifests = str(rendered.chart(values))
            self.assertEqual("--allow-http=true" in manifests, is_there, values)

    def test_workers_join_the_trainer(self):
        items = rendered.chart("training.enabled=true,training.workers.count=3")
        workers = next(item for item in items if item["kind"] == "StatefulSet" and item["metadata"]["name"].endswith("-worker"))
        trainer = next(item for item in items if item["kind"] == "Service" and item["metadata"]["name"].endswith("-trainer"))
        self.assertEqual(workers["spec"]["replicas"], 3)
        self.assertIn(f"--join={trainer['metadata']['name']}:8001", workers["spec"]["template"]["spec"]["containers"][0]["args"])
        policies = {item["metadata"]["name"].rsplit("-", 1)[1]: item["spec"] for item in items if item["kind"] == "NetworkPolicy"}
        labels = workers["spec"]["template"]["metadata"]["labels"]
        for name in ("trainer", "worker"):
            # At any port, in both directions.
            for rules, side in ((policies[name]["ingress"], "from"), (policies[name]["egress"], "to")):
                self.assertTrue(any("ports" not in rule and any(checks.matches(peer["podSelector"], labels) for peer in rule[side])
                                    for rule in rules if side in rule), (name, side))
        self.assertFalse([item for item in rendered.chart("training.enabled=true") if item["metadata"]["name"].endswith("-worker")])

    def test_wrong_values(self):
        for value, reason in (("flags.grpc-port=9", "grpc-port"), ("modles.path=/x", "modles"), ("service.grpcPort=70000", "70000|65535"),
                              ("workload.kind=DaemonSet", "workload.kind"), ("models.claim.size=big", "size"),
                              ("training.enabled=true,models.fetch.enabled=true", "models of its own")):
            with self.subTest(value), self.assertRaisesRegex(RuntimeError, reason):
                rendered.chart(value)

    @unittest.skipUnless(rendered.has_kustomize(), "needs kubectl 1.21 or newer")
    def test_chart_and_manifests_run_the_same_pod(self):
        pods = {}
        for name, items in (("chart", rendered.chart()), ("base", rendered.kustomized("base"))):
            pod = copy.deepcopy(next(item for item in items if item["kind"] == "Deployment")["spec"]["template"]["spec"])
            pod["containers"][0]["args"].sort()
            for spread in pod["topologySpreadConstraints"]:
                spread.pop("labelSelector")
            pod.pop("serviceAccountName")
            pod["volumes"][0]["persistentVolumeClaim"].pop("claimName")
            pods[name] = pod
        self.assertEqual(pods["chart"], pods["base"])


class Faults(unittest.TestCase):
    """The checks find planted errors."""

    def deployment(self):
        return copy.deepcopy(next(item for item in rendered.chart() if item["kind"] == "Deployment"))

    def expect_fault(self, fault, change):
        items = [item for item in copy.deepcopy(rendered.chart()) if item["kind"] != "Deployment"] + [self.deployment()]
        change(items[-1])
        found = [it for item in items for it in checks.schema_faults(item, VERSIONS[-1])] + faults_of(items)
        self.assertTrue(any(fault in it for it in found), found)

    def test_planted(self):
        def container(item):
            return item["spec"]["template"]["spec"]["containers"][0]

        self.expect_fault("replica", lambda item: item["spec"].update(replica=2))
        self.expect_fault("'two' is not of type", lambda item: item["spec"].update(replicas="two"))
        self.expect_fault("does not match its own pods", lambda item: item["spec"]["template"]["metadata"]["labels"].clear())
        self.expect_fault("selects no pods", lambda item: item["spec"]["template"]["metadata"]["labels"].clear())
        self.expect_fault("knows no --model-repo", lambda item: container(item)["args"].append("--model-repo=/x"))
        self.expect_fault("no volume scratch",
                          lambda item: container(item)["volumeMounts"].append({"name": "scratch", "mountPath": "/s"}))
        self.expect_fault("which is not there", lambda item: container(item)["livenessProbe"]["grpc"].update(port=9))
        self.expect_fault("no port metrics", lambda item: container(item)["ports"].pop())

    def test_planted_in_kinds_of_others(self):
        runtime = rendered.plain_files()[os.path.join(rendered.KUBERNETES, "kserve", "serving_runtime.yaml")][0]
        self.assertEqual(checks.schema_faults(runtime, VERSIONS[0]), [])
        wrong = copy.deepcopy(runtime)
        wrong["spec"]["containers"][0]["livenesProbe"] = {}
        wrong["spec"]["protocolVersions"] = "grpc-v2"
        faults = checks.schema_faults(wrong, VERSIONS[0])
        self.assertEqual(len(faults), 2, faults)
        monitor = next(item for item in rendered.chart("serviceMonitor.enabled=true") if item["kind"] == "ServiceMonitor")
        monitor = copy.deepcopy(monitor)
        monitor["spec"]["endpoints"][0]["intervall"] = "1s"
        self.assertEqual(len(checks.schema_faults(monitor, VERSIONS[0])), 1)


def at_is(item, kind, name):
    return (item["kind"], item["metadata"]["name"]) == (kind, name)


if __name__ == "__main__":
    unittest.main()
