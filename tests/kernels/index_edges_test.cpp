// Indexed reads and writes, sorting, concatenation and row moves, with widths around vectors and blocks and all
// layouts, compared with plain loops.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/tensor/memory/owner_limit.h"
#include "tests/support/operator_rows.h"

namespace tensord::index_edges_test {
namespace {

using namespace testing_rows;

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64, DType::kFloat16,
                            DType::kInt64,   DType::kUInt8,   DType::kInt16};
constexpr int64_t kWidths[] = {0, 1, 2, 3, 5, 8, 15, 16, 17, 33, 64, 129, 1030};

// [rows, width, depth] of small integers.
Tensor numbers(const Dims& sizes, DType dtype, uint32_t seed = 1) {
  const Tensor out = Tensor::empty(sizes, DType::kFloat32);
  for (int64_t i = 0; i < out.numel(); ++i) {
    seed = seed * 1664525 + 1013904223;
    out.data<float>()[i] = static_cast<float>((seed >> 24) % 50);
  }
  return out.to(dtype);
}

std::vector<double> elements(const Tensor& x) {
  const Tensor dense = x.to(DType::kFloat64).contiguous();
  return {dense.data<double>(), dense.data<double>() + dense.numel()};
}

void expect_elements(const Tensor& got, const std::vector<double>& expected) {
  const std::vector<double> have = elements(got);
  ASSERT_EQ(have.size(), expected.size());
  for (size_t i = 0; i < have.size(); ++i) {
    if (have[i] == expected[i] || (std::isnan(have[i]) && std::isnan(expected[i]))) continue;
    ADD_FAILURE() << "element " << i << " is " << have[i] << ", expected " << expected[i];
    return;
  }
}

// The same values as they are, transposed in memory, with gaps, and as one expanded row.
std::vector<Tensor> layouts(const Tensor& x) {
  const Dims& s = x.sizes();
  const Tensor turned = run("aten::t", {run("aten::t", {x}).to_tensor().contiguous()}).to_tensor();
  const Tensor wide = Tensor::empty(Dims{s[0], 2 * s[1] + 1}, x.dtype());
  const Tensor gaps = wide.as_view(s, {wide.strides()[0], 2}, 1);
  gaps.copy_from(x);
  return {x, turned, gaps, x.as_view(s, {0, 1}, 0)};
}

template <class Fn>
void for_each_matrix(int64_t rows, Fn&& fn) {
  for (const DType dtype : kTypes) {
    for (const int64_t width : kWidths) {
      if (width > 200 && dtype != DType::kFloat32) continue;
      for (const Tensor& x : layouts(numbers({rows, width}, dtype))) {
        SCOPED_TRACE(concat(name_of(dtype), to_string(x.sizes()), " strides ", to_string(x.strides())));
        fn(x, elements(x), width);
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(IndexEdges, RowsByIndex) {
  const std::vector<int64_t> wanted{6, 0, 3, 3, -1, 6, 1, 2, 5};
  std::vector<int64_t> positive = wanted;
  for (int64_t& i : positive) i = i < 0 ? i + 7 : i;
  const auto count = static_cast<int64_t>(wanted.size());
  for_each_matrix(7, [&](const Tensor& x, const std::vector<double>& all, int64_t width) {
    const auto at = [&](int64_t row, int64_t column) { return all[static_cast<size_t>(row * width + column)]; };
    std::vector<double> rows;
    for (const int64_t row : positive) {
      for (int64_t c = 0; c < width; ++c) rows.push_back(at(row, c));
    }
    expect_elements(run("aten::index_select", {x, 0, longs(positive)}).to_tensor(), rows);
    expect_elements(run("aten::index_select", {x, 0, longs(positive).to(DType::kInt32)}).to_tensor(), rows);
    expect_elements(run("aten::index.Tensor", {x, tensors({longs(wanted)})}).to_tensor(), rows);
    if (is_floating(x.dtype())) expect_elements(run("aten::embedding", {x, longs(positive)}).to_tensor(), rows);
    // Writes: several to one index give the sum, the last value, or a constant.
    const Tensor source = numbers({count, width}, x.dtype(), 9);
    const std::vector<double> from = elements(source);
    std::vector<double> sums = all, filled = all;
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t c = 0; c < width; ++c) {
        const auto place = static_cast<size_t>(positive[static_cast<size_t>(i)] * width + c);
        sums[place] += from[static_cast<size_t>(i * width + c)];
        filled[place] = 3;
      }
    }
    if (x.dtype() != DType::kUInt8) {
      expect_elements(run("aten::index_add", {x, 0, longs(positive), source, 1}).to_tensor(), sums);
      expect_elements(run("aten::index_put", {x, tensors({longs(wanted)}), source, true}).to_tensor(), sums);
    }
    expect_elements(run("aten::index_fill.int_Scalar", {x, 0, longs(wanted), 3}).to_tensor(), filled);
    // Each column of a row from a row of its own.
    std::vector<int64_t> places;
    std::vector<double> gathered, scattered = all;
    for (int64_t r = 0; r < 3; ++r) {
      for (int64_t c = 0; c < width; ++c) {
        const int64_t row = (r * 2 + c) % 7;
        places.push_back(row);
        gathered.push_back(at(row, c));
        scattered[static_cast<size_t>(row * width + c)] = from[static_cast<size_t>(r * width + c)];
      }
    }
    const Tensor index = shaped(longs(places), {3, width});
    expect_elements(run("aten::gather", {x, 0, index}).to_tensor(), gathered);
    expect_elements(run("aten::scatter.src", {x, 0, index, source}).to_tensor(), scattered);
    expect_elements(run("aten::take_along_dim", {x, index, 0}).to_tensor(), gathered);
  });
}

TEST(IndexEdges, ColumnsByIndex) {
  for_each_matrix(3, [&](const Tensor& x, const std::vector<double>& all, int64_t width) {
    if (width == 0) return;
    const std::vector<int64_t> wanted{width - 1, 0, width / 2, 0};
    std::vector<double> columns, masked, repeated;
    std::vector<double> flipped, rolled;
    for (int64_t r = 0; r < 3; ++r) {
      const auto at = [&](int64_t c) { return all[static_cast<size_t>(r * width + c)]; };
      for (const int64_t c : wanted) columns.push_back(at(c));
      for (int64_t c = 0; c < width; ++c) {
        if ((r + c) % 3 == 0) masked.push_back(at(c));
        flipped.push_back(at(width - 1 - c));
        rolled.push_back(at((c + width - 1) % width));
        repeated.insert(repeated.end(), 2, at(c));
      }
    }
    const Tensor mask = Tensor::empty(Dims{3, width}, DType::kBool);
    for (int64_t i = 0; i < mask.numel(); ++i) mask.data<bool>()[i] = (i / width + i % width) % 3 == 0;
    expect_elements(run("aten::index_select", {x, 1, longs(wanted)}).to_tensor(), columns);
    expect_elements(run("aten::index.Tensor", {x, tensors({Value(), longs(wanted)})}).to_tensor(), columns);
    expect_elements(run("aten::masked_select", {x, mask}).to_tensor(), masked);
    expect_elements(run("aten::index.Tensor", {x, tensors({mask})}).to_tensor(), masked);
    expect_elements(run("aten::flip", {x, ints({1})}).to_tensor(), flipped);
    expect_elements(run("aten::roll", {x, ints({1}), ints({1})}).to_tensor(), rolled);
    expect_elements(run("aten::roll", {x, ints({1 - width}), ints({-1})}).to_tensor(), rolled);
    expect_elements(run("aten::repeat_interleave.self_int", {x, 2, 1}).to_tensor(), repeated);
    const Tensor written = run("aten::masked_scatter", {x, mask, numbers({4 * width}, x.dtype(), 5)}).to_tensor();
    const std::vector<double> source = elements(numbers({4 * width}, x.dtype(), 5));
    std::vector<double> expected = all;
    size_t used = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      if (mask.data<bool>()[i]) expected[i] = source[used++];
    }
    expect_elements(written, expected);
    const Tensor places = run("aten::nonzero", {mask}).to_tensor();
    std::vector<double> found;
    for (int64_t i = 0; i < mask.numel(); ++i) {
      if (mask.data<bool>()[i])
        found.insert(found.end(), {static_cast<double>(i / width), static_cast<double>(i % width)});
    }
    expect_elements(places, found);
  });
}

TEST(IndexEdges, JoinsCutsAndTriangles) {
  for_each_matrix(4, [&](const Tensor& x, const std::vector<double>& all, int64_t width) {
    std::vector<double> below = all;
    below.insert(below.end(), all.begin(), all.end());
    std::vector<double> beside, padded;
    for (int64_t r = 0; r < 4; ++r) {
      const std::vector<double> row(all.begin() + r * width, all.begin() + (r + 1) * width);
      for (int i = 0; i < 2; ++i) beside.insert(beside.end(), row.begin(), row.end());
      padded.push_back(2);
      padded.insert(padded.end(), row.begin(), row.end());
      padded.insert(padded.end(), 3, 2);
    }
    expect_elements(run("aten::cat", {tensors({x, x}), 0}).to_tensor(), below);
    expect_elements(run("aten::cat", {tensors({x, x}), 1}).to_tensor(), beside);
    expect_elements(run("aten::stack", {tensors({x, x}), 0}).to_tensor(), below);
    expect_elements(run("aten::repeat", {x, ints({2, 1})}).to_tensor(), below);
    expect_elements(run("aten::repeat", {x, ints({1, 2})}).to_tensor(), beside);
    expect_elements(run("aten::constant_pad_nd", {x, ints({1, 3}), 2}).to_tensor(), padded);
    expect_elements(x.clone(), all);
    expect_elements(x.contiguous(), all);
    for (const int64_t diagonal : {-5, -4, -3, -1, 0, 1, 3, 17, 2000}) {
      std::vector<double> lower = all, upper = all;
      for (int64_t i = 0; i < x.numel(); ++i) {
        const int64_t r = i / width, c = i % width;
        if (c - r > diagonal) lower[static_cast<size_t>(i)] = 0;
        if (c - r < diagonal) upper[static_cast<size_t>(i)] = 0;
      }
      expect_elements(run("aten::tril", {x, diagonal}).to_tensor(), lower);
      expect_elements(run("aten::triu", {x, diagonal}).to_tensor(), upper);
      std::vector<double> line;
      for (int64_t r = 0; r < 4; ++r) {
        if (r + diagonal >= 0 && r + diagonal < width)
          line.push_back(all[static_cast<size_t>(r * width + r + diagonal)]);
      }
      expect_elements(run("aten::diagonal", {x, diagonal}).to_tensor(), line);
    }
    for (int64_t step = 1; step < 4; ++step) {
      std::vector<double> cut;
      for (int64_t r = 0; r < 4; ++r) {
        for (int64_t c = 1; c < width - 1; c += step) cut.push_back(all[static_cast<size_t>(r * width + c)]);
      }
      expect_elements(run("aten::slice.Tensor", {x, 1, 1, -1, step}).to_tensor(), cut);
    }
  });
}

double key(double x) { return std::isnan(x) ? std::numeric_limits<double>::infinity() : x; }

TEST(IndexEdges, Orders) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kInt64, DType::kUInt8}) {
    for (const int64_t length : {1, 2, 3, 16, 17, 64, 129, 1000, 5000}) {
      for (const int64_t depth : {1, 3}) {
        Tensor x = numbers({2, length, depth}, DType::kFloat32);
        if (is_floating(dtype) && length > 2)
          x.data<float>()[depth] = x.data<float>()[(length - 1) * depth] = std::numeric_limits<float>::quiet_NaN();
        x = x.to(dtype);
        const std::vector<double> all = elements(x);
        for (const bool descending : {false, true}) {
          SCOPED_TRACE(concat(name_of(dtype), " ", length, " by ", depth, descending ? " from the largest" : ""));
          std::vector<double> values(all.size()), places(all.size());
          for (int64_t o = 0; o < 2; ++o) {
            for (int64_t d = 0; d < depth; ++d) {
              const auto at = [&](int64_t i) { return static_cast<size_t>((o * length + i) * depth + d); };
              std::vector<int64_t> order(static_cast<size_t>(length));
              std::iota(order.begin(), order.end(), 0);
              std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
                return descending ? key(all[at(a)]) > key(all[at(b)]) : key(all[at(a)]) < key(all[at(b)]);
              });
              for (int64_t i = 0; i < length; ++i) {
                values[at(i)] = all[at(order[static_cast<size_t>(i)])];
                places[at(i)] = static_cast<double>(order[static_cast<size_t>(i)]);
              }
            }
          }
          const ops::Op &sort = ops::get_op("aten::sort.stable"), &topk = ops::get_op("aten::topk"),
                        &kth = ops::get_op("aten::kthvalue");
          const auto sorted = ops::run(sort, ops::bind(sort, {x, true, 1, descending}));
          expect_elements(sorted[0].to_tensor(), values);
          expect_elements(sorted[1].to_tensor(), places);
          expect_elements(run("aten::argsort.stable", {x, true, 1, descending}).to_tensor(), places);
          for (const int64_t k : {int64_t{0}, int64_t{1}, length / 2, length}) {
            const auto some = ops::run(topk, ops::bind(topk, {x, k, 1, descending, true}));
            expect_elements(some[0].to_tensor(), elements(run("aten::narrow", {sorted[0], 1, 0, k}).to_tensor()));
            const Tensor read = run("aten::gather", {x, 1, some[1]}).to_tensor();
            expect_elements(read, elements(some[0].to_tensor()));
            if (k == 0 || descending) continue;
            const auto one = ops::run(kth, ops::bind(kth, {x, k, 1, true}));
            expect_elements(one[0].to_tensor(), elements(run("aten::narrow", {sorted[0], 1, k - 1, 1}).to_tensor()));
          }
        }
      }
    }
  }
}

