"""More composite operators: differences, quantiles, products, distances, copies with a part replaced."""

import torch

from tests.ops.case import ALL, FLOATING, FULL, INTEGRAL, NUMERIC, case, t

LOOSE = {"rtol": 1e-4, "atol": 1e-4}
INDEX = torch.int64


def longs(*values):
    return t(values=list(values), dtype=INDEX)


def diffs():
    yield case("aten::diff", t(2, 5), dtypes=ALL)
    yield case("aten::diff", t(4, 3), 2, 0, dtypes=FULL)
    yield case("aten::diff", t(4, 3), 0, dtypes=FULL)
    yield case("aten::diff", t(3), 5, dtypes=FULL)
    yield case("aten::diff", t(2, 0), dtypes=FULL)
    yield case("aten::diff", t(2, 3), 1, -1, t(2, 2), t(2, 1), dtypes=FULL)
    yield case("aten::diff", t(2, 3), 1, 0, None, t(4, 3), dtypes=FULL)
    yield case("aten::diff", t(), error="diff expects input to be at least one-dimensional")
    yield case("aten::diff", t(2, 3), 1, 0, t(2, 4), error="diff expects the shape of tensor to prepend or append")
    for name in ("trapezoid", "trapz"):
        yield case(f"aten::{name}.dx", t(3, 4), dx=0.5, dtypes=FULL)
        yield case(f"aten::{name}.dx", t(3, 4), dim=0, dtypes=FULL + INTEGRAL)
        yield case(f"aten::{name}.dx", t(3, 1), dtypes=FULL)
        yield case(f"aten::{name}.dx", t(3, 0), dtypes=FULL)
        yield case(f"aten::{name}.x", t(3, 4), t(4), dtypes=FULL)
        yield case(f"aten::{name}.x", t(3, 4), t(3), dim=0, dtypes=FULL)
        yield case(f"aten::{name}.x", t(3, 4), t(3, 4), dtypes=FULL)
        yield case(f"aten::{name}.x", t(3, 4), t(5), error="There must be one `x` value for each sample point")
    yield case("aten::cumulative_trapezoid.dx", t(3, 4), dx=2, dtypes=FULL)
    yield case("aten::cumulative_trapezoid.dx", t(3, 4), dim=0, dtypes=FULL)
    yield case("aten::cumulative_trapezoid.x", t(3, 4), t(4), dtypes=FULL)
    yield case("aten::cumulative_trapezoid.x", t(3, 4), t(3, 4), dim=0, dtypes=FULL)


