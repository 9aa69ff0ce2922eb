// tensord's side of tests/bench/training: train_step FOLDER THREADS sgd|adamw LR. Trains the training_step of
// FOLDER/model.pt on FOLDER/batch.pt. Commands and answers as in worker.py, and in addition:
//     plan exact|fused|off  how steps are planned from now on
//     report 0   a report on the planned steps
//     profile 0  planned steps from the next `plan` on record a profile, printed with each report
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "core/autograd/engine.h"
#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/jit/archive/torch_file.h"
#include "core/jit/runtime/module.h"
#include "core/jit/runtime/step/planned_step.h"
#include "core/nn/optim/optimizer.h"

namespace tensord {
namespace {

int64_t memory_bytes(const std::string& field) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(field)) return std::stoll(line.substr(field.size() + 1)) << 10;
  }
  return 0;
}

std::shared_ptr<jit::Module> load(const std::string& path) {
  jit::LoadOptions options;
  options.for_training = true;
  return jit::Module::load(path, options);
}

class Run {
 public:
  Run(const std::string& model, const std::string& batch, const std::string& optimizer, double lr)
      : module_(load(model)), batch_(jit::load_torch_file(batch).to_tuple()->items) {
    for (const ops::Value& value : batch_) tensors_.push_back(value.to_tensor());
    module_->set_training(true);
    std::vector<Tensor> parameters;
    for (const auto& [name, tensor] : module_->named_parameters()) parameters.push_back(tensor);
    if (optimizer == "sgd") {
      optimizer_ = std::make_unique<nn::SGD>(parameters, nn::SGDOptions{.lr = lr, .momentum = 0.9});
    } else {
      optimizer_ = std::make_unique<nn::AdamW>(parameters, nn::AdamWOptions{.lr = lr});
    }
  }

  // Sets how steps are planned from now on.
  void set_planned(const std::string& how) {
    std::vector<Tensor> parameters, buffers;
    for (const auto& [name, tensor] : module_->named_parameters()) parameters.push_back(tensor);
    for (const auto& [name, tensor] : module_->named_buffers()) buffers.push_back(tensor);
    jit::PlannedStepOptions options;
    options.profile = profile_.get();
    options.keeps_bits = how != "fused";
    planned_ = how != "off" ? std::make_unique<jit::PlannedStep>(parameters, buffers, options) : nullptr;
  }
  // Planned steps record a profile, from the next `plan` on.
  void set_profile() { profile_ = std::make_unique<jit::Profile>(); }

  Tensor step() {
    optimizer_->zero_grad();
    const auto forward = [&] { return module_->method("training_step").run(*frame_, batch_).to_tensor(); };
    Tensor loss;
    if (planned_) {
      loss = planned_->run(tensors_, forward);
    } else {
      loss = forward();
      autograd::backward(loss);
    }
    optimizer_->step();
    return loss;
  }

  void report() const {
    std::cout << "{";
    if (planned_) {
      const jit::PlannedStepReport& report = planned_->report();
      std::cout << "\"planned\": " << report.planned << ", \"checked\": " << report.checked
                << ", \"identical\": " << report.identical << ", \"error\": " << report.error
                << ", \"calls\": " << report.calls << ", \"arena\": " << report.arena_bytes
                << ", \"is_fused\": " << report.is_fused << ", \"reason\": \"" << report.reason << "\"";
    }
    if (profile_) {
      for (const auto& [name, entry] : profile_->entries)
        std::cerr << entry.time_ns / 1e6 << " ms in " << entry.calls << " of " << name << "\n";
    }
    std::cout << "}" << std::endl;
  }

  void losses(int count) {
    std::cout << "{\"losses\": [";
    for (int i = 0; i < count; ++i) std::cout << (i ? ", " : "") << step().item_double();
    std::cout << "]}" << std::endl;
  }

  void burst(double seconds) {
    using Clock = std::chrono::steady_clock;
    for (int i = 0; i < 2; ++i) step();
    std::vector<double> times_ms;
    const Clock::time_point end =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    while (times_ms.empty() || Clock::now() < end) {
      const Clock::time_point start = Clock::now();
      step();
      times_ms.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    }
    std::sort(times_ms.begin(), times_ms.end());
    std::cout << "{\"median_ms\": " << times_ms[times_ms.size() / 2] << ", \"best_ms\": " << times_ms[0] << "}"
              << std::endl;
  }

 private:
  const std::shared_ptr<jit::Module> module_;
  const std::vector<ops::Value> batch_;
  std::vector<Tensor> tensors_;
  std::unique_ptr<jit::Profile> profile_;
  std::unique_ptr<jit::PlannedStep> planned_;
  const std::unique_ptr<jit::Frame> frame_ = jit::make_frame();
  std::unique_ptr<nn::Optimizer> optimizer_;
};

}  // namespace
}  // namespace tensord

int main(int count, char** arguments) try {
  using namespace tensord;
  check(count == 5, "usage: train_step FOLDER THREADS sgd|adamw LR");
  const std::string folder = arguments[1], optimizer = arguments[3];
  const double lr = std::stod(arguments[4]);
  set_thread_budget(std::stoi(arguments[2]));
  Run(folder + "/tiny.pt", folder + "/tiny_batch.pt", optimizer, lr).step();
  const int64_t before = memory_bytes("VmRSS:");
  Run run(folder + "/model.pt", folder + "/batch.pt", optimizer, lr);
  std::cout.precision(9);
  for (std::string command, argument; std::cin >> command >> argument;) {
    if (command == "losses") {
      run.losses(std::stoi(argument));
    } else if (command == "burst") {
      run.burst(std::stod(argument));
    } else if (command == "plan") {
      run.set_planned(argument);
      run.report();
    } else if (command == "profile") {
      run.set_profile();
    } else if (command == "report") {
      run.report();
    } else {
      std::cout << "{\"bytes\": " << memory_bytes("VmHWM:") - before << "}" << std::endl;
    }
  }
} catch (const std::exception& error) {
  std::cerr << error.what() << std::endl;
  return 1;
}
