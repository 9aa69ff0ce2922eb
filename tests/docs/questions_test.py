"""Newcomers' questions about the code: ARCHITECTURE.md answers each with an existing file."""

import pathlib
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
QUESTIONS = {
    "Where is a request batched?": "server/executor/strategies/batch_strategy.cpp",
    "Which requests wait, and which go next?": "server/scheduler/batch_policy.cpp",
    "Where does aten::softmax compute?": "kernels/norm/softmax_run_cpu.cpp",
    "Where is an operator declared?": "kernels/norm/norm.ops",
    "Where is an operator found by its name?": "core/ops/registry.cpp",
    "Who allocates a tensor's memory, and who frees it?": "core/tensor/memory/caching_allocator.cpp",
    "Who frees a model's weights when it is unloaded?": "server/repository/retired_versions.cpp",
    "How does a .pt file become a graph?": "core/jit/frontend/compilation_unit.cpp",
    "Which passes run, in which order?": "core/jit/passes/pipeline.cpp",
    "Where is a graph's plan made for new shapes?": "core/jit/runtime/plan/planner.cpp",
    "Where does backward() walk the graph?": "core/autograd/graph_task.cpp",
    "Where does a gRPC message become tensors?": "server/transport/infer/decode.cpp",
    "What happens to a training job after a crash?": "server/training/checkpoint.cpp",
}




class Questions(unittest.TestCase):
    def test_each_has_its_row(self) -> None:
        rows = (ROOT / "ARCHITECTURE.md").read_text().split("\n")
        for question, file in QUESTIONS.items():
            with self.subTest(question):
                self.assertTrue((ROOT / file).is_file(), file)
                self.assertIn(f"| {question} | `{file}` |", rows)


if __name__ == "__main__":
    unittest.main()
