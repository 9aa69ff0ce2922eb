// Connections that gRPC would read, write and close, through the interposed calls.

#include "server/connections/connection_guard.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

namespace tensord::server::connection_guard_test {
namespace {

const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const std::string kPing = std::string("\0\0\10\6\0\0\0\0\0", 9) + std::string(8, 'p');

std::string headers(uint32_t stream) {
  std::string out("\0\0\1\1\4", 5);
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(stream >> shift & 255);
  return out + 'h';
}

PeerAddress address(uint32_t number) {
  sockaddr_storage storage{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
  v4.sin_family = AF_INET;
  v4.sin_addr.s_addr = htonl(number);
  return PeerAddress(storage);
}

// Both ends of a connection; the guard has `server`.
struct Pair {
  Pair() {
    int files[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, files), 0);
    server = files[0], client = files[1];
  }
  ~Pair() { end(), ::close(client); }
  void end() {
    if (server >= 0) ::close(server);
    server = -1;
  }
  // What gRPC receives: the byte count, or errno if below 0.
  ssize_t pass(const std::string& bytes) {
    EXPECT_EQ(write(client, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    return receive();
  }
  ssize_t receive() const {
    std::vector<char> buffer(1 << 16);
    iovec pieces[2] = {{buffer.data(), 10}, {buffer.data() + 10, buffer.size() - 10}};
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = 2;
    const ssize_t got = recvmsg(server, &message, 0);
    return got < 0 ? -errno : got;
  }
  int server = -1, client = -1;
};

std::shared_ptr<ConnectionGuard> make(int connections, int per_address = 0) {
  ConnectionGuard::Options options;
  options.max_connections = connections;
  options.max_per_address = per_address;
  options.longest_wait_ns = 60'000'000'000;
  return ConnectionGuard::make(options);
}

uint64_t cuts(const ConnectionGuard& guard, CutReason reason) { return guard.cuts()[static_cast<size_t>(reason)]; }

TEST(ConnectionGuard, CutsAFlood) {
  const auto guard = make(10);
  Pair pair;
  ASSERT_TRUE(guard->add(pair.server, address(1)));
  EXPECT_EQ(pair.pass(kPreface), static_cast<ssize_t>(kPreface.size()));
  ssize_t got = 0;
  int pings = 0;
  while ((got = pair.pass(kPing)) > 0) ++pings;
  EXPECT_EQ(got, -ECONNRESET);
  EXPECT_EQ(cuts(*guard, CutReason::kControlFrames), 1u);
  EXPECT_GE(pings, 500);
  EXPECT_LT(pings, 2000);
  EXPECT_LE(pair.receive(), 0);  // and remains so
  EXPECT_EQ(guard->connections(), 0);
  // New connections from that address wait.
  Pair next;
  EXPECT_FALSE(guard->add(next.server, address(1)));
  EXPECT_TRUE(guard->add(next.server, address(2)));
  EXPECT_EQ(guard->refused(), 1u);
}

TEST(ConnectionGuard, OtherFilesAreLeftAlone) {
  const auto guard = make(10);
  Pair guarded, other;
  ASSERT_TRUE(guard->add(guarded.server, address(1)));
  const int number = guarded.server;
  guarded.end();
  EXPECT_EQ(guard->connections(), 0);
  ASSERT_EQ(dup2(other.server, number), number);  // the number is reused
  std::string flood = kPreface;
  for (int i = 0; i < 3000; ++i) flood += kPing;
  for (size_t sent = 0; sent < flood.size(); sent += 60'000) EXPECT_GT(other.pass(flood.substr(sent, 60'000)), 0);
  close(number);
  EXPECT_EQ(cuts(*guard, CutReason::kControlFrames), 0u);
}

TEST(ConnectionGuard, TheOneThatIsIdleForLongestMakesRoom) {
  const auto guard = make(3);
  Pair pairs[5];
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(guard->add(pairs[i].server, address(1)));
  // The first has a call, the second has sent data after the third connected.
  pairs[0].pass(kPreface + headers(1));
  pairs[1].pass(kPreface);
  EXPECT_EQ(guard->open_streams(), 1);
  ASSERT_TRUE(guard->add(pairs[3].server, address(2)));
  EXPECT_EQ(pairs[2].receive(), 0);
  EXPECT_EQ(guard->connections(), 3);
  EXPECT_GT(pairs[1].pass(headers(1)), 0);
  EXPECT_GT(pairs[3].pass(kPreface + headers(1)), 0);
  EXPECT_FALSE(guard->add(pairs[4].server, address(3)));  // none is idle
  EXPECT_EQ(cuts(*guard, CutReason::kIdle), 1u);
  pairs[0].end();
  EXPECT_EQ(guard->open_streams(), 2);
  EXPECT_TRUE(guard->add(pairs[4].server, address(3)));
}

TEST(ConnectionGuard, AnAddressMakesRoomForItselfAlone) {
  const auto guard = make(100, 2);
  Pair pairs[4];
  ASSERT_TRUE(guard->add(pairs[0].server, address(9)));
  for (int i = 1; i < 4; ++i) ASSERT_TRUE(guard->add(pairs[i].server, address(1)));
  EXPECT_EQ(pairs[1].receive(), 0);
  EXPECT_EQ(guard->connections(), 3);
  EXPECT_GT(pairs[0].pass(kPreface), 0);
}

TEST(ConnectionGuard, TheBusiestGoesWhenAllHaveTooManyCalls) {
  ConnectionGuard::Options options;
  options.floods.all_open_streams = 100;
  const auto guard = ConnectionGuard::make(options);
  Pair many, few;
  ASSERT_TRUE(guard->add(many.server, address(1)));
  ASSERT_TRUE(guard->add(few.server, address(2)));
  const auto calls = [](uint32_t count) {
    std::string out = kPreface;
    for (uint32_t i = 0; i < count; ++i) out += headers(2 * i + 1);
    return out;
  };
  EXPECT_GT(many.pass(calls(90)), 0);
  EXPECT_EQ(guard->open_streams(), 90);
  EXPECT_GT(few.pass(calls(11)), 0);
  EXPECT_EQ(guard->open_streams(), 11);
  EXPECT_EQ(many.receive(), 0);
  EXPECT_EQ(cuts(*guard, CutReason::kAllOpenStreams), 1u);
}

}  // namespace
}  // namespace tensord::server::connection_guard_test
