#include "server/http/connection.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "core/base/ascii.h"
#include "core/base/clock.h"
#include "server/http/event_loop.h"

namespace tensord::server {
namespace {

// Fairness: the steps of one connection per turn of the loop, and the bytes received per step.
constexpr int kStepsPerTurn = 16;
constexpr size_t kBytesPerStep = 1 << 20;
constexpr size_t kMaxIovecs = 64;
// How much of a refused body is read and dropped. A client that sends more may not receive the answer.
constexpr uint64_t kMaxLingerBytes = uint64_t{4} << 30;

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
constexpr std::string_view kHeadEnd = "\r\n\r\n";

std::string chunk_head(size_t size_bytes) {
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof(digits), size_bytes, 16).ptr;
  return std::string(digits, end) + "\r\n";
}

}  // namespace

Connection::Connection(EventLoop& loop, uint64_t id, std::unique_ptr<HttpSocket> socket, std::string address)
    : loop_(loop), id_(id), socket_(std::move(socket)) {
  timer_.owner = id;
  place_.address = std::move(address);
  place_.loop = loop.number();
  place_.connection = id;
  set_deadline(loop_.context().deadlines.idle_ns);
}

Connection::~Connection() {
  loop_.timers().clear(timer_);
  loop_.context().table.remove(place_);
}

void Connection::on_events(uint32_t events) {
  if (events & (EPOLLERR | EPOLLHUP)) return close();
  may_read_ = may_read_ || (events & (EPOLLIN | EPOLLRDHUP)) != 0;
  may_write_ = may_write_ || (events & EPOLLOUT) != 0;
  if (events & EPOLLRDHUP) {
    has_ended_ = true;
    if (state_ == State::kStreaming) return close();
    if (state_ == State::kHandling && exchange_) exchange_->record_gone();
  }
  advance();
}

void Connection::on_deadline() {
  const bool is_in_time = is_deadline_of_window_ && window_bytes_ >= loop_.context().deadlines.window_bytes;
  if (is_in_time && (state_ != State::kLingering || linger_bytes_ > 0)) {
    begin_window();
  } else {
    close();
  }
}

void Connection::drain() {
  is_draining_ = true;
  if (state_ == State::kIdle || state_ == State::kHead) close();
}

void Connection::close() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  loop_.retire(id_);
  if (exchange_) exchange_->record_gone();
}

void Connection::advance() {
  if (is_advancing_) return;  // the handler answered from within advance()
  is_advancing_ = true;
  int steps = 0;
  while (state_ != State::kClosed && step()) {
    if (++steps == kStepsPerTurn) {
      loop_.add_turn(id_);
      break;
    }
  }
  is_advancing_ = false;
  update_window_deadline();
}

// Returns false if the connection must wait for an event.
bool Connection::step() {
  if (!output_.empty() && may_write_) return flush();
  if (state_ == State::kSending && output_.empty()) {
    finish_answer();
    return true;
  }
  return waits_for_input() && may_read_ && receive();
}

bool Connection::waits_for_input() const {
  return state_ == State::kIdle || state_ == State::kHead || state_ == State::kBody || state_ == State::kLingering;
}

bool Connection::receive() {
  // A body with a Content-Length is received straight into its memory.
  const bool is_direct = state_ == State::kBody && !body_->is_chunked();
  const std::span<uint8_t> room = is_direct ? body_->room() : std::span<uint8_t>(loop_.scratch());
  const ssize_t count = socket_->receive(room.data(), std::min(room.size(), kBytesPerStep));
  if (count < 0) {
    if (errno == EINTR) return true;
    may_read_ = false;
    if (errno != EAGAIN && errno != EWOULDBLOCK) close();
    return false;
  }
  if (count == 0) {
    close();
    return false;
  }
  const auto bytes = static_cast<size_t>(count);
  if (state_ == State::kLingering) {
    window_bytes_ += bytes;
    linger_bytes_ -= std::min<uint64_t>(linger_bytes_, bytes);
    return true;
  }
  if (is_direct) {
    window_bytes_ += bytes;
    body_->add(bytes);
    if (body_->is_done()) handle();
  } else {
    take_input({reinterpret_cast<const char*>(room.data()), bytes});
  }
  return true;
}

