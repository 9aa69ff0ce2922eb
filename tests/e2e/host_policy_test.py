"""--host-policy: instances run on the cores that their group's policy names."""

import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
import torch
from torch import nn

from tests.e2e import serve_models
from tests.e2e.daemon import BINARY, Daemon, pb, request

WIDTH = 1024
CONFIG = """
input [ {{ name: "input" data_type: TYPE_FP32 dims: [ 256, {width} ] }} ]
instance_group [ {groups} ]
parameters {{ key: "INTRA_OP_THREAD_COUNT" value: {{ string_value: "2" }} }}
"""
CORES = sorted(os.sched_getaffinity(0))


def listed(cores):
    return ",".join(map(str, cores))


def group(policy):
    return f'{{ kind: KIND_CPU host_policy: "{policy}" }}' if policy else "{ kind: KIND_CPU }"


def save(root, name, *policies):
    serve_models.save(nn.Linear(WIDTH, WIDTH), root, name)
    with open(os.path.join(root, name, "config.pbtxt"), "w") as file:
        file.write(CONFIG.format(width=WIDTH, groups=", ".join(map(group, policies))))


def cores_of_workers(pid):
    """The cores of each thread that runs models."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        status = dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines() if ":\t" in line)
        if status["Name"].endswith("worker"):
            found.append(frozenset(cores_in(status["Cpus_allowed_list"])))
    return found


def cores_in(text):
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


class HostPolicyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.manual_seed(0)
        cls.folder = tempfile.TemporaryDirectory()
        root = cls.folder.name
        save(root, "first", "first")
        save(root, "both", "first", "last")
        save(root, "free", "")
        save(root, "unknown", "nowhere")
        cls.daemon = Daemon(root, "--host-policy", f"first,cpu-cores={CORES[0]}", "--host-policy", f"last,cpu-cores={CORES[-1]}")

    @classmethod
    def tearDownClass(cls):
        cls.daemon.stop()
        cls.folder.cleanup()

    def ask(self, model, count=1):
        x = np.ones((256, WIDTH), np.float32)
        message = request(model, [("input", "FP32", x.shape, x.tobytes())])
        calls = [self.daemon.stub.ModelInfer.future(message) for _ in range(count)]
        return [call.result().raw_output_contents[0] for call in calls]

    def test_a_model_runs_on_the_cores_of_its_policy_and_others_on_all(self):
        answers = self.ask("first", 3)
        self.assertEqual(len(set(answers)), 1)
        self.assertIn(frozenset(CORES[:1]), cores_of_workers(self.daemon.process.pid))
        placed = cores_of_workers(self.daemon.process.pid).count(frozenset(CORES[:1]))
        for _ in range(8):  # the thread that became idle last is used again
            self.ask("free")
        if len(CORES) > 1:
            self.assertLess(cores_of_workers(self.daemon.process.pid).count(frozenset(CORES[:1])), placed)
        self.assertIn(frozenset(CORES), cores_of_workers(self.daemon.process.pid))

    def test_instances_of_one_model_have_places_of_their_own(self):
        for _ in range(5):
            self.ask("both", 8)
        places = set(cores_of_workers(self.daemon.process.pid))
        self.assertLessEqual({frozenset(CORES[:1]), frozenset(CORES[-1:])}, places)

    def test_a_policy_that_is_not_defined_is_ignored_with_a_warning(self):
        self.ask("unknown")
        self.assertRegex(self.daemon.log_text(), "host policy ignored.* model=unknown policy=nowhere")

    def test_the_configuration_is_returned(self):
        answer = self.daemon.stub.ModelConfig(pb.ModelConfigRequest(name="first"))
        self.assertEqual(answer.config.instance_group[0].host_policy, "first")

    def test_bad_policies_are_refused_at_the_start(self):
        for text, message in (("first", "expected NAME,SETTING=VALUE"), ("a,cpu-cores=x", "expected cores such as"),
                              ("a,cpu-cores=1023", "may not use core 1023"), ("a,numa-node=63", "no NUMA node 63"),
                              ("a,numa-node=x", "numa-node must be a number"), ("a,color=red", "unknown setting 'color'")):
            run = subprocess.run([BINARY, "serve", "--model-repository", self.folder.name, "--host-policy", text],
                                 capture_output=True, text=True, timeout=60)
            self.assertNotEqual(run.returncode, 0, text)
            self.assertIn(message, run.stderr, text)
            self.assertIn("--host-policy", run.stderr, text)


if __name__ == "__main__":
    unittest.main()
