#include "server/executor/model/learned_signature.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace tensord::server {
namespace {

LearnedSignature::Seen seen_of(const InferTensor& tensor) {
  return {tensor.name, tensor.datatype, static_cast<int>(tensor.shape.size())};
}

bool is_unknown(const TensorSpec& spec) { return !spec.datatype || !spec.shape; }

void describe_spec(TensorSpec& spec, const LearnedSignature::Seen* seen) {
  const jit::KnownInput& known = spec.known;
  if (!spec.datatype && known.dtype) spec.datatype = from_dtype(*known.dtype);
  if (!spec.datatype && seen) spec.datatype = seen->datatype;
  if (!spec.shape && known.rank) spec.shape = known.shape_of_rank(*known.rank);
  if (!spec.shape && seen) spec.shape = known.shape_of_rank(seen->rank);
}

}  // namespace

class LearnedSignature::Watch final : public InferSink {
 public:
  Watch(LearnedSignature& signature, const InferRequest& request, InferSink& sink)
      : asks_for_all_(request.requested_outputs.empty()),
        indices_(request.input_indices),
        signature_(signature),
        sink_(sink) {
    for (const InferTensor& input : request.inputs) inputs_.push_back(seen_of(input));
  }

  void respond(InferResult result, bool is_final) override {
    const std::unique_ptr<Watch> last(is_final ? this : nullptr);
    if (result.status.ok() && !result.is_empty) signature_.learn(*this, result.outputs);
    sink_.respond(std::move(result), is_final);
  }
  bool is_cancelled() const override { return sink_.is_cancelled(); }
  std::shared_ptr<const void> hold_memory(uint64_t bytes) override { return sink_.hold_memory(bytes); }

  const bool asks_for_all_;
  std::vector<Seen> inputs_;
  const std::vector<size_t> indices_;

 private:
  LearnedSignature& signature_;  // outlives the request, because the model version owns it
  InferSink& sink_;
};

void LearnedSignature::begin(const Signature& signature) {
  const bool has_open = std::ranges::any_of(signature.inputs, is_unknown) ||
                        std::ranges::any_of(signature.outputs, is_unknown) || !signature.outputs_are_complete;
  const MutexLock lock(mutex_);
  inputs_.assign(signature.inputs.size(), std::nullopt);
  is_complete_.store(!has_open, std::memory_order_release);
}

InferSink& LearnedSignature::watch(const InferRequest& request, InferSink& sink) {
  return *std::make_unique<Watch>(*this, request, sink).release();
}

void LearnedSignature::learn(const Watch& watch, std::span<const InferTensor> outputs) {
  const MutexLock lock(mutex_);
  if (is_complete_.exchange(true, std::memory_order_acq_rel)) return;
  for (size_t i = 0; i < watch.inputs_.size(); ++i) {
    if (watch.indices_[i] < inputs_.size()) inputs_[watch.indices_[i]] = watch.inputs_[i];
  }
  has_all_outputs_ = watch.asks_for_all_;
  for (const InferTensor& output : outputs) outputs_.push_back(seen_of(output));
}

void LearnedSignature::describe_output(TensorSpec& spec) const {
  const auto found = std::ranges::find_if(outputs_, [&](const Seen& output) { return spec.answers_to(output.name); });
  // What was seen comes first: requests may differ from what metadata says of the inputs.
  if (found != outputs_.end()) {
    if (!spec.datatype) spec.datatype = found->datatype;
    if (!spec.shape && spec.known.rank == found->rank) spec.shape = spec.known.shape_of_rank(found->rank);
    if (!spec.shape) spec.shape = Dims(static_cast<size_t>(found->rank), -1);
  }
  describe_spec(spec, nullptr);
}

Signature LearnedSignature::described(const Signature& signature) const {
  Signature out = signature;
  const MutexLock lock(mutex_);
  for (size_t i = 0; i < out.inputs.size(); ++i) {
    const bool is_seen = i < inputs_.size() && inputs_[i];
    describe_spec(out.inputs[i], is_seen ? &*inputs_[i] : nullptr);
  }
  for (TensorSpec& spec : out.outputs) describe_output(spec);
  if (out.outputs.empty() && !out.outputs_are_complete && has_all_outputs_) {
    for (const Seen& seen : outputs_) {
      out.outputs.emplace_back().name = seen.name;
      describe_output(out.outputs.back());
    }
  }
  return out;
}

}  // namespace tensord::server
