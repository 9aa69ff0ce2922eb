"""Linear algebra. Random matrices get a diagonal that keeps them far from singular."""

import itertools

import torch

from tests.ops.case import FULL, case, t

TIGHT = {"rtol": 1e-4, "atol": 1e-5}


def _regular(*sizes, scale=1.0, seed=0):
    """Square matrices far from singular."""
    generator = torch.Generator().manual_seed(seed + sum(sizes))
    matrices = torch.rand(sizes, generator=generator, dtype=torch.float64) * 2 - 1
    return t(values=(scale * (matrices + sizes[-1] * torch.eye(sizes[-1], dtype=torch.float64))).tolist())


def _triangular_rows():
    rows = []
    for upper, left, unit in itertools.product([True, False], repeat=3):
        options = {"upper": upper, "left": left, "unitriangular": unit, "dtypes": FULL, **TIGHT}
        for a, b in [((3, 3), (3, 2)), ((2, 1, 3, 3), (4, 3, 3)), ((0, 0), (0, 2))]:
            b = b if left else (*b[:-2], b[-1], b[-2])
            rows.append(case("aten::linalg_solve_triangular", _regular(*a) if a[-1] else t(*a), t(*b), **options))
        big = (150, 70) if left else (70, 150)
        rows.append(case("aten::linalg_solve_triangular", _regular(150, 150, scale=1 / 150), t(*big), gradient=False,
                         **{**options, "unitriangular": False}))
        rows.append(case("aten::triangular_solve", t(2, 3, 2), _regular(3, 3), upper, left, unit, dtypes=FULL, **TIGHT))
    return rows


CASES = _triangular_rows() + [
    case("aten::linalg_solve_triangular", t(0, 3, 3), t(3, 2), upper=True),
    case("aten::linalg_solve_triangular", t(values=[[0.0, 1.0], [0.0, 2.0]]), t(values=[[1.0], [4.0]]), upper=True, gradient=False),
    case("aten::linalg_solve_triangular", t(3), t(3, 3), upper=True, error="linalg.solve_triangular: The input tensor A must have at least 2 dimensions."),
    case("aten::linalg_solve_triangular", t(2, 3), t(3, 3), upper=True, error="linalg.solve_triangular: A must be batches of square matrices, but they are 2 by 3 matrices"),
    case("aten::linalg_solve_triangular", t(3, 3), t(4, 3), upper=True, error="Incompatible shapes of A and B for the equation AX = B (3x3 and 4x3)"),
    case("aten::linalg_solve_triangular", t(3, 3), t(3, 4), upper=True, left=False, error="Incompatible shapes of A and B for the equation XA = B (3x3 and 3x4)"),
    case("aten::linalg_solve_triangular", t(2, 3, 3), t(3, 3, 4), upper=True,
         error=("must match the size of tensor b", "must match")),
    case("aten::triangular_solve", t(3, 2), t(0, 3, 3)),
    case("aten::triangular_solve", t(3), t(3, 3), error="torch.triangular_solve: Expected b to have at least 2 dimensions, but it has 1 dimensions instead"),
    case("aten::triangular_solve", t(3, 3), t(2, 3), error="A must be batches of square matrices, but they are 2 by 3 matrices"),
    case("aten::triangular_solve", t(4, 3), t(3, 3), error="each A matrix is 3 by 3 but each b matrix is 4 by 3"),
]
