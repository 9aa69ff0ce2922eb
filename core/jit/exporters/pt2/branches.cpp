// Branches on data, written as torch.cond: each side is a graph that takes all values that it reads as operands.
#include <algorithm>

#include "core/base/error.h"
#include "core/jit/exporters/pt2/program_writer.h"

namespace tensord::jit::pt2 {
namespace {

Json tensor_argument(const char* formal, const std::string& name) {
  return {{"name", formal}, {"arg", {{"as_tensor", {{"name", name}}}}}, {"kind", 1}};
}
Json as_tensor(const std::string& name) { return {{"as_tensor", {{"name", name}}}}; }

}  // namespace

// The name of a one-element bool tensor for the condition: an element, or its negation. "" if unknown.
std::string ProgramWriter::condition_of(Call& call) {
  const Traced& given = call.first();
  const bool is_not = call.op().schema.name == "aten::__not__";
  if (is_not && given.number.empty()) return "";
  if (!is_not && !given.a.is_strided()) return "";
  const std::string source = is_not ? given.number : call.tracer().name_of(given);
  if (!is_not && given.a.to_tensor().dtype() == DType::kBool) return source;
  const std::string name = new_name(is_not ? "logical_not" : "ne");
  Json inputs = Json::array({tensor_argument("self", source)});
  if (!is_not) inputs.push_back({{"name", "other"}, {"arg", {{"as_int", 0}}}, {"kind", 1}});
  const Dims sizes = is_not ? Dims() : given.a.to_tensor().sizes();
  describe_fixed(name, Tensor::meta(sizes, DType::kBool));
  add_node(name, is_not ? "torch.ops.aten.logical_not.default" : "torch.ops.aten.ne.Scalar", inputs,
           Json::array({as_tensor(name)}), {name}, false);
  return name;
}

void ProgramWriter::begin_branch() {
  outside_.push_back({std::move(nodes_), sizes_});
  nodes_.clear();
  sizes_.clear();  // sizes are queried again from the operands
}

// Results are copied, because torch.cond does not allow outputs that alias inputs.
void ProgramWriter::end_branch(const tracing::Tracer& tracer, const std::vector<Traced>& results,
                               const Strings& names) {
  Way way;
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string name = new_name("clone");
    describe(tracer, name, results[i], shapes_.at(names[i]));
    add_node(name, "torch.ops.aten.clone.default", Json::array({tensor_argument("self", names[i])}),
             Json::array({as_tensor(name)}), {name}, false);
    way.names.push_back(name);
    way.outputs.push_back(as_tensor(name));
  }
  way.nodes = live_nodes(nodes_, way.outputs, way.reads);
  for (const Node& node : way.nodes) {
    for (const std::string& name : node.outputs) way.reads.erase(name);
  }
  for (const std::string& name : way.reads) {
    if (int_values_.contains(name) || float_values_.contains(name)) {
      fail(ErrorCode::kUnimplemented,
           "a branch that depends on data uses a size that was computed before it, which is not written");
    }
  }
  nodes_ = std::move(outside_.back().nodes);
  sizes_ = std::move(outside_.back().sizes);
  outside_.pop_back();
  ways_.push_back(std::move(way));
}

Json ProgramWriter::way_graph(const std::string& name, const Way& way, const Strings& operands) const {
  Json inputs = Json::array(), nodes = Json::array(), tensors = Json::object(), ints = Json::object(),
       floats = Json::object();
  for (const std::string& operand : operands) {
    inputs.push_back(as_tensor(operand));
    tensors[operand] = tensor_values_.at(operand);
  }
  for (const Node& node : way.nodes) {
    nodes.push_back(node.json);
    for (const std::string& output : node.outputs) {
      if (tensor_values_.contains(output)) tensors[output] = tensor_values_.at(output);
      if (int_values_.contains(output)) ints[output] = int_values_.at(output);
      if (float_values_.contains(output)) floats[output] = float_values_.at(output);
    }
  }
  return {{"name", name},
          {"graph",
           {{"inputs", inputs},
            {"outputs", way.outputs},
            {"nodes", nodes},
            {"tensor_values", tensors},
            {"sym_int_values", ints},
            {"sym_bool_values", Json::object()},
            {"sym_float_values", floats},
            {"is_single_tensor_return", false},
            {"custom_obj_values", Json::object()}}}};
}

Strings ProgramWriter::add_choice(const tracing::Tracer& tracer, const std::string& condition,
                                  const std::vector<Traced>& results) {
  const Way no = std::move(ways_.back()), yes = std::move(ways_[ways_.size() - 2]);
  ways_.resize(ways_.size() - 2);
  for (size_t i = 0; i < results.size(); ++i) {
    const std::vector<OpenSize>&first = shapes_.at(yes.names[i]), &second = shapes_.at(no.names[i]);
    const auto is_same = [](const OpenSize& one, const OpenSize& other) {
      return one.is_open == other.is_open && (one.is_open ? one.expression == other.expression : one.a == other.a);
    };
    if (!std::ranges::equal(first, second, is_same)) {
      fail(ErrorCode::kUnimplemented,
           "the branches of a condition on data return tensors of different sizes, which exported ",
           "programs cannot express");
    }
  }
  std::set<std::string> all = yes.reads;
  all.insert(no.reads.begin(), no.reads.end());
  const Strings operands(all.begin(), all.end());
  Json given = Json::array(), outputs = Json::array();
  for (const std::string& operand : operands) given.push_back({{"name", operand}});
  Strings names;
  for (size_t i = 0; i < results.size(); ++i) {
    names.push_back(new_name("getitem"));
    describe(tracer, names.back(), results[i], shapes_.at(yes.names[i]));
    outputs.push_back(as_tensor(names.back()));
  }
  const auto unnamed = [](Json argument) { return Json{{"name", ""}, {"arg", std::move(argument)}, {"kind", 1}}; };
  const Json inputs = Json::array(
      {unnamed(as_tensor(condition)), unnamed({{"as_graph", way_graph(new_name("true_graph"), yes, operands)}}),
       unnamed({{"as_graph", way_graph(new_name("false_graph"), no, operands)}}), unnamed({{"as_tensors", given}})});
  add_node(new_name("cond"), "torch.ops.higher_order.cond", inputs, outputs, names, false);
  nodes_.back().json["is_hop_single_tensor_return"] = false;
  return names;
}

}  // namespace tensord::jit::pt2
