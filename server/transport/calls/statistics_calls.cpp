#include "server/transport/calls/statistics_calls.h"

#include <algorithm>
#include <set>

#include "core/tensor/memory/accounts.h"
#include "server/transport/grpc/unary_call.h"

namespace tensord::server {
namespace {

using namespace inference;  // the protocol's messages only

void fill(const DurationSum& from, StatisticDuration* to) {
  to->set_count(from.count);
  to->set_ns(from.ns);
}

void fill_requests(const ModelCounts& counts, InferStatistics* out) {
  fill(counts.success, out->mutable_success());
  fill(counts.fail, out->mutable_fail());
  fill(counts.queue, out->mutable_queue());
  fill(counts.compute_input, out->mutable_compute_input());
  fill(counts.compute_infer, out->mutable_compute_infer());
  fill(counts.compute_output, out->mutable_compute_output());
  fill(counts.cache_hit, out->mutable_cache_hit());
  fill(counts.cache_miss, out->mutable_cache_miss());
}

void fill_response(const ResponseCounts& counts, InferResponseStatistics& out) {
  fill(counts.compute_infer, out.mutable_compute_infer());
  fill(counts.compute_output, out.mutable_compute_output());
  fill(counts.success, out.mutable_success());
  fill(counts.fail, out.mutable_fail());
  fill(counts.empty_response, out.mutable_empty_response());
  fill(counts.cancel, out.mutable_cancel());
}

uint64_t memory_of(OwnerId owner) {
  const std::string name = memory_owner_name(owner);
  for (const OwnerBytes& bytes : bytes_of_owners()) {
    if (bytes.name == name) return bytes.live_bytes;
  }
  return 0;
}

void describe_statistics(const ModelVersion& model, ModelStatistics* out) {
  const ModelCounts counts = model.metrics().counts();
  out->set_name(model.name());
  out->set_version(model.version());
  out->set_last_inference(counts.last_request_unix_ms);
  out->set_inference_count(counts.inference_count);
  out->set_execution_count(counts.execution_count);
  fill_requests(counts, out->mutable_inference_stats());
  for (const auto& [size, batch] : counts.batches) {
    InferBatchStatistics* of_size = out->add_batch_stats();
    of_size->set_batch_size(size);
    fill({batch.count, batch.input_ns}, of_size->mutable_compute_input());
    fill({batch.count, batch.infer_ns}, of_size->mutable_compute_infer());
    fill({batch.count, batch.output_ns}, of_size->mutable_compute_output());
  }
  MemoryUsage* memory = out->add_memory_usage();
  memory->set_type("CPU");
  memory->set_byte_size(memory_of(model.owner()));
  for (size_t i = 0; i < counts.responses.size(); ++i) {
    fill_response(counts.responses[i], (*out->mutable_response_stats())[std::to_string(i)]);
  }
}

void describe_versions(const ServerState& state, const std::string& name, const std::vector<std::string>& versions,
                       ModelStatisticsResponse& response) {
  for (const std::string& version : versions) {
    try {
      describe_statistics(*state.repository.find(name, version), response.add_model_stats());
    } catch (const Error&) {
      response.mutable_model_stats()->RemoveLast();  // unloaded after it was listed
    }
  }
}

}  // namespace

void answer_statistics(const ServerState& state, const ModelStatisticsRequest& request,
                       ModelStatisticsResponse& response) {
  if (!request.version().empty()) {
    check(!request.name().empty(), "ModelStatistics for a version needs the name of the model");
    try {
      describe_statistics(*state.repository.find(request.name(), request.version()), response.add_model_stats());
    } catch (const Error& error) {
      fail(error.code(), "requested model version is not available for model '", request.name(), "': ", error.what());
    }
    return;
  }
  if (!request.name().empty()) {
    state.repository.find(request.name(), "");  // fails if no version is ready
    describe_versions(state, request.name(), state.repository.ready_versions(request.name()), response);
    return;
  }
  std::set<std::string> names;
  for (const auto& entry : state.repository.index()) names.insert(entry.name);
  for (const std::string& name : names) {
    describe_versions(state, name, state.repository.ready_versions(name), response);
  }
}

void wait_statistics_calls(ServerState& state, InferenceService& service, CallQueue queue) {
  wait_unary<ModelStatisticsRequest, ModelStatisticsResponse>(
      queue, CallGroup::kStatistics, TENSORD_START(service, ModelStatistics),
      [&state](const auto& request, auto& response) { answer_statistics(state, request, response); });
}

}  // namespace tensord::server
