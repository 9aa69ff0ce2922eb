#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <memory>

namespace tensord::server {

// A connection's bytes, plain or TLS. Never blocks. Not thread-safe.
class HttpSocket {
 public:
  virtual ~HttpSocket() = default;
  virtual int file() const = 0;
  // Like recv and sendmsg: -1 with errno EAGAIN if they would block; receive returns 0 if the client has closed its
  // side.
  virtual ssize_t receive(void* to, size_t size_bytes) = 0;
  virtual ssize_t send(const iovec* pieces, int count) = 0;
  // Closes the sending side.
  virtual void end_sending() = 0;
};

// Takes ownership of the descriptor.
std::unique_ptr<HttpSocket> make_plain_socket(int file);

}  // namespace tensord::server
