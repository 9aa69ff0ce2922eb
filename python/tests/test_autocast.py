"""Mixed precision: which type each operator computes in is PyTorch's, whose dispatch tables say which operators have a policy."""

import pathlib
import re
import threading

import pytest
import torch

from tensord import engine
from tensord.engine import nn
from support import from_torch, same
from test_cuda import run as run_on_emulated_cuda

F = nn.functional
ROOT = pathlib.Path(__file__).resolve().parents[2]

# Operators whose policy is not that of PyTorch 1.13, and why.
RECURRENT = {f"aten::{name}.{kind}" for name in ("lstm", "gru", "rnn_tanh", "rnn_relu") for kind in ("input", "data")}  # one operator here, products there
ATTENTION = {"aten::scaled_dot_product_attention", "aten::_scaled_dot_product_attention"}  # the same
CROSS_ENTROPY = {"aten::cross_entropy_loss"}  # on CUDA log_softmax and nll_loss, both in float32


def marks() -> dict:
    """{operator: {"CPU": policy, "CUDA": policy}} of kernels/*/*.ops."""
    found = {}
    for file in sorted(ROOT.glob("kernels/*/*.ops")):
        for line in file.read_text().splitlines():
            if not line.startswith("aten::"):
                continue
            name, policies = line.split("(")[0], {}
            for device, policy in re.findall(r"autocast (?:(cpu|cuda) )?(\w+)", line.partition("; ")[2]):
                policies.update({one: policy for one in ((device.upper(),) if device else ("CPU", "CUDA"))})
            found[name] = policies
    return found


def torch_policies(name: str) -> set | None:
    try:
        table = torch._C._dispatch_dump_table(name)
    except RuntimeError:
        return None  # PyTorch 1.13 has no such operator
    return {device for device in ("CPU", "CUDA") if re.search(rf"^Autocast{device}: (?!fallthrough)", table, re.M)}


def test_the_operators_are_torchs():
    known, compared = RECURRENT | ATTENTION | CROSS_ENTROPY, 0
    for name, policies in marks().items():
        theirs = torch_policies(name)
        if theirs is None or name in known:
            continue
        assert set(policies) == theirs, name
        compared += bool(theirs)
    assert compared > 150


