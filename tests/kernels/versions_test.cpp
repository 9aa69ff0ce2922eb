// Every write bumps the version of its memory, so that a gradient that needs the old contents fails: tests every writer
// that does not use an operator's out-of-place variant.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "core/autograd/function.h"
#include "core/autograd/variable.h"
#include "core/ops/run.h"

namespace tensord::versions_test {
namespace {

using ops::Value;

Tensor ones(const Dims& sizes) {
  const Tensor out = Tensor::empty(sizes, DType::kFloat32);
  std::fill_n(out.data<float>(), out.numel(), 1.0f);
  return out;
}
Tensor longs(const Dims& sizes) {
  return ops::call_by_name("aten::zeros", sizes, DType::kInt64, Value(), Value(), Value());
}
Value list(const std::vector<Tensor>& tensors) { return ops::make_tensor_list(tensors); }

void run(const char* name, std::vector<Value> arguments) {
  const ops::Op& op = ops::get_op(name);
  ops::run(op, ops::bind(op, std::move(arguments)));
}

// The version of each written tensor grows by one; those that are only read keep theirs.
void expect_written(const std::function<void()>& call, const std::vector<Tensor>& written,
                    const std::vector<Tensor>& read = {}) {
  std::vector<uint32_t> before;
  for (const Tensor& tensor : written) before.push_back(tensor.version());
  std::vector<uint32_t> others;
  for (const Tensor& tensor : read) others.push_back(tensor.version());
  call();
  for (size_t i = 0; i < written.size(); ++i) EXPECT_GT(written[i].version(), before[i]) << "written " << i;
  for (size_t i = 0; i < read.size(); ++i) EXPECT_EQ(read[i].version(), others[i]) << "read " << i;
}

TEST(Versions, CopiesAndItems) {
  const Tensor x = ones({4}), y = ones({4}), index = longs({2}), two = ones({2});
  expect_written([&] { run("aten::copy_", {x, y}); }, {x}, {y});
  expect_written([&] { run("aten::index_put_", {x, list({index}), two}); }, {x}, {index, two});
  expect_written([&] { run("aten::index_put_", {x, list({index}), two, true}); }, {x}, {index, two});
  expect_written([&] { run("aten::fill_.Scalar", {x, 2.0}); }, {x});
  expect_written([&] { run("aten::zero_", {x}); }, {x});
  expect_written([&] { run("aten::relu_", {x}); }, {x});
  expect_written([&] { run("aten::add_.Tensor", {x, y}); }, {x}, {y});
  expect_written([&] { run("aten::uniform_", {x}); }, {x});
  expect_written([&] { run("aten::normal_", {x}); }, {x});
  expect_written(
      [&] {
        run("aten::masked_fill_.Scalar", {x, ops::call_by_name("aten::gt.Scalar", y, 0.0), 2.0});
      },
      {x}, {y});
  expect_written([&] { run("aten::index_add_", {x, 0, index, two}); }, {x}, {index, two});
  expect_written([&] { run("aten::scatter_.src", {x, 0, index, two}); }, {x}, {index, two});
  expect_written([&] { run("aten::index_fill_.int_Scalar", {x, 0, index, 2.0}); }, {x}, {index});
  const Tensor table = ones({3, 2});
  expect_written([&] { run("aten::embedding_renorm_", {table, index, 0.5, 2.0}); }, {table}, {index});
  // A view shares its base's version.
  const Tensor all = ones({2, 3}), row = ops::call_by_name("aten::select.int", all, 0, 1);
  expect_written([&] { run("aten::mul_.Scalar", {row, 2.0}); }, {row, all});
}

TEST(Versions, RunningStatistics) {
  const Tensor x = ones({2, 3, 2, 2}), mean = ones({3}), variance = ones({3});
  const auto norm = [&](const Value& m, const Value& v, bool is_training) {
    run("aten::batch_norm", {x, Value(), Value(), m, v, is_training, 0.1, 1e-5, false});
  };
  expect_written([&] { norm(mean, variance, true); }, {mean, variance}, {x});
  expect_written([&] { norm(mean, variance, false); }, {}, {x, mean, variance});
  expect_written(
      [&] {
        run("aten::instance_norm", {x, Value(), Value(), mean, variance, true, 0.1, 1e-5, false});
      },
      {mean, variance}, {x});
}

TEST(Versions, StepsOfOptimizers) {
  // Contiguous and strided; the latter is written through a copy.
  for (const bool is_dense : {true, false}) {
    SCOPED_TRACE(is_dense);
    const auto make = [&] { return is_dense ? ones({4, 3}) : ops::call_by_name("aten::t", ones({3, 4})); };
    const Tensor p = make(), g = make(), a = make(), b = make(), c = make();
    expect_written(
        [&] {
          run("tensord::sgd_step_", {list({p}), list({g}), list({a}), 0.1, 0.0, 0.9, 0.0, false, false, list({})});
        },
        {p, a}, {g});
    const Value step = ops::make_int_list(Dims{1});
    expect_written(
        [&] {
          run("tensord::adam_step_", {list({p}), list({g}), list({a}), list({b}), list({c}), step, 0.1, 0.9, 0.99, 1e-8,
                                      0.0, false, false, list({})});
        },
        {p, a, b, c}, {g});
    expect_written(
        [&] {
          run("tensord::rmsprop_step_",
              {list({p}), list({g}), list({a}), list({b}), list({c}), 0.1, 0.9, 1e-8, 0.0, 0.9, false, list({})});
        },
        {p, a, b, c}, {g});
    expect_written(
        [&] {
          run("tensord::adagrad_step_", {list({p}), list({g}), list({a}), step, 0.1, 0.0, 0.0, 1e-8, false, list({})});
        },
        {p, a}, {g});
    expect_written([&] { run("tensord::clip_grad_norm_", {list({g, a}), 0.001, 2.0, false}); }, {g, a});
    expect_written([&] { run("tensord::clip_grad_value_", {list({g, a}), 0.0001}); }, {g, a});
    expect_written([&] { run("tensord::grad_norm", {list({g, a}), 2.0}); }, {}, {g, a});
  }
}

// A function declares which of its arguments it wrote.
struct Halve : autograd::Function<Halve> {
  static Tensor forward(autograd::FunctionContext& context, const Tensor& x, bool says_so) {
    for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] *= 0.5f;
    if (says_so) context.mark_dirty({x});
    return x;
  }
  static std::vector<Tensor> backward(autograd::FunctionContext&, std::vector<Tensor> grads) { return {grads[0], {}}; }
};

TEST(Versions, FunctionsThatWriteTheirArguments) {
  const Tensor x = ones({3});
  expect_written([&] { Halve::apply(x, true); }, {x});
  expect_written([&] { Halve::apply(x, false); }, {}, {x});
}

}  // namespace
}  // namespace tensord::versions_test
