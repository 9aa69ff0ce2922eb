#include "core/distributed/local/local_backend.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <numeric>
#include <tuple>
#include <vector>

#include "core/base/error.h"
#include "core/base/mutex.h"

namespace tensord::distributed {
namespace {

// memcpy must not get a null pointer, which an empty buffer may be.
void copy_bytes(std::byte* to, const std::byte* from, size_t count) {
  if (count > 0 && to != from) std::memcpy(to, from, count);
}

// One operation, in which all ranks see each other's memory.
struct Meeting {
  struct Part {
    const std::byte* in = nullptr;
    std::byte* out = nullptr;
    std::span<const size_t> sizes = {};
  };
  std::vector<Part> parts;
  int joined = 0;
  int arrived = 0;  // at the next step
  uint64_t steps_done = 0;
};

// State shared by the ranks of one group.
class Hub {
 public:
  explicit Hub(int size) : size_(size) {}

  std::shared_ptr<Meeting> join(int rank, const BackendCall& call, Meeting::Part part) {
    std::shared_ptr<Meeting> meeting;
    {
      const MutexLock lock(mutex_);
      std::shared_ptr<Meeting>& open = open_[call.tag];
      if (!open) {
        open = std::make_shared<Meeting>();
        open->parts.resize(static_cast<size_t>(size_));
      }
      meeting = open;
      meeting->parts[static_cast<size_t>(rank)] = part;
      if (++meeting->joined == size_) open_.erase(call.tag);
    }
    step(*meeting, call);
    return meeting;
  }

  // Returns when all ranks have reached this step.
  void step(Meeting& meeting, const BackendCall& call) {
    MutexLock lock(mutex_);
    check_alive();
    const uint64_t steps_done = meeting.steps_done;
    if (++meeting.arrived == size_) {
      meeting.arrived = 0;
      ++meeting.steps_done;
      changed_.notify_all();
      return;
    }
    changed_.wait_until(lock, call.deadline,
                        [&]() TENSORD_REQUIRES(mutex_) { return is_aborted_ || meeting.steps_done != steps_done; });
    if (meeting.steps_done != steps_done) return;
    check_alive();
    fail(ErrorCode::kDeadlineExceeded, "timed out waiting for other ranks");
  }

  void post(int from, int to, uint64_t slot, std::vector<std::byte> bytes) {
    const MutexLock lock(mutex_);
    check_alive();
    messages_[{to, slot, from}].push_back(std::move(bytes));
    changed_.notify_all();
  }

  int take(std::span<const int> peers, int to, uint64_t slot, std::byte* data, size_t size_bytes, SteadyTime deadline) {
    MutexLock lock(mutex_);
    for (;;) {
      for (const int from : peers) {
        const auto found = messages_.find({to, slot, from});
        if (found == messages_.end()) continue;
        check_internal(found->second.front().size() == size_bytes, "a message of another size");
        copy_bytes(data, found->second.front().data(), size_bytes);
        found->second.pop_front();
        if (found->second.empty()) messages_.erase(found);
        return from;
      }
      check_alive();
      if (!changed_.wait_until(lock, deadline)) {
        fail(ErrorCode::kDeadlineExceeded, "timed out waiting for a message");
      }
    }
  }

  void abort() {
    const MutexLock lock(mutex_);
    is_aborted_ = true;
    changed_.notify_all();
  }

 private:
  void check_alive() const TENSORD_REQUIRES(mutex_) {
    if (is_aborted_) fail(ErrorCode::kUnavailable, "a rank has left, or ended the group");
  }

  const int size_;
  Mutex mutex_;
  CondVar changed_;
  bool is_aborted_ TENSORD_GUARDED_BY(mutex_) = false;
  std::map<uint32_t, std::shared_ptr<Meeting>> open_
      TENSORD_GUARDED_BY(mutex_);  // by tag: operations that some ranks have not joined yet
  std::map<std::tuple<int, uint64_t, int>, std::deque<std::vector<std::byte>>> messages_
      TENSORD_GUARDED_BY(mutex_);  // by receiver, slot, sender
};

// A sent message was copied, so there is nothing to wait for.
class SentMessage final : public Transfer {
 public:
  int wait(SteadyTime) override { return -1; }
};

class ComingMessage final : public Transfer {
 public:
  ComingMessage(std::shared_ptr<Hub> hub, int rank, std::byte* data, size_t size_bytes, std::vector<int> peers,
                uint64_t slot)
      : hub_(std::move(hub)),
        rank_(rank),
        data_(data),
        size_bytes_(size_bytes),
        peers_(std::move(peers)),
        slot_(slot) {}
  int wait(SteadyTime deadline) override { return hub_->take(peers_, rank_, slot_, data_, size_bytes_, deadline); }

 private:
  const std::shared_ptr<Hub> hub_;
  const int rank_;
  std::byte* const data_;
  const size_t size_bytes_;
  const std::vector<int> peers_;
  const uint64_t slot_;
};

class LocalBackend final : public Backend {
 public:
  LocalBackend(std::shared_ptr<Hub> hub, int rank, int size) : hub_(std::move(hub)), rank_(rank), size_(size) {}
  ~LocalBackend() override { hub_->abort(); }

  std::string name() const override { return "local"; }

  void broadcast(std::byte* data, size_t size_bytes, int root, const BackendCall& call) override {
    const auto meeting = hub_->join(rank_, call, {.in = data});
    copy_bytes(data, part(*meeting, root).in, size_bytes);
    hub_->step(*meeting, call);
  }

  void all_reduce(std::byte* data, const Elements& elements, const BackendCall& call) override {
    const auto meeting = hub_->join(rank_, call, {.in = data, .out = data});
    reduce_share(*meeting, elements, 0, size_);
    hub_->step(*meeting, call);
  }

