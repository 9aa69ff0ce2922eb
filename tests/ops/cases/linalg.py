"""Linear algebra. Random matrices get a diagonal that keeps them far from singular."""

import itertools

import torch

from tests.ops.case import FULL, case, t

TIGHT = {"rtol": 1e-4, "atol": 1e-5}
# For gradients that magnify rounding, which other libraries than LAPACK do otherwise.
LOOSE = {"rtol": 5e-4, "atol": 5e-5}


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
                         **{**options, **LOOSE, "unitriangular": False}))
        rows.append(case("aten::triangular_solve", t(2, 3, 2), _regular(3, 3), upper, left, unit, dtypes=FULL, **TIGHT))
    return rows


def _positive(*sizes):
    """Symmetric positive-definite matrices."""
    root = torch.tensor(_regular(*sizes, seed=1).values, dtype=torch.float64)
    return t(values=(root @ root.mT / sizes[-1]).tolist())


def _by_columns(op):
    """PyTorch factors the transpose of row-major matrices, and returns those factors."""
    def call(a, *args, **kwargs):
        return getattr(torch.ops.aten, op)(a.mT.contiguous().mT, *args, **kwargs)
    return call


def _lu(*sizes):
    """The factors and pivots of regular matrices."""
    matrices = torch.tensor(_regular(*sizes, seed=2).values, dtype=torch.float64).flip(-2)
    factors, pivots = torch.linalg.lu_factor(matrices)
    return t(values=factors.tolist()), t(values=pivots.tolist(), dtype=torch.int32)


def _lu_rows():
    rows = []
    for sizes in [(3, 3), (2, 4, 3), (2, 3, 5), (5, 2), (0, 0), (3, 0), (0, 3, 3)]:
        for op in ["aten::linalg_lu_factor_ex", "aten::linalg_lu_factor", "aten::linalg_lu", "aten::_lu_with_info"]:
            rows.append(case(op, t(*sizes), dtypes=FULL, **TIGHT))
    for sizes in [(90, 90), (130, 40), (40, 130)]:
        rows.append(case("aten::linalg_lu_factor_ex", t(*sizes), dtypes=FULL, gradient=False, rtol=1e-3, atol=1e-3))
    for sizes in [(3, 3), (2, 4, 4), (0, 0)]:
        lu, pivots = _lu(*sizes) if sizes[-1] else (t(0, 0), t(0, dtype=torch.int32))
        rows += [case("aten::lu_unpack", lu, pivots, dtypes=FULL), case("aten::lu_unpack", lu, pivots, False),
                 case("aten::lu_unpack", lu, pivots, True, False),
                 case("aten::lu_solve", t(2, sizes[-1], 2), lu, pivots, dtypes=FULL, **TIGHT)]
        for left, adjoint in itertools.product([True, False], repeat=2):
            b = t(*((sizes[-1], 3) if left else (3, sizes[-1])))
            rows.append(case("aten::linalg_lu_solve", lu, pivots, b, left=left, adjoint=adjoint, dtypes=FULL, **TIGHT))
    return rows


