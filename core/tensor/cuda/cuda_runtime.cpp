#include "core/tensor/cuda/cuda_runtime.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/queued_error.h"
#include "core/tensor/cuda/cuda_allocator.h"
#include "core/tensor/cuda/plugin.h"
#include "core/tensor/cuda/runtime.h"
#include "core/tensor/cuda/staging.h"
#include "core/tensor/cuda/strided_copy_job.h"
#include "core/tensor/memory/pinned_memory.h"
#include "core/tensor/tensor.h"

namespace tensord::cuda {
namespace {

template <class... Parts>
[[noreturn]] void fail_as(const ErrorWord& word, ErrorCode code, const Parts&... parts) {
  const std::string text = concat(parts...);
  throw QueuedError(code, word.operator_name ? concat(word.operator_name, ": ", text) : text);
}

[[noreturn]] void fail_kernel(const ErrorWord& word) {
  const auto value = [&](size_t i) { return word.values[i]; };
  switch (static_cast<KernelError>(word.code)) {
    case KernelError::kDivisionByZero: fail_as(word, ErrorCode::kInvalidArgument, "ZeroDivisionError");
    case KernelError::kIndexOutOfRange:
      fail_as(word, ErrorCode::kOutOfRange, "index ", value(0), " is out of bounds for dimension ", value(1),
              " with size ", value(2));
    case KernelError::kRowOutOfRange: fail_as(word, ErrorCode::kOutOfRange, "index out of range in self");
    case KernelError::kElementIndexOutOfRange:
      fail_as(word, ErrorCode::kOutOfRange, "out of range: tried to access index ", value(0), " on a tensor of ",
              value(1), " elements.");
    case KernelError::kClassOutOfRange:
      fail_as(word, ErrorCode::kOutOfRange, "Target ", value(0), " is out of bounds.");
    case KernelError::kRepeatsNegative: fail_as(word, ErrorCode::kInvalidArgument, "repeats can not be negative");
    case KernelError::kMaxIndexOutOfRange:
      fail_as(word, ErrorCode::kInvalidArgument, "found an invalid max index: ", value(0),
              " (output volumes are of size ", value(1), ")");
    case KernelError::kTargetOutOfRange: fail_as(word, ErrorCode::kInvalidArgument, "target out of range");
    case KernelError::kLabelOutOfRange:
      fail_as(word, ErrorCode::kInvalidArgument, "target ", value(0), " is out of bounds for ", value(1), " classes");
    case KernelError::kBoxOfNoImage:
      fail_as(word, ErrorCode::kInvalidArgument, "rois: there is no image ", value(0), " in a batch of ", value(1));
    case KernelError::kBoxNotFinite:
      fail_as(word, ErrorCode::kInvalidArgument, "rois: the corners of a box must be finite");
    case KernelError::kBoxTooLarge:
      fail_as(word, ErrorCode::kInvalidArgument, "rois: a side of a box in ", value(0), " bins needs more than ",
              value(1), " samples");
    case KernelError::kBagIndexOutOfRange:
      fail_as(word, ErrorCode::kOutOfRange,
              "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be ", value(0));
    case KernelError::kBagOffsetNotZero:
      fail_as(
          word, ErrorCode::kInvalidArgument,
          "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, "
          "got ",
          value(0));
    case KernelError::kBagOffsetTooLarge:
      fail_as(word, ErrorCode::kInvalidArgument, "offsets[-1] can not be greater than input's length ", value(0),
              " but got offsets[-1] of ", value(1));
    case KernelError::kBagOffsetsDecrease:
      fail_as(word, ErrorCode::kInvalidArgument, "embedding_bag: offsets must not decrease, but got ", value(0),
              " after ", value(1));
    case KernelError::kProbabilityOutOfRange:
      fail_as(word, ErrorCode::kInvalidArgument, "Expected p_in >= 0 && p_in <= 1 to be true, but got false.");
    case KernelError::kRateOutOfRange:
      fail_as(word, ErrorCode::kInvalidArgument,
              "invalid Poisson rate, expected rate to be non-negative and finite, got ",
              std::bit_cast<double>(value(0)));
    case KernelError::kTrialsOutOfRange:
      fail_as(word, ErrorCode::kInvalidArgument, "binomial: expected a finite count and a chance between 0 and 1, got ",
              std::bit_cast<double>(value(0)), " and ", std::bit_cast<double>(value(1)));
    case KernelError::kNone: break;
  }
  fail_as(word, ErrorCode::kInternal, "a kernel noted the unknown error ", word.code);
}

class CudaStream final : public DeviceStream {
 public:
  CudaStream(int index, int priority) : DeviceStream({kCUDA, static_cast<int8_t>(index)}) {
    check_cuda(api().make_stream(index, priority, &handle_), "stream");
    void* word = nullptr;
    check_cuda(api().allocate_host(sizeof(ErrorWord), &word), "pinned memory of a stream");
    word_ = new (word) ErrorWord;
    const MutexLock lock(all_mutex());
    all().push_back(this);
  }
  ~CudaStream() override {
    static_cast<void>(api().synchronize_stream(handle_));
    {
      const MutexLock lock(all_mutex());
      std::erase(all(), this);
    }
    close();
    static_cast<void>(api().destroy_stream(handle_));
    static_cast<void>(api().free_host(word_));
  }

