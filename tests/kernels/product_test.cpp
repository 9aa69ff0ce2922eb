// Prepared matrix products compared with the plain kernels in float64.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "core/base/parallel.h"
#include "core/ops/run.h"

namespace tensord::product_test {
namespace {

using ops::Scalar;
using ops::Value;

Tensor random(const Dims& sizes) {
  static std::mt19937 generator(3);
  std::uniform_real_distribution<float> values(-1, 1);
  const Tensor t = Tensor::empty(sizes, DType::kFloat32);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = values(generator);
  return t;
}

// The same sizes, with the last two dimensions swapped in memory.
Tensor across(const Dims& shape) {
  Dims sizes = shape;
  std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
  return ops::call_by_name("aten::transpose.int", random(sizes), int64_t{-2}, int64_t{-1});
}

// Every second column of a wider tensor.
Tensor sparse(const Dims& shape) {
  Dims sizes = shape;
  sizes.back() *= 2;
  return ops::call_by_name("aten::slice.Tensor", random(sizes), int64_t{-1}, int64_t{0}, sizes.back(), int64_t{2});
}

Tensor run_prepared(const ops::Op& op, std::vector<Value> arguments, int threads) {
  std::vector<const void*> inputs;
  for (Value& argument : arguments) {
    if (!argument.is_tensor()) continue;
    const Tensor t = argument.to_tensor();
    inputs.push_back(t.raw_data());
    argument = Tensor::meta_strided(t.sizes(), t.strides(), t.dtype());
  }
  const Tensor out = Tensor::empty(ops::infer(op, arguments).front().to_tensor().sizes(), DType::kFloat32);
  const Tensor outputs[] = {Tensor::meta(out.sizes(), out.dtype())};
  ops::PackStore packs;
  const auto prepared = op.prepare[0]({op, arguments, outputs, threads, ops::Precision::kF32, &packs});
  if (!prepared) return Tensor();
  const Tensor scratch = Tensor::empty(Dims{static_cast<int64_t>(prepared->scratch_bytes)}, DType::kUInt8);
  std::memset(scratch.raw_data(), 0xff, prepared->scratch_bytes);
  std::memset(out.raw_data(), 0xff, out.size_bytes());
  void* const targets[] = {out.raw_data()};
  prepared->run(ops::KernelContext(), {inputs.data(), targets, scratch.raw_data()});
  return out;
}

void check_call(const char* name, const std::vector<Value>& positional) {
  const ops::Op& op = ops::get_op(name);
  const std::vector<Value> arguments = ops::bind(op, positional);
  std::vector<Value> wide = arguments;
  for (Value& argument : wide) {
    if (argument.is_tensor()) argument = argument.to_tensor().to(DType::kFloat64);
  }
  const Tensor expected = ops::run(op, wide).front().to_tensor().contiguous();
  Tensor first;
  for (const int threads : {1, 2, 3}) {
    set_thread_budget(threads);
    const Tensor got = run_prepared(op, arguments, threads);
    ASSERT_TRUE(got.defined()) << name;
    ASSERT_EQ(to_string(got.sizes()), to_string(expected.sizes()));
    for (int64_t i = 0; i < got.numel(); ++i)
      ASSERT_NEAR(got.data<float>()[i], expected.data<double>()[i], 2e-4) << name << " " << i;
    if (threads == 1) first = got;
    EXPECT_EQ(std::memcmp(first.raw_data(), got.raw_data(), got.size_bytes()), 0) << name << " on " << threads;
  }
}

// One expanded row.
Tensor repeated(const Dims& sizes) {
  const Tensor row = random(Dims{1, sizes[1]});
  return row.as_view(sizes, Dims{0, 1}, row.offset());
}

Tensor (*const kKinds[])(const Dims&) = {&random, &across, &sparse, &repeated};

TEST(Product, SizesAndStrides) {
  for (const int64_t rows : {1, 7, 30, 130}) {
    for (const int64_t depth : {1, 5, 300}) {
      for (const int64_t columns : {1, 3, 70, 600}) {
        SCOPED_TRACE(concat(rows, "x", depth, "x", columns));
        for (Tensor (*left)(const Dims&) : kKinds) {
          for (Tensor (*right)(const Dims&) : kKinds)
            check_call("aten::mm", {left(Dims{rows, depth}), right(Dims{depth, columns})});
        }
      }
    }
  }
}

TEST(Product, Batches) {
  check_call("aten::bmm", {random(Dims{5, 20, 33}), across(Dims{5, 33, 17})});
  check_call("aten::matmul", {random(Dims{2, 3, 20, 33}), across(Dims{3, 33, 17})});
  check_call("aten::matmul", {random(Dims{2, 1, 20, 33}), random(Dims{3, 33, 48})});
  check_call("aten::matmul", {random(Dims{2, 3, 20, 33}), random(Dims{33, 17})});
  check_call("aten::matmul", {across(Dims{2, 3, 20, 33}), random(Dims{33, 17})});
  check_call("aten::matmul", {random(Dims{33}), random(Dims{2, 33, 17})});
  check_call("aten::matmul", {random(Dims{2, 20, 33}), random(Dims{33})});
  check_call("aten::matmul", {random(Dims{33}), random(Dims{33})});
  check_call("aten::matmul", {random(Dims{4, 1, 700}), across(Dims{4, 700, 90})});
}

TEST(Product, Sums) {
  for (const double beta : {0.0, 1.0, 0.5}) {
    check_call("aten::addmm",
               {random(Dims{17}), random(Dims{20, 300}), random(Dims{300, 17}), Scalar(beta), Scalar(2.0)});
    check_call("aten::addmm",
               {random(Dims{20, 1}), random(Dims{20, 33}), random(Dims{33, 17}), Scalar(beta), Scalar(1.0)});
    check_call("aten::addmm", {random(Dims{1}), random(Dims{20, 33}), random(Dims{33, 1}), Scalar(beta), Scalar(1.0)});
    check_call("aten::baddbmm",
               {across(Dims{5, 20, 48}), random(Dims{5, 20, 33}), random(Dims{5, 33, 48}), Scalar(beta), Scalar(0.3)});
  }
}

}  // namespace
}  // namespace tensord::product_test
