#include "server/transport/infer/request_context.h"

#include <absl/container/inlined_vector.h>

#include <chrono>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/sanitizer_order.h"
#include "server/config/log_sink.h"
#include "server/executor/requests/status.h"
#include "server/transport/grpc/byte_buffer.h"
#include "server/transport/grpc/grpc_status.h"
#include "server/transport/grpc/unpack.h"
#include "server/transport/infer/decode.h"
#include "server/transport/infer/encode.h"
#include "server/transport/infer/parameters.h"

namespace tensord::server {
namespace {

// Heads up to this size are copied into their slice, which costs less than a reference that keeps them alive.
constexpr size_t kCopiedHeadBytes = 512;

grpc::Slice to_slice(std::string&& head) {
  if (head.size() <= kCopiedHeadBytes) return {head.data(), head.size()};
  auto* const owner = new std::string(std::move(head));
  sanitizer_release(owner);
  return {owner->data(), owner->size(),
          [](void* text) {
            sanitizer_acquire(text);
            delete static_cast<std::string*>(text);
          },
          owner};
}

// Holds the tensor's storage, not the tensor.
grpc::Slice to_slice(const Tensor& payload) {
  StorageImpl* const owner = Storage(payload.storage()).detach();
  sanitizer_release(owner);
  return {payload.raw_data(), payload.size_bytes(),
          [](void* storage) {
            sanitizer_acquire(storage);
            static_cast<StorageImpl*>(storage)->release();
          },
          owner};
}

grpc::ByteBuffer to_byte_buffer(EncodedResponse&& response) {
  absl::InlinedVector<grpc::Slice, 4> slices;
  for (auto& [head, payload] : response.pieces) {
    if (!head.empty()) slices.push_back(to_slice(std::move(head)));
    if (payload.defined()) slices.push_back(to_slice(payload));
  }
  return {slices.data(), slices.size()};
}

// The call's deadline as a time of Clock::system().
int64_t deadline_ns(const grpc::ServerContext& context, int64_t now_ns) {
  using std::chrono::system_clock;
  int64_t deadline = kNoDeadline;
  if (context.deadline() != system_clock::time_point::max()) {
    const auto left = context.deadline() - system_clock::now();
    const int64_t left_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
    if (__builtin_add_overflow(now_ns, left_ns, &deadline)) deadline = kNoDeadline;
  }
  return deadline;
}

// Metadata of a gRPC call.
class GrpcOrigin final : public RequestOrigin {
 public:
  GrpcOrigin(const grpc::ServerContext& context, bool is_stream) : context_(context), is_stream_(is_stream) {}
  int64_t deadline_ns(int64_t now_ns) const override { return server::deadline_ns(context_, now_ns); }
  std::string_view traceparent() const override {
    const auto header = context_.client_metadata().find("traceparent");
    if (header == context_.client_metadata().end()) return {};
    return {header->second.data(), header->second.size()};
  }
  const TransportStamps& stamps() const override { return is_stream_ ? kGrpcStreamStamps : kGrpcStamps; }
  void add_forwarded_headers(const ServerState& state, ParameterMap& parameters) const override {
    state.forwarded_headers.add(context_, parameters);
  }
  const char* decoupled_refusal() const override {
    return "ModelInfer RPC doesn't support models with decoupled transaction policy";
  }

