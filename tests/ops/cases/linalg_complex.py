"""Linear algebra of complex matrices, and eigenvalues of any matrix."""

import torch

from tests.ops.case import COMPLEX, FULL, case, t

CASES = []


def rows(op, *args, dtypes=COMPLEX, **options):
    CASES.append(case(op, *args, dtypes=dtypes, **{"rtol": 1e-3, "atol": 1e-3, **options} if dtypes is COMPLEX else options))


for sizes in [(3, 3), (2, 4, 4), (0, 3, 3), (0, 0)]:
    rows("aten::linalg_lu_factor_ex", t(*sizes))
    rows("aten::linalg_inv_ex", t(*sizes))
    rows("aten::linalg_det", t(*sizes))
    rows("aten::linalg_slogdet", t(*sizes))
    rows("aten::linalg_matrix_exp", t(*sizes, low=-1, high=1))
rows("aten::linalg_lu_factor_ex", t(3, 5))
rows("aten::linalg_lu_factor_ex", t(5, 3))
rows("aten::linalg_lu", t(4, 3))
rows("aten::linalg_solve", t(3, 3), t(3, 2))
rows("aten::linalg_solve", t(2, 3, 3), t(2, 3))
rows("aten::linalg_solve", t(3, 3), t(2, 3), left=False)
rows("aten::linalg_solve", t(values=[[1j, 2j], [1j, 2j]]), t(2), error="singular")
rows("aten::linalg_inv", t(3, 3))
rows("aten::logdet", t(3, 3))
for upper in [False, True]:
    rows("aten::linalg_solve_triangular", t(3, 3), t(3, 2), upper=upper)
    rows("aten::linalg_solve_triangular", t(2, 3, 3), t(2, 3), upper=upper, left=False)
    rows("aten::triangular_solve", t(3, 2), t(3, 3), upper)
    rows("aten::cholesky_solve", t(3, 2), t(3, 3), upper)
    values = [[4, 1 + 1j, 0.5j], [1 - 1j, 5, 1], [-0.5j, 1, 6]]
    # LAPACK assumes that the diagonal of a factor is real.
    factor = [[2, 0, 0], [1 + 1j, 3, 0], [2 - 1j, 0.5j, 1]]
    factor = torch.tensor(factor).mH.tolist() if upper else factor
    rows("aten::cholesky_inverse", t(values=factor), upper, gradient=False)
    rows("aten::linalg_cholesky", t(values=values), upper=upper, gradient="no differences")
rows("aten::linalg_cholesky", t(values=[[1, 2j], [-2j, 1]]), error="not positive-definite")
rows("aten::linalg_qr", t(4, 3))
rows("aten::linalg_qr", t(3, 4))
rows("aten::linalg_qr", t(2, 3, 3), "complete")
rows("aten::linalg_qr", t(4, 3), "r", gradient=False)
rows("aten::geqrf", t(4, 3), gradient=False)
rows("aten::linalg_householder_product", t(4, 3), t(3), gradient=False)
rows("aten::ormqr", t(4, 3), t(3), t(4, 2), True, True, gradient=False)
rows("aten::ormqr", t(4, 3), t(3), t(2, 4), False, False, gradient=False)
for full in [False, True]:
    rows("aten::linalg_svd", t(4, 3), full, check="svd", gradient=False)
    rows("aten::linalg_svd", t(2, 3, 4), full, check="svd", gradient=False)
rows("aten::linalg_svdvals", t(4, 3))
rows("aten::linalg_svdvals", t(2, 3, 4))
for uplo in "LU":
    rows("aten::linalg_eigh", t(4, 4), uplo, check="eigh", gradient=False)
    rows("aten::linalg_eigvalsh", t(2, 3, 3), uplo, gradient="no differences")
rows("aten::linalg_pinv.atol_rtol_float", t(4, 3))
rows("aten::linalg_pinv.atol_rtol_float", t(2, 3, 4))
rows("aten::linalg_matrix_rank.atol_rtol_float", t(4, 3))
rows("aten::linalg_ldl_factor", t(values=[[1, 2 + 1j], [2 + 1j, -3]]), gradient=False)
rows("aten::linalg_ldl_factor", t(values=[[1, 2 + 1j], [2 - 1j, -3]]), hermitian=True, gradient=False)
for driver in ["gels", "gelsy", "gelsd", "gelss"]:
    rows("aten::linalg_lstsq", t(5, 3), t(5, 2), driver=driver, gradient="first" if driver == "gels" else False)
rows("aten::linalg_matrix_norm", t(3, 4), 2)
rows("aten::linalg_matrix_norm", t(3, 4), 1)
rows("aten::linalg_matrix_norm.str_ord", t(3, 4), "nuc")
rows("aten::linalg_norm", t(3, 4))
rows("aten::linalg_cond", t(3, 3))
rows("aten::linalg_matrix_power", t(3, 3), 3)
rows("aten::linalg_matrix_power", t(3, 3), -2)
rows("aten::linalg_vander", t(4))
rows("aten::linalg_tensorsolve", t(2, 3, 6), t(2, 3))

# Eigenvalues of non-symmetric matrices, sorted by absolute value.
for sizes in [(4, 4), (2, 3, 3), (1, 1)]:
    rows("aten::linalg_eig", t(*sizes), check="eig", gradient=False)
    CASES.append(case("aten::linalg_eig", t(*sizes), dtypes=FULL, check="eig", gradient=False, rtol=1e-3, atol=1e-3))
rows("aten::linalg_eig", t(0, 3, 3), gradient=False)
ORDERED = t(values=[[1.0, 0.1, 0.2], [0.3, 3.0, 0.1], [0.2, 0.1, 7.0]])
CASES.append(case("aten::linalg_eigvals", ORDERED, dtypes=FULL, rtol=1e-4, atol=1e-4))
CASES.append(case("aten::linalg_eigvals", t(0, 2, 2), dtypes=FULL))
CASES.append(case("aten::linalg_eig", t(values=[[1.0, float("inf")], [0.0, 1.0]]), dtypes=FULL, error="should not contain infs or NaNs"))