def quantiles():
    for name in ("quantile", "nanquantile"):
        for how in ("linear", "lower", "higher", "midpoint", "nearest"):
            yield case(f"aten::{name}", t(4, 5), t(values=[0.0, 0.3, 1.0]), 1, interpolation=how, dtypes=FULL,
                       gradient="no differences")
        yield case(f"aten::{name}", t(4, 5), t(values=0.4), 0, True, dtypes=FULL)
        yield case(f"aten::{name}", t(4, 5, 2), t(values=[0.25, 0.5]), 1, True, dtypes=FULL)
        yield case(f"aten::{name}", t(4, 5, 2), t(values=[0.25, 0.5]), -3, dtypes=FULL)
        yield case(f"aten::{name}", t(4, 5), t(values=[0.2]), None, True, dtypes=FULL)
        yield case(f"aten::{name}", t(7), t(values=0.9), dtypes=FULL)
        yield case(f"aten::{name}", t(), t(values=[0.1, 0.5]), 0, dtypes=FULL)
        yield case(f"aten::{name}.scalar", t(4, 5), 0.35, 1, dtypes=FULL)
        yield case(f"aten::{name}.scalar", t(4, 5), 0.5, dtypes=FULL)
        nan = float("nan")
        yield case(f"aten::{name}.scalar", t(values=[[1.0, nan, 3.0], [2.0, 0.0, 5.0]]), 0.5, 1, dtypes=FULL)
        yield case(f"aten::{name}.scalar", t(3), 1.5, error="q must be in the range [0, 1] but got 1.5")
        yield case(f"aten::{name}", t(0), t(values=0.5), error="input tensor must be non-empty")
        yield case(f"aten::{name}", t(3), t(values=[0.5, 2.0]), error="q values must be in the range [0, 1]")
    yield case("aten::mode", t(values=[[3, 1, 3, 2], [2, 2, 1, 1]]), dtypes=NUMERIC, gradient="no differences")
    yield case("aten::mode", t(5, 3, low=-1, high=1), 0, True, dtypes=INTEGRAL)
    yield case("aten::mode", t(), dtypes=FULL)
    yield case("aten::mode", t(2, 0), error="Expected reduction dim")
    yield case("aten::histc", t(40), 8, dtypes=FULL)
    yield case("aten::histc", t(4, 10), 5, -2, 2, dtypes=FULL)
    yield case("aten::histc", t(values=[1.0, 2.0, 2.0, 3.0]), 4, 0, 3, dtypes=FULL)
    yield case("aten::histc", t(values=[2.0, 2.0]), 3, dtypes=FULL)
    yield case("aten::histc", t(0), 3, dtypes=FULL)
    yield case("aten::histc", t(3), 0, error="bins must be > 0")
    yield case("aten::histc", t(3), 5, 2, 1, error="max must be larger than min")
    yield case("aten::cov", t(3, 6), dtypes=FULL, **LOOSE)
    yield case("aten::cov", t(6), correction=0, dtypes=FULL, **LOOSE)
    yield case("aten::cov", t(3, 4), fweights=longs(1, 2, 0, 3), dtypes=FULL, **LOOSE)
    yield case("aten::cov", t(3, 4), aweights=t(values=[0.5, 1.0, 2.0, 0.25]), dtypes=FULL, **LOOSE)
    yield case("aten::cov", t(3, 4), fweights=longs(1, 2, 0, 3), aweights=t(values=[0.5, 1.0, 2.0, 0.25]), dtypes=FULL, **LOOSE)
    yield case("aten::cov", t(2, 3, 4), error="expected input to have two or fewer dimensions")
    yield case("aten::corrcoef", t(3, 6), dtypes=FULL, **LOOSE)
    yield case("aten::corrcoef", t(6), dtypes=FULL, gradient=False)


def stacks():
    for name, sizes in (("hsplit", (2, 6)), ("vsplit", (6, 2)), ("dsplit", (2, 2, 6))):
        yield case(f"aten::{name}.int", t(*sizes), 3, dtypes=FULL)
        yield case(f"aten::{name}.array", t(*sizes), [1, 4], dtypes=FULL)
        yield case(f"aten::{name}.int", t(*sizes), 4, error="is not divisible by the split_size 4")
        yield case(f"aten::{name}.int", t(), 1, error="requires a tensor with at least")
    yield case("aten::hsplit.int", t(4), 2, dtypes=FULL)
    yield case("aten::column_stack", [t(3), t(3, 2), t(3)], dtypes=FULL)
    yield case("aten::column_stack", [t(), t()], dtypes=FULL)
    yield case("aten::narrow_copy", t(4, 3), 0, 1, 2, dtypes=ALL)
    yield case("aten::narrow_copy", t(4, 3), 1, 0, 0, dtypes=FULL)
    yield case("aten::diagflat", t(2, 2), dtypes=FULL)
    yield case("aten::diagflat", t(3), -1, dtypes=FULL)
    yield case("aten::cartesian_prod", [t(2), t(3)], dtypes=FULL)
    yield case("aten::cartesian_prod", [t(2)], dtypes=FULL)
    yield case("aten::cartesian_prod", [t(2, 2)], error="Expect a 1D vector")
    yield case("aten::combinations", t(5), dtypes=FULL)
    yield case("aten::combinations", t(4), 3, True, dtypes=FULL)
    yield case("aten::combinations", t(2), 3, dtypes=FULL)
    yield case("aten::combinations", t(3), 0, dtypes=FULL, gradient=False)
    yield case("aten::combinations", t(2, 2), error="Expect a 1D vector")


