import pytest
import torch

from support import same
from tensord import engine
from tensord.engine import nn

FIRST_VALUES = [
    ("trunc_normal_", (7, 5), {}), ("trunc_normal_", (40,), {"mean": 1.0, "std": 0.5, "a": 0.5, "b": 1.2}), ("eye_", (3, 5), {}), ("eye_", (4, 2), {}),
    ("dirac_", (4, 3, 5), {}), ("dirac_", (6, 2, 3, 4), {"groups": 3}), ("dirac_", (2, 4, 3, 3, 2), {}), ("orthogonal_", (4, 4), {}),
    ("orthogonal_", (3, 8), {"gain": 2.0}),
    ("orthogonal_", (9, 2, 2), {}), ("orthogonal_", (0, 3), {}), ("sparse_", (8, 5), {"sparsity": 0.3}), ("sparse_", (5, 3), {"sparsity": 1.0, "std": 2.0}),
]


@pytest.mark.parametrize("name,shape,options", FIRST_VALUES, ids=str)
def test_first_values(name, shape, options):
    torch.manual_seed(4)
    engine.manual_seed(4)
    theirs, mine = torch.ones(shape, requires_grad=True), nn.Parameter(engine.ones(shape))
    getattr(torch.nn.init, name)(theirs, **options)
    assert getattr(nn.init, name)(mine, **options) is mine
    same(mine.detach(), theirs, rtol=1e-4, atol=1e-5)
    assert mine.is_leaf and mine.requires_grad
    same(engine.rand(3), torch.rand(3))  # the same number of values is drawn


WRONG = [("eye_", (2, 2, 2), {}, "2 dimensions"), ("dirac_", (2, 2), {}, "3, 4, or 5"), ("dirac_", (3, 2, 2), {"groups": 2}, "divisible"),
         ("orthogonal_", (3,), {}, "2 or more"),
         ("sparse_", (3,), {"sparsity": 0.1}, "2 dimensions")]


@pytest.mark.parametrize("name,shape,options,words", WRONG, ids=str)
def test_wrong_shapes(name, shape, options, words):
    for tensor, package in ((torch.ones(shape), torch.nn), (engine.ones(shape), nn)):
        with pytest.raises(ValueError, match=words):
            getattr(package.init, name)(tensor, **options)


def test_far_bounds_warn():
    with pytest.warns(UserWarning, match="2 std"):
        nn.init.trunc_normal_(engine.ones(3), mean=10.0)
