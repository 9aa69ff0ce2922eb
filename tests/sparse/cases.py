"""Bodies of scripted methods on sparse tensors. Each is a method of one module; what it gives is compared with PyTorch's,
or with what `reference` gives where PyTorch 1.13 has no such operator for the CPU."""

from typing import Callable, NamedTuple, Optional

import torch


class Case(NamedTuple):
    body: str  # of a method of x, y, z: as many as there are arguments
    arguments: tuple
    reference: Optional[Callable] = None


def matrix(*sizes, dtype=torch.float32, density=0.4, seed=0):
    """Mostly zeros."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(sizes, generator=generator, dtype=torch.float64) * 3
    kept = torch.rand(sizes, generator=generator) < density
    return (values * kept).to(dtype)


def dense(*sizes, dtype=torch.float32, seed=7):
    return (torch.randn(sizes, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 2).to(dtype)


# A COO tensor with one index three times, unsorted.
REPEATED = """
        i = torch.tensor([[2, 0, 2, 1, 2, 0], [1, 3, 1, 0, 1, 0]])
        s = torch.sparse_coo_tensor(i, x, [3, 4])
"""
HYBRID = """
        i = torch.tensor([[2, 0, 2, 1]])
        s = torch.sparse_coo_tensor(i, x, [4, 3])
