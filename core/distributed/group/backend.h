#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/distributed/group/reduce_op.h"
#include "core/distributed/group/work.h"
#include "core/distributed/store/store.h"
#include "core/tensor/device_runtime.h"

namespace tensord::distributed {

// The parameters of one backend call.
struct BackendCall {
  // Equal on all ranks exactly if they run the same operation. A backend never combines data with different tags.
  uint32_t tag;
  SteadyTime deadline;
  Device device = {};  // of the memory
};

// The elements of a reduction. Host backends only see bytes and a function; device backends also use the op.
struct Elements {
  size_t count, size_bytes;  // number of elements, bytes of one element
  ReduceFunction reduce;
  DType dtype;
  ReduceOp op;
};

// A message in flight.
class Transfer {
 public:
  virtual ~Transfer() = default;
  // Returns the rank of the sender once the memory may be reused. Throws Error.
  virtual int wait(SteadyTime deadline) = 0;
};

class DeviceBackend;

// Transfers a group's bytes between its ranks. All memory is dense; ranks are relative to the group. Collectives block,
// are called by one thread in the same order on all ranks, and throw Error: kDeadlineExceeded, or kUnavailable for a
// lost peer. After an error the backend is unusable. Any thread may start and await transfers at any time.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string name() const = 0;
  // Null for host backends. (This class is header-only, because shared libraries opened at run time implement backends
  // and cannot resolve symbols of the program.)
  virtual DeviceBackend* on_device() { return nullptr; }

  virtual void broadcast(std::byte* data, size_t size_bytes, int root, const BackendCall& call) = 0;
  // In place, on all ranks or (reduce) on the root only. The data of other ranks is unchanged.
  virtual void all_reduce(std::byte* data, const Elements& elements, const BackendCall& call) = 0;
  virtual void reduce(std::byte* data, const Elements& elements, int root, const BackendCall& call) = 0;
  // Part r of `out` becomes `in` of rank r. sizes_bytes has the size of each part and is the same on all ranks.
  virtual void all_gather(const std::byte* in, std::byte* out, std::span<const size_t> sizes_bytes,
                          const BackendCall& call) = 0;
  // `out` is used on the root only.
  virtual void gather(const std::byte* in, std::byte* out, size_t size_bytes, int root, const BackendCall& call) = 0;
  // `in` is used on the root only.
  virtual void scatter(const std::byte* in, std::byte* out, size_t size_bytes, int root, const BackendCall& call) = 0;
  // `in` has one part for each rank, counts[r] elements (elements.count in total). `out` becomes this rank's reduced
  // part. `in` is overwritten.
  virtual void reduce_scatter(std::byte* in, std::byte* out, std::span<const size_t> counts, const Elements& elements,
                              const BackendCall& call) = 0;
  // Part s of `out` becomes the part of rank s's `in` that is addressed to this rank.
  virtual void all_to_all(const std::byte* in, std::span<const size_t> in_bytes, std::byte* out,
                          std::span<const size_t> out_bytes, const BackendCall& call) = 0;
  virtual void barrier(const BackendCall& call) = 0;

  // A message to or from one rank. Both sides know its size and its slot. Messages of one slot arrive in order.
  virtual std::unique_ptr<Transfer> start_send(const std::byte* data, size_t size_bytes, int peer, uint64_t slot) = 0;
  // From any one of the peers.
  virtual std::unique_ptr<Transfer> start_recv(std::byte* data, size_t size_bytes, std::span<const int> peers,
                                               uint64_t slot) = 0;

  // Makes running and later calls throw. Any thread may call it.
  virtual void abort() = 0;
};

// A backend for device memory. Its collectives enqueue their work in stream(call.device) and return. To wait for the
// end, record an event in that stream, and call check_health() while waiting. The backend applies ops completely (avg,
// premul_sum) and matches calls by order only, so ranks that run different operations may mix data or hang. One thread
// makes all calls except abort() and check_health(). Messages between two ranks arrive in order, without slots.
class DeviceBackend : public Backend {
 public:
  DeviceBackend* on_device() override { return this; }
  // Throws Error that names operation and argument if the backend cannot use memory of this device.
  virtual void check_device(const std::string& operation, const char* argument, Device device) const = 0;
  // Used by operations without tensors, and for bytes.
  virtual Device own_device() const = 0;
  // Throws Error{kUnimplemented} that names operation, op and dtype if the reduction is not supported.
  virtual void check_reduction(const std::string& operation, ReduceOp op, DType dtype) const = 0;
  // Throws like device_runtime. The stream lives as long as the backend.
  virtual DeviceStream& stream(Device device) = 0;
  // Throws the error that device work has met, if any.
  virtual void check_health() = 0;
  // Starts everything that `fn` enqueues together: messages in a cycle, many small reductions.
  virtual void batch(const BackendCall& call, const std::function<void()>& fn) = 0;
  virtual void send(const std::byte* data, size_t size_bytes, int peer, const BackendCall& call) = 0;
  virtual void recv(std::byte* data, size_t size_bytes, int peer, const BackendCall& call) = 0;
  // Call it after the last operation has ended on all ranks.
  virtual void close(SteadyTime deadline) = 0;

 private:
  std::unique_ptr<Transfer> start_send(const std::byte*, size_t, int, uint64_t) final;
  std::unique_ptr<Transfer> start_recv(std::byte*, size_t, std::span<const int>, uint64_t) final;
};

// Creates this rank's backend of a new group. `store` is the group's own. `name` is the same on all of its ranks, and
// unique to the group.
using BackendFactory = std::function<std::unique_ptr<Backend>(std::shared_ptr<Store> store, const std::string& name,
                                                              int rank, int size, Milliseconds timeout)>;

}  // namespace tensord::distributed
