// Gradients of many parameters on CUDA's devices, which few launches clip. With TENSORD_CUDA naming the emulated
// devices' library.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>
#include <vector>

#include "core/ops/run.h"
#include "tests/device/cuda_fixture.h"

namespace tensord::cuda_optim_test {
namespace {

using namespace cuda_tests;
using ops::call_by_name;
using ops::Value;
using CudaOptim = CudaDevice;

// All dtypes and layouts, elements that are not finite, and more tensors than one launch takes.
TEST_F(CudaOptim, GradientsAreClippedTogether) {
  std::vector<Value> finite, others;
  for (int64_t i = 0; i < 60; ++i) {
    const DType dtype = i % 5 == 0   ? DType::kFloat64
                        : i % 5 == 1 ? DType::kFloat16
                        : i % 5 == 2 ? DType::kBFloat16
                                     : DType::kFloat32;
    Tensor grad = call_by_name("aten::nan_to_num", values_of({i % 7, 1 + i * i}, DType::kFloat32, 91), 1.0, 2.0, 3.0);
    if (i % 3 == 0) grad = turned(grad);
    finite.push_back(grad.to(dtype));
  }
  finite.push_back(values_of({8, 6}, DType::kFloat32, 7).as_view({4, 3}, {12, 2}, 0));
  others = {values_of({40, 3}, DType::kFloat32), values_of({5}, DType::kFloat64)};
  finite.back() = call_by_name("aten::nan_to_num", finite.back(), 1.0, 2.0, 3.0);
  const auto list = [](const std::vector<Value>& given, Device device) {
    std::vector<Value> copies;
    for (const Value& value : given) {
      const Tensor& x = value.to_tensor();
      copies.push_back(Tensor::empty_strided(x.sizes(), x.strides(), x.dtype(), device));
      copies.back().to_tensor().copy_from(x);
    }
    return copies;
  };
  const auto clipped = [&](const std::vector<Value>& given, Device device, const char* name, double limit,
                           double type) {
    const std::vector<Value> copies = list(given, device);
    std::vector<Value> arguments{ops::make_list(ops::tensor_type(), copies), limit};
    if (type > 0) arguments.insert(arguments.end(), {type, false});
    const ops::Op& op = ops::get_op(name);
    const std::vector<Value> results = ops::run(op, ops::bind(op, arguments));
    return std::pair(results.empty() || results[0].is_none() ? 0.0 : results[0].to_float(), copies);
  };
  for (const auto& [name, limit, type] :
       {std::tuple{"tensord::clip_grad_norm_", 0.5, 2.0}, std::tuple{"tensord::clip_grad_norm_", 1e9, 2.0},
        std::tuple{"tensord::clip_grad_norm_", 0.5, 1.0}, std::tuple{"tensord::clip_grad_norm_", 0.5, 3.0},
        std::tuple{"tensord::clip_grad_norm_", 0.5, double{INFINITY}},
        std::tuple{"tensord::clip_grad_value_", 0.8, 0.0}}) {
    SCOPED_TRACE(concat(name, " ", limit, " ", type));
    for (const auto& given : {finite, others}) {
      const auto [expected_norm, expected] = clipped(given, {}, name, limit, type);
      const auto [norm, got] = clipped(given, kGpu, name, limit, type);
      EXPECT_TRUE((std::isnan(norm) && std::isnan(expected_norm)) || norm == expected_norm ||
                  std::abs(norm - expected_norm) < 1e-9 * expected_norm)
          << norm << ", expected " << expected_norm;
      for (size_t i = 0; i < got.size(); ++i) {
        const Tensor& tensor = expected[i].to_tensor();
        EXPECT_EQ(difference(got[i].to_tensor().to(Device{}), tensor, size_of(tensor.dtype()) < 4 ? 1e-2 : 1e-6), "")
            << i;
      }
    }
  }
  const std::vector<Value> copies = list(finite, kGpu);
  const ops::Op& op = ops::get_op("tensord::clip_grad_norm_");
  const std::optional<uint64_t> before = queued_work();
  if (!before) GTEST_SKIP() << "these are not the emulated devices";
  ops::run(op, ops::bind(op, {ops::make_list(ops::tensor_type(), copies), 0.5, 2.0, false}));
  EXPECT_LE(*queued_work(), *before + 14);
}

// With the bits of lerp_ of each average; 50 of them take three launches.
TEST_F(CudaOptim, AveragesMoveTogether) {
  std::vector<Tensor> averages, others, parameters;
  for (int64_t i = 0; i < 50; ++i) {
    const auto values = [&](bool is_turned, int64_t seed) {
      const Tensor x = turned(values_of({i % 7, 1 + i}, DType::kFloat32, 7 + seed).to(Device(kGpu)));
      return is_turned ? x : x.contiguous();
    };
    Tensor average = values(i % 5 == 0, i), parameter = values(i % 3 == 0, 100 + i);
    if (i % 4 == 1) parameter = parameter.to(i % 8 == 1 ? DType::kBFloat16 : DType::kFloat16);
    if (i % 11 == 2) average = average.to(DType::kFloat64), parameter = parameter.to(DType::kFloat64);
    averages.push_back(average);
    others.push_back(average.clone());
    parameters.push_back(parameter);
  }
  const std::optional<uint64_t> before = queued_work();
  for (const double weight : {0.001, 0.75}) {
    call_by_name<void>("tensord::average_step_", averages, parameters, weight);
    for (size_t i = 0; i < others.size(); ++i)
      call_by_name("aten::lerp_.Scalar", others[i], parameters[i].to(others[i].dtype()), weight);
    for (size_t i = 0; i < others.size(); ++i) {
      EXPECT_EQ(difference(averages[i].to(Device{}), others[i].to(Device{}), 1e-7), "") << i << " " << weight;
      EXPECT_EQ(averages[i].version(), others[i].version()) << i;
    }
  }
  averages.resize(1);
  EXPECT_THROW(call_by_name<void>("tensord::average_step_", averages, parameters, 0.5), Error);
  if (!before) GTEST_SKIP() << "these are not the emulated devices";
  std::vector<Tensor> few, towards;
  for (int64_t i = 0; i < 20; ++i) {
    few.push_back(values_of({3, 1 + i}, DType::kFloat32, 7 + i).to(Device(kGpu)));
    towards.push_back(few.back().clone());
  }
  const uint64_t queued = *queued_work();
  call_by_name<void>("tensord::average_step_", few, towards, 0.5);
  EXPECT_EQ(*queued_work(), queued + 1);
}

}  // namespace
}  // namespace tensord::cuda_optim_test