def _solve_rows():
    rows = []
    for op in ["aten::linalg_solve", "aten::linalg_solve_ex", "aten::_linalg_solve_ex"]:
        for a, b, left in [((3, 3), (3,), True), ((3, 3), (3, 2), True), ((2, 3, 3), (2, 3), True), ((3, 3), (2, 3), False),
                           ((2, 1, 3, 3), (4, 3, 2), True), ((2, 3, 3), (3, 2), True), ((0, 0), (0, 2), True)]:
            reference = _by_columns("_linalg_solve_ex") if op == "aten::_linalg_solve_ex" else None
            rows.append(case(op, _regular(*a) if a[-1] else t(*a), t(*b), left=left, dtypes=FULL, reference=reference, **TIGHT))
    for sizes in [(3, 3), (2, 2, 4, 4), (0, 3, 3), (0, 0)]:
        for op in ["aten::linalg_inv", "aten::linalg_inv_ex", "aten::inverse", "aten::linalg_det", "aten::det", "aten::_linalg_det",
                   "aten::linalg_slogdet", "aten::slogdet", "aten::_linalg_slogdet", "aten::logdet"]:
            reference = _by_columns(op.split("::")[1]) if op.startswith("aten::_") else None
            rows.append(case(op, _regular(*sizes) if 0 not in sizes else t(*sizes), dtypes=FULL, reference=reference, **TIGHT))
    rows.append(case("aten::linalg_solve", _regular(200, 200, scale=1 / 200), t(200, 30), dtypes=FULL, gradient=False, **LOOSE))
    singular = t(values=[[1.0, 2.0], [2.0, 4.0]])
    zero, nan = t(2, 3, 3, low=0, high=0), t(values=[[float("nan"), 1.0], [2.0, float("inf")]])
    rows += [case(op, zero, error=f"linalg.inv: (Batch element 0): The diagonal element 1 is zero, the inversion could not be "
                  "completed because the input matrix is singular.") for op in ["aten::linalg_inv", "aten::inverse"]]
    rows += [case(op, x, gradient=False) for op in ["aten::det", "aten::slogdet", "aten::logdet", "aten::linalg_lu_factor_ex"]
             for x in [zero, singular]]
    rows.append(case("aten::det", nan, gradient=False))
    rows += [case(op, nan, check="shape") for op in ["aten::linalg_inv", "aten::linalg_lu_factor_ex"]]
    return rows + [
        case("aten::linalg_inv_ex", zero, check_errors=True, error="linalg.inv_ex: (Batch element 0): The diagonal element 1 is zero"),
        case("aten::linalg_solve_ex", zero, t(2, 3), check_errors=True,
             error="torch.linalg.solve_ex: (Batch element 0): The solver failed because the input matrix is singular."),
        case("aten::linalg_solve", t(3, 3, low=0, high=0), t(3), error="torch.linalg.solve: The solver failed because the input matrix is singular."),
        case("aten::linalg_lu_factor", zero, error="torch.linalg.lu_factor: (Batch element 0): U[1,1] is zero and using it on lu_solve would"),
        case("aten::linalg_lu_factor_ex", zero, check_errors=True, error="torch.linalg.lu_factor_ex: (Batch element 0): U[1,1] is zero"),
        case("aten::linalg_inv", t(2, 3), error="linalg.inv: A must be batches of square matrices, but they are 2 by 3 matrices"),
        case("aten::linalg_inv", t(3), error="linalg.inv: The input tensor A must have at least 2 dimensions."),
        case("aten::linalg_inv", t(3, 3, dtype=torch.int64),
             error=("linalg.inv: Expected a floating point or complex tensor as input. Got Long",
                    "linalg.inv: Expected a floating point or complex tensor as input. Got int64")),
        case("aten::linalg_inv", t(3, 3, dtype=torch.float16),
             error=("linalg.inv: Low precision dtypes not supported. Got Half", "linalg.inv: Low precision dtypes not supported. Got float16")),
        case("aten::linalg_solve", t(3, 3), t(4), error="linalg.solve: Incompatible shapes of A and B for the equation AX = B (3x3 and 4x1)"),
        case("aten::linalg_solve", t(3, 3), t(3, 5), left=False, error="linalg.solve: Incompatible shapes of A and B for the equation XA = B (3x3 and 3x5)"),
        case("aten::linalg_lu_factor", t(3, 3), pivot=False, error="linalg.lu_factor: LU without pivoting is not implemented on the CPU"),
        case("aten::lu_unpack", t(3, 3), t(values=[1, 2, 7], dtype=torch.int32), error="pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive"),
        case("aten::lu_solve", t(3, 2), t(3, 3), t(values=[1, 2], dtype=torch.int32),
             error="linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix"),
    ]


