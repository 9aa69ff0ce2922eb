#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/mutex.h"

#include "server/config/trace_options.h"
#include "server/metrics/request_times.h"

namespace tensord::server {

class TraceExporter;

// The distributed trace that a request belongs to, from the W3C header `traceparent`.
struct TraceContext {
  std::array<uint8_t, 16> trace_id{};  // zeros: none
  std::array<uint8_t, 8> span_id{};    // of the caller
  bool is_sampled = false;
  bool is_none() const { return trace_id == std::array<uint8_t, 16>{}; }
};
// None if the header is malformed.
TraceContext parse_traceparent(std::string_view header);

// Triton's names of the events of receiving a request and sending its answer, which depend on the protocol.
struct TransportStamps {
  const char *read_start, *read_end, *send_start, *send_end;
  const char* rpc_method;  // of inference.GRPCInferenceService; null: HTTP
};
inline constexpr TransportStamps kGrpcStamps{"GRPC_WAITREAD_START", "GRPC_WAITREAD_END", "GRPC_SEND_START",
                                             "GRPC_SEND_END", "ModelInfer"};
inline constexpr TransportStamps kGrpcStreamStamps{"GRPC_WAITREAD_START", "GRPC_WAITREAD_END", "GRPC_SEND_START",
                                                   "GRPC_SEND_END", "ModelStreamInfer"};
inline constexpr TransportStamps kHttpStamps{"HTTP_RECV_START", "HTTP_RECV_END", "HTTP_SEND_START", "HTTP_SEND_END",
                                             nullptr};

// Where clients reach this server by a protocol.
struct ServerPlace {
  std::string address;  // of a host, or the path of a socket; empty: unknown
  int port = 0;         // 0: a socket's path
};

// The trace of one request, or of one step of an ensemble.
struct TraceRecord {
  struct Stamp {
    const char* name;  // Triton's: "QUEUE_START"
    int64_t ns;        // on Clock::system()
  };
  struct TensorText {
    const char* activity;  // "TENSOR_QUEUE_INPUT"
    std::string name, datatype, shape, data;
  };
  uint64_t id = 0, parent_id = 0;  // in this process; parent 0: none
  std::string scope;               // whose settings apply: a model's name, or empty for the server's
  TraceSettings settings;
  TransportStamps transport = kGrpcStamps;
  ServerPlace server;
  std::string model, version, request_id;
  TraceContext context;                   // the parent span
  std::array<uint8_t, 8> span_id{};       // of the model's span
  std::array<uint8_t, 8> root_span_id{};  // of the request's span; zeros: this is a step
  std::vector<Stamp> stamps;
  std::vector<TensorText> tensors;
  int status_code = 0;
  std::string status_message;
};

enum class TensorActivity { kInput, kOutput };

// Records what happens to a request. Shared by everything that works on the request; passed to the exporter when the
// last reference is dropped. Thread-safe.
class RequestTrace {
 public:
  RequestTrace(TraceRecord record, std::shared_ptr<TraceExporter> exporter);
  ~RequestTrace();
  RequestTrace(const RequestTrace&) = delete;
  RequestTrace& operator=(const RequestTrace&) = delete;

  uint64_t id() const { return id_; }
  bool wants_tensors() const { return wants_tensors_; }

  // Call once, with the final answer: the times of its phases and its status.
  void record_answer(const RequestTimes& times, int status_code, std::string_view message);
  // Call for each answer of a decoupled model.
  void record_response(int64_t ns);
  // Call when the answer was sent.
  void record_sent(int64_t start_ns, int64_t end_ns);
  // `data`: the elements, separated by commas. Only if wants_tensors().
  void add_tensor(TensorActivity activity, std::string_view name, std::string_view datatype, std::string shape,
                  std::string data);
  // A trace of another model's part of this request.
  std::shared_ptr<RequestTrace> make_step(const std::string& model, const std::string& version);

 private:
  const uint64_t id_;
  const bool wants_tensors_;
  const std::shared_ptr<TraceExporter> exporter_;
  Mutex mutex_;
  TraceRecord record_ TENSORD_GUARDED_BY(mutex_);
};

}  // namespace tensord::server
