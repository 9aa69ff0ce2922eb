// Interposes the calls through which gRPC reads, writes and closes connections. The linker prefers these definitions to
// those of the C library and OpenSSL, which they forward to. gRPC has no other hook where frames are visible. Files and
// sessions that do not belong to a ConnectionGuard are forwarded unchanged.

#include <dlfcn.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "server/connections/guarded_connection.h"

namespace tensord::server {
namespace {

// The next definition of the symbol, after this program's.
template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

void session_ends(void*, void* connection, CRYPTO_EX_DATA*, int, long, void*) {
  if (connection != nullptr) static_cast<GuardedConnection*>(connection)->let_go();
}

int session_index() {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, session_ends);
  return index;
}

std::atomic<bool> has_sessions{false};

GuardedConnection* connection_of(const SSL* session) {
  if (!has_sessions.load(std::memory_order_relaxed)) return nullptr;
  return static_cast<GuardedConnection*>(SSL_get_ex_data(session, session_index()));
}

void own_session(SSL* session, GuardedConnection& connection) {
  connection.hold();
  if (SSL_set_ex_data(session, session_index(), &connection) != 1) {
    connection.let_go();
    return;
  }
  connection.set_session();
  has_sessions.store(true, std::memory_order_relaxed);
}

}  // namespace

void link_interposed_calls() {}

}  // namespace tensord::server

extern "C" {

ssize_t recvmsg(int file, msghdr* message, int flags) {
  static auto* const original = tensord::server::next<ssize_t(int, msghdr*, int)>("recvmsg");
  const ssize_t size = original(file, message, flags);
  const bool is_new = size > 0 && (flags & (MSG_PEEK | MSG_ERRQUEUE)) == 0;
  auto* const connection = is_new ? tensord::server::guarded_connection(file) : nullptr;
  if (connection == nullptr || connection->read_file(message->msg_iov, static_cast<size_t>(size))) return size;
  errno = ECONNRESET;
  return -1;
}

ssize_t sendmsg(int file, const msghdr* message, int flags) {
  static auto* const original = tensord::server::next<ssize_t(int, const msghdr*, int)>("sendmsg");
  const ssize_t size = original(file, message, flags);
  auto* const connection = size > 0 ? tensord::server::guarded_connection(file) : nullptr;
  if (connection != nullptr) connection->wrote_file(message->msg_iov, static_cast<size_t>(size));
  return size;
}

int close(int file) {
  static auto* const original = tensord::server::next<int(int)>("close");
  if (auto* const connection = tensord::server::guarded_connection(file)) {
    // Before the kernel may reuse the descriptor for another file.
    tensord::server::set_guarded_connection(file, nullptr);
    connection->file_closes();
  }
  return original(file);
}

SSL* SSL_new(SSL_CTX* context) {
  static auto* const original = tensord::server::next<SSL*(SSL_CTX*)>("SSL_new");
  SSL* const session = original(context);
  auto* const connection = tensord::server::connection_handed_over();
  if (session != nullptr && connection != nullptr) tensord::server::own_session(session, *connection);
  return session;
}

int SSL_read(SSL* session, void* data, int size) {
  static auto* const original = tensord::server::next<int(SSL*, void*, int)>("SSL_read");
  const int got = original(session, data, size);
  auto* const connection = got > 0 ? tensord::server::connection_of(session) : nullptr;
  if (connection == nullptr || connection->read_session(data, static_cast<size_t>(got))) return got;
  return -1;
}

int SSL_write(SSL* session, const void* data, int size) {
  static auto* const original = tensord::server::next<int(SSL*, const void*, int)>("SSL_write");
  const int sent = original(session, data, size);
  auto* const connection = sent > 0 ? tensord::server::connection_of(session) : nullptr;
  if (connection != nullptr) connection->wrote_session(data, static_cast<size_t>(sent));
  return sent;
}

}  // extern "C"
