#include "server/http/event_loop.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/mutex.h"

namespace tensord::server {
namespace {

constexpr size_t kScratchBytes = 64 << 10;
constexpr int kAcceptsPerEvent = 16;  // leaves the next ones to other loops
// Thousands of connections may be closed at once, and closing a descriptor takes about 20 us.
constexpr size_t kRemovalsPerTurn = 256;

// Event IDs of epoll; other values are connection IDs.
constexpr uint64_t kWakeId = ~uint64_t{0};
constexpr uint64_t kListenerId = uint64_t{1} << 63;

void watch(int poll, int file, uint32_t events, uint64_t id) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  epoll_ctl(poll, EPOLL_CTL_ADD, file, &event);
}

int open_spare() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

// The client's address for connection limits: the IPv4 address or the IPv6 /64 network. Empty for a Unix socket.
std::string address_of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    return {reinterpret_cast<const char*>(&v4), sizeof(v4)};
  }
  if (address.ss_family != AF_INET6) return {};
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&v6)) return {reinterpret_cast<const char*>(&v6) + 12, 4};
  return {reinterpret_cast<const char*>(&v6), 8};
}

}  // namespace

EventLoop::EventLoop(std::shared_ptr<LoopContext> context, int number)
    : context_(std::move(context)),
      number_(number),
      poll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      spare_(open_spare()),
      now_ns_(Clock::system().now_ns()),
      timers_(now_ns_),
      scratch_(kScratchBytes) {
  watch(poll_, wake_, EPOLLIN, kWakeId);
}

EventLoop::~EventLoop() {
  for (const Listener& listener : listeners_) ::close(listener.file);
  for (const int file : {poll_, wake_, spare_}) {
    if (file >= 0) ::close(file);
  }
}

void EventLoop::listen(int listener, MakeSocket make_socket) {
  watch(poll_, listener, EPOLLIN | EPOLLEXCLUSIVE, kListenerId + listeners_.size());
  listeners_.push_back({listener, std::move(make_socket)});
}

void EventLoop::start() {
  thread_ = Thread("http", [this] {
    thread_id_ = std::this_thread::get_id();
    serve();
  });
}

void EventLoop::stop(int64_t deadline_ns) {
  post_task([deadline_ns](EventLoop& loop) { loop.begin_stop(deadline_ns); });
}

void EventLoop::join() {
  if (thread_.joinable()) thread_.join();
}

void EventLoop::post_task(Task task) {
  {
    const MutexLock lock(mutex_);
    if (is_over_) return;
    tasks_.push_back(std::move(task));
    if (tasks_.size() > 1) return;  // the first task has woken the loop already
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof(one));
}

void EventLoop::serve() {
  std::array<epoll_event, 128> events;
  while (stop_ns_ == 0 || (now_ns_ < stop_ns_ && !connections_.empty())) {
    const int count = epoll_wait(poll_, events.data(), static_cast<int>(events.size()), timeout_ms());
    now_ns_ = Clock::system().now_ns();
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      run_logged("http", [&] { handle_event(event.data.u64, event.events); });
    }
    run_logged("http", [&] { run_tasks(); });
    run_logged("http", [&] { run_turns(); });
    run_logged("http", [&] {
      timers_.advance(now_ns_, [this](Timer& timer) {
        if (Connection* connection = find(timer.owner)) connection->on_deadline();
      });
    });
    remove_retired();
    std::exchange(owners_, {}).clear();
  }
  for (const auto& [id, connection] : connections_) connection->close();
  connections_.clear();
  thread_id_ = std::thread::id();  // the thread ID may be reused
  std::vector<Task> left;
  const MutexLock lock(mutex_);
  is_over_ = true;
  left.swap(tasks_);
}

int EventLoop::timeout_ms() const {
  if (!turns_.empty() || !retired_.empty()) return 0;
  return timers_.is_empty() && stop_ns_ == 0 ? -1 : static_cast<int>(TimerWheel::kTickNs / 1'000'000);
}

