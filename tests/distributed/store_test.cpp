#include "core/distributed/store/store.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/thread.h"
#include "core/distributed/hmac.h"
#include "core/distributed/store/file_store.h"
#include "core/distributed/store/memory_store.h"
#include "core/distributed/store/prefix_store.h"
#include "core/distributed/store/tcp_store.h"
#include "core/distributed/store/tcp_wire.h"

namespace tensord::distributed::store_test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

std::string temporary_path() {
  static int count = 0;
  return (std::filesystem::temp_directory_path() / concat("store_test_", getpid(), "_", ++count)).string();
}

template <class Fn>
Error error_of(const Fn& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(ErrorCode::kInternal, "none");
}

std::vector<std::string> names(std::initializer_list<std::string> list) { return list; }

// Every kind of store, each also behind a prefix.
class Stores : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const std::string kind = GetParam().substr(0, GetParam().find('_'));
    if (kind == "memory") store_ = std::make_shared<MemoryStore>();
    if (kind == "file") store_ = std::make_shared<FileStore>(path_ = temporary_path());
    if (kind == "tcp") store_ = std::make_shared<TcpStore>(TcpStoreOptions{.port = 0, .is_server = true});
    own_keys_ = kind == "memory" ? 0 : 1;
    if (GetParam().ends_with("prefix")) store_ = std::make_shared<PrefixStore>("group", store_);
  }
  bool has_queues() const { return path_.empty(); }

  std::shared_ptr<Store> store_;
  std::string path_;
  int64_t own_keys_ = 0;
};

TEST_P(Stores, KeepsWhatIsSet) {
  store_->set("a", "1");
  store_->set("b", std::string("\0\xff x", 4));
  EXPECT_EQ(store_->get("a"), "1");
  EXPECT_EQ(store_->get("b"), std::string("\0\xff x", 4));
  store_->set("a", "");
  EXPECT_EQ(store_->get("a"), "");
  store_->append("a", "x");
  store_->append("new", "y");
  EXPECT_EQ(store_->get("a"), "x");
  EXPECT_EQ(store_->multi_get(names({"new", "a"})), names({"y", "x"}));
  store_->multi_set(names({"m", "n"}), names({"1", "2"}));
  EXPECT_EQ(store_->get("n"), "2");
  EXPECT_EQ(store_->clone()->get("m"), "1");
}

