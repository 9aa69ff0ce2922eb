// Calls at the limits of operators: those just beyond are refused, those at the limit are accepted.
#include <cmath>
#include <limits>

#include "core/ops/custom_class.h"
#include "tests/support/operator_rows.h"

namespace tensord::refused_bounds_test {
namespace {

using namespace testing_rows;

constexpr auto kComplex = DType::kComplex64;

TEST(RefusedBounds, DeformableConvolutions) {
  struct Columns {
    Tensor input = zeros({1, 4, 6, 6}), offset = zeros({1, 8, 5, 5}), mask = zeros({1, 4, 5, 5});
    bool use_mask = true;
    Dims kernel{2, 2}, stride{1, 1}, padding{0, 0};
    int64_t groups = 1;
    std::vector<Value> arguments() const {
      return {input, offset, mask, use_mask, ints(kernel), ints(stride), ints(padding), ints({1, 1}), groups};
    }
    std::vector<Value> backward(const Tensor& grad, const Value& wanted) const {
      std::vector<Value> all = arguments();
      all.insert(all.begin(), grad);
      all.push_back(wanted);
      return all;
    }
  };
  const auto layer = [](const Tensor& x, int64_t groups) {
    const Tensor weight = zeros({4, x.size(1) > 0 ? 4 : 1, 1, 1});
    return std::vector<Value>{x, weight, zeros({1, 2, 4, 4}), zeros({1, 1}), zeros({4}), 1, 1, 0, 0, 1, 1, groups,
                              1, false};
  };
  const char *const kColumns = "tensord::deform_columns", *const kLayer = "torchvision::deform_conv2d",
                    *const kBack = "tensord::deform_columns_backward";
  const int64_t half = int64_t{1} << 29;
  const Tensor grad = zeros({1, 16, 25});
  Columns whole, too_high, too_many, unmasked;
  whole.kernel = {6, 6}, whole.offset = zeros({1, 72, 1, 1}), whole.mask = zeros({1, 36, 1, 1});
  too_high.kernel = {7, 2}, too_high.stride = {2, 1};
  too_many.input = meta({1, 16, 1, 1}), too_many.kernel = too_many.padding = {half, half}, too_many.groups = 16;
  unmasked.use_mask = false;
  expect_rows({
      {kColumns, too_high.arguments(), "too small in dimension 2"},
      {kColumns, too_many.arguments(), "the sizes overflow"},
      {kBack, whole.backward(grad, bools({true, true})), "expected a gradient of shape [1, 144, 1]"},
      {kBack, Columns().backward(grad, bools({true, true})), "a gradient of no mask is wanted"},
      {kLayer, layer(zeros({1, 0, 4, 4}), 0), "does not fit a weight of shape"},
  });
  expect_rows({{kColumns, whole.arguments(), kTaken},
               {kBack, unmasked.backward(grad, bools({true, true, false})), kTaken},
               {kLayer, layer(zeros({1, 4, 4, 4}), 1), kTaken}});
}

// Positions without a nearby pixel read 0, those of NaN read NaN, and neither has a gradient.
TEST(RefusedBounds, PlacesThatAreLost) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& [y, x] : {std::pair(nan, 0.0), std::pair(0.0, nan), std::pair(1e30, 0.0), std::pair(0.0, -1e30)}) {
    Tensor offset = zeros({1, 2, 1, 1}, DType::kFloat64);
    offset.data<double>()[0] = y, offset.data<double>()[1] = x;
    const Tensor ones = ops::call_by_name("aten::ones", Dims{1, 1, 2, 2}, DType::kFloat64);
    const Tensor one = ops::call_by_name("aten::ones", Dims{1, 1, 1}, DType::kFloat64);
    const ops::Op& op = ops::get_op("tensord::deform_columns_backward");
    const Value unit = ints({1, 1});
    const auto gradients =
        ops::run(op, ops::bind(op, {one, ones, offset, zeros({1, 1, 1, 1}, DType::kFloat64), true, unit, ints({2, 2}),
                                    ints({0, 0}), unit, 1, bools({true, true, true})}));
    const ops::Op& columns = ops::get_op("tensord::deform_columns");
    const Tensor read = ops::run(columns, ops::bind(columns, {ones, offset, zeros({1, 1, 1, 1}, DType::kFloat64), false,
                                                              unit, ints({2, 2}), ints({0, 0}), unit, 1}))
                            .front()
                            .to_tensor();
    EXPECT_EQ(std::isnan(read.data<double>()[0]), std::isnan(y + x));
    for (const Value& g : gradients) {
      const Tensor& all = g.to_tensor();
      for (int64_t i = 0; i < all.numel(); ++i) EXPECT_EQ(all.data<double>()[i], 0) << i;
    }
  }
}

