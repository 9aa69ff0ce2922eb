#include "core/jit/runtime/step/step_recording.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "core/base/error.h"
#include "core/jit/exporters/function_trace.h"
#include "core/jit/ir/list_value.h"
#include "core/ops/complex.h"
#include "core/ops/run.h"
#include "core/tensor/element_reads.h"

namespace tensord::jit {

using ops::Op;
using ops::OpKind;
using ops::TypeKind;
using ops::TypePtr;
using ops::Value;
using Values = std::span<const Value>;

namespace {

// Maximum size of results that are kept as constants because they depend on no input.
constexpr int64_t kMaxFolded = 4096;

bool is_tensor_list(const Value& value) {
  return value.is_list() && value.to_list()->element->kind() == TypeKind::kTensor;
}

template <class Visit>
void for_each_tensor(const Value& value, Visit&& visit) {
  if (value.is_strided()) {
    if (value.to_tensor().defined()) visit(value.to_tensor());
  } else if (is_tensor_list(value)) {
    for (const Value& item : value.to_list()->items) for_each_tensor(item, visit);
  }
}

template <class Visit>
void for_each_tensor(Values values, Visit&& visit) {
  for (const Value& value : values) for_each_tensor(value, visit);
}

bool has_data(Values values) {
  bool found = false;
  for_each_tensor(values, [&](const Tensor& tensor) { found |= !tensor.is_meta(); });
  return found;
}

bool has_tensor(Values values) {
  bool found = false;
  for_each_tensor(values, [&](const Tensor&) { found = true; });
  return found;
}

// Queries of a tensor that do not read elements.
bool asks_no_element(const Op& op) {
  return reads_no_element(op) || op.schema.name == "aten::__is__" || op.schema.name == "aten::__isnot__";
}

// Values without tensors that may depend on elements.
bool has_numbers(Values values) {
  return std::any_of(values.begin(), values.end(), [](const Value& value) {
    return value.is_number() || value.is_string() || (value.is_list() && !is_tensor_list(value));
  });
}

// Masks among indices: the number of selected elements depends on data.
bool has_mask(Values arguments) {
  return std::any_of(arguments.begin(), arguments.end(), [](const Value& argument) {
    return argument.is_list() &&
           std::any_of(argument.to_list()->items.begin(), argument.to_list()->items.end(), [](const Value& item) {
             if (!item.is_strided() || !item.to_tensor().defined()) return false;
             const DType dtype = item.to_tensor().dtype();
             return dtype == DType::kBool || dtype == DType::kUInt8;
           });
  });
}

bool writes(const Op& op, Values arguments) {
  if (op.base) return true;
  if (op.writes_when >= 0) return arguments[static_cast<size_t>(op.writes_when)].to_bool();
  return std::any_of(op.schema.arguments.begin(), op.schema.arguments.end(), [](const ops::Argument& argument) {
    return argument.alias.is_write && argument.type->kind() == TypeKind::kTensor;
  });
}

}  // namespace

StepRecording::StepRecording(std::span<const Tensor> inputs, std::set<const void*> lasting, bool takes_constants)
    : lasting_(std::move(lasting)),
      takes_constants_(takes_constants),
      inputs_(inputs.begin(), inputs.end()),
      reads_(element_reads()) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    GraphValue* value = graph_->block()->add_input(ops::tensor_type(), concat("input_", i));
    const bool is_known = memory_.contains(inputs_[i].storage().get());
    if (known_.contains(inputs_[i].impl())) continue;  // the first of several names
    know(inputs_[i], value);
    Memory& memory = memory_[inputs_[i].storage().get()];
    memory.is_shared = memory.is_shared || is_known;
    if (!is_known) memory.input = static_cast<int>(i);
  }
}

StepRecording::~StepRecording() = default;

void StepRecording::refuse(std::string reason) {
  if (!refusal_.empty()) return;
  refusal_ = std::move(reason);
  known_.clear();
  memory_.clear();
  live_.clear();
}

void StepRecording::before(const Op& op, Values) {
  if (!refusal_.empty()) return;
  if (element_reads() != reads_) refuse(concat("an element of a tensor is read as a number before ", op.name()));
  if (live_.size() >= next_sweep_) sweep();
}

