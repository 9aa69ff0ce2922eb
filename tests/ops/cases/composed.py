"""Operators composed of others."""

from tests.ops.case import FULL, case, t

LOOSE = {"rtol": 1e-4, "atol": 1e-4}

CASES = [
    case("aten::glu", t(3, 4), dtypes=FULL),
    case("aten::glu", t(2, 6, 3), 1, dtypes=FULL),
    case("aten::glu", t(3, 5), error="Halving dimension must be even, but dimension 1 is size 5"),
    case("aten::tensordot", t(3, 4), t(3, 4), [1], [1], dtypes=FULL, **LOOSE),
    case("aten::tensordot", t(2, 3, 4), t(4, 5, 3), [1, -1], [2, 0], dtypes=FULL, **LOOSE),
    case("aten::tensordot", t(2, 3), t(4), [], [], dtypes=FULL, **LOOSE),
    case("aten::tensordot", t(3, 4), t(3, 4), [0, 1], [0, 1], dtypes=FULL, **LOOSE),
    case("aten::tensordot", t(3, 1), t(4, 2), [1], [0], dtypes=FULL, **LOOSE),
    case("aten::tensordot", t(3, 4), t(5, 4), [0], [0], error="contracted dimensions need to match, but first has size 3 in dim 0"),
    case("aten::tensordot", t(3, 4), t(5, 4), [0, 1], [1], error="both dimension lists should have same length"),
    case("aten::trace", t(3, 4), dtypes=FULL),
    case("aten::trace", t(3), error="expected a matrix"),
    case("aten::linalg_cross", t(4, 3), t(4, 3), dtypes=FULL),
    case("aten::linalg_cross", t(3, 2, 5), t(3, 1, 5), dim=0, dtypes=FULL),
    case("aten::linalg_cross", t(4, 2), t(4, 2), error="must have length 3. Got 2 and 2"),
    case("aten::cross", t(3, 3, 2), t(3, 3, 2), dtypes=FULL),
    case("aten::cross", t(2, 3), t(2, 3), -1, dtypes=FULL),
    case("aten::cross", t(2, 4), t(2, 4), error="no dimension of size 3 in input"),
]