TEST(IndexEdges, PlacesAmongSortedNumbers) {
  for (const int64_t length : {0, 1, 2, 3, 16, 17, 1000}) {
    std::vector<float> bounds;
    for (int64_t i = 0; i < length; ++i) bounds.push_back(static_cast<float>(i / 2));  // each twice
    const Tensor sequence = floats(bounds);
    std::vector<float> asked{-1,
                             0,
                             0.5f,
                             static_cast<float>(length / 2),
                             static_cast<float>(length),
                             std::numeric_limits<float>::quiet_NaN()};
    for (const bool right : {false, true}) {
      std::vector<double> expected;
      for (const float x : asked) {
        const auto less = [](float a, float b) { return !std::isnan(a) && (std::isnan(b) || a < b); };
        const auto found = right ? std::upper_bound(bounds.begin(), bounds.end(), x, less)
                                 : std::lower_bound(bounds.begin(), bounds.end(), x, less);
        expected.push_back(static_cast<double>(found - bounds.begin()));
      }
      expect_elements(run("aten::searchsorted.Tensor", {sequence, floats(asked), false, right}).to_tensor(), expected);
      expect_elements(run("aten::bucketize.Tensor", {floats(asked), sequence, true, right}).to_tensor(), expected);
    }
  }
}

TEST(IndexEdges, DistinctNumbersAndCounts) {
  for (const int64_t length : {0, 1, 2, 17, 1000, 70'000}) {
    const Tensor x = numbers({length}, DType::kInt64, 3);
    std::vector<int64_t> counts(50);
    for (int64_t i = 0; i < length; ++i) ++counts[static_cast<size_t>(x.data<int64_t>()[i])];
    std::vector<double> distinct, of_each;
    for (size_t value = 0; value < 50; ++value) {
      if (counts[value] == 0) continue;
      distinct.push_back(static_cast<double>(value));
      of_each.push_back(static_cast<double>(counts[value]));
    }
    const ops::Op& unique = ops::get_op("aten::_unique2");
    const auto found = ops::run(unique, ops::bind(unique, {x, true, true, true}));
    expect_elements(found[0].to_tensor(), distinct);
    expect_elements(found[2].to_tensor(), of_each);
    expect_elements(run("aten::index_select", {found[0], 0, found[1]}).to_tensor(), elements(x));
    const Tensor all = run("aten::bincount", {x, kNone, 60}).to_tensor();
    EXPECT_EQ(all.numel(), 60);
    std::vector<double> expected(counts.begin(), counts.end());
    expected.resize(60);
    expect_elements(all, expected);
  }
}

// As in PyTorch NaNs are all different, and sorted last.
TEST(IndexEdges, NansAreAllUnique) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> values{nan, 1, nan, 0, 1};
  const Tensor x = Tensor::empty(Dims{5}, DType::kFloat64);
  std::copy(values.begin(), values.end(), x.data<double>());
  const ops::Op& unique = ops::get_op("aten::_unique2");
  for (const DType dtype : {DType::kFloat64, DType::kFloat32, DType::kFloat16}) {
    const auto found = ops::run(unique, ops::bind(unique, {x.to(dtype), true, true, true}));
    expect_elements(found[0].to_tensor(), {0, 1, nan, nan});
    expect_elements(found[1].to_tensor(), {2, 1, 3, 0, 1});
    expect_elements(found[2].to_tensor(), {1, 2, 1, 1});
  }
}

