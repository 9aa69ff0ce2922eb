#include "core/autograd/autocast.h"

#include <gtest/gtest.h>

#include <thread>

#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "ops/linear.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::autocast_test {
namespace {

using autograd::AutocastGuard;

Tensor matrix() {
  Tensor out = Tensor::empty(Dims{4, 4}, DType::kFloat32);
  for (int i = 0; i < 16; ++i) out.data<float>()[i] = static_cast<float>(i) / 7 - 1;
  return out;
}

DType type_of_product(const Tensor& x) { return ops::mm(x, x).dtype(); }

TEST(Autocast, HoldsInItsScope) {
  const Tensor x = matrix();
  EXPECT_FALSE(autograd::autocast_dtype(kCPU));
  {
    const AutocastGuard guard(kCPU);
    EXPECT_EQ(autograd::autocast_dtype(kCPU), DType::kBFloat16);
    EXPECT_FALSE(autograd::autocast_dtype(kCUDA));
    EXPECT_EQ(type_of_product(x), DType::kBFloat16);
    {
      const AutocastGuard half(kCPU, DType::kFloat16);
      EXPECT_EQ(type_of_product(x), DType::kFloat16);
      const AutocastGuard off(kCPU, DType::kFloat16, /*is_enabled=*/false);
      EXPECT_EQ(type_of_product(x), DType::kFloat32);
      const AutocastGuard gpu(kCUDA);
      EXPECT_EQ(type_of_product(x), DType::kFloat32);
    }
    EXPECT_EQ(type_of_product(x), DType::kBFloat16);
  }
  EXPECT_EQ(type_of_product(x), DType::kFloat32);
  EXPECT_FALSE(execution_context().included_keys.has(Functionality::kAutocast));
}

TEST(Autocast, GradientsHaveTheParametersType) {
  const Tensor w = matrix(), x = matrix();
  autograd::set_requires_grad(w);
  Tensor loss;
  {
    const AutocastGuard guard(kCPU);
    loss = ops::sum(ops::to(ops::mm(x, w), DType::kFloat32));
  }
  autograd::backward(loss);
  EXPECT_EQ(autograd::grad(w).dtype(), DType::kFloat32);
}

TEST(Autocast, IsOfTheThreadAndThoseThatWorkForIt) {
  const Tensor x = matrix();
  const AutocastGuard guard(kCPU);
  const ExecutionContext context = ExecutionContext::captured();
  std::thread([&] {
    EXPECT_EQ(type_of_product(x), DType::kFloat32);
    const ExecutionScope scope(context);
    EXPECT_EQ(type_of_product(x), DType::kBFloat16);
  }).join();
}

TEST(Autocast, OtherDevicesAndTypesAreRefused) {
  const ExecutionContext before = execution_context();
  EXPECT_THROW(AutocastGuard{kPrivateUse}, Error);
  EXPECT_THROW(AutocastGuard(kCPU, DType::kFloat32), Error);
  EXPECT_TRUE(execution_context() == before);
}

}  // namespace
}  // namespace tensord::autocast_test
