// Fused groups and single prepared calls give the same bits as the calls one by one.
#include "core/ops/attributes/fused.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/prepared_fixture.h"

namespace tensord::fused_test {
namespace {

using fixtures::pick;
using fixtures::PreparedRunner;
using fixtures::random_tensor;
using fixtures::same_bits;
using ops::FusedCalls;
using ops::FusedStep;
using ops::Value;

// Compares a prepared call with the plain one for 1 to 3 threads, and with every allowed overwriting.
void expect_same(const ops::Op& op, const std::vector<Value>& arguments, const std::vector<Tensor>& constants = {},
                 bool must_be_covered = true) {
  for (int threads = 1; threads <= 3; ++threads) {
    set_thread_budget(threads);
    std::vector<Tensor> expected;
    for (const Value& result : ops::run(op, arguments)) {
      if (result.is_tensor()) expected.push_back(result.to_tensor());
      if (!result.is_list()) continue;
      for (const Value& item : result.to_list()->items) expected.push_back(item.to_tensor());
    }
    PreparedRunner runner(op, arguments, constants, threads);
    if (!runner.prepared()) {
      EXPECT_FALSE(must_be_covered) << op.schema.full_name() << " is not covered";
      return;
    }
    for (int overwritten = -1; overwritten < static_cast<int>(runner.input_count()); ++overwritten) {
      if (overwritten >= 0 && !(runner.prepared()->may_overwrite >> overwritten & 1)) continue;
      const std::vector<Tensor> got = runner.run(overwritten);
      ASSERT_EQ(got.size(), expected.size());
      for (size_t i = 0; i < got.size(); ++i)
        EXPECT_TRUE(same_bits(got[i], expected[i]))
            << op.schema.full_name() << " " << runner.prepared()->label << " output " << i << " threads " << threads
            << " overwrites " << overwritten << " " << describe(expected[i]);
    }
  }
}

void expect_same(const char* op, std::vector<Value> arguments, const std::vector<Tensor>& constants = {},
                 bool must_be_covered = true) {
  const ops::Op& found = ops::get_op(op);
  expect_same(found, ops::bind(found, std::move(arguments)), constants, must_be_covered);
}

Tensor transposed(const Tensor& t) {
  Dims sizes = t.sizes(), strides = t.strides();
  std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
  std::swap(strides[sizes.size() - 1], strides[sizes.size() - 2]);
  return t.as_view(sizes, strides, t.offset());
}
Tensor channels_last(const Tensor& t) {
  const Tensor out = Tensor::empty_strided(t.sizes(), channels_last_strides(t.sizes()), t.dtype());
  out.copy_from(t);
  return out;
}

TEST(PreparedPointwise, Dense) {
  for (const Dims& sizes : {Dims{}, Dims{1}, Dims{7}, Dims{64, 1000}, Dims{3, 5, 7}}) {
    const Tensor a = random_tensor(sizes), b = random_tensor(sizes);
    expect_same("aten::relu", {a});
    expect_same("aten::add.Tensor", {a, b, Value(2)});
    expect_same("aten::mul.Scalar", {a, Value(0.3)});
    expect_same("aten::gelu", {a});
    expect_same("aten::clamp", {a, Value(-1.0), Value()});
    expect_same("aten::gt.Tensor", {a, b});
    expect_same("aten::pow.Tensor_Scalar", {a, Value(2)});
  }
}

TEST(PreparedPointwise, BroadcastsAndStrides) {
  const Tensor x = random_tensor({2, 20, 9, 11});
  for (const Tensor& a : {x, channels_last(x), transposed(random_tensor({2, 20, 11, 9}))}) {
    for (const Dims& other : {Dims{2, 20, 9, 11}, Dims{20, 1, 1}, Dims{2, 20, 1, 1}, Dims{11}, Dims{9, 1}, Dims{},
                              Dims{1, 1, 1, 1}, Dims{2, 1, 9, 11}}) {
      const Tensor b = random_tensor(other);
      expect_same("aten::add.Tensor", {a, b, Value(1)});
      expect_same("aten::div.Tensor", {b, a}, {b});
    }
  }
  const Tensor wide = random_tensor({3, 5000});
  expect_same("aten::mul.Tensor", {wide, random_tensor({5000})});
  expect_same("aten::mul.Tensor", {wide, random_tensor({3, 1})});
  expect_same("aten::mul.Tensor", {random_tensor({300, 1}), random_tensor({1, 200})});
}

TEST(PreparedPointwise, DTypes) {
  const Dims sizes{4, 600};
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat64, DType::kInt64, DType::kInt32,
                            DType::kUInt8, DType::kBool}) {
    const Tensor a = random_tensor(sizes, dtype), b = random_tensor(sizes, dtype), f = random_tensor(sizes);
    expect_same("aten::add.Tensor", {a, b, Value(1)});
    expect_same("aten::mul.Tensor", {a, f});
    expect_same("aten::sigmoid", {a});
    expect_same("aten::eq.Tensor", {a, b});
    expect_same("aten::add.Scalar", {a, Value(3), Value(1)});
    const Tensor zero_d = random_tensor({}, DType::kFloat32);
    expect_same("aten::mul.Tensor", {a, zero_d}, {zero_d});
  }
  const Tensor mask = random_tensor(sizes, DType::kBool), x = random_tensor(sizes);
  expect_same("aten::where.self", {mask, x, random_tensor({1, 600})});
  expect_same("aten::masked_fill.Scalar", {x, mask, Value(-1e9)});
  expect_same("aten::clamp.Tensor", {x, random_tensor(sizes), Value()});
  const Tensor slope = random_tensor({600});
  expect_same("aten::prelu", {x, slope}, {slope});
}