def parts():
    yield case("aten::select_scatter", t(3, 4), t(4), 0, 1, dtypes=ALL)
    yield case("aten::select_scatter", t(3, 4), t(3), -1, -2, dtypes=FULL)
    yield case("aten::select_scatter", t(3, 4), t(3), 0, 1, error="expected src to have a size equal to the slice of self")
    yield case("aten::slice_scatter", t(5, 3), t(2, 3), 0, 1, 5, 2, dtypes=ALL)
    yield case("aten::slice_scatter", t(5, 3), t(5, 3), dtypes=FULL)
    yield case("aten::slice_scatter", t(5, 3), t(5, 2), 1, -2, None, dtypes=FULL)
    yield case("aten::diagonal_scatter", t(3, 4), t(3), dtypes=ALL)
    yield case("aten::diagonal_scatter", t(3, 4, 2), t(2, 3), 1, dtypes=FULL)
    yield case("aten::take_along_dim", t(3, 4), t(values=[[0, 3], [1, 1], [2, 0]], dtype=INDEX), 1, dtypes=ALL)
    yield case("aten::take_along_dim", t(1, 4), t(values=[[0], [3], [1]], dtype=INDEX), 1, dtypes=FULL)
    yield case("aten::take_along_dim", t(3, 4), longs(5, 0, 11), strided=False, dtypes=FULL)
    yield case("aten::take_along_dim", t(3, 4), longs(1, 2), 0, error="should have the same number of dimensions")
    yield case("aten::put", t(3, 4), longs(0, 5, -1), t(3), dtypes=ALL)
    yield case("aten::put", t(3, 4), longs(5, 5, 1), t(3), True, dtypes=NUMERIC)
    yield case("aten::put", t(3, 4), t(values=[[0, 1], [2, 3]], dtype=INDEX), t(2, 2), dtypes=FULL)
    yield case("aten::put", t(3, 4), longs(0, 1), t(3), error="to have the same number of elements")


def exponents():
    yield case("aten::frexp.Tensor", t(3, 4), dtypes=FLOATING)
    yield case("aten::frexp.Tensor", t(values=[0.0, -0.0, 8.0, 0.1, 1e-40]), dtypes=FULL, gradient="no differences")
    yield case("aten::ldexp.Tensor", t(3, 4), t(4), dtypes=FULL)
    yield case("aten::ldexp.Tensor", t(3, 4), t(3, 4), dtypes=INTEGRAL)
    for name in ("fft_fftshift", "fft_ifftshift"):
        yield case(f"aten::{name}", t(5, 4), dtypes=FULL)
        yield case(f"aten::{name}", t(5, 4), [1], dtypes=FULL)
        yield case(f"aten::{name}", t(3, 5), [0, -1], dtypes=FULL)
    # PyTorch's gradient reads uninitialized memory.
    yield case("aten::as_strided_scatter", t(3, 4), t(2, 2), [2, 2], [1, 3], strided=False, dtypes=FULL, gradient=False)
    yield case("aten::as_strided_scatter", t(3, 4), t(3), [3], [4], 1, strided=False, dtypes=FULL, gradient=False)


def comparisons():
    near = t(values=[1.0, 1.000001, 2.0, float("nan"), float("inf")])
    far = t(values=[1.0, 1.0, 2.1, float("nan"), float("inf")])
    yield case("aten::isclose", near, far, dtypes=FULL)
    yield case("aten::isclose", near, far, 1e-5, 1e-8, True, dtypes=FULL)
    yield case("aten::isclose", near, far, 0, 0, dtypes=FULL)
    yield case("aten::isclose", t(3, 4), t(4), 0.5, 1.0, dtypes=NUMERIC)
    yield case("aten::isclose", t(3), t(3), -1, error="rtol must be greater than or equal to zero")
    yield case("aten::allclose", t(3, 4), t(4), 0.5, 10.0, dtypes=FULL)
    yield case("aten::allclose", t(3, 4), t(4), dtypes=FULL)
    yield case("aten::equal", t(3), t(3), dtypes=ALL)
    yield case("aten::equal", t(values=[1, 2]), t(values=[1, 2]), dtypes=NUMERIC)
    yield case("aten::equal", t(2), t(3), dtypes=FULL)
    yield case("aten::equal", t(0), t(0), dtypes=FULL)
    for invert in (False, True):
        yield case("aten::isin.Tensor_Tensor", t(4, 5), t(3), invert=invert, dtypes=FULL + INTEGRAL)
        yield case("aten::isin.Tensor_Scalar", t(values=[1, 2, 3]), 2, invert=invert, dtypes=FULL + INTEGRAL)
        yield case("aten::isin.Scalar_Tensor", 2, t(values=[1, 2, 3]), invert=invert, dtypes=FULL + INTEGRAL)
    yield case("aten::isin.Tensor_Tensor", t(values=[1.0, float("nan")]), t(values=[float("nan"), 1.0]), dtypes=FULL)
    yield case("aten::isin.Tensor_Tensor", t(0), t(3), dtypes=FULL)
    yield case("aten::isin.Tensor_Tensor", t(3), t(0), dtypes=FULL)
    yield case("aten::float_power.Tensor_Tensor", t(3, 4, low=0.1), t(4), dtypes=FLOATING + INTEGRAL)
    yield case("aten::float_power.Tensor_Scalar", t(3, low=0.1), 2, dtypes=FLOATING + INTEGRAL)
    yield case("aten::float_power.Scalar", 2, t(3), dtypes=FLOATING + INTEGRAL)
    for name in ("conj", "real", "resolve_conj", "resolve_neg", "conj_physical", "lift_fresh"):
        yield case(f"aten::{name}", t(2, 3), dtypes=ALL if name != "lift_fresh" else FULL)
    yield case("aten::isreal", t(2, 3), dtypes=ALL)
    yield case("aten::angle", t(values=[-1.5, 0.0, 2.0, -0.0]), dtypes=FULL, gradient="no differences")
    yield case("aten::angle", t(3), dtypes=INTEGRAL)
    yield case("aten::signbit", t(values=[-0.0, 0.0, -1.0, float("-inf"), float("nan")]), dtypes=FLOATING)


