#include "core/tensor/cuda/cuda_runtime.h"

#include <optional>
#include <vector>

#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/tensor/cuda/cuda_allocator.h"
#include "core/tensor/cuda/runtime.h"
#include "core/tensor/device_runtime.h"
#include "core/tensor/memory/pinned_memory.h"
#include "core/tensor/tensor.h"

namespace tensord::cuda {
namespace {

class CudaStream final : public DeviceStream {
 public:
  explicit CudaStream(int index) : DeviceStream({kCUDA, static_cast<int8_t>(index)}), stream_(index) {}
  ~CudaStream() override {
    static_cast<void>(cudaStreamSynchronize(stream_.get()));
    close();
  }
  void synchronize() override { stream_.synchronize(); }
  void* handle() const override { return stream_.get(); }

 private:
  Stream stream_;
};

// CUDA's own default stream, null on the current device: PyTorch's too, so that tensors shared by DLPack are in order.
class CudaDefaultStream final : public DeviceStream {
 public:
  explicit CudaDefaultStream(int index) : DeviceStream({kCUDA, static_cast<int8_t>(index)}) {}
  void synchronize() override {
    const DeviceScope scope(device().index);
    check_cuda(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  }
};

cudaStream_t handle_of(const DeviceStream& stream) { return static_cast<cudaStream_t>(stream.handle()); }

class CudaEvent final : public DeviceEvent {
 public:
  void record(DeviceStream& stream) override {
    if (!event_ || index_ != stream.device().index) event_.emplace(stream.device().index);
    index_ = stream.device().index;
    const DeviceScope scope(index_);
    event_->record(handle_of(stream));
  }
  void hold(DeviceStream& stream) const override {
    if (!event_) return;
    const DeviceScope scope(stream.device().index);
    event_->make_wait(handle_of(stream));
  }
  bool is_done() const override { return !event_ || event_->is_done(); }
  void synchronize() const override {
    if (event_) event_->synchronize();
  }

 private:
  std::optional<Event> event_;  // made on the device of the first stream
  int index_ = -1;
};

// Not tried on a device yet: nothing here runs where there is none.
class CudaRuntime final : public DeviceRuntime {
 public:
  int count() const override { return device_count(); }
  std::unique_ptr<Allocator> make_allocator(int index) override { return std::make_unique<CudaAllocator>(index); }

  DeviceStream& default_stream(int index) override {
    const MutexLock lock(mutex_);
    streams_.resize(static_cast<size_t>(count()));
    auto& stream = streams_.at(static_cast<size_t>(index));
    if (!stream) stream = std::make_unique<CudaDefaultStream>(index);
    return *stream;
  }
  std::unique_ptr<DeviceStream> make_stream(int index) override { return std::make_unique<CudaStream>(index); }
  std::unique_ptr<DeviceEvent> make_event() override { return std::make_unique<CudaEvent>(); }
  void synchronize(int index) override {
    const DeviceScope scope(index);
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  // What is not pinned CUDA itself reads and writes before it goes on. For what is, this waits: its owner may write it,
  // or give it back, as soon as the call returns.
  void copy(void* to, Device to_device, const void* from, Device from_device, size_t size_bytes,
            DeviceStream& stream) override {
    const DeviceScope scope(stream.device().index);
    if (from_device.is_host() || to_device.is_host()) {
      const auto copy_host = from_device.is_host() ? copy_to_device : copy_to_host;
      copy_host(to, from, size_bytes, handle_of(stream));
      if (is_pinned_address(from_device.is_host() ? from : to)) stream.synchronize();
      return;
    }
    if (to_device == from_device) return copy_on_device(to, from, size_bytes, handle_of(stream));
    check_cuda(cudaMemcpyPeerAsync(to, to_device.index, from, from_device.index, size_bytes, handle_of(stream)),
               "copy between devices");
  }

  void fill(void* data, uint8_t byte, size_t size_bytes, DeviceStream& stream) override {
    const DeviceScope scope(stream.device().index);
    check_cuda(cudaMemsetAsync(data, byte, size_bytes, handle_of(stream)), "fill on the device");
  }

  void copy_strided(const Tensor& target, const Tensor& source, DeviceStream& stream) override {
    const bool is_block = target.dtype() == source.dtype() && target.strides() == source.strides() &&
                          is_non_overlapping_and_dense(target.sizes(), target.strides());
    if (!is_block) {
      fail(ErrorCode::kUnimplemented, "a copy from ", describe(source), " to ", describe(target),
           " on cuda with other strides or another dtype is not there yet");
    }
    copy(target.raw_data(), target.device(), source.raw_data(), source.device(), target.size_bytes(), stream);
  }

 private:
  Mutex mutex_;
  std::vector<std::unique_ptr<DeviceStream>> streams_ TENSORD_GUARDED_BY(mutex_);
};

}  // namespace

void register_cuda_runtime() {
  static auto* const runtime = new CudaRuntime;
  register_device_runtime(kCUDA, *runtime);
  register_pinned_memory(kCUDA, std::make_unique<CudaHostAllocator>());
}

}  // namespace tensord::cuda