// `bytes` were received after input_.
void Connection::take_input(std::string_view bytes) {
  std::string joined;
  if (!input_.empty()) {
    joined.swap(input_);
    joined.append(bytes);
    bytes = joined;
  }
  while (!bytes.empty()) {
    const size_t used = state_ == State::kBody                             ? take_body(bytes)
                        : state_ == State::kIdle || state_ == State::kHead ? take_head(bytes)
                                                                           : 0;
    if (used == 0) break;
    bytes.remove_prefix(used);
  }
  if (waits_for_input() || state_ == State::kHandling || state_ == State::kSending || state_ == State::kStreaming) {
    input_.assign(bytes);
  }
}

size_t Connection::take_head(std::string_view bytes) {
  const size_t begin = bytes.find_first_not_of("\r\n");  // RFC 9112 allows empty lines before a request
  if (begin == std::string_view::npos) return bytes.size();
  const std::string_view head = bytes.substr(begin);
  if (!is_ascii_letter(head.front())) {
    refuse(400, "this is not an HTTP request");
    return 0;
  }
  const size_t end = head.substr(0, kMaxHeadBytes).find(kHeadEnd);
  if (end == std::string_view::npos) {
    if (head.size() >= kMaxHeadBytes) {
      refuse(431, "the request's headers are too large");
    } else if (state_ == State::kIdle) {
      become(State::kHead);
    }
    return 0;
  }
  ParsedHead parsed = parse_head(head.substr(0, end + kHeadEnd.size()));
  if (parsed.status != 0) {
    refuse(parsed.status, std::move(parsed.reason));
    return 0;
  }
  begin_request(std::move(parsed.head));
  return begin + end + kHeadEnd.size();
}

void Connection::begin_request(HttpHead head) {
  keeps_alive_ = head.keeps_alive;
  is_head_request_ = head.method == "HEAD";
  const bool has_body = head.has_body();
  linger_bytes_ = std::min(head.content_length.value_or(0), kMaxLingerBytes);
  origin_headers_ = loop_.context().origins.headers_for(head);
  BodyPlan plan;
  std::optional<HttpAnswer> early = loop_.context().origins.preflight(head);
  if (!early) early = loop_.context().handler.admit(head, plan);
  if (early) {
    become(State::kHandling);
    early->ends_connection = early->ends_connection || has_body;
    return answer(std::move(*early), nullptr);
  }
  head_ = std::move(head);
  head_ns_ = Clock::system().now_ns();
  if (!has_body) return handle();
  body_ = std::make_unique<BodyReceiver>();
  if (const int status = body_->start(head_, plan, loop_.context().quota); status != 0) {
    return refuse(status, body_->reason(status));
  }
  if (head_.expects_continue) output_.push_back({{std::string(kContinue)}});
  become(State::kBody);
}

size_t Connection::take_body(std::string_view bytes) {
  int status = 0;
  const size_t used = body_->take(bytes, loop_.context().quota, status);
  window_bytes_ += used;
  if (status != 0) {
    refuse(status, body_->reason(status));
    return 0;
  }
  if (body_->is_done()) handle();
  return used;
}

void Connection::handle() {
  exchange_ = std::make_shared<HttpExchange>(loop_.shared_from_this(), id_, std::move(head_),
                                             body_ ? body_->finish() : HttpBody(), loop_.context().quota, head_ns_);
  body_.reset();
  become(State::kHandling);
  loop_.context().handler.handle(exchange_);
}

void Connection::refuse(int status, std::string reason) {
  HttpAnswer refused = status == 429 ? HttpAnswer::no_room(reason) : HttpAnswer::text(status, std::move(reason) + "\n");
  refused.ends_connection = true;
  body_.reset();
  become(State::kHandling);
  answer(std::move(refused), nullptr);
}

void Connection::begin_answer(const HttpAnswer& answer, HttpFraming framing) {
  framing_ = framing;
  keeps_alive_ =
      keeps_alive_ && !answer.ends_connection && !is_draining_ && !has_ended_ && framing != HttpFraming::kUntilEnd;
  output_.push_back({{format_head(answer, framing, keeps_alive_, origin_headers_)}});
  origin_headers_.clear();
}

void Connection::answer(HttpAnswer answer, std::shared_ptr<const void> hold) {
  if (state_ != State::kHandling) return;
  hold_ = std::move(hold);
  begin_answer(answer, HttpFraming::kLength);
  if (!is_head_request_) {
    for (HttpPiece& piece : answer.body) {
      if (piece.size_bytes() != 0) output_.push_back({std::move(piece)});
    }
  }
  become(State::kSending);
  advance();
}

void Connection::start_stream(const HttpAnswer& head) {
  if (state_ != State::kHandling) return;
  const bool is_old = exchange_ && exchange_->head().is_version_1_0;
  begin_answer(head, is_old ? HttpFraming::kUntilEnd : HttpFraming::kChunks);
  become(State::kStreaming);
  advance();
}