def products():
    yield case("aten::addr", t(3, 4), t(3), t(4), dtypes=FULL)
    yield case("aten::addr", t(1, 4), t(3), t(4), beta=0.5, alpha=2, dtypes=FULL)
    yield case("aten::addr", t(values=float("nan")), t(3), t(4), beta=0, dtypes=FULL, gradient=False)
    yield case("aten::addr", t(3, 4), t(3), t(4), dtypes=INTEGRAL)
    yield case("aten::addr", t(3, 4), t(2, 2), t(4), error="Expected 1-D argument vec1, but got 2-D")
    yield case("aten::inner", t(2, 3), t(4, 3), dtypes=FULL, **LOOSE)
    yield case("aten::inner", t(3), t(3), dtypes=FULL, **LOOSE)
    yield case("aten::inner", t(), t(3), dtypes=FULL)
    yield case("aten::inner", t(2, 3), t(4, 2), error="the last dimension must match on both input tensors")
    yield case("aten::kron", t(2, 3), t(3, 2), dtypes=FULL)
    yield case("aten::kron", t(2), t(2, 3, 1), dtypes=FULL + INTEGRAL)
    yield case("aten::kron", t(), t(3), dtypes=FULL)
    yield case("aten::bilinear", t(4, 3), t(4, 2), t(5, 3, 2), t(5), dtypes=FULL, **LOOSE)
    yield case("aten::bilinear", t(2, 4, 3), t(2, 4, 2), t(5, 3, 2), dtypes=FULL, **LOOSE)
    yield case("aten::bilinear", t(3), t(2), t(5, 3, 2), dtypes=FULL, **LOOSE)
    yield case("aten::bilinear", t(4, 3), t(4, 2), t(5, 2, 2), error="input1 size does not match weight size")
    for p in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf")):
        yield case("aten::cdist", t(4, 3), t(5, 3), p, dtypes=FULL, gradient="no differences" if p in (0.0, 1.0) else True, **LOOSE)
    yield case("aten::cdist", t(2, 30, 3), t(2, 5, 3), dtypes=FULL, **LOOSE)
    yield case("aten::cdist", t(4, 3), t(5, 3), 2.0, 2, dtypes=FULL, **LOOSE)
    yield case("aten::cdist", t(3), t(5, 3), error="cdist only supports at least 2D tensors")
    yield case("aten::cdist", t(4, 3), t(5, 2), error="X1 and X2 must have the same number of columns. X1: 3 X2: 2")
    for p in (1.0, 2.0, 3.0):
        yield case("aten::pdist", t(4, 3), p, dtypes=FULL, **LOOSE)
    yield case("aten::pdist", t(1, 3), dtypes=FULL)


def grouped_mm(a, b, offs=None, bias=None, out_dtype=None):
    """PyTorch 2.8's operator, a product for each group."""
    if offs is None:
        return torch.bmm(a, b)
    ends = offs.tolist()
    groups = list(zip([0] + ends[:-1], ends))
    if a.dim() == 2 and b.dim() == 2:
        return torch.stack([a[:, i:j] @ b[i:j] for i, j in groups])
    out = torch.zeros(a.shape[-2], b.shape[-1], dtype=a.dtype)
    for group, (i, j) in enumerate(groups):
        if b.dim() == 3:
            out[i:j] = a[i:j] @ b[group]
        else:
            out[:, i:j] = a[group] @ b[:, i:j]
    return out


