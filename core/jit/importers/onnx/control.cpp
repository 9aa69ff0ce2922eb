// Operators with subgraphs, and operators on types, which functions of the library cannot express.
#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/jit/importers/onnx/importer.h"

namespace tensord::jit::onnx {

using ops::TypeKind;
using ops::TypePtr;

namespace {

bool is_optional(const GraphValue* value) { return value->type()->kind() == TypeKind::kOptional; }

// The integers of an attribute, or `count` zeros.
std::vector<int64_t> integers(const NodeProto& node, const char* name, size_t count) {
  const AttributeProto* attribute = node.find_attribute(name);
  if (!attribute) return std::vector<int64_t>(count, 0);
  if (attribute->type != AttributeProto::kInts || attribute->ints.size() != count) {
    fail(ErrorCode::kDataLoss, "attribute '", name, "' must be ", count, " integers");
  }
  return attribute->ints;
}

}  // namespace

struct Importer::Special {
  const char* domain;
  const char* op_type;
  int64_t since_version;
  void (Importer::*import)(const NodeProto&);
  std::vector<std::string_view> attributes;
};

const Importer::Special* Importer::find_special(const NodeProto& node) const {
  static const std::vector<std::string_view> kConstants{"value",      "sparse_value", "value_int",    "value_float",
                                                        "value_ints", "value_floats", "value_string", "value_strings"},
      kScan{"body",
            "num_scan_inputs",
            "scan_input_axes",
            "scan_input_directions",
            "scan_output_axes",
            "scan_output_directions"};
  static const Special kSpecial[] = {
      {"", "Constant", 1, &Importer::constant, kConstants},
      {"", "Identity", 1, &Importer::identity, {}},
      {"", "Optional", 15, &Importer::optional, {"type"}},
      {"", "OptionalHasElement", 15, &Importer::optional_has_element, {}},
      {"", "OptionalGetElement", 15, &Importer::optional_get_element, {}},
      {"", "If", 1, &Importer::if_node, {"then_branch", "else_branch"}},
      {"", "Loop", 1, &Importer::loop, {"body"}},
      {"", "Scan", 9, &Importer::scan, kScan},
      {"", "SequenceMap", 17, &Importer::sequence_map, {"body"}},
      {"ai.onnx.preview",
       "FlexAttention",
       1,
       &Importer::flex_attention,
       {"scale", "softmax_precision", "score_mod", "prob_mod"}},
  };
  for (const Special& each : kSpecial) {
    if (node.domain != each.domain || node.op_type != each.op_type || opset(node.domain) < each.since_version) continue;
    for (const AttributeProto& attribute : node.attributes) {
      if (std::ranges::find(each.attributes, attribute.name) != each.attributes.end()) continue;
      fail(ErrorCode::kUnimplemented, "attribute '", attribute.name, "' is not known");
    }
    return &each;
  }
  return nullptr;
}

bool Importer::special(const NodeProto& node) {
  const Special* found = find_special(node);
  if (!found) return false;
  attributes(node);  // throws where they are not well formed
  (this->*found->import)(node);
  return true;
}

void Importer::constant(const NodeProto& node) {
  const Attributes given = attributes(node);
  if (given.size() != 1) fail(ErrorCode::kDataLoss, "must have one attribute");
  const AttributeProto& value = *given.begin()->second;
  const std::string& name = given.begin()->first;
  const auto vector = [&]<class T, class From>(const std::vector<From>& values, T) {
    Tensor tensor = Tensor::empty(Dims{static_cast<int64_t>(values.size())}, dtype_of<T>);
    std::ranges::copy(values, tensor.data<T>());
    return tensor;
  };
  if (name == "value" && value.t) return define_outputs(node, {constant_of(*value.t)});
  Tensor tensor;
  if (name == "sparse_value" && value.sparse_tensor) {
    tensor = tensors_.read_attribute(*value.sparse_tensor);
  } else if (name == "value_int") {
    tensor = Tensor::scalar(value.i);
  } else if (name == "value_float") {
    tensor = Tensor::scalar(value.f);
  } else if (name == "value_ints") {
    tensor = vector(value.ints, int64_t{});
  } else if (name == "value_floats") {
    tensor = vector(value.floats, float{});
  } else {
    fail(ErrorCode::kUnimplemented, "attribute '", name, "' is not supported");
  }
  define_outputs(node, {builder_.constant(tensor)});
}

void Importer::identity(const NodeProto& node) { define_outputs(node, {input(node, 0)}); }

void Importer::optional(const NodeProto& node) {
  GraphValue* value = input(node, 0);
  const AttributeProto* attribute = node.find_attribute("type");
  if (!value && (!attribute || !attribute->tp)) fail(ErrorCode::kDataLoss, "has neither an input nor a type");
  const TypePtr element = value ? value->type() : to_type(*attribute->tp, "attribute 'type'", /*checks=*/true);
  if (!value) value = builder_.none();
  Node* cast = builder_.add(NodeKind::kUncheckedCast, std::span<GraphValue* const>(&value, 1));
  define_outputs(node, {cast->add_output(ops::optional_type(element))});
}

void Importer::optional_has_element(const NodeProto& node) {
  GraphValue* value = input(node, 0);
  if (value && is_optional(value)) {
    GraphValue* has = builder_.op("aten::__isnot__", {value, builder_.none()});
    define_outputs(node, {helper("control._tensor_of_bool", {has})});
  } else {
    define_outputs(node, {builder_.constant(Tensor::scalar(value != nullptr))});
  }
}

void Importer::optional_get_element(const NodeProto& node) {
  GraphValue* value = input(node, 0);
  if (!value) fail(ErrorCode::kDataLoss, "has no input");
  if (is_optional(value)) value = builder_.op("aten::_unwrap_optional", {value});
  define_outputs(node, {value});
}

const GraphProto& Importer::graph_attribute(const NodeProto& node, const char* name) const {
  const Attributes given = attributes(node);
  const auto found = given.find(name);
  if (found == given.end() || !found->second->g) fail(ErrorCode::kDataLoss, "graph '", name, "' is missing");
  return *found->second->g;
}

void Importer::if_node(const NodeProto& node) {
  GraphValue* condition = input(node, 0);
  if (!condition) fail(ErrorCode::kDataLoss, "has no condition");
  condition = number(condition, TypeKind::kBool);
  Node* branch = builder_.add(NodeKind::kIf, std::span<GraphValue* const>(&condition, 1));
  std::vector<Values> results;
  std::vector<std::optional<std::string>> failures;
  const std::optional<int64_t> taken = checks_.number(condition);
  for (const char* name : {"then_branch", "else_branch"}) {
    const bool is_taken = taken && *taken == static_cast<int64_t>(results.empty());
    const LoadChecks::Branch way(is_taken ? nullptr : &checks_);
    const GraphBuilder::Inside inside(builder_, branch->add_block());
    results.push_back(subgraph(graph_attribute(node, name), {}));
    failures.push_back(way.failure());
  }
  set_place(node);
  if (!taken && failures[0] && failures[1]) checks_.fail_here(*failures[0]);
  if (results[0].size() != results[1].size())
    fail(ErrorCode::kDataLoss, "the branches give different numbers of outputs");
  Values outputs;
  for (size_t i = 0; i < results[0].size(); ++i) {
    const TypePtr type = ops::unify(results[0][i]->type(), results[1][i]->type());
    if (!type) {
      fail(ErrorCode::kUnimplemented, "output ", i, " is ", results[0][i]->type()->str(), " in one branch and ",
           results[1][i]->type()->str(), " in the other");
    }
    for (size_t b = 0; b < 2; ++b) branch->blocks()[b]->add_output(results[b][i]);
    outputs.push_back(branch->add_output(type));
    // Code after the branch is not reached through a side that fails.
    const bool is_first = taken ? *taken != 0 : failures[1].has_value();
    if (taken || failures[0].has_value() != failures[1].has_value()) {
      checks_.set(outputs.back(), results[is_first ? 0 : 1][i]);
    } else {
      checks_.set_one_of(outputs.back(), results[0][i], results[1][i]);
    }
  }
  define_outputs(node, outputs);
}

Importer::ScanOutput Importer::scan_output() {
  GraphValue* list = helper("control._no_tensors", {});
  checks_.set(list, nullptr);
  return {list};
}

void Importer::append(ScanOutput& output, GraphValue* item) {
  builder_.op("aten::append.t", {output.list, item});
  if (checks_.rank(item) && checks_.dtype(item))
    output.item = {Dims(static_cast<size_t>(*checks_.rank(item)), -1), *checks_.dtype(item)};
}

template <class Body>
Importer::LoopResults Importer::counted_loop(GraphValue* trips, GraphValue* condition, const Values& carried,
                                             const std::vector<TypePtr>& types, Body body) {
  Values inputs{trips, condition};
  inputs.insert(inputs.end(), carried.begin(), carried.end());
  Node* node = builder_.add(NodeKind::kLoop, inputs);
  Block* block = node->add_block();
  GraphValue* round = block->add_input(ops::int_type());
  Values state;
  for (const TypePtr& type : types) state.push_back(block->add_input(type));
  // Checks the first iteration if there is one.
  const bool is_run = checks_.number(trips).value_or(0) > 0 && checks_.number(condition).value_or(0) != 0;
  for (size_t i = 0; i < state.size(); ++i) checks_.set_state(state[i], carried[i], is_run);
  const Values begun = state;
  const SourceLocation place = place_;
  {
    const LoadChecks::Branch way(is_run ? nullptr : &checks_);
    const GraphBuilder::Inside inside(builder_, block);
    GraphValue* goes_on = body(round, state);
    block->add_output(goes_on);
  }
  place_ = place;
  builder_.set_location(place_);
  for (size_t i = 0; i < types.size(); ++i) {
    if (!ops::is_subtype(state[i]->type(), types[i])) {
      fail(ErrorCode::kUnimplemented, "state ", i, " begins as ", types[i]->str(), " and becomes ",
           state[i]->type()->str());
    }
    block->add_output(state[i]);
  }
  LoopResults results{.values = {}, .has_rounds = is_run, .is_steady = true};
  for (size_t i = 0; i < types.size(); ++i) {
    results.values.push_back(node->add_output(types[i]));
    results.is_steady = results.is_steady && checks_.keeps_state(begun[i], state[i], is_run);
  }
  for (size_t i = 0; results.is_steady && i < types.size(); ++i) checks_.set(results.values[i], begun[i]);
  return results;
}

GraphValue* Importer::stacked(const LoopResults& loop, const ScanOutput& output, const ValueInfoProto& item,
                              int64_t axis, bool is_reversed) {
  // Without any round the sizes that the file does not say are 0.
  std::vector<int64_t> sizes;
  for (const auto& dimension : item.type.shape.value_or(std::vector<TypeProto::Dimension>())) {
    sizes.push_back(dimension.value.value_or(0));
  }
  const int64_t rank = static_cast<int64_t>(sizes.size()) + 1;
  sizes.insert(sizes.begin() + std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank - 1), 0);
  Values items;
  for (const int64_t size : sizes) items.push_back(builder_.constant(size));
  GraphValue* dtype = builder_.constant(find_dtype(item.type.elem_type).value_or(DType::kFloat32));
  GraphValue* like = helper("control._empty_scan", {builder_.list(ops::int_type(), items), dtype});
  GraphValue* all =
      helper("control._stacked", {output.list, builder_.constant(axis), builder_.constant(is_reversed), like});
  const bool is_known =
      loop.is_steady && output.item && (loop.has_rounds || std::ssize(output.item->sizes) == rank - 1);
  if (is_known) checks_.set_shape(all, Dims(output.item->sizes.size() + 1, -1), output.item->dtype);
  return all;
}