void Connection::send_chunk(HttpPiece piece) {
  if (state_ != State::kStreaming) return;
  const size_t bytes = piece.size_bytes();
  if (framing_ == HttpFraming::kChunks) output_.push_back({{chunk_head(bytes)}});
  output_.push_back({std::move(piece), bytes});
  if (framing_ == HttpFraming::kChunks) output_.push_back({{"\r\n"}});
  advance();
}

void Connection::finish_stream() {
  if (state_ != State::kStreaming) return;
  if (framing_ == HttpFraming::kChunks) output_.push_back({{"0\r\n\r\n"}});
  become(State::kSending);
  advance();
}

bool Connection::flush() {
  std::array<iovec, kMaxIovecs> pieces;
  int count = 0;
  size_t skip = sent_of_first_;
  const auto add = [&](const void* data, size_t size_bytes) {
    if (size_bytes > skip) {
      pieces[static_cast<size_t>(count++)] = {const_cast<char*>(static_cast<const char*>(data)) + skip,
                                              size_bytes - skip};
    }
    skip -= std::min(skip, size_bytes);
  };
  for (const Output& output : output_) {
    if (static_cast<size_t>(count) + 2 > kMaxIovecs) break;
    add(output.piece.text.data(), output.piece.text.size());
    add(output.piece.memory.data(), output.piece.memory.size());
  }
  const ssize_t sent = socket_->send(pieces.data(), count);
  if (sent >= 0) {
    record_sent(static_cast<size_t>(sent));
    return true;
  }
  if (errno == EINTR) return true;
  may_write_ = false;
  if (errno == EAGAIN || errno == EWOULDBLOCK) return waits_for_input();
  close();
  return false;
}

void Connection::record_sent(size_t bytes) {
  window_bytes_ += bytes;
  sent_of_first_ += bytes;
  while (!output_.empty() && sent_of_first_ >= output_.front().piece.size_bytes()) {
    sent_of_first_ -= output_.front().piece.size_bytes();
    if (exchange_ && output_.front().stream_bytes != 0) exchange_->record_sent(output_.front().stream_bytes);
    output_.pop_front();
  }
}

void Connection::finish_answer() {
  if (exchange_) exchange_->record_answered();
  exchange_.reset();
  hold_.reset();
  if (keeps_alive_) {
    become(State::kIdle);
    if (is_draining_) return close();
    if (!input_.empty()) take_input({});
    return;
  }
  if (has_ended_) return close();
  // Keep reading for a while: unread data would reset the connection before the client has read the answer.
  socket_->end_sending();
  input_.clear();
  become(State::kLingering);
}

void Connection::become(State state) {
  using Phase = ConnectionTable::Phase;
  if (state_ == State::kClosed) return;
  const auto phase_of = [](State of) {
    return of == State::kIdle || of == State::kLingering ? Phase::kIdle
           : of == State::kHead                          ? Phase::kHead
                                                         : Phase::kBusy;
  };
  const bool is_other_phase = phase_of(state) != phase_of(state_);
  state_ = state;
  const HttpDeadlines& deadlines = loop_.context().deadlines;
  switch (state) {
    case State::kIdle: set_deadline(deadlines.idle_ns); break;
    case State::kHead: set_deadline(deadlines.head_ns); break;
    case State::kLingering:
      begin_window();
      loop_.timers().set(timer_, loop_.now_ns() + deadlines.linger_ns);
      break;
    case State::kBody:
    case State::kSending: begin_window(); break;
    case State::kHandling:
    case State::kStreaming:
    case State::kClosed: loop_.timers().clear(timer_); is_deadline_of_window_ = false;
  }
  if (is_other_phase) loop_.set_phase(*this, phase_of(state));
}

// A streaming connection has a deadline only while data is waiting to be sent.
void Connection::update_window_deadline() {
  if (state_ != State::kStreaming || output_.empty() != is_deadline_of_window_) return;
  if (!output_.empty()) return begin_window();
  loop_.timers().clear(timer_);
  is_deadline_of_window_ = false;
}

void Connection::set_deadline(int64_t after_ns) {
  is_deadline_of_window_ = false;
  loop_.timers().set(timer_, loop_.now_ns() + after_ns);
}

void Connection::begin_window() {
  set_deadline(loop_.context().deadlines.window_ns);
  is_deadline_of_window_ = true;
  window_bytes_ = 0;
}

}  // namespace tensord::server