TEST(PreparedPointwise, BatchNorm) {
  const Tensor x = random_tensor({2, 20, 9, 11}), w = random_tensor({20}), m = random_tensor({20});
  const Tensor variance = ops::call_by_name("aten::abs", random_tensor({20}));
  for (const Tensor& in : {x, channels_last(x), x.to(DType::kFloat64)}) {
    const std::vector<Value> arguments{in, w, Value(), m, variance, Value(false), Value(0.1), Value(1e-5), Value(true)};
    expect_same("aten::batch_norm", arguments, {w, m, variance});
    PreparedRunner unknown(ops::get_op("aten::batch_norm"), arguments, {w}, 1);
    EXPECT_EQ(unknown.prepared(), nullptr);
  }
}

TEST(PreparedLines, LastDimension) {
  for (const Dims& sizes : {Dims{5}, Dims{3, 4}, Dims{40, 768}, Dims{2, 3, 5000}, Dims{200, 33}}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16}) {
      const Tensor x = random_tensor(sizes, dtype);
      expect_same("aten::softmax.int", {x, Value(-1), Value()});
      expect_same("aten::log_softmax.int", {x, Value(-1), Value()});
      const Tensor w = random_tensor({sizes.back()}, dtype), b = random_tensor({sizes.back()}, dtype);
      const Value shape = ops::make_int_list(Dims{sizes.back()});
      expect_same("aten::layer_norm", {x, shape, w, b, Value(1e-5), Value(true)}, {w, b});
      expect_same("aten::layer_norm", {x, shape, Value(), b, Value(1e-5), Value(true)}, {b});
      expect_same("aten::layer_norm", {x, shape, w, Value(), Value(1e-5), Value(true)}, {}, dtype != DType::kFloat16);
      if (dtype == DType::kFloat16) continue;
      expect_same("aten::mean.dim", {x, ops::make_int_list(Dims{-1}), Value(true), Value()});
      expect_same("aten::sum.dim_IntList", {x, ops::make_int_list(Dims{-1}), Value(false), Value()});
      expect_same("aten::amax", {x, ops::make_int_list(Dims{-1}), Value(false)});
    }
  }
  const Tensor x = random_tensor({6, 4, 5, 3}), w = random_tensor({4, 5, 3});
  expect_same("aten::layer_norm", {x, ops::make_int_list(Dims{4, 5, 3}), w, Value(), Value(1e-5), Value(true)});
  expect_same("aten::softmax.int", {transposed(x), Value(-1), Value()});
}