void StepRecording::after(const Op& op, Values arguments, std::span<Value> returns) {
  reads_ = element_reads();
  if (!refusal_.empty()) return;
  reader_ = &op;
  try {
    record(op, arguments, returns);
  } catch (const std::exception& error) {
    refuse(error.what());
  }
}

void StepRecording::record(const Op& op, Values arguments, Values returns) {
  if (ops::find_unstrided(arguments) || ops::find_unstrided(returns))
    return refuse(concat(op.name(), " works on sparse or quantized tensors"));
  if (ops::has_complex(arguments) || ops::has_complex(returns))
    return refuse(concat(op.name(), " is of complex numbers"));
  const bool reads_elements = has_data(arguments) && has_numbers(returns) && !asks_no_element(op);
  if (reads_elements) return refuse(concat(op.name(), " gives elements as numbers"));
  if (op.has_dynamic_shape || (op.schema.name == "aten::index" && has_mask(arguments)))
    return refuse(concat(op.name(), ": the shape of its result depends on data"));
  if (op.kind == OpKind::kScript) {
    bool is_new = false;
    for_each_tensor(returns, [&](const Tensor& tensor) { is_new |= !known_.contains(tensor.impl()); });
    if (!is_new) return record_host(op, arguments, returns);
  }
  if (!op.is_random && !has_tensor(returns) && !writes(op, arguments)) return;  // queries of shapes
  note(static_cast<int64_t>(reinterpret_cast<intptr_t>(&op)));
  const bool is_write = writes(op, arguments);
  for (const Value& argument : arguments) {
    const bool is_target = is_write && &argument == arguments.data() && argument.is_strided();
    if (!is_target || memory_.contains(argument.to_tensor().storage().get())) record_value(argument);
  }
  if (is_write) {
    const bool is_norm = op.schema.name == "aten::batch_norm" || op.schema.name == "aten::native_batch_norm";
    if (is_norm) return record_batch_norm(op, arguments, returns);
    return record_write(op, arguments);
  }
  if (!op.is_pure && !op.is_random) return refuse(concat(op.name(), " does more than to give its result"));
  if (fold(op, arguments, returns)) return;
  if (op.schema.name == "aten::convolution_backward") return record_conv_backward(arguments, returns);
  std::vector<GraphValue*> inputs;
  for (size_t i = 0; i < arguments.size(); ++i) inputs.push_back(value_of(arguments[i], op.schema.arguments[i].type));
  if (!refusal_.empty()) return;
  Node* node = builder_.call(op, inputs);
  for (size_t i = 0; i < returns.size(); ++i) define(returns[i], node->output(i));
}

// For operators on lists, dicts and objects, which are not in the graph.
void StepRecording::record_host(const Op& op, Values arguments, Values) {
  if (op.is_pure) return;
  const bool is_container = !arguments.empty() && (arguments[0].is_list() || arguments[0].is_dict());
  if (!is_container) return refuse(concat(op.name(), " does more than to give its result"));
  if (lasting_.contains(arguments[0].identity())) refuse(concat(op.name(), " changes a value that outlives the step"));
}

// Whether the result depends on no input and becomes a constant.
bool StepRecording::fold(const Op& op, Values arguments, Values returns) {
  if (!op.is_pure || op.is_view || has_data(arguments)) return false;
  int64_t count = 0;
  for_each_tensor(returns, [&](const Tensor& tensor) { count += tensor.numel(); });
  if (count > kMaxFolded) return false;
  for_each_tensor(returns, [&](const Tensor& tensor) {
    const Tensor copy = tensor.clone(true);
    folded_.emplace_back(copy);
    know(tensor, builder_.constant(copy));
  });
  return true;
}

// Writes.

