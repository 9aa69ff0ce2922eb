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
  bool shuffle = false;  // use a RandomSampler; not together with `sampler`
  bool drop_last = false;
  std::shared_ptr<Sampler> sampler = {};  // null: in order, or shuffled
  ops::Generator* generator = nullptr;    // for the order; null: the thread's current one. Must outlive the loader
  int workers = 0;                        // threads that prefetch batches; 0: next() makes them
  int prefetch_factor = 2;                // batches prefetched for each worker
  // Makes a batch from samples; empty: the dataset's get_batch.
  std::function<std::vector<Tensor>(std::span<const std::vector<Tensor>> samples)> collate = {};
};

// Iterates over batches of a dataset, epoch after epoch, in the sampler's order whatever the number of workers. At most
// workers · prefetch_factor batches are prefetched. Random numbers drawn by a dataset come from a generator of each
// batch, so they do not depend on the workers either. The dataset must outlive the loader. Thread-safety: one consumer.
class DataLoader {
 public:
  DataLoader(const Dataset& dataset, DataLoaderOptions options = {});
  // Workers stop between two samples.
  ~DataLoader();
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;

  int64_t size() const;  // batches in an epoch
  // Starts the next epoch; the rest of the current one is dropped.
  void start_epoch();
  // Returns the next batch; nothing at the end of the epoch and before the first one. An exception in a worker is
  // rethrown here, when its batch is due, with the sample's index; the loader can continue with the next batch.
  // `is_interrupted` is asked while workers make the batch: if it is true this returns nothing, is_in_epoch() stays
  // true, and the batch is that of the next call.
  std::optional<std::vector<Tensor>> next(const std::function<bool()>& is_interrupted = {});
  // Whether an epoch was started and next() has not reported its end yet.
  bool is_in_epoch() const;

  // The consumer's position in the epoch, without prefetched batches. After load_state_dict, next() continues from
  // here. The sampler's state is included. The generator's state, which determines later epochs, must be saved by its
  // owner.
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
