// The steps of training jobs, planned and interpreted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "core/autograd/variable.h"
#include "core/jit/runtime/module.h"
#include "core/nn/optim/optimizer.h"
#include "core/ops/generator.h"
#include "server/training/training_step.h"
#include "tests/server/temporary_folder.h"

namespace tensord::server::training_plans_test {
namespace {

constexpr const char* kNet = R"(
class Net(Module):
    __parameters__ = ["weight", "bias"]
    weight: Tensor
    bias: Tensor
    training: bool

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(torch.linear(x, self.weight, self.bias))
        return torch.linear(torch.dropout(h, 0.25, self.training), torch.t(self.weight))
)";

Tensor random(const Dims& sizes, unsigned seed) {
  std::mt19937 engine(seed);
  const Tensor out = Tensor::empty(sizes, DType::kFloat32);
  for (int64_t i = 0; i < out.numel(); ++i) out.data<float>()[i] = static_cast<float>(engine() % 2001) / 1000 - 1;
  return out;
}

struct Trained {
  std::vector<double> losses;
  std::vector<float> weights;
  std::string reason;
  int planned = 0;
};

// Ten steps of cross entropy with clipping.
Trained train(const std::string& archive, const std::string& plans, const std::string& optimizer = "sgd") {
  JobSpec spec;
  spec.loss.builtin = "cross_entropy";
  spec.loss.label = "y";
  spec.optimizer.name = optimizer;
  spec.clipping.norm = 0.5;
  TrainingModel model(archive, spec.loss, {}, false);
  model.module().set_training(true);
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : model.trained_parameters()) tensors.push_back(tensor);
  nn::SGD sgd(tensors, nn::SGDOptions{.lr = 0.1, .momentum = 0.9});
  TrainingStep step({.spec = spec,
                     .model = model,
                     .optimizer = sgd,
                     .zero = nullptr,
                     .statistics = nullptr,
                     .ranks = nullptr,
                     .plans = plans,
                     .is_cancelled = [] { return false; },
                     .request = [] { return JobRequest::kNone; },
                     .is_checkpoint_due = [] { return false; }},
                    model.trained_parameters());
  ops::Generator generator(3);
  const ops::GeneratorGuard guard(generator);
  Trained run;
  for (unsigned i = 0; i < 10; ++i) {
    const Tensor labels = Tensor::empty(Dims{8}, DType::kInt32);  // as files may contain them
    for (int64_t row = 0; row < 8; ++row) labels.data<int32_t>()[row] = static_cast<int32_t>((row * 7 + i) % 6);
    std::vector<Tensor> batch(2);
    for (size_t k = 0; k < 2; ++k) batch[k] = model.arrays()[k] == "y" ? labels : random({8, 6}, 50 + i);
    const TrainingStep::Done done = step.run(std::span(&batch, 1), 8, true);
    run.losses.push_back(done.loss);
    run.planned += done.is_planned;
    run.reason = done.plan_reason;
  }
  for (const Tensor& tensor : tensors)
    run.weights.insert(run.weights.end(), tensor.data<float>(), tensor.data<float>() + tensor.numel());
  return run;
}

TEST(TrainingPlans, AJobsStepsArePlannedWithTheSameBits) {
  const fixtures::TemporaryFolder folder("plans");
  const std::string archive = (folder.path() / "net.pt").string();
  {
    jit::LoadOptions options;
    options.for_training = true;
    const auto module =
        jit::Module::compile(kNet, {{"weight", random({16, 6}, 1)}, {"bias", random({16}, 2)}}, options);
    for (const auto& [name, tensor] : module->named_parameters()) autograd::set_requires_grad(tensor);
    module->save(archive);
  }
  const Trained off = train(archive, "off"), exact = train(archive, "exact"), fused = train(archive, "fused");
  EXPECT_EQ(off.planned, 0);
  EXPECT_EQ(off.reason, "plans are off");
  EXPECT_GE(exact.planned, 3) << exact.reason;
  EXPECT_GE(fused.planned, 3) << fused.reason;
  EXPECT_EQ(exact.losses, off.losses);
  EXPECT_EQ(std::memcmp(exact.weights.data(), off.weights.data(), off.weights.size() * sizeof(float)), 0);
  for (size_t i = 0; i < off.losses.size(); ++i) EXPECT_NEAR(fused.losses[i], off.losses[i], 1e-4);
}

}  // namespace
}  // namespace tensord::server::training_plans_test
