"""A Kubernetes cluster of one node in the namespaces of this process: etcd, Docker, the control plane, kubelet,
kube-proxy."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request

from tests.e2e.processes import wait_until

ADDRESS = "10.200.0.1"
API = f"https://{ADDRESS}:6443"
PAUSE = "int pause(void); int main(void) { for (;;) pause(); }"

# The kubelet sets negative OOM scores for containers, which not every root may do.
RUNC = """#!/bin/sh
previous=
for word; do
  if [ "$previous" = --bundle ]; then
    jq -c 'if (.process.oomScoreAdj // 0) < 0 then .process.oomScoreAdj = 0 else . end' "$word/config.json" >"$word/config.new" &&
      mv "$word/config.new" "$word/config.json"
  fi
  previous=$word
done
exec runc "$@"
"""

KUBECONFIG = {
    "apiVersion": "v1", "kind": "Config", "current-context": "test",
    "clusters": [{"name": "test", "cluster": {"server": API, "insecure-skip-tls-verify": True}}],
    "users": [{"name": "test", "user": {"token": "test-token"}}],
    "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}]}


class Cluster:
    def __init__(self, programs, work):
        self.programs, self.work = programs, work
        self.processes = {}
        os.environ["KUBECONFIG"] = self.path("kubeconfig")
        os.environ.pop("DOCKER_HOST", None)

    def path(self, *parts):
        return os.path.join(self.work, *parts)

    def write(self, name, content, mode=0o644):
        with open(self.path(name), "w") as file:
            file.write(content)
        os.chmod(self.path(name), mode)
        return self.path(name)

    def start(self, name, *command):
        with open(self.path(f"{name}.log"), "w") as log:
            self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.work)

    def command(self, *command, check=True, timeout=600, given=None):
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, input=given)
        if check and done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done

    def kubectl(self, *arguments, check=True, timeout=600, given=None):
        return self.command("kubectl", *arguments, check=check, timeout=timeout, given=given).stdout

    def get(self, *arguments):
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def docker(self, *arguments, given=None):
        return self.command("/usr/bin/docker", *arguments, given=given).stdout

    def start_network(self):
        self.command("mount", "--make-rshared", "/")
        self.command("mount", "-t", "tmpfs", "tmpfs", "/run")
        self.command("ip", "link", "set", "lo", "up")
        self.command("ip", "link", "add", "node0", "type", "bridge")
        self.command("ip", "address", "add", f"{ADDRESS}/24", "dev", "node0")
        self.command("ip", "link", "set", "node0", "up")
        self.command("ip", "route", "add", "default", "dev", "node0")

    def start_docker(self):
        runc = self.write("runc", RUNC, 0o755)
        self.start("docker", "dockerd", "--data-root", self.path("docker"), "--add-runtime", f"plain={runc}",
                   "--default-runtime", "plain", "--cgroup-parent", "/tensord-cluster/docker")
        wait_until(lambda: subprocess.run(["/usr/bin/docker", "info"], capture_output=True).returncode == 0, "Docker answers")
        self.command("cc", "-static", "-O1", "-xc", "-o", self.path("pause"), "-", given=PAUSE)
        self.command("sh", "-c", f"tar -C {self.work} -c pause | docker import -c 'ENTRYPOINT [\"/pause\"]' - pause:cluster")

    def is_api_ready(self):
        request = urllib.request.Request(f"{API}/readyz", headers={"Authorization": "Bearer test-token"})
        import ssl
        context = ssl._create_unverified_context()
        try:
            with urllib.request.urlopen(request, timeout=5, context=context) as answer:
                return answer.read() == b"ok"
        except OSError:
            return False

    def start_control_plane(self):
        self.command("openssl", "genrsa", "-out", self.path("accounts.key"), "2048")
        self.write("tokens.csv", "test-token,test,test,system:masters\n")
        kubeconfig = self.write("kubeconfig", json.dumps(KUBECONFIG))
        self.start("etcd", "etcd", "--data-dir", self.path("etcd"))
        self.start("kube-apiserver", f"{self.programs}/kube-apiserver", "--etcd-servers=http://127.0.0.1:2379",
                   "--secure-port=6443", f"--bind-address={ADDRESS}", f"--advertise-address={ADDRESS}",
                   f"--cert-dir={self.path('certificates')}", "--service-cluster-ip-range=10.96.0.0/24",
                   f"--token-auth-file={self.path('tokens.csv')}", "--authorization-mode=Node,RBAC",
                   "--kubelet-preferred-address-types=InternalIP", "--service-account-issuer=https://kubernetes.default.svc",
                   f"--service-account-key-file={self.path('accounts.key')}",
                   f"--service-account-signing-key-file={self.path('accounts.key')}")
        wait_until(self.is_api_ready, "the API server is ready")
        self.start("kube-controller-manager", f"{self.programs}/kube-controller-manager", f"--kubeconfig={kubeconfig}",
                   f"--service-account-private-key-file={self.path('accounts.key')}", "--leader-elect=false",
                   f"--root-ca-file={self.path('certificates', 'apiserver.crt')}", "--bind-address=127.0.0.1")
        self.start("kube-scheduler", f"{self.programs}/kube-scheduler", f"--kubeconfig={kubeconfig}", "--leader-elect=false",
                   "--bind-address=127.0.0.1")

    def start_node(self):
        kubeconfig = self.path("kubeconfig")
        self.start("kubelet", f"{self.programs}/kubelet", f"--kubeconfig={kubeconfig}", "--hostname-override=node1",
                   f"--node-ip={ADDRESS}", f"--root-dir={self.path('kubelet')}", f"--cert-dir={self.path('kubelet-pki')}",
                   f"--volume-plugin-dir={self.path('plugins')}", "--pod-infra-container-image=pause:cluster",
                   "--cgroup-driver=cgroupfs", "--cgroup-root=/tensord-cluster", "--fail-swap-on=false", "--eviction-hard=",
                   "--image-gc-high-threshold=100", "--resolv-conf=", "--oom-score-adj=0", "--authorization-mode=AlwaysAllow",
                   f"--max-open-files={os.sysconf('SC_OPEN_MAX')}", "--read-only-port=0")
        self.start("kube-proxy", f"{self.programs}/kube-proxy", f"--kubeconfig={kubeconfig}", "--hostname-override=node1",
                   "--proxy-mode=iptables", "--cluster-cidr=172.17.0.0/16", "--oom-score-adj=0", "--conntrack-max-per-core=0",
                   "--iptables-min-sync-period=0s")
        wait_until(lambda: any(
            condition["type"] == "Ready" and condition["status"] == "True"
            for node in self.get("nodes")["items"] for condition in node["status"]["conditions"]), "the node is ready", timeout=240)

    def up(self):
        # Before Docker and the kubelet start, so that their cgroups are below this one and can be removed together.
        for controller in os.listdir("/sys/fs/cgroup"):
            folder = f"/sys/fs/cgroup/{controller}/tensord-cluster"
            if os.path.isdir(os.path.dirname(folder)) and not os.path.islink(os.path.dirname(folder)):
                os.makedirs(folder, exist_ok=True)
        for name in ("cpus", "mems"):
            with open(f"/sys/fs/cgroup/cpuset/cpuset.{name}") as file:
                value = file.read()
            with open(f"/sys/fs/cgroup/cpuset/tensord-cluster/cpuset.{name}", "w") as file:
                file.write(value)
        for start in (self.start_network, self.start_docker, self.start_control_plane, self.start_node):
            begin = time.monotonic()
            start()
            print(f"  {start.__name__[6:]}: {time.monotonic() - begin:.1f} s", flush=True)

    def down(self):
        self.stop("kubelet")
        left = self.command("/usr/bin/docker", "ps", "-aq", check=False).stdout.split()
        if left:
            self.command("/usr/bin/docker", "rm", "-f", *left, check=False)
        for name in list(self.processes):
            self.stop(name)
        with open("/proc/mounts") as mounts:
            inside = [line.split()[1] for line in mounts if line.split()[1].startswith(self.work + "/")]
        for path in reversed(inside):
            self.command("umount", path, check=False)

    def stop(self, name):
        process = self.processes.pop(name, None)
        if process and process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def tell(self, lines=15):
        """Prints the last output of the daemons, for a failure report."""
        for name in self.processes:
            with open(self.path(f"{name}.log"), errors="replace") as log:
                print(f"--- {name}\n{''.join(log.readlines()[-lines:])}", file=sys.stderr)
