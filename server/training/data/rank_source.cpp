#include <atomic>
#include <exception>

#include "core/base/cancellation.h"
#include "core/base/error.h"
#include "core/base/thread.h"
#include "core/nn/data/distributed_sampler.h"
#include "core/tensor/grad_mode.h"
#include "server/training/data/batch_source.h"
#include "server/training/value_dict.h"

namespace tensord::server {
namespace {

using ops::Value;

// Of the numbers that batches draw, so that jobs with seeds side by side draw others.
constexpr uint64_t kSeedFactor = 0x2545f4914f6cdd1d;

// A batch's rows of this rank.
struct Part {
  std::vector<int64_t> indices;
  int64_t rows = 0;  // of all ranks
  Value order;       // the order's state behind it
  std::vector<Tensor> batch;
  std::exception_ptr error;
  std::atomic<bool> is_unwanted = false;  // between two samples the thread ends
  Thread thread;                          // that makes the batch, if it is made ahead

  ~Part() {
    is_unwanted = true;
    if (thread.joinable()) thread.join();
  }
};

class RankSource final : public BatchSource {
 public:
  RankSource(const JobData& data, const JobSpec& spec, int rank)
      : dataset_(*data.to_train_on()),
        is_ahead_(data.is_decoded_ahead),
        batch_size_(spec.batch_size),
        world_size_(spec.distribution.world_size),
        rank_(rank),
        seed_(spec.seed),
        drops_last_(spec.data.drop_last),
        order_(dataset_.size(), 1, 0,
               {.shuffle = spec.data.shuffle.value_or(true),
                .seed = spec.seed,
                .rest = nn::DistributedSampler::Options::Rest::kUneven}) {
    check(batches_per_epoch() > 0, "batch_size: ", spec.batch_size, " is more than the ", dataset_.size(),
          " rows, and drop_last leaves nothing");
    start_epoch();
  }

  Next next(std::vector<Tensor>& batch, const std::function<bool()>&) override {
    const std::unique_ptr<Part> part = next_ ? std::move(next_) : begin_part();
    if (part->thread.joinable()) part->thread.join();
    if (part->error) std::rethrow_exception(part->error);
    rows_ = part->rows;
    position_ = part->order;
    if (is_end(*part)) return Next::kEpochEnd;
    ++batches_;
    if (is_ahead_) next_ = begin_part();
    batch = std::move(part->batch);
    return Next::kBatch;
  }
  void start_epoch() override {
    next_.reset();
    order_.start_epoch();
    position_ = order_.state_dict();
  }
  int64_t batches_per_epoch() const override {
    return drops_last_ ? dataset_.size() / batch_size_ : (dataset_.size() + batch_size_ - 1) / batch_size_;
  }
  int64_t rows(std::span<const Tensor>) const override { return rows_; }
  int64_t batches() const override { return batches_; }

  // The state is the same on all ranks and for any number of ranks.
  Value state_dict() const override {
    ValueDict dict;
    dict.set("samples", position_);
    dict.set("batches", batches_);
    return dict.value();
  }
  void load_state_dict(const Value& state) override {
    const ValueDict dict(state);
    next_.reset();
    order_.load_state_dict(dict.at("samples"));
    position_ = order_.state_dict();
    batches_ = dict.at("batches").to_int();
  }

 private:
  bool is_end(const Part& part) const { return part.rows == 0 || (drops_last_ && part.rows < batch_size_); }

  // Takes the next batch of the order. REQUIRES: next_ is null.
  std::unique_ptr<Part> begin_part() {
    auto part = std::make_unique<Part>();
    while (part->rows < batch_size_) {
      const auto index = order_.next();
      if (!index) break;
      if (part->rows++ % world_size_ == rank_) part->indices.push_back(*index);
    }
    part->order = order_.state_dict();
    if (is_end(*part) || part->indices.empty()) return part;
    const uint64_t seed = seed_ * kSeedFactor + static_cast<uint64_t>(batches_);
    if (!is_ahead_) {
      read(*part, seed);
      return part;
    }
    ExecutionContext context = ExecutionContext::detached();
    context.threads = 1;
    part->thread = Thread("data-ahead", [this, seed, context, to = part.get()] {
      const ExecutionScope scope(context);
      const CancellationScope unwanted([to] { return to->is_unwanted.load(); });
      try {
        read(*to, seed);
      } catch (...) {
        to->error = std::current_exception();
      }
    });
    return part;
  }

  // What a dataset draws depends on the batch, not on the rank.
  void read(Part& part, uint64_t seed) const {
    ops::Generator generator(seed);
    const ops::GeneratorGuard guard(generator);
    const NoGradGuard without_grad;
    part.batch = dataset_.get_batch(part.indices);
  }

  const nn::Dataset& dataset_;
  const bool is_ahead_;
  const int64_t batch_size_, world_size_, rank_;
  const uint64_t seed_;
  const bool drops_last_;
  nn::DistributedSampler order_;  // over the samples of all ranks, up to the batch that is made ahead
  Value position_;                // its state behind the last batch
  int64_t rows_ = 0;              // in the last batch
  int64_t batches_ = 0;
  std::unique_ptr<Part> next_;  // declared last, destroyed first: its thread uses the other members
};

}  // namespace

std::unique_ptr<BatchSource> make_rank_source(const JobData& data, const JobSpec& spec, int rank) {
  return std::make_unique<RankSource>(data, spec, rank);
}

}  // namespace tensord::server