void Importer::loop(const NodeProto& node) {
  const GraphProto& body = graph_attribute(node, "body");
  GraphValue* trips = input(node, 0);
  GraphValue* condition = input(node, 1);
  trips = trips ? number(trips, TypeKind::kInt) : builder_.constant(std::numeric_limits<int64_t>::max());
  condition = condition ? number(condition, TypeKind::kBool) : builder_.constant(true);
  Values states;
  for (size_t i = 2; i < node.inputs.size(); ++i) {
    states.push_back(input(node, i));
    if (!states.back()) fail(ErrorCode::kDataLoss, "state ", i - 2, " is left out");
  }
  const size_t count = states.size();
  if (body.inputs.size() != count + 2 || body.outputs.size() < count + 1) {
    fail(ErrorCode::kDataLoss, "the body has ", body.inputs.size(), " inputs and ", body.outputs.size(),
         " outputs for ", count, " states");
  }
  std::vector<TypePtr> types;
  for (size_t i = 0; i < count; ++i) {
    // If a state is initially empty, the body declares it as optional.
    TypePtr declared = to_type(body.inputs[i + 2].type, body.inputs[i + 2].name, /*checks=*/false);
    types.push_back(declared->kind() == TypeKind::kOptional ? declared : states[i]->type());
  }
  std::vector<ScanOutput> scanned;
  for (size_t i = count + 1; i < body.outputs.size(); ++i) scanned.push_back(scan_output());
  const auto fill = [&](GraphValue* round, Values& state) {
    Values arguments{helper("control._tensor_of_int", {round}), builder_.constant(Tensor::scalar(true))};
    arguments.insert(arguments.end(), state.begin(), state.end());
    const Values results = subgraph(body, arguments);
    for (size_t i = 0; i < count; ++i) state[i] = results[i + 1];
    for (size_t i = 0; i < scanned.size(); ++i) append(scanned[i], results[count + 1 + i]);
    return number(results[0], TypeKind::kBool);
  };
  const LoopResults done = counted_loop(trips, condition, states, types, fill);
  Values outputs = done.values;
  for (size_t i = 0; i < scanned.size(); ++i) {
    outputs.push_back(stacked(done, scanned[i], body.outputs[count + 1 + i], 0, false));
  }
  define_outputs(node, outputs);
}

