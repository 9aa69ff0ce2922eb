#include "core/distributed/nccl/communicator.h"

#include <cstring>
#include <thread>

#include "core/base/error.h"
#include "core/base/mutex.h"

namespace tensord::distributed {
namespace {

using State = NcclCommunicator::State;
using std::chrono::steady_clock;

constexpr std::chrono::microseconds kPause{100};  // polling interval
constexpr Milliseconds kStorePiece{50};

ErrorCode code_of(NcclResult result) {
  switch (result) {
    case NcclResult::kSystemError:
    case NcclResult::kRemoteError: return ErrorCode::kUnavailable;
    case NcclResult::kTimeout: return ErrorCode::kDeadlineExceeded;
    default: return ErrorCode::kInternal;
  }
}

}  // namespace

const char* name_of(State state) {
  static constexpr const char* kNames[] = {"not made", "initializing", "ready", "failed", "closed", "aborted"};
  return kNames[static_cast<size_t>(state)];
}

NcclCommunicator::~NcclCommunicator() { abort(); }

State NcclCommunicator::state() const {
  const MutexLock lock(mutex_);
  return state_;
}

void NcclCommunicator::check_state(State expected) const {
  if (state_ == expected) return;
  if (state_ == State::kAborted) fail(ErrorCode::kUnavailable, "a rank has left, or ended the group");
  fail(ErrorCode::kFailedPrecondition, "nccl: the communicator is ", name_of(state_), ", expected ", name_of(expected));
}

void NcclCommunicator::enter(State from, State to) {
  const MutexLock lock(mutex_);
  check_state(from);
  state_ = to;
}

void NcclCommunicator::fail_with(const char* function, NcclResult result) {
  if (state_ != State::kAborted) state_ = State::kFailed;
  const char* const meaning = api_.get_error_string(result);
  const char* const last = api_.get_last_error(comm_);
  std::string text =
      concat("nccl: ", function, ": ", meaning ? meaning : "unknown error", " (", static_cast<int>(result), ")");
  if (last && *last) text += concat(": ", last);
  fail(code_of(result), text);
}

void NcclCommunicator::init(Store& store, const std::string& key, int rank, int size, SteadyTime deadline) {
  enter(State::kNone, State::kInitializing);
  NcclUniqueId id{};
  try {
    id = shared_id(store, key, rank, deadline);
  } catch (const Error&) {
    const MutexLock lock(mutex_);
    if (state_ == State::kInitializing) state_ = State::kFailed;
    throw;
  }
  NcclResult result;
  {
    const MutexLock lock(mutex_);
    check_state(State::kInitializing);
    NcclConfig config;
    result = api_.comm_init(&comm_, size, id, rank, &config);
    if (result != NcclResult::kInProgress && result != NcclResult::kSuccess)
      fail_with("ncclCommInitRankConfig", result);
  }
  await_result("ncclCommInitRankConfig", NcclResult::kInProgress, deadline);
  enter(State::kInitializing, State::kReady);
}

NcclUniqueId NcclCommunicator::shared_id(Store& store, const std::string& key, int rank, SteadyTime deadline) {
  NcclUniqueId id{};
  if (rank == 0) {
    {
      const MutexLock lock(mutex_);
      const NcclResult result = api_.get_unique_id(&id);
      if (result != NcclResult::kSuccess) fail_with("ncclGetUniqueId", result);
    }
    store.set(key, std::string(id.bytes, sizeof id.bytes));
    return id;
  }
  for (;;) {
    {
      const MutexLock lock(mutex_);
      check_state(State::kInitializing);
    }
    try {
      store.wait(key, kStorePiece);
      break;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kDeadlineExceeded) throw;
      if (steady_clock::now() < deadline) continue;
      fail(ErrorCode::kDeadlineExceeded, "nccl: timed out waiting for rank 0's id of the communicator");
    }
  }
  const std::string bytes = store.get(key);
  check_internal(bytes.size() == sizeof id.bytes, "nccl: rank 0 gave an id of ", bytes.size(), " bytes");
  std::memcpy(id.bytes, bytes.data(), bytes.size());
  return id;
}

void NcclCommunicator::await_result(const char* function, NcclResult result, SteadyTime deadline) {
  while (result == NcclResult::kInProgress) {
    {
      const MutexLock lock(mutex_);
      check_state(state_ == State::kInitializing ? State::kInitializing : State::kReady);
      const NcclResult asked = api_.comm_async_error(comm_, &result);
      if (asked != NcclResult::kSuccess) fail_with("ncclCommGetAsyncError", asked);
      if (result != NcclResult::kInProgress && result != NcclResult::kSuccess) fail_with(function, result);
    }
    if (result == NcclResult::kSuccess) return;
    if (steady_clock::now() >= deadline) {
      fail(ErrorCode::kDeadlineExceeded, "nccl: ", function, ": timed out waiting for other ranks");
    }
    std::this_thread::sleep_for(kPause);
  }
}

void NcclCommunicator::call(const char* function, SteadyTime deadline, const std::function<NcclResult(NcclComm)>& fn,
                            bool waits) {
  NcclResult result;
  {
    const MutexLock lock(mutex_);
    check_state(State::kReady);
    result = fn(comm_);
    if (result != NcclResult::kInProgress && result != NcclResult::kSuccess) fail_with(function, result);
  }
  if (waits) await_result(function, result, deadline);
}

void NcclCommunicator::check_health() {
  const MutexLock lock(mutex_);
  if (state_ != State::kReady) return;
  NcclResult result = NcclResult::kSuccess;
  const NcclResult asked = api_.comm_async_error(comm_, &result);
  if (asked != NcclResult::kSuccess) fail_with("ncclCommGetAsyncError", asked);
  if (result != NcclResult::kInProgress && result != NcclResult::kSuccess) fail_with("work on the device", result);
}

void NcclCommunicator::close(SteadyTime deadline) {
  if (state() != State::kReady) return;
  call("ncclCommFinalize", deadline, api_.comm_finalize);
  const MutexLock lock(mutex_);
  check_state(State::kReady);
  const NcclResult result = api_.comm_destroy(comm_);
  if (result != NcclResult::kSuccess) fail_with("ncclCommDestroy", result);
  comm_ = nullptr;
  state_ = State::kClosed;
}

void NcclCommunicator::abort() {
  const MutexLock lock(mutex_);
  if (state_ == State::kClosed || state_ == State::kAborted) return;
  state_ = State::kAborted;
  // An error of the abort itself is ignored.
  if (comm_) static_cast<void>(api_.comm_abort(comm_));
  comm_ = nullptr;
}

}  // namespace tensord::distributed