 private:
  const grpc::ServerContext& context_;
  const bool is_stream_;
};

EncodedResponse encode(const RequestContext& request_context, InferResult& result,
                       const std::vector<bool>& is_elsewhere, const ParameterMap& parameters) {
  const ModelVersion& model = *request_context.model;
  const MemoryOwnerScope owner_scope(model.owner());
  EncodedResponse encoded = encode_response({.model_name = model.name(),
                                             .model_version = model.version(),
                                             .id = request_context.id,
                                             .parameters = parameters},
                                            result.outputs, is_elsewhere);
  request_context.metrics->add_copied(encoded.copied_bytes + result.copied_bytes);
  return encoded;
}

// Looks up the shared memory that the request names, and returns the ranges of its inputs.
std::vector<SharedRange> find_memory(const SharedRegions& regions, const TransportParameters& parameters,
                                     OutputPlan& plan) {
  const auto find = [&regions](const SharedPlace& place) {
    return regions.find(place.region, place.offset, place.size_bytes);
  };
  std::vector<SharedRange> inputs;
  for (const SharedPlace& place : parameters.input_places) {
    inputs.push_back(place.is_none() ? SharedRange() : find(place));
    if (!place.is_none()) plan.input_ranges.push_back(inputs.back());
  }
  for (const TransportParameters::Output& output : parameters.outputs) {
    OutputPlan::Output& planned = plan.outputs.emplace_back();
    planned.name = output.name;
    planned.classes = output.classes;
    if (!output.place.is_none()) planned.range = find(output.place);
  }
  return inputs;
}

void decode_into(InferRequest& request, const InferMessage& message, const WireMessage& wire,
                 std::vector<SharedRange> ranges, const ModelVersion& model, CoreBudget* cores,
                 RequestLimits::Admission& admission) {
  const MemoryOwnerScope owner_scope(model.owner());
  DecodedInputs decoded = decode_inputs(message, wire, model.signature(),
                                        {.ranges = std::move(ranges),
                                         .may_scatter = model.gathers_inputs(),
                                         .may_be_on_device = model.takes_device_tensors(),
                                         .cores = cores,
                                         .admission = &admission});
  model.metrics().add_copied(decoded.copied_bytes);
  request.inputs = std::move(decoded.inputs);
  request.input_indices = std::move(decoded.input_indices);
  if (model.signature().max_batch_size > 0 && !request.inputs.empty()) {
    request.batch_size = request.inputs.front().shape[0];
  }
}

}  // namespace

void read_request(ServerState& state, grpc::ByteBuffer& bytes, const grpc::ServerContext& context,
                  RequestContext& request_context, InferRequest& request) {
  request_context.metrics = &state.metrics.unknown_model();
  request_context.arrived_ns = Clock::system().now_ns();
  request_context.admission = state.limits.admit(bytes.Length());
  unpack(bytes, state.limits, request_context.admission);
  const WireMessage wire = to_wire_message(bytes);
  accept_message(state, parse_infer_message(wire, &request_context.admission), wire,
                 GrpcOrigin(context, request_context.takes_many_responses), request_context, request);
}

void accept_message(ServerState& state, InferMessage&& message, const WireMessage& wire, const RequestOrigin& origin,
                    RequestContext& request_context, InferRequest& request) {
  request_context.id = std::move(message.id);
  request_context.model_name = message.model_name;
  request_context.model_version = message.model_version;
  request_context.model = state.repository.find(message.model_name, message.model_version);

  const ModelVersion& model = *request_context.model;
  if (model.config().is_decoupled && !request_context.takes_many_responses) {
    // Not counted as a failure of the model: UNIMPLEMENTED would count as the server's fault, and this is the client's.
    fail(ErrorCode::kUnimplemented, origin.decoupled_refusal());
  }
  request_context.metrics = &request_context.model->metrics();
  request.id = request_context.id;
  request.arrived_ns = request_context.arrived_ns;
  request.deadline_ns = origin.deadline_ns(request_context.arrived_ns);
  const TransportParameters parameters = read_parameters(message, request);
  request_context.wants_empty_final_response = parameters.wants_empty_final_response;
  for (auto& output : message.outputs) request.requested_outputs.push_back(std::move(output.name));
  check_requested_outputs(model.signature(), model.name(), request.requested_outputs);
  origin.add_forwarded_headers(state, request.parameters);
  decode_into(request, message, wire, find_memory(state.shared_memory, parameters, request_context.plan), model,
              state.repository.cores(), request_context.admission);
  if (!request_context.plan.outputs.empty()) {
    request.output_places = output_places(request_context.plan, model.takes_device_tensors());
  }
  request_context.telemetry = RequestTelemetry(state, origin.traceparent(), origin.stamps(), model,
                                               request_context.wait_start_ns, request_context.arrived_ns, request);
}

std::vector<bool> finish_outputs(const RequestContext& request_context, InferResult& result,
                                 RequestLimits::Admission& admission) {
  const MemoryOwnerScope owner_scope(request_context.model->owner());
  return place_outputs(request_context.plan, *request_context.model, result.outputs, result.copied_bytes, &admission);
}

void log_request(const RequestContext& request_context, const char* protocol, const absl::Status& status) {
  if (!logs_requests()) return;
  const double seconds = static_cast<double>(Clock::system().now_ns() - request_context.arrived_ns) / 1e9;
  log(LogLevel::kInfo, "request",
      {{"model", request_context.model_name},
       {"version", request_context.model ? request_context.model->version() : request_context.model_version},
       {"id", request_context.id},
       {"protocol", protocol},
       {"status", absl::StatusCodeToString(status.code())},
       {"seconds", seconds}});
}

grpc::ByteBuffer write_response(RequestContext& request_context, InferResult& result) {
  request_context.telemetry.record_response(result);
  const std::vector<bool> is_elsewhere = finish_outputs(request_context, result, request_context.admission);
  request_context.admission.grow(response_bytes(result.outputs, is_elsewhere));
  EncodedResponse encoded = encode(request_context, result, is_elsewhere, result.parameters);
  request_context.metrics->add_sent(encoded.size_bytes);
  return to_byte_buffer(std::move(encoded));
}

grpc::ByteBuffer write_stream_response(const RequestContext& request_context, InferResult& result, bool is_final,
                                       RequestLimits::Admission& admission) {
  request_context.telemetry.record_response(result);
  const ParameterMap final_response{{"triton_final_response", is_final}};
  std::vector<bool> is_elsewhere;
  if (result.status.ok()) {
    try {
      is_elsewhere = finish_outputs(request_context, result, admission);
    } catch (...) {
      result.status = current_exception_status();
    }
  }
  if (result.status.ok()) {
    admission.grow(response_bytes(result.outputs, is_elsewhere));
    try {
      ParameterMap parameters = final_response;
      parameters.merge(result.parameters);
      EncodedResponse encoded = encode(request_context, result, is_elsewhere, parameters);
      wrap_for_stream(encoded);
      request_context.metrics->add_sent(encoded.size_bytes);
      return to_byte_buffer(std::move(encoded));
    } catch (...) {
      result.status = current_exception_status();
    }
  }
  const grpc::Status status = to_grpc_status(result.status);
  return to_byte_buffer(encode_stream_error(status.error_message(), {.model_name = request_context.model_name,
                                                                     .model_version = request_context.model_version,
                                                                     .id = request_context.id,
                                                                     .parameters = final_response}));
}

}  // namespace tensord::server