void StepRecording::record_write(const Op& op, Values arguments) {
  const Tensor& target = arguments[0].is_strided() ? arguments[0].to_tensor() : Tensor();
  const bool is_first = target.defined() && op.schema.arguments[0].alias.is_write;
  const bool is_out = op.base && op.base->schema.name == op.schema.name;
  if (!is_first || is_out || target.is_meta())
    return refuse(concat(op.schema.full_name(), " writes into its arguments"));
  if (op.schema.name == "aten::copy_") return record_copy(arguments);
  if (!memory_.contains(target.storage().get()))
    return refuse(concat(op.name(), " writes into a tensor that no operator made"));
  if (op.schema.name == "aten::zero_") return write(target, builder_.op("aten::zeros_like", {tensor_value(target)}));
  if (op.schema.full_name() == "aten::fill_.Scalar") {
    return write(target, builder_.op("aten::full_like", {tensor_value(target), builder_.constant(arguments[1])}));
  }
  if (op.base) return record_in_place(op, arguments);
  // Writes to a copy, which becomes the new value.
  std::vector<GraphValue*> inputs{
      builder_.op("aten::clone", {tensor_value(target), builder_.constant(Value(static_cast<int64_t>(1)))})};
  if (!is_non_overlapping_and_dense(target.sizes(), target.strides()))
    return refuse(concat(op.name(), " writes into a view with gaps"));
  for (size_t i = 1; i < arguments.size(); ++i) inputs.push_back(value_of(arguments[i], op.schema.arguments[i].type));
  if (refusal_.empty()) write(target, builder_.call(op, inputs)->output());
}

void StepRecording::record_in_place(const Op& op, Values arguments) {
  std::vector<GraphValue*> inputs;
  std::vector<Value> shapes;
  for (size_t i = 0; i < arguments.size(); ++i) {
    inputs.push_back(value_of(arguments[i], op.schema.arguments[i].type));
    const Value& value = arguments[i];
    shapes.push_back(value.is_strided() && !value.to_tensor().is_meta()
                         ? Value(Tensor::meta_strided(value.to_tensor().sizes(), value.to_tensor().strides(),
                                                      value.to_tensor().dtype(), value.to_tensor().device()))
                         : value);
  }
  if (!refusal_.empty()) return;
  const Tensor shape = ops::infer(*op.base, shapes).front().to_tensor();
  GraphValue* value = builder_.call(*op.base, inputs)->output();
  write(arguments[0].to_tensor(), with_layout(value, shape, arguments[0].to_tensor()));
}

void StepRecording::record_copy(Values arguments) {
  const Tensor &target = arguments[0].to_tensor(), &source = arguments[1].to_tensor();
  GraphValue* value = with_layout(tensor_value(source), source, target);
  if (!refusal_.empty()) return;
  if (!memory_.contains(target.storage().get())) {
    // Memory that was not written before; the end of the recording checks that it does not outlive the step.
    if (!is_non_overlapping_and_dense(target.sizes(), target.strides()) ||
        target.storage()->size_bytes() < target.size_bytes())
      return refuse("aten::copy_ writes into a view that no operator made");
    return know(target, value);
  }
  write(target, value);
}

// In training mode, the running statistics are results.
void StepRecording::record_batch_norm(const Op& op, Values arguments, Values returns) {
  const bool is_native = op.schema.name == "aten::native_batch_norm";
  if (is_native) return refuse(concat(op.name(), " writes into its arguments"));
  std::vector<GraphValue*> inputs;
  for (const size_t i : {0, 1, 2, 3, 4}) inputs.push_back(value_of(arguments[i], op.schema.arguments[i].type));
  for (const size_t i : {6, 7}) inputs.push_back(builder_.constant(arguments[i]));
  if (!refusal_.empty()) return;
  static const Op& functional = ops::get_op("tensord::batch_norm_training");
  Node* node = builder_.call(functional, inputs);
  define(returns[0], node->output(0));
  for (const size_t i : {3, 4}) {
    if (arguments[i].is_strided()) write(arguments[i].to_tensor(), node->output(i - 2));
  }
}

