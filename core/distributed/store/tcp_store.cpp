#include "core/distributed/store/tcp_store.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <thread>

#include "core/base/cancellable_wait.h"
#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/distributed/hmac.h"
#include "core/distributed/store/tcp_wire.h"

namespace tensord::distributed {

using tcp::Command;
using tcp::Reader;
using tcp::Writer;
using SteadyTime = std::chrono::steady_clock::time_point;

namespace {

constexpr const char* kInit = "init/";  // number of handles that have connected
constexpr Milliseconds kGrace{5000};    // extra time for the server's reply that a wait has timed out
constexpr Milliseconds kFirstPause{50}, kLastPause{1000};  // between attempts to connect

int left_ms(SteadyTime deadline) {
  const auto left = std::chrono::ceil<Milliseconds>(deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1 << 30));
}

// Connects within the deadline, or returns -1 and sets `problem`.
int try_address(const addrinfo& address, SteadyTime deadline, std::string& problem) {
  FileDescriptor fd(socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) {
    problem = std::strerror(errno);
    return -1;
  }
  if (connect(fd.get(), address.ai_addr, address.ai_addrlen) != 0 && errno != EINPROGRESS) {
    problem = std::strerror(errno);
    return -1;
  }
  pollfd polled{fd.get(), POLLOUT, 0};
  // An address that does not answer leaves time for the others.
  if (poll(&polled, 1, std::min(left_ms(deadline), 5000)) <= 0) {
    problem = "no answer";
    return -1;
  }
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    problem = std::strerror(error);
    return -1;
  }
  const int on = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(fd.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  return fd.release();
}

int try_host(const std::string& host, uint16_t port, SteadyTime deadline, std::string& problem) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* first = nullptr;
  if (const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &first); error != 0) {
    problem = gai_strerror(error);
    return -1;
  }
  int fd = -1;
  for (const addrinfo* address = first; address && fd < 0; address = address->ai_next) {
    fd = try_address(*address, deadline, problem);
  }
  freeaddrinfo(first);
  return fd;
}

}  // namespace

struct TcpStore::Place {
  std::string host, token;
  uint16_t port = 0;
  std::unique_ptr<TcpStoreServer> server;

  std::string name() const { return concat(host, ":", port); }
  [[noreturn]] void fail_gone(const char* what) const {
    fail(ErrorCode::kUnavailable, "store at ", name(), ": ", what,
         ". Connection was likely closed. Did the server end?");
  }
};

// Runs one request at a time. Another thread may shut down its socket.
class TcpStore::Connection {
 public:
  Connection(int fd, const Place& place) : fd_(fd), place_(place) {}

  void greet(SteadyTime deadline) {
    const std::string greeting = receive(tcp::kGreeting.size() + tcp::kNonceSize, deadline);
    if (!greeting.starts_with(tcp::kGreeting)) {
      fail(ErrorCode::kFailedPrecondition, "store at ", place_.name(), ": the server there is not a tensord store");
    }
    const std::string proof = hmac_sha256(place_.token, greeting.substr(tcp::kGreeting.size()));
    call(Writer(Command::kHello).text(proof).finish(), deadline);
  }

  std::string call(const std::string& message, SteadyTime deadline) {
    transmit(message, deadline);
    uint32_t size;
    std::memcpy(&size, receive(sizeof(size), deadline).data(), sizeof(size));
    if (size == 0 || size > tcp::kMaxMessage) place_.fail_gone("a reply of a wrong size");
    std::string reply = receive(size, deadline);
    const auto kind = static_cast<uint8_t>(reply.front());
    reply.erase(0, 1);
    if (kind == tcp::kDone) return reply;
    throw Error(static_cast<ErrorCode>(kind), Reader(reply).text());
  }

  void shut_down() { shutdown(fd_.get(), SHUT_RDWR); }
  // False once bytes of a request or reply may be missing.
  bool is_whole() const { return is_whole_; }