  void synchronize() override {
    check_cuda(api().synchronize_stream(handle_), "work on the device");
    throw_noted();
  }
  // What kernels noted; the work has run.
  void throw_noted() {
    std::atomic_ref<int32_t> code(word_->code);
    if (code.load(std::memory_order_acquire) == 0) return;
    ErrorWord seen = *word_;
    seen.code = code.exchange(0, std::memory_order_acq_rel);
    std::atomic_ref<int32_t>(word_->is_taken).store(0, std::memory_order_release);
    if (seen.code != 0) fail_kernel(seen);
  }
  void* handle() const override { return handle_; }
  ErrorWord* word() const { return word_; }

  static Mutex& all_mutex() {
    static auto* const mutex = new Mutex;
    return *mutex;
  }
  static std::vector<CudaStream*>& all() {
    static auto* const streams = new std::vector<CudaStream*>;
    return *streams;
  }

 private:
  StreamHandle handle_ = nullptr;
  ErrorWord* word_ = nullptr;  // pinned
};

StreamHandle handle_of(const DeviceStream& stream) { return static_cast<StreamHandle>(stream.handle()); }

class CudaEvent final : public DeviceEvent {
 public:
  ~CudaEvent() override { reset(); }
  void record(DeviceStream& stream) override {
    const int index = stream.device().index;
    if (!event_ || index_ != index) {
      reset();
      check_cuda(api().make_event(index, &event_), "event");
      index_ = index;
    }
    check_cuda(api().record_event(event_, handle_of(stream)), "event");
  }
  void hold(DeviceStream& stream) const override {
    if (event_) check_cuda(api().wait_event(handle_of(stream), event_), "wait for an event");
  }
  bool is_done() const override {
    if (!event_) return true;
    const Outcome outcome = api().query_event(event_);
    if (outcome == Outcome::kNotReady) return false;
    check_cuda(outcome, "query of an event");
    return true;
  }
  void synchronize() const override {
    if (event_) check_cuda(api().synchronize_event(event_), "wait for an event");
  }

 private:
  void reset() {
    if (event_) static_cast<void>(api().destroy_event(event_));
    event_ = nullptr;
  }
  EventHandle event_ = nullptr;  // made on the device of the first stream
  int index_ = -1;
};

// Small copies of memory that is not pinned: the driver has them read when the call returns.
constexpr size_t kDriverCopyBytes = size_t{64} << 10;

class CudaRuntime final : public DeviceRuntime {
 public:
  int count() const override { return device_count(); }
  std::unique_ptr<Allocator> make_allocator(int index) override { return std::make_unique<CudaAllocator>(index); }

