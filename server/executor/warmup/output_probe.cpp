#include "server/executor/warmup/output_probe.h"

#include <algorithm>
#include <ranges>

#include "core/base/cancellation.h"
#include "core/base/clock.h"
#include "core/base/thread_budget_scope.h"

namespace tensord::server {
namespace {

// Models with longer runs are not probed.
constexpr int64_t kMaxRunNs = 1'000'000'000;

struct Seen {
  int64_t batch_size = 1;
  std::vector<InferTensor> outputs;
};

bool is_known(const TensorSpec& spec) { return spec.datatype && spec.shape; }

bool has_open_inputs(const Signature& signature) {
  const int first = signature.max_batch_size > 0 ? 1 : 0;
  return std::ranges::any_of(signature.inputs, [&](const TensorSpec& spec) {
    return !spec.shape ||
           std::ranges::any_of(*spec.shape | std::views::drop(first), [](int64_t size) { return size < 0; });
  });
}

std::vector<Seen> run_requests(const Model& model, std::span<const WarmupRequest> requests) {
  const std::unique_ptr<ModelSession> session = model.make_session();
  const std::function<bool()> is_cancelled = is_work_cancelled;
  std::vector<Seen> seen;
  for (const WarmupRequest& request : {requests[0], with_random_data(requests[requests.size() > 1 ? 1 : 0])}) {
    std::vector<const InferTensor*> inputs(model.signature().inputs.size(), nullptr);
    for (size_t i = 0; i < request.inputs.size(); ++i) inputs[request.input_indices[i]] = &request.inputs[i];
    const int64_t start_ns = Clock::system().now_ns();
    seen.push_back({request.batch_size, session->run(inputs, {.is_cancelled = is_cancelled}).outputs});
    if (Clock::system().now_ns() - start_ns > kMaxRunNs) break;
  }
  return seen;
}

// Returns nullopt if the results differ in rank or lack the leading batch dimension.
std::optional<Dims> common_shape(const std::vector<const InferTensor*>& outputs, const std::vector<Seen>& seen,
                                 bool has_batch) {
  Dims shape = outputs[0]->shape;
  for (size_t run = 0; run < outputs.size(); ++run) {
    const Dims& other = outputs[run]->shape;
    if (other.size() != shape.size()) return std::nullopt;
    if (has_batch && (other.empty() || other[0] != seen[run].batch_size)) return std::nullopt;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] != other[i] || shape[i] == 0) shape[i] = -1;
    }
  }
  if (has_batch) shape[0] = -1;
  return shape;
}

void complete(TensorSpec& spec, const std::vector<Seen>& seen, bool has_batch, bool takes_shapes) {
  std::vector<const InferTensor*> outputs;
  for (const Seen& run : seen) {
    for (const InferTensor& output : run.outputs) {
      if (spec.answers_to(output.name)) outputs.push_back(&output);
    }
  }
  if (outputs.empty() || outputs.size() != seen.size()) return;
  const DataType datatype = outputs[0]->datatype;
  if (std::any_of(outputs.begin(), outputs.end(), [&](const auto* it) { return it->datatype != datatype; })) return;
  if (!spec.datatype) spec.datatype = datatype;
  if (!spec.shape && takes_shapes) spec.shape = common_shape(outputs, seen, has_batch);
}

}  // namespace

void complete_outputs(const Model& model, std::span<const WarmupRequest> requests, int threads, Signature& signature) {
  if (requests.empty() || model.signature().keeps_state ||
      std::all_of(signature.outputs.begin(), signature.outputs.end(), is_known)) {
    return;
  }
  const ThreadBudgetScope budget(threads);
  try {
    const bool has_batch = signature.max_batch_size > 0;
    // With one batch size, the batch dimension could not be told from others.
    const bool has_two = requests.size() > 1 && requests[0].batch_size != requests[1].batch_size;
    const bool takes_shapes = !has_open_inputs(signature) && (!has_batch || has_two);
    const std::vector<Seen> seen = run_requests(model, requests);
    for (TensorSpec& spec : signature.outputs) complete(spec, seen, has_batch, takes_shapes && seen.size() == 2);
  } catch (const std::exception&) {
    // Warm-up reports the error of the request.
  }
}

}  // namespace tensord::server