// Fill values out of a dtype's range, in every operator with a fill value; the ends of the range are valid.
TEST(RefusedBounds, NumbersOfFills) {
  const auto rows_of = [](DType dtype, const Value& number, const char* text) {
    const Tensor x = zeros({2}, dtype);
    const Value type(static_cast<int64_t>(dtype));
    expect_rows({{"aten::full", {ints({2}), number, type}, text},
                 {"aten::full_like", {x, number}, text},
                 {"aten::full_like", {zeros({2}, DType::kFloat64), number, type}, text},
                 {"aten::new_full", {x, ints({2}), number}, text},
                 {"aten::new_full", {zeros({2}, DType::kFloat64), ints({2}), number, type}, text},
                 {"aten::fill_.Scalar", {x.clone(), number}, text},
                 {"aten::masked_fill.Scalar", {x, zeros({2}, DType::kBool), number}, text}});
  };
  const char* const kRefused = "without overflow";
  for (const auto& [dtype, least, most] :
       {std::tuple(DType::kUInt8, -255, 255), {DType::kInt8, -128, 127}, {DType::kInt16, -32768, 32767}}) {
    rows_of(dtype, Value(int64_t{least}), kTaken);
    rows_of(dtype, Value(int64_t{most}), kTaken);
    rows_of(dtype, Value(int64_t{least - 1}), kRefused);
    rows_of(dtype, Value(int64_t{most + 1}), kRefused);
  }
  rows_of(DType::kFloat16, Value(65504.0), kTaken);
  rows_of(DType::kFloat16, Value(65505.0), kRefused);
  rows_of(DType::kFloat32, Value(1e39), kRefused);
}

TEST(RefusedBounds, Regions) {
  const Tensor image = zeros({1, 4, 4, 4});
  expect_rows({
      {"torchvision::roi_pool", {zeros({4, 4, 4}), zeros({1, 5}), 1.0, 2, 2}, "an input of 4 dimensions, but got 3"},
      {"torchvision::roi_align", {image, zeros({1, 5, 1}), 1.0, 2, 2, 1, false}, "but got [1, 5, 1]"},
  });
}

TEST(RefusedBounds, Convolutions) {
  const Value one = ints({1, 1}), none = ints({0, 0});
  const Tensor image = zeros({1, 2, 4, 4}), weight = zeros({3, 2, 2, 2}), grad = zeros({1, 3, 3, 3});
  const auto transposed = [&](int64_t height) {
    return std::vector<Value>{
        meta({1, 1, height, 1}), meta({1, 1, 1, 1}), kNone, one, none, one, true, none, int64_t{1}};
  };
  const auto grouped = [&](int64_t channels, int64_t of_weight, int64_t groups) {
    const Tensor x = meta({1, channels, 0, 0}), w = meta({groups, of_weight, 0, 1});
    return std::vector<Value>{x, w, kNone, one, none, one, false, none, groups};
  };
  const Tensor flat = zeros({1, 1, 1, 1, 1, 1});
  expect_rows({
      {"aten::convolution", grouped(0, int64_t{1} << 62, 4), "channels, but got 0 channels instead"},
      {"aten::convolution", grouped(INT64_MAX, INT64_MAX, 1), "non-positive kernel size is not supported"},
      {"aten::convolution", {flat, flat, kNone, one, none, one, false, none, 1}, "weight to have 3 to 5 dimensions"},
      {"aten::conv2d.padding", {zeros({1, 1}), zeros({1, 1}), kNone, one, std::string("valid")}, "3 to 5 dimensions"},
  });
  const ops::Op& op = ops::get_op("aten::convolution");
  EXPECT_NO_THROW(ops::infer(op, ops::bind(op, transposed((int64_t{1} << 31) - 1))));
  expect_rows({{"aten::convolution_backward",
                {grad, image, weight, kNone, one, none, one, false, none, 1, bools({true, true, true})},
                kTaken}});
}