void EventLoop::handle_event(uint64_t id, uint32_t events) {
  if (id == kWakeId) {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t taken = read(wake_, &count, sizeof(count));
  } else if (id & kListenerId) {
    accept_some(static_cast<size_t>(id - kListenerId));
  } else if (Connection* connection = find(id)) {
    connection->on_events(events);
  }
}

void EventLoop::run_tasks() {
  std::vector<Task> tasks;
  {
    const MutexLock lock(mutex_);
    tasks.swap(tasks_);
  }
  for (Task& task : tasks) task(*this);
}

void EventLoop::run_turns() {
  std::vector<uint64_t> turns;
  turns.swap(turns_);
  for (const uint64_t id : turns) {
    if (Connection* connection = find(id)) connection->on_turn();
  }
}

void EventLoop::accept_some(size_t index) {
  if (index >= listeners_.size()) return;  // the loop is stopping
  for (int i = 0; i < kAcceptsPerEvent; ++i) {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    const int file =
        accept4(listeners_[index].file, reinterpret_cast<sockaddr*>(&address), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (file >= 0) {
      add(file, address_of(address), listeners_[index].make_socket);
      continue;
    }
    if ((errno == EMFILE || errno == ENFILE) && spare_ >= 0) {
      // Out of file descriptors: accept with the spare one and close, because a pending connection would wake the loop
      // forever.
      ::close(spare_);
      const int refused = accept4(listeners_[index].file, nullptr, nullptr, SOCK_CLOEXEC);
      if (refused >= 0) ::close(refused);
      spare_ = open_spare();
    }
    return;
  }
}

void EventLoop::add(int file, const std::string& address, const MakeSocket& make_socket) {
  std::unique_ptr<HttpSocket> socket = make_socket(file);
  if (!socket) return;
  const uint64_t id = ++next_id_;
  auto connection = std::make_unique<Connection>(*this, id, std::move(socket), address);
  ConnectionTable::Victim victim;
  if (!context_->table.add(connection->place(), victim)) {
    log(LogLevel::kDebug, "HTTP connection refused", {{"open", context_->table.size()}});
    return;
  }
  cut_elsewhere(victim);
  const int yes = 1;
  if (!address.empty()) {
    setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    setsockopt(file, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));  // detects clients that vanish without closing
  }
  watch(poll_, file, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, id);
  connections_.emplace(id, std::move(connection));
}

Connection* EventLoop::find(uint64_t connection) {
  const auto found = connections_.find(connection);
  return found == connections_.end() ? nullptr : found->second.get();
}

void EventLoop::cut(uint64_t connection) {
  if (Connection* found = find(connection)) found->close();
}

void EventLoop::cut_elsewhere(const ConnectionTable::Victim& victim) {
  if (victim.loop < 0) return;
  EventLoop& loop = *context_->loops[static_cast<size_t>(victim.loop)];
  loop.run([id = victim.connection](EventLoop& there) { there.cut(id); });
}

void EventLoop::set_phase(Connection& connection, ConnectionTable::Phase phase) {
  ConnectionTable::Victim victim;
  context_->table.set_phase(connection.place(), phase, victim);
  cut_elsewhere(victim);
}

void EventLoop::remove_retired() {
  const size_t count = std::min(retired_.size(), kRemovalsPerTurn);
  for (size_t i = 0; i < count; ++i) connections_.erase(retired_[i]);
  retired_.erase(retired_.begin(), retired_.begin() + static_cast<std::ptrdiff_t>(count));
}

void EventLoop::begin_stop(int64_t deadline_ns) {
  for (const Listener& listener : listeners_) ::close(listener.file);
  listeners_.clear();
  stop_ns_ = std::max<int64_t>(1, deadline_ns);
  for (const auto& [id, connection] : connections_) connection->drain();
  remove_retired();
}

}  // namespace tensord::server
