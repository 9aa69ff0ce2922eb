#include "core/distributed/group/process_group.h"

#include <algorithm>
#include <cstring>

#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/distributed/group/item.h"
#include "core/distributed/hmac.h"
#include "core/distributed/store/prefix_store.h"

namespace tensord::distributed {
namespace {

// Transfers that wait at the same time.
constexpr size_t kMaxTransfers = 64;

// FNV-1a.
uint64_t hash_of(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

// Never 0, which backends reserve.
uint32_t tag_of(const std::string& text) { return static_cast<uint32_t>(hash_of(text) >> 32) | 1; }

}  // namespace

ProcessGroup::ProcessGroup(std::shared_ptr<Store> store, std::string name, int rank, int size, BackendFactory backends,
                           GroupOptions options)
    : store_(std::move(store)),
      name_(std::move(name)),
      rank_(rank),
      size_(size),
      backends_(std::move(backends)),
      options_(std::move(options)),
      sent_(static_cast<size_t>(std::max(size, 0))),
      received_(sent_.size()),
      watched_(store_->clone()) {
  check(size > 0 && rank >= 0 && rank < size, "group ", name_, ": rank ", rank, " of ", size);
  backend_ = backends_(store_, name_, rank, size, options_.timeout);
  if (!options_.secret.empty()) prove_connections();
  transfers_ = std::make_unique<WorkThread>(kMaxTransfers);
  runner_ = Thread("group", [this] { run_queue(); });
  watcher_ = Thread("group-watch", [this] { watch(); });
  if (DeviceBackend* const device = backend_->on_device()) {
    device_watcher_ = Thread("group-device", [this, device] { watch_device(*device); });
  }
}

ProcessGroup::~ProcessGroup() {
  {
    const MutexLock lock(mutex_);
    is_closing_ = true;
  }
  changed_.notify_all();
  watched_->interrupt();
  backend_->abort();
  transfers_.reset();
  runner_.join();
  watcher_.join();
  if (device_watcher_.joinable()) device_watcher_.join();
}

// Each rank puts a fresh nonce into the store, which the others must answer on the backend's connections. Nobody can
// have seen it before.
void ProcessGroup::prove_connections() {
  const auto deadline = std::chrono::steady_clock::now() + options_.timeout;
  const auto nonce_key = [](int rank) { return concat("nonce/", rank); };
  store_->set(nonce_key(rank_), random_bytes(32));
  const auto proof = [&](int from, int to) {
    return hmac_sha256(options_.secret, concat(name_, " ", from, " ", to, " ") + store_->get(nonce_key(to)));
  };
  std::string shown, seen(static_cast<size_t>(size_) * 32, '\0');
  for (int to = 0; to < size_; ++to) shown += proof(rank_, to);
  all_to_all_on_host(reinterpret_cast<const std::byte*>(shown.data()), reinterpret_cast<std::byte*>(seen.data()), 32,
                     {tag_of("proof"), deadline});
  for (int from = 0; from < size_; ++from) {
    if (is_equal_in_constant_time(std::string_view(seen).substr(static_cast<size_t>(from) * 32, 32),
                                  proof(from, rank_)))
      continue;
    fail(ErrorCode::kFailedPrecondition, "group ", name_, ": what answers as rank ", from,
         " does not know the job's secret");
  }
}

void ProcessGroup::check_rank(const std::string& operation, const char* what, int rank) const {
  check(rank >= 0 && rank < size_, operation, ": ", what, " is rank ", rank, ", expected 0 to ", size_ - 1,
        " of group ", name_);
}

WorkPtr ProcessGroup::enqueue(Fingerprint fingerprint, Milliseconds timeout, Body body) {
  std::unique_ptr<DeviceEvent> ready;
  if (!fingerprint.device.is_host()) {
    ready = device_runtime(fingerprint.device).make_event();
    ready->record(current_stream(fingerprint.device));
  }
  std::shared_ptr<Item> item;
  std::optional<Error> failure;
  {
    const MutexLock lock(mutex_);
    const uint64_t number = ++last_number_;
    auto work = std::make_shared<Work>(number, concat(fingerprint.operation, " number ", number, fingerprint.agreed));
    item = std::make_shared<Item>(Item{.number = number,
                                       .fingerprint = std::move(fingerprint),
                                       .timeout = chosen(timeout),
                                       .body = std::move(body),
                                       .work = std::move(work),
                                       .context = ExecutionContext::detached(),
                                       .started = {},
                                       .ready = std::move(ready)});
    failure = put(item);
  }
  return begin(item, failure);
}

std::optional<Error> ProcessGroup::put(const std::shared_ptr<Item>& item) {
  if (!failure_) queue_.push_back(item);
  return failure_;
}

WorkPtr ProcessGroup::begin(const std::shared_ptr<Item>& item, const std::optional<Error>& failure) {
  if (failure) {
    item->work->finish(*failure);
  } else {
    changed_.notify_all();
  }
  return item->work;
}

void ProcessGroup::run_queue() {
  MutexLock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this]() TENSORD_REQUIRES(mutex_) { return is_closing_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const std::shared_ptr<Item> item = std::move(queue_.front());
    queue_.pop_front();
    std::optional<Error> failure = failure_;
    if (!failure && is_closing_) failure = Error(ErrorCode::kCancelled, concat(item->name(), ": the group was closed"));
    item->started = std::chrono::steady_clock::now();
    if (!failure) current_ = item;
    lock.unlock();
    if (failure) {
      item->work->finish(failure);
    } else {
      run_item(item);
    }
    lock.lock();
    current_.reset();
  }
}

void ProcessGroup::run_item(const std::shared_ptr<Item>& item) {
  const ExecutionScope scope(item->context);
  item->work->start();
  const BackendCall call{tag_of(item->text()), item->started + item->timeout, item->device()};
  std::optional<Error> error;
  bool is_launched = false;
  try {
    if (!item->is_message()) check_agreement(*item, call);
    is_launched = item->ready != nullptr;
    is_launched ? launch(*backend_->on_device(), item, call) : item->body(call);
  } catch (const Error& thrown) {
    error = thrown;
  } catch (const std::exception& thrown) {
    error = Error(ErrorCode::kInternal, thrown.what());
  }
  item->body = nullptr;  // releases its tensors
  if (error || !is_launched) finish_item(*item, error);
}

void ProcessGroup::finish_item(Item& item, const std::optional<Error>& error) {
  if (!error) return item.work->finish(std::nullopt, item.source_rank);
  {
    const MutexLock lock(mutex_);
    // The connections of the peers end with the group.
    if (is_closing_)
      return item.work->finish(Error(ErrorCode::kCancelled, concat(item.name(), ": the group was closed")));
  }
  std::string text = concat("rank ", rank_, ", ", item.name(), ": ", error->what());
  if (error->code() == ErrorCode::kDeadlineExceeded) text += ranks_that_have_not_come(item);
  // An error that all ranks see alike does not name a rank.
  const bool is_common = std::string_view(error->what()).starts_with("Detected mismatch");
  item.work->finish(end_with(is_common ? *error : Error(error->code(), text)));
}

void ProcessGroup::check_agreement(const Item& item, const BackendCall& call) {
  const bool is_checked = options_.checks_all || item.number <= options_.checked_first ||
                          (options_.checked_every > 0 && item.number % options_.checked_every == 0);
  if (!is_checked || size_ == 1) return;
  const uint64_t own = hash_of(item.text());
  std::vector<uint64_t> all(static_cast<size_t>(size_));
  all_gather_on_host(reinterpret_cast<const std::byte*>(&own), reinterpret_cast<std::byte*>(all.data()), sizeof(own),
                     {tag_of(concat("agreement ", item.number)), call.deadline});
  const bool is_agreed = std::all_of(all.begin(), all.end(), [own](uint64_t hash) { return hash == own; });
  if (!is_agreed) fail_disagreement(item, call.deadline);
}

// All ranks know that they disagree, so each of them describes its operation in the store.
void ProcessGroup::fail_disagreement(const Item& item, SteadyTime deadline) {
  const auto left = std::chrono::ceil<Milliseconds>(deadline - std::chrono::steady_clock::now());
  const auto key = [&](int rank) { return concat("mismatch/", item.number, "/", rank); };
  store_->set(key(rank_), item.name());
  std::string text = concat("Detected mismatch between operations of group ", name_, ":");
  for (int rank = 0; rank < size_; ++rank) {
    text += concat(rank ? "; rank " : " rank ", rank, " runs ",
                   store_->get(key(rank), std::clamp(left, Milliseconds(0), Milliseconds(5000))));
  }
  fail(ErrorCode::kInvalidArgument, text);
}

std::unique_ptr<ProcessGroup> ProcessGroup::new_group(std::span<const int> ranks, Milliseconds timeout) {
  const int number = ++groups_made_;
  check(!ranks.empty(), "new_group: no ranks");
  int own = -1;
  for (size_t i = 0; i < ranks.size(); ++i) {
    check_rank("new_group", "a member", ranks[i]);
    check(std::count(ranks.begin(), ranks.end(), ranks[i]) == 1, "new_group: rank ", ranks[i], " appears twice");
    if (ranks[i] == rank_) own = static_cast<int>(i);
  }
  // Members that list different ranks must not form one group.
  std::string list;
  for (const int rank : ranks) list += (list.empty() ? "" : ",") + std::to_string(rank);
  if (size_ > 1) {
    enqueue({"new_group", concat(", ranks ", list)}, kGroupsOwn, [this](const BackendCall& call) {
      barrier_on_host(call);
    })->wait();
  }
  if (own < 0) return nullptr;
  const std::string name = concat(name_, "/", number);
  GroupOptions options = options_;
  options.timeout = chosen(timeout);
  return std::make_unique<ProcessGroup>(std::make_shared<PrefixStore>(concat("group_", number), store_), name, own,
                                        static_cast<int>(ranks.size()), backends_, std::move(options));
}

std::optional<Error> ProcessGroup::failure() const {
  const MutexLock lock(mutex_);
  return failure_;
}

void ProcessGroup::close(Milliseconds timeout, bool serves_store) noexcept {
  try {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    {
      MutexLock lock(mutex_);
      changed_.wait_until(lock, deadline, [this]() TENSORD_REQUIRES(mutex_) { return failure_ || launched_.empty(); });
      if (failure_) return;
    }
    store_->barrier("closed", size_, timeout);
    if (DeviceBackend* const device = backend_->on_device()) device->close(deadline);
    const int64_t own = store_->add("left", 1);
    while (serves_store && own < size_ && store_->add("left", 0) < size_ &&
           std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(Milliseconds(2));
    }
  } catch (const std::exception& error) {
    log(LogLevel::kWarning, "a process group closes without the others", {{"group", name_}, {"reason", error.what()}});
  }
}

}  // namespace tensord::distributed