TEST(RefusedBounds, StatesOfMobileLayers) {
  const ops::CustomClassFn* restore = ops::find_custom_class("__torch__.torch.classes.xnnpack.LinearOpContext");
  ASSERT_NE(restore, nullptr);
  EXPECT_NO_THROW((*restore)(ops::make_tuple({matrix(), kNone, kNone, kNone})));
  EXPECT_THROW((*restore)(ops::make_tuple({matrix(), kNone, kNone})), Error);
  EXPECT_THROW((*restore)(ops::make_tuple({matrix(), kNone, kNone, kNone, kNone})), Error);
  EXPECT_THROW((*restore)(Value(1)), Error);
}

TEST(RefusedBounds, Tables) {
  const Tensor index = longs({0, 1}), g = zeros({1, 2}), none = longs({0, 0}), two = zeros({2, 2});
  const auto backward = [&](const Tensor& grad, const Tensor& offsets, int64_t mode = 0,
                            const Tensor& maxima = zeros({1, 2}, kLong)) {
    return std::vector<Value>{grad, index, offsets, none, longs({2}), maxima, 4, false, mode, false, kNone};
  };
  const auto sparse = [&](const Tensor& grad, const Tensor& indices, const Tensor& offsets) {
    return std::vector<Value>{grad, indices, offsets, none, longs({2}), 4, false, 0, kNone};
  };
  const auto maxima = [](int64_t row) {
    Tensor out = zeros({1, 2}, kLong);
    out.data<int64_t>()[1] = row;
    return out;
  };
  const char *const kBack = "aten::_embedding_bag_backward", *const kSparseBag = "aten::_embedding_bag_sparse_backward",
                    *const kDense = "aten::embedding_dense_backward",
                    *const kSparse = "aten::embedding_sparse_backward";
  expect_rows({
      {kBack, backward(two, longs({0})), "expected gradients of 1 bags, but got 2"},
      {kBack, backward(g, longs({0, 1, 2})), "expected gradients of 3 bags, but got 1"},
      {kBack, backward(g, longs({-1})), "a bag begins at -1 of 2 indices, after 0"},
      {kBack, backward(g, longs({3})), "a bag begins at 3 of 2 indices, after 0"},
      {kBack, backward(g, longs({0}), 2, maxima(-1)), "index -1 is out of range"},
      {kSparseBag, sparse(zeros({0, 2}), index, longs({})), "offsets[0] has to be 0"},
      {kSparse, {two, longs({0, -1}), 4, -1, false}, "index -1 is out of range"},
      {kSparse, {two, longs({0, 4}), 4, -1, false}, "index 4 is out of range"},
      {"aten::embedding_renorm_", {zeros({4, 2}), longs({-1}), 1.0, 2.0}, "index out of range"},
      {"aten::embedding_renorm_", {zeros({4, 2}), longs({4}), 1.0, 2.0}, "index out of range"},
  });
  expect_rows({
      {kBack, backward(two, longs({2, 2})), kTaken},
      {kBack, backward(two, longs({0, 0, 2})), kTaken},
      {kBack, backward(g, longs({0}), 2, maxima(3)), kTaken},
      {kSparseBag, sparse(zeros({0, 2}), longs({}), longs({})), kTaken},
      {kSparseBag, sparse(g, index, longs({0})), kTaken},
      {kSparse, {zeros({2}), zeros({}, kLong), 4, -1, false}, kTaken},
      {kSparse, {zeros({0, 2}), longs({}), 0, -1, false}, kTaken},
      {kDense, {zeros({2}), zeros({}, kLong), 4, -1, false}, kTaken},
      {kDense, {zeros({0, 2}), longs({}), 0, -1, false}, kTaken},
      {kDense, {two, longs({0, 3}), 4, -1, false}, kTaken},
      {"aten::embedding_renorm_", {meta({4, 2}), longs({0}), 1.0, 2.0}, kTaken},
      {"aten::embedding_renorm_", {zeros({4, 2}), meta({2}, kLong), 1.0, 2.0}, kTaken},
  });
}

