"""NVIDIA's perf_analyzer: load on the example models; the server's statistics agree with the client's."""

import csv
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from tests.e2e.clients import example_server
from tests.e2e.daemon_process import ROOT

PERF = pathlib.Path(os.environ.get("TENSORD_CLIENTS", os.path.join(ROOT, "build", "clients"))) / "perf"


class PerfAnalyzerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = example_server.start()

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def measure(self, model, *flags):
        """Its output, and the rows of its table."""
        with tempfile.TemporaryDirectory() as folder:
            table = os.path.join(folder, "table.csv")
            # The shortest possible measurement, since performance is not tested here. If a busy machine leaves a window
            # without a request, others follow.
            run = subprocess.run(
                [PERF / "bin" / "perf_analyzer", "-m", model, "-u", self.daemon.ready["grpc"], "-i", "grpc",
                 "--measurement-mode", "count_windows", "--measurement-request-count", "50", "--max-trials", "30",
                 "--stability-percentage", "999", "-f", table, "--verbose-csv", *flags],
                env={**os.environ, "LD_LIBRARY_PATH": str(PERF / "nvidia" / "cuda_runtime" / "lib")},
                capture_output=True, text=True, timeout=120)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            with open(table) as rows:
                return run.stdout, list(csv.DictReader(rows))

    def check(self, model, *flags):
        printed, rows = self.measure(model, *flags)
        self.assertGreater(float(rows[0]["Inferences/Second"]), 0, printed)
        # What it read of ModelStatistics. Not the times: it has whole microseconds, and short runs take none.
        counts = dict(re.findall(r"(Inference count|Execution count|Successful request count): (\d+)", printed.split("Server:")[1]))
        self.assertEqual(len(counts), 3, printed)
        for name, count in counts.items():
            self.assertGreater(int(count), 0, f"{name} in {printed}")
        self.assertIn("Server Compute Infer", rows[0])
        return rows

    def test_calls(self):
        self.assertEqual(len(self.check("simple", "--concurrency-range", "1:2")), 2)
        self.check("simple", "-b", "8", "--async", "--concurrency-range", "4")
        self.check("identity_fp32", "--shape", "INPUT0:4,100")

    def test_strings(self):
        self.check("simple_identity", "--shape", "INPUT0:4", "--string-length", "20")

    def test_shared_memory(self):
        self.check("simple", "--shared-memory", "system", "--output-shared-memory-size", "64")

    def test_streams_and_sequences(self):
        self.check("simple", "--streaming", "--async")
        self.check("simple_sequence", "--streaming", "--async", "--sequence-length", "5", "--concurrency-range", "4")

    def test_ensemble(self):
        self.check("simple_ensemble")

    def test_request_rate(self):
        self.check("simple", "--request-rate-range", "200")


if __name__ == "__main__":
    unittest.main()