"""


def complex_matrix(*sizes, dtype=torch.complex64, density=0.4, seed=0):
    real, imag = (matrix(*sizes, dtype=torch.float64, density=1.0, seed=seed + part) for part in (0, 1))
    return (torch.complex(real, imag) * (matrix(*sizes, density=density, seed=seed) != 0)).to(dtype)


def complex_numbers():
    for dtype in (torch.complex64, torch.complex128):
        x, y, z = complex_matrix(4, 5, dtype=dtype), complex_matrix(5, 3, dtype=dtype, density=1.0), complex_matrix(4, 5, dtype=dtype, seed=5)
        name = "complex" + ("64" if dtype is torch.complex64 else "128")
        six = complex_matrix(6, dtype=dtype, density=1.0)
        yield f"{name}_repeated", Case(REPEATED + "c = s.coalesce()\n        return s.to_dense(), c.indices(), c.values(), s", (six,))
        yield f"{name}_conversions", Case("s = x.to_sparse()\n        return s, s.to_dense(), s._nnz(), s.is_complex(), x.to_sparse_csr().to_dense()", (x,))
        yield f"{name}_mm", Case("return torch.mm(x.to_sparse(), y)", (x, y))
        yield f"{name}_csr_mm", Case("return torch.mm(x.to_sparse_csr(), y)", (x, y), lambda x, y: torch.mm(x, y))
        yield f"{name}_sparse_mm", Case("return torch.mm(x.to_sparse(), y.to_sparse()).to_dense()", (x, y), lambda x, y: torch.mm(x, y))
        yield f"{name}_sums", Case("s = x.to_sparse()\n        r = y.to_sparse()\n        return (s + r).to_dense(), (s - r).to_dense(), y + s", (x, z))
        yield f"{name}_products", Case(
            "s = x.to_sparse()\n        r = y.to_sparse()\n        return (s * r).to_dense(), (s * (2.0 + 3.0j)).to_dense(), (s / 2.0).to_dense(), (s * y).to_dense()", (x, z),
            lambda x, y: (x * y, x * (2 + 3j), x / 2, x * y))
        yield f"{name}_sum", Case("s = x.to_sparse()\n        return torch.sparse.sum(s), torch._sparse_sum(s, [0]).to_dense(), s.sum()", (x,), lambda x: (x.sum(), x.sum(0), x.sum()))
        yield f"{name}_functions", Case("s = x.to_sparse()\n        return s.abs().to_dense(), torch.neg(s).to_dense(), s.sin().to_dense()", (x,),
                                        lambda x: (x.abs(), -x, x.sin()))
        yield f"{name}_mv", Case("return torch.mv(x.to_sparse(), y)", (x, complex_matrix(5, dtype=dtype, density=1.0)))
        yield f"{name}_to_real", Case("s = x.to_sparse()\n        return torch.real(s).to_dense(), torch.imag(s).to_dense()", (x,), lambda x: (x.real, x.imag))


def building():
    six = dense(6)
    yield "repeated_dense", Case(REPEATED + "return s.to_dense()", (six,))
    yield "repeated_whole", Case(REPEATED + "return s", (six,))
    yield "repeated_coalesced", Case(REPEATED + "c = s.coalesce()\n        return c.indices(), c.values(), c._nnz(), c.is_coalesced(), s.is_coalesced()", (six,))
    yield "raw_parts", Case(REPEATED + "return s._indices(), s._values(), s._nnz(), s.sparse_dim(), s.dense_dim()", (six,))
    yield "hybrid", Case(HYBRID + "return s.to_dense(), s.coalesce().values(), s.sparse_dim(), s.dense_dim()", (dense(4, 3),))
    yield "without_sizes", Case("i = torch.tensor([[0, 4], [2, 1]])\n        return torch.sparse_coo_tensor(i, x).to_dense()", (dense(2),))
    yield "with_dtype", Case("i = torch.tensor([[0, 4]])\n        return torch.sparse_coo_tensor(i, x, [5], dtype=torch.float64).to_dense()", (dense(2),),
                             lambda x: (torch.zeros(5, dtype=torch.float64).index_put((torch.tensor([0, 4]),), x.double()),))  # as eager PyTorch
    yield "empty_coo", Case("s = torch.sparse_coo_tensor([3, 2])\n        return s.to_dense(), s._nnz(), s.is_coalesced()", ())
    yield "no_elements", Case("s = x.to_sparse()\n        return s.to_dense(), s._nnz(), (s + s).to_dense(), s.coalesce().indices()", (torch.zeros(3, 4),))
    yield "no_rows", Case("s = x.to_sparse()\n        return s.to_dense(), torch.mm(s, y)", (torch.zeros(0, 4), dense(4, 2)))
    yield "no_columns", Case("s = x.to_sparse()\n        return torch.mm(s, y)", (torch.zeros(3, 0), torch.zeros(0, 2)))
    yield "csr_of_parts", Case(
        "s = torch.sparse_csr_tensor(torch.tensor([0, 2, 2, 3]), torch.tensor([0, 2, 1]), x, [3, 4])\n"
        "        return s.to_dense(), s.crow_indices(), s.col_indices(), s.values(), s._nnz()", (dense(3),))
    yield "csr_of_parts_int32", Case(
        "s = torch.sparse_csr_tensor(torch.tensor([0, 2, 2, 3], dtype=torch.int32), torch.tensor([0, 2, 1], dtype=torch.int32), x)\n"
        "        return s.to_dense(), s.crow_indices()", (dense(3),))
    for dtype in (torch.float64, torch.int64, torch.int32, torch.bool, torch.bfloat16, torch.float16):
        name = str(dtype).split(".")[1]
        yield f"to_sparse_{name}", Case("s = x.to_sparse()\n        return s, s.to_dense(), s.dtype == x.dtype", (matrix(4, 5, dtype=dtype),))
        if dtype not in (torch.bool, torch.float16, torch.bfloat16):
            yield f"repeated_{name}", Case(REPEATED + "return s.coalesce(), s.to_dense()", (dense(6, dtype=dtype),))
    yield "to_sparse_3d", Case("s = x.to_sparse()\n        return s, s.to_dense(), s.sparse_dim()", (matrix(2, 3, 4),))
    yield "to_sparse_hybrid", Case("s = x.to_sparse(1)\n        return s, s.to_dense(), s.dense_dim()", (matrix(5, 2, density=0.2),))
    yield "asks", Case("s = x.to_sparse()\n        return s.shape, s.size(1), s.dim(), s.numel(), s.is_sparse, x.is_sparse, s.layout == torch.sparse_coo, s.is_floating_point(), len(s)", (matrix(3, 4),))
    yield "in_lists", Case("l = [x.to_sparse(), (x * 2).to_sparse()]\n        s = l[0]\n        for t in l:\n            s = s + t\n        return s.to_dense()", (matrix(3, 4),))


def layouts():
    a = matrix(4, 6)
    for start in ("csr", "csc"):
        yield f"dense_{start}", Case(f"s = x.to_sparse_{start}()\n        return s.to_dense(), s.values()", (a,))
        yield f"coo_{start}", Case(f"s = x.to_sparse().to_sparse_{start}()\n        return s.to_dense(), s.values()", (a,))
        yield f"{start}_coo", Case(f"s = x.to_sparse_{start}().to_sparse()\n        return s, s.is_coalesced()", (a,),
                                  lambda x: (x.to_sparse(), True))
        yield f"batches_{start}", Case(f"s = x.to_sparse_{start}()\n        return s.to_dense(), s.values()", (a.expand(3, 4, 6) * 2,),
                                       lambda x, start=start: (x, torch.stack([getattr(m, f"to_sparse_{start}")().values() for m in x])))
    for start in ("bsr", "bsc"):
        yield f"dense_{start}", Case(f"s = x.to_sparse_{start}([2, 3])\n        return s.to_dense(), s.values().numel() % 6", (a,), lambda x: (x, 0))
        yield f"{start}_csr", Case(f"s = x.to_sparse_{start}([2, 3])\n        return s.to_sparse().to_dense(), torch.mm(s, y)", (a, dense(6, 2)),
                                   lambda x, y: (x, x @ y))
    yield "bsr_parts", Case(
        "s = torch.sparse_bsr_tensor(torch.tensor([0, 1, 3]), torch.tensor([1, 0, 2]), x, [4, 6])\n        return s.to_dense(), s.values()",
        (dense(3, 2, 2),))
    yield "bsc_parts", Case(
        "s = torch.sparse_bsc_tensor(torch.tensor([0, 1, 3]), torch.tensor([1, 0, 2]), x, [6, 4])\n        return s.to_dense(), s.row_indices()",
        (dense(3, 2, 2),))
    yield "csc_parts", Case(
        "s = torch.sparse_csc_tensor(torch.tensor([0, 2, 2, 3]), torch.tensor([0, 2, 1]), x, [4, 3])\n        return s.to_dense(), s.ccol_indices(), s.row_indices()",
        (dense(3),))


KEEP_ZERO = "abs asin asinh atan ceil erf expm1 floor neg relu round sgn sign sin sinh sqrt tan tanh trunc log1p".split()


def elementwise():
    small = torch.tanh(matrix(3, 4)).abs()
    for name in KEEP_ZERO:
        reference = None if name not in ("relu",) else (lambda x: (x.to_sparse().coalesce().to_dense().relu(), x.relu()))
        yield f"f_{name}", Case(f"return torch.{name}(x.to_sparse()).to_dense(), torch.{name}(x.to_sparse_csr()).to_dense()", (small,), reference)
    for name in ("isnan", "isinf", "signbit"):
        yield f"f_{name}", Case(f"return torch.{name}(x.to_sparse()).to_dense()", (matrix(3, 4),))
    yield "of_sums", Case(REPEATED + "return torch.abs(s).to_dense(), torch.sqrt(torch.abs(s)).to_dense()", (dense(6),))
    yield "power", Case("return (x.to_sparse() ** 2).to_dense()", (matrix(3, 4),))
    yield "numbers", Case("s = x.to_sparse()\n        return (s * 2.5).to_dense(), (2 * s).to_dense(), (s / 4).to_dense(), (-s).to_dense(), (s * torch.tensor(3.0)).to_dense()", (matrix(3, 4),))
    yield "numbers_csr", Case("s = x.to_sparse_csr()\n        return (s * 2.5).to_dense(), (-s).to_dense()", (matrix(3, 4),))
    two = (matrix(3, 4), matrix(3, 4, seed=5))
    yield "add", Case("return (x.to_sparse() + y.to_sparse()).coalesce()", two)
    yield "add_alpha", Case("return torch.add(x.to_sparse(), y.to_sparse(), alpha=3).to_dense()", two)
    yield "sub", Case("return (x.to_sparse() - y.to_sparse()).to_dense()", two)
    yield "add_to_dense", Case("return y + x.to_sparse()", two)
    yield "add_into_dense", Case("z = y.clone()\n        z.add_(x.to_sparse())\n        return z", two)
    yield "add_csr", Case("return (x.to_sparse_csr() + y.to_sparse_csr()).to_dense()", two, lambda x, y: x + y)
    yield "add_repeated", Case(REPEATED + "return (s + s).to_dense(), (s - y.to_sparse()).to_dense()", (dense(6), matrix(3, 4)))
    yield "add_types", Case("return (x.to_sparse() + y.to_sparse()).to_dense()", (matrix(3, 4, dtype=torch.int64), matrix(3, 4, seed=5)))
    yield "mul", Case("return (x.to_sparse() * y.to_sparse()).coalesce()", two)
    yield "mul_repeated", Case(REPEATED + "return (s * y.to_sparse()).to_dense()", (dense(6), matrix(3, 4)))
    yield "mul_dense", Case("return (x.to_sparse() * y).to_dense(), (y * x.to_sparse()).to_dense()", two, lambda x, y: (x * y, x * y))
    yield "mul_hybrid", Case(HYBRID + "return (s * s).to_dense()", (dense(4, 3),))
    yield "in_place", Case("s = x.to_sparse()\n        s.neg_()\n        s.mul_(2)\n        return s.to_dense()", (matrix(3, 4),))
    yield "zeroed", Case("s = x.to_sparse()\n        s.zero_()\n        return s.to_dense()", (matrix(3, 4),))
    yield "mask", Case("return y.sparse_mask(x.to_sparse().coalesce())", two)
    yield "types", Case("s = x.to_sparse()\n        return s.to(torch.float64), s.double().to_dense(), s.clone().to_dense(), s.detach().to_dense()", (matrix(3, 4),))
    yield "bools", Case("return s.to_dense()".replace("s", "x.to_sparse().to(torch.bool)", 1), (matrix(3, 4),))


def products():
    a, b = matrix(5, 4), dense(4, 3)
    for dtype in (torch.float32, torch.float64):
        name = str(dtype).split(".")[1]
        args = (matrix(5, 4, dtype=dtype), dense(4, 3, dtype=dtype))
        yield f"mm_{name}", Case("return torch.mm(x.to_sparse(), y), torch.sparse.mm(x.to_sparse(), y), x.to_sparse() @ y", args)
        yield f"mm_csr_{name}", Case("return torch.mm(x.to_sparse_csr(), y)", args, lambda x, y: (x @ y,))
    yield "mm_half", Case("return torch.mm(x.to_sparse(), y)", (a.to(torch.bfloat16), b.to(torch.bfloat16)),
                          lambda x, y: ((x.double() @ y.double()).to(torch.bfloat16),))
    yield "mm_int64", Case("return torch.mm(x.to_sparse(), y)", (matrix(5, 4, dtype=torch.int64), dense(4, 3, dtype=torch.int64)),
                           lambda x, y: (x @ y,))
    yield "mm_repeated", Case(REPEATED + "return torch.mm(s, y)", (dense(6), b))
    yield "mm_right", Case("return torch.mm(y, x.to_sparse_csr()), torch.mm(y, x.to_sparse_csc())", (dense(4, 3), dense(2, 4)),
                           lambda x, y: (y @ x, y @ x))
    yield "mm_strided", Case("return torch.mm(x.to_sparse(), y.t())", (a, dense(3, 4)))
    yield "mv", Case("return torch.mv(x.to_sparse(), y), x.to_sparse() @ y", (a, dense(4)))
    yield "addmm", Case("return torch.addmm(z, x.to_sparse(), y, beta=2, alpha=3), torch.sparse.addmm(z, x.to_sparse(), y)", (a, b, dense(5, 3)))
    yield "addmm_beta_0", Case("return torch.addmm(z * float('nan'), x.to_sparse(), y, beta=0)", (a, b, dense(5, 3)), lambda x, y, z: (x @ y,))
    yield "bmm", Case("return torch.bmm(x.to_sparse(), y)", (matrix(3, 2, 4), dense(3, 4, 5)))
    yield "bmm_csr", Case("return torch.bmm(x.to_sparse_csr(), y)", (torch.stack([a, a * 2]), dense(2, 4, 3)), lambda x, y: (torch.bmm(x, y),))
    yield "sparse_sparse", Case("return torch.sparse.mm(x.to_sparse(), y.to_sparse()).to_dense()", (a, matrix(4, 6, seed=3)))
    yield "sparse_sparse_csr", Case("return torch.mm(x.to_sparse_csr(), y.to_sparse_csr()).to_dense()", (a, matrix(4, 6, seed=3)), lambda x, y: (x @ y,))
    yield "smm", Case("return torch.smm(x.to_sparse(), y).to_dense()", (a, b))
    yield "hspmm", Case("return torch.hspmm(x.to_sparse(), y).to_dense()", (a, b))
    yield "sspaddmm", Case("return torch.sspaddmm(z.to_sparse(), x.to_sparse(), y, alpha=2).to_dense()", (a, b, matrix(5, 3, seed=4)))
    yield "sampled", Case("return torch.sparse.sampled_addmm(x.to_sparse_csr(), y, z, beta=0.5, alpha=2).to_dense()", (a, dense(5, 3), dense(3, 4)),
                          lambda x, y, z: ((2 * (y @ z) + 0.5 * x) * (x != 0),))
    lower = torch.tril(matrix(4, 4, density=0.7)) + 3 * torch.eye(4)
    for upper in (False, True):
        for transposed in (False, True):
            m = lower.t().contiguous() if upper else lower
            yield f"solve_{upper}_{transposed}", Case(
                f"return torch.triangular_solve(y, x.to_sparse_csr(), upper={upper}, transpose={transposed})[0]", (m, dense(4, 2)),
                lambda x, y, upper=upper, transposed=transposed: (torch.triangular_solve(y, x, upper=upper, transpose=transposed)[0],))
    yield "solve_unit", Case("return torch.triangular_solve(y, x.to_sparse_csr(), upper=False, unitriangular=True)[0]", (lower, dense(4, 2)),
                             lambda x, y: (torch.triangular_solve(y, x, upper=False, unitriangular=True)[0],))


def reductions():
    a = matrix(3, 4)
    yield "sum", Case("return x.to_sparse().sum(), torch.sparse.sum(x.to_sparse()), x.to_sparse_csr().sum()", (a,), lambda x: (x.sum(), x.sum(), x.sum()))
    yield "sum_0", Case("return torch._sparse_sum(x.to_sparse(), [0]).to_dense(), torch._sparse_sum(x.to_sparse(), [1]).to_dense()", (a,))
    yield "sum_all", Case("return torch._sparse_sum(x.to_sparse(), [0, 1])", (a,))
    yield "sum_hybrid", Case(HYBRID + "return torch._sparse_sum(s, [1]).to_dense(), torch._sparse_sum(s, [0])", (dense(4, 3),))
    yield "sum_dtype", Case("return torch._sparse_sum(x.to_sparse(), [0], dtype=torch.float64).to_dense()", (a,))
    yield "sum_dims", Case("return x.to_sparse().sum(0).to_dense(), x.to_sparse().sum([1], keepdim=True).to_dense()", (a,), lambda x: (x.sum(0), x.sum([1], keepdim=True)))
    yield "sum_int", Case("return x.to_sparse().sum(), torch._sparse_sum(x.to_sparse(), [0]).to_dense()", (matrix(3, 4, dtype=torch.int32),),
                          lambda x: (x.sum(), x.sum(0)))
    for log in ("softmax", "log_softmax"):
        for dim in (0, 1):
            yield f"{log}_{dim}", Case(f"return torch.sparse.{log}(x.to_sparse(), {dim})", (a,))
        yield f"{log}_hybrid", Case(HYBRID + f"return torch.sparse.{log}(s, 1), torch.sparse.{log}(s, 0)", (dense(4, 3),))
    yield "norm", Case("return x.to_sparse().norm()", (a,))


def moves():
    a = matrix(3, 4)
    yield "t", Case("return x.to_sparse().t(), x.to_sparse().transpose(0, 1).to_dense()", (a,))
    yield "t_csr", Case("return x.to_sparse_csr().t().to_dense()", (a,), lambda x: (x.t(),))
    yield "permute", Case("return x.to_sparse().permute(2, 0, 1).to_dense()", (matrix(2, 3, 4),))
    yield "unsqueeze", Case("return x.to_sparse().unsqueeze(0).to_dense(), x.to_sparse().unsqueeze(-1).to_dense()", (a,))
    yield "select", Case("s = x.to_sparse()\n        return s.select(0, 1).to_dense(), s[2].to_dense(), s.select(1, -1).to_dense()", (a,))
    yield "select_vector", Case("return x.to_sparse().select(0, 1)", (torch.tensor([0.0, 2.0, 3.0]),))
    yield "select_hybrid", Case(HYBRID + "return s.select(1, 2).to_dense(), s.select(0, 2)", (dense(4, 3),))
    yield "narrow", Case("return torch.narrow(x.to_sparse(), 1, 1, 2).to_dense()", (a,), lambda x: (x.narrow(1, 1, 2),))
    yield "index_select", Case("return x.to_sparse().index_select(0, y).to_dense(), x.to_sparse().index_select(1, y).to_dense()", (a, torch.tensor([2, 0, 2])))
    yield "cat", Case("return torch.cat([x.to_sparse(), y.to_sparse()], 0).to_dense(), torch.cat([x.to_sparse(), y.to_sparse()], 1).to_dense()", (a, matrix(3, 4, seed=2)))


def all_cases():
    for group in (building, complex_numbers, layouts, elementwise, products, reductions, moves):
        yield from group()


def repeated(x):
    i = torch.tensor([[2, 0, 2, 1, 2, 0], [1, 3, 1, 0, 1, 0]])
    return torch.zeros(3, 4, dtype=x.dtype).index_put((i[0], i[1]), x, accumulate=True)


def over_kept(function):
    """A softmax over the stored elements of `repeated`."""
    def apply(x):
        kept = repeated(torch.ones_like(x)) > 0
        y = function(repeated(x).masked_fill(~kept, -torch.inf), 1)
        return torch.where(kept, y, torch.zeros_like(y))
    return apply


# Gradients of y with respect to x and z. `reference` computes it with dense tensors. Cases that start from a dense x
# (and z, for "both") have gradients only at its stored elements.
def gradients():
    six = dense(6, dtype=torch.float64)
    b = dense(4, 3, dtype=torch.float64)
    a, other = matrix(3, 4, dtype=torch.float64), matrix(3, 4, dtype=torch.float64, seed=5)
    yield "to_dense", Case(REPEATED + "y = s.to_dense()", (six,), repeated)
    yield "mm", Case(REPEATED + "y = torch.mm(s, z)", (six, b), lambda x, z: repeated(x) @ z)
    yield "sparse_mm", Case(REPEATED + "y = torch.sparse.mm(s, z)", (six, b), lambda x, z: repeated(x) @ z)
    yield "mv", Case(REPEATED + "y = torch.mv(s, z)", (six, dense(4, dtype=torch.float64)), lambda x, z: repeated(x) @ z)
    yield "times", Case(REPEATED + "y = (s * 3 + s).to_dense()", (six,), lambda x: repeated(x) * 4)
    yield "add_dense", Case(REPEATED + "y = z + s", (six, dense(3, 4, dtype=torch.float64)), lambda x, z: repeated(x) + z)
    yield "absolute", Case(REPEATED + "y = torch.abs(s).to_dense()", (six,), lambda x: repeated(x).abs())
    yield "sum", Case(REPEATED + "y = torch.sparse.sum(s)", (six,), lambda x: x.sum())
    yield "sum_dim", Case(REPEATED + "y = torch._sparse_sum(s, [0]).to_dense()", (six,), lambda x: repeated(x).sum(0))
    yield "softmax", Case(REPEATED + "y = torch.sparse.softmax(s, 1).to_dense()", (six,), over_kept(torch.softmax))
    yield "log_softmax", Case(REPEATED + "y = torch.sparse.log_softmax(s, 1).to_dense()", (six,), over_kept(torch.log_softmax))
    yield "transposed", Case(REPEATED + "y = torch.mm(s.t(), z)", (six, dense(3, 2, dtype=torch.float64)), lambda x, z: repeated(x).t() @ z)
    yield "csr_of_parts", Case(
        "s = torch.sparse_csr_tensor(torch.tensor([0, 2, 2, 3]), torch.tensor([0, 2, 1]), x, [3, 4])\n        y = torch.mm(s, z)",
        (dense(3, dtype=torch.float64), b),
        lambda x, z: torch.zeros(3, 4, dtype=x.dtype).index_put((torch.tensor([0, 0, 2]), torch.tensor([0, 2, 1])), x) @ z)
    yield "masked_to_sparse", Case("y = x.to_sparse().to_dense() * 2", (a,), lambda x: x * 2)
    yield "masked_csr", Case("s = x.to_sparse_csr()\n        y = torch.mm(s, z)", (matrix(5, 4, dtype=torch.float64), b), torch.mm)
    yield "masked_bsr", Case("s = x.to_sparse_bsr([1, 2])\n        y = torch.mm(s, z)", (matrix(5, 4, dtype=torch.float64), b), torch.mm)
    yield "both_mul", Case("y = (x.to_sparse() * z.to_sparse()).to_dense()", (a, other), torch.mul)
    yield "both_mm", Case("y = torch.sparse.mm(x.to_sparse(), z.to_sparse()).to_dense()", (a, matrix(4, 5, dtype=torch.float64, seed=5)), torch.mm)
    lower = torch.tril(matrix(4, 4, density=0.7, dtype=torch.float64)) + 3 * torch.eye(4, dtype=torch.float64)
    yield "masked_solve", Case("y = torch.triangular_solve(z, x.to_sparse_csr(), upper=False)[0]", (lower, b),
                               lambda x, z: torch.linalg.solve_triangular(x, z, upper=False))
    yield "masked_solve_transposed", Case("y = torch.triangular_solve(z, x.to_sparse_csr(), upper=False, transpose=True)[0]", (lower, b),
                                          lambda x, z: torch.linalg.solve_triangular(x.t(), z, upper=True))
