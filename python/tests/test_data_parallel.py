"""DataParallel and the functions it is made of. Chunks on one device take the place of several devices, which the functions do not check."""

import collections
import copy

import pytest
import torch

from support import from_torch, same
from tensord import engine
from tensord.engine import nn

TWO = ["cpu", "cpu"]
Pair = collections.namedtuple("Pair", ["left", "right"])


def net():
    engine.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 2))


def theirs_of(model):
    made = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.BatchNorm1d(6), torch.nn.ReLU(), torch.nn.Linear(6, 2))
    made.load_state_dict({name: torch.tensor(value.tolist()) for name, value in model.state_dict().items()})
    return made


@pytest.mark.parametrize("rows", [8, 7, 1])
def test_gradients_are_the_sum_over_devices(rows):
    """Compared with PyTorch's model on each chunk, as its replicas compute it."""
    model = net()
    if rows == 1:
        model.eval()
    parallel, theirs = nn.DataParallel(model, TWO), theirs_of(model)
    theirs.train(model.training)
    x = torch.randn(rows, 4, generator=torch.Generator().manual_seed(1))
    y = torch.rand(rows, 2, generator=torch.Generator().manual_seed(2))
    # Buffers are those of the first replica.
    replicas = [theirs, *(copy.deepcopy(theirs) for _ in x.chunk(2)[1:])]
    want = torch.cat([replica(part) for replica, part in zip(replicas, x.chunk(2))])
    got = parallel(from_torch(x))
    same(got, want)
    (want * y).sum().backward()
    (got * from_torch(y)).sum().backward()
    for i, (name, parameter) in enumerate(model.named_parameters()):
        total = sum(list(replica.parameters())[i].grad for replica in replicas)
        same(parameter.grad, total, rtol=1e-4, atol=1e-5)
    for name, buffer in model.named_buffers():
        same(buffer, dict(theirs.named_buffers())[name])
    assert list(parallel.state_dict()) == ["module." + name for name in model.state_dict()]


def test_the_modules_tensors_are_updated_by_an_optimizer():
    from tensord.engine import optim

    torch.manual_seed(0)
    x, target = torch.randn(16, 4), torch.randn(16, 2)
    plain, shared = nn.Linear(4, 2), nn.Linear(4, 2)
    shared.load_state_dict(plain.state_dict())
    losses = []
    for model in (plain, nn.DataParallel(shared, TWO)):
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        losses.append([])
        for _ in range(5):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(from_torch(x)), from_torch(target))
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)
    assert losses[1][-1] < losses[1][0]


def test_scatter_and_gather():
    x = engine.arange(10).reshape(5, 2)
    value = {"x": x, "pair": Pair(x + 1, [x, "text"]), "n": 3, "none": None, "empty": []}
    first, second = nn.parallel.scatter(value, TWO)
    assert first["x"].tolist() == x[:3].tolist() and second["x"].tolist() == x[3:].tolist()
    assert isinstance(second["pair"], Pair) and second["pair"].right[1] == "text"
    assert (second["n"], second["none"], second["empty"]) == (3, None, [])
    columns = nn.parallel.scatter(x, TWO, dim=1)
    assert [part.tolist() for part in columns] == [x[:, :1].tolist(), x[:, 1:].tolist()]
    assert len(nn.parallel.scatter(x[:1], TWO)) == 1

    back = nn.parallel.gather([{"x": x[:3], "pair": Pair(x[:3], [x[:3]]), "none": None}, {"x": x[3:], "pair": Pair(x[3:], [x[3:]]), "none": None}],
                              "cpu")
    assert back["x"].tolist() == x.tolist() and isinstance(back["pair"], Pair) and back["pair"].right[0].tolist() == x.tolist()
    assert back["none"] is None
    assert nn.parallel.gather(columns, "cpu", dim=1).tolist() == x.tolist()
    with pytest.warns(UserWarning, match="unsqueeze"):
        assert nn.parallel.gather([engine.tensor(1.0), engine.tensor(2.0)], "cpu").tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="same number of keys"):
        nn.parallel.gather([{"a": x}, {}], "cpu")
    with pytest.raises(TypeError, match="str is not a tensor"):
        nn.parallel.gather(["a", "b"], "cpu")


def test_arguments_and_keywords_may_have_other_numbers_of_parts():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(engine.ones(1))

        def forward(self, x=None, by=1.0, offset=None):
            result = engine.ones(1) * self.weight if x is None else x * self.weight * by
            return result if offset is None else result + offset

    parallel = nn.DataParallel(Scaled(), TWO)
    x = engine.arange(4.0)
    assert parallel(x, by=2.0, offset=x).tolist() == [0.0, 3.0, 6.0, 9.0]
    assert parallel(x=x).tolist() == x.tolist()
    assert parallel().tolist() == [1.0]
    assert nn.parallel.data_parallel(Scaled(), x, TWO, module_kwargs={"by": 3.0}).tolist() == (x * 3).tolist()


def test_replicas():
    model = net()
    tied = nn.Sequential(model[0], model[0])
    first, second = nn.parallel.replicate(tied, TWO)
    assert first[0] is first[1] and first[0].weight is first[1].weight and second[0] is not model[0]
    (second[0].weight.sum() + first[0].weight.sum()).backward()
    assert model[0].weight.grad.tolist() == [[2.0] * 4] * 6
    detached = nn.parallel.replicate(model, TWO, detach=True)
    assert not any(parameter.requires_grad for replica in detached for parameter in replica.parameters())
    with engine.no_grad():
        second[0].bias.add_(1)
    assert second[0].bias.tolist() != model[0].bias.tolist()
    results = nn.parallel.parallel_apply([model[0], model[0]], [engine.ones(1, 4), (engine.zeros(1, 4),)])
    assert len(results) == 2 and results[0].tolist() != results[1].tolist()
    with pytest.raises(ValueError, match="2 modules, 1 inputs"):
        nn.parallel.parallel_apply([model, model], [engine.ones(1, 4)])


def test_without_devices_the_module_runs_as_it_is():
    if engine._engine._distributed.cuda_device_count() > 0:
        pytest.skip("this machine has CUDA devices")
    model = net().eval()
    parallel = nn.DataParallel(model)
    x = engine.ones(3, 4)
    assert parallel.device_ids == [] and parallel(x).tolist() == model(x).tolist()
    with pytest.raises(RuntimeError, match=r"parameters and buffers on device cuda:1 \(device_ids\[0\]\) but found .* device: cpu"):
        nn.DataParallel(model, [1, 0])(x)
    with pytest.raises(ValueError, match="no devices"):
        nn.parallel.scatter(x, [])
