#include "core/distributed/nccl/nccl_backend.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "core/base/error.h"
#include "core/base/execution_context.h"
#include "core/base/mutex.h"
#include "core/distributed/nccl/communicator.h"
#include "core/distributed/nccl/element_types.h"
#include "core/tensor/cuda/runtime.h"
#include "core/tensor/tensor.h"

namespace tensord::distributed {
namespace {

// NCCL creates communicators for the thread's current device.
class CurrentDevice {
 public:
  explicit CurrentDevice(Device device) {
    if (device.kind == kCUDA) scope_.emplace(device.index);
  }

 private:
  std::optional<cuda::DeviceScope> scope_;
};

class NcclBackend final : public DeviceBackend {
 public:
  NcclBackend(const NcclApi& api, Device own, std::shared_ptr<Store> store, int rank, int size)
      : api_(api), own_(own), store_(std::move(store)), rank_(rank), size_(size) {}
  ~NcclBackend() override { abort(); }

  std::string name() const override { return "nccl"; }
  Device own_device() const override { return own_; }

  void check_device(const std::string& operation, const char* argument, Device device) const override {
    if (device.kind != own_.kind) {
      fail(ErrorCode::kUnimplemented, operation, ": ", argument, " is on ", to_string(device),
           ", expected memory of a device of ", name_of(own_.kind), ", which NCCL is for");
    }
    device_runtime(device);
  }
  void check_reduction(const std::string& operation, ReduceOp op, DType dtype) const override {
    check_nccl_reduction(operation, op, dtype);
  }

  DeviceStream& stream(Device device) override { return *place(device).stream; }

  void check_health() override {
    for (NcclCommunicator* const communicator : communicators()) communicator->check_health();
  }
  void abort() override {
    {
      const MutexLock lock(mutex_);
      is_aborted_ = true;
    }
    for (NcclCommunicator* const communicator : communicators()) communicator->abort();
  }
  void close(SteadyTime deadline) override {
    for (NcclCommunicator* const communicator : communicators()) communicator->close(deadline);
  }

  void batch(const BackendCall& call, const std::function<void()>& fn) override {
    if (is_in_batch_) return fn();
    NcclCommunicator& communicator = ready(call);
    communicator.call("ncclGroupStart", call.deadline, [&](NcclComm) { return api_.group_start(); });
    is_in_batch_ = true;
    try {
      fn();
    } catch (...) {
      is_in_batch_ = false;
      // NCCL counts group starts per thread; without the matching end, an abort would wait for it.
      static_cast<void>(api_.group_end());
      throw;
    }
    is_in_batch_ = false;
    communicator.call("ncclGroupEnd", call.deadline, [&](NcclComm) { return api_.group_end(); });
  }

  void send(const std::byte* data, size_t size_bytes, int peer, const BackendCall& call) override {
    if (size_bytes == 0) return;
    run("ncclSend", call, [&](NcclComm comm, NcclStream queue) {
      return api_.send(data, size_bytes, NcclType::kUint8, peer, comm, queue);
    });
  }
  void recv(std::byte* data, size_t size_bytes, int peer, const BackendCall& call) override {
    if (size_bytes == 0) return;
    run("ncclRecv", call, [&](NcclComm comm, NcclStream queue) {
      return api_.recv(data, size_bytes, NcclType::kUint8, peer, comm, queue);
    });
  }

  void broadcast(std::byte* data, size_t size_bytes, int root, const BackendCall& call) override {
    broadcast_from(data, data, size_bytes, root, call);
  }

  void all_reduce(std::byte* data, const Elements& elements, const BackendCall& call) override {
    if (elements.count == 0) return;
    const NcclElements seen = nccl_elements(elements.dtype, elements.count);
    with_op(elements, call, [&](NcclOp op) {
      run("ncclAllReduce", call, [&](NcclComm comm, NcclStream queue) {
        return api_.all_reduce(data, data, seen.count, seen.type, op, comm, queue);
      });
    });
  }
  void reduce(std::byte* data, const Elements& elements, int root, const BackendCall& call) override {
    with_op(elements, call, [&](NcclOp op) { reduce_to(data, data, elements, op, root, call); });
  }

