#include "core/jit/exporters/onnx/writer.h"

#include <algorithm>
#include <climits>
#include <set>

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/jit/importers/onnx/tensors.h"

namespace tensord::jit::onnx {
namespace {

// Field numbers and types in onnx.proto, by message.
enum : uint32_t { kModelIr = 1, kModelProducer = 2, kModelGraph = 7, kModelOpset = 8 };
enum : uint32_t { kGraphNode = 1, kGraphName = 2, kGraphInitializer = 5, kGraphInput = 11, kGraphOutput = 12 };
enum : uint32_t { kNodeInput = 1, kNodeOutput = 2, kNodeName = 3, kNodeOpType = 4, kNodeAttribute = 5 };
enum : uint32_t { kTypeFloat = 1, kTypeInt = 2, kTypeString = 3, kTypeInts = 7 };

MessageWriter attribute_message(const char* name, const AttributeValue& value) {
  MessageWriter out;
  out.text(1, name);
  if (const auto* number = std::get_if<double>(&value)) {
    out.float32(2, static_cast<float>(*number));
    out.number(20, kTypeFloat);
  } else if (const auto* integer = std::get_if<int64_t>(&value)) {
    out.number(3, *integer);
    out.number(20, kTypeInt);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    out.text(4, *text);
    out.number(20, kTypeString);
  } else {
    for (const int64_t item : std::get<std::vector<int64_t>>(value)) out.number(8, item);
    out.number(20, kTypeInts);
  }
  return out;
}

MessageWriter value_info(const WrittenTensor& tensor) {
  MessageWriter shape;
  for (size_t i = 0; i < tensor.sizes.size(); ++i) {
    MessageWriter dimension;
    if (tensor.sizes[i] >= 0) dimension.number(1, tensor.sizes[i]);
    const bool is_named = tensor.sizes[i] < 0 && i < tensor.size_names.size() && !tensor.size_names[i].empty();
    if (is_named) dimension.text(2, tensor.size_names[i]);
    shape.message(1, dimension);
  }
  MessageWriter of_tensor, type, out;
  of_tensor.number(1, data_type_of(tensor.dtype));
  of_tensor.message(2, shape);
  type.message(1, of_tensor);
  out.text(1, tensor.name);
  out.message(2, type);
  return out;
}

}  // namespace

std::string ModelWriter::new_name(std::string_view hint) {
  return names_taken_.make(hint.empty() ? std::string("v") : std::string(hint));
}

std::string ModelWriter::add_initializer(std::string_view hint, const Tensor& tensor) {
  std::string name = new_name(hint);
  data_type_of(tensor.dtype());  // throws for types that ONNX does not have
  initializers_.push_back({name, tensor.contiguous()});
  return name;
}

Strings ModelWriter::add_node(const char* op_type, const Strings& inputs, const Attributes& attributes, size_t count,
                              std::string_view hint) {
  NodeText node;
  MessageWriter out;
  for (const std::string& input : inputs) out.text(kNodeInput, input);
  for (size_t i = 0; i < count; ++i) {
    node.outputs.push_back(new_name(hint));
    out.text(kNodeOutput, node.outputs.back());
  }
  out.text(kNodeName, concat("node_", node.outputs.front()));
  out.text(kNodeOpType, op_type);
  for (const auto& [name, value] : attributes) out.message(kNodeAttribute, attribute_message(name, value));
  node.inputs = inputs;
  node.bytes = out.bytes();
  nodes_.push_back(node);
  return node.outputs;
}

std::vector<const ModelWriter::NodeText*> ModelWriter::live_nodes(const std::vector<NodeText>& nodes,
                                                                  std::set<std::string>& wanted) {
  std::vector<const NodeText*> live;
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    const bool is_wanted =
        std::ranges::any_of(node->outputs, [&](const std::string& name) { return wanted.contains(name); });
    if (!is_wanted) continue;
    live.push_back(&*node);
    wanted.insert(node->inputs.begin(), node->inputs.end());
  }
  std::ranges::reverse(live);
  return live;
}

void ModelWriter::begin_branch() {
  outside_.push_back(std::move(nodes_));
  nodes_.clear();
}

