#include "server/training/data/batch_stream.h"

#include <algorithm>
#include <iterator>

#include "core/base/mutex.h"

namespace tensord::server {
namespace {

uint64_t bytes_of(const StreamedBatch& batch) {
  uint64_t bytes = 0;
  for (const auto& [name, tensor] : batch.arrays) bytes += tensor.size_bytes();
  return bytes;
}

void check_rows(int64_t number, const std::vector<std::pair<std::string, Tensor>>& arrays) {
  check(!arrays.empty(), "batch ", number, " has no arrays");
  const Tensor& first = arrays.front().second;
  for (const auto& [name, tensor] : arrays) {
    check(tensor.ndim() > 0, "batch ", number, ": '", name, "' is a single number, not an array of rows");
    check(tensor.size(0) == first.size(0) && tensor.size(0) > 0, "batch ", number, ": '", name, "' has ",
          tensor.size(0), " rows, '", arrays.front().first, "' has ", first.size(0));
    const auto same =
        std::count_if(arrays.begin(), arrays.end(), [&](const auto& other) { return other.first == name; });
    check(same == 1, "batch ", number, ": '", name, "' appears twice");
  }
}

}  // namespace

void BatchStream::check_open() const {
  if (closed_) throw Error(*closed_);
  if (is_complete_) fail(ErrorCode::kFailedPrecondition, "the job's data is complete");
}

void BatchStream::check_alike(const std::vector<std::pair<std::string, Tensor>>& arrays) const {
  check_rows(next_, arrays);
  if (first_.empty()) return;
  for (const auto& [name, like] : first_) {
    const auto found = std::find_if(arrays.begin(), arrays.end(),
                                    [&, wanted = &name](const auto& item) { return item.first == *wanted; });
    check(found != arrays.end(), "batch ", next_, " has no '", name, "', which the batches before it had");
    const Tensor& tensor = found->second;
    check(tensor.dtype() == like.dtype(), "batch ", next_, ": '", name, "' is ", name_of(tensor.dtype()),
          ", in the batches before it ", name_of(like.dtype()));
    const bool is_alike = tensor.ndim() == like.ndim() &&
                          std::equal(tensor.sizes().begin() + 1, tensor.sizes().end(), like.sizes().begin() + 1);
    check(is_alike, "batch ", next_, ": '", name, "' has shape ", tensor.sizes(), ", in the batches before it ",
          like.sizes(), " with any number of rows");
  }
  check(arrays.size() == first_.size(), "batch ", next_, " has ", arrays.size(), " arrays, the batches before it ",
        first_.size());
}

void BatchStream::attach() {
  const MutexLock lock(mutex_);
  check_open();
  if (has_client_) fail(ErrorCode::kFailedPrecondition, "another client is streaming data to this job");
  has_client_ = true;
}

void BatchStream::detach(bool is_complete) {
  {
    const MutexLock lock(mutex_);
    has_client_ = false;
    is_complete_ = is_complete_ || is_complete;
    callback_ = nullptr;
  }
  changed_.notify_all();
}

bool BatchStream::push(std::optional<int64_t> number, std::vector<std::pair<std::string, Tensor>> arrays,
                       std::shared_ptr<const void> account) {
  {
    const MutexLock lock(mutex_);
    check_open();
    if (number && *number < next_) return false;
    if (number && *number > next_) {
      fail(ErrorCode::kOutOfRange, "batch ", *number, " arrived, but the job needs batch ", next_, " first");
    }
    check_alike(arrays);
    if (first_.empty()) {
      for (const auto& [name, tensor] : arrays) {
        first_.emplace_back(name, Tensor::meta(tensor.sizes(), tensor.dtype()));
      }
    }
    StreamedBatch& batch = batches_.emplace_back();
    batch.number = next_++;
    batch.arrays = std::move(arrays);
    batch.account = std::move(account);
    bytes_ += bytes_of(batch);
  }
  changed_.notify_all();
  return true;
}

void BatchStream::when_room(std::function<void()> callback) {
  {
    const MutexLock lock(mutex_);
    if (!has_room()) {
      callback_ = std::move(callback);
      return;
    }
  }
  callback();
}

int64_t BatchStream::next() const {
  const MutexLock lock(mutex_);
  return next_;
}

BatchStream::Popped BatchStream::pop(std::chrono::milliseconds timeout, StreamedBatch& batch) {
  std::function<void()> callback;
  {
    MutexLock lock(mutex_);
    changed_.wait_for(lock, timeout,
                      [this]() TENSORD_REQUIRES(mutex_) { return !batches_.empty() || is_complete_ || closed_; });
    if (batches_.empty()) return is_complete_ ? Popped::kComplete : Popped::kNothing;
    batch = std::move(batches_.front());
    batches_.pop_front();
    bytes_ -= bytes_of(batch);
    if (keeps_) keep(batch);
    if (has_room()) callback = std::exchange(callback_, nullptr);
  }
  if (callback) callback();
  return Popped::kBatch;
}

void BatchStream::keep(const StreamedBatch& batch) {
  kept_bytes_ += bytes_of(batch);
  kept_.push_back({batch.number, batch.arrays, nullptr});
  while (kept_bytes_ > max_bytes_) drop_kept();
}

void BatchStream::drop_kept() {
  kept_bytes_ -= bytes_of(kept_.front());
  kept_.pop_front();
}

void BatchStream::forget(int64_t before) {
  const MutexLock lock(mutex_);
  while (!kept_.empty() && kept_.front().number < before) drop_kept();
}

bool BatchStream::rewind(int64_t number) {
  {
    const MutexLock lock(mutex_);
    if (closed_) return true;
    const int64_t last = batches_.empty() ? next_ : batches_.front().number;
    if (number > last || number < last - static_cast<int64_t>(kept_.size())) return false;
    while (!kept_.empty() && kept_.front().number < number) drop_kept();
    batches_.insert(batches_.begin(), std::move_iterator(kept_.begin()), std::move_iterator(kept_.end()));
    bytes_ += std::exchange(kept_bytes_, 0);
    kept_.clear();
  }
  changed_.notify_all();
  return true;
}

bool BatchStream::has_client() const {
  const MutexLock lock(mutex_);
  return has_client_;
}

void BatchStream::close(ErrorCode code, const std::string& reason) {
  std::function<void()> callback;
  {
    const MutexLock lock(mutex_);
    if (!closed_) closed_ = Error(code, reason);
    batches_.clear();
    kept_.clear();
    bytes_ = kept_bytes_ = 0;
    callback = std::exchange(callback_, nullptr);
  }
  changed_.notify_all();
  if (callback) callback();
}

}  // namespace tensord::server
