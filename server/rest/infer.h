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

// What requests of inference use of the port.
struct RestContext {
  ServerState& state;
  WorkThread& work;  // for what would keep the loops from others
  HttpMemoryQuota quota;
};

// One request of infer, generate or generate_stream, on the same way as gRPC's:
//   [unpacked →] read → [its model is loaded →] submitted to the model → respond() on a worker → answered.
// Owns itself until its final response.
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
  std::shared_ptr<RestInfer> self_;  // until the final response
  int waits_left_ = 3;               // for its model; others may take the memory again

  std::shared_ptr<BodyText> plain_;                 // the body, where it came packed or in pieces
  std::vector<std::shared_ptr<const void>> holds_;  // of its memory
  std::string raw_prefix_;                          // of the text that is a body without JSON
  WireMessage wire_;
  OutputForms forms_;
  RequestContext request_context_;
  const CallCharge charge_;  // to the request context's admission
  std::atomic<bool> is_cancelled_{false};
  std::atomic<ModelVersion*> submitted_to_{nullptr};  // the request context's model, from when the request may be there

  // Of responses.
  absl::Status status_;  // the first that was not OK
  uint64_t responses_ = 0;
  int64_t previous_ns_ = 0;
  uint64_t generated_ = 0;     // of generate: responses that are not empty
  AnswerText generated_text_;  // the first of them
  bool is_streaming_ = false;
};

}  // namespace tensord::server