TEST(PreparedLines, SoftmaxOfOtherDimensions) {
  const Tensor x = random_tensor({2, 5, 30, 40});
  for (const Tensor& in : {x, channels_last(x), transposed(x), random_tensor({2, 5, 3, 4})}) {
    for (const int64_t dim : {0, 1, 2, 3}) {
      for (const char* op : {"aten::softmax.int", "aten::log_softmax.int"}) {
        const ops::Op& found = ops::get_op(op);
        const auto run = [&](const Tensor& t) {
          return ops::run(found, ops::bind(found, {t, Value(dim)})).front().to_tensor();
        };
        const Tensor a = run(in).to(DType::kFloat64).contiguous(), b = run(in.to(DType::kFloat64)).contiguous();
        for (int64_t i = 0; i < a.numel(); ++i)
          ASSERT_NEAR(a.data<double>()[i], b.data<double>()[i], 1e-5) << op << dim;
        expect_same(op, {in, Value(dim), Value()}, {}, false);
      }
    }
  }
  Tensor with_nan = random_tensor({6, 20});
  with_nan.data<float>()[45] = NAN;
  const Tensor y = ops::call_by_name("aten::softmax.int", with_nan, 0, Value());
  for (int64_t i = 0; i < y.numel(); ++i) EXPECT_EQ(std::isnan(y.data<float>()[i]), i % 20 == 5);
}

TEST(PreparedReductions, AnyDimensions) {
  for (const Dims& sizes : {Dims{}, Dims{5}, Dims{3, 4}, Dims{2, 6, 50, 40}, Dims{1, 96, 7, 7}, Dims{300000}}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kInt32, DType::kBool}) {
      Tensor x = random_tensor(sizes, dtype);
      expect_same("aten::sum", {x});
      expect_same("aten::max", {x});
      expect_same("aten::any", {x});
      if (sizes.size() < 2) continue;
      const std::vector<Dims> choices = sizes.size() == 2 ? std::vector<Dims>{{0}, {1}, {0, 1}}
                                                          : std::vector<Dims>{{1}, {-1}, {2, 3}, {0, 2}, {0, 2, 3}};
      for (const bool last : {false, true}) {
        if (last && sizes.size() != 4) continue;
        if (last) x = channels_last(x);
        for (const Dims& dims : choices) {
          for (const bool keep : {false, true}) {
            expect_same("aten::sum.dim_IntList", {x, ops::make_int_list(dims), Value(keep)});
            expect_same("aten::amin", {x, ops::make_int_list(dims), Value(keep)});
            if (is_floating(dtype)) expect_same("aten::mean.dim", {x, ops::make_int_list(dims), Value(keep)});
          }
        }
      }
    }
  }
}

TEST(PreparedCopies, JoinAndReorder) {
  for (const DType dtype : {DType::kFloat32, DType::kBool, DType::kFloat16, DType::kInt64}) {
    const Tensor a = random_tensor({2, 3, 40, 33}, dtype), b = random_tensor({2, 3, 40, 33}, dtype);
    expect_same("aten::clone", {transposed(a), Value()});
    expect_same("aten::clone", {transposed(a), Value(0)});
    expect_same("aten::clone", {channels_last(a), Value(0)});
    expect_same("aten::contiguous", {channels_last(a), Value(0)});
    for (const int64_t dim : {0, 1, 2, -1}) {
      expect_same("aten::cat", {ops::make_tensor_list({a, b, a}), Value(dim)});
      expect_same("aten::cat", {ops::make_tensor_list({a, b}), Value(dim)}, {b});
      expect_same("aten::cat", {ops::make_tensor_list({channels_last(a), channels_last(b)}), Value(dim)});
      expect_same("aten::stack", {ops::make_tensor_list({a, transposed(transposed(b))}), Value(dim)});
    }
  }
}

// ---- groups

class GroupBuilder {
 public:
  int input(const Tensor& t, bool is_constant = false) {
    inputs_.push_back(t);
    if (is_constant) constants_.push_back(t);
    return static_cast<int>(inputs_.size()) - 1;
  }
  // Operands that are steps have numbers from 1000 on until the inputs are known.
  int call(const char* op, std::vector<Value> arguments, std::vector<std::pair<int, int>> operands) {
    const ops::Op& found = ops::get_op(op);
    for (const auto& [argument, operand] : operands) {
      if (static_cast<size_t>(argument) >= arguments.size()) arguments.resize(static_cast<size_t>(argument) + 1);
      arguments[static_cast<size_t>(argument)] = Tensor::meta({}, DType::kFloat32);
    }
    arguments = ops::bind(found, std::move(arguments));
    for (const auto& [argument, operand] : operands) arguments[static_cast<size_t>(argument)] = Value();
    steps_.push_back({&found, std::move(arguments), std::move(operands)});
    return 1000 + static_cast<int>(steps_.size()) - 1;
  }
  void expect(std::vector<int> outputs, bool must_be_covered = true) {
    const auto fix = [&](int& operand) {
      if (operand >= 1000) operand += static_cast<int>(inputs_.size()) - 1000;
    };
    for (FusedStep& step : steps_) {
      for (auto& [argument, operand] : step.operands) fix(operand);
    }
    for (int& output : outputs) fix(output);
    const auto group = IntrusivePtr<FusedCalls>(new FusedCalls(inputs_.size(), steps_, outputs));
    const Value object{IntrusivePtr<ops::OpaqueObject>(group)};
    expect_same(ops::get_op(ops::kRunFused), {object, ops::make_tensor_list(inputs_)}, constants_, must_be_covered);
  }