def _cholesky_rows():
    rows = []
    for sizes, upper in itertools.product([(3, 3), (2, 1, 4, 4), (0, 3, 3), (0, 0)], [False, True]):
        a = _positive(*sizes) if 0 not in sizes else t(*sizes)
        for op, options in [("aten::cholesky", {}), ("aten::linalg_cholesky", {}), ("aten::linalg_cholesky_ex", {"check_errors": True})]:
            rows.append(case(op, a, upper=upper, dtypes=FULL, gradient="no differences", **options, **TIGHT))
        rows.append(case("aten::cholesky_inverse", a, upper, dtypes=FULL, gradient="no differences", **TIGHT))
        rows.append(case("aten::cholesky_solve", t(2, 1, sizes[-1], 2) if sizes[0] else t(sizes[-1], 2), a, upper, dtypes=FULL, gradient="no differences",
                         **TIGHT))
    rows += [case("aten::linalg_cholesky", _positive(200, 200), upper=upper, dtypes=FULL, gradient=False, **TIGHT) for upper in [False, True]]
    bad = t(values=[[[1.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]]])
    what = "(Batch element 1): The factorization could not be completed because the input is not positive-definite (the leading minor of order 2 is not positive-definite)."
    return rows + [
        case("aten::linalg_cholesky", bad, error="linalg.cholesky: " + what), case("aten::cholesky", bad, error="cholesky: " + what),
        case("aten::linalg_cholesky_ex", bad, check_errors=True, error="linalg.cholesky_ex: " + what),
        case("aten::cholesky_inverse", t(2, 3, 3, low=0, high=0), error="cholesky_inverse: (Batch element 0): The diagonal element 1 is zero"),
        case("aten::linalg_cholesky", t(2, 3), error="linalg.cholesky: A must be batches of square matrices, but they are 2 by 3 matrices"),
        case("aten::cholesky", t(3), error="cholesky: The input tensor A must have at least 2 dimensions."),
        case("aten::cholesky_solve", t(4, 3), t(3, 3), error="each A matrix is 3 by 3 but each b matrix is 4 by 3"),
        case("aten::linalg_cholesky", t(values=[[float("nan"), 0.0], [0.0, 1.0]]), check="shape"),
    ]


def _reflectors(*sizes):
    """Householder vectors and their factors, of a batch of matrices."""
    packed, tau = torch.geqrf(torch.tensor(_regular(*sizes[:-2], sizes[-2], sizes[-2], seed=3).values, dtype=torch.float64)[..., : sizes[-1]])
    return t(values=packed.tolist()), t(values=tau.tolist())


def _qr_rows():
    rows = []
    for sizes in [(3, 3), (2, 4, 3), (2, 3, 5), (0, 3), (3, 0), (0, 3, 3)]:
        for mode in ["reduced", "complete", "r"]:
            rows.append(case("aten::linalg_qr", t(*sizes), mode, dtypes=FULL, gradient=0 not in sizes, **LOOSE))
        rows += [case("aten::qr", t(*sizes), some, dtypes=FULL, gradient=0 not in sizes, **TIGHT) for some in [True, False]]
        rows.append(case("aten::geqrf", t(*sizes), dtypes=FULL, **TIGHT))
    for sizes in [(3, 3), (2, 5, 3)]:
        packed, tau = _reflectors(*sizes)
        rows += [case(op, packed, tau, dtypes=FULL, **TIGHT) for op in ["aten::linalg_householder_product", "aten::orgqr"]]
        batch, m = sizes[:-2], sizes[-2]
        for left, transpose in itertools.product([True, False], repeat=2):
            other = t(*batch, *((m, 2) if left else (2, m)))
            rows.append(case("aten::ormqr", packed, tau, other, left, transpose, dtypes=FULL, **TIGHT))
    return rows + [
        case("aten::linalg_householder_product", t(4, 3), t(2), dtypes=FULL, **TIGHT),
        case("aten::linalg_householder_product", t(0, 3, 2), t(0, 2)),
        case("aten::linalg_qr", t(3), error="linalg.qr: The input tensor A must have at least 2 dimensions."),
        case("aten::linalg_qr", t(3, 3), "x", error="qr received unrecognized mode 'x' but expected one of"),
        case("aten::geqrf", t(3), error="torch.geqrf: input must have at least 2 dimensions."),
        case("aten::linalg_householder_product", t(3, 4), t(3), error="input.shape[-2] must be greater than or equal to input.shape[-1]"),
        case("aten::linalg_householder_product", t(4, 3), t(4), error="input.shape[-1] must be greater than or equal to tau.shape[-1]"),
        case("aten::ormqr", t(4, 3), t(3), t(5, 4), error="torch.ormqr: other.shape[-2] must be equal to input.shape[-2]"),
        case("aten::ormqr", t(4, 2), t(3), t(4, 4), error="torch.ormqr: tau.shape[-1] must be less than or equal to input.shape[-1]"),
        case("aten::ormqr", t(4, 3), t(5), t(4, 4), error="torch.ormqr: other.shape[-2] must be greater than or equal to tau.shape[-1]"),
    ]


