#include "server/tracing/request_trace.h"

#include <algorithm>
#include <atomic>
#include <random>

#include "core/base/ascii.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "server/tracing/trace_exporter.h"
#include "server/tracing/trace_ids.h"

namespace tensord::server {
namespace {

// Returns -1 unless `c` is a lower-case hexadecimal digit, which traceparent requires.
int digit_of(char c) {
  if (is_ascii_digit(c)) return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

template <size_t N>
bool parse_hex(std::string_view text, std::array<uint8_t, N>& out) {
  if (text.size() != 2 * N) return false;
  for (size_t i = 0; i < N; ++i) {
    const int high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    out[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return true;
}

}  // namespace

uint64_t random_bits() {
  static thread_local std::mt19937_64 generator{std::random_device{}()};
  return generator();
}

uint64_t next_trace_id() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

TraceContext parse_traceparent(std::string_view header) {
  // Format: version-traceid-spanid-flags, such as 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.
  TraceContext out;
  std::array<uint8_t, 1> version{}, flags{};
  const bool is_well_formed = header.size() >= 55 && header[2] == '-' && header[35] == '-' && header[52] == '-' &&
                              parse_hex(header.substr(0, 2), version) && version[0] != 0xff &&
                              (version[0] != 0 ? header.size() == 55 || header[55] == '-' : header.size() == 55) &&
                              parse_hex(header.substr(3, 32), out.trace_id) &&
                              parse_hex(header.substr(36, 16), out.span_id) && parse_hex(header.substr(53, 2), flags);
  if (!is_well_formed || out.span_id == std::array<uint8_t, 8>{}) return {};
  out.is_sampled = (flags[0] & 1) != 0;
  return out;
}

RequestTrace::RequestTrace(TraceRecord record, std::shared_ptr<TraceExporter> exporter)
    : id_(record.id),
      wants_tensors_(record.settings.has_tensors),
      exporter_(std::move(exporter)),
      record_(std::move(record)) {}

RequestTrace::~RequestTrace() {
  std::stable_sort(record_.stamps.begin(), record_.stamps.end(),
                   [](const auto& a, const auto& b) { return a.ns < b.ns; });
  exporter_->add(std::move(record_));
}

void RequestTrace::record_answer(const RequestTimes& times, int status_code, std::string_view message) {
  const MutexLock lock(mutex_);
  record_.status_code = status_code;
  record_.status_message = message.substr(0, 1024);
  if (!record_.settings.has_timestamps) return;
  const auto stamp = [this](const char* name, int64_t ns) TENSORD_REQUIRES(mutex_) {
    if (ns > 0) record_.stamps.push_back({name, ns});
  };
  const int64_t now_ns = Clock::system().now_ns();
  stamp("REQUEST_START", times.arrived_ns);
  stamp("QUEUE_START", times.queue_start_ns);
  if (times.compute_start_ns > 0) {
    stamp("COMPUTE_START", times.compute_start_ns);
    stamp("COMPUTE_INPUT_END", times.compute_input_end_ns);
    stamp("COMPUTE_OUTPUT_START", times.compute_output_start_ns);
    stamp("COMPUTE_END", times.compute_end_ns);
  }
  const bool has_responses = std::any_of(record_.stamps.begin(), record_.stamps.end(), [](const auto& stamp) {
    return std::string_view(stamp.name) == "INFER_RESPONSE_COMPLETE";
  });
  if (!has_responses) stamp("INFER_RESPONSE_COMPLETE", now_ns);
  stamp("REQUEST_END", now_ns);
}

void RequestTrace::record_response(int64_t ns) {
  constexpr size_t kMaxStamps = 4096;
  const MutexLock lock(mutex_);
  if (record_.settings.has_timestamps && record_.stamps.size() < kMaxStamps) {
    record_.stamps.push_back({"INFER_RESPONSE_COMPLETE", ns});
  }
}

void RequestTrace::record_sent(int64_t start_ns, int64_t end_ns) {
  const MutexLock lock(mutex_);
  if (!record_.settings.has_timestamps) return;
  record_.stamps.push_back({record_.transport.send_start, start_ns});
  record_.stamps.push_back({record_.transport.send_end, end_ns});
}

void RequestTrace::add_tensor(TensorActivity activity, std::string_view name, std::string_view datatype,
                              std::string shape, std::string data) {
  if (!wants_tensors_) return;
  const MutexLock lock(mutex_);
  record_.tensors.push_back({activity == TensorActivity::kInput ? "TENSOR_QUEUE_INPUT" : "TENSOR_BACKEND_OUTPUT",
                             std::string(name), std::string(datatype), std::move(shape), std::move(data)});
}

std::shared_ptr<RequestTrace> RequestTrace::make_step(const std::string& model, const std::string& version) {
  TraceRecord step;
  {
    const MutexLock lock(mutex_);
    step.scope = record_.scope;
    step.settings = record_.settings;
    step.request_id = record_.request_id;
    step.context = record_.context;
    step.context.span_id = record_.span_id;
  }
  step.parent_id = id_;
  step.id = next_trace_id();
  step.model = model;
  step.version = version;
  step.span_id = random_id<8>();
  return std::make_shared<RequestTrace>(std::move(step), exporter_);
}

}  // namespace tensord::server