// A view of [2, 16, 4096]: 512 KiB, not contiguous.
Tensor cache_of(const Tensor& all) { return run("aten::select.int", {all, 0, 1}).to_tensor(); }

struct InPlace {
  const char* name;  // of the functional form, without "aten::" and overload
  const char* overload;
  std::vector<Value> arguments;  // after self
};

std::vector<InPlace> forms_in_place() {
  const Tensor at = longs({3, 900}), source = numbers({16, 2}, kFloat);
  const Tensor spread = run("aten::expand", {at, ints({16, 2})}).to_tensor();
  const auto values = [&](auto... more) { return std::vector<Value>{Value(1), spread, source, more...}; };
  const Tensor mask = zeros({16, 4096}, DType::kBool), row = zeros({4096}, DType::kBool);
  for (const int64_t i : {5, 4096 + 7, 65535}) mask.data<bool>()[i] = true;
  row.data<bool>()[77] = true;
  return {{"scatter", ".src", values()},
          {"scatter", ".value", {1, spread, 2.5}},
          {"scatter", ".reduce", values("add")},
          {"scatter_add", "", values()},
          {"scatter_reduce", ".two", values("amax", true)},
          {"scatter_reduce", ".two", values("prod", true)},
          {"scatter_reduce", ".two", values("mean", true)},
          {"scatter_reduce", ".two", values("mean", false)},
          {"scatter_reduce", ".two", values("sum", false)},
          {"scatter_reduce", ".two", values("amin", false)},
          {"index_reduce", "", {1, at, source, "prod", true}},
          {"index_reduce", "", {1, at, source, "mean", true}},
          {"index_reduce", "", {1, longs({3, 3}), source, "mean", false}},
          {"index_reduce", "", {1, at, source, "amax", false}},
          {"put", "", {longs({4, -1, 65535, 4}), numbers({4}, kFloat), true}},
          {"put", "", {longs({4, -1, 700}), numbers({3}, kFloat), false}},
          {"masked_fill", ".Scalar", {mask, 2.5}},
          {"masked_fill", ".Tensor", {row, Tensor::scalar(2.5f)}},
          {"masked_scatter", "", {mask, numbers({4}, kFloat)}},
          {"index_add", "", {1, at, source, 2}},
          {"index_copy", "", {1, at, source}},
          {"index_fill", ".int_Scalar", {1, at, 2.5}},
          {"index_fill", ".int_Tensor", {1, at, Tensor::scalar(2.5)}},
          {"index_put", "", {optionals({kNone, at}), source, true}}};
}

