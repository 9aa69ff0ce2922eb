"""Calls at the edges of kernels' conditions: ties, a single NaN, empty tensors, one dimension less."""

import math

import torch
import torchvision  # noqa: F401: registers the operators

from tests.ops.case import COMPLEX, FULL, case, t
from tests.ops.cases.refusals import MATRIX, SCALAR, bools, ints, refused

F32, F64, C64 = torch.float32, torch.float64, torch.complex64
NAN, INFINITY = math.nan, math.inf



def deformed(y, x):
    """One pixel is infinite, so that it must not be read even with weight zero; the first position is moved by (y,
    x)."""
    image, offset = [[[[INFINITY, 1.0], [2.0, 3.0]]]], [[[[y, 0.0], [0.0, 0.0]], [[x, 0.0], [0.0, 0.0]]]]
    return case("torchvision::deform_conv2d", t(values=image), t(values=[[[[1.0]]]]), t(values=offset), t(1, 1), t(values=[0.0]),
                1, 1, 0, 0, 1, 1, 1, 1, False, dtypes=FULL, gradient=False, strided=False)


CASES = [
    # images and their regions
    deformed(-1.0, 0.0), deformed(0.0, -1.0), deformed(2.0, 0.5), deformed(0.5, 2.0),
    deformed(NAN, 5.0), deformed(5.0, NAN),  # for NaN in one coordinate torchvision reads out of bounds
    case("torchvision::roi_pool", t(values=[[[[7.0] * 4] * 4]]), t(values=[[0.0, 0.0, 0.0, 3.0, 3.0]]), 1.0, 2, 2, dtypes=FULL, gradient="no differences"),
    # rows of tables
    case("aten::embedding_renorm_", t(values=[[1.0, 0.0], [3.0, 4.0]]), ints(0, 1), 1.0, 2.0, dtypes=[F64]),
    case("aten::embedding_renorm_", t(values=[[1.0, 0.0], [3.0, 4.0]]), ints(0, 1), 5.0, 2.0, dtypes=[F64]),
    case("aten::embedding_renorm_", t(values=[[1.0, 2.0], [3.0, 4.0]]), ints(0, 1), 3.0, INFINITY, dtypes=[F64]),
    case("aten::embedding_dense_backward", t(3, 5), ints(0, 2, 0), 3, 0, False, dtypes=FULL),
    case("aten::_embedding_bag", t(6, 5), ints(0, 1, 0, 2), ints(0, 2), False, 0, False, None, False, 0, gradient=False, strided=False),
    case("aten::embedding_bag.padding_idx", t(4, 3), ints(0, 1, 0), ints(0, 2), False, 1, False, None, False, -4, dtypes=FULL),
    # indices
    case("aten::bincount", ints(), t(0)),
    case("aten::bincount", ints(1, 0, 1), t(3), dtypes=[F32, F64, torch.float16]),
    case("aten::fill_diagonal_", t(3, 2), 1.0, True, strided=False), case("aten::fill_diagonal_", t(4, 2), 1.0, True, strided=False),
    case("aten::fill_diagonal_", t(9, 2), 1.0, True, strided=False), case("aten::fill_diagonal_", t(2, 5), 1.0, True, strided=False),
    case("aten::fill_diagonal_", t(3, 3, 3), 1.0, True, strided=False),
    case("aten::scatter.src", t(3), 0, ints(1), SCALAR), case("aten::scatter.src", SCALAR, 0, ints(0), t(1)),
    case("aten::scatter.value", SCALAR, 0, ints(0), 2.0), case("aten::gather", SCALAR, 0, ints(0)),
    case("aten::index_reduce", SCALAR, 0, ints(0), t(1), "amax", gradient=False),
    case("aten::index_reduce", t(3), 0, ints(1), t(1), "prod", gradient=False),
    case("aten::kthvalue", SCALAR, 1, 0, False, dtypes=FULL), case("aten::kthvalue", t(3, 4), 2, 1, True, dtypes=FULL),
    case("aten::kthvalue", t(3, 4), 2, 1, False, dtypes=FULL),
    case("aten::unique_dim", t(0, 3), 0, True, True, True),
    *[case("aten::scatter_reduce.two", t(values=[1.0, 2.0, 3.0]), 0, ints(0, 1, 1, 1), t(values=[NAN, 0.0, NAN, 1.0]), reduce, gradient=False)
      for reduce in ("amax", "amin")],
    case("aten::index.Tensor", t(3, 4), [bools(3, 4)]),
    # numbers
    case("aten::isclose", t(values=[0j, 0j, 1j]), t(values=[1 + 0j, 1.5j, 1j]), 0.0, 1.0, dtypes=COMPLEX),
    case("aten::isclose", t(values=[1 + 0j, 1 + 0j]), t(values=[complex(INFINITY, 0), 1 + 0j]), dtypes=COMPLEX),
    case("aten::isclose", t(values=[complex(NAN, 0), 1 + 0j]), t(values=[1 + 0j, complex(NAN, 0)]), 0.1, 0.1, True, dtypes=COMPLEX),
    case("aten::arange.start", 1.0, 1.0), case("aten::arange.start_step", 1.0, 1.0, -1.0), case("aten::arange.start", 3, 3),
    case("aten::inner", t(3), SCALAR), case("aten::inner", SCALAR, t(3)),
    case("aten::prod.dim_int", t(3, 1), 1, False, dtypes=COMPLEX), case("aten::prod.dim_int", t(3, 2), 1, True, dtypes=COMPLEX),
    case("aten::prod.dim_int", t(3, 2), 1, False, dtype=torch.complex128, dtypes=[C64], gradient=False),
    case("aten::pad", t(3), [1, 1], "constant", 2.0, dtypes=COMPLEX),
    case("aten::value_selecting_reduction_backward", SCALAR, 0, t(values=0, dtype=torch.int64), [], False, gradient=False),
    case("aten::addr", bools(2, 3), bools(2), t(3), beta=2, alpha=3, gradient=False),
    case("aten::addr", bools(2, 3), t(2), bools(3), beta=2, alpha=3, gradient=False),
    refused("aten::einsum", "ijk->ij", [MATRIX], says="does not match the number of dimensions"),
    case("aten::einsum", "ij...->ij", [MATRIX]),
    refused("aten::embedding_bag.padding_idx", t(6, 3), ints(0), ints(0), False, 0, False, None, False, -7,
            says="padding_idx must be within the number of embeddings, -6 through 5, but got -7"),
    # spectra
    case("aten::fft_fft", t(5), norm="backward", dtypes=FULL, atol=1e-4),
    case("aten::fft_fftn", t(3, 4), [3, 5], dtypes=COMPLEX, atol=1e-4), case("aten::fft_fftn", t(3, 4), [-1, 5], dtypes=COMPLEX, atol=1e-4),
    case("aten::fft_irfftn", t(3, 4), [3, -1], dtypes=COMPLEX, atol=1e-4), case("aten::fft_rfftn", t(3, 4), [3, -1], dtypes=FULL, atol=1e-4),
    case("aten::istft", t(2, 5, 9), 8, 2, None, None, True, False, True, 40, False, dtypes=COMPLEX, atol=1e-4),
    case("aten::stft", t(2, 30), 8, 3, None, t(8, dtype=C64), False, False, True, atol=1e-4, gradient=False),
    case("aten::stft", t(2, 8), 8, 3, None, None, False, None, True, dtypes=FULL, atol=1e-4),
    # matrices
    case("aten::linalg_norm", t(3, 4), 1.0, [0], dtypes=FULL), case("aten::linalg_norm", t(3, 4), None, None, False, dtype=F64),
    case("aten::linalg_matrix_norm", t(3, 4), 1.0, dtype=torch.complex128, dtypes=[C64], gradient=False),
    case("aten::linalg_matrix_norm", t(3, 4), 1.0, dtype=F32, gradient=False),
    case("aten::linalg_cond.p_str", t(0, 0), "fro", gradient=False), case("aten::linalg_cond.p_str", t(2, 0, 0), "nuc", gradient=False),
    case("aten::linalg_eigvalsh", t(3, 3), "u", dtypes=FULL, gradient=False), case("aten::linalg_eigvalsh", t(3, 3), "l", gradient=False),
    case("aten::linalg_lstsq", t(3, 2), t(3, 0), gradient=False),
    refused("aten::linalg_norm.ord_str", MATRIX, "fro", [0], says="dim must be a 2-tuple"),
    refused("aten::linalg_norm.ord_str", t(3), "fro", says="at least 2"),
    refused("aten::linalg_cholesky", t(2, 2, dtype=torch.bfloat16), says="cholesky_cpu"),
    refused("aten::linalg_svdvals", t(values=[[NAN, 0.0], [0.0, 1.0]]), says="contained non-finite values"),
]