 private:
  std::vector<Tensor> inputs_, constants_;
  std::vector<FusedStep> steps_;
};

TEST(Fused, Chain) {
  for (const Dims& sizes : {Dims{17}, Dims{1 << 17}, Dims{3, 20, 9, 11}}) {
    for (const bool last : {false, true}) {
      if (last && sizes.size() != 4) continue;
      const Tensor x = last ? channels_last(random_tensor(sizes)) : random_tensor(sizes);
      GroupBuilder g;
      const int a = g.input(x), b = g.input(random_tensor(sizes.size() == 4 ? Dims{20, 1, 1} : Dims{1}), true);
      const int c = g.call("aten::mul.Tensor", {}, {{0, a}, {1, b}});
      const int d = g.call("aten::gelu", {}, {{0, c}});
      const int e = g.call("aten::add.Scalar", {Value(), Value(0.5)}, {{0, d}});
      const int f = g.call("aten::relu", {}, {{0, e}});
      g.expect({f, c});
    }
  }
}

TEST(Fused, ScaleMaskSoftmax) {
  for (const int64_t length : {5, 64, 197, 3000}) {
    const Tensor x = random_tensor({2, 3, 40, length}), mask = random_tensor({2, 1, 1, length});
    GroupBuilder g;
    const int a = g.input(x), m = g.input(mask);
    const int b = g.call("aten::div.Scalar", {Value(), Value(8.0)}, {{0, a}});
    const int c = g.call("aten::add.Tensor", {}, {{0, b}, {1, m}});
    const int d = g.call("aten::softmax.int", {Value(), Value(-1)}, {{0, c}});
    g.expect({d});
  }
}

TEST(Fused, ResidualLayerNorm) {
  for (const Dims& sizes : {Dims{16, 768}, Dims{2, 50, 384}, Dims{9, 7}}) {
    const Tensor x = random_tensor(sizes), y = random_tensor(sizes), w = random_tensor({sizes.back()});
    GroupBuilder g;
    const int a = g.input(x), b = g.input(y), weight = g.input(w, true);
    const int c = g.call("aten::add.Tensor", {}, {{0, a}, {1, b}});
    const int d = g.call("aten::layer_norm", {Value(), ops::make_int_list(Dims{sizes.back()})}, {{0, c}, {2, weight}});
    g.expect({c, d});
  }
}

TEST(Fused, RmsNorm) {
  for (const bool keep : {true, false}) {
    const Tensor x = random_tensor({4, 25, 100}), w = random_tensor({100});
    GroupBuilder g;
    const int a = g.input(x), weight = g.input(w);
    const int b = g.call("aten::pow.Tensor_Scalar", {Value(), Value(2)}, {{0, a}});
    const int c = g.call("aten::mean.dim", {Value(), ops::make_int_list(Dims{-1}), Value(keep)}, {{0, b}});
    const int d = g.call("aten::add.Scalar", {Value(), Value(1e-6)}, {{0, c}});
    const int e = g.call("aten::rsqrt", {}, {{0, d}});
    if (!keep) {
      g.expect({e});
      continue;
    }
    const int f = g.call("aten::mul.Tensor", {}, {{0, a}, {1, e}});
    const int h = g.call("aten::mul.Tensor", {}, {{0, f}, {1, weight}});
    g.expect({h, e});
  }
}

