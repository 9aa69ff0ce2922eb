#include "tests/distributed/fake_nccl.h"

#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "core/base/error.h"
#include "core/distributed/group/reduce_op.h"
#include "tests/device/async_device.h"
#include "tests/distributed/fake_elements.h"

namespace tensord::distributed::fake_nccl {
namespace {

enum class Kind { kAllReduce, kReduce, kBroadcast, kAllGather, kReduceScatter, kSend, kRecv };

struct Hub;
struct Comm {
  std::shared_ptr<Hub> hub;
  int rank = 0, size = 0;
  int questions = 0;  // this many polls return kInProgress
  uint64_t collectives = 0;
  std::map<int, uint64_t> sent, received;  // by peer
  std::map<int, double> factors;           // by op
  bool is_aborted = false, is_finalized = false;
  bool is_busy = false;
};

struct Call {
  Kind kind;
  const void* in;
  void* out;
  size_t count;
  NcclType type;
  NcclOp op;
  int root;  // or peer
  std::shared_ptr<Comm> comm;
  uint64_t number = 0;
  double factor = 1;
  bool is_done = false;
};
using CallPtr = std::shared_ptr<Call>;

// State shared by the ranks of one id.
struct Hub {
  int joined = 0;
  std::map<uint64_t, std::vector<CallPtr>> collectives;  // by number: the calls that have arrived
  std::map<std::tuple<int, int, uint64_t>, std::pair<CallPtr, CallPtr>> messages;  // from, to, number: send and recv
};

struct Failure {
  NcclResult result;
  int rank, from_call;
  std::map<int, int> calls;  // by rank
};

struct World {
  std::mutex mutex;  // guards everything here; locked inside the late device's mutex
  std::map<NcclComm, std::shared_ptr<Comm>> comms;
  std::map<std::string, std::shared_ptr<Hub>> hubs;
  std::map<std::string, Failure> failures;
  std::map<int, NcclResult> async_errors;
  std::vector<std::string> misuses;
  Counts counts;
  int ids = 0, slow = 0, slow_calls = 0, ops = 100;
};
World& world() {
  static auto* const all = new World;
  return *all;
}

struct Group {
  int depth = 0;
  std::vector<std::pair<NcclStream, CallPtr>> calls;
};
thread_local Group group;

// --- elements

ReduceOp op_of(const Call& call) {
  switch (call.op) {
    case NcclOp::kSum: return kSum;
    case NcclOp::kProd: return kProduct;
    case NcclOp::kMax: return kMax;
    case NcclOp::kMin: return kMin;
    case NcclOp::kAvg: return kAvg;
  }
  return premul_sum(call.factor);
}

std::byte* seen(const void* data) { return static_cast<std::byte*>(late::as_seen_by_device(const_cast<void*>(data))); }

// Elements `first` to `first + count`, reduced over all ranks.
std::vector<std::byte> reduced(const std::vector<CallPtr>& calls, size_t first, size_t count) {
  const NcclType type = calls.front()->type;
  const DType dtype = dtype_of_type(type);
  const size_t bytes = count * size_of_type(type), at = first * size_of_type(type);
  std::vector<std::byte> sum;
  for (const CallPtr& call : calls) {
    std::vector<std::byte> own(seen(call->in) + at, seen(call->in) + at + bytes);
    prepare_elements(op_of(*call), dtype, own.data(), count);
    if (sum.empty()) {
      sum = std::move(own);
    } else {
      reduce_function("fake", op_of(*call), dtype)(sum.data(), sum.data(), own.data(), count);
    }
  }
  finish_elements(op_of(*calls.front()), dtype, sum.data(), count, static_cast<int>(calls.size()));
  return sum;
}

void write(void* out, const std::vector<std::byte>& bytes) { std::memcpy(seen(out), bytes.data(), bytes.size()); }

// --- operations that all ranks have joined; calls are by rank

void run_collective(const std::vector<CallPtr>& calls) {
  const Call& first = *calls.front();
  const size_t bytes = first.count * size_of_type(first.type), size = calls.size();
  const auto root = static_cast<size_t>(first.root);
  std::vector<std::byte> result;
  switch (first.kind) {
    case Kind::kAllReduce:
      result = reduced(calls, 0, first.count);
      for (const CallPtr& call : calls) write(call->out, result);
      break;
    case Kind::kReduce: write(calls[root]->out, reduced(calls, 0, first.count)); break;
    case Kind::kBroadcast:
      result.assign(seen(calls[root]->in), seen(calls[root]->in) + bytes);
      for (const CallPtr& call : calls) write(call->out, result);
      break;
    case Kind::kAllGather:
      for (const CallPtr& call : calls) result.insert(result.end(), seen(call->in), seen(call->in) + bytes);
      for (const CallPtr& call : calls) write(call->out, result);
      break;
    case Kind::kReduceScatter: {
      std::vector<std::vector<std::byte>> parts;
      for (size_t rank = 0; rank < size; ++rank) parts.push_back(reduced(calls, rank * first.count, first.count));
      for (size_t rank = 0; rank < size; ++rank) write(calls[rank]->out, parts[rank]);
      break;
    }
    default: break;
  }
  for (const CallPtr& call : calls) call->is_done = true;
}

void check_same(const Call& a, const Call& b) {
  const bool is_op_same = (a.op == b.op) || (static_cast<int>(a.op) >= 100 && a.factor == b.factor);
  if (a.kind == b.kind && a.count == b.count && a.type == b.type && is_op_same && a.root == b.root) return;
  world().misuses.push_back(concat("ranks ", a.comm->rank, " and ", b.comm->rank, " run different operations"));
}

// Guarded by world().mutex, like the following functions.
void arrive(const CallPtr& call) {
  Hub& hub = *call->comm->hub;
  const int rank = call->comm->rank;
  if (call->kind == Kind::kSend || call->kind == Kind::kRecv) {
    const bool is_send = call->kind == Kind::kSend;
    const int from = is_send ? rank : call->root, to = is_send ? call->root : rank;
    const auto key = std::make_tuple(from, to, call->number);
    auto& pair = hub.messages[key];
    (is_send ? pair.first : pair.second) = call;
    if (!pair.first || !pair.second) return;
    if (pair.first->count != pair.second->count) world().misuses.push_back("a message of another size");
    std::memmove(seen(pair.second->out), seen(pair.first->in), std::min(pair.first->count, pair.second->count));
    pair.first->is_done = pair.second->is_done = true;
    hub.messages.erase(key);
    return;
  }
  auto& come = hub.collectives[call->number];
  come.resize(static_cast<size_t>(call->comm->size));
  come[static_cast<size_t>(rank)] = call;
  for (const CallPtr& other : come) {
    if (!other) return;
  }
  for (const CallPtr& other : come) check_same(*come.front(), *other);
  run_collective(come);
  hub.collectives.erase(call->number);
}

// One launch: all of its calls are in progress together.
void launch(NcclStream stream, std::vector<CallPtr> calls) {
  auto has_come = std::make_shared<bool>(false);
  late::queue(
      *static_cast<DeviceStream*>(stream),
      [calls = std::move(calls), has_come] {
        const std::lock_guard lock(world().mutex);
        if (calls.front()->comm->is_aborted) return true;
        if (!std::exchange(*has_come, true)) {
          for (const CallPtr& call : calls) arrive(call);
        }
        return std::all_of(calls.begin(), calls.end(), [](const CallPtr& call) { return call->is_done; });
      },
      [] {});
}

// --- functions

NcclResult failure_of(const std::string& function, int rank) {
  const auto found = world().failures.find(function);
  if (found == world().failures.end() || (found->second.rank != -1 && found->second.rank != rank)) {
    return NcclResult::kSuccess;
  }
  return ++found->second.calls[rank] >= found->second.from_call ? found->second.result : NcclResult::kSuccess;
}

// While one exists, no other call may be inside the communicator.
class Entered {
 public:
  Entered(const char* function, NcclComm handle) {
    const std::lock_guard lock(world().mutex);
    const auto found = world().comms.find(handle);
    if (found == world().comms.end()) {
      world().misuses.push_back(concat(function, " of a communicator that is not there"));
      result_ = NcclResult::kInvalidArgument;
      return;
    }
    comm_ = found->second;
    if (std::exchange(comm_->is_busy, true)) {
      world().misuses.push_back(concat(function, " while another call of the communicator runs"));
    }
    result_ = failure_of(function, comm_->rank);
  }
  ~Entered() {
    const std::lock_guard lock(world().mutex);
    if (comm_) comm_->is_busy = false;
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;
  NcclResult result() const { return result_; }
  const std::shared_ptr<Comm>& comm() const { return comm_; }

 private:
  NcclResult result_ = NcclResult::kSuccess;
  std::shared_ptr<Comm> comm_;
};

NcclResult get_version(int* version) {
  *version = 22300;
  return NcclResult::kSuccess;
}
const char* get_error_string(NcclResult result) {
  static constexpr const char* kTexts[] = {"no error",
                                           "unhandled cuda error",
                                           "unhandled system error",
                                           "internal error",
                                           "invalid argument",
                                           "invalid usage",
                                           "remote process exited or there was a network error",
                                           "in progress",
                                           "timeout"};
  return kTexts[static_cast<size_t>(result)];
}
const char* get_last_error(NcclComm) { return "the fake's last words"; }

NcclResult get_unique_id(NcclUniqueId* id) {
  const std::lock_guard lock(world().mutex);
  std::memset(id->bytes, 0, sizeof id->bytes);
  const std::string text = concat("id ", ++world().ids);
  std::memcpy(id->bytes, text.data(), text.size());
  return failure_of("ncclGetUniqueId", 0);
}

NcclResult comm_init(NcclComm* comm, int size, NcclUniqueId id, int rank, NcclConfig* config) {
  const std::lock_guard lock(world().mutex);
  if (config->magic != 0xcafebeef || config->size != sizeof(NcclConfig) || config->is_blocking != 0) {
    world().misuses.push_back("a configuration that is none");
  }
  if (const NcclResult result = failure_of("ncclCommInitRankConfig", rank); result != NcclResult::kSuccess)
    return result;
  auto& hub = world().hubs[std::string(id.bytes)];
  if (!hub) hub = std::make_shared<Hub>();
  ++hub->joined;
  auto made = std::make_shared<Comm>();
  made->hub = hub, made->rank = rank, made->size = size, made->questions = world().slow;
  *comm = made.get();
  world().comms.emplace(*comm, std::move(made));
  ++world().counts.made;
  return NcclResult::kInProgress;
}

NcclResult comm_async_error(NcclComm handle, NcclResult* result) {
  const Entered entered("ncclCommGetAsyncError", handle);
  if (entered.result() != NcclResult::kSuccess) return entered.result();
  const std::lock_guard lock(world().mutex);
  Comm& comm = *entered.comm();
  const auto error = world().async_errors.find(comm.rank);
  *result = NcclResult::kSuccess;
  if (comm.hub->joined < comm.size) *result = NcclResult::kInProgress;
  if (comm.questions > 0) --comm.questions, *result = NcclResult::kInProgress;
  if (error != world().async_errors.end()) *result = error->second;
  return NcclResult::kSuccess;
}

NcclResult comm_finalize(NcclComm handle) {
  const Entered entered("ncclCommFinalize", handle);
  if (entered.comm()) entered.comm()->is_finalized = true;
  return entered.result();
}
NcclResult comm_destroy(NcclComm handle) {
  const Entered entered("ncclCommDestroy", handle);
  if (entered.result() != NcclResult::kSuccess) return entered.result();
  const std::lock_guard lock(world().mutex);
  if (!entered.comm()->is_finalized) world().misuses.push_back("ncclCommDestroy before ncclCommFinalize");
  world().comms.erase(handle);
  ++world().counts.destroyed;
  return NcclResult::kSuccess;
}
NcclResult comm_abort(NcclComm handle) {
  if (group.depth > 0) {
    const std::lock_guard lock(world().mutex);
    world().misuses.push_back("ncclCommAbort in a group");
  }
  const Entered entered("ncclCommAbort", handle);
  if (!entered.comm()) return entered.result();
  const std::lock_guard lock(world().mutex);
  entered.comm()->is_aborted = true;
  // Incomplete operations keep their communicators, and these the hub, alive.
  entered.comm()->hub->collectives.clear();
  entered.comm()->hub->messages.clear();
  world().comms.erase(handle);
  ++world().counts.aborted;
  return entered.result();
}

NcclResult op_premul_sum(NcclOp* op, void* scalar, NcclType type, int residence, NcclComm handle) {
  const Entered entered("ncclRedOpCreatePreMulSum", handle);
  if (entered.result() != NcclResult::kSuccess) return entered.result();
  const std::lock_guard lock(world().mutex);
  if (residence != kNcclScalarOnHost) world().misuses.push_back("a factor on the device");
  double factor = 0;
  dispatch_floating(dtype_of_type(type), "fake", [&]<class T>() {
    T value;
    std::memcpy(&value, scalar, sizeof value);
    factor = static_cast<double>(value);
  });
  *op = static_cast<NcclOp>(++world().ops);
  entered.comm()->factors[world().ops] = factor;
  return NcclResult::kSuccess;
}
NcclResult op_destroy(NcclOp op, NcclComm handle) {
  const Entered entered("ncclRedOpDestroy", handle);
  if (entered.result() != NcclResult::kSuccess) return entered.result();
  const std::lock_guard lock(world().mutex);
  if (entered.comm()->factors.erase(static_cast<int>(op)) == 0) world().misuses.push_back("no such op");
  return NcclResult::kSuccess;
}

NcclResult group_start() {
  const std::lock_guard lock(world().mutex);
  const NcclResult result = failure_of("ncclGroupStart", -1);
  if (result == NcclResult::kSuccess) ++group.depth;
  return result;
}
NcclResult group_end() {
  Group ended;
  {
    const std::lock_guard lock(world().mutex);
    if (group.depth == 0) {
      world().misuses.push_back("ncclGroupEnd without a start");
      return NcclResult::kInvalidUsage;
    }
    if (--group.depth > 0) return NcclResult::kSuccess;
    ended = std::exchange(group, {});
    if (const NcclResult result = failure_of("ncclGroupEnd", -1); result != NcclResult::kSuccess) return result;
  }
  std::map<NcclStream, std::vector<CallPtr>> launches;
  for (auto& [stream, call] : ended.calls) launches[stream].push_back(std::move(call));
  for (auto& [stream, calls] : launches) launch(stream, std::move(calls));
  return NcclResult::kSuccess;
}

NcclResult take(const char* function, Call call, NcclComm handle, NcclStream stream) {
  const Entered entered(function, handle);
  if (entered.result() != NcclResult::kSuccess) return entered.result();
  bool is_slow = false;
  {
    const std::lock_guard lock(world().mutex);
    Comm& comm = *entered.comm();
    call.comm = entered.comm();
    switch (call.kind) {
      case Kind::kSend: call.number = ++comm.sent[call.root]; break;
      case Kind::kRecv: call.number = ++comm.received[call.root]; break;
      default: call.number = ++comm.collectives;
    }
    if (const auto factor = comm.factors.find(static_cast<int>(call.op)); factor != comm.factors.end()) {
      call.factor = factor->second;
    }
    if (static_cast<int>(call.op) > 4 && call.op < static_cast<NcclOp>(100)) world().misuses.push_back("no such op");
    if (comm.is_finalized) world().misuses.push_back(concat(function, " after ncclCommFinalize"));
    is_slow = group.depth == 0 && world().slow_calls > 0;
    if (is_slow) comm.questions = world().slow_calls;
  }
  if (group.depth > 0) {
    group.calls.emplace_back(stream, std::make_shared<Call>(std::move(call)));
    return NcclResult::kSuccess;
  }
  launch(stream, {std::make_shared<Call>(std::move(call))});
  return is_slow ? NcclResult::kInProgress : NcclResult::kSuccess;
}

NcclResult all_reduce(const void* in, void* out, size_t count, NcclType type, NcclOp op, NcclComm comm, NcclStream s) {
  return take("ncclAllReduce", {Kind::kAllReduce, in, out, count, type, op, 0, nullptr}, comm, s);
}
NcclResult reduce(const void* in, void* out, size_t count, NcclType type, NcclOp op, int root, NcclComm comm,
                  NcclStream s) {
  return take("ncclReduce", {Kind::kReduce, in, out, count, type, op, root, nullptr}, comm, s);
}
NcclResult broadcast(const void* in, void* out, size_t count, NcclType type, int root, NcclComm comm, NcclStream s) {
  return take("ncclBroadcast", {Kind::kBroadcast, in, out, count, type, NcclOp::kSum, root, nullptr}, comm, s);
}
NcclResult all_gather(const void* in, void* out, size_t count, NcclType type, NcclComm comm, NcclStream s) {
  return take("ncclAllGather", {Kind::kAllGather, in, out, count, type, NcclOp::kSum, 0, nullptr}, comm, s);
}
NcclResult reduce_scatter(const void* in, void* out, size_t count, NcclType type, NcclOp op, NcclComm comm,
                          NcclStream s) {
  return take("ncclReduceScatter", {Kind::kReduceScatter, in, out, count, type, op, 0, nullptr}, comm, s);
}
NcclResult send(const void* in, size_t count, NcclType type, int peer, NcclComm comm, NcclStream s) {
  return take("ncclSend", {Kind::kSend, in, nullptr, count, type, NcclOp::kSum, peer, nullptr}, comm, s);
}
NcclResult recv(void* out, size_t count, NcclType type, int peer, NcclComm comm, NcclStream s) {
  return take("ncclRecv", {Kind::kRecv, nullptr, out, count, type, NcclOp::kSum, peer, nullptr}, comm, s);
}

}  // namespace

const NcclApi& api() {
  static constexpr NcclApi table{.get_version = get_version,
                                 .get_error_string = get_error_string,
                                 .get_last_error = get_last_error,
                                 .get_unique_id = get_unique_id,
                                 .comm_init = comm_init,
                                 .comm_finalize = comm_finalize,
                                 .comm_destroy = comm_destroy,
                                 .comm_abort = comm_abort,
                                 .comm_async_error = comm_async_error,
                                 .op_premul_sum = op_premul_sum,
                                 .op_destroy = op_destroy,
                                 .group_start = group_start,
                                 .group_end = group_end,
                                 .all_reduce = all_reduce,
                                 .reduce = reduce,
                                 .broadcast = broadcast,
                                 .all_gather = all_gather,
                                 .reduce_scatter = reduce_scatter,
                                 .send = send,
                                 .recv = recv};
  return table;
}

void reset() {
  World& all = world();
  const std::lock_guard lock(all.mutex);
  all.comms.clear();
  all.hubs.clear();
  all.failures.clear();
  all.async_errors.clear();
  all.misuses.clear();
  all.counts = {};
  all.slow = all.slow_calls = 0;
}

void fail(const std::string& function, NcclResult result, int rank, int from_call) {
  const std::lock_guard lock(world().mutex);
  world().failures[function] = {result, rank, from_call, {}};
}
void make_slow(int questions) {
  const std::lock_guard lock(world().mutex);
  world().slow = questions;
}
void make_calls_slow(int questions) {
  const std::lock_guard lock(world().mutex);
  world().slow_calls = questions;
}
void set_async_error(NcclResult result, int rank) {
  const std::lock_guard lock(world().mutex);
  world().async_errors[rank] = result;
}
Counts counts() {
  const std::lock_guard lock(world().mutex);
  return world().counts;
}
std::vector<std::string> misuses() {
  const std::lock_guard lock(world().mutex);
  return world().misuses;
}

}  // namespace tensord::distributed::fake_nccl
