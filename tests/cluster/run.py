"""The checks of scripts/cluster-test, in the namespaces that it makes.

Usage: python3 -m tests.cluster.run --programs DIR --work DIR [--image NAME] [--only CHECK,…] | --list
"""

import argparse
import contextlib
import glob
import json
import os
import re
import signal
import subprocess
import sys
import time
import traceback
import urllib.parse
import urllib.request

from tests.cluster.cluster import Cluster
from tests.cluster.image_of_binary import NAME
from tests.e2e.processes import wait_until

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MANIFESTS = os.path.join(ROOT, "tests", "cluster", "manifests")
MODEL, USER = "digits", 10001
JOB = os.path.join(ROOT, "deploy", "kubernetes", "components", "training", "job.yaml")
ROLLOUT_S = 400


def volume(name, path, mode, claim):
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
        "capacity": {"storage": "20Gi"}, "accessModes": [mode], "hostPath": {"path": path},
        "claimRef": {"namespace": "default", "name": claim}}}


def http_json(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


class Checks:
    """One cluster with the manifests applied; each check_… leaves it with two ready servers."""

    def __init__(self, cluster, image):
        self.cluster, self.image = cluster, image
        # Importing this makes the stubs.
        from tests.cluster.load import Load
        from tests.e2e import daemon
        self.load_type, self.daemon = Load, daemon
        self.inputs = [("images", "FP32", [1, 1, 8, 8], bytes(256))]

    def prepare(self):
        cluster = self.cluster
        cluster.docker("load", "-i", cluster.path("image.tar"))
        if self.image != NAME:
            cluster.docker("tag", self.image, NAME)
        cluster.docker("tag", NAME, "tensord:second")
        folders = {name: cluster.path("volumes", name) for name in ("models", "data", "jobs")}
        os.makedirs(folders["jobs"])
        cluster.command("/usr/bin/python3", "-m", "examples.digits", folders["models"], folders["data"])
        cluster.command("chown", "-R", f"{USER}:{USER}", cluster.path("volumes"))
        os.chmod(cluster.work, 0o755)
        items = [volume("models", folders["models"], "ReadWriteMany", "tensord-models"),
                 volume("data", folders["data"], "ReadWriteMany", "tensord-data"),
                 volume("jobs", folders["jobs"], "ReadWriteOnce", "jobs-tensord-trainer-0")]
        cluster.kubectl("apply", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        wait_until(lambda: subprocess.run(["kubectl", "get", "serviceaccount", "default"], capture_output=True).returncode == 0, "the service account is there")
        cluster.kubectl("apply", "-k", MANIFESTS)
        self.wait_rollout()
        cluster.kubectl("rollout", "status", "statefulset/tensord-trainer", f"--timeout={ROLLOUT_S}s", timeout=ROLLOUT_S + 60)

    # Queries of the checks.

    def wait_rollout(self, timeout_s=ROLLOUT_S):
        self.cluster.kubectl("rollout", "status", "deployment/tensord", f"--timeout={timeout_s}s", timeout=timeout_s + 60)

    def pods(self, component="server"):
        """The pods that are not terminating."""
        items = self.cluster.get("pods", "-l", f"app.kubernetes.io/component={component}")["items"]
        return [pod for pod in items if "deletionTimestamp" not in pod["metadata"]]

    def ready_pods(self, component="server"):
        return [pod for pod in self.pods(component)
                if any(it["type"] == "Ready" and it["status"] == "True" for it in pod["status"].get("conditions", []))]

    def restarts(self, name):
        statuses = self.cluster.get("pod", name)["status"]["containerStatuses"]
        return statuses[0]["restartCount"], statuses[0]["ready"]

    def service_address(self, name="tensord"):
        return f"{self.cluster.get('service', name)['spec']['clusterIP']}:8001"

    def stub(self, address, training=False):
        channel = self.daemon.grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])
        return (self.daemon.training_pb2_grpc.TrainingServiceStub if training
                else self.daemon.inference_pb2_grpc.GRPCInferenceServiceStub)(channel)

    def infer(self, address):
        answer = self.stub(address).ModelInfer(self.daemon.request(MODEL, self.inputs), timeout=30, wait_for_ready=True)
        assert list(answer.outputs[0].shape) == [1, 10], answer
        return answer.model_version

    @contextlib.contextmanager
    def under_load(self):
        """Clients that reconnect for each call, and clients that keep a connection; neither may see a failure."""
        service = self.service_address()
        with self.load_type(service, MODEL, self.inputs, new_connections=True) as fresh, \
                self.load_type(service, MODEL, self.inputs) as kept:
            yield
            time.sleep(2)
        print(f"    {fresh.calls} calls with a connection each, {len(fresh.failures)} failed; {kept.calls} over kept ones, "
              f"{len(kept.failures)} failed")
        assert fresh.calls > 20 and kept.calls > 20, "there was no load"
        assert not fresh.failures + kept.failures, (fresh.failures + kept.failures)[:5]

    # The checks, in the order in which they run.

    def check_rollout(self):
        assert len(self.ready_pods()) == 2
        self.infer(self.service_address())
        endpoints = self.cluster.get("endpoints", "tensord-headless")["subsets"][0]["addresses"]
        assert len(endpoints) == 2, endpoints
        for endpoint in endpoints:
            self.infer(f"{endpoint['ip']}:8001")
        log = self.cluster.kubectl("logs", self.pods()[0]["metadata"]["name"])
        assert all("message" in json.loads(line) for line in log.splitlines()), log

    def check_server_validates(self):
        """The API server accepts the chart's objects, of the kinds that this version knows."""
        from tests.deploy import rendered
        known = {"Deployment", "StatefulSet", "Service", "ServiceAccount", "PersistentVolumeClaim", "NetworkPolicy", "Job"}
        helm = os.path.join(ROOT, "build", "clients", "bin", "helm")
        for values in rendered.chart_values():
            manifests = rendered.run(helm, "template", "x", rendered.CHART, "--values", values, "--set", "probes.type=http",
                                "--kube-version", "1.23.0")
            items = [item for item in rendered.documents(manifests) if item["kind"] in known]
            self.cluster.kubectl("apply", "--dry-run=server", "-f", "-",
                                 given=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
            print(f"    {os.path.basename(values)}: {len(items)} objects")

    def check_frozen_server(self):
        pod = self.ready_pods()[0]
        name = pod["metadata"]["name"]
        before, _ = self.restarts(name)
        container = pod["status"]["containerStatuses"][0]["containerID"].split("//")[1]
        process = int(self.cluster.docker("inspect", "-f", "{{.State.Pid}}", container))
        begin = time.monotonic()
        os.kill(process, signal.SIGSTOP)
        wait_until(lambda: len(self.ready_pods()) == 1, "the frozen server takes no more calls")
        out = time.monotonic() - begin
        self.infer(self.service_address())
        wait_until(lambda: self.restarts(name)[0] > before and self.restarts(name)[1], "the frozen server was started again and is ready", timeout=240)
        print(f"    out of the service after {out:.0f} s, ready again after {time.monotonic() - begin:.0f} s")

    def check_rolling_update(self):
        with self.under_load():
            begin = time.monotonic()
            self.cluster.kubectl("set", "image", "deployment/tensord", "tensord=tensord:second")
            self.wait_rollout()
            wait_until(lambda: len(self.cluster.get(
                "pods", "-l", "app.kubernetes.io/component=server")["items"]) == 2, "the old pods are gone")
            print(f"    rolled out in {time.monotonic() - begin:.0f} s")
        assert all(pod["spec"]["containers"][0]["image"] == "tensord:second" for pod in self.pods())

    def check_bad_image(self):
        with self.under_load():
            self.cluster.kubectl("set", "image", "deployment/tensord", "tensord=tensord:nowhere")
            wait_until(lambda: any(
                status.get("state", {}).get("waiting", {}).get("reason") in ("ErrImagePull", "ImagePullBackOff")
                for pod in self.pods() for status in pod["status"].get("containerStatuses", [])), "the new pod cannot get its image")
            assert len(self.ready_pods()) == 2, "the old pods serve on"
            self.cluster.kubectl("rollout", "undo", "deployment/tensord")
            self.wait_rollout()
        assert len(self.ready_pods()) == 2

    def check_drain(self):
        """Drains a node: the budget keeps one server until the other's successor is ready."""
        with self.under_load():
            drain = subprocess.Popen(["kubectl", "drain", "node1", "--ignore-daemonsets", "--delete-emptydir-data", "--force",
                                      "--timeout=300s", "--pod-selector=app.kubernetes.io/component=server"],
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            wait_until(lambda: len(self.ready_pods()) == 1, "one server is out")
            time.sleep(8)
            assert len(self.ready_pods()) == 1, "the budget holds"
            assert drain.poll() is None, "the drain waits for the budget"
            self.cluster.kubectl("uncordon", "node1")
            output, _ = drain.communicate(timeout=320)
            assert drain.returncode == 0, output
            assert "disruption budget" in output, output
            self.wait_rollout()
            wait_until(lambda: len(self.ready_pods()) == 2, "two servers are ready", timeout=240)

    def check_training_job(self):
        """The trainer is killed in the middle of a job, and so is the watching pod; all servers serve the result."""
        cluster, training = self.cluster, self.daemon.training
        with open(JOB) as file:
            manifest = re.sub("epochs=15", "epochs=60", file.read())
        # There is no DNS here.
        manifest = manifest.replace("tensord-trainer:8001", self.service_address("tensord-trainer")).replace("tensord:0.1.0", NAME)
        cluster.kubectl("apply", "-f", "-", given=manifest)

        def job():
            try:
                found = self.stub(self.service_address("tensord-trainer"), training=True).ListJobs(
                    training.ListJobsRequest(), timeout=10).jobs
            except self.daemon.grpc.RpcError:
                return None
            assert len(found) <= 1, f"{len(found)} jobs"
            return found[0] if found else None

        running = wait_until(lambda: (
            lambda it: it if it and it.progress.step > 100 else None)(job()), "the job has come somewhere", timeout=240)
        cluster.kubectl("delete", "pod", "tensord-trainer-0", "--grace-period=0", "--force")
        watcher = self.pods("training-job")[0]["metadata"]["name"]
        cluster.kubectl("delete", "pod", watcher, "--grace-period=0", "--force")
        again = wait_until(lambda: (
            lambda it: it if it and it.progress.step > running.progress.step else None)(job()), "the job goes on", timeout=240)
        cluster.kubectl("wait", "--for=condition=complete", "job/train-digits", "--timeout=400s", timeout=450)
        done = wait_until(job, "the job says that it is done")
        assert done.id == running.id, "another job"
        assert done.published_version == 2, done
        for pod in self.ready_pods():
            wait_until(lambda: self.infer(f"{pod['status']['podIP']}:8001") == "2", "the server serves version 2")
        print(f"    killed at step {running.progress.step}, seen again at {again.progress.step}, done at {done.progress.step} of "
              f"{done.progress.total_steps}, accuracy {done.progress.metrics.get('accuracy', 0):.3f}")

    def start_prometheus(self):
        """Starts Prometheus with the shipped rules and shorter times, and Alertmanager; targets are the current
        pods."""
        cluster = self.cluster
        rules = cluster.path("rules")
        os.makedirs(rules, exist_ok=True)
        for path in glob.glob(os.path.join(ROOT, "deploy", "prometheus", "rules", "*.yml")):
            with open(path) as file, open(os.path.join(rules, os.path.basename(path)), "w") as out:
                out.write(re.sub(r"for: [0-9]+[mh]\b", "for: 3s", file.read()))
        targets = [{"targets": [f"{pod['status']['podIP']}:8002"], "labels": {
            "job": "tensord", "namespace": "default", "pod": pod["metadata"]["name"]}} for pod in self.ready_pods()]
        config = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [f"{rules}/*.yml"],
                  "alerting": {"alertmanagers": [{"static_configs": [{"targets": ["127.0.0.1:9093"]}]}]},
                  "scrape_configs": [{"job_name": "tensord", "static_configs": targets}]}
        manager = {"route": {"receiver": "nobody", "group_wait": "1s"}, "receivers": [{"name": "nobody"}]}
        cluster.start("alertmanager", "prometheus-alertmanager", "--cluster.listen-address=",
                      f"--config.file={cluster.write('alertmanager.json', json.dumps(manager))}",
                      f"--storage.path={cluster.path('alertmanager')}", "--web.listen-address=127.0.0.1:9093")
        cluster.start("prometheus", "prometheus", f"--config.file={cluster.write('prometheus.json', json.dumps(config))}",
                      f"--storage.tsdb.path={cluster.path('prometheus')}", "--web.listen-address=127.0.0.1:9090")

    def query(self, expression):
        answer = http_json("http://127.0.0.1:9090/api/v1/query?query=" + urllib.parse.quote(expression))
        return answer["data"]["result"]

    def adapter_query(self):
        """The query that prometheus-adapter derives from the autoscaler's rule."""
        import yaml
        with open(os.path.join(ROOT, "deploy/kubernetes/components/autoscaling/prometheus_adapter.yaml")) as file:
            metrics_query = yaml.safe_load(file)["rules"]["custom"][0]["metricsQuery"]
        return metrics_query.replace("<<.LabelMatchers>>", 'namespace="default"').replace("<<.GroupBy>>", "pod").replace("[1m]", "[10s]")

    def check_metrics_and_alert(self):
        pods = sorted(pod["metadata"]["name"] for pod in self.ready_pods())
        self.start_prometheus()
        addresses = ",".join(f"{pod['status']['podIP']}:8001" for pod in self.ready_pods())
        with self.load_type(f"ipv4:{addresses}", MODEL, self.inputs, threads=4):
            def queue_seconds():
                try:
                    found = {it["metric"]["pod"]: float(it["value"][1]) for it in self.query(self.adapter_query())}
                except OSError:
                    return None
                return found if sorted(found) == pods and min(found.values()) > 0 else None
            print(f"    the autoscaler would read {wait_until(queue_seconds, 'both pods have queue times')}")
            rates = self.query('sum by (pod) (rate(tensord_requests_total[10s]))')
            assert len(rates) == 2 and all(float(it["value"][1]) > 0 for it in rates), rates
        self.cluster.kubectl("scale", "deployment/tensord", "--replicas=1")

        def alerts():
            try:
                return [it for it in http_json("http://127.0.0.1:9093/api/v2/alerts") if it["labels"]["alertname"] == "TensordDown"]
            except OSError:
                return None
        alert = wait_until(alerts, "TensordDown has come to Alertmanager")[0]
        print(f"    {alert['labels']['alertname']}: {alert['annotations']['summary']}")
        self.cluster.kubectl("scale", "deployment/tensord", "--replicas=2")
        self.wait_rollout()
        for name in ("prometheus", "alertmanager"):
            self.cluster.stop(name)


ORDER = ["rollout", "server_validates", "frozen_server", "rolling_update", "bad_image", "drain", "training_job", "metrics_and_alert"]


def run(arguments):
    cluster = Cluster(arguments.programs, arguments.work)
    failed = []
    try:
        begin = time.monotonic()
        cluster.up()
        checks = Checks(cluster, arguments.image)
        checks.prepare()
        print(f"the cluster is up, two servers and a trainer are ready: {time.monotonic() - begin:.0f} s", flush=True)
        for name in arguments.only:
            begin = time.monotonic()
            print(name, flush=True)
            try:
                getattr(checks, f"check_{name}")()
                print(f"  ok, {time.monotonic() - begin:.0f} s", flush=True)
            except Exception:
                failed.append(name)
                traceback.print_exc()
                print(f"  FAILED, {time.monotonic() - begin:.0f} s", flush=True)
                print(cluster.kubectl("get", "pods", "-o", "wide", check=False), flush=True)
    except Exception:
        traceback.print_exc()
        cluster.tell()
        failed.append("the cluster")
    finally:
        cluster.down()
    print(f"failed: {', '.join(failed)}" if failed else f"all {len(arguments.only)} checks passed")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--programs")
    parser.add_argument("--work")
    parser.add_argument("--image", default=NAME)
    parser.add_argument("--only", type=lambda argument: argument.split(","), default=ORDER)
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    unknown = set(arguments.only) - set(ORDER)
    if unknown:
        parser.error(f"no check {', '.join(unknown)}; there are {', '.join(ORDER)}")
    if arguments.list:
        print("\n".join(ORDER))
        return 0
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
