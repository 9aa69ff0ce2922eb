"""tensord.engine.distributed in a single process: errors, stores, the sampler's order."""

from __future__ import annotations

import datetime

import pytest
import torch

from tensord import engine
from tensord.engine import distributed as dist

pytestmark = pytest.mark.skipif(not dist.is_gloo_available(), reason="this build has no Gloo")


def test_mistakes():
    with pytest.raises(ValueError, match="has not been initialized"):
        dist.all_reduce(engine.ones(1))
    with pytest.raises(ValueError, match="none of gloo, nccl, mpi"):
        dist.init_process_group("ucc")
    if not dist.is_nccl_available():
        with pytest.raises(engine.Error, match="nccl: .*CUDA device|NCCL's library is not there"):
            dist.init_process_group("nccl")
        assert not dist.is_initialized()
    with pytest.raises(ValueError, match="environment variable RANK expected"):
        dist.init_process_group()
    with pytest.raises(RuntimeError, match="No rendezvous handler for ftp://"):
        dist.init_process_group(init_method="ftp://x")
    dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
    try:
        with pytest.raises(ValueError, match="twice"):
            dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        for ranks in ([0, 0], [1], []):
            with pytest.raises(ValueError, match="new_group"):
                dist.new_group(ranks)
        with pytest.raises(TypeError, match="ReduceOp"):
            dist.all_reduce(engine.ones(1), op="sum")
        with pytest.raises(ValueError, match="of a list|expected a list of 1"):
            dist.all_gather_object([], 1)
        net = engine.nn.parallel.DistributedDataParallel(engine.nn.Linear(2, 2))
        with pytest.raises(NotImplementedError, match="register_comm_hook"):
            net.register_comm_hook(None, lambda state, bucket: bucket)
        net.register_comm_hook(None, dist.algorithms.bf16_compress_hook)
        with pytest.raises(engine.Error, match="only be called once"):
            net.register_comm_hook(None, dist.algorithms.bf16_compress_hook)
        assert list(net.state_dict()) == ["module.weight", "module.bias"]
        with pytest.raises(ZeroDivisionError):
            engine.nn.parallel.DistributedDataParallel(Raises())(engine.ones(1))
    finally:
        dist.destroy_process_group()


class Raises(engine.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = engine.nn.Linear(1, 1)

    def forward(self, x):
        return 1 / 0


def test_stores():
    store = dist.TCPStore("127.0.0.1", 0, 1, True)
    store.set("a", "text")
    assert store.get("a") == b"text" and store.add("n", 41) == 41 and store.add("n", 1) == 42 and store.get("n") == b"42"
    assert store.check(["a", "n"]) and not store.check(["a", "b"])
    assert store.compare_set("a", "text", "new") == b"new" and store.compare_set("a", "text", "newer") == b"new"
    other = dist.PrefixStore("p", dist.TCPStore("127.0.0.1", store.port))
    other.set("a", b"\0\xff")
    assert store.get("p/a") == b"\0\xff" and other.get("a") == b"\0\xff"
    assert store.delete_key("a") and not store.delete_key("a")
    with pytest.raises(TimeoutError):
        store.wait(["missing"], datetime.timedelta(milliseconds=50))


@pytest.mark.parametrize("size, world, seed", [(10, 4, 7), (12, 3, 0), (3, 4, 1), (1, 3, 2)])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("drop_last", [False, True])
def test_the_samplers_order_is_pytorchs(size, world, seed, shuffle, drop_last):
    for epoch in (0, 3):
        for rank in range(world):
            samplers = [module.DistributedSampler(range(size), world, rank, shuffle, seed, drop_last)
                        for module in (engine.data, torch.utils.data)]
            for sampler in samplers:
                sampler.set_epoch(epoch)
            assert list(samplers[0]) == [int(i) for i in samplers[1]]
            assert len(samplers[0]) == len(samplers[1])
    with pytest.raises(ValueError, match="Invalid rank"):
        engine.data.DistributedSampler(range(4), 2, 2)
