#include "core/tensor/cpu_runtime.h"

#include <cstring>

#include "core/base/cancellation.h"
#include "core/tensor/memory/caching_allocator.h"
#include "core/tensor/strided_copy.h"

namespace tensord {
namespace {

constexpr int64_t kFillBytes = 64 << 20;  // takes some tens of milliseconds if the system has to bring in each page

class CpuStream final : public DeviceStream {
 public:
  CpuStream() : DeviceStream({}) {}
  ~CpuStream() override { close(); }
  void synchronize() override {}
};

class CpuEvent final : public DeviceEvent {
 public:
  void record(DeviceStream&) override {}
  void hold(DeviceStream&) const override {}
  bool is_done() const override { return true; }
  void synchronize() const override {}
};

class CpuRuntime final : public DeviceRuntime {
 public:
  int count() const override { return 1; }
  std::unique_ptr<Allocator> make_allocator(int) override { return make_cpu_source(); }

  DeviceStream& default_stream(int) override { return stream_; }
  std::unique_ptr<DeviceStream> make_stream(int) override { return std::make_unique<CpuStream>(); }
  std::unique_ptr<DeviceEvent> make_event() override { return std::make_unique<CpuEvent>(); }
  void synchronize(int) override {}

  void copy(void* to, Device, const void* from, Device, size_t size_bytes, DeviceStream&) override {
    if (size_bytes > 0) std::memcpy(to, from, size_bytes);
  }
  void fill(void* data, uint8_t byte, size_t size_bytes, DeviceStream&) override {
    in_pieces(static_cast<int64_t>(size_bytes), kFillBytes, [&](int64_t begin, int64_t end) {
      std::memset(static_cast<char*>(data) + begin, byte, static_cast<size_t>(end - begin));
    });
  }
  void copy_strided(const Tensor& target, const Tensor& source, DeviceStream&) override {
    strided_copy(target, source);
  }

 private:
  CpuStream stream_;
};

}  // namespace

DeviceRuntime& cpu_runtime() {
  static CpuRuntime* const runtime = new CpuRuntime;  // is used until the last storage is freed
  return *runtime;
}

}  // namespace tensord