def _endless(*_args, **_kwargs):
    raise RuntimeError("PyTorch never comes back from infinities here")


def _svd_rows():
    rows = []
    for sizes in [(3, 3), (2, 4, 3), (2, 3, 5), (0, 3, 3), (0, 3), (3, 0)]:
        gradient = 0 not in sizes
        for full in [True, False]:
            rows.append(case("aten::linalg_svd", t(*sizes), full, dtypes=FULL, check="svd", gradient=gradient, **TIGHT))
            rows.append(case("aten::_linalg_svd", t(*sizes), full, True, dtypes=FULL, check="svd", gradient=gradient, **TIGHT))
            rows.append(case("aten::svd", t(*sizes), not full, True, dtypes=FULL, check="svd of V", gradient=gradient, **TIGHT))
        rows.append(case("aten::svd", t(*sizes), True, False, dtypes=FULL, gradient=False, **TIGHT))
        rows.append(case("aten::_linalg_svd", t(*sizes), True, False, dtypes=FULL, gradient=False, **TIGHT))
        rows.append(case("aten::linalg_svdvals", t(*sizes), dtypes=FULL, gradient=gradient, **TIGHT))
    rows.append(case("aten::linalg_svd", t(60, 50), False, dtypes=FULL, check="svd", gradient=False, rtol=1e-3, atol=1e-3))
    for sizes in [(3, 3), (2, 4, 4), (0, 3, 3), (0, 0)]:
        for uplo in ["L", "U"]:
            a = _positive(*sizes) if 0 not in sizes else t(*sizes)
            rows.append(case("aten::linalg_eigh", a, uplo, dtypes=FULL, check="eigh", gradient="no differences", **TIGHT))
            rows.append(case("aten::_linalg_eigh", a, uplo, True, dtypes=FULL, check="eigh", gradient="no differences", **TIGHT))
            rows.append(case("aten::_linalg_eigh", a, uplo, False, dtypes=FULL, gradient=False, **TIGHT))
            rows.append(case("aten::linalg_eigvalsh", a, uplo, dtypes=FULL, gradient="no differences", **TIGHT))
            rows.append(case("aten::symeig", a, True, uplo == "U", dtypes=FULL, check="eigh", gradient="no differences", **TIGHT))
            rows.append(case("aten::symeig", a, False, uplo == "U", dtypes=FULL, gradient=False, **TIGHT))
    rows.append(case("aten::linalg_eigh", t(3, 3), "U", dtypes=FULL, check="eigh", gradient=False, **TIGHT))
    rows.append(case("aten::linalg_eigh", _positive(60, 60), dtypes=FULL, check="eigh", gradient=False, rtol=1e-3, atol=1e-3))
    nan, inf = (t(values=[[[1.0, 0.0, 0.0]] * 3, [[x, 1.0, 2.0]] * 3]) for x in [float("nan"), float("inf")])
    return rows + [
        case("aten::linalg_svd", nan, error="linalg.svd: (Batch element 1): The algorithm failed to converge because the input matrix contained non-finite values."),
        case("aten::linalg_svd", inf, reference=_endless, error=("never comes back", "linalg.svd: (Batch element 1): The algorithm failed to converge because the input matrix contained non-finite values.")),
        case("aten::linalg_eigh", nan, error="linalg.eigh: (Batch element 1): The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated eigenvalues"),
        case("aten::linalg_eigvalsh", inf, reference=_endless, error=("never comes back", "linalg.eigh: (Batch element 1): The algorithm failed to converge")),
        case("aten::linalg_svd", t(3), error="linalg.svd: The input tensor A must have at least 2 dimensions."),
        case("aten::linalg_svd", t(3, 3), True, driver="gesvd", error="torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."),
        case("aten::linalg_eigh", t(2, 3), error="linalg.eigh: A must be batches of square matrices, but they are 2 by 3 matrices"),
        case("aten::linalg_eigh", t(3, 3), "X", error="Expected UPLO argument to be 'L' or 'U', but got X"),
    ]


