"""What models on GPUs share and may not exceed: GPUs, resources of the rate limiter, memory, time. On the emulated devices (tests/cuda/emulated)."""

import concurrent.futures
import os
import time
import unittest

import grpc
import numpy as np
import torch
from torch import Tensor, nn

from tests.e2e.cuda_test import BATCHING, EMULATED, GPU, ROWS, Mlp, Repositories, Scale, daemon, groups, infer, rows, save
from tests.e2e.daemon import pb, request


class Rounds(nn.Module):
    def forward(self, x: Tensor, rounds: int) -> Tensor:
        for _ in range(rounds):
            x = x + 1
        return x


@unittest.skipUnless(os.path.exists(EMULATED), f"no {EMULATED}: Boost.Context is missing, or it is not built")
class CudaLimitsTest(unittest.TestCase, Repositories):
    def test_deadlines_and_cancellation_stop_a_run(self):
        with daemon(self.only(Rounds(), GPU % (1, "0"))) as server:
            def send(rounds, timeout=None):
                values = [("x", "FP32", [4], np.zeros(4, np.float32).tobytes()), ("rounds", "INT64", [1], np.int64(rounds).tobytes())]
                return server.stub.ModelInfer.future(request("m", values), timeout=timeout)

            start = time.monotonic()
            for _ in range(2):  # interpreted and planned
                self.assertEqual(send(10**12, timeout=0.5).exception().code(), grpc.StatusCode.DEADLINE_EXCEEDED)
                running = send(10**12)
                time.sleep(0.3)
                running.cancel()
                np.testing.assert_array_equal(np.frombuffer(send(3).result().raw_output_contents[0], np.float32), [3] * 4)
            self.assertLess(time.monotonic() - start, 120)
            self.assertTrue(server.stub.ServerReady(pb.ServerReadyRequest()).ready)

    def test_instances_are_on_each_of_many_gpus(self):
        root = self.only(Mlp().eval(), ROWS + BATCHING + "instance_group [ { kind: KIND_GPU } ]")
        save(Mlp().eval(), root, "two", ROWS + GPU % (2, "1, 3"))
        with daemon(root, TENSORD_CUDA_DEVICES="4") as server:
            self.assertEqual(groups(server, "m"), [("KIND_GPU", 1, [0, 1, 2, 3])])
            self.assertEqual(groups(server, "two"), [("KIND_GPU", 2, [1, 3])])
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                models = ["m", "two"] * 40
                for i, answer in enumerate(pool.map(lambda i: infer(server, models[i], x=rows(1 + i % 3, i)), range(80))):
                    expected = Mlp().eval()(torch.tensor(rows(1 + i % 3, i))).detach().numpy()
                    np.testing.assert_allclose(answer["OUTPUT__0"], expected, atol=1e-5)
            for index in range(4):
                self.assertGreater(server.metric("tensord_pool_live_bytes", device=f"cuda:{index}"), 0)

    def test_resources_of_the_rate_limiter_are_those_of_each_gpu(self):
        needs = 'instance_group [ { kind: KIND_GPU gpus: [ %s ] rate_limiter { resources [ { name: "R" count: %d } ] } } ]'
        root = self.only(Scale(), ROWS + needs % ("0, 1", 2), "wide")
        save(Scale(), root, "first", ROWS + needs % ("0", 4))
        save(Scale(), root, "second", ROWS + needs % ("1", 4))
        flags = ("--rate-limit", "execution_count", "--rate-limit-resource", "R:4", "--rate-limit-resource", "R:2:1")
        with daemon(root, "--strict-readiness", "false", *flags) as server:
            reasons = {model.name: model.reason for model in server.stub.RepositoryIndex(pb.RepositoryIndexRequest()).models}
            self.assertIn("it needs 4 of resource 'R', of which there are 2", reasons["second"])
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                models = ["wide", "first"] * 20
                for model, answer in zip(models, pool.map(lambda model: infer(server, model, x=rows(2)), models)):
                    np.testing.assert_allclose(answer["OUTPUT__0"], rows(2) * 3 + 1, rtol=1e-6)
        with self.assertRaisesRegex(RuntimeError, "the device must be a number or global, got '-1'"):
            daemon(root, "--rate-limit-resource", "R:1:-1")

    def test_loads_are_refused_where_much_memory_is_in_use(self):
        root = self.only(Mlp().eval(), ROWS + GPU % (1, "0"), "a")
        for name, gpu in (("b", "0"), ("c", "1")):
            save(Mlp().eval(), root, name, ROWS + GPU % (1, gpu))
        with daemon(root, "--model-control-mode", "explicit", "--model-load-gpu-limit", "0:0", "--model-load-gpu-limit", "1:0.9") as server:
            for name in ("a", "c"):
                server.stub.RepositoryModelLoad(pb.RepositoryModelLoadRequest(model_name=name))
            with self.assertRaises(grpc.RpcError) as caught:
                server.stub.RepositoryModelLoad(pb.RepositoryModelLoadRequest(model_name="b"))
            self.assertIn("memory limit set for GPU 0 has exceeded, model loading is rejected.", caught.exception.details())
            self.assertEqual(infer(server, "a", x=rows(2))["OUTPUT__0"].shape, (2, 8))
        for wrong in ("0", "0:", ":1", "0:1.5", "-1:0.5", "0:x", "x:0.5"):
            with self.assertRaisesRegex(RuntimeError, "--model-load-gpu-limit must be GPU:SHARE"):
                daemon(root, "--model-load-gpu-limit", wrong)


if __name__ == "__main__":
    unittest.main()
