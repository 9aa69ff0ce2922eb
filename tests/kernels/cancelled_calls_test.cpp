// Operators on expanded tensors, which can have arbitrarily many elements: a call stops at its deadline, or is refused.
#include "core/base/cancellation.h"
#include "core/base/clock.h"
#include "tests/support/operator_rows.h"

namespace tensord::cancelled_calls_test {
namespace {

using namespace testing_rows;

constexpr int64_t kMs = 1'000'000;

Tensor repeated(const Dims& sizes, DType dtype = kFloat) {
  Dims one(sizes.size(), 1);
  return run("aten::expand", {ones(one).to(dtype), ints(sizes), false}).to_tensor();
}

// The error that stopped the call at its deadline; "took its time" if it was not stopped.
std::string stopped(const char* op, const std::vector<Value>& arguments, int64_t deadline_ms = 100) {
  try {
    const CancellationScope scope({}, Clock::system().now_ns() + deadline_ms * kMs);
    run(op, arguments);
  } catch (const Error& error) {
    return to_string(error.code());
  }
  return "took its time";
}

TEST(CancelledCalls, Reductions) {
  constexpr int64_t kMany = int64_t{1} << 34;
  const Tensor one = repeated({kMany}), rows = repeated({2, kMany / 2}), columns = repeated({kMany / 2, 2});
  const Tensor windows = run("aten::unfold", {ones({1 << 18}), 0, 1 << 17, 1}).to_tensor();
  const Tensor numbers = repeated({kMany}, DType::kInt64), halves = repeated({kMany}, DType::kFloat16);
  for (const Tensor& x : {one, rows, columns, windows, numbers, halves}) {
    EXPECT_EQ(stopped("aten::sum", {x, kNone}), "DEADLINE_EXCEEDED") << to_string(x.sizes());
    EXPECT_EQ(stopped("aten::prod", {x, kNone}), "DEADLINE_EXCEEDED") << to_string(x.sizes());
    EXPECT_EQ(stopped("aten::max", {x}), "DEADLINE_EXCEEDED") << to_string(x.sizes());
  }
  for (const int64_t dim : {0, 1}) {
    for (const Tensor& x : {rows, columns, windows}) {
      const std::string what = concat(to_string(x.sizes()), ", ", dim);
      if (x.sizes()[static_cast<size_t>(1 - dim)] > (1 << 20)) continue;  // that many results
      EXPECT_EQ(stopped("aten::sum.dim_IntList", {x, ints({dim}), false, kNone}), "DEADLINE_EXCEEDED") << what;
      EXPECT_EQ(stopped("aten::mean.dim", {x, ints({dim}), false, kNone}), "DEADLINE_EXCEEDED") << what;
      EXPECT_EQ(stopped("aten::amax", {x, ints({dim}), false}), "DEADLINE_EXCEEDED") << what;
    }
  }
}

// Sums keep the order that they have without a deadline.
TEST(CancelledCalls, ADeadlineChangesNoSum) {
  const Tensor x = run("aten::arange", {int64_t{40'000'001}, kFloat, kNone, kNone, kNone}).to_tensor();
  const Tensor plain = run("aten::sum", {x, kNone}).to_tensor();
  const CancellationScope scope([] { return false; });
  EXPECT_EQ(run("aten::sum", {x, kNone}).to_tensor().item_double(), plain.item_double());
}

TEST(CancelledCalls, Triangles) {
  constexpr int64_t kRows = int64_t{1} << 40;
  const Tensor one = run("aten::triu_indices", {kRows, 1, 0, kLong, kNone, kNone, kNone}).to_tensor();
  EXPECT_EQ(to_string(one.sizes()), "[2, 1]");
  EXPECT_EQ(stopped("aten::tril_indices", {kRows, 1, 0, kLong, kNone, kNone, kNone}), "RESOURCE_EXHAUSTED");
  const Tensor last = run("aten::tril_indices", {kRows, 1, 1 - kRows, kLong, kNone, kNone, kNone}).to_tensor();
  EXPECT_EQ(to_string(last.sizes()), "[2, 1]");
  EXPECT_EQ(last.data<int64_t>()[0], kRows - 1);
  EXPECT_EQ(stopped("aten::triu_indices", {20'000, 20'000, 0, kLong, kNone, kNone, kNone}, 20), "DEADLINE_EXCEEDED");
  // Compared with every pair of a row and a column.
  for (int64_t rows = 0; rows < 5; ++rows) {
    for (int64_t columns = 0; columns < 5; ++columns) {
      for (int64_t offset = -6; offset < 7; ++offset) {
        std::vector<int64_t> below, above;
        for (const bool of_columns : {false, true}) {
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t c = 0; c < columns; ++c) {
              if (c - r <= offset) below.push_back(of_columns ? c : r);
              if (c - r >= offset) above.push_back(of_columns ? c : r);
            }
          }
        }
        const auto values = [&](const char* op) {
          const Tensor x = run(op, {rows, columns, offset, kLong, kNone, kNone, kNone}).to_tensor();
          return std::vector<int64_t>(x.data<int64_t>(), x.data<int64_t>() + x.numel());
        };
        EXPECT_EQ(values("aten::tril_indices"), below) << rows << " " << columns << " " << offset;
        EXPECT_EQ(values("aten::triu_indices"), above) << rows << " " << columns << " " << offset;
      }
    }
  }
}

TEST(CancelledCalls, Parts) {
  const Tensor x = repeated({int64_t{1} << 31});
  for (const auto& [op, arguments] : std::vector<std::pair<const char*, std::vector<Value>>>{
           {"aten::split.Tensor", {x, 1, 0}},
           {"aten::unbind.int", {x, 0}},
           {"aten::chunk", {x, int64_t{1} << 31, 0}},
           {"aten::tensor_split.sections", {x, int64_t{1} << 31, 0}}}) {
    EXPECT_EQ(stopped(op, arguments), "INVALID_ARGUMENT") << op;
  }
  const Tensor less = repeated({(int64_t{1} << 24) - 1});
  EXPECT_EQ(stopped("aten::split.Tensor", {less, 1, 0}), "DEADLINE_EXCEEDED");
  EXPECT_EQ(stopped("aten::unbind.int", {less, 0}), "DEADLINE_EXCEEDED");
  EXPECT_EQ(stopped("aten::tensor_split.sections", {less, less.numel(), 0}), "DEADLINE_EXCEEDED");
}

}  // namespace
}  // namespace tensord::cancelled_calls_test