def _ldl_rows():
    rows = []
    for sizes in [(3, 3), (2, 5, 5), (0, 3, 3), (0, 0)]:
        values = torch.tensor(_positive(*sizes).values, dtype=torch.float64) - 2 * torch.eye(sizes[-1]) if 0 not in sizes else torch.zeros(sizes, dtype=torch.float64)
        a = t(values=values.tolist()) if 0 not in sizes else t(*sizes)
        rows += [case("aten::linalg_ldl_factor", a, dtypes=FULL, **TIGHT), case("aten::linalg_ldl_factor_ex", a, dtypes=FULL, **TIGHT)]
        if 0 not in sizes:
            ld, pivots = torch.linalg.ldl_factor(values)
            rows.append(case("aten::linalg_ldl_solve", t(values=ld.tolist()), t(values=pivots.tolist(), dtype=torch.int32), t(2, sizes[-1], 2), dtypes=FULL, rtol=1e-3, atol=1e-3))
    zero = t(values=[[[1.0, 0.0], [0.0, 0.0]]] * 2)
    return rows + [
        case("aten::linalg_ldl_factor_ex", zero),
        case("aten::linalg_ldl_factor", zero, error=("Unknown error code: 2", "torch.linalg.ldl_factor: (Batch element 0): D[2,2] is zero")),
        case("aten::linalg_ldl_factor", t(2, 3), error="torch.linalg.ldl_factor_ex: A must be batches of square matrices, but they are 2 by 3 matrices"),
        case("aten::linalg_ldl_solve", t(3, 3), t(values=[1, 2], dtype=torch.int32), t(3, 2), error="Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape [2] instead"),
    ]


