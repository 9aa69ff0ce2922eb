#include "server/executor/strategies/generation_step.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/tensor/shape.h"
#include "server/executor/strategies/sequence_rows.h"

namespace tensord::server {

// The inputs of a model run, and what keeps them alive.
struct GenerationStep::Inputs {
  std::vector<InferTensor> tensors;
  std::vector<size_t> indices;  // in the model's signature
  uint64_t copied_bytes = 0;
};

namespace {

// Position of signature index `index` among the row's inputs; the end if it is missing.
size_t position_of(const GenerationRow& row, size_t index) {
  const auto found = std::find(row.input_indices.begin(), row.input_indices.end(), index);
  return static_cast<size_t>(found - row.input_indices.begin());
}

const InferTensor& output_named(const std::vector<InferTensor>& outputs, const std::string& name,
                                const std::string& model) {
  const auto found =
      std::find_if(outputs.begin(), outputs.end(), [&](const InferTensor& output) { return output.name == name; });
  if (found == outputs.end()) {
    fail(ErrorCode::kFailedPrecondition, "model '", model, "' did not return output '", name, "'");
  }
  return *found;
}

bool has_nonzero(const Tensor& tensor) {
  const Tensor values = tensor.contiguous();
  bool out = false;
  dispatch_all(values.dtype(), "generation_end_output", [&]<class T>() {
    const T* data = values.data<T>();
    for (int64_t i = 0; i < values.numel(); ++i) out = out || static_cast<float>(data[i]) != 0;
  });
  return out;
}

}  // namespace

GenerationStep::GenerationStep(const std::string& model, const ModelConfig& config, const Signature& signature)
    : name_(model), options_(generation_options(config)), model_(model, config, signature) {
  check(!signature.keeps_state, "sequence_batching.iterative_sequence: the model keeps state in itself; it must be in ",
        "sequence_batching.state");
  const auto& inputs = model_.request_signature().inputs;
  if (!options_.feedback_input.empty()) {
    const auto found = std::find_if(inputs.begin(), inputs.end(),
                                    [&](const TensorSpec& spec) { return spec.answers_to(options_.feedback_input); });
    check(found != inputs.end(), "parameter generation_input: model '", model, "' has no input '",
          options_.feedback_input, "'");
    check(!found->is_optional && !found->takes_bytes, "parameter generation_input: '", options_.feedback_input,
          "' must be a tensor that every request has");
    feedback_input_ = static_cast<size_t>(found - inputs.begin());
  }
  if (pads()) length_input_ = model_.input_named(options_.length_input);
  for (const SequenceModel::State& state : model_.states()) {
    const auto is_open = [](int64_t dim) { return dim == -1; };
    const auto open = std::find_if(state.dims.begin(), state.dims.end(), is_open);
    open_dims_.push_back(open == state.dims.end() ? -1 : open - state.dims.begin());
    check(!pads() || std::count_if(state.dims.begin(), state.dims.end(), is_open) <= 1, "sequence_batching.state '",
          state.input_name, "': only one dim may be -1 with generation_length_input");
  }
}

std::string GenerationStep::key(const GenerationRow& row) const {
  std::string key = row.steps == 0 ? "first;" : "next;";
  for (size_t k = 0; k < model_.request_signature().inputs.size(); ++k) {
    const size_t at = position_of(row, k);
    if (at == row.inputs.size()) {
      key += ';';
    } else if (pads() && k == feedback_input_) {
      InferTensor padded;  // the padded dimension may differ between rows, all others must be equal
      padded.datatype = row.inputs[at].datatype;
      padded.shape = row.inputs[at].shape;
      const auto dim = static_cast<size_t>(first_dim());
      if (dim < padded.shape.size()) padded.shape[dim] = -1;
      append_shape_key(padded, key);
    } else {
      append_shape_key(row.inputs[at], key);
    }
  }
  for (size_t k = 0; k < row.state.size(); ++k) {
    if (open_dims_[k] >= 0 && !pads()) key += to_string(row.state[k].sizes());
  }
  return key;
}

int64_t GenerationStep::new_positions(const GenerationRow& row) const {
  if (feedback_input_ == SIZE_MAX) return 1;
  const Dims& shape = row.inputs[position_of(row, feedback_input_)].shape;
  const auto dim = static_cast<size_t>(first_dim());
  return dim < shape.size() ? shape[dim] : 1;
}

void GenerationStep::add_requests(std::span<GenerationRow* const> rows, Inputs& out) const {
  std::vector<const InferTensor*> parts(rows.size());
  std::vector<const Tensor*> tensors(rows.size());
  for (size_t k = 0; k < model_.request_signature().inputs.size(); ++k) {
    if (position_of(*rows[0], k) == rows[0]->inputs.size()) continue;
    for (size_t i = 0; i < rows.size(); ++i) parts[i] = &rows[i]->inputs[position_of(*rows[i], k)];
    const bool is_feedback = k == feedback_input_;
    if (is_feedback && pads()) {
      for (size_t i = 0; i < rows.size(); ++i) tensors[i] = &parts[i]->tensor;
      const Tensor padded = stack_right_aligned(tensors, first_dim(), &out.copied_bytes);
      out.tensors.push_back(make_input(parts[0]->name, padded));
    } else {
      out.tensors.push_back(stack_rows(parts, &out.copied_bytes));
    }
    out.indices.push_back(model_.model_input(k));
    out.tensors.back().is_own = false;  // reused by later steps
    // Inputs that are the same in every step are kept as views of the batch from now on.
    if (is_feedback || rows.size() == 1) continue;
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i]->inputs[position_of(*rows[i], k)] = row_of(out.tensors.back(), i, rows.size());
    }
  }
}

