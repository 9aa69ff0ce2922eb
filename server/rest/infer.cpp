#include "server/rest/infer.h"

#include <algorithm>
#include <charconv>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "server/executor/requests/status.h"
#include "server/http/compression.h"
#include "server/rest/generate_json.h"
#include "server/rest/input_limits.h"
#include "server/rest/rest_status.h"

namespace tensord::server {
namespace {

// Larger JSON bodies, and all compressed bodies, are parsed off the event-loop threads.
constexpr size_t kMaxLoopBytes = 64 << 10;

// Framing of a server-sent event.
constexpr std::string_view kEventBegin = "data: ", kEventEnd = "\n\n";

// Headers and parameters of an HTTP request.
class HttpOrigin final : public RequestOrigin {
 public:
  HttpOrigin(const HttpHead& head, bool is_generate) : head_(head), is_generate_(is_generate) {}
  int64_t deadline_ns(int64_t) const override { return kNoDeadline; }
  std::string_view traceparent() const override { return head_.header("traceparent"); }
  const TransportStamps& stamps() const override { return kHttpStamps; }
  void add_forwarded_headers(const ServerState& state, ParameterMap& parameters) const override {
    if (state.forwarded_http_headers.is_off() || is_generate_) return;
    for (const HttpHeader& header : head_.headers) {
      state.forwarded_http_headers.add(header.name, header.value, parameters);
    }
  }
  const char* decoupled_refusal() const override {
    return "HTTP end point doesn't support models with decoupled transaction policy";
  }

