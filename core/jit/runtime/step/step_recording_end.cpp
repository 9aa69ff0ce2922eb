// The end of a recording: what outlives the step, the results, and whether two recordings are the same program.
#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/jit/runtime/step/step_recording.h"
#include "core/ops/run.h"
#include "core/tensor/element_reads.h"

namespace tensord::jit {

using ops::Op;

namespace {

bool is_same_bits(const Tensor& a, const Tensor& b) {
  if (a.sizes() != b.sizes() || a.strides() != b.strides() || a.dtype() != b.dtype()) return false;
  const Tensor x = a.contiguous(), y = b.contiguous();
  return x.size_bytes() == 0 || std::memcmp(x.raw_data(), y.raw_data(), x.size_bytes()) == 0;
}

}  // namespace

void StepRecording::sweep() {
  // Autograd metadata of an unreferenced tensor may hold other tensors, as a view holds its base.
  for (bool is_stable = false; !is_stable;) {
    is_stable = true;
    for (const TensorImpl* impl : live_) {
      const Tensor& handle = known_.at(impl).handle;
      if (impl->use_count() > 1 || !handle.impl()->autograd) continue;
      handle.impl()->autograd = nullptr;
      is_stable = false;
    }
  }
  // Memory whose tensors are referenced by this recording only.
  std::unordered_map<const StorageImpl*, uint32_t> idle;
  for (const TensorImpl* impl : live_) {
    if (impl->use_count() == 1) ++idle[known_.at(impl).storage];
  }
  size_t kept = 0;
  for (const TensorImpl* impl : live_) {
    Known& known = known_.at(impl);
    const auto memory = memory_.find(known.storage);
    const bool stays = memory != memory_.end() &&
                       (memory->second.input >= 0 || memory->second.is_from_outside || memory->second.is_shared);
    const auto count = idle.find(known.storage);
    if (stays || count == idle.end() || (memory != memory_.end() && known.storage->use_count() != count->second)) {
      live_[kept++] = impl;
      continue;
    }
    // The last one frees it. The tensor object stays, so that no other tensor gets its address.
    if (memory != memory_.end()) memory_.erase(memory);
    known.handle.impl()->storage = nullptr;
  }
  live_.resize(kept);
  next_sweep_ = kept + 16;
}

// Anything else that holds a tensor of the step would see one that no later step updates.
void StepRecording::check_nothing_stays(std::span<const Tensor> results) {
  for (const auto& [storage, memory] : memory_) {
    if (memory.input >= 0 || memory.is_from_outside || memory.is_shared) continue;
    const bool is_result = std::any_of(results.begin(), results.end(), [&](const Tensor& tensor) {
      return tensor.defined() && tensor.storage().get() == storage;
    });
    if (is_result) continue;
    const GraphValue* value = memory.views.front().value;
    return refuse(concat("a tensor that ", value->node() ? value->node()->kind_name() : "", " gave outlives the step"));
  }
}

// An outside tensor that somebody else holds may be replaced in the next step.
void StepRecording::check_constants() {
  for (const Outside& outside : outside_) {
    const Tensor& tensor = outside.tensor;
    if (tensor.numel() == 1 && tensor.impl()->use_count() == 1 && tensor.storage()->use_count() == 1) continue;
    return refuse(concat(outside.reader->name(), " reads a tensor that is not known to the step"));
  }
}

void StepRecording::finish(std::span<const Tensor> results) {
  if (refusal_.empty() && element_reads() != reads_) refuse("an element of a tensor is read as a number");
  if (!refusal_.empty()) return;
  try {
    sweep();
    check_nothing_stays(results);
    if (!refusal_.empty()) return;
    std::vector<GraphValue*> outputs;
    static const Op& none = ops::get_op("aten::clone");
    reader_ = &none;
    for (const Tensor& result : results) {
      if (result.defined()) outputs.push_back(tensor_value(result));
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Memory& memory = memory_.at(inputs_[i].storage().get());
      if (!memory.is_written || memory.input != static_cast<int>(i)) continue;
      written_.push_back(i);
      outputs.push_back(memory.views.front().value);
    }
    if (refusal_.empty()) graph_->block()->add_output(builder_.tuple(outputs));
  } catch (const std::exception& error) {
    refuse(error.what());
  }
  known_.clear();
  memory_.clear();
  live_.clear();
  inputs_.clear();
  if (!takes_constants_) check_constants();
}

bool StepRecording::is_same_program(const StepRecording& other, std::string& why_not) const {
  if (log_ != other.log_ || written_ != other.written_ || outside_.size() != other.outside_.size() ||
      folded_.size() != other.folded_.size()) {
    why_not = "two runs with other data called other operators, or the same with other numbers";
    return false;
  }
  for (size_t i = 0; i < outside_.size(); ++i) {
    const Tensor &a = outside_[i].tensor, &b = other.outside_[i].tensor;
    if (a.storage() == b.storage() && layout_of(a) == layout_of(b)) continue;
    if (a.numel() == 1 && b.numel() == 1 && is_same_bits(a, b)) continue;
    why_not = concat(outside_[i].reader->name(), " reads a tensor that no operator made");
    return false;
  }
  for (size_t i = 0; i < folded_.size(); ++i) {
    if (is_same_bits(folded_[i].to_tensor(), other.folded_[i].to_tensor())) continue;
    why_not = "a constant of the step is another in each run";
    return false;
  }
  return true;
}

}  // namespace tensord::jit
