// Calls of linear algebra, norms, pools, reductions, views, images, optimizers and the scripts' own operators that must
// be refused: each condition of a check separately.
#include <cmath>

#include "tests/support/operator_rows.h"

namespace tensord::refused_shapes_test {
namespace {

using namespace testing_rows;

constexpr auto kInt = DType::kInt32;

Tensor square() { return zeros({3, 3}); }

TEST(RefusedShapes, Matrices) {
  const Tensor one = run("aten::ones", {ints({3}), kInt}).to_tensor();
  const Value complex = zeros({2, 3}, DType::kComplex64);
  expect_rows({
      {"aten::cholesky_solve", {zeros({2, 1}), matrix()}, "A must be batches of square matrices, but they are 2 by 3"},
      {"aten::cholesky_inverse", {matrix()}, "cholesky_inverse: A must be batches of square matrices"},
      {"aten::linalg_matrix_exp", {complex}, "linalg.matrix_exp: A must be batches of square matrices"},
      {"aten::linalg_ldl_solve", {matrix(), one, zeros({2, 1})}, "must be batches of square matrices"},
      {"aten::linalg_ldl_solve", {square(), one, zeros({2, 1})}, "Incompatible matrix sizes for"},
      {"aten::linalg_lu_solve", {matrix(), one, zeros({2, 1})}, "LU must be batches of square matrices"},
      {"aten::linalg_lu_solve", {square(), one, zeros({2, 1})}, "Incompatible shapes of A and B"},
      {"aten::linalg_lu_solve",
       {zeros({2, 3, 3}), one, zeros({2, 3, 1})},
       "Expected LU.shape[:-1] and pivots.shape to be the same"},
      {"tensord::exchange_rows", {matrix(), one, false}, "must be between 1 and LU.size(-2) inclusive"},
      {"aten::_lu_with_info", {square(), true, true}, "torch.linalg.lu_factor_ex"},
      {"aten::linalg_norm.ord_str", {cube(), "fro", ints({0, 1, 2})}, "it must be of length 1 or 2. Got [0, 1, 2]"},
      {"aten::linalg_norm.ord_str", {cube(), "fro", ints({})}, "it must be of length 1 or 2. Got []"},
      {"aten::linalg_norm.ord_str", {cube(), "fro"}, "the input must be 1D or 2D. Got 3D."},
      {"aten::linalg_norm.ord_str", {scalar(), "fro"}, "the input must be 1D or 2D. Got 0D."},
      {"aten::nuclear_norm", {cube()}, "Expected a tensor with 2 dimensions, but got a tensor with 3 dimensions"},
      {"aten::nuclear_norm", {vector()}, "but got a tensor with 1 dimension instead"},
      {"aten::nuclear_norm.dim", {cube(), ints({0, 1, 2})}, "nuclear norm requires a 'dim' argument of size 2"},
      {"aten::linalg_cond.p_str", {square(), "max"}, "linalg.cond got an invalid norm type: max"},
      {"aten::linalg_cond.p_str", {matrix(), "fro"}, "linalg.cond(ord=fro): A must be batches of square matrices"},
      {"aten::linalg_matrix_norm.str_ord", {matrix(), "max"}, "Order max not supported"},
      {"aten::linalg_matrix_norm.str_ord", {matrix(), "fro", ints({-2, -1}), false, kLong}, "the dtype of the input"},
      {"aten::linalg_matrix_norm.str_ord", {complex, "fro", ints({-2, -1}), false, kFloat}, "the dtype of the input"},
      {"aten::linalg_matrix_norm.str_ord",
       {zeros({2, 3}, kDouble), "fro", ints({-2, -1}), false, kFloat},
       "the dtype of the input"},
      {"aten::linalg_vander", {zeros({3}, DType::kBool)}, "but got Bool"},
      {"aten::linalg_multi_dot", {tensors({vector(), zeros({3, 3}), cube()})}, "the last tensor must be 1D or 2D"},
      {"aten::linalg_multi_dot", {tensors(std::vector<Value>(1001, square()))}, "1001 tensors are too many"},
      {"aten::linalg_householder_product",
       {zeros({2, 4, 3}), zeros({3, 2})},
       "Expected batch dimensions of tau to be equal"},
      {"aten::linalg_slogdet", {matrix()}, "linalg.slogdet: A must be batches of square matrices"},
      {"aten::slogdet", {matrix()}, "A must be batches of square matrices"},
      {"aten::logdet", {matrix()}, "logdet: A must be batches of square matrices"},
      {"aten::linalg_solve_triangular", {square(), vector(), true}, "must have at least 2 dimensions"},
      {"aten::triangular_solve", {zeros({3, 1}), vector()}, "2"},
      {"aten::linalg_cholesky_ex", {square(), false, true}, "linalg.cholesky_ex"},
      {"aten::linalg_ldl_factor_ex", {square(), false, true}, "linalg.ldl_factor_ex"},
      {"aten::linalg_lu_factor_ex", {square(), true, true}, "torch.linalg.lu_factor_ex"},
      {"aten::mT", {vector()}, "tensor.mT is only supported on matrices or batches of matrices. Got 1-D"},
  });
  EXPECT_EQ(run("aten::linalg_lu_factor_ex", {square(), true, false}).to_tensor().sizes(), (Dims{3, 3}));
}

TEST(RefusedShapes, Norms) {
  const Tensor x = zeros({2, 4, 3}), four = zeros({4}), eight = zeros({8}), g = zeros({2, 4, 2});
  const Value all = bools({true, true, true}), two = bools({true, true});
  const auto batch = [&](const Tensor& grad, const Tensor& in, const Value& mask, bool trains = true,
                         const Value& running = {}, const Value& weight = {}) {
    return std::vector<Value>{grad, in, weight, running, running, four, four, trains, 1e-5, mask};
  };
  const auto group = [&](const Tensor& grad, const Tensor& in, const Tensor& mean, const Tensor& rstd, int64_t n,
                         int64_t c, int64_t inner, int64_t groups, const Value& mask) {
    return std::vector<Value>{grad, in, mean, rstd, kNone, n, c, inner, groups, mask};
  };
  const auto layer = [&](const Tensor& grad, const Dims& shape, const Tensor& mean, const Tensor& rstd,
                         const Value& mask) {
    return std::vector<Value>{grad, x, ints(shape), mean, rstd, kNone, kNone, mask};
  };
  const char *const kBatch = "aten::native_batch_norm_backward", *const kGroup = "aten::native_group_norm_backward",
                    *const kLayer = "aten::native_layer_norm_backward";
  const Tensor pairs = zeros({4});
  expect_rows({
      {kBatch, batch(g, x, all), "the gradient is of size [2, 4, 2], the input of [2, 4, 3]"},
      {kBatch, batch(four, four, all), "the gradient is of size [4], the input of [4]"},
      {kBatch, batch(x, x, two), "3"},
      {kBatch, batch(x, x, all, false), "must be defined in evaluation mode"},
      {kBatch, batch(x, x, all, false, vector()), "parameters should contain 4 elements not 3"},
      {kBatch, batch(x, x, all, true, kNone, vector()), "parameters should contain 4 elements not 3"},
      {"aten::native_group_norm", {x, kNone, kNone, 2, 4, 3, 3, 1e-5}, "3"},
      {"aten::native_group_norm", {x, kNone, kNone, 2, 4, 3, 0, 1e-5}, "0"},
      {kGroup, group(x, x, pairs, pairs, 2, 4, 3, 0, all), "the input is of size"},
      {kGroup, group(x, x, pairs, pairs, 2, 4, 3, 3, all), "the input is of size"},
      {kGroup, group(x, x, pairs, pairs, -2, 4, 3, 2, all), "the input is of size"},
      {kGroup, group(x, x, pairs, pairs, 2, -4, 3, 2, all), "the input is of size"},
      {kGroup, group(x, x, pairs, pairs, 2, 4, -3, 2, all), "the input is of size"},
      {kGroup, group(x, x, pairs, pairs, 4, 2, 3, 2, all), "the input is of size"},
      {kGroup, group(x, x, pairs, pairs, 2, 2, 6, 2, all), "the input is of size"},
      {kGroup, group(x, x, pairs, pairs, 2, 4, 2, 2, all), "the input is of size"},
      {kGroup, group(zeros({8}), zeros({8}), pairs, pairs, 8, 1, 1, 1, all), "the input is of size"},
      {kGroup, group(x, x, eight, pairs, 2, 4, 3, 2, all), "mean and rstd must have 4 elements"},
      {kGroup, group(x, x, pairs, eight, 2, 4, 3, 2, all), "mean and rstd must have 4 elements"},
      {kGroup, group(g, x, pairs, pairs, 2, 4, 3, 2, all), "the gradient is of size [2, 4, 2]"},
      {kGroup, group(x, x, pairs, pairs, 2, 4, 3, 2, two), "3"},
      {kLayer, layer(g, {3}, eight, eight, all), "the gradient is of size [2, 4, 2]"},
      {kLayer, layer(x, {3}, four, eight, all), "mean and rstd must have 8 elements, got 4 and 8"},
      {kLayer, layer(x, {3}, eight, four, all), "mean and rstd must have 8 elements, got 8 and 4"},
      {kLayer, layer(x, {}, eight, eight, all), "normalized_shape does not fit the input"},
      {kLayer, layer(x, {2, 2, 4, 3}, eight, eight, all), "normalized_shape does not fit the input"},
      {kLayer, layer(x, {4, 4}, eight, eight, all), "normalized_shape does not fit the input"},
      {kLayer, layer(x, {3, 3}, eight, eight, all), "normalized_shape does not fit the input"},
      {kLayer, layer(x, {3}, eight, eight, two), "3"},
      {"aten::_softmax_backward_data",
       {g, x, -1, kFloat},
       "the gradient is of size [2, 4, 2], the result of [2, 4, 3]"},
      {"aten::_log_softmax_backward_data", {g, x, -1, kFloat}, "the gradient is of size [2, 4, 2]"},
      {"aten::rms_norm", {x, ints({})}, "expected normalized_shape to have between 1 and 3 dimensions"},
      {"aten::rms_norm", {x, ints({1, 2, 4, 3})}, "expected normalized_shape to have between 1 and 3 dimensions"},
      {"aten::batch_norm",
       {zeros({1, 4}), kNone, kNone, zeros({4}), zeros({4}), true, 0.1, 1e-5, false},
       "more than 1 value per"},
      {"aten::softmax.int", {zeros({2}, DType::kComplex64), 0}, "not implemented for"},
  });
}

TEST(RefusedShapes, Optimizers) {
  const Tensor p = vector(), other = zeros({2}), wide = zeros({3}, kDouble), half = zeros({3}, DType::kFloat16);
  const auto adam = [](const Value& params, const Value& grads, const Value& means, const Value& squares,
                       const Value& largest, const Dims& steps, const Value& rounded) {
    return std::vector<Value>{params, grads, means, squares, largest, ints(steps), 0.1,
                              0.9,    0.99,  1e-8,  0.0,     false,   false,       rounded};
  };
  const auto rmsprop = [](const Value& squares, const Value& buffers, const Value& means) {
    return std::vector<Value>{
        tensors({vector()}), tensors({vector()}), squares, buffers, means, 0.1, 0.9, 1e-8, 0.0, 0.5, false,
        tensors({})};
  };
  const auto adagrad = [](const Value& sums, const Dims& steps) {
    return std::vector<Value>{tensors({vector()}), tensors({vector()}), sums, ints(steps), 0.1, 0.0, 0.0, 1e-10, false,
                              tensors({})};
  };
  const Value one = tensors({p}), none = tensors({}), two = tensors({p, p});
  const char* const kAdam = "tensord::adam_step_";
  expect_rows({
      {kAdam, adam(one, one, one, one, none, {}, none), "expected 1 numbers of steps but got 0"},
      {kAdam, adam(one, one, none, one, none, {1}, none), "expected a state for each parameter"},
      {kAdam, adam(one, one, one, two, none, {1}, none), "expected a state for each parameter"},
      {kAdam, adam(one, none, one, one, none, {1}, none), "expected 1 tensors but got 0"},
      {kAdam, adam(one, one, one, one, two, {1}, none), "expected 1 tensors but got 2"},
      {kAdam, adam(one, tensors({other}), one, one, none, {1}, none), "expected a tensor like the parameter"},
      {kAdam, adam(one, tensors({wide}), one, one, none, {1}, none), "expected a tensor like the parameter"},
      {kAdam, adam(one, one, tensors({wide}), one, none, {1}, none), "expected a tensor like the parameter"},
      {kAdam, adam(one, one, one, tensors({other}), none, {1}, none), "expected a tensor like the parameter"},
      {kAdam, adam(one, one, one, one, none, {1}, two), "expected 1 tensors but got 2"},
      {kAdam, adam(one, one, one, one, none, {1}, one), "expected float32 copies of parameters of 16 bits"},
      {kAdam,
       adam(one, tensors({zeros({3}, DType::kFloat16)}), one, one, none, {1}, tensors({zeros({2}, DType::kFloat16)})),
       "expected float32 copies of parameters of 16 bits"},
      {kAdam, adam(tensors({wide}), tensors({half}), tensors({wide}), tensors({wide}), none, {1}, tensors({half})),
       "expected float32 copies of parameters of 16 bits"},
      {kAdam, adam(tensors({half}), tensors({half}), tensors({half}), tensors({half}), none, {1}, none),
       "cannot be trained"},
      {kAdam, adam(tensors({meta({3})}), one, one, one, none, {1}, none), "expected tensors on the CPU"},
      {kAdam, adam(one, tensors({meta({3})}), one, one, none, {1}, none), "expected tensors on the CPU"},
      {"tensord::rmsprop_step_", rmsprop(none, none, none), "expected a state for each parameter"},
      {"tensord::rmsprop_step_", rmsprop(one, two, none), "expected 1 tensors but got 2"},
      {"tensord::rmsprop_step_", rmsprop(one, one, two), "expected 1 tensors but got 2"},
      {"tensord::adagrad_step_", adagrad(one, {}), "expected 1 numbers of steps but got 0"},
      {"tensord::adagrad_step_", adagrad(none, {1}), "expected a state for each parameter"},
      {"tensord::grad_norm", {one, 0.0}, "expected a norm type above 0 but got 0"},
      {"tensord::grad_norm", {tensors({longs({1})}), 2.0}, "gradients of int64 cannot be clipped"},
      {"tensord::grad_norm", {tensors({meta({3})}), 2.0}, "expected tensors on the CPU"},
      {"tensord::clip_grad_norm_", {one, 1.0, 0.0, false}, "expected a norm type above 0 but got 0"},
      {"tensord::clip_grad_norm_", {tensors({meta({3})}), 1.0, 2.0, false}, "expected tensors on the CPU"},
  });
  EXPECT_NO_THROW(ops::run(ops::get_op(kAdam), adam(one, tensors({half}), one, one, none, {1}, tensors({half}))));
}

TEST(RefusedShapes, PointwiseAndPools) {
  const Tensor image = zeros({1, 2, 4, 4}), g = zeros({1, 2, 2, 2}), places = zeros({1, 2, 2, 2}, kLong);
  const auto fractional = [&](const Tensor& x, const Dims& kernel, const Dims& out) {
    return std::vector<Value>{x, ints(kernel), ints(out), zeros({1, 2, 2})};
  };
  expect_rows({
      {"aten::celu", {vector(), 0.0}, "alpha cannot be 0 for CELU"},
      {"aten::add.Tensor", {vector(), vector(), true}, "Boolean alpha only supported for Boolean results"},
      {"aten::gelu_backward", {vector(), vector(), "erf"}, "approximate argument must be either none or tanh"},
      {"aten::fractional_max_pool2d", fractional(matrix(), {2, 2}, {2, 2}),
       "Expected 3D or 4D tensor, but got: [2, 3]"},
      {"aten::fractional_max_pool2d", fractional(zeros({1, 1, 2, 4, 4}), {2, 2}, {2, 2}), "Expected 3D or 4D tensor"},
      {"aten::fractional_max_pool2d", fractional(image, {0, 2}, {2, 2}), "must be above 0"},
      {"aten::fractional_max_pool2d", fractional(image, {2, 2}, {2, 0}), "must be above 0"},
      {"aten::fractional_max_pool2d_backward",
       {zeros({1, 2, 2, 1}), image, ints({2, 2}), ints({2, 2}), places},
       "the gradient is of shape [1, 2, 2, 1], the indices of [1, 2, 2, 2]"},
      {"aten::max_unpool2d", {zeros({2, 2}), zeros({2, 2}, kLong), ints({4, 4})}, "2d should be a 3d or 4d Tensor"},
      {"aten::max_unpool3d",
       {zeros({1, 2, 2, 2}), zeros({1, 2, 2, 2}, kLong), ints({4, 4, 4}), ints({2, 0, 2}), ints({0, 0, 0})},
       "strides should be greater than zero"},
      {"aten::adaptive_avg_pool2d", {zeros({1, 4, 4}, DType::kBool), ints({2, 2})}, "not supported for bool"},
      {"aten::max_pool2d_with_indices_backward",
       {zeros({1, 2, 2, 1}), image, ints({2, 2}), ints({2, 2}), ints({0, 0}), ints({1, 1}), false, places},
       "[1, 2, 2, 1]"},
      {"aten::avg_pool2d_backward",
       {zeros({1, 2, 2, 1}), image, ints({2, 2}), ints({2, 2}), ints({0, 0}), false, true, kNone},
       "the gradient is of size [1, 2, 2, 1], expected [1, 2, 2, 2]"},
  });
}

TEST(RefusedShapes, Reductions) {
  const auto ends = [](std::vector<Value> list) { return tensors(std::move(list)); };
  const Tensor flags = zeros({3}, DType::kBool);
  expect_rows({
      {"aten::native_dropout", {longs({1, 2}), 0.5, true}, "native_dropout"},
      {"aten::native_dropout_backward",
       {vector(), zeros({2}, DType::kBool), 2.0},
       "the gradient is of size [3], the mask"},
      {"aten::rrelu_with_noise", {vector(), zeros({2})}, "noise tensor shape must match self tensor shape"},
      {"aten::normal.Tensor_Tensor", {vector(), run("aten::neg", {run("aten::ones_like", {vector()})})}, "std >= 0.0"},
      {"aten::corrcoef", {cube()}, "expected input to have two or fewer dimensions but got an input with 3"},
      {"aten::trapezoid.dx", {flags}, "trapezoid: received a bool input for `y`"},
      {"aten::cumulative_trapezoid.dx", {flags}, "cumulative_trapezoid: received a bool input for `y`"},
      {"aten::diff", {matrix(), 1, -1, kNone, zeros({3, 1})}, "append"},
      {"aten::gradient.tensorarrayint", {matrix(), ends({zeros({3})})}, "spacing"},
      {"aten::gradient.tensorarray", {matrix(), ends({matrix(), zeros({3})}), ints({0, 1})}, "to have one dimension"},
      {"aten::gradient.tensorarray",
       {matrix(), ends({zeros({2}), zeros({4})}), ints({0, 1})},
       "as long as the dimension"},
      {"aten::gradient.tensorarray", {matrix(), ends({zeros({2})}), ints({0, 1})}, "spacing"},
      {"aten::gradient.scalarrayarray", {matrix(), items({1.0, 1.0}), ints({0})}, "to have the same length"},
      {"aten::histogram.bins_tensor", {vector(), vector(), zeros({2})}, "it should have the same shape"},
      {"aten::histogram.bin_ct", {vector(), 3, kNone, zeros({2})}, "it should have the same shape"},
      {"aten::histogramdd.int_bins", {vector(), 3}, "input tensor should have at least 2 dimensions, but got 1"},
      {"aten::median", {zeros({2}, DType::kComplex64)}, "median"},
      {"aten::median.dim", {zeros({2}, DType::kComplex64), 0}, "median"},
      {"aten::median.dim", {zeros({2, 0}), 1}, "Expected reduction dim 1 to have non-zero size"},
      {"aten::nanmedian.dim", {zeros({2, 0}), -1}, "to have non-zero size"},
      {"aten::_aminmax", {zeros({0})}, "the tensor has no elements"},
      {"aten::any.dims", {cube(), ints({0, 0})}, "appears multiple times in the list of dims"},
      {"aten::all.dims", {cube(), ints({-1, 2})}, "appears multiple times in the list of dims"},
      {"aten::_segment_reduce_backward",
       {zeros({2}), zeros({1}), vector(), "sum", longs({3})},
       "expected gradients of shape [1], but got [2]"},
      {"aten::_segment_reduce_backward",
       {zeros({1}), zeros({2}), vector(), "sum", longs({3})},
       "expected gradients of shape [1]"},
  });
}

TEST(RefusedShapes, RecurrentLayers) {
  const auto cell = [](const Tensor& h, const Tensor& c) {
    return std::vector<Value>{zeros({2, 3}), tensors({h, c}), zeros({16, 3}), zeros({16, 4}), kNone, kNone};
  };
  expect_rows({
      {"aten::lstm_cell", cell(zeros({2, 5}), zeros({2, 4})),
       "hidden0 has inconsistent hidden_size: got 5, expected 4"},
      {"aten::lstm_cell", cell(zeros({2, 4}), zeros({2, 5})),
       "hidden1 has inconsistent hidden_size: got 5, expected 4"},
      {"aten::_pack_padded_sequence", {vector(), longs({1}), false}, "must have a time and a batch dimension"},
      {"aten::_pack_padded_sequence", {zeros({2, 1, 3}), meta({1}, kLong), false}, "depends on the tensor's data"},
  });
}

TEST(RefusedShapes, Views) {
  expect_rows({
      {"aten::split_with_sizes", {vector(), ints({-1, 4})}, "only non-negative entries"},
      {"aten::tensor_split.tensor_indices_or_sections", {scalar(), longs({1})}, "at least a 1-dimensional tensor"},
      {"aten::tensor_split.tensor_indices_or_sections", {vector(), zeros({1, 1}, kLong)}, "zero-dimensional or one-"},
      {"aten::column_stack", {tensors({})}, "column_stack expects a non-empty TensorList"},
      {"aten::cartesian_prod", {tensors({})}, "expects a non-empty TensorList"},
      {"aten::diag_embed", {vector(), int64_t{1} << 31}, "is too large"},
      {"aten::diag_embed", {vector(), -(int64_t{1} << 31)}, "is too large"},
      {"aten::diag", {matrix(), int64_t{1} << 31}, "is too large"},
      {"aten::diag", {matrix(), -(int64_t{1} << 31)}, "is too large"},
      {"aten::narrow", {vector(), 0, 4, 0}, "Dimension out of range (expected to be in range of [-3, 2], but got 4)"},
      {"aten::narrow", {vector(), 0, -4, 0}, "but got -4)"},
      {"aten::expand", {vector(), ints({-1, 3})}, "isn't allowed in a leading, non-existing dimension 0"},
      {"aten::repeat_interleave.self_Tensor", {vector(), meta({3}, kLong)}, "depends on the tensor's data"},
      {"aten::pad", {matrix(), ints({1}), "reflect"}, "Padding length must be divisible by 2"},
      {"aten::reflection_pad1d_backward",
       {zeros({2, 4}), matrix(), ints({1, 1})},
       "grad_output of shape [2, 4] where [2, 5]"},
      {"aten::repeat", {scalar(), ints(Dims(std::span<const int64_t>(std::vector<int64_t>(65, 1))))}, "dimensions"},
  });
}

TEST(RefusedShapes, Images) {
  const Tensor image = zeros({1, 2, 4, 4}), grid = zeros({1, 3, 3, 2}), g = zeros({1, 2, 3, 3});
  const auto columns = [](const Tensor& x, const Dims& size) {
    return std::vector<Value>{x, ints(size), ints({2, 2}), ints({1, 1}), ints({0, 0}), ints({1, 1})};
  };
  const auto sampled = [&](int64_t mode, int64_t padding) {
    return std::vector<Value>{image, grid, mode, padding, false};
  };
  expect_rows({
      {"aten::im2col",
       {meta({int64_t{1} << 60, 1, 1}), ints({8, 8}), ints({1, 1}), ints({4, 4}), ints({1, 1})},
       "the size of the result overflows"},
      {"aten::col2im", columns(zeros({1, 8, 9}), {0, 4}), "output_size should be two positive numbers"},
      {"aten::col2im", columns(zeros({1, 8, 9}), {4, 0}), "output_size should be two positive numbers"},
      {"aten::col2im", columns(zeros({8}), {4, 4}), "Expected 2D or 3D"},
      {"aten::col2im", columns(zeros({1, 1, 8, 9}), {4, 4}), "Expected 2D or 3D"},
      {"aten::col2im", columns(zeros({1, 8, 0}), {4, 4}), "Expected 2D or 3D"},
      {"aten::col2im", columns(zeros({1, 0, 9}), {4, 4}), "Expected 2D or 3D"},
      {"aten::col2im", columns(zeros({1, 8, 8}), {4, 4}), "to match the calculated number of sliding blocks 3 * 3"},
      {"aten::grid_sampler_2d", sampled(3, 0), "interpolation mode must be 0, 1 or 2, but got 3"},
      {"aten::grid_sampler_2d", sampled(-1, 0), "interpolation mode must be 0, 1 or 2, but got -1"},
      {"aten::grid_sampler_2d", sampled(0, 3), "padding mode must be 0, 1 or 2, but got 3"},
      {"aten::grid_sampler_2d", sampled(0, -1), "padding mode must be 0, 1 or 2, but got -1"},
      {"aten::grid_sampler_2d_backward", {g, image, grid, 0, 0, false, bools({true})}, "2"},
      {"aten::upsample_bilinear2d.vec", {image, kNone, true, numbers({1e9, 1.0})}, "is out of range"},
      {"aten::upsample_bilinear2d.vec", {image, kNone, true, numbers({-1.0, 1.0})}, "is out of range"},
      {"aten::upsample_bilinear2d", {image, ints({8, 8}), false, 1e-10, 1.0}, "scale factor 1e-10 is out of range"},
      {"aten::upsample_nearest2d_backward",
       {zeros({1, 2, 8, 7}), ints({8, 8}), ints({1, 2, 4, 4})},
       "Expected grad_output to have the shape [1, 2, 8, 8] but got [1, 2, 8, 7]"},
      {"aten::upsample_nearest2d_backward",
       {zeros({1, 2, 8, 8}), ints({8, 8}), ints({2, 4, 4})},
       "It is expected input_size equals to 4, but got size 3"},
  });
}

TEST(RefusedShapes, NumbersAndTexts) {
  const int64_t many = int64_t{1} << 40;
  expect_rows({
      {"aten::div.complex", {std::complex<double>(1, 1), std::complex<double>(0, 0)}, "complex division by zero"},
      {"aten::format", {1}, "the first argument must be a string"},
      {"aten::percentFormat", {1, 2}, "the first argument must be a string"},
      {"aten::__range_length", {0, 1, 0}, "range() arg 3 must not be zero"},
      {"aten::remainder.int", {1, 0}, "integer division or modulo by zero"},
      {"aten::floordiv.int", {1, 0}, "division by 0"},
      {"aten::divmod.int", {1, 0}, "zero"},
      {"aten::__lshift__.int", {1, -1}, "negative shift count"},
      {"aten::__rshift__.int", {1, -1}, "negative shift count"},
      {"aten::mul.left_t", {items({1, 2}), many}, "cannot be repeated"},
      {"aten::mul.str_int", {"ab", many}, "cannot be repeated"},
      {"aten::ljust", {"ab", many}, "is too long"},
      {"aten::rjust", {"ab", many}, "is too long"},
      {"aten::center", {"ab", many}, "is too long"},
      {"aten::zfill", {"ab", many}, "is too long"},
      {"aten::expandtabs", {"a\tb", many}, "is too long"},
      {"aten::rsplit", {"ab", "", -1}, "empty separator"},
      {"aten::FloatImplicit", {zeros({}, kLong)}, "as a float argument"},
  });
}

}  // namespace
}  // namespace tensord::refused_shapes_test
