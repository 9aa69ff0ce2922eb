// tensord::attention compared with the calls that it replaces.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "core/base/parallel.h"
#include "core/ops/run.h"

namespace tensord::attention_test {
namespace {

using ops::Scalar;
using ops::Value;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor random(const Dims& sizes, DType dtype = DType::kFloat32) {
  static std::mt19937 generator(5);
  std::uniform_real_distribution<float> values(-1, 1);
  const Tensor t = Tensor::empty(sizes, DType::kFloat32);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = values(generator);
  return t.to(dtype);
}

Tensor random_bool(const Dims& sizes) {
  const Tensor t = random(sizes);
  const Tensor out = Tensor::empty(sizes, DType::kBool);
  for (int64_t i = 0; i < t.numel(); ++i) out.data<bool>()[i] = t.data<float>()[i] > 0.3f;
  return out;
}

Tensor transposed(const Tensor& t, int64_t a, int64_t b) { return ops::call_by_name("aten::transpose.int", t, a, b); }

struct Call {
  Tensor query, key, value;
  Tensor mask = {};
  double scale = 0.25;
  Value fill = {};
  bool fills_where = true, is_causal = false, transposes = false, is_safe = false;

  std::vector<Value> arguments() const {
    return {query,     key,        value,  mask.defined() ? Value(mask) : Value(), scale, fill, fills_where,
            is_causal, transposes, is_safe};
  }
  Tensor run() const { return ops::run(ops::get_op("tensord::attention"), arguments()).front().to_tensor(); }