X, Y = torch.randn(4, 4), torch.randn(4, 4)
IMAGE, VOLUME, KERNEL = torch.randn(2, 3, 8, 8), torch.randn(1, 2, 4, 4, 4), torch.randn(4, 3, 3, 3)
LABELS = torch.tensor([0, 3, 1, 2])
# (t, F) are torch and torch.nn.functional, or the engine's; x and y matrices.
CALLS = {
    "linear": lambda t, F, x, y: F.linear(x, y),
    "matmul": lambda t, F, x, y: x @ y,
    "matmul with a vector": lambda t, F, x, y: x @ y[0],
    "bmm": lambda t, F, x, y: t.bmm(x[None], y[None]),
    "addmm": lambda t, F, x, y: t.addmm(x, x, y),
    "baddbmm": lambda t, F, x, y: t.baddbmm(x[None], x[None], y[None]),
    "einsum": lambda t, F, x, y: t.einsum("ij,jk->ik", x, y),
    "tensordot": lambda t, F, x, y: t.tensordot(x, y, dims=1),
    "mv": lambda t, F, x, y: t.mv(x, y[0]),
    "addmv": lambda t, F, x, y: t.addmv(x[0], x, y[0]),
    "dot": lambda t, F, x, y: t.dot(x[0], y[0]),
    "outer": lambda t, F, x, y: t.outer(x[0], y[0]),
    "inner": lambda t, F, x, y: t.inner(x, y),
    "chain_matmul": lambda t, F, x, y: t.linalg.multi_dot([x, y, x]),
    "softmax": lambda t, F, x, y: x.softmax(-1),
    "softmax of 16 bits": lambda t, F, x, y: (x @ y).softmax(-1),
    "log_softmax of 16 bits": lambda t, F, x, y: (x @ y).log_softmax(-1),
    "gelu of 16 bits": lambda t, F, x, y: F.gelu(x @ y),
    "sum of 16 bits": lambda t, F, x, y: (x @ y).sum(),
    "exp of 16 bits": lambda t, F, x, y: (x @ y).sigmoid().exp(),
    "prod of 16 bits": lambda t, F, x, y: (x @ y).sigmoid().prod(),
    "both types": lambda t, F, x, y: (x @ y) + x,
    "cat": lambda t, F, x, y: t.cat([x @ y, x]),
    "cat of 16 bits": lambda t, F, x, y: t.cat([x @ y, x @ y]),
    "stack": lambda t, F, x, y: t.stack([x @ y, x]),
    "mse_loss": lambda t, F, x, y: F.mse_loss(x @ y, y),
    "l1_loss": lambda t, F, x, y: F.l1_loss(x @ y, y),
    "smooth_l1_loss": lambda t, F, x, y: F.smooth_l1_loss(x @ y, y),
    "huber_loss": lambda t, F, x, y: F.huber_loss(x @ y, y),
    "kl_div": lambda t, F, x, y: F.kl_div((x @ y).log_softmax(-1), y.softmax(-1), reduction="batchmean"),
    "binary_cross_entropy": lambda t, F, x, y: F.binary_cross_entropy((x @ y).sigmoid(), y.sigmoid()),
    "binary_cross_entropy_with_logits": lambda t, F, x, y: F.binary_cross_entropy_with_logits(x @ y, y.sigmoid()),
    "soft_margin_loss": lambda t, F, x, y: F.soft_margin_loss(x @ y, y.sign()),
    "cdist": lambda t, F, x, y: t.cdist(x @ y, y),
    "trace": lambda t, F, x, y: t.trace(x @ y),
    "inverse": lambda t, F, x, y: t.linalg.inv(x @ y + 9 * t.eye(4)),
    "matrix_power": lambda t, F, x, y: t.linalg.matrix_power(x, 2),
}
IMAGE_CALLS = {
    "conv2d": lambda t, F, image, kernel: F.conv2d(image, kernel),
    "conv2d, same": lambda t, F, image, kernel: F.conv2d(image, kernel, padding="same"),
    "conv1d": lambda t, F, image, kernel: F.conv1d(image[0], kernel[:, :, 0].repeat(1, 3, 1)[:, :8]),
    "conv_transpose2d": lambda t, F, image, kernel: F.conv_transpose2d(image, kernel.transpose(0, 1)),
    "max_pool2d of 16 bits": lambda t, F, image, kernel: F.max_pool2d(F.conv2d(image, kernel), 2),
    "interpolate of 16 bits": lambda t, F, image, kernel: F.interpolate(F.conv2d(image, kernel), scale_factor=2),
    "batch_norm of 16 bits": lambda t, F, image, kernel: F.batch_norm(F.conv2d(image, kernel), None, None, t.ones(4), t.zeros(4), True),
    "batch_norm in evaluation": lambda t, F, image, kernel: F.batch_norm(F.conv2d(image, kernel), t.zeros(4), t.ones(4)),
    "avg_pool3d": lambda t, F, image, kernel: F.avg_pool3d(F.conv2d(image, kernel)[None], 2),
    "grid_sample": lambda t, F, image, kernel: F.grid_sample(F.conv2d(image, kernel)[:1], t.zeros(1, 2, 2, 2), align_corners=False),
}


def both(call, *inputs):
    with torch.autocast("cpu", torch.bfloat16):
        want = call(torch, torch.nn.functional, *inputs)
    with engine.autocast("cpu", engine.bfloat16):
        got = call(engine, F, *(from_torch(one) for one in inputs))
    same(got, want, rtol=2e-2, atol=6e-2)