std::vector<Value> with_self(const Tensor& self, const std::vector<Value>& rest) {
  std::vector<Value> out{self};
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

// The cost of an in-place write to a cache depends only on what is written.
TEST(InPlace, FormsTouchWhatTheyWriteOnly) {
  for (const InPlace& form : forms_in_place()) {
    const std::string name = std::string("aten::") + form.name;
    SCOPED_TRACE(name + form.overload);
    const Tensor all = numbers({2, 16, 4096}, kFloat, 7), before = all.clone(), self = cache_of(all);
    const Tensor expected = run(name + form.overload, with_self(self, form.arguments)).to_tensor();
    const OwnerId owner = memory_owner("an in-place form");
    {
      const MemoryOwnerScope scope(owner);
      set_owner_limit(owner, 64 << 10);
      const std::string said = said_by([&] { run(name + "_" + form.overload, with_self(self, form.arguments)); });
      set_owner_limit(owner, 0);
      EXPECT_EQ(said, kTaken);
    }
    expect_elements(self, elements(expected));
    const auto first = [](const Tensor& x) { return run("aten::select.int", {x, 0, 0}).to_tensor(); };
    expect_elements(first(all), elements(first(before)));
  }
}

// The second page is read-only.
TEST(InPlace, MaskedFillWritesWhatTheMaskNames) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const memory = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(mprotect(static_cast<char*>(memory) + page, page, PROT_READ), 0);
  for (const DType dtype : {DType::kFloat32, DType::kUInt8, DType::kFloat16, DType::kFloat64}) {
    const auto count = static_cast<int64_t>(2 * page / size_of(dtype));
    const Tensor x = Tensor::from_storage(wrap_storage(memory, 2 * page, nullptr), Dims{count}, Dims{1}, 0, dtype);
    const Tensor mask = zeros({count}, DType::kBool);
    for (const int64_t i : {3, 8, 19}) mask.data<bool>()[i] = true;
    run("aten::zero_", {run("aten::slice.Tensor", {x, 0, 0, count / 2, 1})});
    run("aten::masked_fill_.Scalar", {x, mask, 3});
    const Tensor start = run("aten::slice.Tensor", {x, 0, 0, 20, 1}).to_tensor();
    expect_elements(start, {0, 0, 0, 3, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3});
  }
  munmap(memory, 2 * page);
}

