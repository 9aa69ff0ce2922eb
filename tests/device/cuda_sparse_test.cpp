// Sparse tensors whose values are on a CUDA device, and optimizers with sparse gradients, as on the host. With
// TENSORD_CUDA naming the emulated devices' library.
#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "core/nn/optim/clip_grad.h"
#include "core/nn/optim/optimizer.h"
#include "core/ops/sparse.h"
#include "core/ops/to_device.h"
#include "core/tensor/grad_mode.h"
#include "tests/device/cuda_fixture.h"

namespace tensord::cuda_sparse_test {
namespace {

using cuda_tests::difference;
using cuda_tests::kGpu;
using ops::call_by_name;
using ops::Value;

using CudaSparse = cuda_tests::CudaDevice;

Tensor table_numbers(const Dims& sizes, double step) {
  const Tensor out = Tensor::empty(sizes, DType::kFloat64);
  for (int64_t i = 0; i < out.numel(); ++i) out.data<double>()[i] = std::sin(static_cast<double>(i) * step);
  return out.to(DType::kFloat32);
}
Tensor ids(int64_t step) {
  const Tensor out = Tensor::empty(Dims{3, 4}, DType::kInt64);
  for (int64_t i = 0; i < out.numel(); ++i) out.data<int64_t>()[i] = (i * i + step) % 9;
  return out;
}

struct Steps {
  Tensor table;
  Value state;
};
// Steps with gradients of two passes each, one without rows that are skipped, on one device.
Steps trained(const std::string& kind, const nn::Options& options, double clipped_to, Device device) {
  Tensor table = table_numbers({10, 6}, 0.37).to(device);
  autograd::set_requires_grad(table);
  const auto optimizer = nn::make_optimizer(kind, {{{table}, {}}}, options);
  for (int64_t step = 0; step < 3; ++step) {
    optimizer->zero_grad();
    for (const int64_t padding : {int64_t{-1}, int64_t{4}}) {
      const Tensor rows = call_by_name("aten::embedding", table, ids(step).to(device), padding, false, true);
      const Tensor weights = table_numbers({3, 4, 6}, 0.11 * static_cast<double>(step + 1)).to(device);
      autograd::backward(call_by_name("aten::sum", call_by_name("aten::mul.Tensor", rows, weights)));
    }
    const ops::SparsePtr gradient = ops::as_sparse(autograd::grad(table));
    EXPECT_TRUE(gradient && gradient->device == device) << kind;
    if (clipped_to > 0) nn::clip_grad_norm_({&table, 1}, clipped_to);
    optimizer->step();
  }
  return {table.to(Device{}), ops::to_device(optimizer->state_dict(), Device{})};
}

TEST_F(CudaSparse, OptimizersStepAsOnTheHost) {
  const nn::Options plain{{"lr", 0.1}}, momentum{{"lr", 0.1}, {"momentum", 0.9}, {"nesterov", true}};
  const std::pair<const char*, const nn::Options*> kinds[] = {
      {"SGD", &plain}, {"SGD", &momentum}, {"Adagrad", &plain}, {"SparseAdam", &plain}};
  for (const auto& [kind, options] : kinds) {
    for (const double clipped_to : {0.0, 0.5}) {
      const Steps expected = trained(kind, *options, clipped_to, {}), got = trained(kind, *options, clipped_to, kGpu);
      EXPECT_EQ(difference(got.table, expected.table, 1e-6), "") << kind << ", norm " << clipped_to;
      EXPECT_NE(difference(got.table, table_numbers({10, 6}, 0.37), 1e-3), "") << kind << " changes nothing";
    }
  }
}

// A state that was saved on the host goes on on the device.
TEST_F(CudaSparse, StatesOfOptimizersAreMoved) {
  const nn::Options momentum{{"lr", 0.1}, {"momentum", 0.9}};
  const Steps before = trained("SGD", momentum, 0, {});
  const auto resumed = [&](Device device) {
    Tensor table = before.table.to(device).clone();
    autograd::set_requires_grad(table);
    const auto optimizer = nn::make_optimizer("SGD", {{{table}, {}}}, momentum);
    optimizer->load_state_dict(before.state);
    const Tensor rows = call_by_name("aten::embedding", table, ids(1).to(device), int64_t{-1}, false, true);
    autograd::backward(call_by_name("aten::sum", rows));
    optimizer->step();
    return table.to(Device{});
  };
  EXPECT_EQ(difference(resumed(kGpu), resumed({}), 1e-6), "");
}

TEST_F(CudaSparse, PartsAndSumsAsOnTheHost) {
  const NoGradGuard without_grad;
  Tensor places = Tensor::empty(Dims{2, 5}, DType::kInt64);
  for (int64_t i = 0; i < 10; ++i) places.data<int64_t>()[i] = i * 7 % 3;
  const Tensor values = table_numbers({5, 4}, 0.7);
  const auto made = [&](Device device) {
    return call_by_name("aten::sparse_coo_tensor.indices_size", places.to(device), values.to(device),
                        ops::make_int_list(Dims{3, 3, 4}), Value(), Value(), Value(), Value(), Value());
  };
  const Tensor here = made({}), there = made(kGpu);
  ASSERT_EQ(there.device(), kGpu);
  const auto both = [&](const char* what, const std::function<Tensor(const Tensor&)>& function) {
    const Tensor got = function(there);
    EXPECT_EQ(got.device(), kGpu) << what;
    EXPECT_EQ(difference(got.to(Device{}), function(here), 1e-6), "") << what;
  };
  const auto dense = [](const Tensor& x) { return call_by_name("aten::to_dense", x, Value(), Value()); };
  both("to_dense", dense);
  both("indices", [](const Tensor& x) { return call_by_name("aten::indices", call_by_name("aten::coalesce", x)); });
  both("values", [](const Tensor& x) { return call_by_name("aten::values", call_by_name("aten::coalesce", x)); });
  both("sum", [&](const Tensor& x) { return dense(call_by_name("aten::add.Tensor", x, x, 2)); });
  both("product", [&](const Tensor& x) { return dense(call_by_name("aten::mul.Tensor", x, x)); });
  both("add_", [&](const Tensor& x) {
    const Tensor to = table_numbers({3, 3, 4}, 0.2).to(x.device());
    return call_by_name("aten::add_.Tensor", to, x, 0.5);
  });
  both("square", [&](const Tensor& x) { return dense(call_by_name("aten::square", x)); });
  both("to_sparse",
       [&](const Tensor& x) { return dense(call_by_name("aten::to_sparse", dense(x), Value(), Value(), Value())); });
  both("to_sparse_csr", [&](const Tensor& x) {
    const Tensor matrix = call_by_name("aten::select.int", dense(x), 2, 1);
    return dense(call_by_name("aten::to_sparse_csr", matrix, Value()));
  });
  EXPECT_EQ(difference(dense(call_by_name("aten::cpu", there)), dense(here), 1e-6), "");
  EXPECT_EQ(call_by_name("aten::cpu", there).device(), Device{});
}

// What has no code for them says so.
TEST_F(CudaSparse, OtherOperatorsRefuse) {
  const Tensor x = call_by_name("aten::to_sparse", table_numbers({3, 3}, 0.3).to(kGpu), Value(), Value(), Value());
  const std::string message = cuda_tests::message_of([&] {
    call_by_name("aten::mm", x, table_numbers({3, 3}, 0.3).to(kGpu));
  });
  EXPECT_NE(message.find("aten::mm has no kernel for SparseCOO on cuda"), std::string::npos) << message;
}

}  // namespace
}  // namespace tensord::cuda_sparse_test
