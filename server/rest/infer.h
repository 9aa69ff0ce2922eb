#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/work_thread.h"
#include "server/executor/requests/request.h"
#include "server/http/answer_text.h"
#include "server/http/exchange.h"
#include "server/rest/call_charge.h"
#include "server/rest/infer_json.h"
#include "server/rest/target.h"
#include "server/transport/grpc/server_state.h"
#include "server/transport/infer/request_context.h"

namespace tensord::server {

// What inference calls use of the HTTP port.
struct RestContext {
  ServerState& state;
  WorkThread& work;  // runs what would block an event loop
  HttpMemoryQuota quota;
};

// One call of infer, generate or generate_stream. It takes the same path as a gRPC call:
//     [decompress →] parse → [wait for the model to load →] submit to the model → respond() on a worker → answer.
// It owns itself until its final response.
class RestInfer final : public InferSink, public std::enable_shared_from_this<RestInfer> {
 public:
  static void start(RestContext& context, std::shared_ptr<HttpExchange> exchange, RestTarget target);

  RestInfer(RestContext& context, std::shared_ptr<HttpExchange> exchange, RestTarget target);
  void respond(InferResult result, bool is_final) override;
  bool is_cancelled() const override { return is_cancelled_.load(std::memory_order_relaxed); }
  std::shared_ptr<const void> hold_memory(uint64_t size_bytes) override { return context_.quota(size_bytes); }

 private:
  void accept();
  void read(InferRequest& request);
  void unpack();
  size_t json_bytes(size_t body_bytes) const;
  RestRequest parse();
  bool waits_for_model(absl::Status& refused);
  void cancel();
  void count_response(const InferResult& result, bool is_final);
  HttpAnswer infer_answer(InferResult& result);
  HttpAnswer generated_answer(InferResult& result);
  void keep_generated(InferResult& result);
  std::optional<HttpAnswer> stream_generated(InferResult& result, bool is_final);
  void write_generated(InferResult& result, AnswerText& out);
  AnswerText answer_text();
  static HttpAnswer failed_answer(const absl::Status& status);
  void finish();
  bool is_generate() const { return target_.call != RestCall::kInfer; }

  RestContext& context_;
  const std::shared_ptr<HttpExchange> exchange_;
  const RestTarget target_;
  std::shared_ptr<RestInfer> self_;  // set until the final response
  int waits_left_ = 3;               // for its model, which may be evicted again before the request is parsed

  std::shared_ptr<BodyText> plain_;                 // the body, if it was compressed or came in pieces
  std::vector<std::shared_ptr<const void>> holds_;  // keep the body's memory alive
  std::string raw_prefix_;                          // length prefix of a BYTES input sent without JSON
  WireMessage wire_;
  OutputForms forms_;
  RequestContext request_context_;
  const CallCharge charge_;  // charges the request context's admission
  std::atomic<bool> is_cancelled_{false};
  std::atomic<ModelVersion*> submitted_to_{nullptr};  // the request context's model, set just before submit()

  // Of the responses so far.
  absl::Status status_;  // the first error
  uint64_t responses_ = 0;
  int64_t previous_ns_ = 0;
  uint64_t generated_ = 0;     // generate only: number of non-empty responses
  AnswerText generated_text_;  // generate only: JSON of the first one
  bool is_streaming_ = false;
};

}  // namespace tensord::server
