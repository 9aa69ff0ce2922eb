// The MPI backend, a shared library of its own: see ../module_interface.h.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstring>
#include <deque>
#include <map>
#include <numeric>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/distributed/mpi/module_interface.h"

namespace tensord::distributed {
namespace {

using namespace std::chrono_literals;

// MPI counts are ints.
constexpr size_t kMaxCount = size_t{1} << 30;
// Once set, MPI_Finalize is not called, because the ranks would wait for each other there.
std::atomic<bool> is_broken{false};

void check_mpi(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  is_broken = true;
  fail(ErrorCode::kUnavailable, "mpi: ", what, ": ", std::string(text.data(), static_cast<size_t>(length)));
}

void finalize() {
  int is_over = 0;
  MPI_Finalized(&is_over);
  if (!is_over && !is_broken) MPI_Finalize();
}

void start_mpi() {
  static const bool once = [] {
    int is_started = 0, provided = 0;
    MPI_Initialized(&is_started);
    if (is_started) {
      MPI_Query_thread(&provided);
    } else {
      check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
      std::atexit(finalize);
    }
    if (provided < MPI_THREAD_MULTIPLE) {
      fail(ErrorCode::kFailedPrecondition, "mpi: this MPI does not allow several threads");
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    return true;
  }();
  (void)once;
}

// MPI's reduction callbacks take no user data, so each function in use gets a slot with a callback of its own.
class Reductions {
 public:
  MPI_Op op_of(ReduceFunction function) {
    const MutexLock lock(mutex_);
    for (size_t i = 0; i < count_; ++i) {
      if (functions_[i] == function) return ops_[i];
    }
    check_internal(count_ < kSlots, "more reductions than there are slots");
    functions_[count_] = function;
    check_mpi(MPI_Op_create(callers_[count_], /*commute=*/1, &ops_[count_]), "MPI_Op_create");
    return ops_[count_++];
  }

 private:
  static constexpr size_t kSlots = 160;  // operations times dtypes
  template <size_t I>
  static void call(void* in, void* in_out, int* count, MPI_Datatype*) {
    functions_[I](in_out, in, in_out, static_cast<size_t>(*count));
  }
  template <size_t... I>
  static constexpr std::array<MPI_User_function*, kSlots> make_callers(std::index_sequence<I...>) {
    return {&call<I>...};
  }
  static inline std::array<ReduceFunction, kSlots> functions_{};
  const std::array<MPI_User_function*, kSlots> callers_ = make_callers(std::make_index_sequence<kSlots>());
  Mutex mutex_;
  std::array<MPI_Op, kSlots> ops_ TENSORD_GUARDED_BY(mutex_){};
  size_t count_ TENSORD_GUARDED_BY(mutex_) = 0;
};
Reductions& reductions() {
  static Reductions all;
  return all;
}

// The datatype of elements of this size.
MPI_Datatype type_of(size_t size_bytes) {
  static Mutex mutex;
  static std::map<size_t, MPI_Datatype> types;
  const MutexLock lock(mutex);
  const auto [found, is_new] = types.try_emplace(size_bytes);
  if (is_new) {
    check_mpi(MPI_Type_contiguous(static_cast<int>(size_bytes), MPI_BYTE, &found->second), "MPI_Type_contiguous");
    check_mpi(MPI_Type_commit(&found->second), "MPI_Type_commit");
  }
  return found->second;
}

void copy_bytes(std::byte* to, const std::byte* from, size_t count) {
  if (count > 0 && to != from) std::memcpy(to, from, count);
}

// State shared by all calls of a group.
struct Shared {
  MPI_Comm collectives = MPI_COMM_NULL, messages = MPI_COMM_NULL;
  std::atomic<bool> is_aborted{false};

  // Polls until `is_done`. MPI has neither deadlines nor blocking waits that can be interrupted.
  template <class Done>
  void wait_until(const Done& is_done, SteadyTime deadline) const {
    for (int round = 0; !is_done(); ++round) {
      if (is_aborted) {
        is_broken = true;
        fail(ErrorCode::kUnavailable, "a rank has left, or ended the group");
      }
      if (std::chrono::steady_clock::now() >= deadline) {
        is_broken = true;
        fail(ErrorCode::kDeadlineExceeded, "timed out waiting for other ranks");
      }
      if (round < 200) {
        sched_yield();
      } else {
        std::this_thread::sleep_for(50us);
      }
    }
  }
  void wait(MPI_Request request, SteadyTime deadline) const {
    wait_until(
        [&] {
          int is_done = 0;
          check_mpi(MPI_Test(&request, &is_done, MPI_STATUS_IGNORE), "MPI_Test");
          return is_done != 0;
        },
        deadline);
  }
};

// Messages start with their slot. Messages that arrive before their recv are kept.
class Messages {
 public:
  explicit Messages(const Shared& shared) : shared_(shared) {}

  int take(std::span<const int> peers, uint64_t slot, std::byte* data, size_t size_bytes, SteadyTime deadline) {
    int from = -1;
    shared_.wait_until([&] { return (from = find(peers, slot, data, size_bytes)) >= 0; }, deadline);
    return from;
  }

 private:
  int find(std::span<const int> peers, uint64_t slot, std::byte* data, size_t size_bytes) {
    const MutexLock lock(mutex_);
    while (receive()) continue;
    for (const int peer : peers) {
      const auto found = kept_.find({peer, slot});
      if (found == kept_.end()) continue;
      const std::vector<std::byte>& message = found->second.front();
      check_internal(message.size() == sizeof slot + size_bytes, "a message of another size");
      copy_bytes(data, message.data() + sizeof slot, size_bytes);
      found->second.pop_front();
      if (found->second.empty()) kept_.erase(found);
      return peer;
    }
    return -1;
  }
  bool receive() TENSORD_REQUIRES(mutex_) {
    int is_there = 0, count = 0;
    MPI_Message message;
    MPI_Status status;
    check_mpi(MPI_Improbe(MPI_ANY_SOURCE, 0, shared_.messages, &is_there, &message, &status), "MPI_Improbe");
    if (!is_there) return false;
    MPI_Get_count(&status, MPI_BYTE, &count);
    std::vector<std::byte> bytes(static_cast<size_t>(count));
    check_mpi(MPI_Mrecv(bytes.data(), count, MPI_BYTE, &message, &status), "MPI_Mrecv");
    uint64_t slot = 0;
    check_internal(bytes.size() >= sizeof slot, "a message without a slot");
    std::memcpy(&slot, bytes.data(), sizeof slot);
    kept_[{status.MPI_SOURCE, slot}].push_back(std::move(bytes));
    return true;
  }

  const Shared& shared_;
  Mutex mutex_;
  std::map<std::pair<int, uint64_t>, std::deque<std::vector<std::byte>>> kept_
      TENSORD_GUARDED_BY(mutex_);  // by sender and slot
};

class Sent final : public Transfer {
 public:
  Sent(std::shared_ptr<const Shared> shared, const std::byte* data, size_t size_bytes, int peer, uint64_t slot)
      : shared_(std::move(shared)), bytes_(sizeof slot + size_bytes) {
    if (bytes_.size() > kMaxCount) fail(ErrorCode::kUnimplemented, "mpi: a message of more than 1 GiB");
    std::memcpy(bytes_.data(), &slot, sizeof slot);
    copy_bytes(bytes_.data() + sizeof slot, data, size_bytes);
    check_mpi(
        MPI_Isend(bytes_.data(), static_cast<int>(bytes_.size()), MPI_BYTE, peer, 0, shared_->messages, &request_),
        "MPI_Isend");
  }
  ~Sent() override {
    // MPI still reads the bytes, so they are leaked.
    if (request_ != MPI_REQUEST_NULL) new std::vector<std::byte>(std::move(bytes_));
  }
  int wait(SteadyTime deadline) override {
    shared_->wait(std::exchange(request_, MPI_REQUEST_NULL), deadline);
    return -1;
  }

 private:
  const std::shared_ptr<const Shared> shared_;
  std::vector<std::byte> bytes_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

class Received final : public Transfer {
 public:
  Received(Messages& messages, std::span<const int> peers, uint64_t slot, std::byte* data, size_t size_bytes)
      : messages_(messages), peers_(peers.begin(), peers.end()), slot_(slot), data_(data), size_bytes_(size_bytes) {}
  int wait(SteadyTime deadline) override { return messages_.take(peers_, slot_, data_, size_bytes_, deadline); }

 private:
  Messages& messages_;
  const std::vector<int> peers_;
  const uint64_t slot_;
  std::byte* const data_;
  const size_t size_bytes_;
};

class MpiBackend final : public Backend {
 public:
  MpiBackend(const std::shared_ptr<Store>& store, int rank, int size, Milliseconds timeout) : rank_(rank), size_(size) {
    start_mpi();
    int own = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &own);
    store->set(concat("mpi/", rank), std::to_string(own));
    std::vector<int> members;
    for (int r = 0; r < size; ++r) members.push_back(std::stoi(store->get(concat("mpi/", r), timeout)));
    MPI_Group world, group;
    check_mpi(MPI_Comm_group(MPI_COMM_WORLD, &world), "MPI_Comm_group");
    check_mpi(MPI_Group_incl(world, size, members.data(), &group), "MPI_Group_incl");
    check_mpi(MPI_Comm_create_group(MPI_COMM_WORLD, group, members.front(), &shared_->collectives),
              "MPI_Comm_create_group");
    check_mpi(MPI_Comm_dup(shared_->collectives, &shared_->messages), "MPI_Comm_dup");
    for (const MPI_Comm comm : {shared_->collectives, shared_->messages})
      MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
  }

  std::string name() const override { return "mpi"; }

  void broadcast(std::byte* data, size_t size_bytes, int root, const BackendCall& call) override {
    agree(call);
    for_pieces(size_bytes, [&](size_t first, int count) {
      MPI_Request request;
      check_mpi(MPI_Ibcast(data + first, count, MPI_BYTE, root, shared_->collectives, &request), "MPI_Ibcast");
      shared_->wait(request, call.deadline);
    });
  }

  void all_reduce(std::byte* data, const Elements& elements, const BackendCall& call) override {
    agree(call);
    const MPI_Op op = reductions().op_of(elements.reduce);
    const MPI_Datatype type = type_of(elements.size_bytes);
    for_pieces(elements.count, [&](size_t first, int count) {
      MPI_Request request;
      check_mpi(MPI_Iallreduce(MPI_IN_PLACE, data + first * elements.size_bytes, count, type, op, shared_->collectives,
                               &request),
                "MPI_Iallreduce");
      shared_->wait(request, call.deadline);
    });
  }

  void reduce(std::byte* data, const Elements& elements, int root, const BackendCall& call) override {
    agree(call);
    const MPI_Op op = reductions().op_of(elements.reduce);
    const MPI_Datatype type = type_of(elements.size_bytes);
    for_pieces(elements.count, [&](size_t first, int count) {
      std::byte* const at = data + first * elements.size_bytes;
      MPI_Request request;
      check_mpi(MPI_Ireduce(rank_ == root ? MPI_IN_PLACE : at, rank_ == root ? at : nullptr, count, type, op, root,
                            shared_->collectives, &request),
                "MPI_Ireduce");
      shared_->wait(request, call.deadline);
    });
  }

  void all_gather(const std::byte* in, std::byte* out, std::span<const size_t> sizes,
                  const BackendCall& call) override {
    agree(call);
    size_t at = 0;
    for (int root = 0; root < size_; ++root) {
      const size_t size_bytes = sizes[static_cast<size_t>(root)];
      if (root == rank_) copy_bytes(out + at, in, size_bytes);
      for_pieces(size_bytes, [&](size_t first, int count) {
        MPI_Request request;
        check_mpi(MPI_Ibcast(out + at + first, count, MPI_BYTE, root, shared_->collectives, &request), "MPI_Ibcast");
        shared_->wait(request, call.deadline);
      });
      at += size_bytes;
    }
  }

  void gather(const std::byte* in, std::byte* out, size_t size_bytes, int root, const BackendCall& call) override {
    agree(call);
    std::vector<size_t> sent(static_cast<size_t>(size_), 0), received(static_cast<size_t>(size_), 0);
    sent[static_cast<size_t>(root)] = size_bytes;
    if (rank_ == root) std::fill(received.begin(), received.end(), size_bytes);
    exchange(in, sent, out, received, call);
  }

  void scatter(const std::byte* in, std::byte* out, size_t size_bytes, int root, const BackendCall& call) override {
    agree(call);
    std::vector<size_t> sent(static_cast<size_t>(size_), rank_ == root ? size_bytes : 0);
    std::vector<size_t> received(static_cast<size_t>(size_), 0);
    received[static_cast<size_t>(root)] = size_bytes;
    exchange(in, sent, out, received, call);
  }

  // As in the Gloo backend: every rank receives its parts from all others and sums them in rank order.
  void reduce_scatter(std::byte* in, std::byte* out, std::span<const size_t> counts, const Elements& elements,
                      const BackendCall& call) override {
    const size_t own = counts[static_cast<size_t>(rank_)], own_bytes = own * elements.size_bytes;
    std::vector<size_t> sent;
    for (const size_t count : counts) sent.push_back(count * elements.size_bytes);
    std::vector<std::byte> parts(own_bytes * counts.size());
    agree(call);
    exchange(in, sent, parts.data(), std::vector<size_t>(counts.size(), own_bytes), call);
    copy_bytes(out, parts.data(), own_bytes);
    for (size_t rank = 1; rank < counts.size(); ++rank) elements.reduce(out, out, parts.data() + rank * own_bytes, own);
  }

  void all_to_all(const std::byte* in, std::span<const size_t> in_bytes, std::byte* out,
                  std::span<const size_t> out_bytes, const BackendCall& call) override {
    agree(call);
    exchange(in, in_bytes, out, out_bytes, call);
  }

  void barrier(const BackendCall& call) override { agree(call); }

  std::unique_ptr<Transfer> start_send(const std::byte* data, size_t size_bytes, int peer, uint64_t slot) override {
    check_alive();
    return std::make_unique<Sent>(shared_, data, size_bytes, peer, slot);
  }
  std::unique_ptr<Transfer> start_recv(std::byte* data, size_t size_bytes, std::span<const int> peers,
                                       uint64_t slot) override {
    check_alive();
    return std::make_unique<Received>(messages_, peers, slot, data, size_bytes);
  }

  void abort() override { shared_->is_aborted = true; }

 private:
  void check_alive() const {
    if (shared_->is_aborted) fail(ErrorCode::kUnavailable, "a rank has left, or ended the group");
  }

  // MPI matches whatever arrives, so ranks first check that all are in the same call. Ranks that are not block, as with
  // the other backends, until the group has found the rank that differs.
  void agree(const BackendCall& call) {
    check_alive();
    std::array<uint32_t, 2> tags{call.tag, ~call.tag};
    MPI_Request request;
    check_mpi(MPI_Iallreduce(MPI_IN_PLACE, tags.data(), 2, MPI_UINT32_T, MPI_MAX, shared_->collectives, &request),
              "MPI_Iallreduce");
    shared_->wait(request, call.deadline);
    if (tags[0] != ~tags[1]) shared_->wait_until([] { return false; }, call.deadline);
  }

  template <class Fn>
  static void for_pieces(size_t count, const Fn& fn) {
    for (size_t first = 0; first < count; first += kMaxCount) {
      fn(first, static_cast<int>(std::min(kMaxCount, count - first)));
    }
  }

  // Chunks between two ranks arrive in order. Nothing else on this communicator uses point-to-point messages.
  void exchange(const std::byte* in, std::span<const size_t> in_bytes, std::byte* out,
                std::span<const size_t> out_bytes, const BackendCall& call) {
    std::vector<MPI_Request> requests;
    size_t in_at = 0, out_at = 0;
    for (int peer = 0; peer < size_; ++peer) {
      const size_t sent = in_bytes[static_cast<size_t>(peer)], received = out_bytes[static_cast<size_t>(peer)];
      if (peer == rank_) {
        copy_bytes(out + out_at, in + in_at, received);
      } else {
        for_pieces(received, [&](size_t first, int count) {
          check_mpi(
              MPI_Irecv(out + out_at + first, count, MPI_BYTE, peer, 0, shared_->collectives, &requests.emplace_back()),
              "MPI_Irecv");
        });
        for_pieces(sent, [&](size_t first, int count) {
          check_mpi(
              MPI_Isend(in + in_at + first, count, MPI_BYTE, peer, 0, shared_->collectives, &requests.emplace_back()),
              "MPI_Isend");
        });
      }
      in_at += sent, out_at += received;
    }
    for (const MPI_Request request : requests) shared_->wait(request, call.deadline);
  }

  const int rank_, size_;
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  Messages messages_{*shared_};
};

class Module final : public MpiModule {
 public:
  const char* interface() const override { return kMpiInterface; }
  int rank() const override {
    start_mpi();
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
  }
  int size() const override {
    start_mpi();
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
  }
  std::string broadcast_text(const std::string& text) const override {
    start_mpi();
    std::array<char, 1024> bytes{};
    check_internal(text.size() < bytes.size(), "a text for all ranks is too long");
    std::memcpy(bytes.data(), text.data(), text.size());
    check_mpi(MPI_Bcast(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, 0, MPI_COMM_WORLD), "MPI_Bcast");
    return bytes.data();
  }
  std::string host() const override {
    start_mpi();
    std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
    int length = 0;
    check_mpi(MPI_Get_processor_name(name.data(), &length), "MPI_Get_processor_name");
    return {name.data(), static_cast<size_t>(length)};
  }
  std::unique_ptr<Backend> make_engine(std::shared_ptr<Store> store, int rank, int size,
                                       Milliseconds timeout) const override {
    return std::make_unique<MpiBackend>(store, rank, size, timeout);
  }
};

}  // namespace
}  // namespace tensord::distributed

extern "C" const tensord::distributed::MpiModule* tensord_mpi_module() {
  static const tensord::distributed::Module module;
  return &module;
}
