#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/body.h"
#include "server/http/connection_table.h"
#include "server/http/exchange.h"
#include "server/http/message.h"
#include "server/http/socket.h"
#include "server/http/timer_wheel.h"

namespace tensord::server {

class EventLoop;

// Time limits of a client. Each starts with the first byte of its phase, not with the last byte received.
struct HttpDeadlines {
  int64_t head_ns = 10'000'000'000;
  int64_t idle_ns = 30'000'000'000;    // between requests, and before the first
  int64_t window_ns = 10'000'000'000;  // in each such window of a body or an answer …
  uint64_t window_bytes = 160 << 10;   // … at least this many bytes must pass
  // Time for a client to read a rejection; extended while its body arrives at the accepted rate.
  int64_t linger_ns = 2'000'000'000;
};

// A connection: receives, handles and answers one request after the other. Used by its loop's thread only.
//     idle → head → [body →] handling → sending → idle, or after a protocol error: sending → lingering → closed
class Connection {
 public:
  Connection(EventLoop& loop, uint64_t id, std::unique_ptr<HttpSocket> socket, std::string address);
  ~Connection();

  Timer& timer() { return timer_; }
  ConnectionTable::Place& place() { return place_; }
  int file() const { return socket_->file(); }

  // `events` of epoll, edge-triggered.
  void on_events(uint32_t events);
  // Continues reading after its last turn was cut short.
  void on_turn() { advance(); }
  void on_deadline();
  // Closes the connection now if it is idle, otherwise after the current answer.
  void drain();
  // Closes the connection in any phase.
  void close();

  void answer(HttpAnswer answer, std::shared_ptr<const void> hold);
  void start_stream(const HttpAnswer& head);
  void send_chunk(HttpPiece piece);
  void finish_stream();

 private:
  enum class State { kIdle, kHead, kBody, kHandling, kStreaming, kSending, kLingering, kClosed };

  void advance();
  bool step();
  bool receive();
  void take_input(std::string_view bytes);
  size_t take_head(std::string_view bytes);
  size_t take_body(std::string_view bytes);
  void begin_request(HttpHead head);
  void handle();
  void refuse(int status, std::string reason);
  void begin_answer(const HttpAnswer& answer, HttpFraming framing);
  bool flush();
  void record_sent(size_t bytes);
  void finish_answer();
  bool waits_for_input() const;
  void become(State state);
  void set_deadline(int64_t after_ns);
  void begin_window();
  void update_window_deadline();

  EventLoop& loop_;
  const uint64_t id_;
  std::unique_ptr<HttpSocket> socket_;
  ConnectionTable::Place place_;
  Timer timer_;
  State state_ = State::kIdle;
  bool may_read_ = true, may_write_ = true;  // until the socket would block
  bool is_advancing_ = false;
  bool is_draining_ = false;
  bool has_ended_ = false;  // the client has closed its side
  bool is_deadline_of_window_ = false;
  uint64_t window_bytes_ = 0;  // bytes in the current window
  uint64_t linger_bytes_ = 0;  // of a rejected body, still to come
  std::string input_;          // received, not consumed
  HttpHead head_;              // of the request whose body arrives
  int64_t head_ns_ = 0;        // when it was received
  std::unique_ptr<BodyReceiver> body_;
  std::shared_ptr<HttpExchange> exchange_;  // being handled or answered
  bool keeps_alive_ = true;                 // after the answer
  bool is_head_request_ = false;            // the answer has no body
  std::vector<HttpHeader> origin_headers_;  // of the answer, see AllowedOrigins
  HttpFraming framing_ = HttpFraming::kLength;
  struct Output {
    HttpPiece piece;
    size_t stream_bytes = 0;  // unsent bytes of a stream, counted for its exchange
  };
  std::deque<Output> output_;
  size_t sent_of_first_ = 0;
  std::shared_ptr<const void> hold_;  // keeps the answer's memory
};

}  // namespace tensord::server
