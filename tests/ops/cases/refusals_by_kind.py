"""More arguments that operators must refuse, by kind of error: dtypes, mismatched sizes, numbers out of range."""

import math

import torch

from tests.ops.case import t
from tests.ops.cases.refusals import CUBE, DOUBLE, MATRIX, SCALAR, bools, ints, refused



def bag(index, mode):
    return t(3, 2), ints(0, index), ints(0), False, mode


CASES = [
    # dtypes
    refused("aten::index_reduce", t(3), 0, t(1), t(1), "prod", says="index_reduce(): Expected dtype int32/int64 for index"),
    refused("aten::index_reduce", t(3), 0, ints(0), t(1, dtype=torch.float64), "prod", says="expected to have the same scalar type"),
    refused("aten::searchsorted.Tensor", t(3), t(2), sorter=t(3), says="sorter must be a tensor of long dtype"),
    refused("aten::lu_unpack", t(2, 2), ints(1, 2), says="LU_pivots is expected to be a contiguous tensor of torch.int32"),
    refused("aten::linalg_ldl_solve", t(2, 2), t(2), t(2, 1), says="Expected pivots to be integers"),
    refused("aten::linalg_multi_dot", [t(2, 2), DOUBLE], says="all tensors must have be the same dtype"),
    refused("aten::nll_loss", t(2, 3, dtype=torch.int64), ints(0, 1), says="nll_loss"),
    refused("aten::frexp.Tensor", ints(1, 2), says="torch.frexp() only supports floating-point dtypes"),
    refused("aten::pdist", t(2, 3, dtype=torch.int64), says="pdist only supports floating-point dtypes"),
    refused("aten::quantile.scalar", ints(1, 2), 0.5, says="input tensor must be either float or double dtype"),
    refused("aten::quantile", t(3), t(values=[0.5], dtype=torch.float64), says="q tensor must be same dtype as the input"),
    refused("aten::cov", bools(2, 3), says="bool dtype is not supported for input"),
    refused("aten::fractional_max_pool2d", t(1, 4, 4), [2, 2], [2, 2], t(1, 1, 2, dtype=torch.float64),
            says="Expect _random_samples to have the same dtype as input"),
    refused("aten::fft_fftfreq", 4, 1.0, dtype=torch.int64, says="fftfreq requires a floating point or complex dtype"),
    # sizes
    refused("aten::index_add", t(3, 4), 0, ints(0, 1), t(2, 3), says="the sizes of self and source differ at dimension"),
    refused("aten::fill_diagonal_", CUBE, 1.0, says="all dimensions of input must be of equal length"),
    refused("aten::pad_sequence", [], says="received an empty list of sequences"),
    refused("aten::pad_sequence", [SCALAR], says="pad_sequence: expected sequences of at least one dimension"),
    refused("aten::put_", t(0), ints(0), t(1), says="put_(): Expected self to be non-empty"),
    refused("aten::linalg_lu", t(2), says="linalg.lu: Expected tensor with 2 or more dimensions"),
    refused("aten::linalg_matrix_norm", CUBE, 1.0, [0, 1, 2], says="dim must be a 2-tuple"),
    refused("aten::linalg_lstsq", MATRIX, SCALAR, says="other must have at least 1 dimension"),
    refused("aten::ormqr", t(3, 2), t(2), t(3), says="other must have at least 2 dimensions"),
    refused("aten::chain_matmul", [], says="chain_matmul(): Expected one or more matrices"),
    refused("aten::einsum", "ij", [], says="einsum(): must provide at least one operand"),
    refused("aten::linear", SCALAR, MATRIX, says="linear(): input must be at least 1-D"),
    refused("aten::addr", t(3, 3), t(2), t(2), says="must match the size of tensor b"),
    refused("aten::bilinear", MATRIX, t(4), t(1, 3, 4), says="bilinear(): input dimensions do not match"),
    refused("aten::bilinear", MATRIX, t(3, 4), t(1, 3, 4), says="bilinear(): input batch dimensions do not match"),
    refused("aten::nll_loss", CUBE, ints(0), says="input tensor should be 1D or 2D"),
    refused("aten::max_unpool2d", t(1, 2, 2), t(1, 2, 3, dtype=torch.int64), [4, 4], says="Expected shape of indices to be same"),
    refused("aten::cov", MATRIX, fweights=t(1, 3, dtype=torch.int64), says="to have one or fewer dimensions"),
    refused("aten::cov", MATRIX, fweights=ints(1, 2), says="to have the same numel as there are observations"),
    refused("aten::diff", MATRIX, 1, -1, t(2), says="diff expects prepend or append to be the same dimension as input"),
    refused("aten::gru_cell", t(3), t(1, 3), t(9, 3), t(9, 3), says="recurrent cell must have 2 dimensions"),
    refused("aten::gru_cell", t(1, 3), t(3), t(9, 3), t(9, 3), says="recurrent cell must have 2 dimensions"),
    refused("aten::pad", t(3), [1], says="Length of pad must be even"),
    refused("aten::diag_embed", SCALAR, says="diag_embed: a 0-dim tensor has no diagonal"),
    refused("aten::fliplr", t(2), says="Input must be >= 2-d."),
    refused("aten::flipud", SCALAR, says="Input must be >= 1-d."),
    refused("aten::upsample_nearest2d.vec", t(1, 1, 2, 2), None, [2.0], says="scale factors for a"),
    refused("aten::copy_", t(2), t(3), says="must match the size of tensor b"),
    refused("aten::fft_fftn", t(2), [2, 2], says="Got shape with 2 values but input tensor only has 1 dimensions"),
    refused("aten::one_hot", t(0, dtype=torch.int64), 0, says="Can not infer total number of classes from empty tensor"),
    refused("aten::segment_reduce", t(3), "sum", says="Either lengths or offsets must be defined"),
    # numbers
    *[refused("aten::embedding_bag", *bag(index, mode), says="embedding_bag: Expected idx >= 0 && idx < num_embeddings")
      for mode in (0, 1, 2) for index in (3, -1)],
    refused("aten::arange", math.inf, says="unsupported range"),
    refused("aten::fft_fft", t(4), None, -1, "wrong", says="Invalid normalization"),
    refused("aten::searchsorted.Tensor", t(3), t(2), side="middle", says="side can only be 'left' or 'right'"),
    refused("aten::cdist", MATRIX, MATRIX, -1.0, says="cdist only supports non-negative p values"),
    refused("aten::pdist", MATRIX, -1.0, says="pdist only supports non-negative p values"),
    refused("aten::huber_loss", t(2), t(2), 1, 0.0, says="huber_loss does not support non-positive values for delta"),
    refused("aten::renorm", MATRIX, 2.0, 0, -1.0, says="renorm: expected maxnorm to be >= 0"),
    refused("aten::cov", MATRIX, fweights=ints(1, -1, 1), says="cannot be negative"),
    refused("aten::segment_reduce", t(3), "sum", lengths=ints(-1, 4), says="lengths contains negative value"),
    refused("aten::permute", MATRIX, [0, 0], says="permute(): duplicate dims are not allowed"),
    refused("aten::narrow", t(4), 0, 3, 2, says="exceeds dimension size"),
    refused("aten::grid_sampler", t(1, 1, 2, 2, 2), t(1, 2, 2, 2, 3), 2, 0, False, says="bicubic interpolation only supports 4D input"),
    refused("aten::repeat_interleave.self_Tensor", t(2), ints(1, 2), 0, output_size=7, says="allocated size does not match"),
]
