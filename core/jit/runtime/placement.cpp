#include "core/jit/runtime/placement.h"

#include <algorithm>
#include <unordered_set>

#include "core/base/error.h"
#include "core/jit/ir/walk.h"
#include "core/jit/runtime/module_tensors.h"
#include "core/ops/registry.h"

namespace tensord::jit {

using ops::TypeKind;
using ops::Value;

namespace {

constexpr int kMaxPlacedDepth = 200;

// The range of bytes that a tensor reaches in its storage.
struct Range {
  const Tensor* tensor = nullptr;
  size_t begin = 0, end = 0;
};

Range range_of(const Tensor& tensor) {
  int64_t last = 0;
  for (size_t i = 0; i < tensor.sizes().size(); ++i) last += (tensor.sizes()[i] - 1) * tensor.strides()[i];
  const size_t size = size_of(tensor.dtype());
  const auto begin = static_cast<size_t>(tensor.offset()) * size;
  return {&tensor, begin, begin + (tensor.numel() == 0 ? 0 : static_cast<size_t>(last + 1) * size)};
}

// Whether a file means "the model's device" by this one: files name the device that they were written on, or the host.
// Other devices are meant literally.
bool is_of_files(Device device) { return device.kind == kCPU || device.kind == kCUDA; }

bool is_device_type(const ops::Type& type) {
  return type.kind() == TypeKind::kDevice ||
         (type.kind() == TypeKind::kOptional && type.element()->kind() == TypeKind::kDevice);
}

}  // namespace

// Tensors over overlapping bytes are one block on the device too, so that a write through one shows in the others.
void Placement::copy_shared_memory(const std::vector<std::pair<std::string, Tensor>>& tensors) {
  std::map<const StorageImpl*, std::vector<Range>> by_storage;
  for (const auto& [name, tensor] : tensors) {
    if (is_elsewhere(tensor) && tensor.numel() > 0) by_storage[tensor.storage().get()].push_back(range_of(tensor));
  }
  for (auto& [storage, ranges] : by_storage) {
    std::ranges::sort(ranges, {}, &Range::begin);
    for (size_t first = 0; first < ranges.size();) {
      size_t next = first + 1, end = ranges[first].end;
      for (; next < ranges.size() && ranges[next].begin < end; ++next) end = std::max(end, ranges[next].end);
      const Tensor& lowest = *ranges[first].tensor;
      const size_t begin = ranges[first].begin;
      const Tensor bytes = Tensor::from_storage(lowest.storage(), Dims{static_cast<int64_t>(end - begin)}, Dims{1},
                                                static_cast<int64_t>(begin), DType::kUInt8);
      const Tensor block = bytes.to(device_);
      for (; first < next; ++first) {
        const Tensor& given = *ranges[first].tensor;
        const size_t from = ranges[first].begin - begin, size = size_of(given.dtype());
        if (from % size != 0) {
          fail(ErrorCode::kUnimplemented, "tensors of the model share memory at ", from, " bytes, where ",
               to_string(device_), " has no ", name_of(given.dtype()));
        }
        copies_[given.impl()] = {given, Tensor::from_storage(block.storage(), given.sizes(), given.strides(),
                                                             static_cast<int64_t>(from / size), given.dtype())};
      }
    }
  }
}

void Placement::place_objects(const ops::ObjectPtr& object) {
  {
    const MutexLock lock(mutex_);
    copy_shared_memory(collect_tensors(object));
  }
  std::unordered_set<const ops::Object*> seen;
  std::vector<std::pair<std::string, ops::ObjectPtr>> left{{"", object}};
  while (!left.empty()) {
    const auto [prefix, at] = std::move(left.back());
    left.pop_back();
    if (!seen.insert(at.get()).second) continue;
    const auto& attributes = at->type->attributes();
    for (size_t i = 0; i < at->slots.size(); ++i) {
      const std::string name = prefix + attributes[i].name;
      if (at->slots[i].is_object()) {
        left.emplace_back(name + ".", at->slots[i].to_object());
      } else {
        place_value(at->slots[i], name, 0);
      }
    }
  }
}

void Placement::place_tensors(std::vector<Tensor>& tensors) {
  for (Tensor& tensor : tensors) tensor = placed(tensor);
}

void Placement::replace(Value& value, Value by) {
  if (replaced_) replaced_->emplace_back(&value, value);
  value = std::move(by);
}

void Placement::place_value(Value& value, const std::string& name, int depth) {
  check(depth <= kMaxPlacedDepth, "attribute '", name, "' nests too deeply for another device");
  if (value.is_list()) {
    for (Value& item : value.to_list()->items) place_value(item, name, depth + 1);
  } else if (value.is_dict()) {
    for (auto& [key, item] : value.to_dict()->mutable_items()) place_value(item, name, depth + 1);
  } else if (value.is_tuple()) {
    replace(value, rebuilt(value, depth));
  } else if (value.is_device() || value.is_tensor()) {
    replace(value, placed(value, name));
  }
}

// Graphs share their constants with the graphs that they were copied from, so lists are not changed but rebuilt.
Value Placement::rebuilt(const Value& value, int depth) {
  check(depth <= kMaxPlacedDepth, "a constant nests too deeply for another device");
  const auto rebuilt_items = [&](std::vector<Value> items) {
    for (Value& item : items) item = rebuilt(item, depth + 1);
    return items;
  };
  if (value.is_list()) {
    const ops::ListObject& list = *value.to_list();
    const bool is_plain = std::ranges::all_of(list.items, [](const Value& item) { return item.is_number(); });
    return is_plain ? value : Value(ops::make_list(list.element, rebuilt_items(list.items)));
  }
  if (value.is_tuple()) {
    const ops::TupleObject& tuple = *value.to_tuple();
    return Value(make_intrusive<ops::TupleObject>(rebuilt_items(tuple.items), tuple.type));
  }
  return placed(value, "a constant");
}

Value Placement::placed(const Value& value, const std::string& name) {
  if (value.is_device()) return is_of_files(value.to_device()) ? Value(device_) : value;
  if (!value.is_tensor() || !value.to_tensor().defined()) return value;
  if (!value.is_strided()) {
    fail(ErrorCode::kUnimplemented, "tensor '", name, "' is ", describe(value.to_tensor()), ", which ",
         to_string(device_), " does not have");
  }
  return Value(placed(value.to_tensor()));
}

Tensor Placement::placed(const Tensor& tensor) {
  if (!is_elsewhere(tensor)) return tensor;
  const MutexLock lock(mutex_);
  Copied& copy = copies_[tensor.impl()];
  if (!copy.placed.defined()) copy = {tensor, tensor.to(device_)};
  return copy.placed;
}

// Sets a device argument that the file names, or leaves open in a call without tensors.
void Placement::place_device_argument(Graph& graph, Node& node, size_t index) {
  const Value* const given = node.input(index)->constant();
  if (!given) return;
  const bool is_open = given->is_none() && node.op()->tensor_arguments == 0;
  const bool is_named = given->is_device() || given->is_string();
  if (!is_open && !is_named) return;
  if (is_named && !is_of_files(given->is_device() ? given->to_device() : parse_device(given->to_string()))) return;
  Node* const constant = graph.create_constant(Value(device_), node.op()->schema.arguments[index].type);
  constant->insert_before(&node);
  node.replace_input(index, constant->output());
}

// Copies the host tensor that an operator gives wherever the tensors of its call are.
void Placement::place_output(Graph& graph, Node& node) {
  const ops::Op& to = ops::get_op("aten::to.prim_Device");
  Node* at = &node;
  std::vector<GraphValue*> inputs{node.output()};
  for (const Value& value : {Value(device_), Value(), Value(false), Value(false)}) {
    Node* const constant = graph.create_constant(value, to.schema.arguments[inputs.size()].type);
    constant->insert_after(at);
    at = constant;
    inputs.push_back(constant->output());
  }
  Node* const moved = graph.create(to, inputs);
  moved->insert_after(at);
  node.output()->replace_all_uses_with(moved->output());
  moved->replace_input(0, node.output());
}

void Placement::place_node(Graph& graph, Node& node) {
  if (node.kind() == NodeKind::kConstant) return node.set_constant(rebuilt(node.constant(), 0));
  if (node.kind() != NodeKind::kOp) return;
  // Like any device that the code names, the host means the model's own device, where the tensor is already.
  if (node.is_op("aten::cpu")) {
    return node.output()->replace_all_uses_with(node.input(0));
  }
  if (node.is_op("aten::_shape_as_tensor")) return place_output(graph, node);
  const auto& arguments = node.op()->schema.arguments;
  for (size_t i = 0; i < arguments.size() && i < node.inputs().size(); ++i) {
    if (is_device_type(*arguments[i].type)) place_device_argument(graph, node, i);
  }
  const auto& returns = node.op()->schema.returns;
  const Value* const text =
      node.inputs().size() == 1 && returns.size() == 1 && returns[0].type->kind() == TypeKind::kDevice
          ? node.input()->constant()
          : nullptr;
  if (!text || !text->is_string() || !is_of_files(parse_device(text->to_string()))) return;
  Node* const constant = graph.create_constant(Value(device_), node.output()->type());
  constant->insert_before(&node);
  node.output()->replace_all_uses_with(constant->output());
}

void Placement::place_graph(Graph& graph) {
  for_each_node(graph.block(), [&](Node* node) { place_node(graph, *node); });
}

void Placement::bring_back() {
  const MutexLock lock(mutex_);
  for (const auto& [impl, copy] : copies_) {
    if (!copy.given.storage()->is_writable()) {
      fail(ErrorCode::kUnimplemented, "a model on ", to_string(device_), " is written if it was loaded for training");
    }
    copy.given.copy_from(copy.placed);
  }
}

AtHome::AtHome(const ops::ObjectPtr& object, Device device) {
  if (device.is_host()) return;
  try {
    Placement(Device{kCPU}, &replaced_).place_objects(object);
  } catch (...) {
    put_back();
    throw;
  }
  for (const auto& [place, before] : replaced_) {
    if (before.is_strided() && place->is_strided()) originals_[place->to_tensor().impl()] = before.to_tensor();
  }
}

AtHome::~AtHome() { put_back(); }

void AtHome::put_back() {
  for (auto it = replaced_.rbegin(); it != replaced_.rend(); ++it) *it->first = it->second;
}

const Tensor& AtHome::original(const Tensor& tensor) const {
  const auto found = originals_.find(tensor.impl());
  return found == originals_.end() ? tensor : found->second;
}

namespace {

// Whether a call works on real numbers, as a weight of the model among its arguments shows.
bool has_real_operand(const Node& node) {
  return std::ranges::any_of(node.inputs(), [](const GraphValue* input) {
    const Value* const constant = input->constant();
    return constant && constant->is_strided() && constant->to_tensor().defined() &&
           !is_complex(constant->to_tensor().dtype());
  });
}

// Whether the device has a kernel of the operator for some kind of tensor that the call may get.
bool has_code(const Node& node, DeviceKind device) {
  const ops::Op& op = *node.op();
  if (op.kernel(device)) return true;
  if (has_real_operand(node)) return false;
  for (size_t layout = 0; layout < kLayoutCount; ++layout) {
    if (op.table[static_cast<size_t>(device) + layout * kDeviceKinds]) return true;
  }
  return false;
}

}  // namespace

void check_kernels(const Graph& graph, Device device) {
  std::vector<std::string> missing;
  for (const Node* node = graph.block()->first(); node != nullptr; node = node->next()) {
    const ops::Op* const op = node->op();
    if (!op || op->tensor_arguments == 0 || !op->kernel(kCPU) || has_code(*node, device.kind)) continue;
    const std::string name = op->schema.full_name();
    if (std::ranges::find(missing, name) == missing.end()) missing.push_back(name);
  }
  if (missing.empty()) return;
  std::string names;
  for (const std::string& name : missing) names += (names.empty() ? "" : ", ") + name;
  fail(ErrorCode::kUnimplemented, to_string(device), " has no kernel for ", names);
}

}  // namespace tensord::jit