// Sums without the last dimension must not be mistaken for rows of a square.
TEST(Fused, RefusesMisalignedRows) {
  const Tensor x = random_tensor({12, 12});
  GroupBuilder g;
  const int a = g.input(x);
  const int b = g.call("aten::sum.dim_IntList", {Value(), ops::make_int_list(Dims{-1})}, {{0, a}});
  const int c = g.call("aten::mul.Tensor", {}, {{0, a}, {1, b}});
  g.expect({c}, false);
}

TEST(Fused, MixedDTypes) {
  const Tensor x = random_tensor({3, 700}, DType::kFloat16), y = random_tensor({3, 700}),
               n = random_tensor({3, 700}, DType::kInt64);
  GroupBuilder g;
  const int a = g.input(x), b = g.input(y), c = g.input(n);
  const int d = g.call("aten::mul.Scalar", {Value(), Value(0.7)}, {{0, a}});
  const int e = g.call("aten::gt.Scalar", {Value(), Value(1)}, {{0, c}});
  const int f = g.call("aten::where.self", {}, {{0, e}, {1, d}, {2, b}});
  const int h = g.call("aten::add.Tensor", {}, {{0, c}, {1, e}});
  g.expect({f, h, d});
}

const char* const kUnary[] = {"aten::relu", "aten::sigmoid",   "aten::tanh",  "aten::exp",
                              "aten::abs",  "aten::neg",       "aten::silu",  "aten::gelu",
                              "aten::erf",  "aten::hardswish", "aten::rsqrt", "aten::floor"};
const char* const kBinary[] = {"aten::add.Tensor", "aten::sub.Tensor", "aten::mul.Tensor",
                               "aten::div.Tensor", "aten::maximum",    "aten::minimum"};

TEST(Fused, RandomGroups) {
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    Dims sizes;
    const int64_t ndim = pick(1, 4);
    for (int64_t d = 0; d < ndim; ++d) sizes.push_back(pick(1, ndim < 3 ? 90 : 12));
    GroupBuilder g;
    std::vector<int> values;
    std::vector<Tensor> strided;
    for (int64_t i = pick(1, 3); i > 0; --i) {
      Dims own = sizes;
      if (!values.empty()) {
        for (int64_t& size : own) size = pick(0, 3) == 0 ? 1 : size;
      }
      Tensor t = random_tensor(own);
      if (own.size() == 4 && pick(0, 1)) t = channels_last(t);
      if (own.size() > 1 && pick(0, 4) == 0) {
        std::swap(own[own.size() - 1], own[own.size() - 2]);
        t = transposed(random_tensor(own));
        strided.push_back(t);
      } else if (t.ndim() == 4 && !t.is_contiguous()) {
        strided.push_back(t);
      }
      values.push_back(g.input(t, pick(0, 3) == 0));
    }
    const size_t inputs = values.size();
    // Non-contiguous rows are summed in another order when they are computed alone.
    const bool is_dense = strided.empty();
    bool reduced = false;
    int full = values[0];  // a value of full size
    for (int64_t i = pick(1, 8); i > 0; --i) {
      const auto any = [&] { return values[static_cast<size_t>(pick(0, static_cast<int64_t>(values.size()) - 1))]; };
      const int64_t kind = pick(0, 9);
      if (kind < 4) {
        full = g.call(kUnary[pick(0, std::size(kUnary) - 1)], {}, {{0, full}});
      } else if (kind < 8) {
        full = g.call(kBinary[pick(0, std::size(kBinary) - 1)], {}, {{0, full}, {1, any()}});
      } else if (!reduced && is_dense && kind == 8) {
        full = g.call(pick(0, 1) ? "aten::softmax.int" : "aten::log_softmax.int", {Value(), Value(-1)}, {{0, full}});
        reduced = true;
      } else if (!reduced && is_dense) {
        const int mean = g.call("aten::mean.dim", {Value(), ops::make_int_list(Dims{-1}), Value(true)}, {{0, full}});
        values.push_back(mean);
        full = g.call("aten::sub.Tensor", {}, {{0, full}, {1, mean}});
        reduced = true;
      } else {
        full = g.call("aten::mul.Scalar", {Value(), Value(0.37)}, {{0, full}});
      }
      values.push_back(full);
    }
    std::vector<int> outputs{full};
    for (size_t v = inputs; v < values.size(); ++v) {
      if (values[v] != full && pick(0, 4) == 0) outputs.push_back(values[v]);
    }
    g.expect(outputs);
  }
}

}  // namespace
}  // namespace tensord::fused_test
