#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/tensor/tensor.h"

namespace tensord::server {

// A batch sent by a client: arrays with the same number of rows.
struct StreamedBatch {
  int64_t number = 0;
  std::vector<std::pair<std::string, Tensor>> arrays;
  std::shared_ptr<const void> account;  // charge for its bytes while it waits; may be null
};

// Queue of batches from a client to a job, bounded in bytes. One client at a time feeds it, and must wait while it is
// full. Batches are numbered over the whole life of the job, so lost and repeated ones are detected. If `keeps`,
// batches that were taken can be read again until they are forgotten, up to a number of bytes. Thread-safe.
class BatchStream {
 public:
  // `first`: the number of the first expected batch.
  BatchStream(uint64_t max_bytes, int64_t first, bool keeps = false)
      : max_bytes_(max_bytes), first_number_(first), keeps_(keeps), next_(first) {}

  // For the client:

  // Throws Error{kFailedPrecondition} if another client feeds it, or it is closed or complete.
  void attach();
  // The client has ended. `is_complete`: there is no more data.
  void detach(bool is_complete);
  // False if a batch of this number was accepted before. Without a number, it is the next one. Throws Error:
  // kOutOfRange for a number that skips batches; kInvalidArgument, naming the batch, for arrays that differ from the
  // first batch's in names, dtypes or trailing shapes; the error of close().
  bool push(std::optional<int64_t> number, std::vector<std::pair<std::string, Tensor>> arrays,
            std::shared_ptr<const void> account = nullptr);
  // Calls `callback` once there is room or the stream is closed: now, or later on the job's thread. Only one can be
  // set.
  void when_room(std::function<void()> callback);
  int64_t first_number() const { return first_number_; }
  int64_t next() const;

  // For the job:

  enum class Popped { kBatch, kComplete, kNothing };
  // Waits for a batch until the timeout.
  Popped pop(std::chrono::milliseconds timeout, StreamedBatch& batch);
  bool has_client() const;
  // Batches before this number are not needed again.
  void forget(int64_t before);
  // Makes pop() continue with this batch. False if it is no longer kept; then nothing changes. A closed stream stays
  // closed.
  bool rewind(int64_t number);
  // Rejects clients from now on with this error; the first call's error counts.
  void close(ErrorCode code, const std::string& reason);

 private:
  void check_open() const TENSORD_REQUIRES(mutex_);
  void check_alike(const std::vector<std::pair<std::string, Tensor>>& arrays) const TENSORD_REQUIRES(mutex_);
  void keep(const StreamedBatch& batch) TENSORD_REQUIRES(mutex_);
  void drop_kept() TENSORD_REQUIRES(mutex_);
  bool has_room() const TENSORD_REQUIRES(mutex_) { return closed_.has_value() || bytes_ < max_bytes_; }

  const uint64_t max_bytes_;
  const int64_t first_number_;
  const bool keeps_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<StreamedBatch> batches_ TENSORD_GUARDED_BY(mutex_);
  uint64_t bytes_ TENSORD_GUARDED_BY(mutex_) = 0;
  std::deque<StreamedBatch> kept_ TENSORD_GUARDED_BY(mutex_);
  uint64_t kept_bytes_ TENSORD_GUARDED_BY(mutex_) = 0;
  int64_t next_ TENSORD_GUARDED_BY(mutex_);
  std::vector<std::pair<std::string, Tensor>> first_
      TENSORD_GUARDED_BY(mutex_);  // meta tensors like those of the first batch
  std::function<void()> callback_ TENSORD_GUARDED_BY(mutex_);
  std::optional<Error> closed_ TENSORD_GUARDED_BY(mutex_);
  bool has_client_ TENSORD_GUARDED_BY(mutex_) = false;
  bool is_complete_ TENSORD_GUARDED_BY(mutex_) = false;
};

}  // namespace tensord::server