Tensor GenerationStep::stack_states(std::span<GenerationRow* const> rows, size_t state, uint64_t* copied_bytes) const {
  const int64_t dim = open_dims_[state];
  std::vector<const Tensor*> parts(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) parts[i] = &rows[i]->state[state];
  if (dim < 0 || !pads()) return stack_rows(parts, copied_bytes);
  int64_t longest = 0;
  for (const GenerationRow* row : rows) longest = std::max(longest, row->length);
  const bool is_tight = std::all_of(parts.begin(), parts.end(), [&](const Tensor* part) {
    return part->size(dim) == parts[0]->size(dim) && part->size(dim) <= longest;
  });
  if (is_tight) return stack_rows(parts, copied_bytes);
  // The set of rows changed, so padding is dropped.
  std::vector<Tensor> valid(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    valid[i] = last_of(*parts[i], dim, rows[i]->length);
    parts[i] = &valid[i];
  }
  return stack_right_aligned(parts, dim, copied_bytes);
}

void GenerationStep::add_states(std::span<GenerationRow* const> rows, Inputs& out) const {
  for (size_t k = 0; k < model_.states().size(); ++k) {
    const SequenceModel::State& state = model_.states()[k];
    out.tensors.push_back(make_state(state.input_name, stack_states(rows, k, &out.copied_bytes)));
    out.indices.push_back(state.input);
  }
}

void GenerationStep::add_lengths(std::span<GenerationRow* const> rows, Inputs& out) const {
  if (!pads()) return;
  const auto count = static_cast<int64_t>(rows.size());
  const Tensor lengths = Tensor::empty(model_.has_batch_dimension() ? Dims{count, 1} : Dims{1}, DType::kInt64);
  for (size_t i = 0; i < rows.size(); ++i) {
    lengths.data<int64_t>()[i] = rows[i]->length + new_positions(*rows[i]);
  }
  out.tensors.push_back(make_input(options_.length_input, lengths));
  out.indices.push_back(length_input_);
}

void GenerationStep::add_controls(std::span<GenerationRow* const> rows, Inputs& out) const {
  std::vector<SequenceModel::RowControls> controls;
  for (const GenerationRow* row : rows) {
    controls.push_back({.sequence = &row->id,
                        .is_start = row->steps == 0,
                        .is_end = row->steps + 1 >= row->max_steps,
                        .is_ready = true});
  }
  model_.add_controls(controls, out.tensors, out.indices);
}

GenerationStep::Inputs GenerationStep::gather(std::span<GenerationRow* const> rows) const {
  Inputs out;
  add_requests(rows, out);
  add_states(rows, out);
  add_lengths(rows, out);
  add_controls(rows, out);
  return out;
}