@pytest.mark.parametrize("name", CALLS)
def test_types_and_numbers_are_torchs(name):
    both(CALLS[name], X, Y)


@pytest.mark.parametrize("name", IMAGE_CALLS)
def test_types_of_images_are_torchs(name):
    both(IMAGE_CALLS[name], IMAGE, KERNEL)


def test_cross_entropy_is_in_float32():
    with engine.autocast("cpu"):
        scores = from_torch(X) @ from_torch(Y)
        assert scores.dtype is engine.bfloat16
        loss = F.cross_entropy(scores, from_torch(LABELS))
    assert loss.dtype is engine.float32
    assert abs(loss.item() - F.cross_entropy(scores.float(), from_torch(LABELS)).item()) < 1e-6


@pytest.mark.parametrize("layer", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers_take_both_types(layer):
    module = getattr(nn, layer)(4, 3, batch_first=True)
    x = engine.randn(2, 5, 4)
    want = module(x)[0]
    with engine.autocast("cpu"):
        for given in (x, x.bfloat16()):
            got = module(given)[0]
            assert got.dtype is engine.bfloat16 and (got.float() - want).abs().max().item() < 3e-2
            got.float().sum().backward()
    assert all(parameter.grad.dtype is engine.float32 for parameter in module.parameters())


def test_normalization_takes_16_bits_with_float32_parameters():
    x = engine.randn(2, 4, 4)
    for module in (nn.LayerNorm(4), nn.GroupNorm(2, 4), nn.BatchNorm1d(4), nn.InstanceNorm1d(4, affine=True)):
        want = module(x)
        with engine.autocast("cpu"):
            got = module(x.bfloat16())
        assert (got.float() - want).abs().max().item() < 3e-2, module
        got.float().square().sum().backward()
        assert all(parameter.grad.dtype is engine.float32 for parameter in module.parameters()), module


def test_gradients_have_the_parameters_type():
    torch.manual_seed(1)
    want = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4))
    got = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))
    got.load_state_dict({key: from_torch(value) for key, value in want.state_dict().items()})
    x = torch.randn(4, 8)
    with torch.autocast("cpu", torch.bfloat16):
        loss = torch.nn.functional.mse_loss(want(x), torch.zeros(4, 4))
    loss.backward()
    with engine.autocast("cpu", engine.bfloat16):
        own = F.mse_loss(got(from_torch(x)), engine.zeros(4, 4))
    own.backward()
    same(own, loss, rtol=1e-2)
    for one, other in zip(got.parameters(), want.parameters()):
        same(one.grad, other.grad, rtol=4e-2, atol=2e-3)
        assert one.grad.dtype is engine.float32


def cast_of(product):
    """The node that cast the second operand."""
    return product.grad_fn.next_functions[1][0]


def test_parameters_are_cast_once():
    w, x = engine.randn(4, 4, requires_grad=True), engine.randn(4, 4)
    with engine.autocast("cpu"):
        first, second = engine.mm(x, w), engine.mm(x, w)
        assert cast_of(first) == cast_of(second)
        with engine.autocast("cpu"):
            assert cast_of(engine.mm(x, w)) == cast_of(first)
        with engine.no_grad():
            w.add_(1)  # the copy is out of date
        third = engine.mm(x, w)
        assert cast_of(third) != cast_of(first)
        assert third.tolist() == engine.mm(x.bfloat16(), w.detach().bfloat16()).tolist()
        engine.clear_autocast_cache()
        assert cast_of(engine.mm(x, w)) != cast_of(third)
        with engine.no_grad():
            engine.mm(x, w)
    with engine.autocast("cpu"):
        fourth = engine.mm(x, w)
        assert cast_of(fourth) != cast_of(third)
    with engine.autocast("cpu", cache_enabled=False):
        assert cast_of(engine.mm(x, w)) != cast_of(engine.mm(x, w))
    (first + second).float().sum().backward()
    want = 2 * x.bfloat16().float().sum(0)[:, None].expand(4, 4)
    assert (w.grad - want).abs().max().item() < 5e-2


