#include "core/tensor/memory/pinned_memory.h"

#include <algorithm>
#include <array>
#include <map>

#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/tensor/device_runtime.h"
#include "core/tensor/memory/caching_allocator.h"
#include "core/tensor/memory/storage_allocator.h"

namespace tensord {
namespace {

// What is pinned, by its address.
struct Ranges {
  Mutex mutex;
  std::map<uintptr_t, size_t> all TENSORD_GUARDED_BY(mutex);

  bool contains(const void* data, size_t size_bytes) {
    const auto begin = reinterpret_cast<uintptr_t>(data);
    const MutexLock lock(mutex);
    auto it = all.upper_bound(begin);
    if (it == all.begin()) return false;
    --it;
    const uintptr_t offset = begin - it->first;
    return offset < it->second && size_bytes <= it->second - offset;
  }
};
Ranges& ranges() {
  static auto* const made = new Ranges;
  return *made;
}

// The device's source, with a note of what it gave.
class NotedSource final : public Allocator {
 public:
  explicit NotedSource(std::unique_ptr<Allocator> source) : source_(std::move(source)) {}
  void* allocate(size_t size_bytes) override {
    void* const data = source_->allocate(size_bytes);
    if (!data) return nullptr;
    const MutexLock lock(ranges().mutex);
    ranges().all[reinterpret_cast<uintptr_t>(data)] = size_bytes;
    return data;
  }
  void free(void* data, size_t size_bytes) override {
    {
      const MutexLock lock(ranges().mutex);
      ranges().all.erase(reinterpret_cast<uintptr_t>(data));
    }
    source_->free(data, size_bytes);
  }
  Device device() const override { return {}; }

 private:
  std::unique_ptr<Allocator> source_;
};

// Pinning takes the system a long time, so what is freed is kept here. The bytes of tensors are in the books of the
// host's allocator; here they are nobody's.
class PinnedPool final : public StorageAllocator {
 public:
  explicit PinnedPool(std::unique_ptr<Allocator> source) : pool_(std::make_unique<NotedSource>(std::move(source))) {}
  DataPtr allocate(size_t size_bytes, Device device) override {
    const MemoryOwnerScope owner(kServerOwner);
    void* const data = pool_.allocate(size_bytes);
    return {data, new Block{&pool_, data}, give_back, device};
  }

 private:
  struct Block {
    CachingAllocator* pool;
    void* data;
  };
  static void give_back(void* context) {
    const std::unique_ptr<Block> block(static_cast<Block*>(context));
    block->pool->free(block->data);
  }

  CachingAllocator pool_;
};

constinit std::array<PinnedPool*, kDeviceKinds> pools{};  // of registered kinds; never destroyed

bool has_device(DeviceKind kind) {
  try {
    return device_runtime({kind, 0}).count() > 0;
  } catch (const Error&) {
    return false;
  }
}

PinnedPool& pool_for(std::optional<DeviceKind> kind) {
  for (size_t i = 0; i < pools.size(); ++i) {
    const auto of = static_cast<DeviceKind>(i);
    if (pools[i] && (!kind || *kind == of) && has_device(of)) return *pools[i];
  }
  fail(ErrorCode::kUnimplemented, "pin_memory: there are no devices ", kind ? "of " : "",
       kind ? name_of(*kind) : "here", " that pinned memory is for");
}

}  // namespace

void register_pinned_memory(DeviceKind kind, std::unique_ptr<Allocator> source) {
  pools.at(static_cast<size_t>(kind)) = new PinnedPool(std::move(source));
}

bool is_pinned_address(const void* data) { return ranges().contains(data, 1); }

bool is_pinned(const Tensor& tensor) {
  if (tensor.is_meta() || !tensor.device().is_host() || !tensor.storage()) return false;
  return ranges().contains(tensor.storage()->data(), tensor.storage()->size_bytes());
}

Tensor pin_memory(const Tensor& tensor, std::optional<DeviceKind> kind) {
  check(!tensor.is_meta() && tensor.device().is_host(),
        "pin_memory: only dense tensors of the host can be pinned, not ", describe(tensor));
  if (is_pinned(tensor)) return tensor;
  PinnedPool& pool = pool_for(kind);
  const bool is_dense = is_non_overlapping_and_dense(tensor.sizes(), tensor.strides());
  const Storage memory = allocate_storage_from(pool, std::max<size_t>(tensor.size_bytes(), 1));
  const Tensor out = Tensor::from_storage(
      memory, tensor.sizes(), is_dense ? tensor.strides() : contiguous_strides(tensor.sizes()), 0, tensor.dtype());
  out.copy_from(tensor);
  return out;
}

Tensor empty_pinned(std::span<const int64_t> sizes, DType dtype, DeviceKind kind) {
  const size_t size_bytes = static_cast<size_t>(checked_numel(sizes)) * size_of(dtype);
  const Storage memory = allocate_storage_from(pool_for(kind), std::max<size_t>(size_bytes, 1));
  return Tensor::from_storage(memory, sizes, contiguous_strides(sizes), 0, dtype);
}

}  // namespace tensord