  void all_gather(const std::byte* in, std::byte* out, std::span<const size_t> sizes,
                  const BackendCall& call) override {
    if (is_even(sizes)) {
      if (sizes.front() == 0) return;
      return run("ncclAllGather", call, [&](NcclComm comm, NcclStream queue) {
        return api_.all_gather(in, out, sizes.front(), NcclType::kUint8, comm, queue);
      });
    }
    batch(call, [&] {
      for (int rank = 0; rank < size_; ++rank) {
        const size_t bytes = sizes[static_cast<size_t>(rank)];
        broadcast_from(rank == rank_ ? in : out, out, bytes, rank, call);
        out += bytes;
      }
    });
  }

  void gather(const std::byte* in, std::byte* out, size_t size_bytes, int root, const BackendCall& call) override {
    batch(call, [&] {
      send(in, size_bytes, root, call);
      for (int rank = 0; rank_ == root && rank < size_; ++rank) {
        recv(out + static_cast<size_t>(rank) * size_bytes, size_bytes, rank, call);
      }
    });
  }
  void scatter(const std::byte* in, std::byte* out, size_t size_bytes, int root, const BackendCall& call) override {
    batch(call, [&] {
      for (int rank = 0; rank_ == root && rank < size_; ++rank) {
        send(in + static_cast<size_t>(rank) * size_bytes, size_bytes, rank, call);
      }
      recv(out, size_bytes, root, call);
    });
  }

  void reduce_scatter(std::byte* in, std::byte* out, std::span<const size_t> counts, const Elements& elements,
                      const BackendCall& call) override {
    with_op(elements, call, [&](NcclOp op) {
      if (is_even(counts)) {
        if (counts.front() == 0) return;
        const NcclElements seen = nccl_elements(elements.dtype, counts.front());
        return run("ncclReduceScatter", call, [&](NcclComm comm, NcclStream queue) {
          return api_.reduce_scatter(in, out, seen.count, seen.type, op, comm, queue);
        });
      }
      batch(call, [&] {
        for (int rank = 0; rank < size_; ++rank) {
          Elements part = elements;
          part.count = counts[static_cast<size_t>(rank)];
          reduce_to(in, rank == rank_ ? out : in, part, op, rank, call);
          in += part.count * part.size_bytes;
        }
      });
    });
  }

  void all_to_all(const std::byte* in, std::span<const size_t> in_bytes, std::byte* out,
                  std::span<const size_t> out_bytes, const BackendCall& call) override {
    batch(call, [&] {
      for (int rank = 0; rank < size_; ++rank) {
        send(in, in_bytes[static_cast<size_t>(rank)], rank, call);
        recv(out, out_bytes[static_cast<size_t>(rank)], rank, call);
        in += in_bytes[static_cast<size_t>(rank)];
        out += out_bytes[static_cast<size_t>(rank)];
      }
    });
  }

  void barrier(const BackendCall& call) override {
    const Tensor one = Tensor::empty(Dims{1}, DType::kInt32, call.device);
    device_runtime(call.device).fill(one.raw_data(), 0, one.size_bytes(), stream(call.device));
    all_reduce(static_cast<std::byte*>(one.raw_data()), {1, one.size_bytes(), nullptr, DType::kInt32, kSum}, call);
  }

 private:
  struct Place {
    explicit Place(const NcclApi& api) : communicator(api) {}
    std::unique_ptr<DeviceStream> stream;
    NcclCommunicator communicator;
  };

  Place& place(Device device) {
    const MutexLock lock(mutex_);
    auto& found = places_[device.index];
    if (!found) {
      auto made = std::make_unique<Place>(api_);
      made->stream = device_runtime(device).make_stream(device.index);
      found = std::move(made);
    }
    return *found;
  }
  std::vector<NcclCommunicator*> communicators() {
    const MutexLock lock(mutex_);
    std::vector<NcclCommunicator*> all;
    for (const auto& [index, place] : places_) {
      if (place) all.push_back(&place->communicator);
    }
    return all;
  }

  // The device's communicator. All ranks get here with the same operation, so the n-th communicators of all ranks
  // match.
  NcclCommunicator& ready(const BackendCall& call) {
    Place& at = place(call.device);
    {
      // abort() has not seen a communicator that is created now.
      const MutexLock lock(mutex_);
      if (is_aborted_) fail(ErrorCode::kUnavailable, "a rank has left, or ended the group");
    }
    if (at.communicator.state() == NcclCommunicator::State::kNone) {
      const CurrentDevice scope(call.device);
      at.communicator.init(*store_, concat("nccl/", made_++), rank_, size_, call.deadline);
    }
    return at.communicator;
  }

