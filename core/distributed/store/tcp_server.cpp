#include "core/distributed/store/tcp_server.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/log.h"
#include "core/distributed/hmac.h"
#include "core/distributed/store/tcp_wire.h"

namespace tensord::distributed {

using tcp::Command;
using tcp::Reader;
using tcp::Writer;
using SteadyTime = std::chrono::steady_clock::time_point;

struct TcpStoreServer::Client {
  explicit Client(int fd) : socket(fd), nonce(random_bytes(tcp::kNonceSize)) {}

  FileDescriptor socket;
  const std::string nonce;
  const SteadyTime came = std::chrono::steady_clock::now();
  bool is_admitted = false, is_leaving = false;  // leaving: disconnected once `out` is sent
  std::string in, out;
  // What the client waits for, if anything.
  bool is_waiting = false;
  Command awaited = Command::kWait;
  std::vector<std::string> keys;
  Milliseconds timeout{0};
  SteadyTime deadline;

  bool is_stranger(SteadyTime now) const { return !is_admitted && now - came >= tcp::kHelloTime; }
  // A client that does not read its replies stalls only itself.
  bool is_full() const { return out.size() >= tcp::kMaxUnread; }
  // The most bytes that the client may have sent without a reply yet.
  size_t max_waiting_bytes() const { return 4 + size_t{is_admitted ? tcp::kMaxMessage : tcp::kMaxHello}; }

  // Sends as much of `out` as the socket accepts; false: the client is gone.
  bool flush() {
    while (!out.empty()) {
      const ssize_t put = send(socket.get(), out.data(), out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
      out.erase(0, static_cast<size_t>(put));
    }
    return !is_leaving;
  }
};

namespace {

struct AddressList {
  addrinfo* first = nullptr;
  ~AddressList() {
    if (first) freeaddrinfo(first);
  }
};

int listen_on(const addrinfo& address) {
  const int fd = socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address.ai_protocol);
  if (fd < 0) return -1;
  const int on = 1, off = 0;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address.ai_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  if (bind(fd, address.ai_addr, address.ai_addrlen) == 0 && listen(fd, 1024) == 0) return fd;
  const int reason = errno;
  close(fd);
  errno = reason;
  return -1;
}

int listen_on(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  AddressList list;
  const int error =
      getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(), &hints, &list.first);
  const std::string shown = host.empty() ? "all addresses" : host;
  if (error != 0) fail(ErrorCode::kUnavailable, "store: failed to listen on ", shown, ": ", gai_strerror(error));
  int reason = 0;
  // IPv6 first: its socket accepts both.
  for (const int family : {AF_INET6, AF_INET}) {
    for (const addrinfo* address = list.first; address; address = address->ai_next) {
      if (address->ai_family != family) continue;
      const int fd = listen_on(*address);
      if (fd >= 0) return fd;
      reason = errno;
      if (reason == EADDRINUSE) break;
    }
    if (reason == EADDRINUSE) break;
  }
  fail(ErrorCode::kUnavailable, "store: failed to listen on ", shown, ", port ", port, ": ", std::strerror(reason),
       reason == EADDRINUSE ? " (EADDRINUSE); port 0 lets the system pick one" : "");
}

uint16_t port_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    fail(ErrorCode::kUnavailable, "store: the socket that was given: ", std::strerror(errno));
  }
  if (address.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

std::string error_reply(ErrorCode code, std::string_view message) {
  return Writer(static_cast<uint8_t>(code)).text(message).finish();
}

}  // namespace

TcpStoreServer::TcpStoreServer(TcpServerOptions options) : token_(std::move(options.token)) {
  const int fd = options.listen_fd >= 0 ? options.listen_fd : listen_on(options.host, options.port);
  listener_ = std::make_unique<FileDescriptor>(fd);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  port_ = port_of(fd);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) fail(ErrorCode::kResourceExhausted, "store: ", std::strerror(errno));
  wake_read_ = std::make_unique<FileDescriptor>(ends[0]);
  wake_write_ = std::make_unique<FileDescriptor>(ends[1]);
  thread_ = Thread("store", [this] { serve(); });
}

TcpStoreServer::~TcpStoreServer() {
  is_stopped_ = true;
  const ssize_t put = write(wake_write_->get(), "x", 1);
  (void)put;
  thread_.join();
}