  // Not CUDA's own default stream, which waits for all others and cannot be captured.
  DeviceStream& default_stream(int index) override { return *of(index).stream; }
  std::unique_ptr<DeviceStream> make_stream(int index) override { return std::make_unique<CudaStream>(index, 0); }
  std::unique_ptr<DeviceEvent> make_event() override { return std::make_unique<CudaEvent>(); }
  void synchronize(int index) override {
    check_cuda(api().synchronize_device(index), "work on the device");
    const MutexLock lock(CudaStream::all_mutex());
    for (CudaStream* const stream : CudaStream::all()) {
      if (stream->device().index == index) stream->throw_noted();
    }
  }

  void copy(void* to, Device to_device, const void* from, Device from_device, size_t size_bytes,
            DeviceStream& stream) override {
    const DeviceScope scope(stream.device().index);
    if (from_device.is_host() && (size_bytes > kDriverCopyBytes || is_pinned_address(from)))
      return of(to_device.index).staging.copy(to, from, size_bytes, handle_of(stream));
    if (!from_device.is_host() && !to_device.is_host() && to_device != from_device) {
      return check_cuda(api().copy_peer(to, to_device.index, from, from_device.index, size_bytes, handle_of(stream)),
                        "copy between devices");
    }
    check_cuda(api().copy(to, from, size_bytes, handle_of(stream)), "copy");
  }

  void copy_pinned(void* to, Device, const void* from, size_t size_bytes, DeviceStream& stream) override {
    const DeviceScope scope(stream.device().index);
    check_cuda(api().copy(to, from, size_bytes, handle_of(stream)), "copy from pinned memory");
  }

  void fill(void* data, uint8_t byte, size_t size_bytes, DeviceStream& stream) override {
    const DeviceScope scope(stream.device().index);
    check_cuda(api().fill(data, byte, size_bytes, handle_of(stream)), "fill on the device");
  }

  void copy_strided(const Tensor& target, const Tensor& source, DeviceStream& stream) override {
    const bool is_block = target.dtype() == source.dtype() && target.strides() == source.strides() &&
                          is_non_overlapping_and_dense(target.sizes(), target.strides());
    if (is_block)
      return copy(target.raw_data(), target.device(), source.raw_data(), source.device(), target.size_bytes(), stream);
    const StridedCopyJob job = strided_copy_job(target, source);
    const DeviceScope scope(stream.device().index);
    api().copy_strided(job, handle_of(stream));
    check_cuda(api().check_launch(), "strided copy");
  }

 private:
  struct PerDevice {
    explicit PerDevice(int index) : stream(std::make_unique<CudaStream>(index, 0)), staging(index) {}
    std::unique_ptr<CudaStream> stream;
    StagingPool staging;
  };
  PerDevice& of(int index) {
    const MutexLock lock(mutex_);
    devices_.resize(static_cast<size_t>(count()));
    auto& found = devices_.at(static_cast<size_t>(index));
    if (!found) found = std::make_unique<PerDevice>(index);
    return *found;
  }

  Mutex mutex_;
  std::vector<std::unique_ptr<PerDevice>> devices_ TENSORD_GUARDED_BY(mutex_);
};

}  // namespace

void register_cuda_runtime() {
  static auto* const runtime = new CudaRuntime;
  static const bool once = (register_device_runtime(kCUDA, *runtime),
                            register_pinned_memory(kCUDA, std::make_unique<CudaHostAllocator>()), true);
  static_cast<void>(once);
}

std::unique_ptr<DeviceStream> make_stream(int index, int priority) {
  int least = 0, greatest = 0;
  check_cuda(api().priority_range(index, &least, &greatest), "priorities of streams");
  return std::make_unique<CudaStream>(index,
                                      std::clamp(priority, std::min(least, greatest), std::max(least, greatest)));
}

ErrorWord* error_word_of(DeviceStream& stream) { return static_cast<CudaStream&>(stream).word(); }

}  // namespace tensord::cuda
