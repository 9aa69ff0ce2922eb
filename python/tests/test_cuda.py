"""engine.cuda on the emulated devices (tests/cuda/emulated), which a process of its own uses: others have none."""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

from tensord import engine

BINARY = pathlib.Path(os.environ.get("TENSORD_BINARY", "tensord"))
EMULATED = BINARY.parent.parent / "lib" / "tensord" / "libtensord_cuda_emulated.so"
START = """
import pytest
from tensord import engine
cuda = engine.cuda
x = engine.arange(12, dtype=engine.float32).reshape(3, 4)
"""


def run(script, plugin=EMULATED):
    if plugin is EMULATED and not EMULATED.exists():
        pytest.skip(f"no {EMULATED}: Boost.Context is missing, or it is not built")
    subprocess.run([sys.executable, "-c", START + textwrap.dedent(script)], check=True, env={**os.environ, "TENSORD_CUDA": str(plugin)})


def test_tensors_and_modules_move():
    run("""
        y = x.cuda()
        assert y.is_cuda and y.device == engine.device("cuda:0") and not x.is_cuda
        assert x.to("cuda:1").device == engine.device("cuda:1") and x.cuda(1).device.index == 1
        assert (y * 2 + 1).cpu().tolist() == (x * 2 + 1).tolist()
        net = engine.nn.Sequential(engine.nn.Linear(4, 8), engine.nn.GELU(), engine.nn.Linear(8, 2))
        want = net(x)
        net.cuda()
        assert all(parameter.is_cuda for parameter in net.parameters())
        got = net(y)
        assert (got.cpu() - want).abs().max().item() < 1e-5
        got.sum().backward()
        assert all(parameter.grad.is_cuda for parameter in net.parameters())
        with pytest.raises(RuntimeError, match="cuda:0"):
            y + x
    """)


def test_indices_and_likes_across_devices():
    run("""
        y = x.cuda()
        assert y[[2, 0]].tolist() == x[[2, 0]].tolist() and y[[2, 0]].is_cuda
        rows, mask = engine.tensor([1, 1]), x > 5
        assert y[rows].tolist() == x[rows].tolist() and y[mask].tolist() == x[mask].tolist()
        z = y.clone()
        z[rows] = 7.0
        assert z[1].tolist() == [7.0] * 4
        for wrong in (lambda: x[rows.cuda()], lambda: y[rows.cuda(1)]):
            with pytest.raises(RuntimeError, match="same device"):
                wrong()
        assert engine.zeros_like(x, device="cuda:1").device.index == 1 and not engine.ones_like(y, device="cpu").is_cuda
        assert x.new_full((2,), 3.0, device="cuda").tolist() == [3.0, 3.0]
        assert engine.hann_window(5, device="cuda").cpu().tolist() == engine.hann_window(5).tolist()
        assert engine.fft.fftfreq(5, device="cuda").is_cuda
        assert engine.tensor(1 + 2j).cuda().item() == 1 + 2j
        sparse = y.to_sparse()
        assert sparse.device == y.device and sparse.indices().is_cuda and (sparse + sparse).to_dense().tolist() == (x + x).tolist()
        with pytest.raises(NotImplementedError, match="SparseCOO on cuda"):
            engine.mm(sparse, y.t())
        import pickle
        assert pickle.loads(pickle.dumps(x.cuda(1))).device.index == 1 and not pickle.loads(pickle.dumps(x)).is_cuda
        pooled = engine.nn.functional.fractional_max_pool2d(engine.rand(1, 2, 6, 6, device="cuda"), 2, output_size=3)
        assert pooled.is_cuda and tuple(pooled.shape) == (1, 2, 3, 3)
    """)


def test_results_are_written_on_the_device_of_the_inputs():
    run("""
        y = x.cuda()
        out = engine.empty(3, 4, device="cuda")
        assert engine.add(y, y, out=out) is out and out.tolist() == (x + x).tolist()
        assert engine.add(y, engine.tensor(1.0), out=out).tolist() == (x + 1).tolist()
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            engine.add(x, x, out=out)
        for wrong in (engine.empty(3, 4), engine.empty(3, 4, device="cuda:1")):
            for call in (lambda: engine.add(y, y, out=wrong), lambda: engine.cat([y[:1], y[1:]], out=wrong),
                         lambda: engine.matmul(y, y.t(), out=wrong), lambda: wrong.add_(y)):
                with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
                    call()
        total = engine.tensor(0.0)
        for call in (lambda: engine.sum(y, dim=(0, 1), out=total), lambda: total.add_(y.sum())):
            with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
                call()
    """)


def test_generators_of_devices():
    run("""
        g = engine.Generator("cuda")
        assert g.device == engine.device("cuda:0") and engine.Generator().device.type == "cpu"
        assert engine.Generator(device=engine.device("cuda:1")).device.index == 1
        assert g.initial_seed() == 67280421310721 and g.manual_seed(7) is g and g.initial_seed() == 7
        state = g.get_state()
        assert state.numel() == 16 and not state.is_cuda
        a, b = engine.randn(5, generator=g, device="cuda"), engine.randn(5, generator=g, device="cuda")
        assert a.tolist() != b.tolist() and g.get_state().tolist() != state.tolist()
        g.set_state(state)
        assert engine.randn(5, generator=g, device="cuda").tolist() == a.tolist()
        cuda.manual_seed(7)
        assert engine.randn(5, device="cuda").tolist() == a.tolist()
        assert engine.empty(5, device="cuda").normal_(generator=engine.Generator("cuda").manual_seed(7)).tolist() == a.tolist()
        assert g.seed() == g.initial_seed() != 7
        for wrong, device, found in ((g, "cpu", "cuda"), (engine.Generator(), "cuda", "cpu")):
            with pytest.raises(RuntimeError, match=f"Expected a '{device}' device type for generator but found '{found}'"):
                engine.randn(3, generator=wrong, device=device)
        with pytest.raises(RuntimeError, match="RNG state is wrong size"):
            g.set_state(engine.Generator().get_state())
        with pytest.raises((RuntimeError, LookupError), match="cuda:5"):
            engine.Generator("cuda:5")
        cuda.manual_seed_all(3)
        kept = cuda.get_rng_state(1)
        assert cuda.initial_seed() == 3
        a = engine.rand(4, device="cuda:1").tolist()
        cuda.set_rng_state(kept, 1)
        assert engine.rand(4, device="cuda:1").tolist() == a
    """)


