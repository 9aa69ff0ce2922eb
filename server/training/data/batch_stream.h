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

// A batch that a client sent: arrays of the same number of rows.
struct StreamedBatch {
  int64_t number = 0;
  std::vector<std::pair<std::string, Tensor>> arrays;
  std::shared_ptr<const void> account;  // what counts its bytes, as long as it waits; may be null
};

// Batches on their way from a client to a job, at most so many bytes. One client at a time feeds it; when it is full
// the client has to wait. Batches are numbered in the whole life of the job, so what was lost in a crash, or sent
// twice, is noticed. One that `keeps` has those that were taken once more, until they are forgotten, at most so many
// bytes of them. Thread-safe.
class BatchStream {
 public:
  // `first` is the number of the first batch that is wanted.
  BatchStream(uint64_t max_bytes, int64_t first, bool keeps = false)
      : max_bytes_(max_bytes), first_number_(first), keeps_(keeps), next_(first) {}

  // The client's side.

  // Throws Error{kFailedPrecondition} while another client feeds it, or when it is closed or complete.
  void attach();
  // The client has ended. `is_complete`: there is no more data.
  void detach(bool is_complete);
  // False when a batch of this number was taken before. Without a number it is the next. Throws Error: kOutOfRange
  // for a number that leaves out others; kInvalidArgument for arrays that differ from those of the first batch in
  // names, dtypes or shapes behind the rows, naming the batch; the reason of close().
  bool push(std::optional<int64_t> number, std::vector<std::pair<std::string, Tensor>> arrays,
            std::shared_ptr<const void> account = nullptr);
  // Calls `callback` once there is room or the stream is closed: at once, or later on the job's thread. One at a time.
  void when_room(std::function<void()> callback);
  int64_t first_number() const { return first_number_; }
  int64_t next() const;

  // The job's side.

  enum class Popped { kBatch, kComplete, kNothing };
  // Waits for a batch, at most so long.
  Popped pop(std::chrono::milliseconds timeout, StreamedBatch& batch);
  bool has_client() const;
  // Batches before that one are not needed again.
  void forget(int64_t before);
  // pop() goes on with that batch. False when it is not kept any more; nothing changes then. A closed one stays closed.
  bool rewind(int64_t number);
  // Nobody feeds it any more: who tries gets this error, that of the first call.
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
