#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/nn/data/dataset.h"
#include "core/nn/data/sampler.h"

namespace tensord::nn {

struct DataLoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;  // a RandomSampler; not with `sampler`
  bool drop_last = false;
  std::shared_ptr<Sampler> sampler = {};  // null: in order, or shuffled
  ops::Generator* generator = nullptr;    // for the order; null: the thread's current one. Must outlive the loader
  int workers = 0;                        // threads that make batches ahead; 0: next() makes them
  int prefetch_factor = 2;                // batches made ahead, for each worker
  // From samples to a batch; empty: the dataset's get_batch.
  std::function<std::vector<Tensor>(std::span<const std::vector<Tensor>> samples)> collate = {};
};

// Batches of a dataset, epoch after epoch, in the sampler's order whatever the number of workers. At most
// workers · prefetch_factor batches are made ahead. Random numbers that a dataset draws come from a generator
// of the batch's own, so they do not depend on the workers either. The dataset must outlive the loader.
// Thread-safety: one consumer.
class DataLoader {
 public:
  DataLoader(const Dataset& dataset, DataLoaderOptions options = {});
  ~DataLoader();
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;

  int64_t size() const;  // batches in an epoch
  // Starts the next epoch; what is left of the current one is dropped.
  void start_epoch();
  // The next batch; nothing at the end of the epoch and before the first. What a worker threw is thrown
  // here, in the batch's turn, with the sample's number; the loader can go on with the next batch.
  std::optional<std::vector<Tensor>> next();
  // Whether an epoch was started whose end next() has not told yet.
  bool is_in_epoch() const;

  // Where in the epoch the consumer is, batches made ahead not counted. After load_state_dict, next() gives what it
  // would have given here. The sampler's state is part of this; that of the generator, which later epochs hang
  // on, is its owner's to save.
  ops::Value state_dict() const;
  void load_state_dict(const ops::Value& state);

  // `for (const auto& batch : loader)` runs one epoch.
  class Iterator {
   public:
    explicit Iterator(DataLoader* loader) : loader_(loader) { ++*this; }
    Iterator() = default;
    const std::vector<Tensor>& operator*() const { return *batch_; }
    Iterator& operator++() {
      batch_ = loader_->next();
      return *this;
    }
    bool operator!=(const Iterator&) const { return batch_.has_value(); }

   private:
    DataLoader* loader_ = nullptr;
    std::optional<std::vector<Tensor>> batch_;
  };
  Iterator begin() {
    start_epoch();
    return Iterator(this);
  }
  Iterator end() { return {}; }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tensord::nn