void ModelWriter::end_branch(const std::vector<WrittenTensor>& outputs) {
  std::vector<WrittenTensor> own = outputs;
  std::set<std::string> wanted;
  for (WrittenTensor& output : own) {
    output.name = add_node("Identity", {output.name}, {}, 1, output.name).front();
    wanted.insert(output.name);
  }
  MessageWriter graph;
  for (const NodeText* node : live_nodes(nodes_, wanted)) graph.text(kGraphNode, node->bytes);
  graph.text(kGraphName, concat("way_", ways_.size()));
  for (const WrittenTensor& output : own) graph.message(kGraphOutput, value_info(output));
  for (const NodeText& node : nodes_) {
    for (const std::string& name : node.outputs) wanted.erase(name);
  }
  ways_.push_back({graph.bytes(), Strings(wanted.begin(), wanted.end()), own.size()});
  nodes_ = std::move(outside_.back());
  outside_.pop_back();
}

Strings ModelWriter::add_if(const std::string& condition, std::string_view hint) {
  const Way no = std::move(ways_.back()), yes = std::move(ways_[ways_.size() - 2]);
  ways_.resize(ways_.size() - 2);
  NodeText node;
  MessageWriter out;
  out.text(kNodeInput, condition);
  for (size_t i = 0; i < yes.outputs; ++i) {
    node.outputs.push_back(new_name(hint));
    out.text(kNodeOutput, node.outputs.back());
  }
  out.text(kNodeName, new_name("node_if"));
  out.text(kNodeOpType, "If");
  for (const auto& [name, way] : {std::pair("then_branch", &yes), std::pair("else_branch", &no)}) {
    constexpr int kTypeGraph = 5;
    MessageWriter attribute;
    attribute.text(1, name);
    attribute.text(6, way->bytes);
    attribute.number(20, kTypeGraph);
    out.message(kNodeAttribute, attribute);
  }
  node.inputs = {condition};
  for (const Way* way : {&yes, &no}) node.inputs.insert(node.inputs.end(), way->reads.begin(), way->reads.end());
  node.bytes = out.bytes();
  nodes_.push_back(node);
  return node.outputs;
}

void ModelWriter::write(const std::string& path, const std::string& graph_name) {
  std::set<std::string> wanted;
  for (const WrittenTensor& output : outputs_) wanted.insert(output.name);
  const std::vector<const NodeText*> nodes = live_nodes(nodes_, wanted);
  MessageWriter graph;
  for (const NodeText* node : nodes) graph.text(kGraphNode, node->bytes);
  graph.text(kGraphName, graph_name);
  for (const WrittenTensor& input : inputs_) graph.message(kGraphInput, value_info(input));
  for (const WrittenTensor& output : outputs_) graph.message(kGraphOutput, value_info(output));
  // Weights are written straight from their memory.
  struct Part {
    std::string head;
    Tensor tensor;
  };
  std::vector<Part> parts;
  size_t size = graph.bytes().size();
  for (const Initializer& one : initializers_) {
    if (!wanted.contains(one.name)) continue;
    const std::string head = tensor_head(one.name, one.tensor);
    MessageWriter field;
    field.begin_bytes(kGraphInitializer, head.size() + one.tensor.size_bytes());
    parts.push_back({field.bytes() + head, one.tensor});
    size += parts.back().head.size() + one.tensor.size_bytes();
  }
  if (size > INT_MAX) fail(ErrorCode::kResourceExhausted, path, ": ", size, " bytes are too many for an ONNX file");
  MessageWriter opset, model;
  opset.text(1, "");
  opset.number(2, kWrittenOpset);
  model.number(kModelIr, kWrittenIr);
  model.text(kModelProducer, "tensord");
  model.message(kModelOpset, opset);
  model.begin_bytes(kModelGraph, size);
  AtomicFile file(path);
  file.write(model.bytes());
  file.write(graph.bytes());
  for (const Part& part : parts) {
    file.write(part.head);
    if (part.tensor.size_bytes() > 0)
      file.write({static_cast<const char*>(part.tensor.raw_data()), part.tensor.size_bytes()});
  }
  file.commit();
}

}  // namespace tensord::jit::onnx
