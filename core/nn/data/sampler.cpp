#include "core/nn/data/sampler.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/base/error.h"
#include "core/nn/state.h"
#include "core/ops/run.h"
#include "core/tensor/grad_mode.h"

namespace tensord::nn {

using ops::Generator;
using ops::Value;

ListSampler::ListSampler(int64_t size, Source source, Generator* generator)
    : size_(size), source_(source), generator_(generator) {
  check(size >= 0, "a sampler cannot have ", size, " samples");
}

void ListSampler::start_epoch() {
  Generator& given = generator_ ? *generator_ : ops::current_generator();
  position_ = 0;
  has_started_ = true;
  if (source_ == Source::kSeededByCurrent && !generator_) {
    Generator own(draw_seed(given));
    epoch_state_ = own.state();
    order_ = draw(own);
    return;
  }
  if (source_ != Source::kNone) {
    const auto lock = given.lock();
    epoch_state_ = given.state();
  }
  order_ = draw(given);
}

std::optional<int64_t> ListSampler::next() {
  if (!has_started_ || position_ >= static_cast<int64_t>(order_.size())) return std::nullopt;
  return order_[static_cast<size_t>(position_++)];
}

Value ListSampler::state_dict() const {
  const ops::Dict state = new_state();
  set_item(state, "has_started", has_started_);
  set_item(state, "position", position_);
  if (has_started_ && source_ != Source::kNone) {
    const Tensor bytes = Tensor::empty(Dims{static_cast<int64_t>(epoch_state_.size())}, DType::kUInt8);
    std::memcpy(bytes.raw_data(), epoch_state_.data(), epoch_state_.size());
    set_item(state, "generator", bytes);
  }
  return Value(state);
}

void ListSampler::load_state_dict(const Value& state) {
  const ops::DictObject& dict = as_dict(state, "sampler");
  const bool has_started = get_bool(dict, "has_started");
  const int64_t position = get_integer(dict, "position");
  std::vector<uint8_t> epoch_state;
  std::vector<int64_t> order;
  if (has_started) {
    // Redraws the epoch's order from the generator state at the start of the epoch.
    Generator generator(0);
    if (source_ != Source::kNone) {
      const Value& bytes = get_item(dict, "generator");
      check(bytes.is_strided() && bytes.to_tensor().dtype() == DType::kUInt8, "sampler: \"generator\" is not a state");
      const Tensor flat = bytes.to_tensor().contiguous();
      epoch_state.assign(flat.data<uint8_t>(), flat.data<uint8_t>() + flat.numel());
      generator.set_state(epoch_state);
    }
    order = draw(generator);
  }
  check(position >= 0 && position <= static_cast<int64_t>(order.size()), "sampler: position ", position,
        " is beyond the epoch's ", order.size(), " samples");
  has_started_ = has_started;
  position_ = position;
  order_ = std::move(order);
  epoch_state_ = std::move(epoch_state);
}

uint64_t draw_seed(Generator& generator) {
  const auto lock = generator.lock();
  return generator.bits64() & ~(uint64_t{1} << 63);
}

namespace {

// The result of a random operator with this generator.
template <class... A>
std::vector<int64_t> drawn(Generator& generator, const char* op, const A&... arguments) {
  const ops::GeneratorGuard guard(generator);
  const NoGradGuard without_grad;
  const Tensor result = ops::call_by_name(op, arguments...);
  const int64_t* values = result.data<int64_t>();
  return {values, values + result.numel()};
}

}  // namespace

std::vector<int64_t> SequentialSampler::draw(Generator&) const {
  std::vector<int64_t> order(static_cast<size_t>(size()));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

RandomSampler::RandomSampler(int64_t dataset_size, Generator* generator)
    : RandomSampler(dataset_size, false, dataset_size, generator) {}
RandomSampler::RandomSampler(int64_t dataset_size, bool replacement, int64_t num_samples, Generator* generator)
    : ListSampler(num_samples, Source::kSeededByCurrent, generator),
      dataset_size_(dataset_size),
      replacement_(replacement) {
  check(dataset_size > 0 || num_samples == 0,
        "num_samples should be a positive integer value, but the dataset is empty");
}

std::vector<int64_t> RandomSampler::draw(Generator& generator) const {
  std::vector<int64_t> order;
  order.reserve(static_cast<size_t>(size()));
  if (size() == 0) return order;
  if (replacement_) return drawn(generator, "aten::randint", dataset_size_, Dims{size()});
  // As many permutations as needed. PyTorch draws one more, which may be unused.
  for (int64_t i = 0; i <= size() / dataset_size_; ++i) {
    const auto part = drawn(generator, "aten::randperm", dataset_size_);
    const auto left = size() - static_cast<int64_t>(order.size());
    order.insert(order.end(), part.begin(), part.begin() + std::min(left, dataset_size_));
  }
  return order;
}

WeightedRandomSampler::WeightedRandomSampler(std::vector<double> weights, int64_t num_samples, bool replacement,
                                             Generator* generator)
    : ListSampler(num_samples, Source::kCurrent, generator),
      weights_(Tensor::empty(Dims{static_cast<int64_t>(weights.size())}, DType::kFloat64)),
      replacement_(replacement) {
  check(num_samples > 0, "num_samples should be a positive integer value, but got num_samples=", num_samples);
  std::copy(weights.begin(), weights.end(), weights_.data<double>());
}
std::vector<int64_t> WeightedRandomSampler::draw(Generator& generator) const {
  return drawn(generator, "aten::multinomial", weights_, size(), replacement_);
}

SubsetRandomSampler::SubsetRandomSampler(std::vector<int64_t> indices, Generator* generator)
    : ListSampler(static_cast<int64_t>(indices.size()), Source::kCurrent, generator), indices_(std::move(indices)) {}
std::vector<int64_t> SubsetRandomSampler::draw(Generator& generator) const {
  std::vector<int64_t> order = drawn(generator, "aten::randperm", size());
  for (int64_t& index : order) index = indices_[static_cast<size_t>(index)];
  return order;
}

BatchSampler::BatchSampler(std::shared_ptr<Sampler> sampler, int64_t batch_size, bool drop_last)
    : sampler_(std::move(sampler)), batch_size_(batch_size), drop_last_(drop_last) {
  check(batch_size > 0, "batch_size should be a positive integer value, but got batch_size=", batch_size);
}

int64_t BatchSampler::size() const {
  const int64_t samples = sampler_->size();
  return drop_last_ ? samples / batch_size_ : (samples + batch_size_ - 1) / batch_size_;
}

std::vector<int64_t> BatchSampler::next() {
  std::vector<int64_t> batch;
  while (static_cast<int64_t>(batch.size()) < batch_size_) {
    const std::optional<int64_t> index = sampler_->next();
    if (!index) break;
    batch.push_back(*index);
  }
  if (drop_last_ && static_cast<int64_t>(batch.size()) < batch_size_) batch.clear();
  return batch;
}

}  // namespace tensord::nn
