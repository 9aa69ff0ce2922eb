// The HTTP server through raw sockets: which requests it accepts, in which order it responds, and which connections it
// cuts.
#include "server/http/server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "server/http/chunk_reader.h"
#include "server/http/timer_wheel.h"

namespace tensord::server::http_server_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kMs = 1'000'000;

// A client that sends exactly the given bytes.
class Client {
 public:
  explicit Client(int port) : file_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval timeout{.tv_sec = 60, .tv_usec = 0};
    setsockopt(file_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    EXPECT_EQ(connect(file_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  }
  ~Client() {
    if (file_ >= 0) close(file_);
  }
  Client(Client&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(file_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  // Reads until `end`, or until the server closes.
  std::string read_until(std::string_view end) {
    std::string all;
    char bytes[1 << 16];
    while (all.find(end) == std::string::npos) {
      const ssize_t count = recv(file_, bytes, sizeof(bytes), 0);
      if (count <= 0) break;
      all.append(bytes, static_cast<size_t>(count));
    }
    return all;
  }
  std::string read_all() { return read_until("\1never\1"); }
  int file() const { return file_; }

 private:
  int file_;
};

// Responds "METHOD PATH BODY", at once or when the test says.
class Echo final : public HttpHandler {
 public:
  std::optional<HttpAnswer> admit(const HttpHead& head, BodyPlan& plan) override {
    plan.max_bytes = 1 << 20;
    plan.aligned_at = 5;
    if (head.path == "/refused") return HttpAnswer::text(403, "no");
    return std::nullopt;
  }
  void handle(std::shared_ptr<HttpExchange> exchange) override {
    BodyText joined;
    const std::string_view body = exchange->body().whole(joined);
    if (!exchange->head().is_chunked && body.size() > 5) {
      is_aligned = reinterpret_cast<uintptr_t>(body.data() + 5) % 64 == 0;
    }
    std::string text = exchange->head().method + " " + exchange->head().path + " " + std::string(body);
    if (exchange->head().path == "/late") {
      exchange->when_gone([this] { ++gone; });
      std::thread([exchange, text] { exchange->answer(HttpAnswer::text(200, text)); }).detach();
    } else if (exchange->head().path == "/never") {
      exchange->when_gone([this] { ++gone; });
      const std::lock_guard lock(mutex);
      held.push_back(std::move(exchange));
    } else if (exchange->head().path == "/large") {
      auto memory = std::make_shared<std::string>(8 << 20, 'x');
      HttpAnswer answer;
      answer.body.push_back({"begin", {reinterpret_cast<const uint8_t*>(memory->data()), memory->size()}, memory});
      answer.body.push_back({"end"});
      exchange->answer(std::move(answer));
    } else if (exchange->head().path == "/stream") {
      std::thread([exchange] {
        exchange->start({.type = "text/event-stream"});
        for (int i = 0; i < 3; ++i) exchange->send("event " + std::to_string(i) + "\n");
        exchange->finish();
      }).detach();
    } else if (exchange->head().path == "/flood") {
      std::thread([this, exchange] {
        exchange->start({});
        while (exchange->send(std::string(1 << 20, 'x'))) {
        }
        ++gone;
      }).detach();
    } else {
      exchange->answer(HttpAnswer::text(200, text));
    }
  }

  std::atomic<bool> is_aligned{false};
  std::atomic<int> gone{0};
  std::mutex mutex;
  std::vector<std::shared_ptr<HttpExchange>> held;
};

void wait_for(const std::function<bool()>& holds) {
  while (!holds()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

class HttpServerTest : public ::testing::Test {
 protected:
  Client connect(HttpServer::Options options = {}) {
    if (!server_) server_.emplace(options, echo_);
    return Client(server_->port());
  }
  // The response to one request on a new connection.
  std::string ask(const std::string& request) {
    Client client = connect();
    client.send(request);
    return client.read_all();
  }

  Echo echo_;
  std::optional<HttpServer> server_;  // destroyed before the members that it uses
};

TEST_F(HttpServerTest, AnswersAndKeepsTheConnection) {
  Client client = connect();
  for (int i = 0; i < 3; ++i) {
    client.send("GET /a%20b?x=1 HTTP/1.1\r\nHost: x\r\n\r\n");
    const std::string answer = client.read_until("GET /a b ");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(answer, HasSubstr("Content-Length: 9\r\nConnection: keep-alive\r\n\r\n"));
  }
  client.send("POST /x HTTP/1.1\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc");
  EXPECT_THAT(client.read_all(), HasSubstr("Connection: close\r\n\r\nPOST /x abc"));
}

TEST_F(HttpServerTest, BytesMayComeOneByOne) {
  Client client = connect();
  for (const char byte : std::string("POST /x HTTP/1.1\r\nContent-Length: 10\r\nConnection: close\r\n\r\n0123456789")) {
    client.send({&byte, 1});
  }
  EXPECT_THAT(client.read_all(), HasSubstr("POST /x 0123456789"));
  EXPECT_TRUE(echo_.is_aligned);
}

TEST_F(HttpServerTest, PipelinedRequestsAreAnsweredInOrder) {
  Client client = connect();
  client.send(
      "GET /late HTTP/1.1\r\n\r\nPOST /b HTTP/1.1\r\nContent-Length: 2\r\n\r\nhiGET /late HTTP/1.1\r\n\r\n"
      "\r\nGET /last HTTP/1.1\r\nConnection: close\r\n\r\n");
  const std::string all = client.read_all();
  const size_t first = all.find("GET /late "), second = all.find("POST /b hi"), third = all.rfind("GET /late "),
               last = all.find("GET /last ");
  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
  EXPECT_LT(third, last);
  EXPECT_NE(last, std::string::npos);
}

TEST_F(HttpServerTest, BodiesInChunks) {
  std::string large(100'000, 'y');
  const std::string head = "POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
  EXPECT_THAT(ask(head + "3;name=value\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: x\r\n\r\n"), HasSubstr("POST /c abcde"));
  EXPECT_THAT(ask(head + "186a0\r\n" + large + "\r\n0\r\n\r\n"), HasSubstr("POST /c " + large));
  EXPECT_THAT(ask(head + "0\r\n\r\n"), HasSubstr("POST /c "));
  EXPECT_THAT(ask(head + "zz\r\nabc\r\n0\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(ask(head + "-3\r\nabc\r\n0\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(ask(head + "3\r\nabcd\r\n0\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(ask(head + "fffffffffffffffff\r\nabcd\r\n0\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(ask(head + "200000\r\n" + std::string(1 << 21, 'z') + "\r\n0\r\n\r\n"), StartsWith("HTTP/1.1 413"));
  std::string chunks;
  for (uint32_t i = 0; i < kMaxChunks; ++i) chunks += "1\r\na\r\n";
  EXPECT_THAT(ask(head + chunks + "0\r\n\r\n"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(ask(head + chunks + "1\r\na\r\n0\r\n\r\n"),
              ::testing::AllOf(StartsWith("HTTP/1.1 400"),
                               HasSubstr("Chunked request body exceeds maximum of 65536 non-empty chunks.")));
  // Byte by byte, too.
  Client client = connect();
  for (const char byte : head + "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n") client.send({&byte, 1});
  EXPECT_THAT(client.read_all(), HasSubstr("POST /c abcde"));
}

TEST_F(HttpServerTest, RefusesWhatIsNoRequest) {
  for (const std::string& request : {
           std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
           std::string("\x16\x03\x01\x02"),  // TLS
           std::string("GET / HTTP/1.1\nHost: x\n\r\n\r\n"),
           std::string("GET /%zz HTTP/1.1\r\n\r\n"),
           std::string("GET /%00 HTTP/1.1\r\n\r\n"),
           std::string("GET / HTTP/9.9\r\n\r\n"),
           std::string("POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"),
           std::string("POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabcd"),
           std::string("POST / HTTP/1.1\r\nContent-Length: -3\r\n\r\nabcd"),
           std::string("POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\nabcd"),
           std::string("GET / HTTP/1.1\r\nna me: x\r\n\r\n"),
           std::string("GET / HTTP/1.1\r\nname: a\0b\r\n\r\n", 32),
       }) {
    EXPECT_THAT(ask(request), StartsWith("HTTP/1.1 400 Bad Request\r\n")) << request;
  }
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nname: " + std::string(9000, 'x') + "\r\n\r\n"), StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(ask("POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"), StartsWith("HTTP/1.1 501"));
  EXPECT_THAT(ask("POST / HTTP/1.1\r\nContent-Length: 2000000\r\n\r\n"), StartsWith("HTTP/1.1 413"));
}

TEST_F(HttpServerTest, ARefusedClientReadsItsAnswer) {
  // It sends its body all the same.
  const std::string body(4 << 20, 'x');
  Client client = connect();
  client.send("POST /refused HTTP/1.1\r\nContent-Length: 4194304\r\n\r\n");
  std::thread sender([&] { client.send(body); });
  EXPECT_THAT(client.read_all(), StartsWith("HTTP/1.1 403"));
  sender.join();
  // Without a body the connection stays open.
  Client other = connect();
  other.send("GET /refused HTTP/1.1\r\n\r\nGET /x HTTP/1.1\r\nConnection: close\r\n\r\n");
  const std::string all = other.read_all();
  EXPECT_THAT(all, StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(all, HasSubstr("GET /x "));
}

TEST_F(HttpServerTest, ExpectedContinueIsSent) {
  Client client = connect();
  client.send("POST /e HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("abc");
  EXPECT_THAT(client.read_all(), HasSubstr("POST /e abc"));
  EXPECT_THAT(ask("POST /refused HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"),
              StartsWith("HTTP/1.1 403"));
}

TEST_F(HttpServerTest, HeadHasNoBodyAndOldClientsAreUnderstood) {
  EXPECT_THAT(ask("HEAD /x HTTP/1.1\r\nConnection: close\r\n\r\n"), ::testing::EndsWith("\r\n\r\n"));
  EXPECT_THAT(ask("GET /old HTTP/1.0\r\n\r\n"), HasSubstr("Connection: close\r\n\r\nGET /old "));
  EXPECT_THAT(ask("GET /stream HTTP/1.0\r\n\r\n"), HasSubstr("\r\n\r\nevent 0\nevent 1\nevent 2\n"));
}

TEST_F(HttpServerTest, StreamsAreSentInChunks) {
  EXPECT_THAT(ask("GET /stream HTTP/1.1\r\nConnection: close\r\n\r\n"),
              HasSubstr("Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
                        "8\r\nevent 0\n\r\n8\r\nevent 1\n\r\n8\r\nevent 2\n\r\n0\r\n\r\n"));
}

TEST_F(HttpServerTest, LargeAnswersComeWhole) {
  const std::string all = ask("GET /large HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(all, HasSubstr("Content-Length: 8388616\r\n"));
  EXPECT_THAT(all.substr(all.size() - 10), "xxxxxxxend");
  EXPECT_EQ(all.size() - all.find("begin"), 8388616u);
}

TEST_F(HttpServerTest, TheHandlerHearsThatTheClientHasGone) {
  {
    Client client = connect();
    client.send("GET /never HTTP/1.1\r\n\r\n");
    wait_for([this] {
      const std::lock_guard lock(echo_.mutex);
      return !echo_.held.empty();
    });
    EXPECT_EQ(echo_.gone, 0);
  }
  wait_for([this] { return echo_.gone == 1; });
  EXPECT_TRUE(echo_.held[0]->is_gone());
  echo_.held[0]->answer(HttpAnswer::text(200, "too late"));
}

TEST_F(HttpServerTest, AStreamThatNobodyReadsIsCut) {
  Client client = connect();
  client.send("GET /flood HTTP/1.1\r\n\r\n");
  wait_for([this] { return echo_.gone == 1; });
}

TEST_F(HttpServerTest, MemoryIsTakenFromTheQuotaAndGivenBack) {
  std::atomic<int64_t> used{0}, max{0};
  HttpServer::Options options;
  options.quota = [&](uint64_t bytes) -> std::shared_ptr<const void> {
    const int64_t now = used += static_cast<int64_t>(bytes);
    if (now > (1 << 20)) {
      used -= static_cast<int64_t>(bytes);
      fail(ErrorCode::kResourceExhausted, "no room for ", bytes);
    }
    if (now > max) max = now;
    return std::shared_ptr<const void>(&used, [&used, bytes](const void*) { used -= static_cast<int64_t>(bytes); });
  };
  std::vector<Client> clients;
  clients.push_back(connect(options));
  clients[0].send("POST /a HTTP/1.1\r\nContent-Length: 900000\r\n\r\n");
  wait_for([&] { return used >= 900'000; });
  EXPECT_THAT(ask("POST /b HTTP/1.1\r\nContent-Length: 900000\r\n\r\n"),
              ::testing::AllOf(StartsWith("HTTP/1.1 429 Too Many Requests"), HasSubstr("Retry-After: 1\r\n"),
                               HasSubstr("Connection: close"), HasSubstr("{\"error\":\"no room for 900")));
  EXPECT_THAT(ask("POST /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n80000\r\n" + std::string(1 << 19, 'x')),
              StartsWith("HTTP/1.1 429"));
  EXPECT_THAT(ask("GET /large HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 429"));  // the response counts too
  clients.clear();
  wait_for([&] { return used == 0; });
  EXPECT_THAT(ask("POST /b HTTP/1.1\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc"), HasSubstr("POST /b abc"));
  server_.reset();
  EXPECT_EQ(used, 0);
}

TEST_F(HttpServerTest, DeadlinesRunFromTheFirstByte) {
  HttpServer::Options options;
  options.deadlines = {
      .head_ns = 300 * kMs, .idle_ns = 600 * kMs, .window_ns = 300 * kMs, .window_bytes = 1000, .linger_ns = 300 * kMs};
  const auto cut_after_ms = [](Client& client, std::string_view begin, char drip) {
    const int64_t start = Clock::system().now_ns();
    client.send(begin);
    std::atomic<bool> is_over{false};
    std::thread sender([&] {
      while (!is_over && (drip == 0 || client.send({&drip, 1}))) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    });
    client.read_all();
    is_over = true;
    sender.join();
    return (Clock::system().now_ns() - start) / kMs;
  };
  Client drips = connect(options), body = connect(), silent = connect();
  EXPECT_GE(cut_after_ms(drips, "GET / HTTP/1.1\r\nname: ", 'x'), 290);
  EXPECT_GE(cut_after_ms(body, "POST / HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n", 'x'), 290);
  EXPECT_GE(cut_after_ms(silent, "", 0), 0);
  // A client that reads nothing.
  Client stalled = connect();
  stalled.send("GET /large HTTP/1.1\r\n\r\n");
  wait_for([this] { return server_->connections() == 0; });
}

TEST_F(HttpServerTest, WhoIsRefusedMaySendHisBodyAndReadsWhy) {
  HttpServer::Options options;
  options.deadlines = {.window_ns = 200 * kMs, .window_bytes = 1000, .linger_ns = 200 * kMs};
  // How many of fifty parts, one every 20 ms, are sent before the connection is cut.
  const auto parts_sent = [](Client& client, const std::string& head, size_t part_bytes) {
    client.send(head);
    int sent = 0;
    while (sent < 50 && client.send(std::string(part_bytes, 'x'))) {
      ++sent;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return sent;
  };
  const std::string head = "POST /refused HTTP/1.1\r\nContent-Length: 50000\r\n\r\n";
  Client honest = connect(options), slow = connect(), endless = connect();
  EXPECT_EQ(parts_sent(honest, head, 1000), 50);
  EXPECT_THAT(honest.read_all(), StartsWith("HTTP/1.1 403"));
  // Neither by sending a byte now and then, nor forever.
  EXPECT_LT(parts_sent(slow, head, 1), 50);
  EXPECT_LT(parts_sent(endless, "POST /refused HTTP/1.1\r\nContent-Length: 5\r\n\r\n", 1000), 50);
}

TEST_F(HttpServerTest, AFullTableClosesTheOldestIdleConnection) {
  HttpServer::Options options;
  options.threads = 1;  // a client may read its response before another loop has marked its connection as idle
  options.limits = {.connections = 4, .per_address = 0, .heads_per_address = 2};
  std::vector<Client> busy;
  busy.push_back(connect(options));
  busy[0].send("GET /never HTTP/1.1\r\n\r\n");
  wait_for([this] {
    const std::lock_guard lock(echo_.mutex);
    return !echo_.held.empty();
  });
  std::vector<Client> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(connect());
    clients.back().send("GET /x HTTP/1.1\r\n\r\n");
    clients.back().read_until("GET /x ");
  }
  clients[0].send("GET /x HTTP/1.1\r\n\r\n");  // now the second is the oldest
  clients[0].read_until("GET /x ");
  Client next = connect();
  EXPECT_EQ(clients[1].read_all(), "");
  next.send("GET /next HTTP/1.1\r\n\r\n");
  EXPECT_THAT(next.read_until("GET /next "), HasSubstr("200 OK"));
  // Two connections may have incomplete headers: the third cuts the first.
  EXPECT_EQ(server_->connections(), 4u);
  for (Client* client : {&clients[0], &clients[2], &next}) client->send("GET /half");
  wait_for([this] { return server_->connections() == 3; });
  EXPECT_EQ(echo_.gone, 0);
}

TEST_F(HttpServerTest, AFullTableClosesConnectionsOfEveryLoop) {
  HttpServer::Options options;
  options.threads = 2;
  options.limits = {.connections = 4, .per_address = 0, .heads_per_address = 0};
  std::vector<Client> clients;
  for (int i = 0; i < 32; ++i) clients.push_back(connect(options));
  const auto is_closed = [](const Client& client) {
    char byte = 0;
    return recv(client.file(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
  };
  wait_for([&] { return std::ranges::count_if(clients, is_closed) == 28; });
  EXPECT_EQ(server_->connections(), 4u);
}

TEST_F(HttpServerTest, ABusyTableTakesNoMore) {
  HttpServer::Options options;
  options.limits = {.connections = 0, .per_address = 1, .heads_per_address = 0};
  Client first = connect(options);
  first.send("GET /never HTTP/1.1\r\n\r\n");
  wait_for([this] {
    const std::lock_guard lock(echo_.mutex);
    return !echo_.held.empty();
  });
  EXPECT_EQ(ask("GET /x HTTP/1.1\r\n\r\n"), "");
  echo_.held[0]->answer(HttpAnswer::text(200, "done"));
  EXPECT_THAT(first.read_until("done"), HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, AStopWaitsForWhatIsUnderWay) {
  Client idle = connect(), busy = connect();
  idle.send("GET /x HTTP/1.1\r\n\r\n");
  idle.read_until("GET /x ");
  busy.send("GET /never HTTP/1.1\r\n\r\n");
  wait_for([this] {
    const std::lock_guard lock(echo_.mutex);
    return !echo_.held.empty();
  });
  std::thread stopper([this] { server_->stop(60'000); });
  EXPECT_EQ(idle.read_all(), "");
  echo_.held[0]->answer(HttpAnswer::text(200, "done"));
  EXPECT_THAT(busy.read_all(), HasSubstr("Connection: close\r\n\r\ndone"));
  stopper.join();
  EXPECT_EQ(echo_.gone, 0);
}

TEST_F(HttpServerTest, AStopCutsWhatIsNotDoneInTime) {
  Client busy = connect();
  busy.send("GET /never HTTP/1.1\r\n\r\n");
  wait_for([this] {
    const std::lock_guard lock(echo_.mutex);
    return !echo_.held.empty();
  });
  server_->stop(50);
  EXPECT_EQ(busy.read_all(), "");
  EXPECT_EQ(echo_.gone, 1);
  server_.reset();
  echo_.held[0]->answer(HttpAnswer::text(200, "too late"));  // the client has gone
}

TEST_F(HttpServerTest, APortThatIsTakenIsAnError) {
  connect();
  HttpServer::Options options;
  options.purpose = "tests";
  options.port = server_->port();
  try {
    HttpServer second(options, echo_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot listen for tests on 127.0.0.1:"));
  }
}

TEST(TimerWheel, CallsWhatIsLateAndNothingElse) {
  TimerWheel wheel(0);
  std::vector<uint64_t> late;
  const auto on_late = [&](Timer& timer) { late.push_back(timer.owner); };
  std::array<Timer, 5> timers;
  for (size_t i = 0; i < timers.size(); ++i) timers[i].owner = i;
  wheel.set(timers[0], 100 * kMs);
  wheel.set(timers[1], 200'000 * kMs);  // more than one turn of the wheel
  wheel.set(timers[2], 100 * kMs);
  wheel.set(timers[3], 0);
  wheel.set(timers[4], 150 * kMs);
  wheel.clear(timers[2]);
  wheel.set(timers[4], 5000 * kMs);
  wheel.advance(99 * kMs, on_late);
  EXPECT_EQ(late, (std::vector<uint64_t>{3}));
  wheel.advance(200 * kMs, on_late);
  EXPECT_EQ(late, (std::vector<uint64_t>{3, 0}));
  wheel.advance(199'000 * kMs, on_late);
  EXPECT_EQ(late, (std::vector<uint64_t>{3, 0, 4}));
  wheel.advance(201'000 * kMs, on_late);
  EXPECT_EQ(late, (std::vector<uint64_t>{3, 0, 4, 1}));
  EXPECT_TRUE(wheel.is_empty());
}

}  // namespace
}  // namespace tensord::server::http_server_test