void TcpStoreServer::serve() {
  std::vector<pollfd> polled;
  while (!is_stopped_) {
    polled.assign({{wake_read_->get(), POLLIN, 0}, {listener_->get(), POLLIN, 0}});
    for (const auto& client : clients_) {
      const int events = (client->is_full() ? 0 : POLLIN) | (client->out.empty() ? 0 : POLLOUT);
      polled.push_back({client->socket.get(), static_cast<short>(events), 0});
    }
    if (poll(polled.data(), polled.size(), poll_timeout_ms()) < 0 && errno != EINTR) {
      log(LogLevel::kError, "the store's server ends", {{"reason", std::strerror(errno)}});
      return;
    }
    std::vector<Client*> gone;
    for (size_t i = 0; i < polled.size() - 2; ++i) {
      Client& client = *clients_[i];
      const bool is_there = (polled[i + 2].revents & (POLLIN | POLLHUP | POLLERR)) == 0 || read_from(client);
      if (!is_there) gone.push_back(&client);
    }
    answer_waiting();
    const SteadyTime now = std::chrono::steady_clock::now();
    for (const auto& client : clients_) {
      const bool was_full = client->is_full();
      bool is_there = client->flush() && !client->is_stranger(now);
      // The client may have sent more requests in the meantime.
      if (is_there && was_full && !client->is_full()) is_there = answer_requests(*client);
      if (!is_there) gone.push_back(client.get());
    }
    std::erase_if(clients_,
                  [&](const auto& client) { return std::find(gone.begin(), gone.end(), client.get()) != gone.end(); });
    if (polled[1].revents) accept_all();
    count_unread_bytes();
  }
}

void TcpStoreServer::count_unread_bytes() {
  size_t bytes = 0;
  for (const auto& client : clients_) bytes += client->out.size();
  unread_bytes_ = bytes;
}