TEST_P(Stores, AddsToDecimalText) {
  EXPECT_EQ(store_->add("n", 5), 5);
  EXPECT_EQ(store_->add("n", -7), -2);
  EXPECT_EQ(store_->get("n"), "-2");
  store_->set("n", "41");
  EXPECT_EQ(store_->add("n", 1), 42);
  store_->set("text", "a1");
  const Error error = error_of([&] { store_->add("text", 1); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(std::string(error.what()).find("text, which holds no number"), std::string::npos) << error.what();
  // The store remains usable (c10d's TCP server drops the client here).
  EXPECT_EQ(store_->get("text"), "a1");
  store_->set("n", "9223372036854775807");
  EXPECT_EQ(error_of([&] { store_->add("n", 1); }).code(), ErrorCode::kInvalidArgument);
}

TEST_P(Stores, ComparesAndSets) {
  EXPECT_EQ(store_->compare_set("k", "wrong", "x"), "wrong");
  EXPECT_FALSE(store_->check("k"));
  EXPECT_EQ(store_->compare_set("k", "", "first"), "first");
  EXPECT_EQ(store_->get("k"), "first");
  EXPECT_EQ(store_->compare_set("k", "wrong", "x"), "first");
  EXPECT_EQ(store_->get("k"), "first");
  EXPECT_EQ(store_->compare_set("k", "first", "second"), "second");
  EXPECT_EQ(store_->get("k"), "second");
  EXPECT_EQ(store_->compare_set("k", "", "x"), "second");
}

TEST_P(Stores, ChecksRemovesAndCounts) {
  EXPECT_EQ(store_->count(), own_keys_);
  store_->set("a", "1");
  store_->set("b", "1");
  EXPECT_EQ(store_->count(), own_keys_ + 2);
  EXPECT_TRUE(store_->check(names({"a", "b"})));
  EXPECT_FALSE(store_->check(names({"a", "c"})));
  EXPECT_FALSE(store_->check(names({})));
  EXPECT_TRUE(store_->remove("a"));
  EXPECT_FALSE(store_->remove("a"));
  EXPECT_FALSE(store_->check("a"));
  EXPECT_EQ(store_->count(), own_keys_ + 1);
  const auto keys = store_->list_keys();
  EXPECT_EQ(std::count(keys.begin(), keys.end(), "b"), 1);
  EXPECT_EQ(std::count(keys.begin(), keys.end(), "a"), 0);
}

TEST_P(Stores, WaitsUntilTheTimeIsOver) {
  for (const bool gets : {false, true}) {
    // The shortest of several attempts, so that a busy machine does not matter.
    Clock::duration shortest = Clock::duration::max();
    for (int i = 0; i < 20 && shortest >= 590ms; ++i) {
      const auto start = Clock::now();
      const Error error = error_of([&] {
        if (gets) store_->get("x", 300ms);
        if (!gets) store_->wait(names({"x", "y"}), 300ms);
      });
      shortest = std::min(shortest, Clock::duration(Clock::now() - start));
      EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
      EXPECT_NE(std::string(error.what()).find("wait timeout after 300ms, keys: "), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("x"), std::string::npos) << error.what();
      EXPECT_GE(shortest, 290ms);
    }
    // Not twice the timeout, as c10d's file store takes.
    EXPECT_LT(shortest, 590ms);
  }
}

TEST_P(Stores, WaitsForWhatComesLater) {
  const auto other = store_->clone();
  Thread writer("writer", [&] {
    std::this_thread::sleep_for(50ms);
    other->set("a", "1");
    std::this_thread::sleep_for(50ms);
    // The same handle, while another thread waits with it: no deadlock.
    store_->set("b", "2");
  });
  store_->wait(names({"a", "b"}), 10s);
  EXPECT_EQ(store_->get("b", 10s), "2");
  writer.join();
}

TEST_P(Stores, AnInterruptEndsTheWaitsOfItsHandleOnly) {
  const auto other = store_->clone();
  Thread interrupter("interrupter", [&] {
    std::this_thread::sleep_for(50ms);
    other->interrupt();
  });
  EXPECT_EQ(error_of([&] { other->wait("never", 20s); }).code(), ErrorCode::kCancelled);
  interrupter.join();
  EXPECT_EQ(error_of([&] { other->get("never", 20s); }).code(), ErrorCode::kCancelled);
  store_->set("a", "1");
  EXPECT_EQ(store_->get("a"), "1");
}

TEST_P(Stores, Queues) {
  if (!has_queues()) {
    EXPECT_EQ(error_of([&] { store_->queue_push("q", "1"); }).code(), ErrorCode::kUnimplemented);
    return;
  }
  store_->queue_push("q", "1");
  store_->queue_push("q", "2");
  EXPECT_EQ(store_->queue_size("q"), 2);
  EXPECT_EQ(store_->queue_pop("q"), "1");
  EXPECT_EQ(store_->queue_pop("q"), "2");
  EXPECT_EQ(store_->queue_size("q"), 0);
  EXPECT_EQ(error_of([&] { store_->queue_pop("q", 50ms); }).code(), ErrorCode::kDeadlineExceeded);
  const auto other = store_->clone();
  Thread writer("writer", [&] { other->queue_push("q", "late"); });
  EXPECT_EQ(store_->queue_pop("q", 10s), "late");
  writer.join();
}

TEST_P(Stores, ManyHandlesAddAndMeet) {
  constexpr int kHandles = 8;
  std::vector<Thread> threads;
  std::atomic<int> arrived = 0;
  for (int i = 0; i < kHandles; ++i) {
    threads.emplace_back("adder", [&, handle = store_->clone()] {
      for (int j = 0; j < 20; ++j) handle->add("n", 1);
      ++arrived;
      handle->barrier("done", kHandles, 20s);
      EXPECT_EQ(arrived, kHandles);
    });
  }
  for (Thread& thread : threads) thread.join();
  EXPECT_EQ(store_->get("n"), std::to_string(kHandles * 20));
}

INSTANTIATE_TEST_SUITE_P(All, Stores,
                         ::testing::Values("memory", "file", "tcp", "memory_prefix", "file_prefix", "tcp_prefix"),
                         [](const auto& info) { return info.param; });

TEST(PrefixStore, KeysLieInOneMap) {
  const auto base = std::make_shared<MemoryStore>();
  PrefixStore store("generation_1", base);
  store.set("a", "1");
  EXPECT_EQ(static_cast<Store&>(*base).get("generation_1/a"), "1");
  base->set("b", "2");
  EXPECT_EQ(store.list_keys(), names({"a"}));
  EXPECT_EQ(store.count(), 2);
}

TEST(FileStore, GoesWithItsLastHandle) {
  const std::string path = temporary_path();
  auto one = std::make_shared<FileStore>(path);
  auto two = one->clone();
  one->set("a", "1");
  one.reset();
  EXPECT_EQ(two->get("a", 1s), "1");
  two.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(FileStore, WhatAKilledWriterLeftIsCutOff) {
  const std::string path = temporary_path();
  const std::shared_ptr<Store> store = std::make_shared<FileStore>(path);
  store->set("a", "1");
  const auto whole = std::filesystem::file_size(path);
  store->set("b", "a longer value");
  for (auto size = std::filesystem::file_size(path) - 1; size > whole; --size) {
    std::filesystem::resize_file(path, size);
    const std::shared_ptr<Store> other = std::make_shared<FileStore>(path);
    EXPECT_FALSE(other->check("b"));
    EXPECT_EQ(other->get("a", 1s), "1");
    other->set("c", "2");
    const std::shared_ptr<Store> third = std::make_shared<FileStore>(path);
    EXPECT_EQ(third->get("c", 1s), "2");
    EXPECT_FALSE(third->check("b"));
    std::filesystem::resize_file(path, whole);
    third->set("b", "a longer value");
  }
}

TEST(FileStore, NamesAFileThatCannotBe) {
  const Error error = error_of([] { FileStore("/nowhere/store"); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(std::string(error.what()).starts_with("/nowhere/store: ")) << error.what();
}

TEST(TcpStore, WaitsForItsWorkers) {
  const Error error =
      error_of([] { TcpStore({.port = 0, .is_server = true, .world_size = 3, .timeout = std::chrono::seconds(1)}); });
  EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
  EXPECT_NE(std::string(error.what()).find("Timed out after 1 seconds waiting for clients. 1/3 clients joined"),
            std::string::npos)
      << error.what();
}

TEST(TcpStore, APortInUseIsNamed) {
  const TcpStore first({.port = 0, .is_server = true});
  const Error error = error_of([&] { TcpStore({.port = first.port(), .is_server = true}); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  const std::string text = error.what();
  EXPECT_NE(text.find("EADDRINUSE"), std::string::npos) << text;
  EXPECT_NE(text.find(std::to_string(first.port())), std::string::npos) << text;
}

TEST(TcpStore, ClientsMayComeBeforeTheServer) {
  // A port that is free now.
  const uint16_t port = TcpStore({.port = 0, .is_server = true}).port();
  std::string got;
  Thread client("client", [&] {
    const std::shared_ptr<Store> store = std::make_shared<TcpStore>(TcpStoreOptions{.port = port, .timeout = 20s});
    got = store->get("a");
  });
  std::this_thread::sleep_for(200ms);
  const TcpStore server({.port = port, .is_server = true});
  const_cast<TcpStore&>(server).set("a", "1");
  client.join();
  EXPECT_EQ(got, "1");
}

TEST(TcpStore, NobodyThereIsAnErrorWithinTheTimeout) {
  const uint16_t port = TcpStore({.port = 0, .is_server = true}).port();
  const auto start = Clock::now();
  const Error error = error_of([&] { TcpStore({.port = port, .timeout = 500ms}); });
  EXPECT_LT(Clock::now() - start, 200s);
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_NE(std::string(error.what()).find(concat("127.0.0.1:", port)), std::string::npos) << error.what();
  EXPECT_EQ(error_of([&] { TcpStore({.host = "no.such.host.invalid", .port = port, .timeout = 100ms}); }).code(),
            ErrorCode::kUnavailable);
}

TEST(TcpStore, AServerThatEndsEndsTheWaits) {
  auto server = std::make_unique<TcpStore>(TcpStoreOptions{.port = 0, .is_server = true});
  const std::shared_ptr<Store> client = std::make_shared<TcpStore>(TcpStoreOptions{.port = server->port()});
  Thread ender("ender", [&] {
    std::this_thread::sleep_for(50ms);
    server.reset();
  });
  const auto start = Clock::now();
  EXPECT_EQ(error_of([&] { client->wait("never", 600s); }).code(), ErrorCode::kUnavailable);
  EXPECT_LT(Clock::now() - start, 300s);
  ender.join();
  // Not silently, as c10d's first set.
  EXPECT_EQ(error_of([&] { client->set("a", "1"); }).code(), ErrorCode::kUnavailable);
}

TEST(TcpStore, WhoHasNotTheTokenIsRefused) {
  const TcpStore server({.port = 0, .is_server = true, .token = "secret"});
  EXPECT_NO_THROW(TcpStore({.port = server.port(), .token = "secret"}));
  for (const std::string token : {"", "Secret", "secret2"}) {
    const Error error = error_of([&] { TcpStore({.port = server.port(), .token = token}); });
    EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
    EXPECT_NE(std::string(error.what()).find("token"), std::string::npos) << error.what();
  }
}

int connect_to(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

TEST(TcpStore, RubbishEndsItsOwnConnectionOnly) {
  const std::shared_ptr<TcpStore> server = std::make_shared<TcpStore>(TcpStoreOptions{.port = 0, .is_server = true});
  unsigned seed = 7;
  for (int i = 0; i < 200; ++i) {
    const FileDescriptor fd(connect_to(server->port()));
    char greeting[32];
    ASSERT_EQ(recv(fd.get(), greeting, sizeof(greeting), MSG_WAITALL), 32);
    std::string bytes;
    if (i % 2) {  // after a valid handshake, garbage
      bytes = tcp::Writer(tcp::Command::kHello).text(hmac_sha256("", std::string_view(greeting + 16, 16))).finish();
    }
    for (int j = 0; j < 40; ++j) {
      if (i % 4 == 3 && j % 10 == 0) bytes += std::string("\x05\0\0\0", 4);  // a plausible size
      bytes.push_back(static_cast<char>(rand_r(&seed)));
    }
    EXPECT_GT(send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
  }
  server->set("a", "1");
  EXPECT_EQ(static_cast<Store&>(*server).get("a"), "1");
}

// Connections that send nothing do not block others, and are not kept forever.
TEST(TcpStore, StrangersAreFewAndSendLittle) {
  const auto server = std::make_shared<TcpStore>(TcpStoreOptions{.port = 0, .is_server = true, .token = "secret"});
  std::vector<std::unique_ptr<FileDescriptor>> silent;
  for (size_t i = 0; i < tcp::kMaxStrangers + 20; ++i) {
    silent.push_back(std::make_unique<FileDescriptor>(connect_to(server->port())));
    char greeting[32];
    ASSERT_EQ(recv(silent.back()->get(), greeting, sizeof(greeting), MSG_WAITALL), 32) << i;
  }
  EXPECT_NO_THROW(TcpStore({.port = server->port(), .token = "secret"}));
  char byte;
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(recv(silent[i]->get(), &byte, 1, 0), 0) << i;
  EXPECT_EQ(recv(silent.back()->get(), &byte, 1, MSG_DONTWAIT), -1);
  // A hello with a wrong token, followed by endless bytes: the server replies and closes the connection.
  const FileDescriptor loud(connect_to(server->port()));
  char greeting[32];
  ASSERT_EQ(recv(loud.get(), greeting, sizeof(greeting), MSG_WAITALL), 32);
  std::string bytes = tcp::Writer(tcp::Command::kHello).text("no proof").finish();
  size_t sent = 0;
  for (ssize_t put = 1; put > 0 && sent < (size_t{64} << 20); sent += static_cast<size_t>(std::max<ssize_t>(put, 0))) {
    put = send(loud.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    bytes.resize(1 << 16);
  }
  EXPECT_LT(sent, size_t{64} << 20);
}

// A client that asks and does not read has its replies, all of them, once it reads; until then little is kept for it.
TEST(TcpStore, RepliesThatNobodyReadsAreFew) {
  const TcpStoreServer server({.host = "127.0.0.1", .port = 0});
  const std::shared_ptr<Store> store = std::make_shared<TcpStore>(TcpStoreOptions{.port = server.port()});
  const std::string value(size_t{4} << 20, 'x');
  store->set("large", value);
  const FileDescriptor fd(connect_to(server.port()));
  char greeting[32];
  ASSERT_EQ(recv(fd.get(), greeting, sizeof(greeting), MSG_WAITALL), 32);
  std::string bytes =
      tcp::Writer(tcp::Command::kHello).text(hmac_sha256("", std::string_view(greeting + 16, 16))).finish();
  constexpr int kAsked = 100;
  const std::vector<std::string> keys = {"large"};
  for (int i = 0; i < kAsked; ++i) bytes += tcp::Writer(tcp::Command::kGet).number(1000).texts(keys).finish();
  ASSERT_EQ(send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  while (server.unread_bytes() < tcp::kMaxUnread - value.size()) std::this_thread::sleep_for(1ms);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(store->get("large"), value);  // others have their turn
    EXPECT_LE(server.unread_bytes(), tcp::kMaxUnread + 2 * (value.size() + 9));
  }
  std::string hello(6, '\0'), reply(value.size() + 9, '\0');
  ASSERT_EQ(recv(fd.get(), hello.data(), 5, MSG_WAITALL), 5);
  for (int i = 0; i < kAsked; ++i) {
    ASSERT_EQ(recv(fd.get(), reply.data(), reply.size(), MSG_WAITALL), static_cast<ssize_t>(reply.size())) << i;
    ASSERT_EQ(static_cast<uint8_t>(reply[4]), tcp::kDone);
    ASSERT_EQ(std::string_view(reply).substr(9), value) << i;
  }
}

TEST(TcpStore, OneCallWaitsForSoManyKeys) {
  const std::shared_ptr<Store> store = std::make_shared<TcpStore>(TcpStoreOptions{.port = 0, .is_server = true});
  std::vector<std::string> keys(tcp::kMaxAwaited, "a");
  store->set("a", "1");
  EXPECT_NO_THROW(store->wait(keys, 1000ms));
  keys.push_back("a");
  EXPECT_THAT(error_of([&] { store->wait(keys, 1000ms); }).what(),
              ::testing::HasSubstr("keys in one call, at most 65536"));
  EXPECT_THAT(error_of([&] { store->check(keys); }).what(), ::testing::HasSubstr("keys in one call, at most 65536"));
}

// A server limits the size of each key, of each value and of all of them together; within the limits it keeps working.
TEST(TcpStore, WhatAServerKeepsIsBounded) {
  const std::shared_ptr<Store> store = std::make_shared<TcpStore>(TcpStoreOptions{.port = 0, .is_server = true});
  const auto refused = [&](const std::function<void()>& call) {
    const Error error = error_of(call);
    EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted) << error.what();
    return std::string(error.what());
  };
  EXPECT_THAT(refused([&] { store->set(std::string(tcp::kMaxKey + 1, 'k'), ""); }), ::testing::HasSubstr("a key of"));
  const std::string large(tcp::kMaxValue, 'x');
  EXPECT_THAT(refused([&] { store->set("a", large + "x"); }), ::testing::HasSubstr("a value of"));
  for (int i = 0; i < 100; ++i) store->set("a", large);  // replaces the old value
  EXPECT_THAT(refused([&] { store->append("a", "x"); }), ::testing::HasSubstr("a value of"));
  for (int i = 0; i < 6; ++i) store->queue_push("q", large);
  EXPECT_THAT(refused([&] { store->queue_push("q", large); }), ::testing::HasSubstr("keys and values of"));
  EXPECT_EQ(store->queue_size("q"), 6);
  EXPECT_EQ(store->queue_pop("q").size(), large.size());
  store->queue_push("q", large);
  EXPECT_TRUE(store->remove("a"));
  store->set("b", large);
  EXPECT_EQ(store->add("n", 1), 1);
}

TEST(TcpStore, TakesALargeValueAndASocketThatListens) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(fd, 16), 0);
  const std::shared_ptr<Store> store =
      std::make_shared<TcpStore>(TcpStoreOptions{.port = 1, .is_server = true, .listen_fd = fd});
  std::string large(20 << 20, 'x');
  for (size_t i = 0; i < large.size(); i += 4096) large[i] = static_cast<char>(i >> 12);
  store->set("large", large);
  EXPECT_EQ(store->get("large"), large);
}

TEST(Proof, IsHmacSha256) {
  // RFC 4231, cases 2 and 6.
  const auto hex = [](const std::string& bytes) {
    std::string digits;
    for (const char byte : bytes) {
      char two[3];
      std::snprintf(two, sizeof(two), "%02x", static_cast<unsigned char>(byte));
      digits += two;
    }
    return digits;
  };
  EXPECT_EQ(hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(hmac_sha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_NE(random_bytes(16), random_bytes(16));
}

}  // namespace
}  // namespace tensord::distributed::store_test
