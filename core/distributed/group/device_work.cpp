// Operations on a device: the runner enqueues them in the backend's stream and watches until the device has completed
// them.
#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/distributed/group/item.h"

namespace tensord::distributed {
namespace {

constexpr std::chrono::microseconds kPause{200};  // interval between polls of the device

using StreamPart = ContextPart<&ExecutionContext::stream>;

}  // namespace

Device ProcessGroup::device() const {
  const DeviceBackend* const backend = backend_->on_device();
  return backend ? backend->own_device() : Device{};
}

// Throws if another rank, or another thread, has ended the group.
void ProcessGroup::check_open() const {
  const MutexLock lock(mutex_);
  if (failure_) throw *failure_;
  if (is_closing_) fail(ErrorCode::kCancelled, "the group was closed");
}

void ProcessGroup::wait_on_device(DeviceBackend& backend, DeviceStream& stream, SteadyTime deadline) {
  const std::unique_ptr<DeviceEvent> end = device_runtime(stream.device()).make_event();
  end->record(stream);
  while (!end->is_done()) {
    check_open();
    backend.check_health();
    if (std::chrono::steady_clock::now() >= deadline) {
      fail(ErrorCode::kDeadlineExceeded, "timed out waiting for other ranks");
    }
    std::this_thread::sleep_for(kPause);
  }
}

// Calls fn(device memory with the contents of `in`, device memory for `out`, call).
template <class Fn>
void ProcessGroup::by_device(DeviceBackend& backend, const std::byte* in, size_t in_bytes, std::byte* out,
                             size_t out_bytes, const BackendCall& call, const Fn& fn) {
  const Device device = backend.own_device();
  DeviceRuntime& runtime = device_runtime(device);
  DeviceStream& stream = backend.stream(device);
  const StreamPart scope(&stream);
  const Tensor given = Tensor::empty(Dims{static_cast<int64_t>(in_bytes)}, DType::kUInt8, device);
  const Tensor got = Tensor::empty(Dims{static_cast<int64_t>(out_bytes)}, DType::kUInt8, device);
  runtime.copy(given.raw_data(), device, in, Device{}, in_bytes, stream);
  fn(static_cast<const std::byte*>(given.raw_data()), static_cast<std::byte*>(got.raw_data()),
     BackendCall{call.tag, call.deadline, device});
  // Copied only once it has arrived: `out` may be destroyed if a rank never arrives.
  wait_on_device(backend, stream, call.deadline);
  runtime.copy(out, Device{}, got.raw_data(), device, out_bytes, stream);
  stream.synchronize();
}

void ProcessGroup::all_gather_on_host(const std::byte* in, std::byte* out, size_t each, const BackendCall& call) {
  const std::vector<size_t> sizes(static_cast<size_t>(size_), each);
  DeviceBackend* const device = backend_->on_device();
  if (!device) return backend_->all_gather(in, out, sizes, call);
  by_device(
      *device, in, each, out, each * sizes.size(), call,
      [&](const std::byte* from, std::byte* to, const BackendCall& own) { device->all_gather(from, to, sizes, own); });
}

void ProcessGroup::all_to_all_on_host(const std::byte* in, std::byte* out, size_t each, const BackendCall& call) {
  const std::vector<size_t> sizes(static_cast<size_t>(size_), each);
  DeviceBackend* const device = backend_->on_device();
  if (!device) return backend_->all_to_all(in, sizes, out, sizes, call);
  const size_t bytes = each * sizes.size();
  by_device(*device, in, bytes, out, bytes, call, [&](const std::byte* from, std::byte* to, const BackendCall& own) {
    device->all_to_all(from, sizes, to, sizes, own);
  });
}

void ProcessGroup::barrier_on_host(const BackendCall& call) {
  DeviceBackend* const device = backend_->on_device();
  if (!device) return backend_->barrier(call);
  BackendCall own = call;
  own.device = device->own_device();
  DeviceStream& stream = device->stream(own.device);
  const StreamPart scope(&stream);
  device->barrier(own);
  wait_on_device(*device, stream, call.deadline);
}

// The work runs after what the caller had enqueued, and later work of the caller runs after it; the host waits for
// neither.
void ProcessGroup::launch(DeviceBackend& backend, const std::shared_ptr<Item>& item, const BackendCall& call) {
  DeviceStream& stream = backend.stream(item->device());
  const StreamPart scope(&stream);
  item->ready->hold(stream);
  item->body(call);
  std::unique_ptr<DeviceEvent> end = device_runtime(item->device()).make_event();
  end->record(stream);
  bool is_open = false;
  {
    const MutexLock lock(mutex_);
    is_open = !failure_ && !is_closing_;
    if (is_open) {
      launched_.push_back(item);
      item->work->launched(std::move(end), item->device());
    }
  }
  if (!is_open) check_open();
  changed_.notify_all();
}

void ProcessGroup::watch_device(DeviceBackend& backend) {
  MutexLock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this]() TENSORD_REQUIRES(mutex_) { return is_closing_ || failure_ || !launched_.empty(); });
    if (is_closing_ || failure_) break;
    const std::shared_ptr<Item> item = launched_.front();
    lock.unlock();
    look_at_launched(backend, item);
    lock.lock();
  }
  std::deque<std::shared_ptr<Item>> left;
  left.swap(launched_);
  lock.unlock();
  for (const auto& item : left) {
    item->work->finish(Error(ErrorCode::kCancelled, concat(item->name(), ": the group was closed")));
  }
}

void ProcessGroup::look_at_launched(DeviceBackend& backend, const std::shared_ptr<Item>& item) {
  std::optional<Error> error;
  try {
    if (item->work->has_passed()) {
      // A close that sees no launched operation must see all of them finished.
      item->work->finish(std::nullopt, item->source_rank);
      const MutexLock lock(mutex_);
      if (!launched_.empty() && launched_.front() == item) launched_.pop_front();
      return changed_.notify_all();
    }
    backend.check_health();
    if (std::chrono::steady_clock::now() >= item->started + item->timeout) {
      fail(ErrorCode::kDeadlineExceeded, "timed out waiting for other ranks");
    }
  } catch (const Error& thrown) {
    error = thrown;
  }
  // end_with does the same for launched operations.
  if (error) return finish_item(*item, error);
  MutexLock lock(mutex_);
  changed_.wait_for(lock, kPause, [this]() TENSORD_REQUIRES(mutex_) { return is_closing_ || failure_; });
}

}  // namespace tensord::distributed