// Each gradient is computed by its own operator, which a plan supports: the combined one returns None for gradients
// that are not requested.
void StepRecording::record_conv_backward(Values arguments, Values returns) {
  const Op& whole = ops::get_op("aten::convolution_backward");
  std::vector<GraphValue*> inputs;
  for (const size_t i : {0, 1, 2, 4, 5, 6, 7, 8, 9})
    inputs.push_back(value_of(arguments[i], whole.schema.arguments[i].type));
  if (!refusal_.empty()) return;
  const auto give = [&](const char* name, std::initializer_list<size_t> results) {
    Node* node = builder_.call(ops::get_op(name), inputs);
    size_t next = 0;
    for (const size_t i : results) define(returns[i], node->output(next++));
  };
  if (returns[0].is_strided()) give("tensord::conv_input_gradient", {0});
  if (returns[1].is_strided() && returns[2].is_strided()) {
    give("tensord::conv_weight_bias_gradient", {1, 2});
  } else if (returns[1].is_strided()) {
    give("tensord::conv_weight_gradient", {1});
  } else if (returns[2].is_strided()) {
    give("tensord::conv_bias_gradient", {2});
  }
}

// `value`, which has the elements of `of`, in the layout of `target`.
GraphValue* StepRecording::with_layout(GraphValue* value, const Tensor& of, const Tensor& target) {
  if (!value) return value;
  const bool has_sizes = of.sizes() == target.sizes();
  // A part is scattered into the whole, whatever the value's layout.
  const auto memory = memory_.find(target.storage().get());
  const bool is_part = memory != memory_.end() && !(layout_of(target) == memory->second.views.front().layout);
  const bool is_laid_out = is_part || (has_sizes && of.strides() == target.strides());
  if (of.dtype() == target.dtype() && has_sizes && is_laid_out) return value;
  const GraphValue* const before = value;
  if (of.dtype() != target.dtype()) {
    value = builder_.op("aten::to.dtype", {value, builder_.constant(Value(target.dtype())), builder_.constant(false),
                                           builder_.constant(false), builder_.none()});
  }
  if (!has_sizes) {
    value = builder_.op("aten::expand",
                        {value, value_of(ops::make_int_list(target.sizes()), ops::list_type(ops::int_type())),
                         builder_.constant(false)});
  }
  if (value != before && (is_part || is_laid_out)) return value;
  const bool is_plain = target.is_contiguous();
  if (!is_plain && !target.is_channels_last()) {
    refuse(concat("a write into memory that is neither row-major nor channels_last, by ", reader_->name()));
    return value;
  }
  return builder_.op("aten::clone", {value, builder_.constant(Value(static_cast<int64_t>(is_plain ? 0 : 2)))});
}

void StepRecording::write(const Tensor& target, GraphValue* value) {
  if (!refusal_.empty()) return;
  Memory& memory = memory_.at(target.storage().get());
  if (memory.is_from_outside) return refuse(concat(reader_->name(), " writes into a tensor that outlives the step"));
  if (memory.is_shared) return refuse(concat(reader_->name(), " writes into memory that several tensors share"));
  const Layout layout = layout_of(target);
  View& whole = memory.views.front();
  if (!(layout == whole.layout)) {
    if (whole.layout.offset != 0 || layout.dtype != whole.layout.dtype)
      return refuse(concat(reader_->name(), " writes into a view of another kind"));
    const TypePtr ints = ops::list_type(ops::int_type());
    value = builder_.op("aten::as_strided_scatter",
                        {whole.value, value, value_of(ops::make_int_list(layout.sizes), ints),
                         value_of(ops::make_int_list(layout.strides), ints), builder_.constant(layout.offset)});
  }
  whole.value = value;
  memory.views.resize(1);
  ++memory.generation;
  memory.is_written = true;
}

// Values.

StepRecording::Layout StepRecording::layout_of(const Tensor& tensor) {
  return {tensor.sizes(), tensor.strides(), tensor.offset(), tensor.dtype()};
}

void StepRecording::know(const Tensor& tensor, GraphValue* value) {
  const StorageImpl* storage = tensor.storage().get();
  const auto [at, is_new] = known_.try_emplace(tensor.impl());
  Memory& memory = memory_[storage];
  memory.views.push_back({layout_of(tensor), value});
  if (is_new) {
    at->second.handle = tensor;
    live_.push_back(tensor.impl());
  }
  at->second.value = value;
  at->second.storage = storage;
  at->second.generation = memory.generation;
}

