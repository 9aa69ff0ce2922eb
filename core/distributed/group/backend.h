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

// Of one call of a backend.
struct BackendCall {
  // Equal on all ranks exactly when they run the same operation: a backend never joins data of two tags.
  uint32_t tag;
  SteadyTime deadline;
  Device device = {};  // whose memory it is
};

// Of a reduction. Backends of the host know no more of it than bytes and a function; a device's has the op itself.
struct Elements {
  size_t count, size_bytes;  // elements, and bytes of one
  ReduceFunction reduce;
  DType dtype;
  ReduceOp op;
};

// A message on its way.
class Transfer {
 public:
  virtual ~Transfer() = default;
  // Returns the rank that sent, when the memory may be used again. Throws Error.
  virtual int wait(SteadyTime deadline) = 0;
};

class DeviceBackend;

// What moves a group's bytes between its ranks. All memory is dense; ranks are the group's. Collectives block, are
// called by one thread in the same order on all ranks, and throw Error: kDeadlineExceeded, kUnavailable for a lost
// peer. After an error the backend is of no use any more. Transfers may be started and waited for by any thread at any
// time.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string name() const = 0;
  // Null: its memory is the host's. (Nothing of this class is in a source of its own: objects that are opened at run
  // time have backends and find no symbols.)
  virtual DeviceBackend* on_device() { return nullptr; }

  virtual void broadcast(std::byte* data, size_t size_bytes, int root, const BackendCall& call) = 0;
  // In place, on all ranks or (reduce) on the root alone; other ranks' data is what it was.
  virtual void all_reduce(std::byte* data, const Elements& elements, const BackendCall& call) = 0;
  virtual void reduce(std::byte* data, const Elements& elements, int root, const BackendCall& call) = 0;
  // The part r of `out` is what rank r has in `in`. sizes_bytes: of each part, the same on all ranks.
  virtual void all_gather(const std::byte* in, std::byte* out, std::span<const size_t> sizes_bytes,
                          const BackendCall& call) = 0;
  // `out` on the root alone.
  virtual void gather(const std::byte* in, std::byte* out, size_t size_bytes, int root, const BackendCall& call) = 0;
  // `in` on the root alone.
  virtual void scatter(const std::byte* in, std::byte* out, size_t size_bytes, int root, const BackendCall& call) = 0;
  // `in` has a part for each rank, counts[r] elements (elements.count all together); `out` becomes this rank's,
  // reduced. `in` is not kept.
  virtual void reduce_scatter(std::byte* in, std::byte* out, std::span<const size_t> counts, const Elements& elements,
                              const BackendCall& call) = 0;
  // The part s of `out` is what rank s has in `in` for this rank.
  virtual void all_to_all(const std::byte* in, std::span<const size_t> in_bytes, std::byte* out,
                          std::span<const size_t> out_bytes, const BackendCall& call) = 0;
  virtual void barrier(const BackendCall& call) = 0;

  // A message to or from a rank; both sides know its size and its slot. Of one slot they come in order.
  virtual std::unique_ptr<Transfer> start_send(const std::byte* data, size_t size_bytes, int peer, uint64_t slot) = 0;
  // From any one of the peers.
  virtual std::unique_ptr<Transfer> start_recv(std::byte* data, size_t size_bytes, std::span<const int> peers,
                                               uint64_t slot) = 0;

  // Ends what runs, and all that comes: it throws. From any thread.
  virtual void abort() = 0;
};

// A backend whose memory is a device's. Its collectives queue their work in stream(call.device) and return; who wants
// the end waits for a point in that stream, and asks check_health() meanwhile. It applies ops whole (avg, premul_sum),
// and joins what comes in the order of the calls: ranks that run different operations may mix or hang. All of it but
// abort() and check_health() is called by one thread. Of one pair of ranks messages come in order, without slots.
class DeviceBackend : public Backend {
 public:
  DeviceBackend* on_device() override { return this; }
  // Throws Error that names operation and argument where it cannot use memory of this device.
  virtual void check_device(const std::string& operation, const char* argument, Device device) const = 0;
  // For what has no tensors, and bytes.
  virtual Device own_device() const = 0;
  // Throws Error{kUnimplemented} that names operation, op and dtype where it cannot reduce so.
  virtual void check_reduction(const std::string& operation, ReduceOp op, DType dtype) const = 0;
  // Throws Error as device_runtime; lives as long as the backend.
  virtual DeviceStream& stream(Device device) = 0;
  // Throws the error that work on the device has met.
  virtual void check_health() = 0;
  // What fn queues starts together: messages in a circle, many small reductions.
  virtual void batch(const BackendCall& call, const std::function<void()>& fn) = 0;
  virtual void send(const std::byte* data, size_t size_bytes, int peer, const BackendCall& call) = 0;
  virtual void recv(std::byte* data, size_t size_bytes, int peer, const BackendCall& call) = 0;
  // After the last operation has ended on all ranks.
  virtual void close(SteadyTime deadline) = 0;

 private:
  std::unique_ptr<Transfer> start_send(const std::byte*, size_t, int, uint64_t) final;
  std::unique_ptr<Transfer> start_recv(std::byte*, size_t, std::span<const int>, uint64_t) final;
};

// Makes this rank's part of a backend for a new group. `store` is the group's own; `name` is the same on all of its
// ranks, and of no other group.
using BackendFactory = std::function<std::unique_ptr<Backend>(std::shared_ptr<Store> store, const std::string& name,
                                                              int rank, int size, Milliseconds timeout)>;

}  // namespace tensord::distributed
