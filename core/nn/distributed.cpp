#include "core/nn/distributed.h"

#include <algorithm>
#include <numeric>

#include "core/autograd/variable.h"
#include "core/nn/state.h"
#include "core/ops/run.h"
#include "core/tensor/grad_mode.h"

namespace tensord::nn {
namespace {

std::vector<distributed::NamedParameter> named(const std::vector<NamedTensor>& tensors, bool with_gradient) {
  std::vector<distributed::NamedParameter> named;
  for (const auto& [name, tensor] : tensors) {
    if (!with_gradient || autograd::requires_grad(tensor)) named.push_back({name, tensor});
  }
  return named;
}

}  // namespace

DistributedDataParallel::DistributedDataParallel(std::shared_ptr<Module> module, distributed::ProcessGroup& group,
                                                 DistributedOptions options)
    : Module("DistributedDataParallel"),
      module_(register_module("module", std::move(module))),
      options_(std::move(options)),
      reducer_(group, named(module_->named_parameters(), true), named(module_->named_buffers(), false),
               options_.reducer) {
  // Parameters that ask for no gradient are alike on all ranks too.
  for (const auto& [name, tensor] : module_->named_parameters()) {
    if (!autograd::requires_grad(tensor)) group.broadcast(tensor, 0)->wait();
  }
}

void DistributedDataParallel::check_parameters() const {
  const auto asking = named(module_->named_parameters(), true);
  for (const auto& parameter : asking) {
    if (reducer_.has(parameter.tensor)) continue;
    fail(ErrorCode::kFailedPrecondition, "DistributedDataParallel: ", parameter.name,
         " required no gradient when the module was wrapped; wrap it again");
  }
}

Tensors DistributedDataParallel::forward(const Tensors& inputs) {
  const bool reduces = is_grad_enabled() && is_synchronised_;
  check_parameters();
  if (options_.broadcast_buffers && gives_buffers_) reducer_.broadcast_buffers();
  Tensors outputs = module_->run(inputs);
  gives_buffers_ = reduces;
  if (reduces) {
    reducer_.prepare(outputs);
  } else if (is_grad_enabled()) {
    reducer_.skip();
  }
  return outputs;
}

DistributedSampler::DistributedSampler(int64_t dataset_size, int world_size, int rank, Options options)
    : dataset_size_(dataset_size), world_size_(world_size), rank_(rank), options_(options) {
  check(dataset_size >= 0, "a sampler cannot have ", dataset_size, " samples");
  check(world_size > 0 && rank >= 0 && rank < world_size, "DistributedSampler: rank ", rank, " of ", world_size);
}

// How many of the samples from `from` on are this rank's.
int64_t DistributedSampler::count_of(int rank, int64_t from) const {
  const int64_t left = dataset_size_ - from;
  switch (options_.rest) {
    case Options::Rest::kPad: return (left + world_size_ - 1) / world_size_;
    case Options::Rest::kDrop: return left / world_size_;
    case Options::Rest::kUneven: return left / world_size_ + (rank < left % world_size_ ? 1 : 0);
  }
  return 0;
}

int64_t DistributedSampler::size() const { return count_of(rank_, consumed_); }

std::vector<int64_t> DistributedSampler::order_of(int64_t epoch) const {
  std::vector<int64_t> order(static_cast<size_t>(dataset_size_));
  if (!options_.shuffle) {
    std::iota(order.begin(), order.end(), 0);
    return order;
  }
  ops::Generator generator(options_.seed + static_cast<uint64_t>(epoch));
  const ops::GeneratorGuard guard(generator);
  const NoGradGuard without_grad;
  const Tensor permutation = ops::call("aten::randperm", dataset_size_);
  std::copy_n(permutation.data<int64_t>(), order.size(), order.begin());
  return order;
}

void DistributedSampler::start_epoch() {
  epoch_ = next_epoch_++;
  consumed_ = position_ = 0;
  order_ = order_of(epoch_);
}

std::optional<int64_t> DistributedSampler::next() {
  if (epoch_ < 0 || position_ >= count_of(rank_, consumed_)) return std::nullopt;
  // Beyond the end come the first ones again.
  const int64_t at = consumed_ + position_++ * world_size_ + rank_;
  return order_[static_cast<size_t>(at % dataset_size_)];
}

ops::Value DistributedSampler::state_dict() const {
  const ops::Dict state = new_state();
  set_item(state, "seed", static_cast<int64_t>(options_.seed));
  set_item(state, "epoch", epoch_);
  set_item(state, "consumed", std::min(dataset_size_, consumed_ + position_ * world_size_));
  return ops::Value(state);
}

void DistributedSampler::load_state_dict(const ops::Value& state) {
  const ops::DictObject& dict = as_dict(state, "DistributedSampler");
  const int64_t seed = get_integer(dict, "seed"), epoch = get_integer(dict, "epoch");
  const int64_t consumed = get_integer(dict, "consumed");
  check(seed == static_cast<int64_t>(options_.seed), "DistributedSampler: the state is of seed ", seed, ", not ",
        options_.seed);
  check(epoch >= -1, "DistributedSampler: epoch ", epoch);
  check(consumed >= 0 && consumed <= dataset_size_, "DistributedSampler: ", consumed, " samples consumed of ",
        dataset_size_);
  epoch_ = epoch;
  next_epoch_ = epoch + 1;
  consumed_ = consumed;
  position_ = 0;
  order_ = epoch < 0 ? std::vector<int64_t>() : order_of(epoch);
}

}  // namespace tensord::nn