void StepRecording::define(const Value& value, GraphValue* output) {
  if (value.is_strided()) {
    if (!known_.contains(value.to_tensor().impl())) know(value.to_tensor(), output);
  } else if (is_tensor_list(value)) {
    const auto& items = value.to_list()->items;
    Node* unpack = builder_.add(NodeKind::kListUnpack, std::span(&output, 1));
    for (const Value& item : items) define(item, unpack->add_output(ops::tensor_type()));
  }
}

GraphValue* StepRecording::derive(Memory& memory, const Tensor& tensor) {
  const Layout layout = layout_of(tensor);
  for (const View& view : memory.views) {
    if (view.layout == layout) return view.value;
  }
  const View whole = memory.views.front();
  if (whole.layout.offset != 0 || layout.dtype != whole.layout.dtype || memory.is_shared) {
    refuse(concat(reader_->name(), " reads a view that no operator made"));
    return whole.value;
  }
  const TypePtr ints = ops::list_type(ops::int_type());
  GraphValue* value = builder_.op(
      "aten::as_strided", {whole.value, value_of(ops::make_int_list(layout.sizes), ints),
                           value_of(ops::make_int_list(layout.strides), ints), builder_.constant(layout.offset)});
  memory.views.push_back({layout, value});
  return value;
}

GraphValue* StepRecording::tensor_value(const Tensor& tensor) {
  if (!tensor.defined()) return builder_.none();
  if (tensor.is_meta()) {
    // Only its shape matters.
    const TypePtr ints = ops::list_type(ops::int_type());
    return builder_.op(
        "aten::empty_strided",
        {value_of(ops::make_int_list(tensor.sizes()), ints), value_of(ops::make_int_list(tensor.strides()), ints),
         builder_.constant(Value(tensor.dtype())), builder_.none(), builder_.none(), builder_.none()});
  }
  const auto memory = memory_.find(tensor.storage().get());
  const auto known = known_.find(tensor.impl());
  if (known != known_.end() && memory != memory_.end() && known->second.generation == memory->second.generation)
    return known->second.value;
  if (memory != memory_.end()) {
    GraphValue* value = derive(memory->second, tensor);
    know(tensor, value);
    return value;
  }
  outside_.push_back({tensor, reader_});
  GraphValue* value = builder_.constant(tensor.numel() == 1 ? tensor.clone(true) : tensor);
  know(tensor, value);
  memory_[tensor.storage().get()].is_from_outside = true;
  return value;
}

GraphValue* StepRecording::value_of(const Value& value, const TypePtr& type) {
  if (value.is_strided()) return tensor_value(value.to_tensor());
  if (value.is_list()) {
    return list_value(builder_, value, type,
                      [this](const Value& item, const TypePtr& element) { return value_of(item, element); });
  }
  const bool is_plain = value.is_none() || value.is_number() || value.is_string() || value.is_device();
  if (!is_plain) refuse(concat(reader_->name(), " takes a ", value.tag_name()));
  return builder_.constant(is_plain ? value : Value());
}

void StepRecording::record_value(const Value& value) {
  note(static_cast<int64_t>(value.tag()));
  if (value.is_strided()) {
    const Tensor& tensor = value.to_tensor();
    note(static_cast<int64_t>(tensor.dtype()));
    for (const int64_t size : tensor.sizes()) note(size);
    for (const int64_t stride : tensor.strides()) note(stride);
    if (tensor.is_meta()) return;
    // Identifies the tensor by its number in the graph, which is the same in both runs.
    GraphValue* known = tensor_value(tensor);
    note(known ? known->id() : -1);
  } else if (value.is_list()) {
    note(static_cast<int64_t>(value.to_list()->items.size()));
    for (const Value& item : value.to_list()->items) record_value(item);
  } else if (value.is_int() || value.is_bool()) {
    note(value.to_scalar().to_int());
  } else if (value.is_float()) {
    note(std::bit_cast<int64_t>(value.to_float()));
  } else if (value.is_string()) {
    note(static_cast<int64_t>(std::hash<std::string>()(value.to_string())));
  }
}

}  // namespace tensord::jit
