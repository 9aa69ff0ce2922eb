// Arguments that operators must refuse, where PyTorch's scripts cannot pass them or PyTorch would accept them:
// gradients of other sizes, sizes whose products overflow (of tensors without memory), dtypes that our own operators
// pass to each other.
#include "tests/support/operator_rows.h"

namespace tensord::refused_calls_test {
namespace {

using namespace testing_rows;

constexpr int64_t kHuge = int64_t{1} << 40;

TEST(RefusedCalls, Attention) {
  const Tensor q = zeros({2, 4, 8});
  const auto attention = [](const Tensor& query, const Tensor& key, const Tensor& value, const Value& mask,
                            const Value& fill, bool transposes) {
    return std::vector<Value>{query, key, value, mask, 1.0, fill, true, false, transposes};
  };
  const auto layer = [](const Tensor& x, int64_t width, int64_t heads, const Tensor& qkv) {
    return std::vector<Value>{x,          width,      heads,         qkv,        zeros({24}),   zeros({8, 8}),
                              zeros({8}), false,      false,         1e-5,       zeros({8}),    zeros({8}),
                              zeros({8}), zeros({8}), zeros({8, 8}), zeros({8}), zeros({8, 8}), zeros({8}),
                              kNone,      kNone};
  };
  const char* const kLayer = "aten::_transformer_encoder_layer_fwd";
  expect_rows({
      {"tensord::attention", attention(q, zeros({2, 4, 7}), q, kNone, kNone, false), "different widths, 8 and 7"},
      {"tensord::attention", attention(q, q, zeros({2, 5, 8}), kNone, kNone, false), "there are 4 keys and 5 values"},
      {"tensord::attention", attention(zeros({2, 1, 8}), q, q, zeros({3, 4}), kNone, false), "does not fit scores"},
      {"tensord::attention", attention(q, zeros({2, 1, 8}), zeros({2, 1, 8}), zeros({4, 3}), kNone, false),
       "does not fit scores"},
      {"tensord::attention", attention(q, q, q, zeros({4, 4}), 0.0, false), "a mask of float32 cannot be filled"},
      {"tensord::attention", attention(q, q, q, zeros({4, 4}, DType::kBool), kNone, false),
       "a mask of bool cannot be added"},
      {"tensord::attention", attention(zeros({4, 8}), zeros({4, 8}), zeros({4, 8}), kNone, kNone, true),
       "there are no heads"},
      {"tensord::attention", attention(q, q.to(DType::kFloat64), q, kNone, kNone, false),
       "the same floating point dtype"},
      {"tensord::attention", attention(q, q, q.to(DType::kFloat64), kNone, kNone, false),
       "the same floating point dtype"},
      {kLayer, layer(zeros({4, 8}), 8, 2, zeros({24, 8})), "expected 3-D query, got 2-D tensor"},
      {kLayer, layer(q, 6, 2, zeros({18, 8})), "passed-in embed_dim 6 didn't match last dim of query 8"},
      {kLayer, layer(q, 8, 3, zeros({24, 8})), "embed_dim 8 is not divisible by 3 heads"},
      {kLayer, layer(q, 8, 0, zeros({24, 8})), "embed_dim 8 is not divisible by 0 heads"},
      {kLayer, layer(q, 8, 2, zeros({16, 8})), "expected qkv_weight's first dim to be 3 * 8"},
      {kLayer, layer(q, 8, 2, zeros({24})), "expected qkv_weight's first dim to be 3 * 8"},
      {"aten::scaled_dot_product_attention", {vector(), q, q}, "query must have at least 2 dimensions"},
      {"aten::scaled_dot_product_attention",
       {q, q, q, zeros({4, 4}), 0.0, true},
       "should not be set when is_causal=True"},
  });
}

TEST(RefusedCalls, ConvolutionsAndRegions) {
  const Value one = ints({1, 1}), none = ints({0, 0});
  const auto conv = [&](const Tensor& x, const Tensor& w, bool is_transposed, int64_t stride = 1) {
    return std::vector<Value>{x, w, kNone, ints({stride, stride}), none, one, is_transposed, none, int64_t{1}};
  };
  const auto pool = [](const Tensor& image, const Tensor& boxes, int64_t height, int64_t width) {
    return std::vector<Value>{image, boxes, 1.0, height, width};
  };
  const Tensor image = zeros({1, 1, 4, 4}), boxes = zeros({1, 5});
  const auto pool_backward = [&](const Tensor& argmax) {
    return std::vector<Value>{zeros({1, 1, 2, 2}), boxes, argmax, 1.0, 2, 2, 1, 1, 4, 4};
  };
  Tensor outside = zeros({1, 1, 2, 2}, DType::kInt32);
  outside.data<int32_t>()[0] = 16;
  const Tensor wide = meta({1, 1, int64_t{1} << 60, 1});
  expect_rows({
      {"aten::convolution", conv(wide, zeros({1, 1, 1, 1}), false), "sizes are too large"},
      {"aten::convolution", conv(meta({1, 1, kHuge, 1}), zeros({1, 1, 1, 1}), true), "sizes are too large"},
      {"aten::convolution", conv(image, meta({1, 1, int64_t{1} << 31, 1}), true), "sizes are too large"},
      {"torchvision::roi_pool", pool(image, boxes, kHuge, kHuge), "pooled sizes overflow"},
      {"torchvision::roi_pool", pool(image, boxes, 0, 1), "pooled sizes must be positive"},
      {"torchvision::roi_pool", pool(image, boxes, 1, 0), "pooled sizes must be positive"},
      {"torchvision::roi_pool", pool(meta({1, 1, int64_t{1} << 16, int64_t{1} << 15}), meta({1, 5}), 1, 1),
       "are too large"},
      {"torchvision::roi_pool", pool(image, zeros({1, 4}), 1, 1), "rois must have shape as Tensor[K, 5]"},
      {"torchvision::_roi_pool_backward", pool_backward(zeros({1, 1, 2, 2}, kLong)), "expected an argmax of int32"},
      {"torchvision::_roi_pool_backward", pool_backward(zeros({1, 1, 2, 1}, DType::kInt32)),
       "expected an argmax of int32"},
      {"torchvision::_roi_pool_backward", pool_backward(outside), "argmax 16 is outside of the image"},
      {"torchvision::nms", {zeros({2, 4}), zeros({2}, DType::kFloat64), 0.5}, "should have the same type as scores"},
      {"torchvision::nms", {zeros({2, 4}), zeros({3}), 0.5}, "same number of elements in dimension 0"},
      {"torchvision::nms", {zeros({2, 5}), zeros({2}), 0.5}, "should have 4 elements in dimension 1"},
  });
}

TEST(RefusedCalls, Embeddings) {
  const Tensor table = zeros({4, 2}), index = longs({0, 1}), offsets = longs({0});
  const auto bag = [&](int64_t mode) { return std::vector<Value>{table, index, offsets, false, mode}; };
  const auto backward = [&](const Tensor& g, int64_t mode, const Tensor& maxima, const Value& weights,
                            int64_t rows = 4) {
    return std::vector<Value>{g, index, offsets, longs({0, 0}), longs({2}), maxima, rows, false, mode, false, weights};
  };
  const auto weights_backward = [&](const Tensor& g, int64_t mode) {
    return std::vector<Value>{g, table, index, offsets, longs({0, 0}), mode};
  };
  const Tensor g = zeros({1, 2}), maxima = zeros({1, 2}, kLong);
  const char *const kBack = "aten::_embedding_bag_backward", *const kWeights =
                                                                 "aten::_embedding_bag_per_sample_weights_backward";
  expect_rows({
      {"aten::embedding_bag", bag(3), "unknown mode 3"},
      {"aten::embedding_bag", bag(-1), "unknown mode -1"},
      {kBack, backward(g, 3, maxima, kNone), "unknown mode 3"},
      {kBack, backward(g, -1, maxima, kNone), "unknown mode -1"},
      {kBack, backward(zeros({2}), 0, maxima, kNone), "expected a gradient of 2 dimensions, but got 1"},
      {kBack, backward(g, 0, maxima, kNone, -1), "expected a gradient of 2 dimensions"},
      {kBack, backward(g, 2, zeros({1, 3}, kLong), kNone), "expected the rows of maxima to have shape"},
      {kBack, backward(g, 0, maxima, zeros({3})), "expected 2 weights"},
      {kWeights, weights_backward(g, 1), "only supported with mode='sum'"},
      {kWeights, weights_backward(zeros({1, 3}), 0), "does not fit a table of shape"},
      {kWeights, weights_backward(zeros({2}), 0), "does not fit a table of shape"},
      {kWeights, weights_backward(g.to(DType::kFloat64), 0), "does not fit a table of shape"},
      {"aten::embedding_dense_backward", {scalar(), index, 4, -1, false}, "expected rows of gradients"},
      {"aten::embedding_dense_backward", {matrix(), index, -1, -1, false}, "expected rows of gradients"},
      {"aten::embedding_dense_backward",
       {matrix(), zeros({2}), 4, -1, false},
       "expected indices of dtype int32 or int64"},
      {"aten::embedding_renorm_", {vector(), index, 1.0, 2.0}, "expects a table of floating point numbers"},
      {"aten::embedding_renorm_", {zeros({4, 2}, kLong), index, 1.0, 2.0}, "expects a table of floating point numbers"},
      {"aten::embedding_renorm_", {table, zeros({2}), 1.0, 2.0}, "expects indices of dtype int32 or int64"},
  });
}

TEST(RefusedCalls, Products) {
  const Value list5 = ints({1, 1, 1, 1, 1});
  const Tensor wide = meta({kHuge}), bools = zeros({2, 2}, DType::kBool), five = zeros({1, 1, 1, 1, 1});
  const auto grouped = [](const Tensor& a, const Tensor& b, const Value& offsets, const Value& bias,
                          const Value& dtype) {
    return std::vector<Value>{a, b, offsets, bias, dtype};
  };
  const Tensor batch = zeros({2, 2, 2}), square = zeros({2, 2});
  const Tensor offsets = zeros({2}, DType::kInt32);
  const char* const kGrouped = "aten::_grouped_mm";
  expect_rows({
      {kGrouped, grouped(square, batch, offsets, zeros({2}), kNone), "bias is not supported"},
      {kGrouped, grouped(square, batch, offsets, kNone, DType::kFloat64), "out_dtype must be that of the matrices"},
      {kGrouped, grouped(batch, batch, offsets, kNone, kNone), "two batches of matrices take no offsets"},
      {kGrouped, grouped(square, batch, kNone, kNone, kNone), "expected a vector of offsets"},
      {kGrouped, grouped(square, batch, zeros({1, 2}, DType::kInt32), kNone, kNone), "expected a vector of offsets"},
      {kGrouped, grouped(zeros({2}), batch, offsets, kNone, kNone), "expected matrices of 2 or 3 dimensions"},
      {kGrouped, grouped(square, zeros({2}), offsets, kNone, kNone), "expected matrices of 2 or 3 dimensions"},
      {kGrouped, grouped(zeros({2, 3}), batch, offsets, kNone, kNone), "contraction dimension"},
      {"aten::mm", {bools, bools}, "is not supported for bool"},
      {"aten::matmul", {square, zeros({2, 2}, DType::kFloat64)}, "expected both tensors to have the same dtype"},
      {"aten::matmul", {bools, bools}, "is not supported for bool"},
      {"aten::matmul", {scalar(), square}, "need to be at least 1D"},
      {"aten::matmul", {square, scalar()}, "need to be at least 1D"},
      {"aten::addr", {zeros({2, 2, 2}), zeros({2}), zeros({2})}, "expected self to be expandable"},
      {"aten::addr", {zeros({2, 5}), zeros({2}), zeros({1})}, "expected self to be expandable"},
      {"aten::kron", {wide, wide}, "overflows"},
      {"aten::_fft_r2c", {matrix(), ints({}), 0, true}, "at least one dimension must be transformed"},
      {"aten::_fft_c2r", {zeros({2}, DType::kComplex64), ints({}), 0, 2}, "at least one dimension must be transformed"},
      {"aten::linalg_matrix_power", {square, std::numeric_limits<int64_t>::min()}, "the power is too small"},
      {"aten::linalg_cholesky", {zeros({2, 2}, DType::kFloat16)}, "cholesky_cpu"},
      {"aten::cholesky", {zeros({2, 2}, kLong)}, "cholesky_cpu"},
      {"aten::symeig", {matrix()}, "linalg.symeig"},
      {"aten::lu_unpack", {zeros({2}), zeros({2}, DType::kInt32)}, "Expected tensor with 2 or more dimensions"},
      {"aten::linalg_lu_solve",
       {square, longs({1, 2}), square},
       "pivots should be a Tensor of scalar type torch.int32"},
      {"aten::linalg_lu_solve",
       {square, zeros({2}, DType::kInt32), square.to(DType::kFloat64)},
       "to have the same dtype"},
      {"tensord::exchange_rows", {zeros({2}), zeros({2}, DType::kInt32), false}, "exchange_rows"},
      {"tensord::exchange_rows", {square, longs({1, 2}), false}, "pivots must be int32"},
      {"tensord::exchange_rows", {square, zeros({}, DType::kInt32), false}, "pivots must be int32"},
      {"aten::linalg_lstsq", {square, zeros({2, 2, 2})}, "input.dim() must be greater or equal to other.dim()"},
      {"aten::linalg_lstsq", {batch, zeros({2})}, "input.dim() must be greater or equal to other.dim()"},
      {"aten::linalg_lstsq", {square, zeros({2}, DType::kFloat64)}, "to have the same dtype"},
  });
}

TEST(RefusedCalls, PlanesOfRegions) {
  const ops::Op& op = ops::get_op("torchvision::roi_pool");
  const auto infer = [&](int64_t w) { ops::infer(op, ops::bind(op, {meta({1, 1, 1, w}), meta({1, 5}), 1.0, 1, 1})); };
  EXPECT_NO_THROW(infer(INT32_MAX));
}

// Up to these sizes LAPACK's 32-bit integers suffice.
TEST(RefusedCalls, MatricesThatAreTooLarge) {
  constexpr int64_t kMax = int64_t{1} << 24, kBoth = 16000;
  const auto factored = [](int64_t rows, int64_t columns) {
    return std::vector<Value>{meta({rows, columns}), meta({std::min(rows, columns)})};
  };
  const auto applied = [](int64_t rows, int64_t columns) {
    return std::vector<Value>{meta({rows, 1}), meta({1}), meta({rows, columns})};
  };
  struct Size {
    int64_t rows, columns;
    bool is_taken;
  };
  for (const auto [rows, columns, is_taken] : {Size{kBoth, kMax, true},
                                               {kMax, kBoth, true},
                                               {kBoth + 1, kBoth + 1, false},
                                               {1, kMax + 1, false},
                                               {kMax + 1, 1, false}}) {
    SCOPED_TRACE(to_string(Dims{rows, columns}));
    const auto says = is_taken ? ::testing::Matcher<std::string>(kTaken) : ::testing::HasSubstr("are too large");
    EXPECT_THAT(shape_error("aten::geqrf", {meta({rows, columns})}), says);
    EXPECT_THAT(shape_error("aten::linalg_svdvals", {meta({rows, columns})}), says);
    if (rows >= columns) {
      EXPECT_THAT(shape_error("aten::linalg_householder_product", factored(rows, columns)), says);
    }
    EXPECT_THAT(shape_error("aten::ormqr", applied(rows, columns)), says);
  }
  for (const int64_t n : {kBoth, kBoth + 1}) {
    SCOPED_TRACE(n);
    const auto says = n == kBoth ? ::testing::Matcher<std::string>(kTaken) : ::testing::HasSubstr("are too large");
    const Tensor a = meta({n, n});
    EXPECT_THAT(shape_error("aten::linalg_ldl_factor_ex", {a}), says);
    EXPECT_THAT(shape_error("aten::linalg_ldl_solve", {a, meta({n}, DType::kInt32), meta({n, 1})}), says);
    EXPECT_THAT(shape_error("aten::_linalg_eigh", {a}), says);
    EXPECT_THAT(shape_error("aten::linalg_eigvals", {a}), says);
  }
  const Tensor small = meta({2, 2}), pivots = meta({2}, DType::kInt32);
  EXPECT_EQ(shape_error("aten::linalg_ldl_solve", {small, pivots, meta({2, kMax})}), kTaken);
  EXPECT_THAT(shape_error("aten::linalg_ldl_solve", {small, pivots, meta({2, kMax + 1})}),
              ::testing::HasSubstr("are too large"));
  EXPECT_EQ(shape_error("aten::_linalg_svd", {meta({kBoth, 2}), true}), kTaken);
  EXPECT_THAT(shape_error("aten::_linalg_svd", {meta({kBoth + 1, 2}), true}), ::testing::HasSubstr("are too large"));
  EXPECT_THAT(shape_error("aten::_linalg_svd", {meta({2, kBoth + 1}), true}), ::testing::HasSubstr("are too large"));
}

TEST(RefusedCalls, Losses) {
  const Tensor scores = zeros({2, 3}), target = longs({0, 1}), loss = scalar();
  const auto cross = [&](const Tensor& g, const Tensor& moments, const Tensor& total, int64_t reduction = 1) {
    return std::vector<Value>{g, scores, target, kNone, reduction, -100, 0.0, moments, total};
  };
  const auto nll = [&](const Tensor& g, const Tensor& total, int64_t reduction) {
    return std::vector<Value>{g, scores, target, kNone, reduction, -100, total};
  };
  const auto ctc = [](const Dims& in, const Dims& of) {
    return std::vector<Value>{zeros({4, 2, 3}), zeros({2, 2}, kLong), ints(in), ints(of)};
  };
  const auto margin = [&](const Value& weight) { return std::vector<Value>{scores, target, 1, 1.0, weight}; };
  const Tensor labels = zeros({2, 3}, kLong);
  expect_rows({
      {"aten::nll_loss_nd", {scalar(), longs({0})}, "Expected 1 or more dimensions (got 0)"},
      {"aten::nll_loss_forward", {zeros({2, 3}, kLong), target, kNone, 1, -100}, "nll_loss"},
      {"aten::nll_loss_backward", nll(vector(), scalar(), 1), "the gradient is of size [3]"},
      {"aten::nll_loss_backward", nll(vector(), scalar(), 0), "the gradient is of size [3]"},
      {"aten::nll_loss_backward", nll(scalar(), vector(), 1), "the gradient is of size"},
      {"tensord::cross_entropy", {zeros({2, 0}), target, kNone, 1, -100, 0.0}, "there are no classes"},
      {"tensord::cross_entropy", {scores, target, kNone, 3, -100, 0.0}, "3 is not a valid value for reduction"},
      {"tensord::cross_entropy", {scores, target, kNone, -1, -100, 0.0}, "-1 is not a valid value for reduction"},
      {"tensord::cross_entropy_backward", cross(vector(), zeros({4}), scalar()), "the gradient is of size [3]"},
      {"tensord::cross_entropy_backward", cross(scalar(), zeros({4}), scalar(), 0), "the gradient is of size []"},
      {"tensord::cross_entropy_backward", cross(loss, zeros({5}), scalar()), "the moments are of size [5]"},
      {"tensord::cross_entropy_backward", cross(loss, zeros({4}, DType::kFloat64), scalar()),
       "the moments are of size"},
      {"tensord::cross_entropy_backward", cross(loss, zeros({4}), vector()), "the moments are of size"},
      {"aten::cross_entropy_loss",
       {scores, scores, kNone, 1, 0},
       "ignore_index is not supported for floating point target"},
      {"aten::ctc_loss.IntList", ctc({4}, {2, 2}), "input_lengths must be of size batch_size"},
      {"aten::ctc_loss.IntList", ctc({4, 4, 4}, {2, 2}), "input_lengths must be of size batch_size"},
      {"aten::ctc_loss.IntList", ctc({4, 4}, {2}), "target_lengths must be of size batch_size"},
      {"aten::ctc_loss.Tensor", {zeros({4, 2, 3}), labels, zeros({2}), longs({2, 2})}, "must be integral"},
      {"aten::ctc_loss.Tensor", {zeros({4, 2, 3}), labels, longs({4, 4}), zeros({2})}, "must be integral"},
      {"aten::ctc_loss.Tensor",
       {zeros({4, 2, 3}), labels, meta({2}, kLong), longs({2, 2})},
       "the lengths are not known yet"},
      {"aten::triplet_margin_loss", {scores, vector(), scores}, "All inputs should have same dimension"},
      {"aten::triplet_margin_loss", {scores, scores, vector()}, "All inputs should have same dimension"},
      {"aten::multi_margin_loss", margin(zeros({2})), "inconsistent weight size"},
      {"aten::multi_margin_loss", margin(zeros({1, 3})), "inconsistent weight size"},
      {"aten::multi_margin_loss_backward", {vector(), scores, target, 1, 1.0}, "the gradient is of size [3]"},
      {"aten::multilabel_margin_loss_backward",
       {vector(), scores, labels, 1, zeros({2, 3})},
       "the gradient is of size [3]"},
      {"aten::multilabel_margin_loss_backward", {scalar(), scores, labels, 1, zeros({2, 2})}, "is_target is of size"},
  });
}

TEST(RefusedCalls, RowsByTheirPlaces) {
  const Tensor one = longs({0}), two = longs({0, 1});
  expect_rows({
      {"tensord::scatter_rows", {one, scalar(), 3}, "expected values for 1 places"},
      {"tensord::scatter_rows", {longs({}), scalar(), 3}, "expected values for 0 places"},
      {"tensord::scatter_rows", {two, vector(), 3}, "expected values for 2 places"},
      {"tensord::scatter_rows", {two, matrix(), -1}, "expected values for 2 places"},
      {"tensord::scatter_rows", {vector(), vector(), 3}, "expected a vector of int64 as places"},
      {"tensord::scatter_rows", {zeros({1, 1}, kLong), vector(), 3}, "expected a vector of int64 as places"},
      {"tensord::gather_rows", {one, scalar()}, "expected rows"},
      {"aten::linalg_tensorinv", {matrix(), 3}, "but got 1 != 6"},
      {"aten::linalg_tensorinv", {zeros({}), 0}, "Expected a strictly positive integer for 'ind', but got 0"},
  });
}

TEST(RefusedCalls, NormsAndPools) {
  const Tensor image = zeros({1, 2, 4, 4}), places = zeros({1, 2, 2, 2}, kLong), g = zeros({1, 2, 2, 2});
  const auto scatter = [&](const Tensor& index, int64_t spatial) {
    return std::vector<Value>{g, image, index, spatial};
  };
  expect_rows({
      {"aten::instance_norm", {image, zeros({3}), kNone, kNone, kNone, true, 0.1, 1e-5, false}, "2"},
      {"aten::instance_norm", {image, kNone, zeros({3}), kNone, kNone, true, 0.1, 1e-5, false}, "2"},
      {"aten::group_norm", {image, 1, zeros({3}), kNone}, "Expected weight and bias of 2 values"},
      {"aten::group_norm", {image, 1, kNone, zeros({3})}, "Expected weight and bias of 2 values"},
      {"aten::group_norm", {vector(), 1}, "Expected at least 2 dimensions"},
      {"aten::rms_norm", {matrix(), ints({3}), zeros({2})}, "expected weight of shape [3]"},
      {"aten::rms_norm", {matrix(), ints({2}), kNone}, "expected input with that shape at its end"},
      {"tensord::max_pool_scatter", scatter(places, 0), "spatial must be 1 to 3"},
      {"tensord::max_pool_scatter", scatter(places, 4), "spatial must be 1 to 3"},
      {"tensord::max_pool_scatter", scatter(places.to(DType::kInt32), 2), "indices must be int64"},
      {"aten::adaptive_max_pool2d_backward", {g, image, places.to(DType::kInt32)}, "indices must be int64"},
      {"aten::_adaptive_avg_pool2d_backward", {zeros({2, 2, 2}), image}, "the gradient has 3 dimensions"},
      {"aten::_adaptive_avg_pool2d_backward", {scalar(), scalar()}, "the gradient has 0 dimensions"},
      {"aten::native_dropout_backward", {vector(), vector(), 1.0}, "mask should be torch.bool dtype"},
      {"aten::normal.float_Tensor", {0.0, longs({1})}, "expects standard deviation to be floating point"},
      {"aten::uniform_", {longs({1}), 0.0, 1.0}, "uniform_"},
      {"aten::uniform_", {zeros({1}), 1.0, 0.0}, "expects to return a [from, to) range"},
      {"aten::normal_", {longs({1}), 0.0, 1.0}, "normal_"},
      {"aten::normal_", {zeros({1}), 0.0, -1.0}, "expects std >= 0.0"},
  });
}

TEST(RefusedCalls, Reductions) {
  const auto segments = [](const Tensor& x, const Value& lengths, const Value& indices, const Value& offsets,
                           int64_t axis, const char* reduce = "sum") {
    return std::vector<Value>{x, std::string(reduce), lengths, indices, offsets, axis};
  };
  const Value bins2 = tensors({vector(), vector()}), bins3 = tensors({vector(), vector(), vector()});
  const char* const kSegments = "aten::segment_reduce";
  expect_rows({
      {"aten::cov", {matrix(), 1, longs({1, 2})}, "fweights"},
      {"aten::cov", {matrix(), 1, kNone, zeros({2})}, "aweights"},
      {"aten::cov", {matrix(), 1, kNone, zeros({1, 3})}, "aweights"},
      {"aten::cov", {cube()}, "expected input to have two or fewer dimensions"},
      {"aten::diff", {vector(), -1}, "order must be non-negative but got -1"},
      {"aten::diff", {scalar()}, "at least one-dimensional"},
      {"aten::histc", {vector(), 0}, "histc"},
      {"aten::histc", {longs({1}), 4}, "histc"},
      {"aten::_histogramdd_from_bin_tensors", {matrix(), bins2}, "expected 3 sequences of bin edges"},
      {"aten::_histogramdd_from_bin_tensors", {vector(), bins3}, "should have at least 2 dimensions"},
      {kSegments, segments(vector(), longs({3}), kNone, kNone, 0, "median"), "unsupported reduction median"},
      {kSegments, segments(vector(), longs({3}), longs({0}), kNone, 0), "indices based reduction is not supported"},
      {kSegments, segments(matrix(), longs({3}), kNone, kNone, 1), "Expected axis to be the last dimension of lengths"},
      {kSegments, segments(matrix(), kNone, kNone, longs({3}), 1), "Expected axis to be the last dimension of offsets"},
      {kSegments, segments(matrix(), zeros({1, 1}, kLong), kNone, kNone, 1), "before the axis differ"},
      {kSegments, segments(vector(), kNone, kNone, longs({}), 0), "offsets must not be empty"},
      {kSegments, segments(vector(), vector(), kNone, kNone, 0), "expected lengths or offsets of ints"},
      {kSegments, segments(zeros({0}), longs({0}), kNone, kNone, 0), "expected a tensor with elements"},
      {kSegments, segments(scalar(), longs({0}), kNone, kNone, 0), "expected a tensor with elements"},
      {"aten::isclose", {vector(), vector().to(DType::kFloat64)}, "did not match"},
      {"aten::isclose", {vector(), vector(), -1.0}, "rtol must be greater than or equal to zero"},
      {"aten::isclose", {vector(), vector(), 0.0, -1.0}, "atol must be greater than or equal to zero"},
      {"aten::isclose", {zeros({2}, DType::kComplex64), zeros({2}, DType::kComplex128)}, "did not match"},
      {"aten::one_hot", {longs({0}), 0}, "num_classes should be positive"},
  });
}

TEST(RefusedCalls, RecurrentLayers) {
  const int64_t hidden = 2, rows = 4 * hidden;
  const Tensor x = zeros({5, 1, 3}), h = zeros({1, 1, hidden});
  const std::vector<Value> good{zeros({rows, 3}), zeros({rows, hidden}), zeros({rows}), zeros({rows})};
  const auto lstm = [&](const std::vector<Value>& states, const std::vector<Value>& parameters) {
    return std::vector<Value>{x, tensors(states), tensors(parameters), true, 1, 0.0, false, false, false};
  };
  const auto with = [&](size_t i, const Dims& sizes) {
    std::vector<Value> parameters = good;
    parameters[i] = zeros(sizes);
    return lstm({h, h}, parameters);
  };
  const auto packed = [&](const Tensor& sizes) {
    return std::vector<Value>{zeros({5, 3}), sizes, tensors({h, h}), tensors(good), true, 1, 0.0, false, false};
  };
  const auto pad = [](const Tensor& data, const Tensor& sizes) {
    return std::vector<Value>{data, sizes, false, 0.0, 0};
  };
  const char *const kLstm = "aten::lstm.input", *const kPacked = "aten::lstm.data",
                    *const kPad = "aten::_pad_packed_sequence";
  expect_rows({
      {kLstm, with(0, {rows, 4}), "input weights"},
      {kLstm, with(0, {rows + 1, 3}), "input weights"},
      {kLstm, with(1, {rows, 3}), "recurrent weights"},
      {kLstm, with(1, {rows - 1, hidden}), "recurrent weights"},
      {kLstm, with(2, {rows + 1}), "input bias"},
      {kLstm, with(3, {rows - 1}), "recurrent bias"},
      {kLstm, lstm({zeros({2, 1, hidden}), h}, good), "first state"},
      {kLstm, lstm({h, zeros({2, 1, hidden})}, good), "cell state"},
      {kLstm, lstm({zeros({1, 2, hidden}), h}, good), "for a batch of 1, but got 2"},
      {kPacked, packed(zeros({5})), "batch_sizes of packed data must be a list of int64"},
      {kPacked, packed(zeros({5, 1}, kLong)), "batch_sizes of packed data must be a list of int64"},
      {kPacked, packed(longs({})), "batch_sizes of packed data must be a list of int64"},
      {kPad, pad(scalar(), longs({1})), "expects rows and a list of int64"},
      {kPad, pad(matrix(), zeros({2})), "expects rows and a list of int64"},
      {kPad, pad(matrix(), zeros({1, 2}, kLong)), "expects rows and a list of int64"},
      {kPad, pad(matrix(), longs({})), "expects rows and a list of int64"},
      {kPad, pad(matrix(), longs({1, 2})), "must never grow"},
      {kPad, pad(matrix(), longs({2, 1})), "must never grow"},
      {kPad, pad(matrix(), longs({2, 0})), "must never grow"},
      {"aten::lstm_cell",
       {zeros({1, 3}, kLong), tensors({zeros({1, 2}, kLong), zeros({1, 2}, kLong)}), zeros({8, 3}, kLong),
        zeros({8, 2}, kLong)},
       "recurrent cells"},
  });
}

TEST(RefusedCalls, Views) {
  const Tensor wide = meta({kHuge, 1}), empty = meta({0}), half = meta({int64_t{1} << 62}, DType::kBool);
  expect_rows({
      {"aten::unfold_backward", {matrix(), ints({5}), 0, 2, 1}, "the gradient has the shape [2, 3] where"},
      {"aten::select_backward", {vector(), ints({2, 2}), 0, 0}, "the gradient has the shape [3] where [2] is expected"},
      {"aten::slice_backward",
       {vector(), ints({4}), 0, 0, 2, 1},
       "the gradient has the shape [3] where [2] is expected"},
      {"aten::as_strided", {meta({4}), ints({2}), ints({1}), -1}, "invalid storage offset -1"},
      {"aten::as_strided", {meta({4}), ints({2}), ints({1, 1})}, "mismatch in length of strides and shape"},
      {"aten::cat", {tensors({half, half, half})}, "the joint size overflows"},
      {"aten::contiguous", {matrix(), 4}, "Unsupported memory format option 4"},
      {"aten::contiguous", {matrix(), -1}, "Unsupported memory format option -1"},
      {"aten::contiguous", {matrix(), 1}, "preserve memory format is unsupported"},
      {"aten::contiguous", {matrix(), 2}, "required rank 4 tensor to use channels_last format"},
      {"aten::contiguous", {matrix(), 3}, "required rank 5 tensor to use channels_last_3d format"},
      {"aten::copy_", {vector(), matrix()}, "does not fit into shape [3]"},
      {"aten::copy_", {vector(), meta({3})}, "Cannot copy out of meta tensor"},
      {"aten::repeat", {wide, ints({kHuge, 1})}, "the size of dimension 0 overflows"},
      {"aten::repeat", {vector(), ints({-1})}, "negative dimension -1"},
      {"aten::repeat", {matrix(), ints({2})}, "can not be smaller than number of dimensions"},
      {"aten::repeat_interleave.self_int", {meta({kHuge, 0}), kHuge, 0}, "the size overflows"},
      {"aten::unflatten.int", {scalar(), 0, ints({1})}, "a 0-dim tensor has no dimension to split"},
      {"aten::unflatten.int", {vector(), 0, ints({})}, "sizes must be non-empty"},
      {"aten::unflatten.int", {vector(), 0, ints({-2, -2})}, "invalid shape dimension -2"},
      {"aten::unflatten.int", {vector(), 0, ints({kHuge, kHuge})}, "invalid shape dimension"},
      {"aten::unflatten.int", {vector(), 0, ints({-1, -1})}, "only one dimension can be inferred"},
      {"aten::chunk", {empty, int64_t{1} << 24}, "too many chunks: 16777216"},
      {"aten::chunk", {empty, 0}, "to be greater than 0"},
      {"aten::tensor_split.sections", {empty, int64_t{1} << 24}, "too many sections: 16777216"},
      {"aten::block_diag", {tensors({})}, "expected at least one tensor"},
      {"aten::affine_grid_generator", {meta({1, 2, 3}), ints({1, 1, kHuge, kHuge}), false}, "the size overflows"},
      {"aten::affine_grid_generator",
       {zeros({1, 3, 3}), ints({1, 1, 2, 2}), false},
       "Expected a batch of 2D affine matrices"},
      {"aten::affine_grid_generator", {zeros({1, 2, 3}), ints({1, 1, -1, 2}), false}, "expected positive sizes"},
  });
}

TEST(RefusedCalls, Literals) {
  Value deep(1);
  for (int i = 0; i < 200; ++i) deep = items({deep});
  expect_rows({
      {"aten::tensor", {deep}, "the list is nested too deeply"},
      {"aten::tensor", {items({Value(1), items({Value(1)})})}, "Expected sequence of length 0 at dim 1 (got a list)"},
      {"aten::tensor",
       {items({items({Value(1)}), items({Value(1), Value(2)})})},
       "Expected sequence of length 1 at dim 1 (got 2)"},
  });
}

}  // namespace
}  // namespace tensord::refused_calls_test