  Tensor plain() const {
    const DType wide = DType::kFloat64;
    Tensor scores = ops::call_by_name("aten::matmul", query.to(wide), transposed(key.to(wide), -2, -1));
    scores = ops::call_by_name("aten::mul.Scalar", scores, Scalar(scale));
    if (mask.defined() && fill.is_none()) scores = ops::call_by_name("aten::add.Tensor", scores, mask.to(wide));
    if (!fill.is_none()) {
      const Tensor where = fills_where ? mask : ops::call_by_name("aten::logical_not", mask);
      scores = ops::call_by_name("aten::masked_fill.Scalar", scores, where, Scalar(fill.to_float()));
    }
    const int64_t rows = query.sizes()[query.sizes().size() - 2], keys = key.sizes()[key.sizes().size() - 2];
    if (is_causal) {
      const Tensor ones = ops::call_by_name(
          "aten::logical_not", ops::call_by_name("aten::zeros_like", Tensor::empty(Dims{rows, keys}, DType::kBool)));
      scores = ops::call_by_name("aten::masked_fill.Scalar", scores, ops::call_by_name("aten::triu", ones, int64_t{1}),
                                 Scalar(-kInfinity));
    }
    Tensor weights = ops::call_by_name("aten::softmax.int", scores, int64_t{-1}, Value());
    // For a row of infinities only; one with a NaN stays NaN.
    const Tensor hidden = ops::call_by_name("aten::eq.Scalar", scores, Scalar(-kInfinity));
    if (is_safe)
      weights = ops::call_by_name("aten::masked_fill.Scalar", weights,
                                  ops::call_by_name("aten::all.dim", hidden, int64_t{-1}, true), Scalar(0.0));
    const Tensor out = ops::call_by_name("aten::matmul", weights, value.to(wide));
    return transposes ? transposed(out, -3, -2) : out;
  }
};

void expect_near(const Tensor& got, const Tensor& expected, double tolerance) {
  ASSERT_EQ(to_string(got.sizes()), to_string(expected.sizes()));
  const Tensor a = got.to(DType::kFloat64).contiguous(), b = expected.to(DType::kFloat64).contiguous();
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double x = a.data<double>()[i], y = b.data<double>()[i];
    ASSERT_EQ(std::isnan(x), std::isnan(y)) << i;
    if (!std::isnan(x)) {
      ASSERT_NEAR(x, y, tolerance) << i;
    }
  }
}

// As in a plan: the prepared call with memory of its own, twice.
Tensor run_prepared(const Call& call, int threads) {
  const ops::Op& op = ops::get_op("tensord::attention");
  std::vector<Value> arguments = call.arguments();
  std::vector<const void*> inputs;
  for (Value& argument : arguments) {
    if (!argument.is_tensor()) continue;
    const Tensor t = argument.to_tensor();
    inputs.push_back(t.raw_data());
    argument = Tensor::meta_strided(t.sizes(), t.strides(), t.dtype());
  }
  const Tensor out = Tensor::empty(ops::infer(op, arguments).front().to_tensor().sizes(), call.query.dtype());
  const Tensor outputs[] = {Tensor::meta(out.sizes(), out.dtype())};
  ops::PackStore packs;
  const auto prepared = op.prepare[0]({op, arguments, outputs, threads, ops::Precision::kF32, &packs});
  if (!prepared) return Tensor();
  const Tensor scratch = Tensor::empty(Dims{static_cast<int64_t>(prepared->scratch_bytes)}, DType::kUInt8);
  void* const targets[] = {out.raw_data()};
  std::fill_n(static_cast<uint8_t*>(scratch.raw_data()), scratch.numel(), uint8_t{0xff});  // NaN
  prepared->run(ops::KernelContext(), {inputs.data(), targets, scratch.raw_data()});
  const Tensor first = out.clone();
  prepared->run(ops::KernelContext(), {inputs.data(), targets, scratch.raw_data()});
  EXPECT_EQ(std::memcmp(first.raw_data(), out.raw_data(), static_cast<size_t>(out.numel()) * 4), 0);
  return out;
}

void check_call(const Call& call, double tolerance = 2e-6) {
  const Tensor expected = call.plain();
  Tensor first;
  for (const int threads : {1, 2, 3}) {
    set_thread_budget(threads);
    const Tensor got = call.run();
    expect_near(got, expected, tolerance);
    const Tensor prepared = run_prepared(call, threads);
    ASSERT_TRUE(prepared.defined());
    expect_near(prepared, expected, tolerance);
    if (threads == 1) first = prepared;
    EXPECT_EQ(std::memcmp(first.raw_data(), prepared.raw_data(), static_cast<size_t>(first.numel()) * 4), 0)
        << "another result on " << threads << " threads";
  }
}

TEST(Attention, SizesOfAllKinds) {
  for (const int64_t queries : {1, 3, 5, 17, 40, 131}) {
    for (const int64_t keys : {1, 2, 16, 33, 128, 300}) {
      for (const int64_t depth : {1, 8, 20, 64}) {
        SCOPED_TRACE(concat(queries, " queries, ", keys, " keys, ", depth, " wide"));
        check_call(
            {random(Dims{2, 3, queries, depth}), random(Dims{2, 3, keys, depth}), random(Dims{2, 3, keys, depth})});
      }
    }
  }
}

TEST(Attention, ManyKeysAndAnotherValueWidth) {
  check_call({random(Dims{1, 2, 70, 32}), random(Dims{1, 2, 1024, 32}), random(Dims{1, 2, 1024, 48})});
  check_call({random(Dims{1, 2, 2, 32}), random(Dims{1, 2, 1500, 32}), random(Dims{1, 2, 1500, 7})});
  check_call({random(Dims{9, 5}), random(Dims{4, 5}), random(Dims{4, 3})});
}

// Values of several panels, in several blocks of keys.
TEST(Attention, ManyKeysOfWideValues) {
  for (const int64_t queries : {2, 70, 600}) {
    for (const int64_t width : {130, 192}) {
      SCOPED_TRACE(concat(queries, " queries, ", width, " wide"));
      Call call{random(Dims{1, 2, queries, 16}), random(Dims{1, 2, 600, 16}), random(Dims{1, 2, 600, width})};
      check_call(call);
      call.is_causal = true;
      check_call(call);
      call.is_causal = false;
      call.value = transposed(random(Dims{1, 2, width, 600}), 2, 3);
      check_call(call);
    }
  }
}

TEST(Attention, ViewsOfOneProjection) {
  for (const int64_t tokens : {2, 30}) {
    const Tensor all = random(Dims{2, tokens, 3, 4, 16});
    const auto part = [&](int64_t i) {
      return transposed(ops::call_by_name("aten::select.int", all, int64_t{2}, i), 1, 2);
    };
    Call call{part(0), part(1), part(2)};
    check_call(call);
    call.transposes = true;
    check_call(call);
    EXPECT_EQ(to_string(call.run().sizes()), to_string(Dims{2, tokens, 4, 16}));
    // Transposed rows.
    check_call({transposed(random(Dims{2, 16, tokens}), 1, 2), transposed(random(Dims{2, 16, tokens}), 1, 2),
                transposed(random(Dims{2, 16, tokens}), 1, 2)});
  }
}

TEST(Attention, OneValueForAllKeys) {
  for (const int64_t depth : {16, 64}) {
    const Tensor row = random(Dims{2, 3, 1, depth});
    check_call({random(Dims{2, 3, 70, 16}), random(Dims{2, 3, 33, 16}),
                row.as_view(Dims{2, 3, 33, depth}, Dims{3 * depth, depth, 0, 1}, row.offset())});
  }
}

TEST(Attention, HeadsThatShareKeys) {
  check_call({random(Dims{2, 4, 20, 16}), random(Dims{2, 1, 20, 16}), random(Dims{1, 20, 16})});
}

TEST(Attention, Masks) {
  for (const int64_t queries : {2, 37}) {
    const int64_t keys = 45;
    Call call{random(Dims{2, 3, queries, 16}), random(Dims{2, 3, keys, 16}), random(Dims{2, 3, keys, 16})};
    for (const Dims& sizes :
         {Dims{2, 1, 1, keys}, Dims{queries, keys}, Dims{keys}, Dims{2, 3, queries, keys}, Dims{queries, 1}}) {
      SCOPED_TRACE(to_string(sizes));
      call.mask = random(sizes);
      call.fill = Value();
      check_call(call);
      call.mask = random_bool(sizes);
      for (const double fill : {-10000.0, -kInfinity}) {
        call.fill = fill;
        for (const bool where : {true, false}) {
          call.fills_where = where;
          check_call(call);
        }
      }
    }
  }
}

TEST(Attention, RowsThatAreMaskedWhole) {
  Call call{random(Dims{1, 2, 9, 16}), random(Dims{1, 2, 20, 16}), random(Dims{1, 2, 20, 16})};
  call.mask = ops::call_by_name("aten::logical_not",
                                ops::call_by_name("aten::zeros_like", Tensor::empty(Dims{1, 20}, DType::kBool)));
  call.fill = -10000.0;
  check_call(call);
  call.fill = -kInfinity;
  check_call(call);
  EXPECT_TRUE(std::isnan(call.run().data<float>()[0]));
}

TEST(Attention, RowsThatAreMaskedWholeAreZerosWhereThatIsAsked) {
  for (const int64_t keys : {1, 7, 16, 20, 33, 130}) {
    Call call{random(Dims{2, 2, 9, 16}), random(Dims{2, 2, keys, 16}), random(Dims{2, 2, keys, 16})};
    call.is_safe = true;
    check_call(call);
    call.mask = random_bool(Dims{9, keys});
    for (int64_t j = 0; j < keys; ++j) call.mask.data<bool>()[3 * keys + j] = true;
    call.fill = -kInfinity;
    check_call(call);
    EXPECT_EQ(call.run().data<float>()[3 * 16], 0);
    call.mask = ops::call_by_name("aten::masked_fill.Scalar", random(Dims{9, keys}), call.mask, Scalar(-kInfinity));
    call.fill = Value();
    check_call(call);
    EXPECT_EQ(call.run().data<float>()[3 * 16], 0);
    // A NaN among masked keys does not make the row fully masked.
    call.mask.data<float>()[3 * keys] = std::numeric_limits<float>::quiet_NaN();
    check_call(call);
    EXPECT_TRUE(std::isnan(call.run().data<float>()[3 * 16]));
  }
}

TEST(Attention, Causal) {
  for (const int64_t keys : {1, 20, 100, 130}) {
    Call call{random(Dims{2, 130, 16}), random(Dims{2, keys, 16}), random(Dims{2, keys, 16})};
    call.is_causal = true;
    check_call(call);
    call.mask = random_bool(Dims{130, keys});
    call.fill = -5.0;
    check_call(call);
  }
}

TEST(Attention, InfinityAndNan) {
  Call call{random(Dims{1, 8, 16}), random(Dims{1, 20, 16}), random(Dims{1, 20, 16})};
  call.query.data<float>()[3] = std::numeric_limits<float>::quiet_NaN();
  call.key.data<float>()[40] = std::numeric_limits<float>::infinity();
  check_call(call);
}

TEST(Attention, OtherDtypes) {
  for (const DType dtype : {DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    Call call{random(Dims{2, 7, 8}, dtype), random(Dims{2, 9, 8}, dtype), random(Dims{2, 9, 8}, dtype)};
    call.mask = random(Dims{7, 9}, dtype);
    call.transposes = true;
    const double tolerance = dtype == DType::kFloat64 ? 1e-12 : dtype == DType::kFloat16 ? 3e-3 : 3e-2;
    expect_near(call.run(), call.plain(), tolerance);
  }
}

TEST(Attention, NothingToDo) {
  const auto run = [](int64_t queries, int64_t keys) {
    return Call{random(Dims{2, queries, 4}), random(Dims{2, keys, 4}), random(Dims{2, keys, 4})}.run();
  };
  EXPECT_EQ(run(0, 3).numel(), 0);
  const Tensor out = run(3, 0);
  for (int64_t i = 0; i < out.numel(); ++i) EXPECT_EQ(out.data<float>()[i], 0);
}

TEST(Attention, RefusesWhatDoesNotFit) {
  const Tensor x = random(Dims{2, 5, 4});
  EXPECT_THROW((Call{x, random(Dims{2, 5, 3}), x}.run()), Error);
  EXPECT_THROW((Call{x, x, random(Dims{2, 6, 4})}.run()), Error);
  EXPECT_THROW((Call{x, x, random(Dims{2, 5, 4}, DType::kFloat64)}.run()), Error);
  EXPECT_THROW((Call{x, x, x, random(Dims{7, 5})}.run()), Error);
  EXPECT_THROW((Call{x, x, x, random_bool(Dims{5, 5})}.run()), Error);
  EXPECT_THROW((Call{random(Dims{1, 4}), random(Dims{5, 4}), random(Dims{5, 4}), random(Dims{3, 5})}.run()), Error);
}

}  // namespace
}  // namespace tensord::attention_test
