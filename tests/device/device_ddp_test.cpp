// Data-parallel training with the NCCL backend on the test device, with a fake function table, compared with the host.
#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "core/nn/data_parallel.h"
#include "core/nn/distributed.h"
#include "core/nn/layers/layers.h"
#include "core/nn/optim/optimizer.h"
#include "core/ops/generator.h"
#include "core/ops/run.h"
#include "tests/device/async_kernels.h"
#include "tests/distributed/on_device.h"

namespace tensord::device_ddp_test {
namespace {

using namespace distributed::fixtures;
using distributed::ProcessGroup;
using ops::call_by_name;

[[maybe_unused]] const bool is_installed = (late::install(), late::install_kernels(), true);

Tensor numbers(Dims sizes, double first) {
  const Tensor out = Tensor::empty(std::move(sizes), DType::kFloat32);
  fill(out, [=](int64_t i) { return first + 0.125 * static_cast<double>(i % 11); });
  return out;
}

// The parameters after some steps.
std::vector<double> trained(ProcessGroup& group, const nn::DistributedOptions& options) {
  ops::Generator generator(3 + static_cast<uint64_t>(group.rank()));  // rank 0's are used
  const ops::GeneratorGuard guard(generator);
  const Device device = device_of_tensors();
  const auto net = nn::sequential(std::make_shared<nn::Linear>(4, 8), std::make_shared<nn::GELU>(),
                                  std::make_shared<nn::Linear>(8, 2));
  net->to(device);
  nn::DistributedDataParallel ddp(net, group, options);
  nn::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int step = 0; step < 4; ++step) {
    optimizer.zero_grad();
    const Tensor x = numbers({3, 4}, 0.1 * group.rank() + 0.2 * step).to(device), y = numbers({3, 2}, -1).to(device);
    autograd::backward(call_by_name("aten::mse_loss", ddp(x), y));
    optimizer.step();
  }
  std::vector<double> values;
  for (const Tensor& parameter : net->parameters()) {
    for (const auto& value : values_of(autograd::detach(parameter))) values.push_back(value.real());
  }
  return values;
}

std::vector<std::vector<double>> of_ranks(const distributed::BackendFactory& engines,
                                          const nn::DistributedOptions& options) {
  std::vector<std::vector<double>> all(2);
  on_ranks(2, engines, [&](ProcessGroup& group) { all[static_cast<size_t>(group.rank())] = trained(group, options); });
  return all;
}

TEST(DeviceDataParallel, TrainsAsOnTheHost) {
  for (const bool has_views : {false, true}) {
    for (const bool finds_unused : {false, true}) {
      nn::DistributedOptions options;
      options.reducer.gradient_as_bucket_view = has_views;
      options.reducer.find_unused_parameters = finds_unused;
      const auto expected = of_ranks(distributed::local_backends(), options);
      const OnDevice on_device;
      const auto found = of_ranks(fake_nccl_backends(), options);
      EXPECT_EQ(found[0], found[1]);
      ASSERT_EQ(found[0].size(), expected[0].size());
      for (size_t i = 0; i < found[0].size(); ++i) ASSERT_NEAR(found[0][i], expected[0][i], 1e-6) << i;
    }
  }
}

// --- several devices in one process

std::shared_ptr<nn::Module> network() {
  return nn::sequential(std::make_shared<nn::Linear>(4, 8), std::make_shared<nn::BatchNorm1d>(8),
                        std::make_shared<nn::GELU>(), std::make_shared<nn::Linear>(8, 2));
}

std::vector<double> all_values(const Tensor& tensor) {
  std::vector<double> values;
  for (const auto& value : values_of(autograd::detach(tensor))) values.push_back(value.real());
  return values;
}

TEST(DataParallel, ScatterAndGatherAreAsChunkAndCat) {
  const Device devices[] = {late::kFirst, late::kSecond, late::kFirst};
  const Tensor x = numbers({7, 2}, 0);
  const std::vector<Tensor> parts = nn::scatter(x, devices);
  ASSERT_EQ(parts.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(parts[i].device(), devices[i]);
    EXPECT_EQ(parts[i].size(0), i < 2 ? 3 : 1);
  }
  EXPECT_EQ(all_values(nn::gather(parts, late::kSecond)), all_values(x));
  EXPECT_EQ(nn::scatter(numbers({2, 2}, 0), devices).size(), 2u) << "fewer rows than devices";
  const Tensor scalars[] = {Tensor::scalar(1.5f), Tensor::scalar(2.5f).to(late::kFirst)};
  EXPECT_EQ(all_values(nn::gather(scalars, Device{})), (std::vector<double>{1.5, 2.5}));
}

TEST(DataParallel, GradientsAreThoseOfOneDevice) {
  const Device first = late::kFirst;
  std::vector<std::shared_ptr<nn::Module>> made;
  nn::DataParallel parallel([&] { return made.emplace_back(network()); }, {late::kFirst, late::kSecond});
  // Batch norms see only their own part of the batch, as in PyTorch.
  parallel.eval();
  const auto alone = network();
  alone->load_state_dict(parallel.module().state_dict());
  alone->to(first);
  alone->eval();
  for (int step = 0; step < 2; ++step) {  // the second accumulates into the first
    const Tensor x = numbers({5, 4}, step).to(first), y = numbers({5, 2}, -1).to(first);
    const Tensor got = parallel(x), expected = (*alone)(x);
    EXPECT_EQ(got.device(), first);
    autograd::backward(call_by_name("aten::mse_loss", got, y));
    autograd::backward(call_by_name("aten::mse_loss", expected, y));
  }
  const auto found = parallel.module().parameters(), wanted = alone->parameters();
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto a = all_values(autograd::grad(found[i])), b = all_values(autograd::grad(wanted[i]));
    ASSERT_EQ(a.size(), b.size());
    for (size_t k = 0; k < a.size(); ++k) ASSERT_NEAR(a[k], b[k], 1e-5) << i;
  }
  for (const Tensor& copy : made[1]->parameters()) EXPECT_FALSE(autograd::grad(copy).defined());
  EXPECT_THROW(nn::DataParallel([] { return network(); }, {}), Error);
}

TEST(DataParallel, ModulesThatDifferAreRefused) {
  int64_t width = 3;
  const auto make = [&]() -> std::shared_ptr<nn::Module> { return std::make_shared<nn::Linear>(4, ++width); };
  EXPECT_THROW(nn::DataParallel(make, {late::kFirst, late::kSecond}), Error);
}

}  // namespace
}  // namespace tensord::device_ddp_test
