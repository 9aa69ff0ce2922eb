// Calls exactly at the limits of operators, and just beyond: each condition of a check separately.
#include <cmath>

#include "core/autograd/variable.h"
#include "core/tensor/lend.h"
#include "tests/support/operator_rows.h"

namespace tensord::refused_edges_test {
namespace {

using namespace testing_rows;

TEST(RefusedEdges, Losses) {
  const Tensor p = ones({4, 2, 3}), labels = ones({2, 2}, kLong), loss = ones({2}), alpha = ones({2, 4, 5});
  const auto back = [&](const Tensor& g, const Tensor& of, const Tensor& losses, const Tensor& log_alpha) {
    return std::vector<Value>{g, p, of, ints({4, 4}), ints({2, 2}), losses, log_alpha, 0};
  };
  const auto ctc = [](const Tensor& x, const Tensor& of, const Dims& lengths) {
    return std::vector<Value>{x, of, ints({4, 4}), ints(lengths)};
  };
  const char *const kBack = "aten::_ctc_loss_backward", *const kCtc = "aten::ctc_loss.IntList";
  const Tensor scores = ones({2, 3}), target = longs({0, 1});
  expect_rows({
      {kBack, back(loss, labels, loss, alpha), kTaken},
      {kBack, back(ones({3}), labels, loss, alpha), "are not of the forward's sizes"},
      {kBack, back(loss, labels, ones({3}), alpha), "are not of the forward's sizes"},
      {kBack, back(loss, labels, loss, ones({2, 4, 4})), "are not of the forward's sizes"},
      {kBack, back(loss, shaped(longs({1, 2, 1, 3}), {2, 2}), loss, alpha), "target 3 is out of bounds"},
      {kBack, back(loss, shaped(longs({1, 2, 1, -1}), {2, 2}), loss, alpha), "target -1 is out of bounds"},
      {kCtc, ctc(p.to(DType::kFloat16), labels, {2, 2}), "not implemented for"},
      {kCtc, ctc(p.to(DType::kBFloat16), labels, {2, 2}), "not implemented for"},
      {kCtc, ctc(p, ones({2, 2, 1}, kLong), {2, 2}), "targets must have 1 dimension"},
      {kCtc, ctc(p, ones({4}, kLong), {2, 2}), kTaken},
      {kCtc, ctc(p, ones({4}, kLong), {2, 5}), "to have size at least 5"},
      {"aten::multi_margin_loss", {ones({2, 0}), target}, "Expected non-empty vector or matrix"},
      {"aten::multi_margin_loss", {ones({1, 2, 3}), target}, "Expected non-empty vector or matrix"},
      {"aten::multi_margin_loss", {scores, ones({2, 1}, kLong)}, "inconsistent target size"},
      {"aten::multilabel_margin_loss", {scores, ones({3, 2}, kLong)}, "inconsistent target size"},
      {"aten::nll_loss_nd", {scores, ones({}, kLong)}, "Expected input batch_size"},
      {"tensord::cross_entropy", {scores, target, ones({4}), 1, -100, 0.0}, "weight tensor"},
      {"tensord::cross_entropy", {scores, target, ones({1, 3}), 1, -100, 0.0}, "weight tensor"},
  });
}

TEST(RefusedEdges, Norms) {
  const Tensor x = ones({2, 4, 3}), four = ones({4}), eight = ones({8}), pairs = ones({4});
  const Value all = bools({true, true, true});
  const auto batch = [](const Tensor& in, const Value& mean, const Value& variance, bool trains) {
    return std::vector<Value>{in, kNone, kNone, mean, variance, trains, 0.1, 1e-5, false};
  };
  const auto back = [&](const Value& mean, const Value& variance) {
    return std::vector<Value>{x, x, kNone, mean, variance, four, four, false, 1e-5, all};
  };
  const auto group = [](const Tensor& in, int64_t n, int64_t c, int64_t inner, int64_t groups) {
    return std::vector<Value>{in, kNone, kNone, n, c, inner, groups, 1e-5};
  };
  const auto group_back = [&](const Tensor& in, int64_t n, int64_t c, int64_t inner, int64_t groups) {
    return std::vector<Value>{in, in, ones({n * groups}), ones({n * groups}), kNone, n, c, inner, groups, all};
  };
  const auto layer = [&](const Tensor& in, const Dims& shape, int64_t rows) {
    return std::vector<Value>{in, in, ints(shape), ones({rows}), ones({rows}), kNone, kNone, all};
  };
  const char *const kBatch = "aten::batch_norm", *const kGroup = "aten::native_group_norm",
                    *const kGroupBack = "aten::native_group_norm_backward",
                    *const kBack = "aten::native_batch_norm_backward",
                    *const kLayer = "aten::native_layer_norm_backward";
  const Tensor none = ones({0, 4, 3}), empty = ones({2, 4, 0}), single = ones({1, 4});
  expect_rows({
      {kBatch, batch(single, kNone, kNone, true), kTaken},
      {kBatch, batch(single, four, kNone, true), "more than 1 value per channel"},
      {kBatch, batch(single, kNone, four, true), "more than 1 value per channel"},
      {kBatch, batch(x, four, kNone, false), "must be defined in evaluation mode"},
      {kBatch, batch(x, kNone, four, false), "must be defined in evaluation mode"},
      {kBatch, batch(x, read_only(ones({4})), ones({4}), true), "read-only"},
      {kBatch, batch(x, ones({4}), read_only(ones({4})), true), "read-only"},
      {kBack, back(four, kNone), "must be defined in evaluation mode"},
      {kBack, back(kNone, four), "must be defined in evaluation mode"},
      {kBack, back(four, four), kTaken},
      {"aten::instance_norm",
       {x, kNone, kNone, four, kNone, false, 0.1, 1e-5, false},
       "to be defined when use_input_stats is false"},
      {"aten::instance_norm",
       {x, kNone, kNone, kNone, four, false, 0.1, 1e-5, false},
       "to be defined when use_input_stats is false"},
      {kGroup, group(x, 2, 4, 3, 2), kTaken},
      {kGroup, group(none, 0, 4, 3, 2), kTaken},
      {kGroup, group(empty, 2, 4, 0, 2), kTaken},
      {kGroup, group(ones({2, 0, 3}), 2, 0, 3, 1), kTaken},
      {kGroup, group(none, 0, 4, -3, 2), "the input is of size [0, 4, 3], expected 0, 4 and -3"},
      {kGroup, group(ones({4, 2, 3}), 2, 4, 3, 2), "the input is of size"},
      {kGroup, group(x, 2, 2, 6, 2), "the input is of size"},
      {kGroup, group(x, 4, 4, 3, 2), "the input is of size"},
      {kGroup, group(x, 2, 4, 3, 0), "and num_groups=0"},
      {kGroup, group(x, 2, 4, 3, -2), "and num_groups=-2"},
      {kGroupBack, group_back(none, 0, 4, 3, 2), kTaken},
      {kGroupBack, group_back(empty, 2, 4, 0, 2), kTaken},
      {kGroupBack, group_back(ones({2, 0, 3}), 2, 0, 3, 1), kTaken},
      {kGroupBack, group_back(none, 0, 4, -3, 2), "the input is of size"},
      {kLayer, layer(x, {2, 4, 3}, 1), kTaken},
      {kLayer, layer(empty, {0}, 5), kTaken},
      {"aten::renorm", {x, 0.0, 0, 1.0}, "non-positive-norm not supported"},
      {"aten::renorm", {x, 2.0, 0, 0.0}, kTaken},
  });
}

TEST(RefusedEdges, MemoryThatIsReadOnly) {
  const Tensor fixed = read_only(ones({3}));
  const auto list = [](const Tensor& x) { return tensors({x}); };
  const auto adam = [&](const Tensor& p, const Tensor& g, const Tensor& mean, const Tensor& square,
                        const Value& largest) {
    return std::vector<Value>{list(p), list(g), list(mean), list(square), largest, ints({1}), 0.1,
                              0.9,     0.99,    1e-8,       0.0,          false,   false,     tensors({})};
  };
  const char* const kAdam = "tensord::adam_step_";
  const Value none = tensors({});
  const auto fresh = [] { return ones({3}); };
  expect_rows({
      {"aten::copy_", {fixed, ones({3})}, "read-only"},
      {"aten::zero_", {fixed}, "read-only"},
      {"aten::bernoulli_.float", {fixed, 0.5}, "read-only"},
      {"aten::uniform_", {fixed}, "read-only"},
      {"aten::normal_", {fixed}, "read-only"},
      {"aten::exponential_", {fixed}, "read-only"},
      {"aten::cauchy_", {fixed}, "read-only"},
      {"aten::log_normal_", {fixed}, "read-only"},
      {"aten::geometric_", {fixed, 0.5}, "read-only"},
      {"aten::random_", {fixed}, "read-only"},
      {kAdam, adam(fixed, fresh(), fresh(), fresh(), none), "writes into a tensor whose memory is read-only"},
      {kAdam, adam(fresh(), fresh(), fixed, fresh(), none), "writes into a tensor whose memory is read-only"},
      {kAdam, adam(fresh(), fresh(), fresh(), fixed, none), "writes into a tensor whose memory is read-only"},
      {kAdam, adam(fresh(), fresh(), fresh(), fresh(), list(fixed)), "writes into a tensor whose memory is read-only"},
      {kAdam, adam(fresh(), fixed, fresh(), fresh(), list(fresh())), kTaken},
      {"tensord::grad_norm", {list(fixed), 2.0}, kTaken},
      {"tensord::clip_grad_norm_", {list(fixed), 1.0, 2.0, false}, "read-only"},
  });
}

TEST(RefusedEdges, Pools) {
  const Tensor image = ones({1, 2, 4, 4}), g = ones({1, 2, 2, 2}), places = ones({1, 2, 2, 2}, kLong);
  const auto fractional = [&](const Dims& kernel, const Dims& out, const Tensor& samples) {
    return std::vector<Value>{image, ints(kernel), ints(out), samples};
  };
  const auto back = [&](const Dims& kernel) {
    return std::vector<Value>{g, image, ints(kernel), ints(kernel), ints({}), ints({}), false};
  };
  const char *const kFractional = "aten::fractional_max_pool2d", *const kBack = "tensord::max_pool_backward";
  expect_rows({
      {kFractional, fractional({2, 2}, {2, 2}, ones({1, 2, 2})), kTaken},
      {kFractional, fractional({1, 1}, {1, 1}, ones({1, 2, 2})), kTaken},
      {kFractional, fractional({2, 2}, {2, 2}, ones({2, 2, 2})), "Expect _random_samples to hold 2 numbers"},
      {kFractional, fractional({2, 2}, {2, 2}, ones({1, 2, 3})), "Expect _random_samples to hold 2 numbers"},
      {kBack, back({}), "kernel_size must have 1 to 3 items"},
      {kBack, back({2, 2, 2, 2}), "kernel_size must have 1 to 3 items"},
      {"tensord::max_pool_scatter", {ones({2, 2, 2}), image, ones({2, 2, 2}, kLong), 2}, "the result 3"},
      {"aten::max_pool2d_with_indices_backward",
       {g, image, ints({2, 2}), ints({2, 2}), ints({0, 0}), ints({1, 1}), false, ones({1, 2, 2, 1}, kLong)},
       "indices must be int64 of size [1, 2, 2, 2]"},
      {"aten::max_unpool3d",
       {ones({1, 1, 1, 1}), ones({1, 1, 1, 1}, kLong), ints({2, 2, 2}), ints({1, 1, 1}), ints({0, 0, 0})},
       kTaken},
      {"aten::max_unpool2d", {ones({2, 0, 2}), ones({2, 0, 2}, kLong), ints({4, 4})}, kTaken},
  });
}

TEST(RefusedEdges, Images) {
  const Tensor image = ones({1, 2, 4, 4}), grid = ones({1, 3, 3, 2});
  const int64_t most = 1 << 24;
  const auto scaled = [&](const Tensor& x, double rows) {
    return std::vector<Value>{x, ints({8, 8}), false, rows, 1.0};
  };
  const auto factors = [](const Tensor& x, double rows) { return std::vector<Value>{x, kNone, numbers({rows, 1.0})}; };
  const char* const kUpsample = "aten::upsample_bilinear2d";
  expect_rows({
      {"aten::upsample_nearest1d", {ones({1, 1, 1}, DType::kUInt8), ints({most})}, kTaken},
      {"aten::upsample_nearest1d",
       {meta({1, 1, 1}, DType::kUInt8), ints({most + 1})},
       "sizes should be greater than 0"},
      {"aten::upsample_nearest2d.vec", factors(ones({1, 2, 4}), 2.0), "scale factors for a 4-D input"},
      {"aten::upsample_nearest2d.vec", factors(ones({1, 1, 1, 1}), 1e9), "scale factor 1e+09 is out of range"},
      {"aten::upsample_nearest2d.vec", factors(ones({1, 1, 1, 1}), 0.5), "sizes should be greater than 0"},
      {kUpsample, scaled(image, 0.0), kTaken},
      {kUpsample, scaled(image, -1.0), kTaken},
      {kUpsample, scaled(image, 1e-9), "scale factor 1e-09 is out of range"},
      {"aten::_upsample_bilinear2d_aa",
       {ones({1, 1, 8, 1}), ints({(1 << 23) + 1, 1}), false, 0.1, kNone},
       "a scale factor is out of range"},
      {"aten::im2col",
       {ones({1, 4, 0}), ints({1, 1}), ints({1, 1}), ints({1, 1}), ints({1, 1})},
       "Expected 3D or 4D (batch mode)"},
      {"aten::im2col",
       {ones({1, 0, 4}), ints({1, 1}), ints({1, 1}), ints({1, 1}), ints({1, 1})},
       "Expected 3D or 4D (batch mode)"},
      {"aten::im2col",
       {ones({1, 1, 1, 1, 1}), ints({1, 1}), ints({1, 1}), ints({1, 1}), ints({1, 1})},
       "Expected 3D or 4D (batch mode)"},
      {"aten::im2col", {ones({0, 1, 4, 4}), ints({2, 2}), ints({1, 1}), ints({0, 0}), ints({1, 1})}, kTaken},
      {"aten::grid_sampler_2d_backward",
       {ones({1, 2, 3, 4}), image, grid, 0, 0, false, bools({true, true})},
       "expected a gradient of shape [1, 2, 3, 3]"},
      {"aten::grid_sampler_2d_backward",
       {ones({1, 2, 3, 3}), image, grid, 0, 0, false, bools({true, true, true})},
       "2"},
      {"aten::affine_grid_generator", {ones({0, 2, 3}), ints({0, 1, 2, 2}), false}, kTaken},
      {"aten::affine_grid_generator", {ones({2, 2, 3}), ints({1, 1, 2, 2}), false}, "2D affine matrices"},
      {"aten::affine_grid_generator", {ones({1, 2, 4}), ints({1, 1, 2, 2}), false}, "2D affine matrices"},
      {"aten::affine_grid_generator", {ones({1, 3, 3}), ints({1, 1, 2, 2}), false}, "2D affine matrices"},
  });
}

TEST(RefusedEdges, Views) {
  const Tensor three = ones({3});
  const Value far = ints({INT64_MAX, 0}), far_after = ints({0, INT64_MAX}), both = ints({INT64_MIN, INT64_MIN});
  const Tensor counts = longs({1, 2, 0});
  const auto gather = [&](const Dims& strides, int64_t offset) {
    return std::vector<Value>{three, ints(strides), offset, ints({2}), ints({1}), 0};
  };
  const Tensor leaf = ones({1, 3});
  autograd::set_requires_grad(leaf);
  const Tensor followed = run("aten::mul.Tensor", {leaf, leaf}).to_tensor();
  Dims most;
  for (int i = 0; i < 64; ++i) most.push_back(1);
  expect_rows({
      {"aten::constant_pad_nd", {three, far}, "resulted in a negative output size"},
      {"aten::constant_pad_nd", {three, far_after}, "resulted in a negative output size"},
      {"aten::constant_pad_nd", {three, both}, "resulted in a negative output size"},
      {"aten::constant_pad_nd", {three, ints({-1, -2})}, kTaken},
      {"aten::repeat", {ones({}), ints(most)}, kTaken},
      {"aten::repeat_interleave.self_int", {three, 0}, kTaken},
      {"aten::repeat_interleave.self_Tensor", {three, counts, kNone, 3}, kTaken},
      {"aten::repeat_interleave.self_Tensor", {three, counts, kNone, 4}, "allocated size does not match"},
      {"aten::repeat_interleave.self_Tensor", {three, longs({INT64_MAX, INT64_MAX, 2})}, "repeats can not be negative"},
      {"aten::pixel_shuffle", {meta({1 << 30, 1, 1}), 1 << 15}, "expects a positive upscale_factor, but got 32768"},
      {"aten::pixel_unshuffle",
       {meta({1, 1 << 15, 1 << 15}), 1 << 15},
       "expects a positive downscale_factor, but got 32768"},
      {"aten::pixel_shuffle", {meta({32767 * 32767, 1, 1}), 32767}, kTaken},
      {"aten::pixel_unshuffle", {meta({1, 32767, 32767}), 32767}, kTaken},
      {"aten::flipud", {three}, kTaken},
      {"aten::unflatten.int", {ones({6, 0}), 0, ints({-1, 2})}, kTaken},
      {"aten::combinations", {ones({64}), 64}, kTaken},
      {"aten::combinations", {ones({65}), 65}, "r must be at most 64, but got 65"},
      {"tensord::as_strided_gather", gather({1}, 0), kTaken},
      {"tensord::as_strided_gather", gather({1, 1}, 0), "mismatch in length of strides and shape"},
      {"tensord::as_strided_gather", gather({1}, -1), "-1"},
      {"aten::squeeze_", {followed}, "not supported on a tensor that autograd follows"},
      {"aten::unsqueeze_", {followed, 0}, "not supported on a tensor that autograd follows"},
      {"aten::diag", {three, (int64_t{1} << 31)}, "is too large"},
  });
}

TEST(RefusedEdges, RecurrentLayers) {
  const Tensor x = ones({5, 1, 3}), h = ones({1, 1, 2});
  const auto lstm = [&](const Tensor& state, const Tensor& recurrent, const Tensor& projection, int64_t layers) {
    return std::vector<Value>{x,
                              tensors({state, ones({1, 1, 4})}),
                              tensors({ones({16, 3}), recurrent, ones({16}), ones({16}), projection}),
                              true,
                              layers,
                              0.0,
                              false,
                              false,
                              false};
  };
  const Tensor recurrent = ones({16, 2}), projection = ones({2, 4});
  const auto gru = [](const Tensor& w) {
    return std::vector<Value>{ones({2, 3}), ones({2, 4}), ones({12, 3}), w, kNone, kNone};
  };
  const auto packed = [](const std::vector<int64_t>& sizes, int64_t batch) {
    const Tensor rows = ones({5, 3});
    autograd::set_requires_grad(rows);
    return std::vector<Value>{rows,
                              longs(sizes),
                              tensors({ones({1, batch, 4}), ones({1, batch, 4})}),
                              tensors({ones({16, 3}), ones({16, 4}), ones({16}), ones({16})}),
                              true,
                              1,
                              0.0,
                              false,
                              false};
  };
  const char *const kLstm = "aten::lstm.input", *const kPacked = "aten::lstm.data",
                    *const kPack = "aten::_pack_padded_sequence";
  expect_rows({
      {kLstm, lstm(h, recurrent, projection, 1), kTaken},
      {kLstm, lstm(h, recurrent, ones({3, 4}), 1), "projection"},
      {kLstm, lstm(h, recurrent, ones({2, 3}), 1), "projection"},
      {kLstm, lstm(h, recurrent, projection, 0), "num_layers of a recurrent layer is 0, for 5 parameters"},
      {kLstm, lstm(h, recurrent, projection, -1), "num_layers of a recurrent layer is -1"},
      {kLstm, lstm(h, recurrent, projection, 6), "num_layers of a recurrent layer is 6, for 5 parameters"},
      {"aten::gru_cell", gru(ones({12, 4})), kTaken},
      {"aten::gru_cell", gru(ones({11, 4})), "units must have 12 rows, but got 12 and 11"},
      {kPacked, packed({3, 2}, 3), kTaken},
      {kPacked, packed({3, 1, 1}, 3), kTaken},
      {kPacked, packed({5}, 5), kTaken},
      {kPacked, packed({2, 3}, 2), "never grow"},
      {kPacked, packed({3, 2}, 4), "begin with the states' batch"},
      {kPacked, packed({3, 2, 0}, 3), "never grow, and add up to its rows"},
      {kPacked, packed({3, 3}, 3), "never grow, and add up to its rows"},
      {kPacked, packed({3, 1}, 3), "add up to"},
      {kPack, {ones({2, 1, 3}), ones({1, 1}, kLong), false}, "lengths of pack_padded_sequence must be a list"},
      {kPack, {ones({2, 1, 3}), ones({1}), false}, "lengths of pack_padded_sequence must be a list"},
  });
}

TEST(RefusedEdges, DtypesAndSizesOfResults) {
  const Tensor x = ones({2, 3}), bytes = ones({2, 3}, DType::kUInt8), endless = floats({INFINITY, 1});
  const auto narrowed = [&](DType asked) {
    return run("aten::_softmax_backward_data", {x, x, 1, asked}).to_tensor().dtype();
  };
  EXPECT_EQ(narrowed(DType::kFloat16), DType::kFloat16);
  EXPECT_EQ(narrowed(DType::kBFloat16), DType::kBFloat16);
  EXPECT_EQ(narrowed(DType::kFloat64), DType::kFloat32);
  const auto truth = [](const Tensor& of, const Value& dims) {
    return run("aten::any.dims", {of, dims, false}).to_tensor();
  };
  EXPECT_EQ(truth(bytes, ints({})).dtype(), DType::kUInt8);
  EXPECT_EQ(truth(x, ints({})).dtype(), DType::kBool);
  EXPECT_EQ(truth(x, ints({})).sizes(), x.sizes());
  EXPECT_EQ(truth(Tensor::scalar(2.0f), ints({0})).dtype(), DType::kBool);
  const auto losses = [](const Tensor& scores) {
    return run("aten::multilabel_margin_loss", {scores, ones(scores.sizes(), kLong), 0}).to_tensor().sizes();
  };
  EXPECT_EQ(losses(x), (Dims{2}));
  EXPECT_EQ(losses(ones({3})), Dims{});
  expect_rows({
      {"aten::binary_cross_entropy", {floats({-0.5f, 1}), ones({2})}, "should be between 0 and 1"},
      {"aten::binary_cross_entropy", {floats({0.5f, 1.5f}), ones({2})}, "should be between 0 and 1"},
      {"aten::binary_cross_entropy", {floats({0, 1}), ones({2})}, kTaken},
      {"aten::cross_entropy_loss", {ones({}), ones({}, kLong)}, "Expected 1 or more dimensions (got 0)"},
      {"aten::segment_reduce", {ones({3}), "sum", vector_of<int32_t>({1, 2})}, kTaken},
      {"aten::median.dim", {ones({}), 0}, kTaken},
      {"aten::hardtanh", {bytes, 0, 6}, kTaken},
      {"aten::hardtanh", {bytes, -1, 6}, "cannot do hardtanh on an unsigned type with negative limits"},
      {"aten::normal.float_Tensor", {0.0, floats({0, 1})}, kTaken},
      {"tensord::clip_grad_norm_", {tensors({endless.clone()}), 1.0, 2.0, true}, "is non-finite"},
      {"tensord::clip_grad_norm_", {tensors({endless.clone()}), 1.0, 2.0, false}, kTaken},
      {"tensord::clip_grad_norm_", {tensors({ones({3})}), 1.0, 2.0, true}, kTaken},
  });
}

TEST(RefusedEdges, Numbers) {
  const auto said = [](const char* op, std::vector<Value> arguments) { return run(op, std::move(arguments)); };
  EXPECT_EQ(said("aten::__lshift__.int", {1, 63}).to_int(), INT64_MIN);
  EXPECT_EQ(said("aten::__lshift__.int", {1, 64}).to_int(), 0);
  EXPECT_EQ(said("aten::__lshift__.int", {1, 65}).to_int(), 0);
  EXPECT_EQ(said("aten::__rshift__.int", {-8, 64}).to_int(), -1);
  EXPECT_EQ(said("aten::__rshift__.int", {8, 67}).to_int(), 0);
  EXPECT_EQ(said("prim::abs.Scalar", {-3}).to_int(), 3);
  EXPECT_EQ(said("aten::factorial.int", {65}).to_int(), INT64_MIN);
  EXPECT_EQ(said("aten::factorial.int", {66}).to_int(), 0);
  EXPECT_EQ(said("aten::factorial.int", {int64_t{1} << 40}).to_int(), 0);
  EXPECT_EQ(said("prim::NumToTensor.Scalar", {true}).to_tensor().dtype(), DType::kBool);
  const auto is_contiguous = [&](const Dims& sizes, int64_t format) {
    return said("aten::is_contiguous.memory_format", {ones(sizes), format}).to_bool();
  };
  EXPECT_TRUE(is_contiguous({2, 3}, 0));
  EXPECT_FALSE(is_contiguous({1, 1, 1, 1, 1}, 1));
  EXPECT_TRUE(is_contiguous({1, 1, 1, 1}, 2));
  EXPECT_FALSE(is_contiguous({1, 1, 1, 1, 1}, 2));
  EXPECT_FALSE(is_contiguous({1, 1, 1, 1}, 3));
  EXPECT_TRUE(is_contiguous({1, 1, 1, 1, 1}, 3));
  // Formatted numbers, and their truncation.
  EXPECT_EQ(said("aten::percentFormat", {"%d", 2147483648.0}).to_string(), "-2147483648");
  EXPECT_EQ(said("aten::percentFormat", {"%d", 2147483647.0}).to_string(), "2147483647");
  EXPECT_EQ(said("aten::percentFormat", {"%d", -2147483649.0}).to_string(), "-2147483648");
}

TEST(RefusedEdges, Texts) {
  const int64_t most = int64_t{1} << 28, half = int64_t{1} << 14;
  const std::string many(half, 'a'), more(half + 1, 'b');
  const auto text = [](const char* op, std::vector<Value> arguments) {
    return run(op, std::move(arguments)).to_string();
  };
  EXPECT_EQ(text("aten::mul.str_int", {"", int64_t{1} << 40}), "");
  EXPECT_EQ(text("aten::mul.str_int", {"ab", -1}), "");
  EXPECT_EQ(text("aten::mul.str_int", {"ab", 2}), "abab");
  EXPECT_EQ(text("aten::expandtabs", {"a\tb", 0}), "ab");
  EXPECT_EQ(text("aten::slice.str", {"abc", 2, kNone, INT64_MIN}), "c");
  EXPECT_EQ(text("aten::slice.str", {"abc", kNone, INT64_MAX, -1}), "cba");
  EXPECT_EQ(text("aten::slice.str", {"abc", 1, kNone, INT64_MAX}), "b");
  EXPECT_EQ(run("aten::count", {"abc", "", 5, 2}).to_int(), 0);
  EXPECT_EQ(run("aten::count", {"abc", "", 0, 3}).to_int(), 4);
  const Value list = items({1, 2, 3}), reversed = run("aten::slice.t", {list, 2, kNone, INT64_MIN});
  EXPECT_EQ(reversed.to_list()->items.size(), 1u);
  EXPECT_EQ(reversed.to_list()->items[0].to_int(), 3);
  Value deep(1), deeper(1);
  for (int i = 0; i < 63; ++i) deep = items({deep});
  deeper = items({deep});
  expect_rows({
      {"aten::chr", {1114111}, kTaken},
      {"aten::chr", {1114112}, "chr() arg not in range"},
      {"aten::ljust", {"a", most}, kTaken},
      {"aten::ljust", {"a", most + 1}, "a string of 268435457 bytes is too long"},
      {"aten::mul.str_int", {many, half}, kTaken},
      {"aten::mul.str_int", {many, half + 1}, "cannot be repeated 16385 times"},
      {"aten::replace", {many, "a", more}, "bytes is too long"},
      {"aten::format", {}, "the first argument must be a string"},
      {"aten::percentFormat", {}, "the first argument must be a string"},
      {"aten::format", {"{}", deep}, kTaken},
      {"aten::format", {"{}", deeper}, "the value is nested too deeply"},
      {"prim::rangelist", {int64_t{1} << 40}, "is too long"},
      {"aten::dict.int", {items({ops::make_tuple({1, 2})})}, kTaken},
  });
}

// Lists whose item types a script does not declare.
TEST(RefusedEdges, PairsOfDicts) {
  const auto outcome = [](const Value& list) {
    return said_by([&] { ops::run(ops::get_op("aten::dict.int"), std::vector<Value>{list}); });
  };
  EXPECT_THAT(outcome(items({1})), ::testing::HasSubstr("expected a list of pairs"));
  EXPECT_THAT(outcome(items({ops::make_tuple({1})})), ::testing::HasSubstr("expected a list of pairs"));
  EXPECT_EQ(outcome(items({ops::make_tuple({1, 2})})), kTaken);
}

TEST(RefusedEdges, Orders) {
  const Value none = NAN;
  std::vector<Value> unordered(40, none);
  const auto pair = [](int64_t second) { return ops::make_tuple({Tensor::scalar(1.0f), second}); };
  expect_rows({
      {"aten::sort.float", {numbers(unordered), true}, "the order of the items contradicts itself"},
      {"aten::sort.any", {items({ops::make_tuple({1, 2}), ops::make_tuple({1, 2, 3})})}, "tuples of different lengths"},
      {"aten::sort.any", {items({ops::make_tuple({1, 2}), ops::make_tuple({1, 1})})}, kTaken},
  });
  const Value sorted = run("aten::sorted.any", {items({pair(2), pair(1)})});
  EXPECT_EQ(sorted.to_list()->items[0].to_tuple()->items[1].to_int(), 1);
}

}  // namespace
}  // namespace tensord::refused_edges_test