void Importer::scan(const NodeProto& node) {
  const GraphProto& body = graph_attribute(node, "body");
  const AttributeProto* scans = node.find_attribute("num_scan_inputs");
  const Values given = inputs(node);
  const size_t scan_count = scans && scans->i > 0 ? static_cast<size_t>(scans->i) : 0;
  if (scan_count == 0 || scan_count > given.size() || std::ranges::count(given, nullptr) != 0) {
    fail(ErrorCode::kDataLoss, "num_scan_inputs does not fit ", given.size(), " inputs");
  }
  const size_t count = given.size() - scan_count;
  if (body.outputs.size() < count) fail(ErrorCode::kDataLoss, "the body has fewer outputs than states");
  const size_t output_count = body.outputs.size() - count;
  const Values states(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(count));
  const auto axes = integers(node, "scan_input_axes", scan_count);
  const auto directions = integers(node, "scan_input_directions", scan_count);
  const auto output_axes = integers(node, "scan_output_axes", output_count);
  const auto output_directions = integers(node, "scan_output_directions", output_count);
  std::vector<TypePtr> types;
  for (const GraphValue* state : states) types.push_back(state->type());
  std::vector<ScanOutput> scanned;
  for (size_t i = 0; i < output_count; ++i) scanned.push_back(scan_output());
  GraphValue* trips = helper("control._scan_length", {given[count], builder_.constant(axes[0])});
  const auto fill = [&](GraphValue* round, Values& state) {
    Values arguments = state;
    for (size_t i = 0; i < scan_count; ++i) {
      arguments.push_back(helper("control._scan_item", {given[count + i], builder_.constant(axes[i]), round,
                                                        builder_.constant(directions[i] != 0)}));
      checks_.set_item(arguments.back(), given[count + i], axes[i]);
    }
    const Values results = subgraph(body, arguments);
    for (size_t i = 0; i < count; ++i) state[i] = results[i];
    for (size_t i = 0; i < output_count; ++i) append(scanned[i], results[count + i]);
    return builder_.constant(true);
  };
  const LoopResults done = counted_loop(trips, builder_.constant(true), states, types, fill);
  Values outputs = done.values;
  for (size_t i = 0; i < output_count; ++i) {
    outputs.push_back(stacked(done, scanned[i], body.outputs[count + i], output_axes[i], output_directions[i] != 0));
  }
  define_outputs(node, outputs);
}