TEST(RefusedBounds, Heads) {
  const Tensor q = zeros({2, 4, 8}), one = zeros({1, 4, 8}), whole = zeros({2, 4, 8}, kLong);
  const auto dot = [](const Tensor& query, const Tensor& key) {
    return std::vector<Value>{query, key, key, kNone, 0.0, false, kNone, true};
  };
  const char* const kDot = "aten::scaled_dot_product_attention";
  expect_rows({
      {kDot, dot(matrix(), matrix()), "enable_gqa needs at least 3 dimensions"},
      {kDot, dot(q, zeros({0, 4, 8})), "must divide the number of heads in query"},
      {"tensord::attention",
       {whole, whole, whole, kNone, 1.0, kNone, true, false, false},
       "the same floating point dtype"},
  });
  expect_rows({{kDot, dot(q, one), kTaken}, {kDot, dot(zeros({0, 4, 8}), one), kTaken}});
}

TEST(RefusedBounds, NumbersAndShapes) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor bytes = zeros({2, 2}, DType::kInt8), pairs = zeros({2, 2}, kComplex), flags = zeros({3}, DType::kBool);
  expect_rows({
      {"aten::tensordot", {matrix(), matrix(), ints({0, 0}), ints({0, 0})}, "dim 0 appears multiple times"},
      {"aten::range", {infinity, 4}, "unsupported range"},
      {"aten::empty_strided", {ints({2, 3}), ints({1})}, "mismatch in length of strides and shape"},
      {"prim::tolist", {flags, 1, 2}, "element type and runtime tensor element type must match"},
      {"prim::tolist", {vector(), 1, 3}, "element type and runtime tensor element type must match"},
      {"aten::topk", {vector(), -1, 0, true, true}, "selected index k out of range"},
      {"aten::_linalg_eigh", {zeros({2, 2}), ""}, "Expected UPLO argument to be 'L' or 'U', but got "},
      {"aten::_linalg_eigh", {zeros({2, 2}), "LU"}, "Expected UPLO argument to be 'L' or 'U', but got LU"},
      {"aten::index.Tensor", {vector(), tensors({zeros({3, 1}, DType::kBool)})}, "The shape of the mask [3, 1] at"},
  });
  const Value all_rows = ops::make_list(ops::optional_type(ops::tensor_type()), {kNone, longs({0, 1, 2})});
  expect_rows({
      {"aten::isclose", {pairs, pairs, 0.0, 0.0}, kTaken},
      {"aten::_unsafe_masked_index", {matrix(), zeros({2, 3}, DType::kBool), all_rows, 0}, kTaken},
      {"aten::index_put", {matrix(), tensors({longs({0})}), meta({3})}, kTaken},
      {"aten::index_put", {matrix(), tensors({meta({1}, kLong)}), vector()}, kTaken},
      {"aten::_int_mm", {bytes, bytes}, kTaken},
      {"aten::tril_indices", {0, 2}, kTaken},
      {"aten::tril_indices", {2, 0}, kTaken},
      {"aten::range", {3, 3}, kTaken},
      {"aten::range.step", {3, 3, -1}, kTaken},
      {"prim::tolist", {flags, 1, 3}, kTaken},
      {"aten::_linalg_eigh", {zeros({2, 2}), "u"}, kTaken},
      {"aten::embedding_bag.padding_idx",
       {zeros({4, 2}), longs({0}), longs({0}), false, 0, false, kNone, false, -4},
       kTaken},
  });
  EXPECT_TRUE(
      ops::call_by_name("aten::zeros_like", zeros({1, 2, 3, 4}), kNone, kNone, kNone, kNone, 2).is_channels_last());
}

