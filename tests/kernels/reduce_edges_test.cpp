// Reductions, scans, softmaxes and norms of rows with lengths around every block and vector, in every layout, compared
// with plain loops; the first of equal values, and NaN at any position.
#include <cmath>
#include <functional>
#include <limits>

#include "tests/support/operator_rows.h"

namespace tensord::reduce_edges_test {
namespace {

using namespace testing_rows;

constexpr int64_t kLengths[] = {1,   2,   3,   7,   8,   9,   15,  16,   17,   31,   32,   33,   63,   64,   65,  127,
                                128, 129, 255, 256, 257, 511, 513, 1023, 1024, 1025, 2047, 2048, 2049, 4095, 4097};
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// [outer, length, inner] of small integers, whose sums are exact.
Tensor numbers(int64_t outer, int64_t length, int64_t inner, DType dtype) {
  const Tensor out = Tensor::empty(Dims{outer, length, inner}, DType::kFloat32);
  uint32_t state = static_cast<uint32_t>(outer * 31 + length * 7 + inner);
  for (int64_t i = 0; i < out.numel(); ++i) {
    state = state * 1664525 + 1013904223;
    out.data<float>()[i] = static_cast<float>(static_cast<int>(state >> 24) % 5 - (is_floating(dtype) ? 2 : 0));
  }
  return out.to(dtype);
}

// The same numbers contiguous, transposed, with gaps, and as one expanded row.
std::vector<std::pair<const char*, Tensor>> layouts(const Tensor& x) {
  const Dims& s = x.sizes();
  const Tensor turned =
      run("aten::permute", {run("aten::permute", {x, ints({2, 1, 0})}).to_tensor().contiguous(), ints({2, 1, 0})})
          .to_tensor();
  const Tensor wide = Tensor::empty(Dims{s[0], 2 * s[1] + 1, s[2] + 1}, x.dtype());
  const Tensor gaps = wide.as_view(s, {wide.strides()[0], 2 * wide.strides()[1], 1}, wide.strides()[1]);
  gaps.copy_from(x);
  const Tensor flat = x.as_view(s, {0, x.strides()[1], x.strides()[2]}, 0);
  return {{"dense", x}, {"turned", turned}, {"with gaps", gaps}, {"expanded", flat}};
}

using Reference = std::function<double(const std::vector<double>&)>;

// Calls fn(row) for each row along dimension 1, as float64 of [outer, inner].
std::vector<double> reference(const Tensor& x, const Reference& fn) {
  const Tensor dense = x.to(DType::kFloat64).contiguous();
  const Dims& s = x.sizes();
  std::vector<double> out, row(static_cast<size_t>(s[1]));
  for (int64_t o = 0; o < s[0]; ++o) {
    for (int64_t i = 0; i < s[2]; ++i) {
      for (int64_t k = 0; k < s[1]; ++k) row[static_cast<size_t>(k)] = dense.data<double>()[(o * s[1] + k) * s[2] + i];
      out.push_back(fn(row));
    }
  }
  return out;
}

void expect_near(const Tensor& got, const std::vector<double>& expected, double tolerance) {
  const Tensor dense = got.to(DType::kFloat64).contiguous();
  ASSERT_EQ(dense.numel(), static_cast<int64_t>(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i) {
    const double x = dense.data<double>()[i], y = expected[i];
    if (std::isnan(y) ? std::isnan(x) : x == y || std::abs(x - y) <= tolerance * (1 + std::abs(y))) continue;
    ADD_FAILURE() << "element " << i << " is " << x << ", expected " << y;
    return;
  }
}

struct Reduction {
  const char* op;
  std::vector<Value> rest;  // after the tensor
  Reference fn;
  bool is_of_floats = false;
};

double sum_of(const std::vector<double>& row) {
  double sum = 0;
  for (const double x : row) sum += x;
  return sum;
}
double largest(const std::vector<double>& row) {
  double out = row[0];
  for (const double x : row) out = std::isnan(out) ? out : std::isnan(x) ? x : std::max(out, x);
  return out;
}
double squares_of(const std::vector<double>& row) {
  const double mean = sum_of(row) / static_cast<double>(row.size());
  double sum = 0;
  for (const double x : row) sum += (x - mean) * (x - mean);
  return sum;
}
double place_of(const std::vector<double>& row, bool of_largest) {
  size_t best = 0;
  for (size_t i = 1; i < row.size() && !std::isnan(row[best]); ++i) {
    if (std::isnan(row[i]) || (of_largest ? row[i] > row[best] : row[i] < row[best])) best = i;
  }
  return static_cast<double>(best);
}
double negated(const std::function<double(const std::vector<double>&)>& fn, std::vector<double> row) {
  for (double& x : row) x = -x;
  return -fn(row);
}

std::vector<Reduction> reductions() {
  const Value dim = ints({1});
  return {
      {"aten::sum.dim_IntList", {dim, false}, sum_of},
      {"aten::mean.dim",
       {dim, false},
       [](const auto& row) { return sum_of(row) / static_cast<double>(row.size()); },
       true},
      {"aten::amax", {dim, false}, largest},
      {"aten::amin", {dim, false}, [](const auto& row) { return negated(largest, row); }},
      {"aten::max.dim", {1, false}, largest},
      {"aten::argmax", {1, false}, [](const auto& row) { return place_of(row, true); }},
      {"aten::argmin", {1, false}, [](const auto& row) { return place_of(row, false); }},
      {"aten::var.dim",
       {dim, false, false},
       [](const auto& row) { return squares_of(row) / static_cast<double>(row.size()); },
       true},
      {"aten::norm.ScalarOpt_dim",
       {1.0, dim, false},
       [](std::vector<double> row) {
         for (double& x : row) x = std::abs(x);
         return sum_of(row);
       },
       true},
      {"aten::logsumexp",
       {dim, false},
       [](const auto& row) {
         double sum = 0;
         const double max = largest(row);
         for (const double x : row) sum += std::exp(x - max);
         return max + std::log(sum);
       },
       true},
      {"aten::any.dim",
       {1, false},
       [](const auto& row) { return std::any_of(row.begin(), row.end(), [](double x) { return x != 0; }); }},
      {"aten::all.dim",
       {1, false},
       [](const auto& row) { return std::all_of(row.begin(), row.end(), [](double x) { return x != 0; }); }},
      {"aten::count_nonzero.dim_IntList",
       {dim},
       [](const auto& row) {
         return static_cast<double>(std::count_if(row.begin(), row.end(), [](double x) { return x != 0; }));
       }},
  };
}

TEST(ReduceEdges, RowsOfEveryLength) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kInt64, DType::kUInt8}) {
    for (const int64_t length : kLengths) {
      if (dtype != DType::kFloat32 && length > 300) continue;
      for (const auto& [outer, inner] :
           {std::pair<int64_t, int64_t>{1, 1}, {3, 1}, {1, 5}, {2, 17}, {1, 67}, {1, 513}}) {
        if (outer * length * inner > 30'000) continue;
        const Tensor x = numbers(outer, length, inner, dtype);
        for (const auto& [layout, laid] : layouts(x)) {
          for (const Reduction& r : reductions()) {
            if (r.is_of_floats && !is_floating(dtype)) continue;
            SCOPED_TRACE(concat(r.op, " ", name_of(dtype), to_string(x.sizes()), " ", layout));
            std::vector<Value> arguments{laid};
            arguments.insert(arguments.end(), r.rest.begin(), r.rest.end());
            expect_near(run(r.op, arguments).to_tensor(), reference(laid, r.fn),
                        dtype == DType::kFloat16 ? 2e-3 : 1e-5);
            if (HasFailure()) return;
          }
        }
      }
    }
  }
}

// Over all elements, across the parts of several threads.
TEST(ReduceEdges, AllElements) {
  for (const int64_t length : {0, 1, 16, 1023, 1025, 65'535, 65'536, 65'537, 300'001}) {
    const Tensor x = numbers(1, length, 1, DType::kFloat32);
    const std::vector<double> row(x.data<float>(), x.data<float>() + length);
    SCOPED_TRACE(length);
    EXPECT_EQ(run("aten::sum", {x}).to_tensor().item_double(), sum_of(row));
    if (length == 0) continue;
    EXPECT_EQ(run("aten::max", {x}).to_tensor().item_double(), largest(row));
    EXPECT_EQ(run("aten::argmax", {x}).to_tensor().item_double(), place_of(row, true));
    EXPECT_EQ(run("aten::argmin", {x}).to_tensor().item_double(), place_of(row, false));
    EXPECT_NEAR(run("aten::mean", {x}).to_tensor().item_double(), sum_of(row) / static_cast<double>(length), 1e-6);
    // A larger value is found at any position, and so is NaN.
    for (const int64_t at : {int64_t{0}, length / 2, length - 1}) {
      for (const double value : {7.0, kNan}) {
        const Tensor y = x.clone();
        y.data<float>()[at] = static_cast<float>(value);
        const double max = run("aten::max", {y}).to_tensor().item_double();
        EXPECT_TRUE(std::isnan(value) ? std::isnan(max) : max == value) << at;
        EXPECT_EQ(run("aten::argmax", {y}).to_tensor().item_int(), at);
        EXPECT_EQ(std::isnan(run("aten::min", {y}).to_tensor().item_double()), std::isnan(value)) << at;
      }
    }
  }
}

TEST(ReduceEdges, NanWhereverItIs) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16}) {
    for (const int64_t length : {1, 2, 16, 17, 64, 129}) {
      for (const int64_t at : {int64_t{0}, length / 2, length - 1}) {
        for (const int64_t inner : {1, 5}) {
          Tensor x = numbers(2, length, inner, DType::kFloat32);
          x.data<float>()[at * inner] = std::numeric_limits<float>::quiet_NaN();
          x = x.to(dtype);
          SCOPED_TRACE(concat(name_of(dtype), " ", length, " at ", at, " by ", inner));
          for (const Reduction& r : reductions()) {
            const std::string op = r.op;
            if (op == "aten::any.dim" || op == "aten::all.dim" || op == "aten::count_nonzero.dim_IntList") continue;
            std::vector<Value> arguments{x};
            arguments.insert(arguments.end(), r.rest.begin(), r.rest.end());
            SCOPED_TRACE(op);
            expect_near(run(op, arguments).to_tensor(), reference(x, r.fn), dtype == DType::kFloat16 ? 2e-3 : 1e-5);
          }
          const Tensor clean = run("aten::nansum", {x, ints({1}), false}).to_tensor();
          expect_near(clean,
                      reference(x,
                                [](std::vector<double> row) {
                                  for (double& v : row) v = std::isnan(v) ? 0 : v;
                                  return sum_of(row);
                                }),
                      2e-3);
        }
      }
    }
  }
}