def test_a_parameter_with_other_memory_is_cast_again():
    w, x = engine.ones(4, 4, requires_grad=True), engine.ones(4, 4)
    with engine.autocast("cpu"):
        for number in (1, 2, 3):
            w.data = engine.ones(4, 4) * number if number < 3 else w.data[:, :2]
            product = engine.mm(x, w)
            assert product.tolist() == [[4.0 * min(number, 2)] * w.shape[1]] * 4


def test_a_cast_without_gradients_is_not_kept():
    """PyTorch keeps it, and the later product has no gradient."""
    w, x = engine.randn(4, 4, requires_grad=True), engine.randn(4, 4)
    with engine.autocast("cpu"):
        with engine.no_grad():
            engine.mm(x, w)
        engine.mm(x, w).float().sum().backward()
    assert w.grad is not None


def test_scopes():
    x = engine.randn(4, 4)

    def dtypes():
        return (x @ x).dtype, engine.is_autocast_cpu_enabled(), engine.is_autocast_enabled(), engine.get_autocast_cpu_dtype()

    off = (engine.float32, False, False, engine.bfloat16)
    assert dtypes() == off
    with engine.autocast("cpu") as scope:
        assert dtypes() == (engine.bfloat16, True, False, engine.bfloat16)
        with engine.autocast("cpu", enabled=False):
            assert dtypes() == off
        with engine.autocast("cpu", engine.float16):
            assert dtypes() == (engine.float16, True, False, engine.float16)
        with engine.autocast("cuda"):
            assert dtypes() == (engine.bfloat16, True, True, engine.bfloat16) and engine.get_autocast_gpu_dtype() is engine.float16
        with pytest.raises(ZeroDivisionError), engine.autocast("cpu", enabled=False):
            1 / 0
        with scope:
            assert dtypes()[0] is engine.bfloat16
        assert dtypes() == (engine.bfloat16, True, False, engine.bfloat16)
        seen = []
        thread = threading.Thread(target=lambda: seen.append(dtypes()))
        thread.start()
        thread.join()
        assert seen == [off]
    assert dtypes() == off

    @engine.autocast("cpu")
    def product(a):
        return a @ a

    assert product(x).dtype is engine.bfloat16 and product.__name__ == "product" and dtypes() == off


def test_what_stays():
    with engine.autocast("cpu"):
        x, wide = engine.randn(4, 4), engine.randn(4, 4, dtype=engine.float64)
        assert (wide @ wide).dtype is engine.float64
        assert engine.mm(x, x, out=engine.empty(4, 4)).dtype is engine.float32
        assert x.clone().addmm_(x, x).dtype is engine.float32
        whole = engine.arange(4).reshape(2, 2)
        assert (whole @ whole).dtype is engine.int64 and whole.prod().dtype is engine.int64


def test_what_is_refused():
    for arguments, text in ((("meta",), "cpu' or 'cuda"), (("cpu", engine.float32), "bfloat16 or float16"), (("cpu", engine.int8), "bfloat16 or float16")):
        with pytest.raises(RuntimeError, match=text):
            engine.autocast(*arguments)
    engine.autocast("cpu", engine.float32, enabled=False)


def test_planned_steps_contain_the_casts():
    def train(mode):
        engine.manual_seed(3)
        model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 5))
        optimizer = engine.optim.SGD(model.parameters(), lr=0.05)

        def loss_of(x, y):
            with engine.autocast("cpu"):
                return F.cross_entropy(model(x), y)

        step = engine.plan_step(loss_of, mode=mode) if mode else None
        for number in range(10):
            generator = engine.Generator()
            generator.manual_seed(number)
            x, y = engine.randn(6, 8, generator=generator), engine.randint(0, 5, (6,), generator=generator)
            optimizer.zero_grad()
            if step:
                step(x, y)
            else:
                loss_of(x, y).backward()
            optimizer.step()
        return [parameter.tolist() for parameter in model.parameters()], step

    want, _ = train(None)
    got, step = train("exact")
    assert got == want
    assert step.stats["planned"] > 0, step.stats


