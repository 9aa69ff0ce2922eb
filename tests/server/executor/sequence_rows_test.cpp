// Rows become batches and batches become rows: what is copied, what is not, and every size limit.
#include "server/executor/strategies/sequence_rows.h"

#include <gmock/gmock.h>

#include "tests/server/error_of.h"
#include "tests/server/fake_sink.h"

namespace tensord::server::sequence_rows_test {
namespace {

using fixtures::float_tensor;
using fixtures::values_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Floats = std::vector<float>;

Floats floats_of(const Tensor& tensor) {
  const Tensor values = tensor.contiguous();
  return {values.data<float>(), values.data<float>() + values.numel()};
}

Tensor counted(const Dims& sizes, float first = 1) {
  Tensor out = Tensor::empty(sizes, DType::kFloat32);
  for (int64_t i = 0; i < out.numel(); ++i) out.data<float>()[i] = first + static_cast<float>(i);
  return out;
}

struct Stacked {
  Tensor tensor;
  uint64_t copied_bytes = 0;
};

Stacked stack(const std::vector<const Tensor*>& rows) {
  Stacked out;
  out.tensor = stack_rows(rows, &out.copied_bytes);
  return out;
}

InferTensor texts(const std::vector<std::string>& strings) {
  InferTensor out;
  out.name = "text";
  out.datatype = DataType::kBytes;
  out.shape = {1, static_cast<int64_t>(strings.size())};
  for (const std::string& text : strings) out.strings.emplace_back(text);
  return out;
}

TEST(SequenceRowsTest, RowsThatLieOneBehindTheOtherAreNotCopied) {
  const Tensor batch = counted({3, 2});
  const Tensor rows[] = {row_of(batch, 0), row_of(batch, 1), row_of(batch, 2)};
  EXPECT_THAT(floats_of(rows[1]), ElementsAre(3, 4));
  EXPECT_EQ(rows[1].sizes(), (Dims{1, 2}));
  const Stacked all = stack({&rows[0], &rows[1], &rows[2]});
  EXPECT_EQ(all.tensor.raw_data(), batch.raw_data());
  EXPECT_EQ(all.tensor.sizes(), (Dims{3, 2}));
  EXPECT_EQ(all.copied_bytes, 0);
  const Stacked last = stack({&rows[1], &rows[2]});
  EXPECT_EQ(last.tensor.raw_data(), rows[1].raw_data());
  EXPECT_THAT(floats_of(last.tensor), ElementsAre(3, 4, 5, 6));
}

TEST(SequenceRowsTest, OtherRowsAreCopied) {
  const Tensor batch = counted({3, 2}), other = counted({1, 2}, 9);
  const Tensor rows[] = {row_of(batch, 0), row_of(batch, 1), row_of(batch, 2)};
  struct Case {
    std::vector<const Tensor*> rows;
    Floats expected;
    uint64_t copied_bytes;
  };
  for (const Case& c :
       {Case{{&rows[0], &rows[2]}, {1, 2, 5, 6}, 16},  // one is left out
        Case{{&rows[1], &rows[0]}, {3, 4, 1, 2}, 16},  // another order
        Case{{&rows[0], &rows[0]}, {1, 2, 1, 2}, 16},  // twice
        Case{{&rows[0], &other}, {1, 2, 9, 10}, 16},   // of two storages
        Case{{&rows[0], nullptr, &rows[2]}, {1, 2, 0, 0, 5, 6}, 16}, Case{{&rows[0], nullptr}, {1, 2, 0, 0}, 8}}) {
    const Stacked got = stack(c.rows);
    EXPECT_EQ(floats_of(got.tensor), c.expected);
    EXPECT_EQ(got.copied_bytes, c.copied_bytes);
    EXPECT_EQ(got.tensor.size(0), static_cast<int64_t>(c.rows.size()));
  }
  // Rows of a transposed tensor are at the right offsets, but their elements are not in order.
  const Tensor square = counted({2, 2, 2});
  const Tensor first = square.as_view({1, 2, 2}, {4, 1, 2}, 0), second = square.as_view({1, 2, 2}, {4, 1, 2}, 4);
  EXPECT_EQ(floats_of(stack({&first, &second}).tensor), (Floats{1, 3, 2, 4, 5, 7, 6, 8}));
}

TEST(SequenceRowsTest, OneRowIsItself) {
  const Tensor row = counted({1, 3});
  const Stacked got = stack({&row});
  EXPECT_EQ(got.tensor.raw_data(), row.raw_data());
  EXPECT_EQ(got.copied_bytes, 0);
  const InferTensor given = float_tensor("x", {1, 2}, {1, 2});
  const InferTensor* one[] = {&given};
  uint64_t copied = 0;
  EXPECT_EQ(stack_rows(one, &copied).tensor.raw_data(), given.tensor.raw_data());
}

TEST(SequenceRowsTest, RowsWithoutElementsAndRowsWithoutDimensions) {
  const Tensor a = counted({1, 0}), b = counted({1, 0});
  const Stacked none = stack({&a, &b});
  EXPECT_EQ(none.tensor.sizes(), (Dims{2, 0}));
  EXPECT_EQ(none.copied_bytes, 0);
  const Tensor x = counted({}, 4), y = counted({}, 5);
  const Stacked numbers = stack({&x, &y});
  EXPECT_EQ(numbers.tensor.sizes(), (Dims{2}));
  EXPECT_THAT(floats_of(numbers.tensor), ElementsAre(4, 5));
}

TEST(SequenceRowsTest, TextsAreStackedToo) {
  const InferTensor a = texts({"a", "b"}), c = texts({"c", "d"});
  const InferTensor* rows[] = {&a, nullptr, &c};
  uint64_t copied = 0;
  const InferTensor got = stack_rows(rows, &copied);
  EXPECT_EQ(got.shape, (Dims{3, 2}));
  EXPECT_EQ(got.name, "text");
  std::vector<std::string> strings(got.strings.begin(), got.strings.end());
  EXPECT_THAT(strings, ElementsAre("a", "b", "", "", "c", "d"));
  const InferTensor row = row_of(got, 2, 3);
  EXPECT_EQ(row.shape, (Dims{1, 2}));
  EXPECT_THAT(std::vector<std::string>(row.strings.begin(), row.strings.end()), ElementsAre("c", "d"));
}

TEST(SequenceRowsTest, ShorterRowsAreFilledUpAtTheirFronts) {
  struct Case {
    std::vector<Dims> rows;
    int64_t dim;
    Dims sizes;
    Floats expected;
    uint64_t copied_bytes;
  };
  for (const Case& c :
       {Case{{{1, 2}, {1, 1}}, 1, {2, 2}, {1, 2, 0, 1}, 12}, Case{{{1, 1}, {1, 3}}, 1, {2, 3}, {0, 0, 1, 1, 2, 3}, 16},
        Case{{{1, 0}, {1, 2}}, 1, {2, 2}, {0, 0, 1, 2}, 8},
        Case{{{1, 1, 2}, {1, 2, 2}}, 1, {2, 2, 2}, {0, 0, 1, 2, 1, 2, 3, 4}, 24},
        Case{{{1, 2, 1}, {1, 2, 2}}, 2, {2, 2, 2}, {0, 1, 0, 2, 1, 2, 3, 4}, 24},
        Case{{{1, 2, 1, 2}, {1, 2, 2, 2}}, 2, {2, 2, 2, 2}, {0, 0, 1, 2, 0, 0, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8}, 48},
        Case{{{1, 0, 1}, {1, 0, 2}}, 2, {2, 0, 2}, {}, 0}, Case{{{1, 2}, {1, 2}}, 1, {2, 2}, {1, 2, 1, 2}, 16}}) {
    std::vector<Tensor> rows;
    std::vector<const Tensor*> pointers;
    for (const Dims& sizes : c.rows) rows.push_back(counted(sizes));
    for (const Tensor& row : rows) pointers.push_back(&row);
    uint64_t copied = 0;
    const Tensor got = stack_right_aligned(pointers, c.dim, &copied);
    EXPECT_EQ(got.sizes(), c.sizes);
    EXPECT_EQ(floats_of(got), c.expected) << ::testing::PrintToString(c.sizes);
    EXPECT_EQ(copied, c.copied_bytes);
  }
}

TEST(SequenceRowsTest, AnOutputNeedsTheRowsOfItsBatch) {
  const InferTensor batch = float_tensor("y", {2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(values_of(row_of(batch, 1, 2)), ElementsAre(3, 4));
  EXPECT_EQ(row_of(batch, 1, 2).shape, (Dims{1, 2}));
  for (const InferTensor& wrong :
       {float_tensor("y", {3, 2}, Floats(6)), float_tensor("y", {1, 2}, Floats(2)), float_tensor("y", {}, Floats(1))}) {
    const Error error = error_of([&] { row_of(wrong, 0, 2); });
    EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
    EXPECT_THAT(error.what(), HasSubstr("output 'y' has shape"));
  }
}

TEST(SequenceRowsTest, TheLastElementsAreAView) {
  const Tensor tensor = counted({1, 3, 2});
  const Tensor last = last_of(tensor, 1, 2);
  EXPECT_EQ(last.sizes(), (Dims{1, 2, 2}));
  EXPECT_EQ(last.storage().get(), tensor.storage().get());
  EXPECT_THAT(floats_of(last), ElementsAre(3, 4, 5, 6));
  EXPECT_EQ(last_of(tensor, 1, 3).sizes(), tensor.sizes());
  EXPECT_EQ(last_of(tensor, 1, 5).sizes(), tensor.sizes());
  EXPECT_EQ(last_of(tensor, 1, 0).numel(), 0);
  EXPECT_THAT(floats_of(last_of(tensor, 2, 1)), ElementsAre(2, 4, 6));
}

}  // namespace
}  // namespace tensord::server::sequence_rows_test