  template <class Fn>
  void run(const char* function, const BackendCall& call, const Fn& fn) {
    NcclStream const queue = stream(call.device).handle();
    ready(call).call(
        function, call.deadline, [&](NcclComm comm) { return fn(comm, queue); }, !is_in_batch_);
  }

  void broadcast_from(const std::byte* in, std::byte* out, size_t size_bytes, int root, const BackendCall& call) {
    if (size_bytes == 0) return;
    run("ncclBroadcast", call, [&](NcclComm comm, NcclStream queue) {
      return api_.broadcast(in, out, size_bytes, NcclType::kUint8, root, comm, queue);
    });
  }
  void reduce_to(const std::byte* in, std::byte* out, const Elements& elements, NcclOp op, int root,
                 const BackendCall& call) {
    if (elements.count == 0) return;
    const NcclElements seen = nccl_elements(elements.dtype, elements.count);
    run("ncclReduce", call, [&](NcclComm comm, NcclStream queue) {
      return api_.reduce(in, out, seen.count, seen.type, op, root, comm, queue);
    });
  }

  template <class Fn>
  void with_op(const Elements& elements, const BackendCall& call, const Fn& fn) {
    if (elements.op.kind != ReduceOp::Kind::kPremulSum) return fn(nccl_op(elements.op, elements.dtype));
    const NcclType type = nccl_elements(elements.dtype, 1).type;
    NcclScalar factor = nccl_scalar(type, elements.op.factor);
    NcclOp op{};
    NcclCommunicator& communicator = ready(call);
    communicator.call(
        "ncclRedOpCreatePreMulSum", call.deadline,
        [&](NcclComm comm) { return api_.op_premul_sum(&op, factor.bytes, type, kNcclScalarOnHost, comm); },
        !is_in_batch_);
    fn(op);
    communicator.call(
        "ncclRedOpDestroy", call.deadline, [&](NcclComm comm) { return api_.op_destroy(op, comm); }, !is_in_batch_);
  }

  static bool is_even(std::span<const size_t> sizes) {
    return std::all_of(sizes.begin(), sizes.end(), [&](size_t size) { return size == sizes.front(); });
  }

  const NcclApi& api_;
  const Device own_;
  const std::shared_ptr<Store> store_;
  const int rank_, size_;
  int made_ = 0;              // communicators
  bool is_in_batch_ = false;  // of the thread that enqueues
  Mutex mutex_;
  bool is_aborted_ TENSORD_GUARDED_BY(mutex_) = false;
  std::map<int, std::unique_ptr<Place>> places_ TENSORD_GUARDED_BY(mutex_);  // by device index
};

// The library is opened once and never closed.
const NcclApi& opened(const std::string& library) {
  static Mutex mutex;
  static std::map<std::string, NcclApi> apis;
  const MutexLock lock(mutex);
  const auto found = apis.find(library);
  if (found != apis.end()) return found->second;
  return apis.emplace(library, open_nccl(library.empty() ? nccl_places() : std::vector<std::string>{library}))
      .first->second;
}

int device_of_rank() {
  const char* const local_rank = std::getenv("LOCAL_RANK");
  const int count = device_runtime({kCUDA, 0}).count();
  return local_rank ? std::max(0, std::atoi(local_rank)) % count : 0;
}

}  // namespace

BackendFactory nccl_backends_over(const NcclApi& api, DeviceKind kind, int device) {
  const Device own{kind, static_cast<int8_t>(device)};
  device_runtime(own);
  return [&api, own](std::shared_ptr<Store> store, const std::string&, int rank, int size, Milliseconds) {
    return std::make_unique<NcclBackend>(api, own, std::move(store), rank, size);
  };
}

BackendFactory nccl_backends(const NcclOptions& options) {
  try {
    device_runtime({kCUDA, 0});
  } catch (const Error& error) {
    fail(error.code(), "nccl: ", error.what(), "; NCCL is for tensors on CUDA devices");
  }
  const NcclApi& api = opened(options.library);
  return nccl_backends_over(api, kCUDA, options.device < 0 ? device_of_rank() : options.device);
}

bool has_nccl() {
  try {
    nccl_backends();
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace tensord::distributed