def test_autocast_around_a_planned_step():
    """The step is planned with the casts that it makes itself."""
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 5))
    step = engine.plan_step(lambda x, y: F.cross_entropy(model(x), y))
    x, y = engine.randn(6, 8), engine.randint(0, 5, (6,))
    losses = []
    for number in range(8):
        model.zero_grad()
        with engine.autocast("cpu", enabled=number == 6):
            losses.append(step(x, y).item())
        if number == 6:
            assert step.why == "autocast is on around the step"
    assert losses[6] != losses[5] and losses[7] == losses[5]


def test_on_cuda():
    run_on_emulated_cuda("""
        F = engine.nn.functional
        x, y = engine.randn(4, 4).cuda(), engine.randn(4, 4).cuda()
        image, kernel = engine.randn(1, 3, 6, 6).cuda(), engine.randn(4, 3, 3, 3).cuda()
        half, f32 = engine.float16, engine.float32
        calls = [(half, lambda: x @ y), (half, lambda: F.linear(x, y)), (half, lambda: F.conv2d(image, kernel)), (half, lambda: engine.einsum("ij,jk", x, y)),
                 (half, lambda: engine.mv(x, y[0])), (half, lambda: F.gelu(x @ y)), (half, lambda: F.prelu(x, engine.ones(1).cuda())),
                 (half, lambda: F.scaled_dot_product_attention(x[None, None], x[None, None], y[None, None])),
                 (f32, lambda: (x @ y).softmax(-1)), (f32, lambda: (x @ y).exp()), (f32, lambda: (x @ y).sum()), (f32, lambda: (x @ y).sigmoid() ** 2),
                 (f32, lambda: F.layer_norm(x @ y, (4,))), (f32, lambda: F.cross_entropy(x @ y, engine.tensor([0, 3, 1, 2]).cuda())),
                 (f32, lambda: F.mse_loss(x @ y, y)), (f32, lambda: (x @ y).log_softmax(-1)), (f32, lambda: (x @ y).cumsum(0)),
                 (f32, lambda: engine.addcmul(x @ y, x, y)), (half, lambda: engine.addcmul(x @ y, x @ y, x @ y)), (f32, lambda: engine.cat([x @ y, x])),
                 (half, lambda: F.batch_norm(F.conv2d(image, kernel), None, None, engine.ones(4).cuda(), engine.zeros(4).cuda(), True))]
        for number, (dtype, call) in enumerate(calls):
            want = call()
            with engine.autocast("cuda"):
                got = call()
            assert got.dtype is dtype, (number, got.dtype)
            assert (got.float() - want).abs().max().item() < 6e-2 * max(1, want.abs().max().item()), number
            with engine.autocast("cuda", engine.bfloat16):
                assert call().dtype is (engine.bfloat16 if dtype is half else f32), number
            with engine.autocast("cpu"):
                assert call().dtype is f32, number
        with engine.autocast("cuda"), pytest.raises(RuntimeError, match="binary_cross_entropy_with_logits"):
            F.binary_cross_entropy((x @ y).sigmoid(), y.sigmoid())
        net = engine.nn.Sequential(engine.nn.Linear(4, 8), engine.nn.GELU(), engine.nn.LayerNorm(8), engine.nn.Linear(8, 2)).cuda()
        grads = []
        for is_cast in (False, True):
            net.zero_grad()
            with engine.autocast("cuda", enabled=is_cast):
                loss = net(x).square().mean()
            loss.backward()
            grads.append([parameter.grad.clone() for parameter in net.parameters()])
        for one, other in zip(*grads):
            assert other.dtype is f32 and (one - other).abs().max().item() < 2e-2
    """)
