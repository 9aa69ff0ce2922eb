// Where a server listens for gRPC: addresses in use, inherited sockets, too few file descriptors.
#include "server/transport/grpc/listening.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <fstream>

#include "core/base/log.h"
#include "tests/server/error_of.h"
#include "tests/server/temporary_folder.h"

// The process's file limit, if a test sets it.
static const rlimit* said_files = nullptr;
static bool is_forbidden = false;  // getrlimit fails

extern "C" int getrlimit(__rlimit_resource_t resource, rlimit* out) noexcept {
  if (resource != RLIMIT_NOFILE || said_files == nullptr) {
    return static_cast<int>(syscall(SYS_prlimit64, 0, resource, nullptr, out));
  }
  if (is_forbidden) return -1;
  *out = *said_files;
  return 0;
}

static rlimit wanted_files{};

extern "C" int setrlimit(__rlimit_resource_t resource, const rlimit* in) noexcept {
  if (resource != RLIMIT_NOFILE || said_files == nullptr) {
    return static_cast<int>(syscall(SYS_prlimit64, 0, resource, in, nullptr));
  }
  wanted_files = *in;
  return 0;
}

namespace tensord::server::listening_test {
namespace {

using ::testing::HasSubstr;

std::string told;  // log lines about connections

void note(LogLevel, std::string_view message, std::initializer_list<LogField> fields, const std::source_location&) {
  if (!message.starts_with("fewer connections")) return;
  for (const LogField& field : fields) told += concat(field.key, "=", field.value, " ");
}

class ListeningTest : public ::testing::Test {
 protected:
  ~ListeningTest() override {
    said_files = nullptr;
    for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) unsetenv(name);
  }
  std::unique_ptr<Listening> listen(const NetworkOptions& options, const std::string& address = "127.0.0.1",
                                    int port = 0) {
    return std::make_unique<Listening>(options, address, port, metrics_);
  }
  NetworkOptions on_socket(const std::string& path) const {
    NetworkOptions options;
    options.unix_socket = path;
    options.is_unix_socket_only = true;
    return options;
  }
  // The log line about connections for these file limits.
  std::string told_of(rlim_t now, rlim_t max, int max_connections) {
    const rlimit files{now, max};
    said_files = &files;
    told.clear();
    set_log_sink(note);
    NetworkOptions options;
    options.max_connections = max_connections;
    listen(options);
    said_files = nullptr;
    return told;
  }

  const fixtures::TemporaryFolder folder_{"listening"};
  Metrics metrics_{"test"};
};

TEST_F(ListeningTest, ConnectionsLeaveFilesForOthers) {
  EXPECT_EQ(told_of(100, 100, 1000), "connections=50 open_files=100 wanted=1000 ");
  EXPECT_EQ(told_of(512, 512, 1000), "connections=256 open_files=512 wanted=1000 ");
  EXPECT_EQ(told_of(1000, 1000, 1000), "connections=744 open_files=1000 wanted=1000 ");
  EXPECT_EQ(told_of(1256, 1256, 1000), "");
  EXPECT_EQ(told_of(RLIM_INFINITY, RLIM_INFINITY, 1000), "");
  EXPECT_EQ(told_of(1000, 1000, 0), concat("connections=744 open_files=1000 wanted=", INT_MAX, " "));
  told_of(100, 1256, 1000);
  EXPECT_EQ(wanted_files.rlim_cur, 1256u) << "as many as it may";
}

TEST_F(ListeningTest, WhatMayNotBeAskedIsLeftAlone) {
  is_forbidden = true;
  wanted_files = {.rlim_cur = 7, .rlim_max = 7};
  EXPECT_EQ(told_of(100, 1256, 1000), "");
  EXPECT_EQ(wanted_files.rlim_cur, 7u);
  is_forbidden = false;
}

TEST_F(ListeningTest, APortIsOfOneServer) {
  const auto first = listen({});
  EXPECT_EQ(first->address(), concat("127.0.0.1:", first->port()));
  const Error error = error_of([&] { listen({}, "127.0.0.1", first->port()); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.what(), HasSubstr("cannot listen for gRPC on 127.0.0.1:"));
}

TEST_F(ListeningTest, AddressesWithColonsAreInBrackets) {
  const int probe = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 loopback{};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  const bool has_ipv6 = bind(probe, reinterpret_cast<const sockaddr*>(&loopback), sizeof(loopback)) == 0;
  close(probe);
  if (!has_ipv6) GTEST_SKIP() << "the machine has no IPv6";
  const auto listening = listen({}, "::1");
  EXPECT_EQ(listening->address(), concat("[::1]:", listening->port()));
}

TEST_F(ListeningTest, ASocketIsOfOneServer) {
  const std::string path = folder_.path() / "socket";
  {
    const auto first = listen(on_socket(path));
    EXPECT_EQ(first->port(), 0);
    EXPECT_EQ(first->address(), "unix:" + path);
    const Error error = error_of([&] { listen(on_socket(path)); });
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.what(), HasSubstr("another server does"));
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  std::ofstream(path) << "a file";
  EXPECT_THAT(error_of([&] { listen(on_socket(path)); }).what(), HasSubstr("is there and is not a socket"));
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_EQ(error_of([&] { listen(on_socket(folder_.path() / "none" / "socket")); }).code(), ErrorCode::kUnavailable);
}

TEST_F(ListeningTest, PathsOfSocketsAreShort) {
  const std::string start = folder_.path() / "";
  listen(on_socket(start + std::string(107 - start.size(), 's')));
  EXPECT_THAT(error_of([&] { listen(on_socket(start + std::string(108 - start.size(), 's'))); }).what(),
              HasSubstr("has more than 107 characters"));
}

TEST_F(ListeningTest, WhatIsHandedOverMustBeSockets) {
  const auto outcome = [&](const std::string& count, const char* names = "") {
    setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1);
    setenv("LISTEN_FDS", count.c_str(), 1);
    setenv("LISTEN_FDNAMES", names, 1);
    return std::string(error_of([&] { listen({}); }).what());
  };
  EXPECT_THAT(outcome("64"), HasSubstr("file 3 is not a stream socket that listens"));
  EXPECT_EQ(outcome("65"), "$LISTEN_FDS: at most 64 sockets, got 65");
  EXPECT_EQ(outcome("-1"), "$LISTEN_FDS is not a number: -1");
  EXPECT_EQ(outcome("1x"), "$LISTEN_FDS is not a number: 1x");
  EXPECT_THAT(outcome("1", "http"), HasSubstr("only gRPC's sockets can be handed over"));
  setenv("LISTEN_PID", "1", 1);
  EXPECT_GT(listen({})->port(), 0) << "they are of another process";
}

}  // namespace
}  // namespace tensord::server::listening_test