def groups():
    ends = t(values=[2, 2, 5], dtype=torch.int32)
    yield case("aten::_grouped_mm", t(5, 3), t(3, 3, 4), ends, reference=grouped_mm, dtypes=FULL, **LOOSE)
    yield case("aten::_grouped_mm", t(7, 3), t(3, 3, 4), ends, reference=grouped_mm, dtypes=FULL, **LOOSE)
    yield case("aten::_grouped_mm", t(3, 2, 4), t(4, 5), ends, reference=grouped_mm, dtypes=FULL, **LOOSE)
    yield case("aten::_grouped_mm", t(2, 5), t(5, 3), ends, reference=grouped_mm, dtypes=FULL, **LOOSE)
    yield case("aten::_grouped_mm", t(2, 3, 4), t(2, 4, 2), reference=grouped_mm, dtypes=FULL, **LOOSE)


def norms():
    for dim in (0, 1, 2, -1):
        yield case("aten::norm_except_dim", t(3, 4, 2), 2, dim, dtypes=FULL, **LOOSE)
    for dim in (0, 1, 2):
        g = [1, 1, 1]
        g[dim] = (3, 4, 2)[dim]
        yield case("aten::_weight_norm", t(3, 4, 2), t(*g), dim, dtypes=FULL, gradient="first", **LOOSE)
    yield case("aten::renorm", t(3, 4), 2, 0, 1.5, dtypes=FULL, **LOOSE)
    yield case("aten::renorm", t(3, 4), 1, 1, 2.0, dtypes=FULL, **LOOSE)
    yield case("aten::renorm", t(3, 4), 2, 0, 100.0, dtypes=FULL, **LOOSE)
    yield case("aten::renorm", t(3, 4), -1, 0, 1.0, error="non-positive-norm not supported")
    yield case("aten::sum_to_size", t(2, 3, 4), [3, 1], dtypes=FULL, **LOOSE)
    yield case("aten::sum_to_size", t(2, 3), [2, 3], dtypes=FULL)
    yield case("aten::sum_to_size", t(2, 3), [4], error="is not expandable to size")
    yield case("aten::rms_norm", t(3, 4), [4], t(4), 1e-5, reference=rms_norm, dtypes=FULL, **LOOSE)
    yield case("aten::rms_norm", t(2, 3, 4), [3, 4], reference=rms_norm, dtypes=FULL, **LOOSE)
    yield case("aten::rms_norm", t(3, 4), [4], None, 0.1, reference=rms_norm, dtypes=[torch.bfloat16, torch.float16], gradient=False)
    yield case("aten::any.dims", t(2, 3, 4), [0, 2], reference=lambda x, dims, keepdim=False: over(torch.any, x, dims, keepdim), dtypes=ALL)
    yield case("aten::any.dims", t(2, 3), None, True, reference=lambda x, dims, keepdim=False: over(torch.any, x, dims, keepdim), dtypes=ALL)
    yield case("aten::all.dims", t(2, 3, 4), [1], True, reference=lambda x, dims, keepdim=False: over(torch.all, x, dims, keepdim), dtypes=ALL)
    yield case("aten::all.dims", t(2, 0, 4), [1], reference=lambda x, dims, keepdim=False: over(torch.all, x, dims, keepdim), dtypes=ALL)


def rms_norm(x, shape, weight=None, eps=None):
    wide = x.double() if x.dtype == torch.float64 else x.float()
    dims = list(range(x.dim() - len(shape), x.dim()))
    eps = torch.finfo(wide.dtype).eps if eps is None else eps
    out = wide * torch.rsqrt(wide.square().mean(dims, keepdim=True) + eps)
    return (out if weight is None else out * weight).to(x.dtype)


def over(function, x, dims, keepdim):
    """A reduction over several dimensions, as in PyTorch 2.2 and newer."""
    for dim in sorted((d % x.dim() for d in (dims if dims is not None else range(x.dim()))), reverse=True):
        x = function(x, dim, keepdim)
    return x