// In any layout, and with repeated indices.
TEST(InPlace, PutOfWhatLiesByColumns) {
  const Tensor columns = run("aten::t", {numbers({4, 3}, kFloat)}).to_tensor(), at = longs({0, -1, 5, -12, 5});
  for (const bool accumulates : {false, true}) {
    const Tensor self = columns.clone(), values = floats({10, 20, 30, 40, 50});
    const Tensor of_columns = run("aten::t", {run("aten::t", {self}).to_tensor().clone()}).to_tensor();
    ASSERT_FALSE(of_columns.is_contiguous());
    const Tensor expected = run("aten::put", {columns, at, values, accumulates}).to_tensor();
    run("aten::put_", {of_columns, at, values, accumulates});
    expect_elements(of_columns, elements(expected));
    for (const int64_t beyond : {12, -13})
      EXPECT_THAT(said_by([&] {
                    run("aten::put_", {of_columns, longs({beyond}), floats({1}), accumulates});
                  }),
                  testing::HasSubstr("out of bounds"));
    expect_elements(of_columns, elements(expected));
  }
}

// A refused call has written nothing, because its target may serve the next request.
TEST(InPlace, FormsThatFailHaveWrittenNothing) {
  const Tensor at = longs({3, 4096}), source = numbers({16, 2}, kFloat);
  const Tensor spread = run("aten::expand", {at, ints({16, 2})}).to_tensor();
  const InPlace forms[] = {{"scatter_", ".src", {1, spread, source}}, {"scatter_", ".value", {1, spread.clone(), 2.5}},
                           {"scatter_add_", "", {1, spread, source}}, {"index_add_", "", {1, at, source, 2}},
                           {"index_copy_", "", {1, at, source}},      {"index_fill_", ".int_Scalar", {1, at, 2.5}}};
  for (const InPlace& form : forms) {
    const std::string name = std::string("aten::") + form.name + form.overload;
    const Tensor self = numbers({16, 4096}, kFloat, 7), before = self.clone();
    EXPECT_THAT(said_by([&] { run(name, with_self(self, form.arguments)); }), ::testing::HasSubstr("out of")) << name;
    expect_elements(self, elements(before));
  }
}

// Inputs are read before the target is written.
TEST(InPlace, IndicesThatAreTheTargetItself) {
  const Tensor self = longs({1, 2, 0}), fill = longs({2, 1, 0});
  run("aten::scatter_.value", {self, 0, self, 2});
  expect_elements(self, {2, 2, 2});
  run("aten::index_fill_.int_Scalar", {fill, 0, fill, 2});
  expect_elements(fill, {2, 2, 2});
}

}  // namespace
}  // namespace tensord::index_edges_test
