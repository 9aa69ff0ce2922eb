#include <algorithm>

#include "core/base/error.h"
#include "core/nn/data/distributed_sampler.h"
#include "server/training/data/batch_source.h"
#include "server/training/value_dict.h"

namespace tensord::server {
namespace {

using ops::Value;

class RankSource final : public BatchSource {
 public:
  RankSource(const nn::Dataset& dataset, const JobSpec& spec, int rank)
      : dataset_(dataset),
        batch_size_(spec.batch_size),
        world_size_(spec.distribution.world_size),
        rank_(rank),
        drops_last_(spec.data.drop_last),
        order_(dataset.size(), 1, 0,
               {.shuffle = spec.data.shuffle.value_or(true),
                .seed = spec.seed,
                .rest = nn::DistributedSampler::Options::Rest::kUneven}) {
    check(batches_per_epoch() > 0, "batch_size: ", spec.batch_size, " is more than the ", dataset.size(),
          " rows, and drop_last leaves nothing");
    order_.start_epoch();
  }

  Next next(std::vector<Tensor>& batch, const std::function<bool()>&) override {
    std::vector<int64_t> own;
    rows_ = 0;
    while (rows_ < batch_size_) {
      const auto index = order_.next();
      if (!index) break;
      if (rows_++ % world_size_ == rank_) own.push_back(*index);
    }
    if (rows_ == 0 || (drops_last_ && rows_ < batch_size_)) return Next::kEpochEnd;
    batch.clear();
    if (!own.empty()) batch = dataset_.get_batch(own);
    ++batches_;
    return Next::kBatch;
  }
  void start_epoch() override { order_.start_epoch(); }
  int64_t batches_per_epoch() const override {
    return drops_last_ ? dataset_.size() / batch_size_ : (dataset_.size() + batch_size_ - 1) / batch_size_;
  }
  int64_t rows(std::span<const Tensor>) const override { return rows_; }
  int64_t batches() const override { return batches_; }

  // The state is the same on all ranks and for any number of ranks.
  Value state_dict() const override {
    ValueDict dict;
    dict.set("samples", order_.state_dict());
    dict.set("batches", batches_);
    return dict.value();
  }
  void load_state_dict(const Value& state) override {
    const ValueDict dict(state);
    order_.load_state_dict(dict.at("samples"));
    batches_ = dict.at("batches").to_int();
  }

 private:
  const nn::Dataset& dataset_;
  const int64_t batch_size_, world_size_, rank_;
  const bool drops_last_;
  nn::DistributedSampler order_;  // over the samples of all ranks
  int64_t rows_ = 0;              // in the last batch
  int64_t batches_ = 0;
};

}  // namespace

std::unique_ptr<BatchSource> make_rank_source(const nn::Dataset& dataset, const JobSpec& spec, int rank) {
  return std::make_unique<RankSource>(dataset, spec, rank);
}

}  // namespace tensord::server
