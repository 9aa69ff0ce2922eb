"""`tensord bench` from outside: consistent numbers, traces, comparisons, errors."""

import json
import os
import subprocess
import tempfile
import unittest
from typing import Dict, Tuple

import torch
from torch import Tensor, nn

BINARY = os.environ["TENSORD_BINARY"]


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(64, 256)
        self.second = nn.Linear(256, 10)

    def forward(self, x: Tensor) -> Tensor:
        return torch.softmax(self.second(torch.relu(self.first(x))), -1)

    @torch.jit.export
    def nested(self, x: Tensor) -> Tuple[Tensor, Dict[str, Tensor]]:
        return x + 1, {"count": torch.ones(3, dtype=torch.int64), "mean": x.mean()}


class BenchCommand(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        torch.manual_seed(0)
        cls.model = cls.path("model.pt")
        torch.jit.script(Small().eval()).save(cls.model)
        for rows in (1, 3, 5):
            torch.save((torch.randn(rows, 64),), cls.path(f"{rows}.pt"))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    def bench(self, *flags, expect=0):
        done = subprocess.run([BINARY, "bench", self.model, *flags], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, expect, done.stderr)
        return done.stdout if expect == 0 else done.stderr

    def report(self, *flags):
        return json.loads(self.bench("--json", *flags))

    def test_numbers_fit_each_other(self):
        report = self.report("--input", "32,64", "--iterations", "40", "--warmup", "2", "--threads", "1", "--batch", "16")
        self.assertEqual((report["runs"], report["threads"], report["precision"]), (40, 1, "f32"))
        self.assertLessEqual(report["min_ms"], report["median_ms"])
        self.assertLessEqual(report["median_ms"], report["p90_ms"])
        self.assertLessEqual(report["p90_ms"], report["p99_ms"])
        self.assertAlmostEqual(report["items_per_second"] / report["runs_per_second"], 16, places=3)
        self.assertLessEqual(2 * 16 * (64 * 256 + 256 * 10), report["flops"])
        self.assertGreater(report["bytes"], 4 * (64 * 256 + 256 * 10))
        self.assertGreater(report["peak_gflops"], 0)
        self.assertGreater(report["peak_read_gbs"], 0)
        self.assertAlmostEqual(report["peak_share"], report["gflops"] / report["peak_gflops"], places=3)
        self.assertAlmostEqual(sum(op["share"] for op in report["ops"]), 1, places=3)
        self.assertEqual(sorted(report["ops"][0]), ["calls", "gbs", "gflops", "ms", "name", "share"])
        self.assertGreater(report["arena_bytes"], 0)
        self.assertGreaterEqual(report["packed_bytes"], 4 * 64 * 256)
        self.assertEqual(report["programs"], 1)

    def test_only_the_latency(self):
        report = self.report("--input", "2,64", "--iterations", "3", "--latency-only")
        self.assertGreater(report["median_ms"], 0)
        self.assertNotIn("ops", report)
        self.assertNotIn("peak_gflops", report)
        self.assertNotIn("GFLOP", self.bench("--input", "2,64", "--iterations", "3", "--latency-only"))

    def test_sets_of_arguments_take_turns(self):
        sets = [f"--args={self.path(f'{rows}.pt')}" for rows in (1, 3, 5)]
        report = self.report(*sets, "--iterations", "4")
        self.assertEqual(report["runs"], 12)
        self.assertEqual(report["programs"], 3)
        self.assertIn("--args", self.bench(*sets, "--input", "1,64", expect=2))

    def test_the_text_names_what_was_measured(self):
        text = self.bench("--input", "8,64", "--iterations", "3", "--by-op")
        for word in ("median", "p90", "p99", "throughput", "GFLOP/s", "GB/s", "arena", "packed weights", "share"):
            self.assertIn(word, text)

    def test_a_trace_has_a_slice_for_each_call(self):
        path = self.path("trace.json")
        report = self.report("--input", "8,64", "--iterations", "10", "--trace", path)
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        names = {event["args"]["name"] for event in events if event["ph"] == "M"}
        self.assertIn("worker", names)
        slices = [event for event in events if event["ph"] == "X"]
        self.assertEqual({event["name"] for event in slices}, {op["name"] for op in report["ops"]})
        self.assertEqual(len(slices), round(3 * sum(op["calls"] for op in report["ops"])))
        starts = [event["ts"] for event in slices]
        self.assertEqual(starts, sorted(starts))
        for event in slices:
            self.assertGreaterEqual(event["dur"], 0)
            self.assertEqual((event["pid"], event["tid"]), (1, 1))
        self.assertTrue(any("8, 64" in event["args"].get("call", "") for event in slices))
        self.assertIn("--trace", self.bench("--input", "8,64", "--trace", self.path("no/such/folder"), expect=1))

    def test_a_precision_is_compared_with_another(self):
        same = self.report("--input", "8,64", "--iterations", "1", "--compare", "f32")
        self.assertEqual(same["reference"], "f32")
        (difference,) = same["differences"]
        self.assertEqual((difference["elements"], difference["max_abs"], difference["top1_agreement"]), (80, 0, 1))
        self.assertAlmostEqual(difference["cosine"], 1)
        (bf16,) = self.report("--input", "8,64", "--iterations", "1", "--precision", "bf16", "--compare", "f32")["differences"]
        self.assertGreater(bf16["max_abs"], 0)
        self.assertLess(bf16["max_relative"], 0.1)
        self.assertLessEqual(bf16["mean_abs"], bf16["max_abs"])
        self.assertGreater(bf16["cosine"], 0.999)
        text = self.bench("--input", "8,64", "--iterations", "1", "--precision", "bf16", "--compare", "f32")
        self.assertIn("bf16 against f32", text)

    def test_nested_results_are_compared_by_place(self):
        differences = self.report("--method", "nested", "--input", "2,3", "--iterations", "1", "--compare", "f32")["differences"]
        self.assertEqual([d["output"] for d in differences], ["0", "1.count", "1.mean"])
        self.assertIsNone(differences[2]["top1_agreement"])

    def test_wrong_use(self):
        self.assertIn("--input", self.bench(expect=1))
        self.assertIn("bf16", self.bench("--input", "1,64", "--compare", "f31", expect=1))
        self.assertIn("--warmup", self.bench("--input", "1,64", "--warmup", "-2", expect=2))
        self.assertIn("--batch", self.bench("--input", "1,64", "--batch", "0", expect=2))


if __name__ == "__main__":
    unittest.main(verbosity=2)
