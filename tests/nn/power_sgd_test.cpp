// PowerSGD alone: its first steps, its approximation error, its error feedback, its state. ddp_test.cpp compares
// training with PyTorch's.
#include "core/distributed/ddp/power_sgd.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/distributed/value_bytes.h"
#include "core/ops/run.h"
#include "tests/distributed/ranks.h"
#include "tests/nn/nn_cases.h"

namespace tensord::nn::power_sgd_test {
namespace {

using distributed::ProcessGroup;
using distributed::fixtures::backends_of;
using distributed::fixtures::on_ranks;
using ops::Value;

Tensor floats(Dims sizes, float value) {
  const Tensor tensor = Tensor::empty(std::move(sizes), DType::kFloat32);
  std::fill_n(tensor.data<float>(), tensor.numel(), value);
  return tensor;
}

Tensor normals(Dims sizes, uint64_t seed) {
  ops::Generator generator(seed);
  const ops::GeneratorGuard guard(generator);
  return ops::call_by_name("aten::normal_", floats(std::move(sizes), 0), 0.0, 1.0);
}
Tensor product(const Tensor& a, const Tensor& b) { return ops::call_by_name("aten::mm", a, b); }
double norm_of(const Tensor& tensor) { return ops::call_by_name("aten::norm.Scalar", tensor, 2).item_double(); }
Tensor minus(const Tensor& a, const Tensor& b) { return ops::call_by_name("aten::sub.Tensor", a, b, 1); }

// Runs the hook on a bucket of one matrix.
Tensor averaged(ProcessGroup& group, const distributed::CommHook& hook, const Tensor& matrix) {
  const Tensor flat = matrix.clone().as_view({matrix.numel()}, {1}, 0);
  hook(group, {flat, 0, true, {flat.as_view(matrix.sizes(), contiguous_strides(matrix.sizes()), 0)}})();
  return flat.as_view(matrix.sizes(), contiguous_strides(matrix.sizes()), 0);
}

TEST(PowerSgd, AveragesAsItIsBeforeItsFirstStep) {
  on_ranks(2, backends_of("local"), [](ProcessGroup& group) {
    distributed::PowerSgd power({.start_step = 3});
    const auto hook = power.hook();
    const Tensor mean = ops::call_by_name(
        "aten::mul.Scalar", ops::call_by_name("aten::add.Tensor", normals({20, 30}, 0), normals({20, 30}, 1), 1), 0.5);
    for (int step = 0; step < 5; ++step) {
      const Tensor own = normals({20, 30}, static_cast<uint64_t>(group.rank()));
      const double error = norm_of(minus(averaged(group, hook, own), mean));
      if (step < 3) {
        EXPECT_LT(error, 1e-5) << step;
      } else {
        EXPECT_GT(error, 1) << step;
      }
    }
  });
}

TEST(PowerSgd, ComesNearTheBestApproximation) {
  on_ranks(2, backends_of("local"), [](ProcessGroup& group) {
    // Both ranks have parts of U diag(8, 4, 1, 0.5) V^T; the error of the best approximation of rank 2 is the norm of
    // (1, 0.5).
    const Tensor u =
        ops::run(ops::get_op("aten::linalg_qr"), std::vector<Value>{normals({40, 4}, 5), "reduced"})[0].to_tensor();
    const Tensor v =
        ops::run(ops::get_op("aten::linalg_qr"), std::vector<Value>{normals({30, 4}, 6), "reduced"})[0].to_tensor();
    const float weights[] = {8, 4, 1, 0.5f};
    const Tensor scaled = u.clone();
    for (int64_t i = 0; i < 40; ++i) {
      for (int64_t c = 0; c < 4; ++c)
        scaled.data<float>()[i * scaled.strides()[0] + c * scaled.strides()[1]] *= weights[c];
    }
    const Tensor mean = product(scaled, ops::call_by_name("aten::t", v));
    const Tensor own = ops::call_by_name("aten::mul.Scalar", mean, group.rank() == 0 ? 0.5 : 1.5);
    distributed::PowerSgd power({.rank = 2, .start_step = 0, .has_error_feedback = false, .has_warm_start = false});
    distributed::PowerSgd warm({.rank = 2, .start_step = 2, .has_error_feedback = false});
    Tensor last, first;
    for (int step = 0; step < 12; ++step) {
      last = averaged(group, warm.hook(), own);
      if (step == 0) first = averaged(group, power.hook(), own);
    }
    const double best = std::sqrt(1 + 0.25);
    EXPECT_NEAR(norm_of(minus(last, mean)), best, 1e-3 * best);
    EXPECT_GT(norm_of(minus(first, mean)), best);
  });
}

TEST(PowerSgd, WhatOnePassLosesComesWithTheNext) {
  on_ranks(3, backends_of("local"), [](ProcessGroup& group) {
    distributed::PowerSgd power({.start_step = 2});
    const auto hook = power.hook();
    Tensor sent = floats({20, 30}, 0), given = floats({20, 30}, 0);
    double lost = 0;
    for (uint64_t step = 0; step < 10; ++step) {
      const auto seed = 3 * step;
      Tensor mean = normals({20, 30}, seed);
      for (uint64_t rank = 1; rank < 3; ++rank) {
        mean = ops::call_by_name("aten::add.Tensor", mean, normals({20, 30}, seed + rank), 1);
      }
      sent = ops::call_by_name("aten::add.Tensor", sent, ops::call_by_name("aten::mul.Scalar", mean, 1.0 / 3), 1);
      const Tensor result = averaged(group, hook, normals({20, 30}, seed + static_cast<uint64_t>(group.rank())));
      given = ops::call_by_name("aten::add.Tensor", given, result, 1);
      lost += norm_of(minus(result, ops::call_by_name("aten::mul.Scalar", mean, 1.0 / 3)));
    }
    // The sum of all outputs equals the sum of all inputs, up to the mean of the ranks' stored errors.
    const Value state = power.state_dict();
    const Tensor error = item(dict_of(item(state, "buckets")).items()[0].second, "error").to_tensor();
    const Tensor owed = error.clone();
    group.all_reduce(owed, distributed::kAvg)->wait();
    const Tensor rest = minus(minus(sent, given), owed.as_view({20, 30}, {30, 1}, 0));
    EXPECT_LT(norm_of(rest), 1e-4);
    EXPECT_GT(lost, 1);
  });
}

TEST(PowerSgd, GoesOnFromItsState) {
  on_ranks(2, backends_of("local"), [](ProcessGroup& group) {
    const auto own = [&](uint64_t step) { return normals({20, 30}, 2 * step + static_cast<uint64_t>(group.rank())); };
    distributed::PowerSgd whole({.start_step = 2}), first({.start_step = 2}), second({.start_step = 2});
    Tensor expected;
    for (uint64_t step = 0; step < 8; ++step) expected = averaged(group, whole.hook(), own(step));
    for (uint64_t step = 0; step < 5; ++step) averaged(group, first.hook(), own(step));
    second.load_state_dict(distributed::value_of_bytes(distributed::bytes_of_value(first.state_dict())), true);
    Tensor result;
    for (uint64_t step = 5; step < 8; ++step) result = averaged(group, second.hook(), own(step));
    EXPECT_EQ(difference(result, expected), 0);
    EXPECT_EQ(second.step(), 8);
  });
}

TEST(PowerSgd, AMatrixOfZerosStaysOne) {
  on_ranks(2, backends_of("local"), [](ProcessGroup& group) {
    distributed::PowerSgd power({.rank = 3, .start_step = 2});
    for (int step = 0; step < 4; ++step) {
      EXPECT_EQ(norm_of(averaged(group, power.hook(), floats({20, 30}, 0))), 0) << step;
    }
  });
}

TEST(PowerSgd, OptionsOutOfRange) {
  EXPECT_THROW(distributed::PowerSgd({.start_step = 1}), Error);
  EXPECT_THROW(distributed::PowerSgd({.rank = 0}), Error);
}

}  // namespace
}  // namespace tensord::nn::power_sgd_test
