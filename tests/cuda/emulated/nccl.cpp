// NCCL's functions on the emulated devices, for ranks that are processes of this machine. They refuse what NCCL
// refuses: two ranks on one device, memory of another device, operations that it does not have. A communicator is a
// file in /dev/shm with a channel from each rank to each; data goes through them when the streams' turns come.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/distributed/nccl/nccl_api.h"
#include "kernels/cuda/libraries/library.h"
#include "tests/cuda/emulated/libraries.h"
#include "tests/cuda/emulated/nccl_elements.h"

#define TENSORD_NCCL extern "C" [[gnu::visibility("default")]] NcclResult

namespace tensord::cuda::nccl {
namespace {

using namespace distributed;
using emulated::require;

constexpr int kMaxRanks = 8;
constexpr size_t kPieceBytes = size_t{32} << 10;
constexpr int kFirstOwnOp = 16;

constexpr int kInvalidUsage = static_cast<int>(NcclResult::kInvalidUsage);

// What is in the file; zeros at first.
struct Channel {
  std::atomic<uint32_t> used_bytes;  // 0: free
  std::byte bytes[kPieceBytes];
};
struct Shared {
  std::atomic<int32_t> joined;
  std::atomic<int32_t> devices[kMaxRanks];
  Channel channels[kMaxRanks][kMaxRanks];  // from, to
};

struct OwnOp {
  NcclType type;
  double factor;
};

// Under machine_mutex(), but for what is atomic.
struct Comm {
  ~Comm() {
    if (shared) munmap(shared, sizeof(Shared));
    if (file >= 0) close(file);
  }
  Shared* shared = nullptr;
  int file = -1;
  std::string name;
  int rank = 0, size = 0, device = 0;
  std::atomic<bool> is_aborted{false};
  std::atomic<NcclResult> state{NcclResult::kInProgress};
  std::map<int, OwnOp> ops;
};

std::map<void*, std::shared_ptr<Comm>>& comms() {
  static auto* const all = new std::map<void*, std::shared_ptr<Comm>>;
  return *all;
}
std::shared_ptr<Comm> known(NcclComm comm) {
  const auto found = comms().find(comm);
  require(found != comms().end(), kInvalidArgument, "the communicator was not made, or is destroyed");
  return found->second;
}

template <class Fn>
NcclResult checked(const Fn& fn) {
  return static_cast<NcclResult>(emulated::checked<int>([&] {
    fn();
    return 0;
  }));
}

// --- ranks

// A rank that lives holds a lock on its byte of the file.
struct flock lock_of(int rank) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  return lock;
}
bool is_alive(const Comm& comm, int rank) {
  struct flock lock = lock_of(rank);
  return rank == comm.rank || fcntl(comm.file, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

void join(Comm& comm) {
  comm.file = shm_open(comm.name.c_str(), O_RDWR, 0600);
  require(comm.file >= 0, kInvalidArgument, "the unique id is of no communicator");
  void* const data = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, comm.file, 0);
  require(data != MAP_FAILED, static_cast<int>(NcclResult::kSystemError), "no memory");
  comm.shared = static_cast<Shared*>(data);
  struct flock lock = lock_of(comm.rank);
  require(fcntl(comm.file, F_OFD_SETLK, &lock) == 0, kInvalidArgument, "a rank is there twice");
  comm.shared->devices[comm.rank] = comm.device;
  if (++comm.shared->joined == comm.size) shm_unlink(comm.name.c_str());
}

// Whether all ranks are there, and live.
void look(Comm& comm) {
  NcclResult state = comm.state;
  if (state == NcclResult::kInProgress && comm.shared->joined == comm.size) {
    const std::set<int> devices(comm.shared->devices, comm.shared->devices + comm.size);
    state = devices.size() == static_cast<size_t>(comm.size) ? NcclResult::kSuccess : NcclResult::kInvalidUsage;
    if (state != NcclResult::kSuccess) emulated::refusal() = "Duplicate GPU detected";
  }
  if (state == NcclResult::kSuccess) {
    for (int rank = 0; rank < comm.size; ++rank) {
      if (is_alive(comm, rank)) continue;
      state = NcclResult::kRemoteError;
      emulated::refusal() = "connection closed by rank " + std::to_string(rank);
    }
  }
  comm.state = state;
}

// --- transfers

struct Transfer {
  bool is_sent = false;
  int peer = 0;
  std::byte* data = nullptr;
  size_t left = 0;
};
// A function that was called: what moves, and what is done with it then.
struct Call {
  std::shared_ptr<Comm> comm;
  StreamHandle stream = nullptr;
  std::vector<Transfer> transfers;
  std::function<void()> finish;
};

// Moves a piece if the channel lets it.
bool move_piece(const Comm& comm, Transfer& transfer) {
  Channel& channel = transfer.is_sent ? comm.shared->channels[comm.rank][transfer.peer]
                                      : comm.shared->channels[transfer.peer][comm.rank];
  const uint32_t used = channel.used_bytes.load(std::memory_order_acquire);
  if (transfer.is_sent != (used == 0)) return false;
  const size_t size = transfer.is_sent ? std::min(transfer.left, kPieceBytes) : std::min<size_t>(transfer.left, used);
  std::memcpy(transfer.is_sent ? channel.bytes : transfer.data, transfer.is_sent ? transfer.data : channel.bytes, size);
  channel.used_bytes.store(transfer.is_sent ? static_cast<uint32_t>(size) : 0, std::memory_order_release);
  transfer.data += size;
  transfer.left -= size;
  return true;
}

// Whether all of it is done, or never will be. Messages of one channel go one after another.
bool go_on(const std::vector<Call>& calls, std::vector<Transfer*>& open) {
  for (bool has_moved = true; has_moved && !open.empty();) {
    has_moved = false;
    std::set<std::pair<bool, int>> taken;
    for (Transfer* const transfer : open) {
      if (!taken.emplace(transfer->is_sent, transfer->peer).second) continue;
      has_moved = move_piece(*calls.front().comm, *transfer) || has_moved;
    }
    std::erase_if(open, [](const Transfer* transfer) { return transfer->left == 0; });
  }
  if (!open.empty()) return calls.front().comm->is_aborted;
  for (const Call& call : calls) {
    if (call.finish) call.finish();
  }
  return true;
}

thread_local int group_depth = 0;
thread_local std::vector<Call> group;

void queue(std::vector<Call> calls) {
  if (calls.empty()) return;
  StreamHandle const stream = calls.front().stream;
  const auto kept = std::make_shared<std::vector<Call>>(std::move(calls));
  auto open = std::make_shared<std::vector<Transfer*>>();
  for (Call& call : *kept) {
    for (Transfer& transfer : call.transfers) {
      if (transfer.left > 0) open->push_back(&transfer);
    }
  }
  emulated::queue_attempt(stream, [kept, open] { return go_on(*kept, *open); });
}
void add(Call call) {
  if (group_depth == 0) return queue({std::move(call)});
  require(group.empty() || (group.front().stream == call.stream && group.front().comm == call.comm), kInvalidUsage,
          "a group with several communicators or streams is not emulated");
  group.push_back(std::move(call));
}

// --- calls

class Builder {
 public:
  Builder(NcclComm comm, NcclStream stream) {
    call_.comm = known(comm);
    call_.stream = static_cast<StreamHandle>(stream);
    require(call_.comm->state == NcclResult::kSuccess, kInvalidUsage, "the communicator is not ready");
    require(emulated::device_of_stream(call_.stream) == call_.comm->device, kInvalidUsage,
            "a stream of another device");
  }
  const Comm& comm() const { return *call_.comm; }
  size_t ranks() const { return static_cast<size_t>(call_.comm->size); }

  std::byte* memory(const void* address, size_t size_bytes) const {
    if (size_bytes == 0) return nullptr;
    emulated::require_memory(comm().device, address, size_bytes, 1, kInvalidArgument, "the data");
    return static_cast<std::byte*>(emulated::inside(address));
  }
  void check_root(int root) const {
    require(root >= 0 && root < comm().size, kInvalidArgument, "there is no such rank");
  }
  void send(int peer, std::byte* data, size_t size) { call_.transfers.push_back({true, peer, data, size}); }
  void receive(int peer, std::byte* data, size_t size) { call_.transfers.push_back({false, peer, data, size}); }

  // Every rank sends part r of its data, of `size` bytes, to the ranks r that reduce; parts may be the same.
  void reduce(NcclType type, NcclOp op, size_t count, std::byte* out, const std::function<std::byte*(int)>& part_for,
              const std::function<bool(int)>& reduces) {
    double factor = 1;
    if (static_cast<int>(op) >= kFirstOwnOp) {
      const auto own = comm().ops.find(static_cast<int>(op));
      require(own != comm().ops.end() && own->second.type == type, kInvalidArgument, "there is no such operation");
      factor = own->second.factor;
      op = NcclOp::kSum;
    }
    require(static_cast<int>(op) >= 0 && op <= NcclOp::kAvg, kInvalidArgument, "there is no such operation");
    const size_t size = count * size_of(type);
    for (int peer = 0; peer < comm().size; ++peer) {
      if (peer != comm().rank && reduces(peer)) send(peer, part_for(peer), size);
    }
    if (!reduces(comm().rank)) return;
    auto received = std::make_shared<std::vector<std::vector<std::byte>>>(ranks());
    std::vector<const std::byte*> parts(ranks(), part_for(comm().rank));
    for (int peer = 0; peer < comm().size; ++peer) {
      if (peer == comm().rank) continue;
      std::vector<std::byte>& bytes = (*received)[static_cast<size_t>(peer)];
      bytes.resize(size);
      parts[static_cast<size_t>(peer)] = bytes.data();
      receive(peer, bytes.data(), size);
    }
    call_.finish = [=] {
      static_cast<void>(received);  // `parts` point there
      reduce_parts(type, op, factor, parts, count, out);
    };
  }
  void finish(std::function<void()> fn) { call_.finish = std::move(fn); }
  void queue() { add(std::move(call_)); }

 private:
  Call call_;
};

}  // namespace

// --- NCCL's functions

TENSORD_NCCL ncclGetVersion(int* version) {
  *version = 22800;
  return NcclResult::kSuccess;
}
extern "C" [[gnu::visibility("default")]] const char* ncclGetErrorString(NcclResult result) {
  switch (result) {
    case NcclResult::kInvalidUsage: return "invalid usage";
    case NcclResult::kInvalidArgument: return "invalid argument";
    case NcclResult::kRemoteError: return "remote process exited or there was a network error";
    default: return "unhandled error";
  }
}
extern "C" [[gnu::visibility("default")]] const char* ncclGetLastError(NcclComm) { return emulated::refusal().c_str(); }

TENSORD_NCCL ncclGetUniqueId(NcclUniqueId* id) {
  static std::atomic<int> made{0};
  const std::string name = "/tensord_nccl_" + std::to_string(getpid()) + "_" + std::to_string(made++);
  const int file = shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  if (file < 0 || ftruncate(file, sizeof(Shared)) != 0) return NcclResult::kSystemError;
  close(file);
  *id = {};
  name.copy(id->bytes, sizeof(id->bytes) - 1);
  return NcclResult::kSuccess;
}

TENSORD_NCCL ncclCommInitRankConfig(NcclComm* out, int size, NcclUniqueId id, int rank, NcclConfig* config) {
  const NcclResult result = checked([&] {
    require(size > 0 && size <= kMaxRanks && rank >= 0 && rank < size, kInvalidArgument, "there is no such rank");
    require(config->magic == 0xcafebeef && config->is_blocking == 0, kInvalidArgument, "the configuration");
    const auto comm = std::make_shared<Comm>();
    comm->name.assign(id.bytes, strnlen(id.bytes, sizeof(id.bytes)));
    comm->rank = rank;
    comm->size = size;
    comm->device = current_device();
    join(*comm);
    comms()[comm.get()] = comm;
    *out = comm.get();
  });
  return result == NcclResult::kSuccess ? NcclResult::kInProgress : result;
}

TENSORD_NCCL ncclCommGetAsyncError(NcclComm comm, NcclResult* result) {
  return checked([&] {
    Comm& found = *known(comm);
    look(found);
    *result = found.state;
  });
}
TENSORD_NCCL ncclCommFinalize(NcclComm comm) {
  return checked([&] { known(comm); });
}
TENSORD_NCCL ncclCommDestroy(NcclComm comm) {
  return checked([&] { comms().erase(known(comm).get()); });
}
TENSORD_NCCL ncclCommAbort(NcclComm comm) {
  return checked([&] {
    const std::shared_ptr<Comm> found = known(comm);
    found->is_aborted = true;
    if (found->state == NcclResult::kInProgress) shm_unlink(found->name.c_str());
    comms().erase(comm);
  });
}

TENSORD_NCCL ncclRedOpCreatePreMulSum(NcclOp* op, void* scalar, NcclType type, int residence, NcclComm comm) {
  return checked([&] {
    Comm& found = *known(comm);
    require(residence == kNcclScalarOnHost, kInvalidArgument, "a scalar on the device is not emulated");
    int number = kFirstOwnOp;
    while (found.ops.contains(number)) ++number;
    with_type(type, [&]<class T>(T value) {
      std::memcpy(&value, scalar, sizeof(value));
      found.ops[number] = {type, static_cast<double>(static_cast<Sum<T>>(value))};
    });
    *op = static_cast<NcclOp>(number);
  });
}
TENSORD_NCCL ncclRedOpDestroy(NcclOp op, NcclComm comm) {
  return checked([&] {
    require(known(comm)->ops.erase(static_cast<int>(op)) == 1, kInvalidArgument, "there is no such operation");
  });
}

TENSORD_NCCL ncclGroupStart() {
  ++group_depth;
  return NcclResult::kSuccess;
}
TENSORD_NCCL ncclGroupEnd() {
  return checked([&] {
    require(group_depth > 0, kInvalidUsage, "a group ends that was not begun");
    if (--group_depth == 0) queue(std::exchange(group, {}));
  });
}

TENSORD_NCCL ncclAllReduce(const void* in, void* out, size_t count, NcclType type, NcclOp op, NcclComm comm,
                           NcclStream stream) {
  return checked([&] {
    Builder call(comm, stream);
    std::byte* const from = call.memory(in, count * size_of(type));
    call.reduce(
        type, op, count, call.memory(out, count * size_of(type)), [=](int) { return from; }, [](int) { return true; });
    call.queue();
  });
}
TENSORD_NCCL ncclReduce(const void* in, void* out, size_t count, NcclType type, NcclOp op, int root, NcclComm comm,
                        NcclStream stream) {
  return checked([&] {
    Builder call(comm, stream);
    call.check_root(root);
    std::byte* const from = call.memory(in, count * size_of(type));
    std::byte* const to = call.comm().rank == root ? call.memory(out, count * size_of(type)) : nullptr;
    call.reduce(
        type, op, count, to, [=](int) { return from; }, [root](int rank) { return rank == root; });
    call.queue();
  });
}
TENSORD_NCCL ncclReduceScatter(const void* in, void* out, size_t count, NcclType type, NcclOp op, NcclComm comm,
                               NcclStream stream) {
  return checked([&] {
    Builder call(comm, stream);
    const size_t size = count * size_of(type);
    std::byte* const from = call.memory(in, size * call.ranks());
    call.reduce(
        type, op, count, call.memory(out, size), [=](int rank) { return from + static_cast<size_t>(rank) * size; },
        [](int) { return true; });
    call.queue();
  });
}
TENSORD_NCCL ncclBroadcast(const void* in, void* out, size_t count, NcclType type, int root, NcclComm comm,
                           NcclStream stream) {
  return checked([&] {
    Builder call(comm, stream);
    call.check_root(root);
    const size_t size = count * size_of(type);
    std::byte* const to = call.memory(out, size);
    if (call.comm().rank != root) {
      call.receive(root, to, size);
    } else {
      std::byte* const from = call.memory(in, size);
      for (int peer = 0; peer < call.comm().size; ++peer) {
        if (peer != root) call.send(peer, from, size);
      }
      call.finish([=] { std::memmove(to, from, size); });
    }
    call.queue();
  });
}
TENSORD_NCCL ncclAllGather(const void* in, void* out, size_t count, NcclType type, NcclComm comm, NcclStream stream) {
  return checked([&] {
    Builder call(comm, stream);
    const size_t size = count * size_of(type);
    std::byte* const from = call.memory(in, size);
    std::byte* const to = call.memory(out, size * call.ranks());
    for (int peer = 0; peer < call.comm().size; ++peer) {
      if (peer == call.comm().rank) continue;
      call.send(peer, from, size);
      call.receive(peer, to + static_cast<size_t>(peer) * size, size);
    }
    std::byte* const own = to + static_cast<size_t>(call.comm().rank) * size;
    call.finish([=] { std::memmove(own, from, size); });
    call.queue();
  });
}
TENSORD_NCCL ncclSend(const void* in, size_t count, NcclType type, int peer, NcclComm comm, NcclStream stream) {
  return checked([&] {
    Builder call(comm, stream);
    call.check_root(peer);
    call.send(peer, call.memory(in, count * size_of(type)), count * size_of(type));
    call.queue();
  });
}
TENSORD_NCCL ncclRecv(void* out, size_t count, NcclType type, int peer, NcclComm comm, NcclStream stream) {
  return checked([&] {
    Builder call(comm, stream);
    call.check_root(peer);
    call.receive(peer, call.memory(out, count * size_of(type)), count * size_of(type));
    call.queue();
  });
}

}  // namespace tensord::cuda::nccl