 private:
  const HttpHead& head_;
  const bool is_generate_;
};

void check_takes_images(const Signature& signature, const std::string& model) {
  const bool takes_images = signature.inputs.size() == 1 && signature.inputs.front().encoded;
  check(takes_images, "model '", model, "' has no single input that takes image files (parameters image_… of its ",
        "config.pbtxt); send its inputs as JSON");
}

}  // namespace

void RestInfer::start(RestContext& context, std::shared_ptr<HttpExchange> exchange, RestTarget target) {
  const auto call = std::make_shared<RestInfer>(context, std::move(exchange), std::move(target));
  call->self_ = call;
  call->exchange_->when_gone([weak = call->weak_from_this()] {
    if (const auto self = weak.lock()) self->cancel();
  });
  const HttpHead& head = call->exchange_->head();
  const uint64_t body_bytes = call->exchange_->body().size_bytes();
  uint64_t parsed_bytes = body_bytes;  // of an image too: its header may be long
  if (const std::string_view text = head.header(kJsonLengthHeader); !text.empty() && !call->is_generate()) {
    std::from_chars(text.data(), text.data() + text.size(), parsed_bytes);
  }
  const bool is_long = parsed_bytes > kMaxLoopBytes || head.is_chunked || !head.header("Content-Encoding").empty();
  if (is_long) {
    context.work.post([call] { call->accept(); });
  } else {
    call->accept();
  }
}

RestInfer::RestInfer(RestContext& context, std::shared_ptr<HttpExchange> exchange, RestTarget target)
    : context_(context),
      exchange_(std::move(exchange)),
      target_(std::move(target)),
      charge_(request_context_.admission, [this] { return is_cancelled(); }) {
  request_context_.takes_many_responses = is_generate();
  request_context_.metrics = &context_.state.metrics.unknown_model();
  request_context_.wait_start_ns = exchange_->began_ns();
  request_context_.arrived_ns = previous_ns_ = exchange_->arrived_ns();
  request_context_.model_name = target_.name;
  request_context_.model_version = target_.version;
}

void RestInfer::accept() {
  InferRequest request;
  InferResult refused;
  try {
    read(request);
    if (is_cancelled()) fail(ErrorCode::kCancelled, "the client has gone");
  } catch (...) {
    refused.status = current_exception_status();
    refused.times.arrived_ns = request_context_.arrived_ns;
    if (waits_for_model(refused.status)) return;
  }
  request_context_.metrics->add_received(exchange_->body().size_bytes());
  request_context_.metrics->add_in_flight(1);
  if (!refused.status.ok()) return respond(std::move(refused), /*is_final=*/true);
  // A final response may arrive before submit() returns; it would destroy this call.
  const std::shared_ptr<RestInfer> self = self_;
  submitted_to_ = request_context_.model.get();
  request_context_.model->submit(std::move(request), *this);
  // The request was cancelled during submit(): cancel() may have run before the model had the request.
  if (is_cancelled()) request_context_.model->record_cancelled();
  exchange_->release_later(self);
}

void RestInfer::read(InferRequest& request) {
  if (is_cancelled()) fail(ErrorCode::kCancelled, "the client has gone");
  request_context_.admission = context_.state.limits.admit(0);  // the HTTP port already counted the body's bytes
  unpack();
  RestRequest parsed = parse();
  forms_ = std::move(parsed.forms);
  accept_message(context_.state, std::move(parsed.message), wire_, HttpOrigin(exchange_->head(), is_generate()),
                 request_context_, request);
}

// Decompresses or concatenates the body and points `wire_` at the result.
void RestInfer::unpack() {
  if (wire_.owner) return;  // already unpacked before it waited for its model
  const Coding coding = request_coding(exchange_->head().header("Content-Encoding"));
  const uint64_t max = context_.state.http_max_input_bytes, max_at_all = context_.state.limits.max_message_bytes();
  const auto pieces = exchange_->body().pieces();
  if (coding != Coding::kIdentity) {
    check(!is_generate(), "Unsupported content-encoding, only 'identity' is supported.");
    plain_ = std::make_shared<BodyText>(
        inflate_body(coding, pieces, max == 0 ? max_at_all : std::min(max, max_at_all), context_.quota, holds_));
  } else if (pieces.size() > 1) {
    holds_.push_back(context_.quota(exchange_->body().size_bytes()));
    plain_ = std::make_shared<BodyText>();
    exchange_->body().whole(*plain_);
  }
  if (plain_) {
    wire_.add_piece({reinterpret_cast<const uint8_t*>(plain_->data()), plain_->size()});
    wire_.owner = plain_;
  } else {
    for (const auto& piece : pieces) wire_.add_piece(piece);
    wire_.owner = exchange_;
  }
}

size_t RestInfer::json_bytes(size_t body_bytes) const {
  const std::string_view text = exchange_->head().header(kJsonLengthHeader);
  if (text.empty()) return body_bytes;
  int64_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  check(error == std::errc() && end == text.data() + text.size(), "Unable to parse ", kJsonLengthHeader,
        ", got: ", text);
  check(bytes >= 0 && static_cast<uint64_t>(bytes) <= body_bytes, "inference header size should be in range (0, ",
        body_bytes, "), got: ", text);
  return static_cast<size_t>(bytes);
}

RestRequest RestInfer::parse() {
  std::string_view body;
  if (!wire_.pieces.empty()) body = {reinterpret_cast<const char*>(wire_.pieces[0].data()), wire_.size_bytes};
  const uint64_t max = context_.state.http_max_input_bytes;
  const bool is_image = !is_generate() && is_image_body(exchange_->head());
  const size_t json = is_generate() ? body.size() : is_image ? 0 : json_bytes(body.size());
  check_json_bytes(json, max);
  if (is_generate()) {
    const auto model = context_.state.repository.find(target_.name, target_.version);
    return parse_generate_json({target_.name, target_.version, model->signature()}, body, max, charge_);
  }
  if (json != 0 || (!is_image && exchange_->head().header(kJsonLengthHeader).empty())) {
    return parse_infer_json(target_.name, target_.version, body.substr(0, json), wire_, json, max, charge_);
  }
  check_raw_bytes(body.size(), max);
  const auto model = context_.state.repository.find(target_.name, target_.version);
  if (is_image) check_takes_images(model->signature(), target_.name);
  RestRequest request = raw_request(target_.name, target_.version, wire_, model->signature(), raw_prefix_);
  // People send images by curl and read the answer; programs ask for bytes.
  if (is_image) request.forms.is_binary = exchange_->head().header("Accept") == "application/octet-stream";
  // The body is the one input. A BYTES element needs its length in front of it.
  if (!raw_prefix_.empty()) {
    const std::span<const uint8_t> prefix{reinterpret_cast<const uint8_t*>(raw_prefix_.data()), raw_prefix_.size()};
    wire_.pieces.insert(wire_.pieces.begin(), prefix);
    wire_.size_bytes += prefix.size();
  }
  request.message.raw_contents.push_back(WireReader(wire_));
  return request;
}

// Waits for a model that can be loaded on demand. The request is parsed again once the model is loaded.
bool RestInfer::waits_for_model(absl::Status& refused) {
  if (request_context_.model || waits_left_ == 0) return false;
  try {
    --waits_left_;
    return context_.state.repository.load_on_demand(
        target_.name, [self = self_] { self->context_.work.post([self] { self->accept(); }); });
  } catch (...) {
    refused = current_exception_status();
    return false;
  }
}

void RestInfer::cancel() {
  is_cancelled_.store(true, std::memory_order_relaxed);
  if (ModelVersion* const model = submitted_to_) model->record_cancelled();
}

void RestInfer::respond(InferResult result, bool is_final) {
  std::optional<HttpAnswer> answer;
  if (!is_generate()) {
    answer = infer_answer(result);
  } else if (target_.call == RestCall::kGenerate) {
    keep_generated(result);
    if (is_final) answer = generated_answer(result);
  } else {
    answer = stream_generated(result, is_final);
  }
  result.outputs.clear();
  // Drops the references to shared memory first, so that a region unregistered meanwhile is freed before the client has
  // its answer.
  if (is_final) request_context_.plan = {};
  // Counts before the exchange ends: a client that has its answer and then asks for statistics sees the request there.
  count_response(result, is_final);
  if (is_final) exchange_->when_sent(request_context_.telemetry.sent_later());
  if (answer) exchange_->answer(std::move(*answer));
  if (is_final && is_streaming_) exchange_->finish();
  if (is_final) finish();
}

HttpAnswer RestInfer::generated_answer(InferResult& result) {
  if (!status_.ok() || !result.status.ok()) return failed_answer(status_.ok() ? result.status : status_);
  if (generated_ == 1) {
    HttpAnswer answer = json_answer({});
    answer.body = generated_text_.take();
    return answer;
  }
  result.status = absl::InternalError(
      "generate expects model to produce exactly 1 response, use generate stream for model that generates various "
      "number of responses");
  return failed_answer(result.status);
}

void RestInfer::count_response(const InferResult& result, bool is_final) {
  if (status_.ok()) status_ = result.status;
  if (is_generate() && request_context_.model && request_context_.model->config().is_decoupled) {
    request_context_.metrics->count_response(responses_++, result.times, previous_ns_,
                                             static_cast<int>(result.status.code()), result.is_empty);
    previous_ns_ = Clock::system().now_ns();
  }
  if (!is_final) return;
  request_context_.metrics->count_answer(result.times, static_cast<int>(status_.code()),
                                         std::string(status_.message()));
  request_context_.metrics->add_in_flight(-1);
  request_context_.telemetry.record_answer(result.times, status_);
  log_request(request_context_, "http", status_);
}

HttpAnswer RestInfer::infer_answer(InferResult& result) {
  if (result.status.ok()) {
    try {
      request_context_.telemetry.record_response(result);
      const MemoryOwnerScope owner_scope(request_context_.model->owner());
      const std::vector<bool> is_elsewhere = finish_outputs(request_context_, result, request_context_.admission);
      InferAnswer encoded =
          encode_infer_json({.model_name = request_context_.model->name(),
                             .model_version = request_context_.model->version(),
                             .id = request_context_.id,
                             .parameters = result.parameters},
                            result.outputs, is_elsewhere, forms_, context_.quota, [this] { return is_cancelled(); });
      request_context_.metrics->add_copied(encoded.copied_bytes + result.copied_bytes);
      deflate_answer(preferred_coding(exchange_->head().header("Accept-Encoding")), context_.quota, encoded.answer);
      request_context_.metrics->add_sent(encoded.answer.size_bytes());
      return std::move(encoded.answer);
    } catch (...) {
      result.status = current_exception_status();
    }
  }
  return failed_answer(result.status);
}

// Writes the outputs as one flat JSON object.
void RestInfer::write_generated(InferResult& result, AnswerText& out) {
  request_context_.telemetry.record_response(result);
  const MemoryOwnerScope owner_scope(request_context_.model->owner());
  finish_outputs(request_context_, result, request_context_.admission);
  const size_t before = out.size_bytes();
  write_generated_json({.model_name = request_context_.model->name(),
                        .model_version = request_context_.model->version(),
                        .id = request_context_.id,
                        .parameters = result.parameters},
                       result.outputs, context_.quota, out);
  request_context_.metrics->add_copied(result.copied_bytes);
  request_context_.metrics->add_sent(out.size_bytes() - before);
}

AnswerText RestInfer::answer_text() {
  return AnswerText(context_.quota, [this] { return is_cancelled(); });
}

void RestInfer::keep_generated(InferResult& result) {
  if (!result.status.ok() || result.is_empty || ++generated_ > 1) return;
  try {
    generated_text_ = answer_text();
    write_generated(result, generated_text_);
  } catch (...) {
    result.status = current_exception_status();
  }
}

// Returns an answer if the stream failed before its first event; otherwise sends the event on the open stream.
std::optional<HttpAnswer> RestInfer::stream_generated(InferResult& result, bool is_final) {
  AnswerText event = answer_text();
  if (result.status.ok() && !result.is_empty && !is_cancelled()) {
    try {
      event += kEventBegin;
      write_generated(result, event);
      event += kEventEnd;
    } catch (...) {
      result.status = current_exception_status();
    }
  }
  std::vector<HttpPiece> pieces = event.take();
  if (!result.status.ok()) {
    if (!is_streaming_) return is_final ? std::optional(failed_answer(result.status)) : std::nullopt;
    pieces.clear();
    pieces.push_back({concat(kEventBegin, error_answer(result.status).body.front().text, kEventEnd)});
  }
  if (!is_streaming_ && (is_final || !pieces.empty())) {
    if (!status_.ok()) return is_final ? std::optional(failed_answer(status_)) : std::nullopt;
    is_streaming_ = true;
    exchange_->start({.type = "text/event-stream; charset=utf-8", .headers = {{"Cache-Control", "no-cache"}}});
  }
  for (HttpPiece& piece : pieces) {
    if (exchange_->send(std::move(piece))) continue;
    cancel();
    break;
  }
  return std::nullopt;
}

HttpAnswer RestInfer::failed_answer(const absl::Status& status) {
  HttpAnswer answer = error_answer(status);
  if (status.code() == absl::StatusCode::kUnimplemented && status.message() == "Unsupported compression type") {
    answer.headers.push_back({"Accept-Encoding", "gzip, deflate"});
  }
  return answer;
}

// Released on the loop's next turn: a model must not be destroyed on one of its own worker threads.
void RestInfer::finish() { exchange_->release_later(std::move(self_)); }

}  // namespace tensord::server
