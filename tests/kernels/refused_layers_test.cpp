// Calls of layers, tables, windows, products and losses that must be refused: each condition of a check separately.
#include <cmath>
#include <functional>

#include "tests/support/operator_rows.h"

namespace tensord::refused_layers_test {
namespace {

using namespace testing_rows;

Tensor many(size_t dims) { return zeros(Dims(std::span<const int64_t>(std::vector<int64_t>(dims, 1)))); }
Value complexes(const Dims& sizes) { return zeros(sizes, DType::kComplex64); }

TEST(RefusedLayers, Nested) {
  const Tensor ones = run("aten::ones", {ints({2, 3}), DType::kBool}).to_tensor();
  const Value nested = run("aten::_nested_tensor_from_mask", {cube(), ones});
  const auto layer = [&](const Value& mask) {
    return std::vector<Value>{
        nested,        4,          1,          zeros({12, 4}), zeros({12}), zeros({4, 4}), zeros({4}),    false,
        false,         1e-5,       zeros({4}), zeros({4}),     zeros({4}),  zeros({4}),    zeros({4, 4}), zeros({4}),
        zeros({4, 4}), zeros({4}), mask,       kNone};
  };
  const auto outcome = [](const char* name, const std::vector<Value>& arguments) -> std::string {
    try {
      ops::run(ops::get_op(name), arguments);  // a script's types let a nested tensor through
    } catch (const Error& error) {
      return error.what();
    }
    return "is taken";
  };
  EXPECT_THAT(outcome("aten::_nested_tensor_from_mask", {zeros({0, 3, 4}), zeros({0, 3}, DType::kBool), true}),
              ::testing::HasSubstr("non-empty TensorList"));
  EXPECT_THAT(outcome("aten::to_padded_tensor", {nested, 0.0, ints({2, 3})}),
              ::testing::HasSubstr("Length of output_size does not match"));
  EXPECT_THAT(outcome("aten::to_padded_tensor", {nested, 0.0, ints({2, 3, 4, 5})}),
              ::testing::HasSubstr("Length of output_size does not match"));
  EXPECT_THAT(outcome("aten::to_padded_tensor", {nested, 0.0, ints({1, 3, 4})}),
              ::testing::HasSubstr("Truncation is not supported"));
  EXPECT_THAT(outcome("aten::to_padded_tensor", {nested, 0.0, ints({2, 2, 4})}),
              ::testing::HasSubstr("Truncation is not supported"));
  EXPECT_THAT(outcome("aten::to_padded_tensor", {nested, 0.0, ints({2, 3, 3})}),
              ::testing::HasSubstr("Truncation is not supported"));
  EXPECT_THAT(outcome("aten::_transformer_encoder_layer_fwd", layer(ones)),
              ::testing::HasSubstr("a mask is not supported with a nested"));
  EXPECT_EQ(outcome("aten::to_padded_tensor", {nested, 0.0, ints({2, 3, 4})}), "is taken");
}

TEST(RefusedLayers, Attention) {
  const Tensor q = zeros({2, 4, 8});
  const auto heads = [](const Tensor& x, int64_t count, const Tensor& qkv) {
    return std::vector<Value>{x, x, x, 8, count, qkv, zeros({24}), zeros({8, 8}), zeros({8})};
  };
  const auto grouped = [](const Tensor& query, const Tensor& key) {
    return std::vector<Value>{query, key, key, kNone, 0.0, false, kNone, true};
  };
  expect_rows({
      {"aten::_native_multi_head_attention", heads(q, 3, zeros({24, 8})), "embed_dim"},
      {"aten::_native_multi_head_attention", heads(matrix(), 2, zeros({24, 8})), "_native_multi_head_attention"},
      {"aten::_native_multi_head_attention", heads(q, 2, zeros({16, 8})), "_native_multi_head_attention"},
      {"aten::_scaled_dot_product_attention", {vector(), q, q, kNone, 0.0, true}, "query must have at least 2"},
      {"aten::_scaled_dot_product_attention", {q, q, q, zeros({4, 4}), 0.0, true, true}, "when is_causal=True"},
      {"aten::_scaled_dot_product_attention", {q, q, q, zeros({4, 4}), 0.0, false, true}, "when is_causal=True"},
      {"aten::scaled_dot_product_attention", grouped(zeros({4, 8}), zeros({2, 4, 8})), "at least 3 dimensions"},
      {"aten::scaled_dot_product_attention", grouped(zeros({2, 4, 8}), zeros({4, 8})), "at least 3 dimensions"},
  });
}

TEST(RefusedLayers, Composed) {
  const Tensor bytes = zeros({2, 3}, DType::kInt8);
  expect_rows({
      {"aten::_is_all_true", {matrix()}, "expected bool, got float32"},
      {"aten::_int_mm", {zeros({2}, DType::kInt8), bytes}, "Expected self to be of dimension 2 but got 1"},
      {"aten::_int_mm", {zeros({3, 2}), bytes}, "_int_mm: expected int8"},
      {"aten::_int_mm", {zeros({3, 2}, DType::kInt8), matrix()}, "_int_mm: expected int8"},
      {"aten::_foreach_addcmul.Tensor",
       {tensors({vector()}), tensors({vector()}), tensors({vector()}), zeros({1, 1})},
       "Expected packed scalar Tensor to be of dimension 1. Got 2 instead."},
      {"aten::_foreach_addcmul.Tensor",
       {tensors({vector()}), tensors({vector()}), tensors({vector()}), zeros({2})},
       "Expected length of scalars to match input of length 1 but got 2 instead."},
      {"aten::glu_backward", {scalar(), scalar(), 0}, "glu does not support 0-dimensional tensors"},
      {"aten::conv_tbc", {cube(), zeros({4, 4}), vector()}, "Weight tensor must have 3 dims"},
      {"aten::conv_tbc", {cube(), zeros({1, 4, 2}), scalar()}, "Bias must be 1-D, but got 0"},
      {"aten::range.step", {0, 3, 0}, "step must be nonzero"},
      {"aten::range.step", {0.0, INFINITY, 1.0}, "unsupported range"},
      {"aten::range.step", {-INFINITY, 0.0, 1.0}, "unsupported range"},
      {"aten::range.step", {0.0, 1e15, 1.0}, "numbers is too large"},
      {"aten::isclose", {complexes({2}), complexes({2}), -1.0}, "rtol must be greater than or equal to zero"},
      {"aten::isclose", {complexes({2}), complexes({2}), 0.0, -1.0}, "atol must be greater than or equal to zero"},
      {"aten::matrix_H", {complexes({2})}, "tensor.H is only supported on matrices (2-D tensors). Got 1-D tensor."},
      {"aten::matrix_H", {complexes({2, 2, 2})}, "Got 3-D tensor."},
      {"aten::amax", {matrix(), ints({0, 0})}, "appears multiple times in the list of dims"},
      {"aten::_unsafe_masked_index",
       {matrix(), run("aten::ones", {ints({2}), DType::kBool}), optionals({zeros({2})}), 0},
       "must be long or int tensors"},
      {"aten::_unsafe_masked_index",
       {vector(), run("aten::ones", {ints({1}), DType::kBool}), optionals({longs({0}), longs({0})}), 0},
       "too many indices for tensor of dimension 1"},
  });
}

TEST(RefusedLayers, Convolutions) {
  const auto one = ints({1}), none = ints({0});
  const Tensor x = zeros({2, 4, 9}), w = zeros({6, 4, 3}), g = zeros({2, 6, 7});
  const auto conv = [&](const Tensor& in, const Tensor& weight, bool transposed = false) {
    return std::vector<Value>{in, weight, kNone, one, none, one, transposed, none, 1};
  };
  const auto back = [&](const Tensor& grad, const Tensor& in, const Tensor& weight, const Value& bias,
                        const Value& mask) {
    return std::vector<Value>{grad, in, weight, bias, one, none, one, false, none, 1, mask};
  };
  const Value all = bools({true, true, true});
  expect_rows({
      {"aten::convolution", conv(zeros({2, 4}), zeros({6, 4})), "to have 3 to 5 dimensions"},
      {"aten::convolution", conv(meta({1, 4, int64_t{1} << 31}), meta({4, 6, 3}), true), "sizes are too large"},
      {"aten::convolution_backward", back(g, zeros({2, 4}), zeros({6, 4}), kNone, all),
       "a weight of 3 to 5 dimensions"},
      {"aten::convolution_backward", back(g, x, zeros({6, 4, 1, 1, 1, 1}), kNone, all),
       "a weight of 3 to 5 dimensions"},
      {"aten::convolution_backward", back(g, zeros({4, 9}), w, kNone, all), "expected an input of 3 dimensions"},
      {"aten::convolution_backward", back(zeros({2, 6, 6}), x, w, kNone, all),
       "expected a gradient of shape [2, 6, 7]"},
      {"aten::convolution_backward", back(g, x, w, kNone, bools({true, true})), "3"},
      {"aten::convolution_backward", back(g, x, w, ints({5}), all), "expected a bias of 6 elements"},
      {"prepacked::linear_clamp_prepack", {zeros({2, 3, 4})}, "expected float32 of 2 dimensions"},
      {"prepacked::linear_clamp_prepack", {zeros({2, 3}, kDouble)}, "expected float32 of 2 dimensions"},
      {"prepacked::conv2d_clamp_prepack",
       {zeros({2, 3, 3}), kNone, one, none, one, 1},
       "expected float32 of 4 dimensions"},
      {"prepacked::linear_clamp_run",
       {zeros({1, 3}, kDouble), run("prepacked::linear_clamp_prepack", {matrix()})},
       "expected an input of float32"},
  });
  EXPECT_EQ(run("aten::convolution_backward", back(g, x, w, ints({6}), all)).to_tensor().sizes(), x.sizes());
}

TEST(RefusedLayers, DeformableConvolutions) {
  // A 3x3 kernel over 5x5: 3x3 positions.
  struct Given {
    Tensor input = zeros({1, 4, 5, 5}), offset = zeros({1, 18, 3, 3}), mask = zeros({1, 9, 3, 3});
    bool use_mask = true;
    Dims kernel{3, 3}, stride{1, 1}, padding{0, 0}, dilation{1, 1};
    int64_t groups = 1;
  };
  const auto columns = [](const std::function<void(Given&)>& change) {
    Given x;
    change(x);
    return std::vector<Value>{x.input,        x.offset,        x.mask,           x.use_mask, ints(x.kernel),
                              ints(x.stride), ints(x.padding), ints(x.dilation), x.groups};
  };
  const char* const kOp = "tensord::deform_columns";
  std::vector<Row> rows{
      {kOp, columns([](Given& x) {
         x.input = zeros({4, 5, 5});
       }),
       "input and offset of 4 dimensions"},
      {kOp, columns([](Given& x) {
         x.offset = zeros({18, 3, 3});
       }),
       "input and offset of 4 dimensions"},
      {kOp, columns([](Given& x) {
         x.input = zeros({1, 4, 5, 5}, kLong);
       }),
       "not implemented for int64"},
      {kOp, columns([](Given& x) {
         x.offset = zeros({1, 18, 3, 3}, kDouble);
       }),
       "must have the same dtype"},
      {kOp, columns([](Given& x) {
         x.mask = zeros({1, 9, 3, 3}, kDouble);
       }),
       "must have the same dtype"},
      {kOp, columns([](Given& x) { x.groups = 0; }), "are not a multiple of 0 offset groups"},
      {kOp, columns([](Given& x) { x.groups = 3; }), "are not a multiple of 3 offset groups"},
      {kOp, columns([](Given& x) {
         x.offset = zeros({1, 17, 3, 3});
       }),
       "expected offset of shape [1, 18, 3, 3]"},
      {kOp, columns([](Given& x) {
         x.mask = zeros({1, 8, 3, 3});
       }),
       "expected mask of shape [1, 9, 3, 3]"},
  };
  for (size_t d = 0; d < 2; ++d) {
    for (const int64_t bad : {int64_t{0}, int64_t{1} << 30}) {
      rows.push_back({kOp, columns([&](Given& x) { x.kernel[d] = bad; }), "weight sizes must be positive"});
      rows.push_back({kOp, columns([&](Given& x) { x.stride[d] = bad; }), "strides must be positive"});
      rows.push_back({kOp, columns([&](Given& x) { x.dilation[d] = bad; }), "dilations must be positive"});
      rows.push_back(
          {kOp, columns([&](Given& x) { x.padding[d] = bad == 0 ? -1 : bad; }), "padding must not be negative"});
    }
    rows.push_back({kOp, columns([&](Given& x) { x.kernel[d] = 6; }), "the calculated output size is too small"});
  }
  expect_rows(rows);
  EXPECT_EQ(run(kOp, columns([](Given& x) { x.use_mask = false, x.mask = zeros({0}); })).to_tensor().ndim(), 3);
  const auto whole = [](const Dims& in, const Dims& weight, const Dims& bias, int64_t groups) {
    return std::vector<Value>{
        zeros(in), zeros(weight), zeros({1, 18, 3, 3}), zeros({1, 9, 3, 3}), zeros(bias), 1, 1, 0, 0, 1, 1, groups,
        1,         true};
  };
  const auto back = [&](const Tensor& grad, bool use_mask, const Value& wanted) {
    std::vector<Value> all = columns([&](Given& x) { x.use_mask = use_mask; });
    all.insert(all.begin(), grad);
    all.push_back(wanted);
    return all;
  };
  const Tensor grad = run(kOp, columns([](Given&) {})).to_tensor();
  const Value all = bools({true, true, true});
  expect_rows({
      {"torchvision::deform_conv2d", whole({4, 5, 5}, {2, 4, 3, 3}, {2}, 1), "input and weight of 4 dimensions"},
      {"torchvision::deform_conv2d", whole({1, 4, 5, 5}, {2, 4, 3}, {2}, 1), "input and weight of 4 dimensions"},
      {"torchvision::deform_conv2d", whole({1, 4, 5, 5}, {3, 2, 3, 3}, {3}, 2), "are not a multiple of 2 groups"},
      {"torchvision::deform_conv2d", whole({1, 4, 5, 5}, {2, 4, 3, 3}, {3}, 1), "expected a bias of shape [2]"},
      {"torchvision::deform_conv2d", whole({1, 4, 5, 5}, {2, 4, 3, 3}, {2, 1}, 1), "expected a bias of shape [2]"},
      {"tensord::deform_columns_backward", back(zeros({2, 3}), true, all), "expected a gradient of shape"},
      {"tensord::deform_columns_backward", back(zeros(grad.sizes(), kDouble), true, all),
       "expected a gradient of shape"},
      {"tensord::deform_columns_backward", back(grad, false, all), "a gradient of no mask is wanted"},
  });
}

TEST(RefusedLayers, Regions) {
  const Tensor image = zeros({1, 2, 4, 4}), boxes = zeros({1, 5});
  const auto align = [](const Tensor& x, const Tensor& rois) {
    return std::vector<Value>{x, rois, 1.0, 2, 2, 2, false};
  };
  const auto back = [&](const Tensor& grad) {
    return std::vector<Value>{grad, boxes, 1.0, 2, 2, 1, 2, 4, 4, 2, false};
  };
  expect_rows({
      {"torchvision::roi_align", align(zeros({2, 4, 4}), boxes), "expected an input of 4 dimensions, but got 3"},
      {"torchvision::_roi_align_backward", back(zeros({1, 2, 2, 1})), "expected a gradient of shape [1, 2, 2, 2]"},
      {"torchvision::nms", {zeros({4}), zeros({1}), 0.5}, "boxes should be a 2d tensor, got 1D"},
      {"torchvision::nms", {zeros({1, 4}), zeros({1, 1}), 0.5}, "scores should be a 1d tensor, got 2D"},
  });
}

TEST(RefusedLayers, Tables) {
  const Tensor table = zeros({4, 3}), one = longs({0}), two = longs({0, 1});
  const auto bag = [](const Tensor& weight, const Tensor& index, const Tensor& offsets, const Value& weights = {},
                      bool has_last = false) {
    return std::vector<Value>{weight, index, offsets, false, 0, false, weights, has_last};
  };
  const auto dense = [&](const Tensor& grad, const Tensor& index) {
    return std::vector<Value>{grad, index, 4, -1, false};
  };
  const auto bags = [](const Tensor& grad, const std::vector<int64_t>& index, const std::vector<int64_t>& offsets,
                       const std::vector<int64_t>& largest, int64_t mode) {
    return std::vector<Value>{grad,
                              longs(index),
                              longs(offsets),
                              longs(std::vector<int64_t>(index.size(), 0)),
                              longs(std::vector<int64_t>(offsets.size(), 1)),
                              run("aten::reshape", {longs(largest), ints({-1, mode == 2 ? 3 : 1})}),
                              4,
                              false,
                              mode,
                              false,
                              kNone};
  };
  const auto sparse = [&](const Tensor& grad, const Tensor& index, const std::vector<int64_t>& offsets, bool scales,
                          int64_t mode) {
    return std::vector<Value>{grad, index, longs(offsets), two, two, 4, scales, mode, kNone};
  };
  const char* const kBack = "aten::_embedding_bag_backward";
  const char* const kSparse = "aten::_embedding_bag_sparse_backward";
  const Tensor grad = zeros({1, 3});
  const std::vector<int64_t> none{0, 0, 0};
  expect_rows({
      {"aten::embedding_dense_backward", dense(zeros({2, 2, 3}), two), "expected a gradient of shape [2, 3]"},
      {"aten::embedding_dense_backward", dense(zeros({2, 3}), longs({0, 4})), "index 4 is out of range"},
      {"aten::embedding_dense_backward", dense(zeros({2, 3}), longs({0, -1})), "index -1 is out of range"},
      {"aten::embedding_bag", bag(vector(), one, one), "weight must have 2 dimensions, got 1"},
      {"aten::embedding_bag", bag(table, zeros({1, 1}, kLong), one), "indices must have 1 dimension, got 2"},
      {"aten::embedding_bag", bag(table, one, zeros({}, kLong)), "offsets must have 1 dimension, got 0"},
      {"aten::embedding_bag", bag(table, one, one, zeros({1}, kDouble)), "to have the same type as tensor"},
      {"aten::embedding_bag", bag(table, one, one, zeros({2})), "numel() to be true, but got 2 and 1"},
      {"aten::embedding_bag", bag(table, one, one, zeros({1, 1})), "numel() to be true"},
      {"aten::embedding_bag", bag(table, longs({0, 1, 2}), longs({0, 2, 1})), "offsets must not decrease"},
      {"aten::embedding_bag", bag(table, one, zeros({0}, kLong), {}, true), "number of offset should be at least 1"},
      {kBack, bags(zeros({3, 3}), {0}, {0}, none, 0), "expected gradients of 1 bags, but got 3"},
      {kBack, bags(zeros({0, 3}), {0}, {0, 1}, none, 0), "expected gradients of 2 bags, but got 0"},
      {kBack, bags(grad, {0}, {2}, none, 0), "a bag begins at 2 of 1 indices"},
      {kBack, bags(zeros({2, 3}), {0, 1}, {1, 0}, none, 0), "a bag begins at 0 of 2 indices, after 1"},
      {kBack, bags(grad, {4}, {0}, none, 0), "index 4 is out of range"},
      {kBack, bags(grad, {-1}, {0}, none, 0), "index -1 is out of range"},
      {kBack, bags(grad, {0}, {0}, {0, 4, 0}, 2), "index 4 is out of range"},
      {kSparse, sparse(grad, one, {1}, false, 0), "offsets[0] has to be 0"},
      {kSparse, sparse(grad, one, {}, false, 0), "expected gradients of 0 bags, but got 1"},
      {kSparse, sparse(grad, one, {0}, false, 2), "sparse gradients are for the modes 'sum' and 'mean'"},
      {kSparse, sparse(grad, one, {0}, true, 0), "scale_grad_by_freq not supported with sparse gradients"},
      {kSparse, sparse(vector(), one, {0}, false, 0), "expected a gradient of 2 dimensions, but got 1"},
      {kSparse, sparse(zeros({1, 3}, kLong), one, {0}, false, 0), "of floating point numbers"},
      {"aten::embedding_sparse_backward",
       {matrix(), vector(), 4, -1, false},
       "expected indices of dtype int32 or int64"},
      {"aten::embedding_sparse_backward", {scalar(), two, 4, -1, false}, "expected rows of gradients"},
      {"aten::embedding_sparse_backward", {matrix(), two, -1, -1, false}, "expected rows of gradients"},
      {"aten::embedding_sparse_backward", {matrix(), one, 4, -1, false}, "expected a gradient of shape [1, 3]"},
  });
}

TEST(RefusedLayers, NewTensors) {
  const Value sparse = 1;  // torch.sparse_coo
  expect_rows({
      {"aten::tril_indices", {-1, 2}, "must not be negative"},
      {"aten::triu_indices", {2, -1}, "must not be negative"},
      {"aten::zeros", {ints({2}), kNone, sparse}, "only the strided layout is supported"},
      {"aten::zeros_like", {vector(), kNone, sparse}, "only the strided layout is supported"},
      {"aten::empty_strided", {ints({2}), ints({1, 1})}, "mismatch in length of strides and shape"},
      {"aten::bartlett_window", {4, kLong}, "expects floating point dtypes, got: int64"},
      {"prim::tolist", {matrix(), 1, 2}, "list dimension and runtime tensor dimension must match"},
      {"aten::as_strided_scatter", {matrix(), vector(), ints({3}), ints({1}), -1}, "must not be negative"},
  });
}

TEST(RefusedLayers, Spectra) {
  const Tensor samples = zeros({16});
  const Value frames = complexes({5, 4});  // of 8 points, one-sided
  const auto stft = [&](const Value& hop, const Value& length, const Value& window, const Value& onesided,
                        const Value& aligned) {
    return std::vector<Value>{samples, 8, hop, length, window, true, "reflect", false, onesided, true, aligned};
  };
  const auto istft = [&](const Value& x, int64_t n, const Value& hop, const Value& length, const Value& window,
                         const Value& onesided, bool complex, const Value& wanted = {}) {
    return std::vector<Value>{x, n, hop, length, window, true, false, onesided, wanted, complex};
  };
  expect_rows({
      {"aten::stft.center", stft(kNone, kNone, kNone, kNone, true), "align_to_window should only be set when center"},
      {"aten::stft.center", stft(kNone, 0, kNone, kNone, kNone), "expected 0 < win_length <= n_fft"},
      {"aten::stft.center", stft(kNone, 9, kNone, kNone, kNone), "expected 0 < win_length <= n_fft"},
      {"aten::stft.center", stft(kNone, kNone, complexes({8}), true, kNone), "Cannot have onesided output"},
      {"aten::istft", istft(complexes({5, 0}), 8, kNone, kNone, kNone, kNone, false), "input tensor cannot be empty"},
      {"aten::istft", istft(frames, 0, kNone, kNone, kNone, kNone, false), "expected n_fft > 0, but got 0"},
      {"aten::istft", istft(frames, 8, 0, kNone, kNone, kNone, false), "expected 0 < hop_length <= win_length"},
      {"aten::istft", istft(frames, 8, 9, kNone, kNone, kNone, false), "expected 0 < hop_length <= win_length"},
      {"aten::istft", istft(frames, 8, 1, 0, kNone, kNone, false), "<= win_length"},
      {"aten::istft", istft(frames, 8, 1, 9, kNone, kNone, false), "expected 0 < win_length <= n_fft"},
      {"aten::istft", istft(frames, 8, kNone, kNone, kNone, true, true), "Cannot have onesided output"},
      {"aten::istft", istft(frames, 8, kNone, kNone, complexes({8}), kNone, false),
       "Complex windows are incompatible with return_complex=False"},
      {"aten::istft", istft(frames, 8, kNone, kNone, kNone, kNone, false, -1), "nothing is left of a signal"},
      {"aten::fft_rfft2", {matrix(), kNone, ints({})}, "must transform at least one axis"},
      {"aten::fft_irfft", {complexes({3}), 0}, "0"},
      {"aten::fft_irfft2", {complexes({3, 3}), ints({3, 0})}, "0"},
      {"aten::fft_irfftn", {complexes({3, 3}), kNone, ints({})}, "must transform at least one axis"},
      {"aten::fft_fftfreq", {-1}, "fftfreq: n must not be negative, but is -1"},
      {"aten::fft_rfftfreq", {-1}, "rfftfreq: n must not be negative, but is -1"},
      {"aten::_fft_c2r", {complexes({3}), ints({0}), 0, 0}, "_fft_c2r: a result of 0 numbers"},
      {"aten::_fft_c2r", {complexes({3}), ints({0}), 0, 6}, "a result of 6 numbers needs 4, but got 3"},
      {"aten::_fft_c2c", {complexes({3}), ints({0}), 3, true}, "Invalid normalization type 3"},
      {"aten::_fft_c2c", {complexes({3}), ints({0}), -1, true}, "Invalid normalization type -1"},
  });
}

TEST(RefusedLayers, Places) {
  const Tensor flag = zeros({}, DType::kBool);
  expect_rows({
      {"aten::index.Tensor", {scalar(), optionals({longs({0}), flag})}, "too many indices"},
      {"aten::index_reduce", {vector(), 0, longs({0}), zeros({1}), "sum"}, "Expected reduce to be one of prod, mean"},
      {"aten::searchsorted.Tensor", {scalar(), scalar()}, "boundaries tensor should have positive dimension"},
      {"aten::_grouped_mm",
       {zeros({2, 4}), zeros({4, 3}), Value(longs({3, 2}).to(DType::kInt32))},
       "offsets must grow from 0 to at most 4, but got 2 after 3"},
      {"aten::_grouped_mm", {zeros({2, 4}), zeros({4, 3}), Value(longs({5}).to(DType::kInt32))}, "but got 5 after 0"},
      {"aten::_grouped_mm",
       {zeros({4, 2}), zeros({2, 2, 3}), Value(longs({4}).to(DType::kInt32))},
       "expected an offset for each matrix of the batch, but got 1"},
      {"aten::linear", {matrix(), zeros({4}), kNone}, "size mismatch, got input (2), mat (2x3), vec (4)"},
      {"aten::linear", {matrix(), zeros({3}), Tensor::scalar(1.0f)}, "mat2 must be a matrix, got 1-D tensor"},
      {"aten::linear", {zeros({5, 2, 3}), zeros({3}), zeros({1})}, "mat2 must be a matrix, got 1-D tensor"},
      {"aten::linear", {zeros({3}), zeros({3}), zeros({1})}, "mat2 must be a matrix, got 1-D tensor"},
      {"aten::linear", {zeros({3}), zeros({3}), Tensor::scalar(1.0f)}, kTaken},
      {"aten::kron", {many(33), many(2)}, "too many dimensions: 33"},
      {"aten::bilinear", {matrix(), zeros({2, 5}), zeros({1, 3, 4})}, "input2 size does not match weight size: got 5"},
      {"aten::bilinear", {zeros({2, 5}), zeros({2, 4}), zeros({1, 3, 4})}, "input1 size does not match weight size"},
  });
}

TEST(RefusedLayers, LossesOfClasses) {
  const Tensor scores = zeros({2, 3}), target = longs({0, 1});
  const auto loss = [](const Tensor& x, const Value& of, int64_t reduction) {
    return std::vector<Value>{x, of, kNone, reduction, -100};
  };
  expect_rows({
      {"aten::nll_loss2d", loss(cube(), zeros({2, 4}, kLong), 1), "only batches of spatial targets supported"},
      {"aten::nll_loss", loss(scores, target, 3), "3 is not a valid value for reduction"},
      {"aten::nll_loss2d", loss(zeros({2, 3, 4, 4}), zeros({2, 4, 4}, kLong), -1), "-1 is not a valid value for"},
      {"tensord::cross_entropy", {scalar(), zeros({}, kLong), kNone, 1, -100, 0.0}, "1 or more dimensions (got 0)"},
      {"tensord::cross_entropy",
       {scores, zeros({2, 1}, kLong), kNone, 1, -100, 0.0},
       "0D or 1D target tensor expected"},
      {"tensord::cross_entropy", {cube(), target, kNone, 1, -100, 0.0}, "Expected target of 2 dimensions, got 1"},
      {"tensord::cross_entropy",
       {zeros({2, 3, 4}), zeros({2, 5}, kLong), kNone, 1, -100, 0.0},
       "size mismatch (got input: [2, 3, 4], target: [2, 5]"},
      {"aten::cross_entropy_loss", {scores, scores, zeros({4})}, "weight tensor should be defined either for all 3"},
      {"aten::cross_entropy_loss", {scores, scores, zeros({1, 3})}, "weight tensor should be defined either for all 3"},
      {"aten::cross_entropy_loss", {scores, scores, kNone, 3}, "3 is not a valid value for reduction"},
      {"aten::cosine_embedding_loss", {scores, scores, scores}, "0D or 1D target tensor expected"},
      {"aten::multilabel_margin_loss_forward", {scores, zeros({2, 3}, kLong), 3}, "3 is not a valid value"},
  });
}

}  // namespace
}  // namespace tensord::refused_layers_test