TEST(RefusedBounds, Frames) {
  const auto centered = [](const Tensor& x, const Value& onesided, const Value& aligns) {
    return std::vector<Value>{x, 4, kNone, kNone, kNone, true, std::string("constant"), false, onesided, true, aligns};
  };
  const auto stft = [](int64_t n_fft, const Value& length, const Value& window) {
    return std::vector<Value>{zeros({8}), n_fft, 1, length, window, false, kNone, true};
  };
  const auto istft = [](const Tensor& x, const Value& hop, const Value& length, const Value& wanted = kNone) {
    return std::vector<Value>{x, 4, hop, length, kNone, true, false, kNone, wanted, false};
  };
  const Tensor spectrum = zeros({3, 5}, kComplex);
  expect_rows({
      {"aten::stft.center", centered(zeros({8}), kNone, false), "align_to_window should only be set when center"},
      {"aten::stft.center", centered(zeros({8}, kComplex), true, kNone), "onesided output if window or input is"},
      {"aten::stft", stft(9, kNone, kNone), "expected 0 < n_fft < 8, but got n_fft=9"},
      {"aten::stft", stft(0, kNone, kNone), "expected 0 < n_fft < 8, but got n_fft=0"},
      {"aten::stft", stft(4, -1, kNone), "expected 0 < win_length <= n_fft, but got win_length=-1"},
      {"aten::stft", stft(4, kNone, zeros({3})), "expected a 1D window tensor of size equal to win_length=4"},
      {"aten::stft", stft(4, kNone, zeros({4, 1})), "expected a 1D window tensor of size equal to win_length=4"},
      {"aten::istft", istft(spectrum, 3, 2), "expected 0 < hop_length <= win_length"},
      {"aten::istft", istft(spectrum, 0, 0), "expected 0 < hop_length <= win_length"},
      {"aten::_fft_c2r", {zeros({3}, kComplex), ints({0}), 0, 3}, "a result of 3 numbers needs 2, but got 3"},
      {"aten::_fft_c2r", {zeros({1}, kComplex), ints({0}), 0, 0}, "_fft_c2r: a result of 0 numbers needs"},
  });
  expect_rows({
      {"aten::stft", stft(8, kNone, kNone), kTaken},
      {"aten::stft", stft(4, 4, zeros({4})), kTaken},
      {"aten::stft", stft(4, 1, kNone), kTaken},
      {"aten::istft", istft(spectrum, 1, kNone, 0), kTaken},
      {"aten::fft_fftfreq", {0}, kTaken},
      {"aten::fft_rfftfreq", {0}, kTaken},
      {"aten::_fft_c2r", {zeros({1}, kComplex), ints({0}), 0, 1}, kTaken},
      {"aten::_fft_c2r", {zeros({3}, kComplex), ints({0}), 2, 4}, kTaken},
      {"aten::_fft_c2c", {spectrum, ints({0}), 0, true}, kTaken},
  });
}

