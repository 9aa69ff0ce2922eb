#include <httplib.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <nlohmann/json.hpp>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "server/tracing/trace_exporter.h"

namespace tensord::server {
namespace {

using Json = nlohmann::json;

constexpr int kServerKind = 2, kInternalKind = 1;  // values of OTLP's Span.SpanKind
constexpr int kErrorStatus = 2;                    // value of OTLP's Status.StatusCode

template <size_t N>
std::string to_hex(const std::array<uint8_t, N>& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const uint8_t byte : bytes) (out += kDigits[byte >> 4]) += kDigits[byte & 15];
  return out;
}

Json attribute(const std::string& key, const std::string& value) {
  return {{"key", key}, {"value", {{"stringValue", value}}}};
}

// Whole numbers are texts in OTLP's JSON.
Json attribute(const std::string& key, int value) {
  return {{"key", key}, {"value", {{"intValue", std::to_string(value)}}}};
}

// Makes the spans of one trace: of the request (not for steps of ensembles), of the model, of its computation.
class SpanWriter {
 public:
  SpanWriter(const TraceRecord& record, int64_t unix_offset_ns, Json& spans)
      : record_(record), unix_offset_ns_(unix_offset_ns), spans_(spans) {}

  void write() {
    if (record_.stamps.empty()) return;
    const bool is_step = record_.root_span_id == std::array<uint8_t, 8>{};
    if (!is_step) {
      const TransportStamps& transport = record_.transport;
      add("InferRequest", record_.root_span_id, record_.context.span_id, kServerKind,
          {transport.read_end, transport.read_start, "REQUEST_START"}, {transport.send_end, "REQUEST_END"},
          {transport.read_start, transport.read_end, transport.send_start, transport.send_end});
      add_protocol(spans_.back()["attributes"]);
    }
    add(record_.model, record_.span_id, is_step ? record_.context.span_id : record_.root_span_id, kInternalKind,
        {"REQUEST_START"}, {"REQUEST_END"}, {"REQUEST_START", "QUEUE_START", "INFER_RESPONSE_COMPLETE", "REQUEST_END"});
    if (time_of("COMPUTE_START") == 0) return;
    std::array<uint8_t, 8> compute = record_.span_id;
    for (uint8_t& byte : compute) byte = static_cast<uint8_t>(~byte);  // a different ID that is not zero
    add("compute", compute, record_.span_id, kInternalKind, {"COMPUTE_START"}, {"COMPUTE_END"},
        {"COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END"});
  }

 private:
  // Attributes of OpenTelemetry's semantic conventions for RPC and HTTP.
  void add_protocol(Json& attributes) const {
    if (!record_.server.address.empty()) {
      attributes.push_back(attribute("server.address", record_.server.address));
      if (record_.server.port > 0) attributes.push_back(attribute("server.port", record_.server.port));
    }
    if (const char* const method = record_.transport.rpc_method) {
      attributes.push_back(attribute("rpc.system", "grpc"));
      attributes.push_back(attribute("rpc.service", "inference.GRPCInferenceService"));
      attributes.push_back(attribute("rpc.method", method));
      attributes.push_back(attribute("rpc.grpc.status_code", record_.status_code));
    } else {
      attributes.push_back(attribute("http.request.method", "POST"));
    }
  }

  int64_t time_of(std::string_view name) const {
    for (const auto& stamp : record_.stamps) {
      if (name == stamp.name) return stamp.ns;
    }
    return 0;
  }
  int64_t first_of(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (const int64_t ns = time_of(name)) return ns;
    }
    return record_.stamps.back().ns;
  }
  std::string unix_time(int64_t ns) const { return std::to_string(ns + unix_offset_ns_); }

  void add(const std::string& name, const std::array<uint8_t, 8>& id, const std::array<uint8_t, 8>& parent, int kind,
           std::initializer_list<const char*> starts, std::initializer_list<const char*> ends,
           std::initializer_list<std::string_view> events) {
    Json span{{"traceId", to_hex(record_.context.trace_id)},
              {"spanId", to_hex(id)},
              {"name", name},
              {"kind", kind},
              {"startTimeUnixNano", unix_time(first_of(starts))},
              {"endTimeUnixNano", unix_time(first_of(ends))},
              {"attributes",
               {attribute("triton.model_name", record_.model), attribute("triton.model_version", record_.version),
                attribute("triton.trace_id", std::to_string(record_.id))}},
              {"events", Json::array()}};
    if (parent != std::array<uint8_t, 8>{}) span["parentSpanId"] = to_hex(parent);
    if (!record_.request_id.empty()) {
      span["attributes"].push_back(attribute("triton.request_id", record_.request_id));
    }
    if (record_.parent_id != 0) {
      span["attributes"].push_back(attribute("triton.trace_parent_id", std::to_string(record_.parent_id)));
    }
    for (const auto& stamp : record_.stamps) {
      if (std::find(events.begin(), events.end(), stamp.name) == events.end()) continue;
      span["events"].push_back({{"timeUnixNano", unix_time(stamp.ns)}, {"name", stamp.name}});
    }
    if (record_.status_code != 0) span["status"] = {{"code", kErrorStatus}, {"message", record_.status_message}};
    spans_.push_back(std::move(span));
  }

  const TraceRecord& record_;
  const int64_t unix_offset_ns_;
  Json& spans_;
};

class SpanSink final : public TraceSink {
 public:
  explicit SpanSink(const TraceOptions& options) : url_(options.url) {
    const size_t host = std::string_view("http://").size();
    const size_t slash = url_.find('/', host);
    address_ = url_.substr(0, slash);
    path_ = slash == std::string::npos ? "/v1/traces" : url_.substr(slash);
    for (const auto& [key, value] : options.resource) resource_.push_back(attribute(key, value));
  }

  void write(std::vector<TraceRecord> records) override {
    const auto unix_now = std::chrono::system_clock::now().time_since_epoch();
    const int64_t unix_offset_ns =
        std::chrono::duration_cast<std::chrono::nanoseconds>(unix_now).count() - Clock::system().now_ns();
    Json spans = Json::array();
    for (const TraceRecord& record : records) SpanWriter(record, unix_offset_ns, spans).write();
    if (spans.empty()) return;
    const Json scope{{"scope", {{"name", "tensord"}}}, {"spans", std::move(spans)}};
    const Json body{{"resourceSpans",
                     Json::array({{{"resource", {{"attributes", resource_}}}, {"scopeSpans", Json::array({scope})}}})}};
    send(body.dump(-1, ' ', false, Json::error_handler_t::replace), records.size());
  }

 private:
  void send(const std::string& body, size_t traces) {
    httplib::Client client(address_);
    client.set_connection_timeout(2, 0);
    client.set_read_timeout(5, 0);
    client.set_write_timeout(5, 0);
    const auto response = client.Post(path_.c_str(), body, "application/json");
    if (response && response->status / 100 == 2) {
      failures_ = 0;
      return;
    }
    // Logs at powers of two, so that an unreachable collector does not flood the log.
    ++failures_;
    if (!std::has_single_bit(failures_)) return;
    const std::string reason = response ? concat("status ", response->status) : httplib::to_string(response.error());
    log(LogLevel::kWarning, "traces could not be sent", {{"url", url_}, {"reason", reason}, {"traces", traces}});
  }

  const std::string url_;
  std::string address_, path_;
  Json resource_ = Json::array();
  uint64_t failures_ = 0;  // consecutive failures
};

}  // namespace

std::unique_ptr<TraceSink> make_span_sink(const TraceOptions& options) { return std::make_unique<SpanSink>(options); }

}  // namespace tensord::server