// Sequence inputs are iterated in parallel; tensors are the same in every iteration.
void Importer::sequence_map(const NodeProto& node) {
  const GraphProto& body = graph_attribute(node, "body");
  const Values given = inputs(node);
  const auto is_sequence = [](const GraphValue* value) { return value && value->type()->kind() == TypeKind::kList; };
  if (given.empty() || !is_sequence(given[0])) fail(ErrorCode::kDataLoss, "the first input is not a sequence");
  std::vector<ScanOutput> scanned;
  for (size_t i = 0; i < body.outputs.size(); ++i) scanned.push_back(scan_output());
  GraphValue* trips = helper("control._sequence_length", {given[0]});
  const auto fill = [&](GraphValue* round, Values&) {
    Values arguments;
    for (GraphValue* value : given) {
      arguments.push_back(is_sequence(value) ? helper("control._sequence_item", {value, round}) : value);
    }
    const Values results = subgraph(body, arguments);
    for (size_t i = 0; i < scanned.size(); ++i) append(scanned[i], results[i]);
    return builder_.constant(true);
  };
  counted_loop(trips, builder_.constant(true), {}, {}, fill);
  Values lists;
  for (const ScanOutput& each : scanned) lists.push_back(each.list);
  define_outputs(node, lists);
}

void Importer::flex_attention(const NodeProto& node) {
  const Attributes given = attributes(node);
  const Values qkv = inputs(node);
  if (qkv.size() != 3 || std::ranges::count(qkv, nullptr) != 0) fail(ErrorCode::kDataLoss, "must have three inputs");
  const auto optional_number = [&](const char* name, const TypePtr& type) {
    const auto found = given.find(name);
    GraphValue* value = found == given.end() ? nullptr : attribute_value(node.op_type, name, *found->second, *type);
    return value ? value : builder_.none();
  };
  const auto modified = [&](GraphValue* value, const char* name) {
    if (!given.contains(name)) return value;
    GraphValue* result = subgraph(graph_attribute(node, name), {value}).front();
    set_place(node);
    return result;
  };
  GraphValue* scores = helper("control._flex_scores", {qkv[0], qkv[1], optional_number("scale", ops::float_type()),
                                                       optional_number("softmax_precision", ops::int_type())});
  GraphValue* weights = helper("control._flex_weights", {modified(scores, "score_mod")});
  define_outputs(node, {helper("control._flex_output", {modified(weights, "prob_mod"), qkv[2]})});
}

}  // namespace tensord::jit::onnx
