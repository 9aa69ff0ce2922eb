#include "server/tracing/tracer.h"

#include <unistd.h>

#include "core/base/log.h"
#include "core/base/mutex.h"
#include "server/tracing/trace_exporter.h"
#include "server/tracing/trace_ids.h"

namespace tensord::server {
namespace {

std::shared_ptr<TraceExporter> make_exporter(const TraceOptions& options) {
  if (options.mode == TraceOptions::Mode::kTriton) {
    return std::make_shared<TraceExporter>(make_file_sink(options.file), TraceExporter::Options{});
  }
  return std::make_shared<TraceExporter>(make_span_sink(options),
                                         TraceExporter::Options{.max_waiting = options.max_queue_size,
                                                                .batch_size = options.max_export_batch_size,
                                                                .delay_ms = options.schedule_delay_ms});
}

template <class T>
void change_override(const std::optional<std::optional<T>>& change, std::optional<T>& value) {
  if (change) value = *change;
}

}  // namespace

Tracer::Tracer(TraceOptions options)
    : options_(std::move(options)), exporter_(make_exporter(options_)), settings_(options_.settings) {
  update_is_on();
}

Tracer::~Tracer() { stop(); }

TraceSettings Tracer::settings_of(const Overrides* overrides) const {
  TraceSettings out = settings_;
  if (!overrides) return out;
  if (overrides->levels) {
    out.has_timestamps = overrides->levels->has_timestamps;
    out.has_tensors = overrides->levels->has_tensors;
  }
  if (overrides->rate) out.rate = *overrides->rate;
  if (overrides->count) out.count = *overrides->count;
  if (overrides->log_frequency) out.log_frequency = *overrides->log_frequency;
  return out;
}

TraceSettings Tracer::settings(const std::string& model) const {
  const MutexLock lock(mutex_);
  const auto found = models_.find(model);
  return settings_of(found == models_.end() ? nullptr : &found->second);
}

void Tracer::change(const std::string& model, const TraceChanges& changes) {
  const bool is_spans = options_.mode == TraceOptions::Mode::kOpenTelemetry;
  const bool wants_tensors = changes.levels && *changes.levels && (*changes.levels)->has_tensors;
  check(!is_spans || !wants_tensors, "trace_level TENSORS is not supported in mode opentelemetry");
  const MutexLock lock(mutex_);
  if (model.empty()) {
    const TraceSettings& start = options_.settings;
    if (changes.levels) {
      const TraceChanges::Levels levels =
          changes.levels->value_or(TraceChanges::Levels{start.has_timestamps, start.has_tensors});
      settings_.has_timestamps = levels.has_timestamps;
      settings_.has_tensors = levels.has_tensors;
    }
    if (changes.rate) settings_.rate = changes.rate->value_or(start.rate);
    if (changes.count) settings_.count = changes.count->value_or(start.count);
    if (changes.log_frequency) settings_.log_frequency = changes.log_frequency->value_or(start.log_frequency);
  } else {
    Overrides& overrides = models_[model];
    change_override(changes.levels, overrides.levels);
    change_override(changes.rate, overrides.rate);
    change_override(changes.count, overrides.count);
    change_override(changes.log_frequency, overrides.log_frequency);
    if (overrides.is_empty()) models_.erase(model);
  }
  update_is_on();
}

void Tracer::update_is_on() {
  bool is_on = settings_.is_on();
  for (const auto& [model, overrides] : models_) is_on |= settings_of(&overrides).is_on();
  const bool is_kept = options_.mode == TraceOptions::Mode::kOpenTelemetry || !options_.file.empty();
  if (is_on && !is_kept && !is_stopped_) {
    log(LogLevel::kWarning, "requests are not traced: the server was started without --trace-config triton,file=PATH");
  }
  is_on_ = is_on && is_kept && !is_stopped_;
}

std::shared_ptr<RequestTrace> Tracer::sample(const TracedRequest& request) {
  TraceRecord record;
  // A client that traces its own work wants this span in its trace.
  if (options_.mode == TraceOptions::Mode::kOpenTelemetry) record.context = parse_traceparent(request.traceparent);
  record.model = request.model;
  {
    const MutexLock lock(mutex_);
    const auto found = models_.find(record.model);
    Overrides* overrides = found == models_.end() ? nullptr : &found->second;
    record.settings = settings_of(overrides);
    if (!record.settings.is_on()) return nullptr;
    uint64_t& seen = overrides ? overrides->seen : seen_;
    const uint32_t rate = record.settings.rate;
    const bool is_chosen = rate > 0 && ++seen % rate == 0;
    if (!record.context.is_sampled) {
      if (!is_chosen || record.settings.count == 0) return nullptr;
      int32_t& count = overrides && overrides->count ? *overrides->count : settings_.count;
      if (count > 0) --count;
    }
    if (overrides) record.scope = record.model;
    record.server = request.transport.rpc_method ? grpc_ : http_;
  }
  record.id = next_trace_id();
  record.transport = request.transport;
  record.version = request.version;
  record.request_id = request.request_id.substr(0, 1024);
  if (record.context.is_none()) record.context.trace_id = random_id<16>();
  record.span_id = random_id<8>();
  record.root_span_id = random_id<8>();
  if (record.settings.has_timestamps) {
    if (request.read_start_ns > 0) record.stamps.push_back({request.transport.read_start, request.read_start_ns});
    record.stamps.push_back({request.transport.read_end, request.arrived_ns});
  }
  return std::make_shared<RequestTrace>(std::move(record), exporter_);
}

void Tracer::set_places(ServerPlace grpc, ServerPlace http) {
  for (ServerPlace* place : {&grpc, &http}) {
    char name[256] = {};
    const bool is_of_all = place->address == "0.0.0.0" || place->address == "::";
    if (is_of_all && gethostname(name, sizeof(name) - 1) == 0) place->address = name;
  }
  const MutexLock lock(mutex_);
  grpc_ = std::move(grpc);
  http_ = std::move(http);
}

void Tracer::stop() {
  {
    const MutexLock lock(mutex_);
    is_stopped_ = true;
    is_on_ = false;
  }
  exporter_->stop();
}

}  // namespace tensord::server
