"""NVIDIA's load generators on models without config.pbtxt: perf_analyzer, AIPerf and Model Analyzer's profile."""

import csv
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from tests.e2e.daemon_process import ROOT
from tests.e2e.third_party.server import ServerTest

BUILD = pathlib.Path(ROOT) / "build"
PERF = BUILD / "clients" / "perf"
AIPERF = BUILD / "aiperf" / "bin"
ANALYZER = BUILD / "third_party_clients" / "bin" / "model-analyzer"
LIMIT_S = 300
# Words for its prompts; its own tokenizers are on the network.
TOKENIZER = """
import sys
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

words = {word: i for i, word in enumerate(["<unk>", *(f"w{i}" for i in range(200))])}
tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", eos_token="<unk>", bos_token="<unk>").save_pretrained(sys.argv[1])
"""


def environment():
    return {**os.environ, "LD_LIBRARY_PATH": str(PERF / "nvidia" / "cuda_runtime" / "lib"),
            "PATH": f"{PERF / 'bin'}:{os.environ['PATH']}"}


class LoadTest(ServerTest):
    flags = ("--allow-client-shm", "true", "--model-control-mode", "explicit", "--load-model", "*")

    def run_here(self, folder, *command, **more):
        done = subprocess.run(command, cwd=folder, env=environment() | more, capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr[-4000:])
        return done.stdout

    def test_perf_analyzer(self):
        for model, shape in (("image", "pixels:1,3,4,4"), ("words", "ids:2"), ("linear", "x:2,3"), ("upper", "texts:3")):
            for protocol, address in (("grpc", self.grpc), ("http", self.http)):
                with self.subTest(model=model, protocol=protocol), tempfile.TemporaryDirectory() as folder:
                    printed = self.run_here(
                        folder, "perf_analyzer", "-m", model, "-u", address, "-i", protocol, "--shape", shape, "--measurement-mode",
                        "count_windows", "--measurement-request-count", "20", "--max-trials", "20", "--stability-percentage", "999",
                        "-f", "table.csv", *(("--input-data", "zero") if model == "words" else ()))
                    with open(f"{folder}/table.csv") as rows:
                        self.assertGreater(float(next(csv.DictReader(rows))["Inferences/Second"]), 0, printed)
                    self.assertRegex(printed, r"Successful request count: [1-9]")

    @unittest.skipUnless(AIPERF.exists(), "scripts/setup aiperf")
    def test_aiperf(self):
        with tempfile.TemporaryDirectory() as folder:
            self.run_here(folder, AIPERF / "python", "-c", TOKENIZER, "words")
            self.run_here(
                folder, AIPERF / "aiperf", "profile", "-m", "echo", "-u", f"http://{self.http}", "--endpoint-type", "template",
                "--custom-endpoint", "/v2/models/echo/generate", "--extra-inputs", 'payload_template:{"text_input": {{ text|tojson }}}',
                "--extra-inputs", "response_field:text_output", "--tokenizer", "./words", "--request-count", "20", "--concurrency", "2",
                "--synthetic-input-tokens-mean", "8", "--ui", "none", "--artifact-dir", "out", HOME=folder)
            found = json.loads((pathlib.Path(folder) / "out" / "profile_export_aiperf.json").read_text())
        self.assertEqual(found["request_count"]["avg"], 20)
        self.assertEqual(found.get("error_request_count", {"avg": 0})["avg"], 0)

    def test_model_analyzer(self):
        """Its search by hand on a running server, which it asks to load and unload."""
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "search.yaml").write_text(json.dumps({
                "profile_models": {"linear": {"perf_analyzer_flags": {"shape": "x:2,3"}, "parameters": {"concurrency": [1, 2]}}},
                "triton_launch_mode": "remote", "triton_grpc_endpoint": self.grpc, "triton_http_endpoint": self.http,
                "triton_metrics_url": f"http://{self.metrics}/metrics", "client_protocol": "grpc", "run_config_search_disable": True,
                "model_repository": self.repository, "output_model_repository_path": f"{folder}/out",
                "perf_analyzer_timeout": 120, "skip_summary_reports": True, "skip_detailed_reports": True}))
            printed = self.run_here(folder, ANALYZER, "profile", "-f", "search.yaml", HOME=folder)
            measured = json.loads((pathlib.Path(folder) / "checkpoints" / "0.ckpt").read_text())
        self.assertNotIn("failed", printed)
        for concurrency in (1, 2):
            self.assertIn(f"Profiling linear_config_default: concurrency={concurrency}", printed)
        self.assertEqual(len(measured["ResultManager.results"]["_results"]["linear"]["linear_config_default"][1]), 2)


if __name__ == "__main__":
    unittest.main()