def test_devices_and_their_memory():
    run("""
        assert cuda.is_available() and cuda.device_count() == 2 and cuda.why_not_available() == ""
        assert cuda.get_device_name() == cuda.get_device_properties("cuda:0").name != ""
        assert len(cuda.get_device_capability(1)) == 2
        before = cuda.memory_allocated()
        y = engine.empty(1 << 20, device="cuda")
        assert cuda.memory_allocated() - before == 4 << 20 <= cuda.max_memory_allocated()
        assert cuda.memory_reserved(0) >= cuda.memory_stats("cuda")["allocated_bytes.all.current"]
        free, total = cuda.mem_get_info()
        assert 0 < free < total == cuda.get_device_properties(0).total_memory
        del y
        assert cuda.memory_allocated() == before
        cuda.empty_cache()
        assert cuda.mem_get_info()[0] >= free + (4 << 20)
        for wrong in (2, -1, "cuda:9"):
            with pytest.raises((RuntimeError, ValueError, NotImplementedError), match="cuda"):
                cuda.memory_stats(wrong)
        with pytest.raises(ValueError, match="Expected a cuda device"):
            cuda.synchronize("cpu")
        with pytest.raises(MemoryError):
            engine.empty(total, device="cuda")
    """)


def test_streams_and_events():
    run("""
        y = x.cuda()
        side, event = cuda.Stream(priority=-1), cuda.Event()
        assert event.query() and side.device == y.device and side != cuda.current_stream()
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            assert cuda.current_stream() == side
            z = y * 3
            with cuda.stream(None):
                assert cuda.current_stream() == side
            event.record()
        assert cuda.current_stream() != side
        assert not event.query(), "the emulated devices run work when somebody waits for it"
        event.wait()
        w = z + 1
        cuda.synchronize()
        assert event.query() and side.query() and w.tolist() == (x * 3 + 1).tolist()
        event.synchronize(), side.synchronize()
        with pytest.raises(NotImplementedError, match="enable_timing"):
            cuda.Event(enable_timing=True)
    """)


def test_errors_of_kernels_are_raised_where_one_waits():
    run("""
        table = engine.arange(4, dtype=engine.float32, device="cuda")
        bad = table[engine.tensor([9], device="cuda")]
        with pytest.raises(IndexError):
            cuda.synchronize()
        cuda.synchronize()
        assert table.tolist() == [0, 1, 2, 3]
    """)


def test_pinned_memory_and_dlpack():
    run("""
        pinned = x.pin_memory()
        assert pinned.is_pinned() and not x.is_pinned() and pinned.cuda().tolist() == x.tolist()
        y = x.cuda()
        assert y.__dlpack_device__() == (2, 0)
        z = engine.from_dlpack(y)
        assert z.device == y.device and z.data_ptr() == y.data_ptr()
        side = cuda.Stream()
        with cuda.stream(side):
            w = engine.from_dlpack(y * 2)
            assert w.tolist() == (x * 2).tolist()
    """)


def test_without_a_device():
    run("""
        assert not cuda.is_available() and cuda.device_count() == 0 and "TENSORD_CUDA is off" in cuda.why_not_available()
        for call in (x.cuda, cuda.synchronize, cuda.Stream, cuda.Event, cuda.mem_get_info):
            with pytest.raises((RuntimeError, NotImplementedError), match="cuda:0"):
                call()
        cuda.empty_cache()
    """, plugin="off")


def test_names_are_those_of_torch():
    import torch
    for name in engine.cuda.__all__:
        assert hasattr(torch.cuda, name), name


def test_deterministic_algorithms_and_tf32():
    run("""
        assert not engine.are_deterministic_algorithms_enabled()
        engine.use_deterministic_algorithms(True)
        assert engine.are_deterministic_algorithms_enabled()
        image = engine.rand(1, 1, 4, 4).cuda().requires_grad_()
        sampled = engine.nn.functional.grid_sample(image, engine.zeros(1, 2, 2, 2).cuda(), align_corners=False)
        with pytest.raises(RuntimeError, match="grid_sampler_backward does not have a deterministic implementation"):
            sampled.sum().backward()
        engine.use_deterministic_algorithms(False)

        assert engine.get_float32_matmul_precision() == "highest" and not engine.backends.cuda.matmul.allow_tf32
        a, one = engine.full((8, 8), 1 + 2**-12).cuda(), engine.ones(8, 8).cuda()
        exact = (a @ one).cpu()
        engine.set_float32_matmul_precision("high")
        assert engine.backends.cuda.matmul.allow_tf32 and engine.get_float32_matmul_precision() == "high"
        assert (a @ one).cpu().tolist() == [[8.0] * 8] * 8 != exact.tolist()
        engine.backends.cuda.matmul.allow_tf32 = False
        assert (a @ one).cpu().tolist() == exact.tolist()
        assert not engine.backends.cudnn.allow_tf32
        with pytest.raises(ValueError, match="highest"):
            engine.set_float32_matmul_precision("low")
        with pytest.raises(AttributeError):
            engine.backends.cudnn.benchmark = True
    """)
