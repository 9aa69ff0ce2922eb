#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/ops/generator.h"
#include "core/ops/value.h"
#include "core/tensor/tensor.h"

// The order in which a dataset's samples are visited. Not thread-safe.
namespace tensord::nn {

// Draws a seed in [0, 2^63) for another generator, as PyTorch does.
uint64_t draw_seed(ops::Generator& generator);

// Yields the indices of one epoch after the other. A seed gives PyTorch's order. A given generator must outlive the
// sampler; without one, the thread's current generator is used.
class Sampler {
 public:
  virtual ~Sampler() = default;
  // Indices in an epoch.
  virtual int64_t size() const = 0;
  // Starts an epoch; random samplers draw its order.
  virtual void start_epoch() = 0;
  // Returns the next index; nothing at the end of the epoch, and before the first one.
  virtual std::optional<int64_t> next() = 0;

  // The position: after load_state_dict, next() continues from here. Later epochs also depend on the generator, whose
  // state its owner saves.
  virtual ops::Value state_dict() const = 0;
  virtual void load_state_dict(const ops::Value& state) = 0;
};

// Samplers that make the list of an epoch's indices at its start.
class ListSampler : public Sampler {
 public:
  int64_t size() const final { return size_; }
  void start_epoch() final;
  std::optional<int64_t> next() final;
  ops::Value state_dict() const final;
  void load_state_dict(const ops::Value& state) final;

 protected:
  // The source of random numbers if no generator is given: none, the thread's current generator, or a generator seeded
  // by it at the start of the epoch.
  enum class Source { kNone, kCurrent, kSeededByCurrent };
  ListSampler(int64_t size, Source source, ops::Generator* generator);
  virtual std::vector<int64_t> draw(ops::Generator& generator) const = 0;

 private:
  const int64_t size_;
  const Source source_;
  ops::Generator* const generator_;
  std::vector<uint8_t> epoch_state_;  // of the generator at the start of the epoch
  std::vector<int64_t> order_;
  int64_t position_ = 0;
  bool has_started_ = false;
};

class SequentialSampler final : public ListSampler {
 public:
  explicit SequentialSampler(int64_t size) : ListSampler(size, Source::kNone, nullptr) {}

 private:
  std::vector<int64_t> draw(ops::Generator& generator) const override;
};

// A permutation of the dataset, or draws with replacement.
class RandomSampler final : public ListSampler {
 public:
  explicit RandomSampler(int64_t dataset_size, ops::Generator* generator = nullptr);
  RandomSampler(int64_t dataset_size, bool replacement, int64_t num_samples, ops::Generator* generator = nullptr);

 private:
  std::vector<int64_t> draw(ops::Generator& generator) const override;
  const int64_t dataset_size_;
  const bool replacement_;
};

// Draws index i with probability weights[i] / sum. Without replacement, no index is drawn twice.
class WeightedRandomSampler final : public ListSampler {
 public:
  WeightedRandomSampler(std::vector<double> weights, int64_t num_samples, bool replacement = true,
                        ops::Generator* generator = nullptr);

 private:
  std::vector<int64_t> draw(ops::Generator& generator) const override;
  Tensor weights_;
  const bool replacement_;
};

// The given indices in random order.
class SubsetRandomSampler final : public ListSampler {
 public:
  explicit SubsetRandomSampler(std::vector<int64_t> indices, ops::Generator* generator = nullptr);

 private:
  std::vector<int64_t> draw(ops::Generator& generator) const override;
  const std::vector<int64_t> indices_;
};

// Groups of batch_size indices; the last group may be smaller, or is dropped.
class BatchSampler final {
 public:
  BatchSampler(std::shared_ptr<Sampler> sampler, int64_t batch_size, bool drop_last);
  int64_t size() const;  // batches in an epoch
  void start_epoch() { sampler_->start_epoch(); }
  // Empty at the end of the epoch.
  std::vector<int64_t> next();
  Sampler& sampler() const { return *sampler_; }

 private:
  const std::shared_ptr<Sampler> sampler_;
  const int64_t batch_size_;
  const bool drop_last_;
};

}  // namespace tensord::nn
