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

namespace tensord::distributed {

// Of one call of an engine.
struct EngineCall {
  // Equal on all ranks exactly when they run the same operation: an engine never joins data of two tags.
  uint32_t tag;
  SteadyTime deadline;
};

// Of a reduction of bytes that an engine knows no more about.
struct Elements {
  size_t count, size_bytes;  // elements, and bytes of one
  ReduceFunction reduce;
};

// A message on its way.
class Transfer {
 public:
  virtual ~Transfer() = default;
  // Returns the rank that sent, when the memory may be used again. Throws Error.
  virtual int wait(SteadyTime deadline) = 0;
};

// What moves a group's bytes between its ranks. All memory is dense; ranks are the group's. Collectives block, are
// called by one thread in the same order on all ranks, and throw Error: kDeadlineExceeded, kUnavailable for a lost
// peer. After an error the engine is of no use any more. Transfers may be started and waited for by any thread at any
// time.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual std::string name() const = 0;
  virtual void broadcast(std::byte* data, size_t size_bytes, int root, const EngineCall& call) = 0;
  // In place, on all ranks or (reduce) on the root alone; other ranks' data is what it was.
  virtual void all_reduce(std::byte* data, const Elements& elements, const EngineCall& call) = 0;
  virtual void reduce(std::byte* data, const Elements& elements, int root, const EngineCall& call) = 0;
  // The part r of `out` is what rank r has in `in`. sizes_bytes: of each part, the same on all ranks.
  virtual void all_gather(const std::byte* in, std::byte* out, std::span<const size_t> sizes_bytes,
                          const EngineCall& call) = 0;
  // `out` on the root alone.
  virtual void gather(const std::byte* in, std::byte* out, size_t size_bytes, int root, const EngineCall& call) = 0;
  // `in` on the root alone.
  virtual void scatter(const std::byte* in, std::byte* out, size_t size_bytes, int root, const EngineCall& call) = 0;
  // `in` has a part for each rank, counts[r] elements (elements.count all together); `out` becomes this rank's,
  // reduced. `in` is not kept.
  virtual void reduce_scatter(std::byte* in, std::byte* out, std::span<const size_t> counts, const Elements& elements,
                              const EngineCall& call) = 0;
  // The part s of `out` is what rank s has in `in` for this rank.
  virtual void all_to_all(const std::byte* in, std::span<const size_t> in_bytes, std::byte* out,
                          std::span<const size_t> out_bytes, const EngineCall& call) = 0;
  virtual void barrier(const EngineCall& call) = 0;

  // A message to or from a rank; both sides know its size and its slot. Of one slot they come in order.
  virtual std::unique_ptr<Transfer> start_send(const std::byte* data, size_t size_bytes, int peer, uint64_t slot) = 0;
  // From any one of the peers.
  virtual std::unique_ptr<Transfer> start_recv(std::byte* data, size_t size_bytes, std::span<const int> peers,
                                               uint64_t slot) = 0;

  // Ends what runs, and all that comes: it throws. From any thread.
  virtual void abort() = 0;
};

// Makes this rank's part of an engine for a new group. `store` is the group's own; `name` is the same on all of its
// ranks, and of no other group.
using EngineFactory = std::function<std::unique_ptr<Engine>(std::shared_ptr<Store> store, const std::string& name,
                                                            int rank, int size, Milliseconds timeout)>;

}  // namespace tensord::distributed