def rest():
    for name in ("hann_window", "blackman_window", "bartlett_window", "hamming_window"):
        for length in (0, 1, 2, 7, 10):
            yield case(f"aten::{name}", length, **LOOSE)
            yield case(f"aten::{name}.periodic", length, False, dtype=torch.float64, **LOOSE)
        yield case(f"aten::{name}", -1, error="requires non-negative window_length")
    yield case("aten::hamming_window.periodic_alpha", 6, False, 0.6, **LOOSE)
    yield case("aten::hamming_window.periodic_alpha_beta", 6, True, 0.6, 0.4, **LOOSE)
    yield case("aten::result_type.Tensor", t(2), t(values=1.5, dtype=torch.float64), dtypes=ALL)
    yield case("aten::result_type.Scalar", t(2), 1.5, dtypes=ALL)
    yield case("aten::result_type.Scalar_Tensor", 2, t(2), dtypes=ALL)
    yield case("aten::promote_types", torch.int8, torch.float16)
    yield case("aten::promote_types", torch.bool, torch.uint8)
    for a in (torch.bool, torch.uint8, torch.int64, torch.float16):
        for b in (torch.bool, torch.int8, torch.float32):
            yield case("aten::can_cast", a, b)
    for how in ("prod", "mean", "amax", "amin"):
        for include in (True, False):
            for form in ["", "_"]:
                yield case(f"aten::index_reduce{form}", t(4, 3), 0, longs(0, 2, 2), t(3, 3), how, include_self=include, dtypes=FULL,
                           gradient="no differences")
    yield case("aten::index_reduce", t(4, 3), 1, longs(0, 1), t(3, 3), "amax", error="Number of indices (2) should be equal to source.size(dim): (3)")
    yield case("aten::fill_diagonal_", t(4, 3), 2, dtypes=NUMERIC)
    yield case("aten::fill_diagonal_", t(9, 3), 1.5, True, strided=False, dtypes=FULL)
    yield case("aten::fill_diagonal_", t(3, 3, 3), 1, dtypes=FULL)
    yield case("aten::fill_diagonal_", t(3), 1, error="dimensions must larger than 1")
    yield case("aten::pad_sequence", [t(2, 3), t(4, 3)], dtypes=FULL)
    yield case("aten::pad_sequence", [t(2), t(3), t(1)], True, -1.5, dtypes=FULL)
    for name in ("exponential_", "cauchy_", "log_normal_", "random_"):
        yield case(f"aten::{name}", t(3, 4), check="shape", dtypes=FULL)
    yield case("aten::geometric_", t(3, 4), 0.3, check="shape", dtypes=FULL)
    yield case("aten::normal.Tensor_float", t(3, 4), 2.0, check="shape", dtypes=FULL)
    yield case("aten::normal.float_Tensor", 1.0, t(3, 4, low=0), check="shape", dtypes=FULL)
    yield case("aten::normal.Tensor_Tensor", t(3, 1), t(1, 4, low=0), check="shape", dtypes=FULL)
    yield case("aten::normal.float_float", 1.0, 2.0, [3, 4], check="shape")
    yield case("aten::rand.generator", [2, 3], generator=None, check="shape")
    yield case("aten::randn.generator", [2, 3], generator=None, check="shape")


def aliases():
    """Operators with aliases (kernels/composite/aliases.cpp) that had no row under the alias."""
    for name in ("arcsin", "arccos", "arctanh"):
        yield case(f"aten::{name}", t(3, 4, low=-0.9, high=0.9), dtypes=FULL)
    for name in ("arctan", "arcsinh"):
        yield case(f"aten::{name}", t(3, 4), dtypes=FULL)
    yield case("aten::arccosh", t(3, 4, low=1.5, high=4), dtypes=FULL)
    yield case("aten::arctan2", t(3, 4), t(4), dtypes=FULL)
    yield case("aten::clip", t(3, 4), -1, 1.5, dtypes=FULL)
    yield case("aten::clip_", t(3, 4), -1, 1.5, dtypes=FULL)
    for name in ("greater", "greater_equal", "less", "less_equal", "not_equal"):
        yield case(f"aten::{name}.Tensor", t(3, 4), t(4), dtypes=NUMERIC)
        yield case(f"aten::{name}.Scalar", t(3, 4), 1, dtypes=NUMERIC)


CASES = [*aliases(), *diffs(), *quantiles(), *stacks(), *parts(), *exponents(), *comparisons(), *products(), *groups(), *norms(), *rest()]
