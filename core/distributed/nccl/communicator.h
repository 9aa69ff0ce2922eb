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

// One rank's end of NCCL's connections between one device of each rank. No call of it blocks in NCCL: what goes on
// there is asked for until it is over, its time is, or it was aborted.
//
//   none → initializing → ready → closed      each of them → aborted
//                 └──────────┴──→ failed → aborted
//
// The first error of NCCL makes it failed: nothing can be asked of it any more but abort(). Thread-safety: one thread
// makes, calls and closes it; the others are anybody's.
class NcclCommunicator {
 public:
  enum class State { kNone, kInitializing, kReady, kFailed, kClosed, kAborted };

  explicit NcclCommunicator(const NcclApi& api) : api_(api) {}
  // Aborts what was not closed.
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  // All ranks call it, with a store and a key that rank 0's id is under. Throws Error: kDeadlineExceeded, NCCL's.
  void init(Store& store, const std::string& key, int rank, int size, SteadyTime deadline);
  // Runs fn(communicator), which calls NCCL's function of this name, and waits until it has been taken; in a batch that
  // is for its end.
  void call(const char* function, SteadyTime deadline, const std::function<NcclResult(NcclComm)>& fn,
            bool waits = true);
  // Throws the error that work on the device, or a peer, has met since. Does nothing unless it is ready.
  void check_health();
  // After all work has ended: says so to the others, and frees it.
  void close(SteadyTime deadline);
  // Ends what runs on the device, which gives nothing then.
  void abort();

  State state() const;

 private:
  void check_state(State expected) const TENSORD_REQUIRES(mutex_);
  // Until what was started is no longer in progress.
  void await_result(const char* function, NcclResult result, SteadyTime deadline);
  NcclUniqueId shared_id(Store& store, const std::string& key, int rank, SteadyTime deadline);
  void enter(State from, State to);
  [[noreturn]] void fail_with(const char* function, NcclResult result) TENSORD_REQUIRES(mutex_);

  const NcclApi& api_;
  mutable Mutex mutex_;
  // Of one communicator NCCL takes one call at a time.
  State state_ TENSORD_GUARDED_BY(mutex_) = State::kNone;
  NcclComm comm_ TENSORD_GUARDED_BY(mutex_) = nullptr;
};

const char* name_of(NcclCommunicator::State state);

}  // namespace tensord::distributed