def _lstsq_rows():
    rows = []
    for driver in [None, "gels", "gelsy", "gelsd", "gelss"]:
        for a, b in [((4, 3), (4, 2)), ((4, 3), (4,)), ((2, 4, 3), (2, 4)), ((2, 3, 4), (2, 3, 2)), ((2, 4, 3), (1, 4, 2)), ((0, 4, 3), (0, 4, 2))]:
            rows.append(case("aten::linalg_lstsq", t(*a), t(*b), driver=driver, dtypes=FULL, rtol=1e-3, atol=1e-4,
                             gradient="first" if driver is None and 0 not in a else False))
    return rows + [
        case("aten::linalg_lstsq", t(values=[[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]), t(3, 2), driver=driver, gradient=False, **TIGHT)
        for driver in [None, "gelsd", "gelss"]
    ] + [
        case("aten::linalg_lstsq", t(4, 3), t(4, 2), driver="x", error="parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"),
        case("aten::linalg_lstsq", t(4, 3), t(3, 2), error="torch.linalg.lstsq: input.size(-2) should match other.size(-2)"),
        case("aten::linalg_lstsq", t(4), t(3, 2), error="torch.linalg.lstsq: input must have at least 2 dimensions."),
        case("aten::linalg_lstsq", t(2, 4, 3), t(4, 2), error="torch.linalg.lstsq: input.size(-2) should match other.size(-1)"),
    ]


def _pinv_rows():
    rows = []
    low_rank = t(values=[[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]])
    number = t(dtype=None, low=0.1, high=0.1)
    for a, hermitian in [(t(4, 3), False), (t(2, 3, 4), False), (_positive(2, 3, 3), True), (low_rank, False), (t(0, 3), False), (t(2, 3, 0), False)]:
        rows += [
            case("aten::linalg_pinv.atol_rtol_tensor", a, hermitian=hermitian, dtypes=FULL, rtol=1e-3, atol=1e-4),
            case("aten::linalg_pinv.atol_rtol_float", a, hermitian=hermitian, dtypes=FULL, rtol=1e-3, atol=1e-4),
            case("aten::linalg_pinv", a, 1e-5, hermitian, dtypes=FULL, rtol=1e-3, atol=1e-4),
            case("aten::linalg_pinv.rcond_tensor", a, number, hermitian, rtol=1e-3, atol=1e-4),
            case("aten::linalg_matrix_rank", a, 0.01, hermitian, dtypes=FULL), case("aten::linalg_matrix_rank.tol_tensor", a, number, hermitian),
            case("aten::linalg_matrix_rank.atol_rtol_tensor", a, hermitian=hermitian, dtypes=FULL),
            case("aten::linalg_matrix_rank.atol_rtol_float", a, hermitian=hermitian, dtypes=FULL),
        ]
        if not hermitian:
            rows.append(case("aten::pinverse", a, 1e-5, dtypes=FULL, rtol=1e-3, atol=1e-4))
    return rows + [
        case("aten::linalg_pinv", t(3), 0.1, error=("expected a tensor with 2 or more dimensions of float", "expected a tensor with 2 or more dimensions of float")),
        case("aten::linalg_matrix_rank", t(3), 0.1, error="torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions."),
    ]


def _power_rows():
    rows = []
    for scale in [1e-9, 1e-3, 0.05, 0.3, 1.0, 4.0, 20.0]:
        a = t(values=(torch.tensor(_regular(2, 3, 3, seed=4).values) * scale / 8).tolist())
        rows += [case(op, a, dtypes=FULL, rtol=1e-3, atol=1e-4) for op in ["aten::linalg_matrix_exp", "aten::matrix_exp"]]
    rows.append(case("aten::linalg_matrix_exp", t(30, 30, low=-0.2, high=0.2), dtypes=FULL, gradient=False, rtol=1e-3, atol=1e-4))
    for op in ["aten::linalg_matrix_power", "aten::matrix_power"]:
        rows += [case(op, _regular(2, 3, 3, scale=0.3), n, dtypes=FULL, rtol=1e-3, atol=1e-4) for n in [-3, -1, 0, 1, 2, 5]]
        rows += [case(op, t(3, 3, dtype=torch.int64), 3), case(op, t(0, 3, 3), 2), case(op, t(3, 3, low=0, high=0), -1, error="linalg.inv: The diagonal element 1 is zero")]
        rows.append(case(op, t(2, 3), 2, error="linalg.matrix_power: A must be batches of square matrices, but they are 2 by 3 matrices"))
    return rows + [
        case("aten::linalg_matrix_exp", t(0, 3, 3)), case("aten::linalg_matrix_exp", t(0, 0)), case("aten::linalg_matrix_exp", t(4, 1, 1), dtypes=FULL, **TIGHT),
        case("aten::linalg_matrix_exp", t(2, 3), error="linalg.matrix_exp: A must be batches of square matrices, but they are 2 by 3 matrices"),
    ]


def _product_rows():
    chains = [[(3, 4), (4, 2)], [(3,), (3, 2), (2,)], [(3, 4), (4, 2), (2, 6), (6,)], [(10, 2), (2, 8), (8, 3), (3, 5)], [(3, 0), (0, 2)]]
    rows = [case("aten::linalg_multi_dot", [t(*sizes) for sizes in chain], dtypes=FULL, **TIGHT) for chain in chains]
    rows += [case("aten::chain_matmul", [t(*sizes) for sizes in chain], dtypes=FULL, **TIGHT) for chain in chains[:1] + chains[3:]]
    rows += [case("aten::chain_matmul", [t(3, 2)]), case("aten::chain_matmul", [t(3), t(3, 2)], error="Tensor dimension is 1, expected 2 instead.")]
    rows += [case("aten::linalg_multi_dot", [t(*sizes) for sizes in chain], error=error) for chain, error in [
        ([(3,)], "multi_dot(): expected at least 2 tensors but got 1"), ([(3, 2, 2), (3, 3)], "multi_dot(): the first tensor must be 1D or 2D but got 3D"),
        ([(3, 3), (2, 3)], "multi_dot(): tensors 0 and 1 with shapes [3, 3] and [2, 3] cannot be multiplied"),
        ([(3, 3), (3, 3, 3), (3, 3)], "multi_dot(): tensor 1 must be 2D but got 3D")]]
    for a, b, dim in [((3,), (3,), -1), ((2, 3), (2, 3), 0), ((2, 1, 3), (4, 3), -1)]:
        rows.append(case("aten::linalg_vecdot", t(*a), t(*b), dim=dim, dtypes=FULL, **TIGHT))
    rows += [case("aten::linalg_tensorinv", t(2, 3, 6), 2, dtypes=FULL, rtol=1e-3, atol=1e-3, gradient="first"), case("aten::linalg_tensorinv", _regular(3, 3), 1, **TIGHT),
             case("aten::linalg_tensorinv", t(2, 3, 5), 2, error="Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got 5 != 6"),
             case("aten::linalg_tensorinv", t(2, 3, 6), 0, error="Expected a strictly positive integer for 'ind', but got 0"),
             case("aten::linalg_tensorsolve", t(2, 3, 6), t(2, 3), dtypes=[torch.float64], gradient="first"), case("aten::linalg_tensorsolve", t(6, 2, 3), t(2, 3), [0], dtypes=[torch.float64], gradient="first"),
             case("aten::linalg_tensorsolve", t(2, 3, 5), t(2, 3), error="prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got 5 != 6")]
    for x in [t(4), t(2, 3)]:
        rows += [case("aten::linalg_vander", x, N=n, dtypes=FULL + [torch.int64], **TIGHT) for n in [None, 3, 5]]
    for n, increasing in itertools.product([None, 0, 1, 4], [False, True]):
        rows.append(case("aten::vander", t(3), n, increasing, dtypes=FULL + [torch.int64], **TIGHT))
    return rows + [case("aten::linalg_vander", t(3), N=1, error="N must be greater than 1."), case("aten::vander", t(3, 3), error="x must be a one-dimensional tensor."),
                   case("aten::vander", t(3), -1, error="N must be non-negative.")]


def _norm_rows():
    rows, inf = [], float("inf")
    for ord, dim, keepdim in itertools.product([1, -1, 2, -2, inf, -inf], [(-2, -1), (2, 0)], [False, True]):
        rows.append(case("aten::linalg_matrix_norm", t(2, 3, 4), ord, dim, keepdim, dtypes=FULL, **TIGHT))
        rows.append(case("aten::linalg_norm", t(2, 3, 4), ord, dim, keepdim, dtypes=[torch.float64]))
    for ord, dim in itertools.product(["fro", "nuc"], [(-2, -1), (2, 0)]):
        rows.append(case("aten::linalg_matrix_norm.str_ord", t(2, 3, 4), ord, dim, dtypes=FULL, **TIGHT))
        rows.append(case("aten::linalg_norm.ord_str", t(2, 3, 4), ord, dim, True, dtypes=FULL, **TIGHT))
        rows.append(case("aten::linalg_norm.ord_str", t(3, 4), ord, dtypes=FULL, **TIGHT))
    rows += [case("aten::linalg_norm", t(2, 3, 4), dtypes=FULL, **TIGHT), case("aten::linalg_norm", t(3, 4), 1, **TIGHT), case("aten::linalg_norm", t(5), 3, **TIGHT),
             case("aten::linalg_norm", t(2, 3), None, [0], **TIGHT), case("aten::linalg_norm", t(2, 3), 1, [0, 1], dtype=torch.float64, **TIGHT),
             case("aten::nuclear_norm", t(3, 4), dtypes=FULL, **TIGHT), case("aten::nuclear_norm", t(3, 4), True, **TIGHT), case("aten::nuclear_norm.dim", t(2, 3, 4), [0, 2], True, dtypes=FULL, **TIGHT),
             case("aten::frobenius_norm", t(2, 3), **TIGHT), case("aten::frobenius_norm.dim", t(2, 3, 4), [0, 2], True, dtypes=FULL, **TIGHT), case("aten::frobenius_norm.dim", t(2, 3), [1], **TIGHT),
             case("aten::frobenius_norm.dim", t(2, 3, 3), [0, 1, 2], error="Expected at most 2 dimensions, but got 3 dimensions instead."),
             case("aten::linalg_matrix_norm", t(3), 1, error="linalg.matrix_norm: The input tensor A must have at least 2 dimensions."),
             case("aten::linalg_matrix_norm", t(3, 3), 3, error="linalg.matrix_norm: Order 3 not supported."), case("aten::linalg_matrix_norm", t(3, 3), 1, [0, 0], error="linalg.matrix_norm: dims must be different. Got (0, 0)"),
             case("aten::linalg_norm", t(2, 3, 4), 2, error="linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got 3D."),
             case("aten::linalg_norm", t(2, 3, 4), 2, [0, 1, 2], error="linalg.norm: If dim is specified, it must be of length 1 or 2. Got [0, 1, 2]"),
             case("aten::linalg_matrix_norm", t(3, 3, dtype=torch.int64), 1, error=("linalg.matrix_norm: Expected a floating point or complex tensor as input. Got Long", "linalg.matrix_norm: Expected a floating point"))]
    for p in [None, 2, -2, 1, -1, inf, -inf]:
        rows += [case("aten::linalg_cond", _regular(2, 3, 3), p, dtypes=FULL, **TIGHT), case("aten::linalg_cond", t(3, 3, low=0, high=0), p, gradient=False)]
    rows += [case("aten::linalg_cond", t(2, 3), dtypes=FULL, **TIGHT), case("aten::linalg_cond", t(2, 3), 1, error="linalg.cond(ord=1): A must be batches of square matrices, but they are 2 by 3 matrices"),
             case("aten::linalg_cond", t(3, 3), 3, error="linalg.cond got an invalid norm type: 3"), case("aten::linalg_cond", t(2, 0, 0))]
    return rows + [case("aten::linalg_cond.p_str", _regular(2, 3, 3), p, dtypes=FULL, **TIGHT) for p in ["fro", "nuc"]]


CASES = _qr_rows() + _svd_rows() + _ldl_rows() + _lstsq_rows() + _pinv_rows() + _power_rows() + _product_rows() + _norm_rows() + _triangular_rows() + _lu_rows() + _solve_rows() + _cholesky_rows() + [
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