// The input of the next step for all rows, with the rank and type of that input.
InferTensor GenerationStep::next_feedback(const std::vector<InferTensor>& outputs) const {
  const TensorSpec& spec = model_.request_signature().inputs[feedback_input_];
  const InferTensor& output = output_named(outputs, options_.feedback_output, name_);
  InferTensor next = output;
  next.name = spec.name;
  check(!spec.datatype || *spec.datatype == output.datatype, "output '", options_.feedback_output, "' of model '",
        name_, "' has data-type ", name_of(output.datatype), ", but input '", spec.name,
        "' that it is fed back to has ", spec.datatype ? name_of(*spec.datatype) : "");
  if (!next.tensor.defined()) {
    fail(ErrorCode::kFailedPrecondition, "output '", options_.feedback_output, "' of model '", name_,
         "' cannot be fed back: it is BYTES");
  }
  next.tensor = next.tensor.contiguous();
  // One token per row may come without its own dimension.
  if (spec.shape && spec.shape->size() == next.shape.size() + 1) {
    Dims sizes = next.shape;
    sizes.push_back(1);
    Dims strides = contiguous_strides(sizes);
    next.tensor = next.tensor.as_view(sizes, std::move(strides), next.tensor.offset());
    next.shape = std::move(sizes);
  }
  next.is_own = false;  // it is also sent to the client
  // Copied once: if a borrowed tensor were borrowed again in each step, each would keep the previous one alive.
  if (model_.signature().writes_inputs && !next.tensor.storage()->is_writable()) next.tensor = next.tensor.clone();
  return next;
}

bool GenerationStep::is_end(const std::vector<InferTensor>& outputs, const InferTensor& feedback) const {
  if (!options_.end_output.empty()) {
    const InferTensor& end = output_named(outputs, options_.end_output, name_);
    if (end.tensor.defined() && has_nonzero(end.tensor)) return true;
  }
  if (!options_.end_token || feedback.tensor.numel() == 0) return false;
  const Tensor& tokens = feedback.tensor;
  const Tensor last = tokens.as_view({}, {}, tokens.offset() + tokens.numel() - 1);
  return last.to(DType::kInt64).item_int() == *options_.end_token;
}

uint64_t GenerationStep::run(std::span<GenerationRow* const> rows, const Run& run) const {
  Inputs inputs = gather(rows);
  std::vector<const InferTensor*> pointers(model_.signature().inputs.size(), nullptr);
  for (size_t i = 0; i < inputs.tensors.size(); ++i) pointers[inputs.indices[i]] = &inputs.tensors[i];
  RunResult result = run(pointers);
  const std::vector<Tensor> states =
      model_.take_states(result.outputs, rows.size(), inputs.tensors, &inputs.copied_bytes);
  const bool has_batch = model_.has_batch_dimension();
  InferTensor feedback;
  if (feedback_input_ != SIZE_MAX) feedback = next_feedback(result.outputs);
  std::vector<GenerationRow> next;
  for (size_t i = 0; i < rows.size(); ++i) {
    GenerationRow row;
    for (const Tensor& state : states) row.state.push_back(rows.size() > 1 ? row_of(state, i) : state);
    for (const InferTensor& output : result.outputs) {
      row.outputs.push_back(has_batch ? row_of(output, i, rows.size()) : output);
    }
    if (feedback.tensor.defined()) row.inputs.push_back(has_batch ? row_of(feedback, i, rows.size()) : feedback);
    row.is_done =
        rows[i]->steps + 1 >= rows[i]->max_steps || is_end(row.outputs, row.inputs.empty() ? feedback : row.inputs[0]);
    next.push_back(std::move(row));
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    GenerationRow& row = *rows[i];
    row.length += new_positions(row);
    ++row.steps;
    row.state = std::move(next[i].state);
    row.outputs = std::move(next[i].outputs);
    row.is_done = next[i].is_done;
    if (feedback_input_ != SIZE_MAX) row.inputs[position_of(row, feedback_input_)] = std::move(next[i].inputs[0]);
  }
  return inputs.copied_bytes + result.copied_bytes;
}

}  // namespace tensord::server
