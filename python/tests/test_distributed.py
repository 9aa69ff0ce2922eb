"""tensord.engine.distributed over processes, compared with PyTorch's."""

from __future__ import annotations

import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
import textwrap

import pytest
import torch

from tensord.engine import distributed as dist

pytestmark = pytest.mark.skipif(not dist.is_gloo_available(), reason="this build has no Gloo")
TIMEOUT_S = 120


def start(folder: pathlib.Path, world: int, program: str, **variables):
    """Processes that run it, each with its RANK; `dist` is there, and `start()` makes the group."""
    source = textwrap.dedent(f"""
        import datetime, os, pickle, sys, warnings
        from tensord import engine
        from tensord.engine import distributed as dist, nn, optim
        rank, world = int(os.environ["RANK"]), {world}
        def start(name="store", **options):
            dist.init_process_group("gloo", init_method="file://{folder}/" + name, rank=rank, world_size=world,
                                    **{{"timeout": datetime.timedelta(seconds=30), **options}})
        def save(value):
            with open("{folder}/" + str(rank), "wb") as out:
                pickle.dump(value, out)
    """) + textwrap.dedent(program)
    (folder / "program.py").write_text(source)
    return [subprocess.Popen([sys.executable, str(folder / "program.py")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             env={**os.environ, "RANK": str(rank), **variables}) for rank in range(world)]


def run(folder, world: int, program: str, **variables):
    """The tensors that each of them saved."""
    processes = start(folder, world, program, **variables)
    outputs = [process.communicate(timeout=TIMEOUT_S)[0] for process in processes]
    for rank, process in enumerate(processes):
        assert process.returncode == 0, f"rank {rank}:\n{outputs[rank]}"
    return [pickle.loads((folder / str(rank)).read_bytes()) for rank in range(world)]


COLLECTIVES = """
    start()
    out = {}
    def own(*shape, plus=0):
        return engine.arange(1, 1 + int(engine.ones(shape).numel()), dtype=engine.float32).reshape(shape) * (rank + 1) + plus

    x = own(2, 3)
    dist.all_reduce(x)
    out["all_reduce"] = x.tolist()
    for op in ("AVG", "PRODUCT", "MIN", "MAX"):
        x = own(3)
        dist.all_reduce(x, getattr(dist.ReduceOp, op))
        out[op] = x.tolist()
    x = own(3)
    dist.all_reduce(x, dist.make_premul_sum(0.5))
    out["PREMUL_SUM"] = x.tolist()
    x = engine.tensor([3 + rank, 5])
    dist.all_reduce(x, op=dist.ReduceOp.BXOR)
    out["BXOR"] = x.tolist()
    x = own(4, 2)[::2]
    work = dist.all_reduce(x, async_op=True)
    assert work.wait() and work.is_completed() and work.is_success() and work.exception() is None
    out["strided"] = x.tolist()
    pair = [own(2), own(3)]
    dist.all_reduce_coalesced(pair)
    out["coalesced"] = [t.tolist() for t in pair]
    x = own(2)
    dist.broadcast(x, src=1)
    out["broadcast"] = x.tolist()
    x = own(2)
    dist.reduce(x, dst=2)
    out["reduce"] = x.tolist()
    parts = [engine.zeros(2) for _ in range(world)]
    dist.all_gather(parts, own(2))
    out["all_gather"] = [t.tolist() for t in parts]
    x = engine.zeros(world, 2)
    dist.all_gather_into_tensor(x, own(2))
    out["all_gather_into_tensor"] = x.tolist()
    parts = [engine.zeros(2) for _ in range(world)] if rank == 1 else None
    dist.gather(own(2), parts, dst=1)
    out["gather"] = parts and [t.tolist() for t in parts]
    x = engine.zeros(2)
    dist.scatter(x, [own(2, plus=10 * i) for i in range(world)] if rank == 0 else None, src=0)
    out["scatter"] = x.tolist()
    x = engine.zeros(2)
    dist.reduce_scatter(x, [own(2, plus=i) for i in range(world)])
    out["reduce_scatter"] = x.tolist()
    x = engine.zeros(1, 2)
    dist.reduce_scatter_tensor(x, own(world, 2))
    out["reduce_scatter_tensor"] = x.tolist()
    parts = [engine.zeros(2) for _ in range(world)]
    dist.all_to_all(parts, [own(2, plus=100 * i) for i in range(world)])
    out["all_to_all"] = [t.tolist() for t in parts]
    x = engine.zeros(sum(range(1, world + 1)) if rank == 0 else 0)
    sizes = [s + 1 if rank == 0 else 0 for s in range(world)]
    dist.all_to_all_single(x, own(rank + 1), sizes, [rank + 1] + [0] * (world - 1))
    out["all_to_all_single"] = x.tolist()
    dist.barrier()
    dist.monitored_barrier()

    x = engine.zeros(2)
    if rank == 0:
        dist.send(own(2), 1, tag=3)
    elif rank == 1:
        out["recv"] = [dist.recv(x, tag=3), x.tolist()]
    x = engine.zeros(2)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, own(2), (rank + 1) % world), dist.P2POp(dist.irecv, x, (rank - 1) % world)]):
        work.wait()
    out["ring"] = x.tolist()

    objects = [None] * world
    dist.all_gather_object(objects, {"rank": rank, "t": engine.tensor([rank])})
    out["objects"] = [(o["rank"], o["t"].tolist()) for o in objects]
    objects = [None] * world if rank == 2 else None
    dist.gather_object("x" * rank, objects, dst=2)
    out["gathered"] = objects
    objects = [rank, {"a": rank}]
    dist.broadcast_object_list(objects, src=1)
    out["broadcasted"] = objects
    objects = [None]
    dist.scatter_object_list(objects, [f"for {i}" for i in range(world)] if rank == 0 else None)
    out["scattered"] = objects
    objects = [None, None]
    if rank == 0:
        dist.send_object_list(["a", 2], 1)
    elif rank == 1:
        assert dist.recv_object_list(objects) == 0
        out["sent"] = objects

    group = dist.new_group([2, 0])
    out["group"] = [dist.get_rank(group), dist.get_world_size(group)]
    x = own(2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dist.all_reduce(x, group=group)
    out["in_group"] = [x.tolist(), len(caught)]
    if rank != 1:
        assert dist.get_process_group_ranks(group) == [0, 2] and dist.get_global_rank(group, 1) == 2
        assert dist.get_group_rank(group, 2) == 1
        x = own(2)
        dist.broadcast(x, src=2, group=group)
        assert x.tolist() == [3, 6]
        x = own(2)
        dist.broadcast(x, group_src=1, group=group)
        assert x.tolist() == [3, 6]
    dist.destroy_process_group(group)
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend(), dist.is_initialized()) == (rank, world, "gloo", True)
    assert dist.group.WORLD is not None
    dist.destroy_process_group()
    assert not dist.is_initialized()
    start("again")
    x = own(2)
    dist.all_reduce(x)
    out["again"] = x.tolist()
    dist.destroy_process_group()
    save(out)
"""


def test_collectives(tmp_path):
    check_collectives(run(tmp_path, 3, COLLECTIVES))


def check_collectives(ranks):
    for rank, out in enumerate(ranks):
        mine = rank + 1
        assert out["all_reduce"] == [[6, 12, 18], [24, 30, 36]]
        assert out["AVG"] == [2, 4, 6] and out["PRODUCT"] == [6, 48, 162]
        assert out["PREMUL_SUM"] == [3, 6, 9]
        assert out["MIN"] == [1, 2, 3] and out["MAX"] == [3, 6, 9] and out["BXOR"] == [3 ^ 4 ^ 5, 5]
        assert out["strided"] == [[6, 12], [30, 36]] and out["coalesced"] == [[6, 12], [6, 12, 18]]
        assert out["broadcast"] == [2, 4] and out["reduce"] == ([6, 12] if rank == 2 else [mine, 2 * mine])
        gathered = [[1, 2], [2, 4], [3, 6]]
        assert out["all_gather"] == out["all_gather_into_tensor"] == gathered
        assert out["gather"] == (gathered if rank == 1 else None)
        assert out["scatter"] == [1 + 10 * rank, 2 + 10 * rank]
        assert out["reduce_scatter"] == [6 + 3 * rank, 12 + 3 * rank]
        assert out["reduce_scatter_tensor"] == [[6 * (2 * rank + 1), 6 * (2 * rank + 2)]]
        assert out["all_to_all"] == [[s + 100 * rank, 2 * s + 100 * rank] for s in (1, 2, 3)]
        assert out["all_to_all_single"] == ([1, 2, 4, 3, 6, 9] if rank == 0 else [])
        assert out["ring"] == [(rank - 1) % 3 + 1, 2 * ((rank - 1) % 3 + 1)]
        assert out["objects"] == [(r, [r]) for r in range(3)]
        assert out["gathered"] == (["", "x", "xx"] if rank == 2 else None)
        assert out["broadcasted"] == [1, {"a": 1}] and out["scattered"] == [f"for {rank}"]
        assert out["group"] == ([-1, -1] if rank == 1 else [rank // 2, 2])
        assert out["in_group"] == ([[2, 4], 1] if rank == 1 else [[4, 8], 0])
        assert out["again"] == [6, 12]
    assert ranks[1]["recv"] == [0, [1, 2]] and ranks[1]["sent"] == ["a", 2]


# The same source with PyTorch's names and with ours.
TRAINING = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(2, 4, 3, padding=1)
            self.norm = nn.BatchNorm2d(4)
            self.head, self.side = nn.Linear(64, 3), nn.Linear(64, 3)

        def forward(self, x, uses_side=True):
            h = lib.relu(self.norm(self.conv(x))).flatten(1)
            return {"scores": self.head(h) + self.side(h) if uses_side else self.head(h)}

    def train(weights, x, y, steps, hook=None, no_sync=False, join=False, **options):
        net = Net()
        net.load_state_dict(weights)
        ddp = nn.parallel.DistributedDataParallel(net, **options)
        if hook is not None:
            ddp.register_comm_hook(*hook)
        optimizer = optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
        losses = []
        with ddp.join() if join else contextlib.nullcontext():
            for step in range(steps):
                optimizer.zero_grad(set_to_none=True)
                with ddp.no_sync() if no_sync and step % 2 == 0 else contextlib.nullcontext():
                    uses_side = not options.get("find_unused_parameters") or (step + rank) % 3 == 0
                    loss = nn.functional.mse_loss(ddp(x[step], uses_side=uses_side)["scores"], y[step])
                    loss.backward()
                losses.append(loss.item())
                optimizer.step()
        return losses

    def train_all(weights, x, y):
        out = {
            "plain": train(weights, x, y, 6),
            "views": train(weights, x, y, 6, gradient_as_bucket_view=True),
            "static": train(weights, x, y, 6, static_graph=True),
            "unused": train(weights, x, y, 6, find_unused_parameters=True),
            "no_sync": train(weights, x, y, 6, no_sync=True),
            "join": train(weights, x, y, 6 - 2 * rank, join=True),
            "fp16": train(weights, x, y, 6, hook=(None, hooks.fp16_compress_hook)),
            "power": train(weights, x, y, 6, hook=(power.PowerSGDState(None, start_powerSGD_iter=2), power.powerSGD_hook)),
        }
        return out
"""
OURS = """
    import contextlib
    import numpy
    from tensord.engine.distributed import algorithms as hooks, algorithms as power
    lib = engine
""" + TRAINING + """
    start()
    data = numpy.load(os.environ["DATA"])
    read = lambda name: engine.from_numpy(data[name].copy())
    weights = {name.removeprefix("weights."): read(name) for name in data.files if name.startswith("weights.")}
    save(train_all(weights, read("x")[:, rank], read("y")[:, rank]))
    dist.destroy_process_group()
"""
THEIRS = """
    import contextlib, os, pickle
    import numpy
    import torch as lib
    from torch import distributed as dist, nn, optim
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks as hooks, powerSGD_hook as power
    rank, folder = int(os.environ["RANK"]), os.environ["FOLDER"]
    lib.set_num_threads(1)
""" + TRAINING + """
    dist.init_process_group("gloo", init_method=f"file://{folder}/theirs", rank=rank, world_size=2)
    data = numpy.load(os.environ["DATA"])
    weights = {name[len("weights."):]: lib.from_numpy(data[name]) for name in data.files if name.startswith("weights.")}
    found = train_all(weights, lib.from_numpy(data["x"])[:, rank], lib.from_numpy(data["y"])[:, rank])
    with open(f"{folder}/theirs.{rank}", "wb") as out:
        pickle.dump(found, out)
    dist.barrier()
    dist.destroy_process_group()
"""


@pytest.mark.skipif(not dist.is_mpi_available(), reason="this build has no engine of MPI")
@pytest.mark.skipif(shutil.which("mpirun") is None, reason="mpirun is not installed")
@pytest.mark.parametrize("world", [2, 3])
def test_mpi_under_mpirun(tmp_path, world):
    """All collectives of three ranks, as with Gloo; two ranks train."""
    program = COLLECTIVES.replace('"gloo"', '"mpi"') if world == 3 else """
        start()
        net = nn.Linear(2, 1)
        with engine.no_grad():
            for parameter in net.parameters():
                parameter.fill_(rank + 1.0)
        ddp = nn.parallel.DistributedDataParallel(net)
        ddp(engine.ones(1, 2) * (rank + 1)).sum().backward()
        save([net.weight.tolist(), net.weight.grad.tolist(), dist.get_backend()])
        dist.destroy_process_group()
    """
    source = textwrap.dedent(f"""
        import os, pickle, warnings
        from tensord import engine
        from tensord.engine import distributed as dist, nn
        rank, world = int(os.environ["OMPI_COMM_WORLD_RANK"]), {world}
        def start(name=""):
            dist.init_process_group("mpi")
        def save(value):
            with open("{tmp_path}/" + str(rank), "wb") as out:
                pickle.dump(value, out)
    """) + textwrap.dedent(program)
    (tmp_path / "program.py").write_text(source)
    done = subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "btl_vader_single_copy_mechanism", "none", "-n",
                           str(world), sys.executable, str(tmp_path / "program.py")], capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    out = [pickle.loads((tmp_path / str(rank)).read_bytes()) for rank in range(world)]
    if world == 3:
        check_collectives(out)
    else:
        assert out == [[[[1.0, 1.0]], [[1.5, 1.5]], "mpi"]] * 2


def test_data_parallel_trains_as_pytorchs(tmp_path):
    import numpy

    torch.manual_seed(0)
    net = torch.nn.Sequential()
    net.conv, net.norm = torch.nn.Conv2d(2, 4, 3, padding=1), torch.nn.BatchNorm2d(4)
    net.head, net.side = torch.nn.Linear(64, 3), torch.nn.Linear(64, 3)
    numpy.savez(tmp_path / "data.npz", x=torch.randn(6, 2, 4, 2, 4, 4).numpy(), y=torch.randn(6, 2, 4, 3).numpy(),
                **{"weights." + name: tensor.numpy() for name, tensor in net.state_dict().items()})
    data = str(tmp_path / "data.npz")
    (tmp_path / "theirs.py").write_text(textwrap.dedent(THEIRS))
    theirs = [subprocess.Popen([sys.executable, str(tmp_path / "theirs.py")],
                               env={**os.environ, "RANK": str(rank), "FOLDER": str(tmp_path), "DATA": data}) for rank in range(2)]
    ours = run(tmp_path, 2, OURS, DATA=data)
    assert [process.wait(TIMEOUT_S) for process in theirs] == [0, 0]
    for rank in range(2):
        expected = pickle.loads((tmp_path / f"theirs.{rank}").read_bytes())
        assert ours[rank].keys() == expected.keys()
        for name, losses in expected.items():
            assert ours[rank][name] == pytest.approx(losses, abs=2e-3 if name == "fp16" else 2e-5), name
        assert expected["plain"] != expected["power"]


def test_sync_batch_norm_is_that_of_all_rows(tmp_path):
    # Three rows on rank 0, one on rank 1.
    out = run(tmp_path, 2, """
        start()
        engine.manual_seed(5)
        x, g = engine.randn(4, 3, 2, 2), engine.randn(4, 3, 2, 2)
        net = nn.Sequential(nn.Conv2d(3, 3, 1), nn.Sequential(nn.BatchNorm2d(3)))
        made = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.Sequential(nn.BatchNorm2d(3))))
        assert type(made[0][0]) is nn.SyncBatchNorm and list(made.state_dict()) == list(
            nn.Sequential(nn.Sequential(nn.BatchNorm2d(3))).state_dict())
        part = slice(0, 3) if rank == 0 else slice(3, 4)
        own = x[part].detach().requires_grad_(True)
        y = made(own)
        (y * g[part]).sum().backward()
        alone = nn.BatchNorm2d(3)
        whole = x.detach().requires_grad_(True)
        expected = alone(whole)
        (expected * g).sum().backward()
        near = lambda a, b: float((a - b).abs().max()) < 1e-5
        weight = made[0][0].weight.grad.clone()
        dist.all_reduce(weight)
        made.eval()
        save([near(y, expected[part]), near(own.grad, whole.grad[part]), near(made[0][0].running_var, alone.running_var),
              near(weight, alone.weight.grad), made(own).shape == own.shape])
        # The layer has a group of its own: a backward pass after the default one's end is not a crash.
        y = made.train()(own)
        dist.destroy_process_group()
        y.sum().backward()
    """)
    assert out == [[True] * 5] * 2


def test_env_rendezvous_by_the_launcher(tmp_path):
    binary = os.environ.get("TENSORD_BINARY")
    if not binary:
        pytest.skip("TENSORD_BINARY is not set")
    (tmp_path / "program.py").write_text(textwrap.dedent("""
        import os
        from tensord import engine
        from tensord.engine import distributed as dist
        dist.init_process_group()
        x = engine.tensor([float(dist.get_rank() + 1)])
        dist.all_reduce(x)
        print("sum", x.item(), "of", dist.get_world_size(), flush=True)
        dist.destroy_process_group()
    """))
    done = subprocess.run([binary, "launch", "--nproc", "3", sys.executable, str(tmp_path / "program.py")], capture_output=True, text=True,
                          timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"sum 6\.0 of 3", done.stdout)) == 3, done.stdout


@pytest.mark.parametrize("layer,indices", [("Embedding", "[rank, 4]"), ("EmbeddingBag", "[[rank, 4]]")])
def test_tables_have_sparse_gradients(tmp_path, layer, indices):
    out = run(tmp_path, 2, f"""
        start()
        net = nn.Sequential(nn.{layer}(6, 2, sparse=True), nn.Linear(2, 1))
        ddp = nn.parallel.DistributedDataParallel(net)
        optimizer = optim.SGD(ddp.parameters(), lr=0.1)
        for step in range(3):
            optimizer.zero_grad()
            ddp(engine.tensor({indices})).sum().backward()
            gradient = net[0].weight.grad
            optimizer.step()
        save([gradient.is_sparse, gradient.coalesce().indices().tolist(), net[0].weight.tolist()])
        dist.destroy_process_group()
    """)
    assert out[0] == out[1] and out[0][:2] == [True, [[0, 1, 4]]]


def test_errors_are_everybodys(tmp_path):
    out = run(tmp_path, 2, """
        start()
        try:
            dist.all_reduce(engine.ones(2 + rank))
            save(None)
        except engine.Error as error:
            save(str(error))
    """)
    assert out[0] == out[1] and "float32[2]" in out[0] and "float32[3]" in out[0]


def test_a_group_has_a_timeout_of_its_own(tmp_path):
    out = run(tmp_path, 2, """
        start()
        short = dist.new_group(timeout=datetime.timedelta(seconds=1))
        if rank == 0:
            try:
                dist.all_reduce(engine.ones(1), group=short)
                save(None)
            except TimeoutError as error:
                save(str(error))
        else:
            save(None)
        dist.barrier()
    """)
    assert "timed out" in out[0].lower() and "rank 1" in out[0]


def test_a_rank_that_does_not_come_is_named(tmp_path):
    out = run(tmp_path, 2, """
        start()
        if rank == 0:
            try:
                dist.monitored_barrier(timeout=datetime.timedelta(seconds=1))
            except TimeoutError as error:
                save(str(error))
        else:
            import time
            time.sleep(2)
            save(None)
    """)
    assert "ank 1" in out[0]