 private:
  void transmit(const std::string& bytes, SteadyTime deadline) {
    is_whole_ = false;
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t put = send(fd_.get(), bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (put >= 0) {
        done += static_cast<size_t>(put);
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        await(POLLOUT, deadline);
      } else if (errno != EINTR) {
        place_.fail_gone(std::strerror(errno));
      }
    }
  }

  std::string receive(size_t count, SteadyTime deadline) {
    is_whole_ = false;
    std::string bytes(count, '\0');
    for (size_t done = 0; done < count;) {
      const ssize_t got = recv(fd_.get(), bytes.data() + done, count - done, MSG_DONTWAIT);
      if (got > 0) {
        done += static_cast<size_t>(got);
      } else if (got == 0) {
        place_.fail_gone("it closed the connection");
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        await(POLLIN, deadline);
      } else if (errno != EINTR) {
        place_.fail_gone(std::strerror(errno));
      }
    }
    is_whole_ = true;
    return bytes;
  }

  void await(short events, SteadyTime deadline) {
    pollfd polled{fd_.get(), events, 0};
    const int max_ms = execution_context().cancellation ? static_cast<int>(kLookInterval.count()) : INT_MAX;
    while (poll(&polled, 1, std::min(left_ms(deadline), max_ms)) == 0) {
      check_work_cancelled();
      if (left_ms(deadline) > 0) continue;
      fail(ErrorCode::kDeadlineExceeded, "store at ", place_.name(), ": no answer from the server");
    }
  }

  FileDescriptor fd_;
  const Place& place_;
  bool is_whole_ = true;
};