TEST(RefusedBounds, Products) {
  const Tensor square = zeros({2, 2}), batch = zeros({2, 2, 2}), high = zeros(Dims(32, 1));
  const auto grouped = [&](const Tensor& offsets) { return std::vector<Value>{square, batch, offsets}; };
  const Tensor none = zeros({}, DType::kInt32), nan = zeros({2, 2});
  nan.data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  const Tensor flat = zeros({2, 2});
  flat.data<float>()[0] = 1;
  expect_rows({
      {"aten::_grouped_mm", grouped(zeros({2})), "expected a vector of offsets where a matrix has 2 dimensions"},
      {"aten::_grouped_mm", grouped(longs({0, 3})), "offsets must grow from 0 to at most 2, but got 3 after 0"},
      {"aten::_grouped_mm", grouped(longs({-1, 2})), "offsets must grow from 0 to at most 2, but got -1 after 0"},
      {"aten::linalg_lstsq", {meta({16001, 16001}), meta({16001, 1})}, "are too large"},
      {"aten::linalg_lstsq", {flat, zeros({2, 1}), kNone, "gels"}, "does not have full rank"},
      {"aten::linalg_eigvalsh", {nan, "L"}, "too many repeated eigenvalues"},
      {"aten::linalg_svdvals", {nan}, "contained non-finite values"},
      {"aten::einsum", {"ij...k->ij", tensors({matrix()})}, "does not match the number of dimensions (2)"},
      {"aten::lu_unpack", {square, none}, "pivots passed to lu_unpack must be between 1"},
      {"aten::linalg_lu_solve", {square, none, square}, "Number of pivots per batch should be same"},
      {"aten::ormqr", {square, scalar(), square}, "must be greater than or equal to tau.shape[-1]"},
      {"aten::ormqr", {square, zeros({2, 2}), square}, "Expected batch dimensions of input, tau and other"},
      {"aten::ormqr", {batch, zeros({2, 2}), square}, "Expected batch dimensions of input, tau and other"},
      {"aten::ormqr", {batch, zeros({3, 2}), batch}, "Expected batch dimensions of input, tau and other"},
      {"aten::ormqr", {batch, zeros({2, 2}), zeros({3, 2, 2})}, "Expected batch dimensions of input, tau and other"},
  });
  expect_rows({{"aten::_grouped_mm", grouped(longs({0, 2})), kTaken},
               {"aten::_grouped_mm", {square, batch, meta({2}, kLong)}, kTaken},
               {"aten::_grouped_mm", {square, batch, longs({0, 2}), kNone, kFloat}, kTaken},
               {"aten::_grouped_mm", {square, square, longs({})}, kTaken},
               {"aten::_grouped_mm", {zeros({0, 2}), zeros({0, 2, 2}), longs({})}, kTaken},
               {"aten::kron", {high, high}, kTaken},
               {"aten::linalg_multi_dot", {tensors(std::vector<Value>(1000, zeros({1, 1})))}, kTaken}});
}

// LAPACK, used for complex matrices, has 32-bit integers; our own routines for real ones use 64.
TEST(RefusedBounds, LargeComplexMatrices) {
  constexpr int64_t kMost = 16000, kLong = int64_t{1} << 24;
  for (const DType dtype : {kFloat, kComplex}) {
    for (const int64_t n : {kMost, kMost + 1}) {
      const auto says = n == kMost || dtype == kFloat ? ::testing::Matcher<std::string>(kTaken)
                                                      : ::testing::HasSubstr("are too large");
      const Tensor square = meta({n, n}, dtype), one = meta({1, 1}, dtype), wide = meta({1, kLong + n - kMost}, dtype);
      EXPECT_THAT(shape_error("aten::linalg_lu_factor_ex", {square}), says);
      EXPECT_THAT(shape_error("aten::linalg_lu_factor_ex", {wide}), says);
      EXPECT_THAT(shape_error("aten::linalg_cholesky_ex", {square}), says);
      EXPECT_THAT(shape_error("aten::linalg_solve_triangular", {one, wide, true}), says);
      EXPECT_THAT(shape_error("aten::linalg_solve_triangular", {square, square, true}), says);
    }
  }
  EXPECT_EQ(shape_error("aten::linalg_lu_factor_ex", {meta({INT32_MAX, 1})}), kTaken);
  EXPECT_THAT(shape_error("aten::linalg_lu_factor_ex", {meta({int64_t{1} << 31, 1})}),
              ::testing::HasSubstr("are too many"));
}

}  // namespace
}  // namespace tensord::refused_bounds_test
