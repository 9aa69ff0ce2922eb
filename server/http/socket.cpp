#include "server/http/socket.h"

#include <sys/socket.h>
#include <unistd.h>

namespace tensord::server {
namespace {

class PlainSocket final : public HttpSocket {
 public:
  explicit PlainSocket(int file) : file_(file) {}
  ~PlainSocket() override { close(file_); }
  int file() const override { return file_; }
  ssize_t receive(void* to, size_t size_bytes) override { return recv(file_, to, size_bytes, 0); }
  ssize_t send(const iovec* pieces, int count) override {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(pieces);
    message.msg_iovlen = static_cast<size_t>(count);
    return sendmsg(file_, &message, MSG_NOSIGNAL);
  }
  void end_sending() override { shutdown(file_, SHUT_WR); }

 private:
  const int file_;
};

}  // namespace

std::unique_ptr<HttpSocket> make_plain_socket(int file) { return std::make_unique<PlainSocket>(file); }

}  // namespace tensord::server
