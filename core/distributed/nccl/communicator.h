#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/device.h"
#include "core/base/mutex.h"
#include "core/distributed/group/work.h"
#include "core/distributed/nccl/nccl_api.h"
#include "core/distributed/store/store.h"

namespace tensord::distributed {

// One rank's NCCL communicator, which connects one device of each rank. No call blocks inside NCCL: progress is polled
// until the call ends, times out or is aborted.
//
//     none → initializing → ready → closed      each of them → aborted
//                                 └──────────┴──→ failed → aborted
//
// The first NCCL error makes it failed; only abort() is allowed after that. Thread-safety: one thread creates, calls
// and closes it; any thread may call the other functions.
class NcclCommunicator {
 public:
  enum class State { kNone, kInitializing, kReady, kFailed, kClosed, kAborted };

  explicit NcclCommunicator(const NcclApi& api) : api_(api) {}
  // Aborts the communicator unless it is closed.
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  // All ranks call it. `key` is where rank 0 stores the unique id. Throws Error: kDeadlineExceeded, or NCCL's.
  void init(Store& store, const std::string& key, int rank, int size, SteadyTime deadline);
  // Runs fn(communicator), which calls NCCL's function of this name, and waits until NCCL has accepted it. Inside a
  // batch, the end of the batch waits instead (waits = false).
  void call(const char* function, SteadyTime deadline, const std::function<NcclResult(NcclComm)>& fn,
            bool waits = true);
  // Throws the error that device work or a peer has met since. Does nothing unless the state is ready.
  void check_health();
  // Call it after all work has ended: finalizes and destroys the communicator.
  void close(SteadyTime deadline);
  // Ends running device work, whose results are then invalid.
  void abort();

  State state() const;

 private:
  void check_state(State expected) const TENSORD_REQUIRES(mutex_);
  // Waits until the started call is no longer in progress.
  void await_result(const char* function, NcclResult result, SteadyTime deadline);
  NcclUniqueId shared_id(Store& store, const std::string& key, int rank, SteadyTime deadline);
  void enter(State from, State to);
  [[noreturn]] void fail_with(const char* function, NcclResult result) TENSORD_REQUIRES(mutex_);

  const NcclApi& api_;
  mutable Mutex mutex_;
  // NCCL allows one call at a time on a communicator.
  State state_ TENSORD_GUARDED_BY(mutex_) = State::kNone;
  NcclComm comm_ TENSORD_GUARDED_BY(mutex_) = nullptr;
};

const char* name_of(NcclCommunicator::State state);

}  // namespace tensord::distributed
