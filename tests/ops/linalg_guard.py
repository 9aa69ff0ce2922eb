"""Runs LAPACK's routines on matrices of many shapes between guard pages: loops may read past the end of a matrix only
where padding was reserved. Usage: TENSORD_GUARD=1 PYTHONPATH=build/dev/python python3 -m tests.ops.linalg_guard"""

import os

import numpy as np

from tensord import engine

DTYPES = (np.complex128, np.complex64, np.float64, np.float32)
SIZES = (1, 2, 3, 4, 5, 6, 7, 9, 12, 17, 33)


def matrices(random, dtype, rows, columns):
    values = random.standard_normal((2, rows, columns))
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * random.standard_normal((2, rows, columns))
    return values.astype(dtype)


def main() -> None:
    assert os.environ.get("TENSORD_GUARD") == "1"
    random = np.random.default_rng(0)
    of = lambda values: engine.from_numpy(np.ascontiguousarray(values))  # noqa: E731
    for dtype in DTYPES:
        for rows in SIZES:
            for columns in SIZES:
                x = of(matrices(random, dtype, rows, columns))
                for full in (True, False):
                    engine.linalg_svd(x, full)
                    q, r = engine.linalg_qr(x, "complete" if full else "reduced")
                    got, want = engine.matmul(q, r).numpy(), x.numpy()
                    assert np.allclose(got, want, atol=1e-3), (dtype, rows, columns)
                engine.linalg_svdvals(x)
                engine.linalg_pinv(x)
                engine.linalg_lstsq(x, of(matrices(random, dtype, rows, 3)))
            a = matrices(random, dtype, rows, rows)
            adjoint = np.conj(np.swapaxes(a, -1, -2))
            square, hermitian = of(a), of((a + adjoint).astype(dtype))
            positive = of((a @ adjoint + 5 * np.eye(rows)).astype(dtype))
            for name in ("eig", "eigvals", "lu", "matrix_exp"):
                getattr(engine, f"linalg_{name}")(square)
            for name in ("eigh", "eigvalsh", "ldl_factor"):
                getattr(engine, f"linalg_{name}")(hermitian)
            for name in ("inv", "cholesky"):
                getattr(engine, f"linalg_{name}")(positive)
            engine.linalg_solve(positive, square)


if __name__ == "__main__":
    main()