int TcpStoreServer::poll_timeout_ms() const {
  auto left = std::chrono::milliseconds(60'000);
  const SteadyTime now = std::chrono::steady_clock::now();
  for (const auto& client : clients_) {
    if (!client->is_admitted)
      left = std::min(left, std::chrono::ceil<std::chrono::milliseconds>(client->came + tcp::kHelloTime - now));
    if (!client->is_waiting) continue;
    left = std::min(left, std::chrono::ceil<std::chrono::milliseconds>(client->deadline - now));
  }
  return static_cast<int>(std::max<int64_t>(0, left.count()));
}

void TcpStoreServer::accept_all() {
  auto strangers =
      static_cast<size_t>(std::ranges::count_if(clients_, [](const auto& client) { return !client->is_admitted; }));
  for (;;) {
    const int fd = accept4(listener_->get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      // Without free descriptors the connection stays in the queue. Sleep, so that this is not a busy loop.
      if (errno == EMFILE || errno == ENFILE) usleep(10'000);
      return;
    }
    if (strangers < tcp::kMaxStrangers) {
      ++strangers;
    } else {
      drop_oldest_stranger();
    }
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    auto client = std::make_unique<Client>(fd);
    client->out = std::string(tcp::kGreeting) + client->nonce;
    if (client->flush()) clients_.push_back(std::move(client));
  }
}

void TcpStoreServer::drop_oldest_stranger() {
  const auto oldest = std::ranges::find_if(clients_, [](const auto& client) { return !client->is_admitted; });
  if (oldest != clients_.end()) clients_.erase(oldest);
}

bool TcpStoreServer::read_from(Client& client) {
  char buffer[65536];
  // Reads a limited number of chunks, so that other clients get their turn.
  for (int piece = 0; piece < 16 && !client.is_leaving; ++piece) {
    const ssize_t got = recv(client.socket.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (got <= 0) return false;
    client.in.append(buffer, static_cast<size_t>(got));
    if (!answer_requests(client) || client.in.size() > client.max_waiting_bytes()) return false;
  }
  return true;
}

bool TcpStoreServer::answer_requests(Client& client) {
  size_t at = 0;
  while (!client.is_waiting && !client.is_leaving && !client.is_full() && client.in.size() - at >= 4) {
    uint32_t size;
    std::memcpy(&size, client.in.data() + at, sizeof(size));
    if (size == 0 || size > (client.is_admitted ? tcp::kMaxMessage : tcp::kMaxHello)) return false;
    if (client.in.size() - at - 4 < size) break;
    const std::string_view message = std::string_view(client.in).substr(at + 4, size);
    try {
      if (!client.is_admitted) {
        client.is_leaving = !admit(client, message);
      } else {
        handle(client, message);
      }
    } catch (const Error& error) {
      client.out += error_reply(error.code(), error.what());
    }
    at += 4 + size;
  }
  client.in.erase(0, at);
  return true;
}

bool TcpStoreServer::admit(Client& client, std::string_view message) {
  Reader reader(message);
  const bool is_right = reader.kind() == static_cast<uint8_t>(Command::kHello) &&
                        is_equal_in_constant_time(reader.text(), hmac_sha256(token_, client.nonce));
  client.is_admitted = is_right;
  client.out += is_right ? Writer(tcp::kDone).finish()
                         : error_reply(ErrorCode::kFailedPrecondition, "store: the token is not that of the server");
  return is_right;
}

// Checked before anything is stored.
void TcpStoreServer::check_entry(const std::string& key, size_t value_bytes) const {
  const auto refuse = [&](const char* what, size_t bytes, size_t limit) {
    if (bytes <= limit) return;
    fail(ErrorCode::kResourceExhausted, "store: ", what, " ", bytes, " bytes, more than ", limit);
  };
  refuse("a key of", key.size(), tcp::kMaxKey);
  const std::string* const present = table_.find(key);
  refuse("a value of", value_bytes, tcp::kMaxValue);
  const size_t left = present ? table_.size_bytes() - present->size() : table_.size_bytes();
  refuse("keys and values of", left + StoreTable::size_of(key.size(), value_bytes), tcp::kMaxTable);
}

void TcpStoreServer::handle(Client& client, std::string_view message) {
  Reader reader(message);
  Writer reply(tcp::kDone);
  const auto command = static_cast<Command>(reader.kind());
  switch (command) {
    case Command::kSet: {
      const std::string key = reader.text(), value = reader.text();
      check_entry(key, value.size());
      table_.set(key, value);
      break;
    }
    case Command::kCheck: {
      const auto keys = reader.texts(tcp::kMaxAwaited);
      reply.number(!keys.empty() && table_.has_all(keys));
      break;
    }
    case Command::kAdd: {
      const std::string key = reader.text();
      constexpr size_t kMaxDigits = 20;
      check_entry(key, kMaxDigits);
      reply.number(table_.add(key, reader.number()));
      break;
    }
    case Command::kCompareSet: {
      const std::string key = reader.text(), expected = reader.text(), desired = reader.text();
      check_entry(key, desired.size());
      reply.text(table_.compare_set(key, expected, desired));
      break;
    }
    case Command::kAppend: {
      const std::string key = reader.text(), value = reader.text();
      const std::string* const present = table_.find(key);
      check_entry(key, value.size() + (present ? present->size() : 0));
      table_.append(key, value);
      break;
    }
    case Command::kRemove: reply.number(table_.remove(reader.text())); break;
    case Command::kCount: reply.number(table_.count()); break;
    case Command::kList: reply.texts(table_.keys()); break;
    case Command::kPush: {
      const std::string key = reader.text(), value = reader.text();
      check_entry(key, value.size());
      table_.queue_push(key, value);
      break;
    }
    case Command::kQueueSize: reply.number(table_.queue_size(reader.text())); break;
    case Command::kGet:
    case Command::kWait:
    case Command::kPop:
      client.timeout = Milliseconds(std::clamp<int64_t>(reader.number(), 0, int64_t{1} << 40));
      client.keys = reader.texts(tcp::kMaxAwaited);
      check(command == Command::kWait || client.keys.size() == 1, "store: not one key");
      client.deadline = std::chrono::steady_clock::now() + client.timeout;
      client.awaited = command;
      client.is_waiting = true;
      return;  // answer_waiting replies, now or later
    default: fail(ErrorCode::kUnimplemented, "store: unknown command ", static_cast<int>(command));
  }
  client.out += reply.finish();
}

// Repeats until nothing changes: a client whose wait has ended may already have sent its next request.
void TcpStoreServer::answer_waiting() {
  for (bool is_changed = true; is_changed;) {
    is_changed = false;
    for (const auto& client : clients_) {
      if (!client->is_waiting || !try_waiting(*client)) continue;
      client->is_waiting = false;
      is_changed = true;
      answer_requests(*client);
    }
  }
}

bool TcpStoreServer::try_waiting(Client& client) {
  Writer reply(tcp::kDone);
  if (client.awaited == Command::kPop) {
    if (auto value = table_.queue_pop(client.keys.front())) {
      client.out += reply.text(*value).finish();
      return true;
    }
  } else if (table_.has_all(client.keys)) {
    if (client.awaited == Command::kGet) reply.text(*table_.find(client.keys.front()));
    client.out += reply.finish();
    return true;
  }
  if (std::chrono::steady_clock::now() < client.deadline) return false;
  try {
    fail_store_timeout(client.keys, client.timeout);
  } catch (const Error& error) {
    client.out += error_reply(error.code(), error.what());
  }
  return true;
}

}  // namespace tensord::distributed
