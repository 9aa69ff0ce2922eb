#include "core/nn/optim/zero.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/autograd/variable.h"
#include "core/base/error.h"
#include "core/distributed/value_bytes.h"
#include "core/nn/state.h"
#include "core/tensor/grad_mode.h"

namespace tensord::nn {

using distributed::WorkPtr;
using ops::Value;

namespace {
constexpr size_t kSmallBytes = size_t{1} << 20;
}  // namespace

ZeroRedundancy::ZeroRedundancy(Optimizer& optimizer, distributed::ProcessGroup& group)
    : optimizer_(optimizer), group_(group) {
  check(dynamic_cast<LBFGS*>(&optimizer) == nullptr, "ZeroRedundancy: LBFGS keeps one state for all parameters");
  std::vector<int64_t> sizes(static_cast<size_t>(group.size()), 0);
  for (const ParamGroup& of : optimizer.param_groups()) {
    const size_t first = params_.size();
    params_.insert(params_.end(), of.params.begin(), of.params.end());
    owners_.resize(params_.size());
    std::vector<size_t> order(of.params.size());
    std::iota(order.begin(), order.end(), first);
    std::stable_sort(order.begin(), order.end(),
                     [this](size_t a, size_t b) { return params_[a].numel() > params_[b].numel(); });
    for (const size_t i : order) {
      const auto min = std::min_element(sizes.begin(), sizes.end());
      owners_[i] = static_cast<int>(min - sizes.begin());
      if (autograd::requires_grad(params_[i])) *min += params_[i].numel();
    }
  }
  std::vector<Tensor> own;
  for (size_t i = 0; i < params_.size(); ++i) {
    if (owners_[i] == group.rank()) own.push_back(params_[i]);
  }
  optimizer.keep_only(own);
}

// Large parameters are sent one by one; the small ones of one owner and dtype are sent in one message.
void ZeroRedundancy::step() {
  optimizer_.step();
  std::map<std::pair<int, DType>, std::vector<Tensor>> small;
  std::vector<WorkPtr> works;
  for (size_t i = 0; i < params_.size(); ++i) {
    if (params_[i].size_bytes() < kSmallBytes) {
      small[{owners_[i], params_[i].dtype()}].push_back(params_[i]);
    } else {
      works.push_back(group_.broadcast(params_[i], owners_[i]));
    }
  }
  std::vector<std::vector<Tensor>> parts;  // of each message, in the order of `small`
  for (const auto& [key, params] : small) {
    int64_t count = 0;
    for (const Tensor& param : params) count += param.numel();
    const Tensor flat = Tensor::empty(Dims{count}, key.second);
    int64_t at = 0;
    auto& views = parts.emplace_back();
    for (const Tensor& param : params) {
      views.push_back(flat.as_view(param.sizes(), contiguous_strides(param.sizes()), at));
      at += param.numel();
      if (key.first == group_.rank()) views.back().copy_from(param);
    }
    works.push_back(group_.broadcast(flat, key.first));
  }
  for (const WorkPtr& work : works) work->wait();
  size_t message = 0;
  for (const auto& [key, params] : small) {
    const auto& views = parts[message++];
    for (size_t i = 0; i < params.size() && key.first != group_.rank(); ++i) params[i].copy_from(views[i]);
  }
  for (size_t i = 0; i < params_.size(); ++i) {
    if (owners_[i] != group_.rank()) params_[i].storage()->bump_version();
  }
}

Value ZeroRedundancy::gather_state() {
  const Value own = optimizer_.state_dict();
  const Value& own_states = get_item(as_dict(own, "state dict"), "state");
  const auto all = group_.gather_bytes(distributed::bytes_of_value(own_states), 0);
  if (group_.rank() != 0) return {};
  ops::DictObject& states = *own_states.to_dict();
  for (size_t rank = 1; rank < all.size(); ++rank) {
    const Value other = distributed::value_of_bytes(all[rank]);
    for (const auto& [param, state] : as_dict(other, "state").items()) states.set(param, state);
  }
  return own;
}

}  // namespace tensord::nn
