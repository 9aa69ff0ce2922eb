#include "core/nn/data_parallel.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "core/autograd/hooks/callbacks.h"
#include "core/autograd/variable.h"
#include "core/base/error.h"
#include "core/ops/run.h"
#include "core/tensor/grad_mode.h"
#include "ops/pointwise.h"
#include "ops/view.h"

namespace tensord::nn {
namespace {

Tensor moved(const Tensor& tensor, Device device) {
  return tensor.device() == device ? tensor : ops::to(tensor, device, tensor.dtype());
}

void check_alike(const std::vector<NamedTensor>& own, const std::vector<NamedTensor>& other) {
  const auto differs = [](const NamedTensor& a, const NamedTensor& b) {
    return a.name != b.name || a.tensor.sizes() != b.tensor.sizes() || a.tensor.dtype() != b.tensor.dtype() ||
           autograd::requires_grad(a.tensor) != autograd::requires_grad(b.tensor);
  };
  const bool is_same = std::equal(own.begin(), own.end(), other.begin(), other.end(),
                                  [&](const auto& a, const auto& b) { return !differs(a, b); });
  check(is_same, "DataParallel: the modules that were made differ in their parameters or buffers");
}

void copy_all(const std::vector<NamedTensor>& from, const std::vector<NamedTensor>& to) {
  const NoGradGuard without_grad;
  for (size_t i = 0; i < from.size(); ++i) {
    to[i].tensor.copy_from(from[i].tensor);
    to[i].tensor.storage()->bump_version();
  }
}

}  // namespace

Tensors scatter(const Tensor& input, std::span<const Device> devices, int64_t dim) {
  check(!devices.empty(), "scatter: no devices");
  check(input.ndim() > 0, "scatter: a scalar has no rows");
  const int64_t rows = input.size(dim), count = static_cast<int64_t>(devices.size());
  const int64_t each = std::max<int64_t>(1, (rows + count - 1) / count);
  Tensors parts;
  for (int64_t at = 0; at < rows || parts.empty(); at += each) {
    const Tensor part = ops::narrow(input, dim, at, std::min(each, rows - at));
    parts.push_back(moved(part, devices[parts.size()]));
  }
  return parts;
}

Tensor gather(std::span<const Tensor> parts, Device device, int64_t dim) {
  check(!parts.empty(), "gather: no parts");
  std::vector<Tensor> all;
  for (const Tensor& part : parts) {
    const Tensor own = moved(part, device);
    all.push_back(own.ndim() == 0 ? ops::unsqueeze(own, 0) : own);
  }
  return ops::cat(all, parts.front().ndim() == 0 ? 0 : dim);
}

// The modules of the other devices.
struct DataParallel::Copies {
  std::vector<std::shared_ptr<Module>> modules;
  std::vector<NamedTensor> parameters, buffers;             // of the first device
  std::vector<std::vector<NamedTensor>> each, its_buffers;  // of the other devices
  std::vector<HookHandle> hooks;
  std::mutex mutex;
  bool is_queued = false;  // guarded by mutex: the running pass sums gradients at its end

  // Adds the gradients of the copies to the first device's.
  void add_up() {
    {
      const std::lock_guard lock(mutex);
      is_queued = false;
    }
    const NoGradGuard without_grad;
    for (const auto& copies : each) {
      for (size_t i = 0; i < parameters.size(); ++i) {
        const Tensor gradient = autograd::grad(copies[i].tensor);
        if (!gradient.defined()) continue;
        const Tensor& parameter = parameters[i].tensor;
        const Tensor own = moved(gradient, parameter.device()), before = autograd::grad(parameter);
        autograd::set_grad(parameter, before.defined() ? ops::add(before, own) : own);
        autograd::set_grad(copies[i].tensor, {});
      }
    }
  }
};

DataParallel::DataParallel(const std::function<std::shared_ptr<Module>()>& make, std::vector<Device> devices,
                           DataParallelOptions options)
    : Module("DataParallel"),
      module_(register_module("module", make())),
      devices_(std::move(devices)),
      options_(options),
      copies_(std::make_shared<Copies>()) {
  check(!devices_.empty(), "DataParallel: no devices");
  module_->to(devices_.front());
  copies_->parameters = module_->named_parameters();
  copies_->buffers = module_->named_buffers();
  for (size_t i = 1; i < devices_.size(); ++i) {
    const auto copy = make();
    check(copy != module_, "DataParallel: the same module was given twice");
    copy->to(devices_[i]);
    copies_->modules.push_back(copy);
    copies_->each.push_back(copy->named_parameters());
    copies_->its_buffers.push_back(copy->named_buffers());
    check_alike(copies_->parameters, copies_->each.back());
    check_alike(copies_->buffers, copies_->its_buffers.back());
    for (const NamedTensor& parameter : copies_->each.back()) {
      if (!autograd::requires_grad(parameter.tensor)) continue;
      copies_->hooks.push_back(autograd::gradient_edge(parameter.tensor)
                                   .node->register_hook([copies = std::weak_ptr(copies_)](
                                                            const Tensors&, const Tensors&) -> std::optional<Tensors> {
                                     const auto all = copies.lock();
                                     if (!all) return std::nullopt;
                                     const std::lock_guard lock(all->mutex);
                                     if (!std::exchange(all->is_queued, true)) {
                                       autograd::queue_callback([all] { all->add_up(); });
                                     }
                                     return std::nullopt;
                                   }));
    }
  }
}

DataParallel::~DataParallel() {
  for (HookHandle& hook : copies_->hooks) hook.remove();
}

void DataParallel::train(bool is_training) {
  Module::train(is_training);
  for (const auto& copy : copies_->modules) copy->train(is_training);
}

Tensors DataParallel::forward(const Tensors& inputs) {
  check(!inputs.empty(), "DataParallel: no inputs");
  std::vector<Tensors> parts;  // by device
  for (const Tensor& input : inputs) {
    const Tensors own = scatter(input, devices_, options_.dim);
    if (parts.empty()) parts.resize(own.size());
    check(own.size() == parts.size(), "DataParallel: inputs scatter to ", parts.size(), " and ", own.size(),
          " devices");
    for (size_t i = 0; i < own.size(); ++i) parts[i].push_back(own[i]);
  }
  {
    // A failed pass did not run its callbacks.
    const std::lock_guard lock(copies_->mutex);
    copies_->is_queued = false;
  }
  std::vector<Tensors> outputs;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) {
      copy_all(copies_->parameters, copies_->each[i - 1]);
      copy_all(copies_->buffers, copies_->its_buffers[i - 1]);
    }
    outputs.push_back((i == 0 ? module_ : copies_->modules[i - 1])->run(parts[i]));
  }
  Tensors gathered;
  for (size_t k = 0; k < outputs.front().size(); ++k) {
    Tensors of_one;
    for (const Tensors& output : outputs) of_one.push_back(output.at(k));
    gathered.push_back(gather(of_one, options_.output.value_or(devices_.front()), options_.dim));
  }
  return gathered;
}

}  // namespace tensord::nn
