#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/autograd/variable.h"
#include "core/jit/runtime/module.h"
#include "server/training/jobs/job_spec.h"

namespace tensord::server::fixtures {

// Scores of two classes are x times the weights; `step`, `root` and `apart` are losses of their own.
constexpr const char* kTwoClasses = R"(
class Net(Module):
    __parameters__ = ["weight"]
    weight: Tensor
    training: bool

    def forward(self, x: Tensor) -> Tensor:
        return torch.mul(torch.unsqueeze(x, 1), self.weight)

    def step(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.sum(torch.mul(x, torch.sum(self.weight)))

    def apart(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.sum(torch.mul(x, 0.5))

    def root(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.sum(torch.sqrt(torch.mul(x, torch.sum(self.weight))))
)";

inline void save_two_classes(const std::string& path, float first = 0, float second = 0) {
  const Tensor weight = Tensor::empty(Dims{2}, DType::kFloat32);
  weight.data<float>()[0] = first;
  weight.data<float>()[1] = second;
  jit::LoadOptions options;
  options.for_training = true;
  const auto module = jit::Module::compile(kTwoClasses, {{"weight", weight}}, options);
  for (const auto& [name, tensor] : module->named_parameters()) autograd::set_requires_grad(tensor);
  module->save(path);
}

// Of all parameters, concatenated.
inline std::vector<float> weights_of(const std::string& path) {
  jit::LoadOptions options;
  options.for_training = true;
  std::vector<float> out;
  for (const auto& [name, tensor] : jit::Module::load(path, options)->named_parameters()) {
    out.insert(out.end(), tensor.data<float>(), tensor.data<float>() + tensor.numel());
  }
  return out;
}

// Rows of x and y, in order, two in a batch.
inline JobSpec two_classes_spec() {
  JobSpec spec;
  spec.model.name = "m";
  spec.data.file = "rows.csv";
  spec.data.shuffle = false;
  spec.loss.builtin = "cross_entropy";
  spec.loss.label = "y";
  spec.optimizer.name = "sgd";
  spec.optimizer.options["lr"] = 0.01;
  spec.batch_size = 2;
  spec.epochs = 1;
  return spec;
}

inline JobSpec two_classes_spec(const std::string& loss_method) {
  JobSpec spec = two_classes_spec();
  spec.loss.builtin.clear();
  spec.loss.method = loss_method;
  return spec;
}

inline void save_rows(const std::filesystem::path& path, const std::string& rows) {
  std::ofstream(path) << "x,y\n" << rows;
}

}  // namespace tensord::server::fixtures
