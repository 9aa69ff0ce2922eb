#include "tensord/client/stream.h"

#include <utility>

#include "callback_threads.h"
#include "stream_impl.h"
#include "tensord/client/error.h"

namespace tensord::client {
namespace {

constexpr const char* kStreamInfer = "/inference.GRPCInferenceService/ModelStreamInfer";

// Number of results read ahead of receive().
constexpr size_t kMaxResults = 16;

}  // namespace

Stream::Stream(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&& other) noexcept {
  if (this != &other) {
    if (impl_) impl_->abandon();
    impl_ = std::move(other.impl_);
  }
  return *this;
}
Stream::~Stream() {
  if (impl_) impl_->abandon();
}
void Stream::send(const Request& request) { impl_->send(request); }
std::optional<StreamResult> Stream::receive() { return impl_->receive(); }
void Stream::finish_sending() { impl_->finish_sending(); }
void Stream::cancel() { impl_->cancel(); }

void Stream::Impl::start() {
  keep_callback_threads();
  self_ = shared_from_this();
  is_reading_ = true;
  // Streams are never retried, so either channel works.
  grpc::GenericStub(connection_->channel()).PrepareBidiStreamingCall(&context_, kStreamInfer, {}, this);
  AddHold();  // until all results were read
  StartRead(&read_);
  StartCall();
}

void Stream::Impl::throw_ended(std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [this] { return is_done_; });
  if (unreadable_) std::rethrow_exception(unreadable_);
  check_status(status_);
  throw FailedPreconditionError("the stream has ended");
}

void Stream::Impl::send(const Request& request) {
  for (const Input& input : request.inputs) {
    if (input.name.empty()) throw InvalidArgumentError("inputs of requests on a stream need names");
  }
  grpc::ByteBuffer message = encode(request);
  OutputRegions regions = output_regions(request);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !is_writing_ || has_read_all_; });
  if (has_read_all_) throw_ended(lock);
  if (has_finished_sending_) throw FailedPreconditionError("send after finish_sending");
  if (!regions.empty()) regions_[request.id] = std::move(regions);
  written_.Swap(&message);
  is_writing_ = true;
  AddHold();
  lock.unlock();
  StartWrite(&written_);
  RemoveHold();
}

void Stream::Impl::finish_sending() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !is_writing_ || has_read_all_; });
  if (has_read_all_ || has_finished_sending_) return;
  has_finished_sending_ = true;
  AddHold();
  lock.unlock();
  StartWritesDone();
  RemoveHold();
}

void Stream::Impl::read_on(std::unique_lock<std::mutex>& lock, size_t max_results) {
  const bool starts = !is_reading_ && !has_read_all_ && results_.size() < max_results;
  if (starts) {
    is_reading_ = true;
    AddHold();
  }
  lock.unlock();
  if (!starts) return;
  StartRead(&read_);
  RemoveHold();
}

std::optional<StreamResult> Stream::Impl::receive() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !results_.empty() || is_done_; });
  if (results_.empty()) {
    if (unreadable_) std::rethrow_exception(unreadable_);
    check_status(status_);
    return std::nullopt;
  }
  StreamResult result = std::move(results_.front());
  results_.pop_front();
  read_on(lock, kMaxResults);
  return result;
}

void Stream::Impl::abandon() {
  context_.TryCancel();
  // A failed read is how the end of the stream is noticed.
  std::unique_lock lock(mutex_);
  read_on(lock, kMaxResults + 1);
}

void Stream::Impl::OnReadDone(bool ok) {
  std::unique_lock lock(mutex_);
  is_reading_ = false;
  if (!ok) {
    has_read_all_ = true;
    changed_.notify_all();
    lock.unlock();
    RemoveHold();
    return;
  }
  try {
    results_.push_back(decode_stream(read_, [this](const std::string& id) {
      const auto found = regions_.find(id);
      return found == regions_.end() ? OutputRegions() : found->second;
    }));
    if (results_.back().result.is_final()) regions_.erase(results_.back().result.id);
  } catch (...) {
    unreadable_ = std::current_exception();
    context_.TryCancel();
  }
  read_.Clear();
  changed_.notify_all();
  read_on(lock, kMaxResults);
}

void Stream::Impl::OnWriteDone(bool) {
  // The reads report what failed.
  const std::lock_guard lock(mutex_);
  is_writing_ = false;
  written_.Clear();
  changed_.notify_all();
}

void Stream::Impl::OnDone(const grpc::Status& status) {
  // Declared first, so that it is destroyed after the lock.
  std::shared_ptr<Impl> self;
  const std::lock_guard lock(mutex_);
  self = std::move(self_);
  is_done_ = has_read_all_ = true;
  status_ = status;
  changed_.notify_all();
}

}  // namespace tensord::client
