#include "core/distributed/hmac.h"
#include "core/distributed/store/tcp_server.h"
#include "core/distributed/store/tcp_wire.h"
#include "tests/fuzz/fuzz.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensord;
  using namespace distributed;
  static TcpStoreServer& server = *new TcpStoreServer({.host = "127.0.0.1", .port = 0});
  const FileDescriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server.port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) return 0;
  char greeting[32];
  ssize_t got = 0;
  // libFuzzer's alarms interrupt recv.
  while ((got = recv(fd.get(), greeting, sizeof(greeting), MSG_WAITALL)) < 0 && errno == EINTR) {
  }
  if (got != sizeof(greeting)) std::abort();
  std::string bytes = tcp::Writer(tcp::Command::kHello).text(hmac_sha256("", {greeting + 16, 16})).finish();
  bytes += fuzz::text_of(data, size);
  if (send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) return 0;
  shutdown(fd.get(), SHUT_WR);
  char answer[4096];
  while ((got = recv(fd.get(), answer, sizeof(answer), 0)) > 0 || (got < 0 && errno == EINTR)) {
  }
  return 0;
}