// Owns a connection during a call. Intact connections are reused.
class TcpStore::Lease {
 public:
  explicit Lease(TcpStore& store) : store_(store) {
    MutexLock lock(store_.mutex_);
    if (store_.is_interrupted_) fail_store_interrupted();
    if (!store_.idle_.empty()) {
      connection_ = std::move(store_.idle_.back());
      store_.idle_.pop_back();
    }
    if (connection_) store_.busy_.push_back(connection_.get());
  }
  ~Lease() {
    if (!connection_) return;
    const MutexLock lock(store_.mutex_);
    store_.busy_.remove(connection_.get());
    if (connection_->is_whole() && !store_.is_interrupted_) store_.idle_.push_back(std::move(connection_));
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  bool has_connection() const { return connection_ != nullptr; }
  void take(int fd) {
    connection_ = std::make_unique<Connection>(fd, *store_.place_);
    const MutexLock lock(store_.mutex_);
    store_.busy_.push_back(connection_.get());
    if (store_.is_interrupted_) connection_->shut_down();
  }
  Connection& connection() const { return *connection_; }

 private:
  TcpStore& store_;
  std::unique_ptr<Connection> connection_;
};

TcpStore::TcpStore(const TcpStoreOptions& options) : Store(options.timeout), place_(std::make_shared<Place>()) {
  place_->host = options.host;
  place_->token = options.token;
  place_->port = options.port;
  if (options.is_server) {
    place_->server = std::make_unique<TcpStoreServer>(TcpServerOptions{
        .host = options.listen_host, .port = options.port, .listen_fd = options.listen_fd, .token = options.token});
    place_->port = place_->server->port();
  }
  join(options.world_size);
}

TcpStore::TcpStore(std::shared_ptr<Place> place, Milliseconds timeout) : Store(timeout), place_(std::move(place)) {}
TcpStore::~TcpStore() = default;

uint16_t TcpStore::port() const { return place_->port; }

void TcpStore::join(int world_size) {
  const auto deadline = std::chrono::steady_clock::now() + timeout();
  {
    Lease lease(*this);
    connect(lease, deadline, true);
  }
  int64_t joined = add(kInit, 1);
  for (auto pause = Milliseconds(1); joined < world_size; pause = std::min(pause * 2, Milliseconds(100))) {
    if (std::chrono::steady_clock::now() >= deadline) {
      fail(ErrorCode::kDeadlineExceeded, "store at ", place_->name(), ": Timed out after ", timeout().count() / 1000,
           " seconds waiting for clients. ", joined, "/", world_size, " clients joined.");
    }
    std::this_thread::sleep_for(pause);
    check_work_cancelled();
    joined = add(kInit, 0);
  }
}

// At startup the server, and its DNS name, may appear later.
void TcpStore::connect(Lease& lease, SteadyTime deadline, bool retries) {
  std::string problem;
  for (auto pause = kFirstPause;; pause = std::min(pause * 2, kLastPause)) {
    if (const int fd = try_host(place_->host, place_->port, deadline, problem); fd >= 0) {
      lease.take(fd);
      lease.connection().greet(deadline);
      return;
    }
    if (is_interrupted_) fail_store_interrupted();
    if (!retries || std::chrono::steady_clock::now() + pause >= deadline) {
      fail(ErrorCode::kUnavailable, "store at ", place_->name(), ": cannot be reached: ", problem);
    }
    std::this_thread::sleep_for(pause);
    check_work_cancelled();
  }
}

std::string TcpStore::call(const std::string& message, Milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout + kGrace;
  Lease lease(*this);
  try {
    if (!lease.has_connection()) connect(lease, deadline, false);
    return lease.connection().call(message, deadline);
  } catch (const Error&) {
    if (is_interrupted_) fail_store_interrupted();
    throw;
  }
}

void TcpStore::set(const std::string& key, const std::string& value) {
  call(Writer(Command::kSet).text(key).text(value).finish());
}

std::string TcpStore::get(const std::string& key, Milliseconds timeout) {
  timeout = chosen(timeout);
  const std::string reply =
      call(Writer(Command::kGet).number(timeout.count()).texts(std::span(&key, 1)).finish(), timeout);
  return Reader(reply).text();
}

void TcpStore::wait(std::span<const std::string> keys, Milliseconds timeout) {
  timeout = chosen(timeout);
  call(Writer(Command::kWait).number(timeout.count()).texts(keys).finish(), timeout);
}

bool TcpStore::check(std::span<const std::string> keys) {
  return Reader(call(Writer(Command::kCheck).texts(keys).finish())).number() != 0;
}

int64_t TcpStore::add(const std::string& key, int64_t amount) {
  return Reader(call(Writer(Command::kAdd).text(key).number(amount).finish())).number();
}

std::string TcpStore::compare_set(const std::string& key, const std::string& expected, const std::string& desired) {
  return Reader(call(Writer(Command::kCompareSet).text(key).text(expected).text(desired).finish())).text();
}

void TcpStore::append(const std::string& key, const std::string& value) {
  call(Writer(Command::kAppend).text(key).text(value).finish());
}

bool TcpStore::remove(const std::string& key) {
  return Reader(call(Writer(Command::kRemove).text(key).finish())).number() != 0;
}

int64_t TcpStore::count() { return Reader(call(Writer(Command::kCount).finish())).number(); }

std::vector<std::string> TcpStore::list_keys() { return Reader(call(Writer(Command::kList).finish())).texts(); }

void TcpStore::queue_push(const std::string& key, const std::string& value) {
  call(Writer(Command::kPush).text(key).text(value).finish());
}

std::string TcpStore::queue_pop(const std::string& key, Milliseconds timeout) {
  timeout = chosen(timeout);
  return Reader(call(Writer(Command::kPop).number(timeout.count()).texts(std::span(&key, 1)).finish(), timeout)).text();
}

int64_t TcpStore::queue_size(const std::string& key) {
  return Reader(call(Writer(Command::kQueueSize).text(key).finish())).number();
}

std::shared_ptr<Store> TcpStore::clone() { return std::shared_ptr<Store>(new TcpStore(place_, timeout())); }

void TcpStore::interrupt() {
  const MutexLock lock(mutex_);
  is_interrupted_ = true;
  for (Connection* const connection : busy_) connection->shut_down();
}

}  // namespace tensord::distributed
