#include "core/nn/data/distributed_sampler.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/nn/state.h"
#include "core/ops/run.h"
#include "core/tensor/grad_mode.h"
#include "ops/random.h"

namespace tensord::nn {

DistributedSampler::DistributedSampler(int64_t dataset_size, int world_size, int rank, Options options)
    : dataset_size_(dataset_size), world_size_(world_size), rank_(rank), options_(options) {
  check(dataset_size >= 0, "a sampler cannot have ", dataset_size, " samples");
  check(world_size > 0 && rank >= 0 && rank < world_size, "DistributedSampler: rank ", rank, " of ", world_size);
}

// The number of samples from `from` on that belong to this rank.
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
  const Tensor permutation = ops::randperm(dataset_size_);
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
  // Past the end, indices wrap around to the first ones.
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
