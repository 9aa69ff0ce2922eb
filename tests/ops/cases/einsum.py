"""einsum: products, sums, diagonals, broadcasting and ellipses."""

from tests.ops.case import FULL, INTEGRAL, case, t

LOOSE = {"rtol": 1e-4, "atol": 1e-4}
OP = "aten::einsum"


def _row(equation, *tensors, **kwargs):
    return case(OP, equation, list(tensors), dtypes=FULL, **LOOSE, **kwargs)


CASES = [
    _row("ij,jk->ik", t(3, 4), t(4, 5)),
    _row("ij,jk", t(3, 4), t(4, 5)),
    _row("bij,bjk->bik", t(2, 3, 4), t(2, 4, 5)),
    _row("bhid,bhjd->bhij", t(2, 3, 4, 5), t(2, 3, 6, 5)),
    _row("bhij,bjhd->bihd", t(2, 3, 4, 6), t(2, 6, 3, 5)),
    _row("ij->ji", t(3, 4)),
    _row("ii->i", t(4, 4)),
    _row("ii", t(4, 4)),
    _row("ij->", t(3, 4)),
    _row("ij->j", t(3, 4)),
    _row("i,j->ij", t(3), t(4)),
    _row("i,i->", t(5), t(5)),
    _row("ij,ij->i", t(3, 4), t(3, 4)),
    _row("...ij,...jk->...ik", t(2, 3, 4), t(4, 5)),
    _row("...i,i", t(2, 3, 4), t(4)),
    _row("ij,jk,kl->il", t(3, 4), t(4, 5), t(5, 2)),
    _row("bn,anm,bm->ba", t(2, 3), t(5, 3, 4), t(2, 4)),
    _row("ij,jk->ik", t(3, 1), t(4, 5)),
    _row(" i j , j k -> i k ", t(3, 4), t(4, 5)),
    case(OP, "ij,jk->ki", [t(3, 4), t(4, 5)], dtypes=INTEGRAL),
    _row("ij,jk->ik", t(3, 4), t(5, 5), error="subscript j has size 5 for operand 1 which does not broadcast with previously seen size 4"),
    _row("ijk,jk->ik", t(3, 4), t(4, 5), error="does not match the number of dimensions"),
    _row("ij->ik", t(3, 4), error="does not appear in the equation"),
    _row("ij,jk->ik", t(3, 4), error="fewer operands were provided than specified in the equation"),
    _row("i1->i", t(3, 4), error="invalid subscript"),
]
