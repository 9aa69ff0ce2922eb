#pragma once

#include "core/nn/data/sampler.h"

namespace tensord::nn {

// The indices of one of several ranks, torch.utils.data.DistributedSampler: a permutation seeded by seed + epoch, or
// the order of the dataset. Rank r takes r, r + W, r + 2W … So step k of all ranks together has the samples kB to kB +
// B-1 of the permutation, for every number of ranks W that divides the batch B.
class DistributedSampler final : public Sampler {
 public:
  struct Options {
    bool shuffle = true;
    uint64_t seed = 0;
    // If W does not divide the number of samples: repeat the first ones (PyTorch's default), drop the last ones, or
    // give the first ranks one more.
    enum class Rest { kPad, kDrop, kUneven } rest = Rest::kPad;
  };
  DistributedSampler(int64_t dataset_size, int world_size, int rank)
      : DistributedSampler(dataset_size, world_size, rank, Options()) {}
  DistributedSampler(int64_t dataset_size, int world_size, int rank, Options options);

  // Sets the epoch that starts next. Without it, epochs count up from 0.
  void set_epoch(int64_t epoch) { next_epoch_ = epoch; }
  int64_t epoch() const { return epoch_; }

  int64_t size() const override;
  void start_epoch() override;
  std::optional<int64_t> next() override;
  // Seed, epoch and the number of samples consumed by all ranks. It can be loaded with another number of ranks: the
  // order of the remaining samples is the same.
  ops::Value state_dict() const override;
  void load_state_dict(const ops::Value& state) override;

 private:
  std::vector<int64_t> order_of(int64_t epoch) const;
  int64_t count_of(int rank, int64_t from) const;

  const int64_t dataset_size_;
  const int world_size_, rank_;
  const Options options_;
  int64_t epoch_ = -1, next_epoch_ = 0;
  int64_t consumed_ = 0;        // by all ranks together before this part of the epoch
  int64_t position_ = 0;        // of this rank, since then
  std::vector<int64_t> order_;  // of this rank from there on
};

}  // namespace tensord::nn