TEST(ReduceEdges, Scans) {
  for (const int64_t length : {1, 2, 16, 17, 255, 1025}) {
    for (const int64_t inner : {1, 5}) {
      const Tensor x = numbers(2, length, inner, DType::kFloat32);
      for (const auto& [layout, laid] : layouts(x)) {
        SCOPED_TRACE(concat(length, " by ", inner, " ", layout));
        const Tensor sums = run("aten::cumsum", {laid, 1}).to_tensor(),
                     max = run("aten::cummax", {laid, 1}).to_tensor();
        const Tensor last_sum = run("aten::select.int", {sums, 1, -1}).to_tensor(),
                     last_most = run("aten::select.int", {max, 1, -1}).to_tensor();
        expect_near(last_sum, reference(laid, sum_of), 0);
        expect_near(last_most, reference(laid, largest), 0);
        // Each step is one element.
        const Tensor steps = run("aten::diff", {sums, 1, 1}).to_tensor();
        const Tensor rest = run("aten::narrow", {laid, 1, 1, length - 1}).to_tensor();
        EXPECT_TRUE(run("aten::equal", {steps, rest}).to_bool());
      }
    }
  }
}

TEST(ReduceEdges, SoftmaxesAndNorms) {
  for (const int64_t length : kLengths) {
    for (const auto& [outer, inner] : {std::pair<int64_t, int64_t>{1, 1}, {3, 1}, {2, 5}, {1, 300}}) {
      if (length * inner > 50'000) continue;
      const Tensor x = numbers(outer, length, inner, DType::kFloat32);
      for (const auto& [layout, laid] : layouts(x)) {
        SCOPED_TRACE(concat(to_string(x.sizes()), " ", layout));
        const Reference norm = [](const auto& row) {
          double sum = 0;
          const double max = largest(row);
          for (const double v : row) sum += std::exp(v - max);
          return max + std::log(sum);
        };
        const std::vector<double> logs = reference(laid, norm);
        const Tensor y = run("aten::softmax.int", {laid, 1, kNone}).to_tensor(),
                     z = run("aten::log_softmax.int", {laid, 1, kNone}).to_tensor();
        // The first and the last element of each row, and that the elements sum to 1.
        expect_near(run("aten::sum.dim_IntList", {y, ints({1}), false}).to_tensor(),
                    std::vector<double>(logs.size(), 1), 1e-5);
        for (const int64_t at : {int64_t{0}, length - 1}) {
          const Tensor given = run("aten::select.int", {laid, 1, at}).to_tensor().to(DType::kFloat64).contiguous();
          std::vector<double> exact;
          for (size_t i = 0; i < logs.size(); ++i) exact.push_back(given.data<double>()[i] - logs[i]);
          expect_near(run("aten::select.int", {z, 1, at}).to_tensor(), exact, 1e-5);
          for (double& v : exact) v = std::exp(v);
          expect_near(run("aten::select.int", {y, 1, at}).to_tensor(), exact, 1e-5);
        }
        if (inner != 1 || length < 2) continue;
        const Tensor rows = laid.as_view(Dims{outer, length}, {laid.strides()[0], laid.strides()[1]}, laid.offset());
        const Tensor normed = run("aten::layer_norm", {rows, ints({length}), kNone, kNone, 0.25}).to_tensor();
        const Tensor wide =
            normed.as_view(Dims{outer, length, 1}, {normed.strides()[0], normed.strides()[1], 1}, normed.offset());
        const auto size = static_cast<double>(length);
        const std::vector<double> squares = reference(wide, [](const auto& row) {
          double sum = 0;
          for (const double v : row) sum += v * v;
          return sum;
        });
        const std::vector<double> means = reference(wide, sum_of);
        const std::vector<double> variances = reference(laid, [&](const auto& row) { return squares_of(row) / size; });
        for (size_t i = 0; i < means.size(); ++i) {
          EXPECT_NEAR(means[i], 0, 1e-3);
          EXPECT_NEAR(squares[i], size * variances[i] / (variances[i] + 0.25), 1e-4 * size);
        }
      }
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace tensord::reduce_edges_test