  void reduce(std::byte* data, const Elements& elements, int root, const BackendCall& call) override {
    const auto meeting = hub_->join(rank_, call, {.in = data, .out = data});
    reduce_share(*meeting, elements, root, root + 1);
    hub_->step(*meeting, call);
  }

  void all_gather(const std::byte* in, std::byte* out, std::span<const size_t> sizes,
                  const BackendCall& call) override {
    const auto meeting = hub_->join(rank_, call, {.in = in});
    for (int rank = 0; rank < size_; ++rank) {
      const size_t bytes = sizes[static_cast<size_t>(rank)];
      copy_bytes(out, part(*meeting, rank).in, bytes);
      out += bytes;
    }
    hub_->step(*meeting, call);
  }

  void gather(const std::byte* in, std::byte* out, size_t size_bytes, int root, const BackendCall& call) override {
    const auto meeting = hub_->join(rank_, call, {.in = in});
    for (int rank = 0; rank_ == root && rank < size_; ++rank) {
      copy_bytes(out + static_cast<size_t>(rank) * size_bytes, part(*meeting, rank).in, size_bytes);
    }
    hub_->step(*meeting, call);
  }

  void scatter(const std::byte* in, std::byte* out, size_t size_bytes, int root, const BackendCall& call) override {
    const auto meeting = hub_->join(rank_, call, {.in = in});
    copy_bytes(out, part(*meeting, root).in + static_cast<size_t>(rank_) * size_bytes, size_bytes);
    hub_->step(*meeting, call);
  }

  void reduce_scatter(std::byte* in, std::byte* out, std::span<const size_t> counts, const Elements& elements,
                      const BackendCall& call) override {
    const auto meeting = hub_->join(rank_, call, {.in = in});
    const size_t first = std::accumulate(counts.begin(), counts.begin() + rank_, size_t{0});
    const size_t count = counts[static_cast<size_t>(rank_)];
    add_up(*meeting, elements, first, count, out);
    hub_->step(*meeting, call);
  }

  void all_to_all(const std::byte* in, std::span<const size_t> in_bytes, std::byte* out,
                  std::span<const size_t> out_bytes, const BackendCall& call) override {
    const auto meeting = hub_->join(rank_, call, {.in = in, .sizes = in_bytes});
    for (int rank = 0; rank < size_; ++rank) {
      const Meeting::Part& from = part(*meeting, rank);
      const size_t bytes = from.sizes[static_cast<size_t>(rank_)];
      check_internal(bytes == out_bytes[static_cast<size_t>(rank)], "all_to_all: parts do not fit");
      copy_bytes(out, from.in + std::accumulate(from.sizes.begin(), from.sizes.begin() + rank_, size_t{0}), bytes);
      out += bytes;
    }
    hub_->step(*meeting, call);
  }

  void barrier(const BackendCall& call) override { hub_->join(rank_, call, {}); }

  std::unique_ptr<Transfer> start_send(const std::byte* data, size_t size_bytes, int peer, uint64_t slot) override {
    hub_->post(rank_, peer, slot, std::vector<std::byte>(data, data + size_bytes));
    return std::make_unique<SentMessage>();
  }

  std::unique_ptr<Transfer> start_recv(std::byte* data, size_t size_bytes, std::span<const int> peers,
                                       uint64_t slot) override {
    return std::make_unique<ComingMessage>(hub_, rank_, data, size_bytes, std::vector<int>(peers.begin(), peers.end()),
                                           slot);
  }

  void abort() override { hub_->abort(); }

 private:
  static const Meeting::Part& part(const Meeting& meeting, int rank) {
    return meeting.parts[static_cast<size_t>(rank)];
  }

  // Sums `count` elements of all ranks from `first` on into `out`, in rank order.
  void add_up(const Meeting& meeting, const Elements& elements, size_t first, size_t count, std::byte* out) const {
    const size_t at = first * elements.size_bytes;
    copy_bytes(out, part(meeting, 0).in + at, count * elements.size_bytes);
    for (int rank = 1; rank < size_; ++rank) elements.reduce(out, out, part(meeting, rank).in + at, count);
  }

  // Reduces this rank's share of the elements into the memory of ranks `begin` to `end`. No other rank touches these
  // elements.
  void reduce_share(const Meeting& meeting, const Elements& elements, int begin, int end) const {
    const auto bound = [&](int rank) {
      return elements.count * static_cast<size_t>(rank) / static_cast<size_t>(size_);
    };
    const size_t first = bound(rank_), count = bound(rank_ + 1) - first;
    std::vector<std::byte> sum(count * elements.size_bytes);
    add_up(meeting, elements, first, count, sum.data());
    for (int rank = begin; rank < end; ++rank) {
      copy_bytes(part(meeting, rank).out + first * elements.size_bytes, sum.data(), sum.size());
    }
  }

  const std::shared_ptr<Hub> hub_;
  const int rank_, size_;
};

}  // namespace

BackendFactory local_backends() {
  struct Hubs {
    Mutex mutex;
    std::map<std::string, std::weak_ptr<Hub>> by_name TENSORD_GUARDED_BY(mutex);
  };
  return [hubs = std::make_shared<Hubs>()](const std::shared_ptr<Store>&, const std::string& name, int rank, int size,
                                           Milliseconds) -> std::unique_ptr<Backend> {
    const MutexLock lock(hubs->mutex);
    std::shared_ptr<Hub> hub = hubs->by_name[name].lock();
    if (!hub) hubs->by_name[name] = hub = std::make_shared<Hub>(size);
    return std::make_unique<LocalBackend>(hub, rank, size);
  };
}

}  // namespace tensord::distributed
