#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <memory>

namespace tensord::server {

// A connection's bytes, as they are or under TLS. Never waits. For one thread.
class HttpSocket {
 public:
  virtual ~HttpSocket() = default;
  virtual int file() const = 0;
  // As recv and sendmsg: -1 with EAGAIN in errno when it would have to wait; 0 from receive: the client has ended.
  virtual ssize_t receive(void* to, size_t size_bytes) = 0;
  virtual ssize_t send(const iovec* pieces, int count) = 0;
  // The client will get no more.
  virtual void end_sending() = 0;
};

// Owns the file.
std::unique_ptr<HttpSocket> make_plain_socket(int file);

}  // namespace tensord::server
