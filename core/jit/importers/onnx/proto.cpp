#include "core/jit/importers/onnx/proto.h"

#include <algorithm>

#include "core/base/cancellation.h"
#include "core/base/error.h"
#include "core/jit/importers/onnx/wire.h"
#include "core/tensor/memory/owner_limit.h"

namespace tensord::jit::onnx {
namespace {

using Bytes = std::span<const uint8_t>;

// Nesting of graphs in attributes and of sequence types, which bounds the readers' recursion.
constexpr int kMaxMessageDepth = 40;
// An empty message has two bytes in the file and takes some hundred bytes of memory.
constexpr size_t kMaxMessages = 4'000'000;

// Parses a file in one pass and counts the messages it creates.
class Reader {
 public:
  ModelProto model(Bytes bytes);
  TensorProto tensor(Bytes bytes);

 private:
  struct Deeper {
    explicit Deeper(int& depth) : depth_(depth) {
      if (++depth_ > kMaxMessageDepth)
        fail(ErrorCode::kResourceExhausted, "graphs or types are nested more than ", kMaxMessageDepth, " deep");
    }
    ~Deeper() { --depth_; }
    int& depth_;
  };
  GraphProto graph(Bytes bytes);
  FunctionProto function(Bytes bytes);
  NodeProto node(Bytes bytes);
  AttributeProto attribute(Bytes bytes);
  SparseTensorProto sparse_tensor(Bytes bytes);
  ValueInfoProto value_info(Bytes bytes);
  TypeProto type(Bytes bytes);
  void tensor_type(Bytes bytes, TypeProto& type);
  std::vector<TypeProto::Dimension> shape(Bytes bytes);
  static TypeProto::Dimension dimension(Bytes bytes);
  static void opset(Bytes bytes, OpsetImports& imports);
  static void entry(Bytes bytes, std::map<std::string, std::string>& entries);

  void count() {
    check_work_cancelled();
    if (++messages_ > kMaxMessages)
      fail(ErrorCode::kResourceExhausted, "the model has more than ", kMaxMessages, " parts");
    if (messages_ % 65536 == 0) check_room(messages_ * sizeof(AttributeProto), "the model");
  }

  int depth_ = 0;
  size_t messages_ = 0;
};

ModelProto Reader::model(Bytes bytes) {
  ModelProto model;
  bool has_graph = false;
  for (Wire wire(bytes, "ModelProto"); wire.next();) {
    switch (wire.field()) {
      case 1: model.ir_version = wire.integer(); break;
      case 2: model.producer_name = wire.text(); break;
      case 3: model.producer_version = wire.text(); break;
      case 7:
        if (has_graph) fail(ErrorCode::kDataLoss, "ModelProto: graph appears twice");
        has_graph = true;
        model.graph = graph(wire.bytes());
        break;
      case 8: opset(wire.bytes(), model.opset_imports); break;
      case 20: model.has_training_info = true; break;
      case 25: model.functions.push_back(function(wire.bytes())); break;
      default: break;
    }
  }
  if (!has_graph) fail(ErrorCode::kDataLoss, "ModelProto: there is no graph");
  return model;
}

void Reader::opset(Bytes bytes, OpsetImports& imports) {
  std::string domain;
  int64_t version = 0;
  for (Wire wire(bytes, "OperatorSetIdProto"); wire.next();) {
    if (wire.field() == 1) domain = domain_name(wire.text());
    if (wire.field() == 2) version = wire.integer();
  }
  if (!imports.emplace(domain, version).second && imports[domain] != version) {
    fail(ErrorCode::kDataLoss, "opset_import: domain '", domain, "' has two versions");
  }
}

GraphProto Reader::graph(Bytes bytes) {
  const Deeper deeper(depth_);
  GraphProto graph;
  for (Wire wire(bytes, "GraphProto"); wire.next();) {
    switch (wire.field()) {
      case 1: graph.nodes.push_back(node(wire.bytes())); break;
      case 2: graph.name = wire.text(); break;
      case 5: graph.initializers.push_back(tensor(wire.bytes())); break;
      case 11: graph.inputs.push_back(value_info(wire.bytes())); break;
      case 12: graph.outputs.push_back(value_info(wire.bytes())); break;
      case 13: graph.value_infos.push_back(value_info(wire.bytes())); break;
      case 15: graph.sparse_initializers.push_back(sparse_tensor(wire.bytes())); break;
      default: break;
    }
  }
  return graph;
}

FunctionProto Reader::function(Bytes bytes) {
  FunctionProto function;
  for (Wire wire(bytes, "FunctionProto"); wire.next();) {
    switch (wire.field()) {
      case 1: function.name = wire.text(); break;
      case 4: function.inputs.push_back(wire.text()); break;
      case 5: function.outputs.push_back(wire.text()); break;
      case 6: function.attributes.push_back(wire.text()); break;
      case 7: function.nodes.push_back(node(wire.bytes())); break;
      case 9: opset(wire.bytes(), function.opset_imports); break;
      case 10: function.domain = domain_name(wire.text()); break;
      case 11: function.attribute_protos.push_back(attribute(wire.bytes())); break;
      case 13: function.overload = wire.text(); break;
      default: break;
    }
  }
  return function;
}

NodeProto Reader::node(Bytes bytes) {
  count();
  NodeProto node;
  for (Wire wire(bytes, "NodeProto"); wire.next();) {
    switch (wire.field()) {
      case 1: node.inputs.push_back(wire.text()); break;
      case 2: node.outputs.push_back(wire.text()); break;
      case 3: node.name = wire.text(); break;
      case 4: node.op_type = wire.text(); break;
      case 5: node.attributes.push_back(attribute(wire.bytes())); break;
      case 7: node.domain = domain_name(wire.text()); break;
      case 8: node.overload = wire.text(); break;
      default: break;
    }
  }
  return node;
}

AttributeProto Reader::attribute(Bytes bytes) {
  count();
  AttributeProto attribute;
  for (Wire wire(bytes, "AttributeProto"); wire.next();) {
    switch (wire.field()) {
      case 1: attribute.name = wire.text(); break;
      case 2: attribute.f = wire.float32(); break;
      case 3: attribute.i = wire.integer(); break;
      case 4: attribute.s = std::string(wire.bytes().begin(), wire.bytes().end()); break;
      case 5: attribute.t = std::make_shared<TensorProto>(tensor(wire.bytes())); break;
      case 6: attribute.g = std::make_shared<GraphProto>(graph(wire.bytes())); break;
      case 7: wire.append_to(attribute.floats); break;
      case 8: wire.append_to(attribute.ints); break;
      case 9: attribute.strings.emplace_back(wire.bytes().begin(), wire.bytes().end()); break;
      case 14: attribute.tp = std::make_shared<TypeProto>(type(wire.bytes())); break;
      case 20: attribute.type = wire.small_integer(); break;
      case 21: attribute.ref_attr_name = wire.text(); break;
      case 22: attribute.sparse_tensor = std::make_shared<SparseTensorProto>(sparse_tensor(wire.bytes())); break;
      default: break;
    }
  }
  return attribute;
}

TensorProto Reader::tensor(Bytes bytes) {
  count();
  TensorProto tensor;
  for (Wire wire(bytes, "TensorProto"); wire.next();) {
    switch (wire.field()) {
      case 1: wire.append_to(tensor.dims); break;
      case 2: tensor.data_type = wire.small_integer(); break;
      case 3: fail(ErrorCode::kUnimplemented, "TensorProto: segments are not supported");
      case 4: tensor.float_data.push_back(wire.fixed32s()); break;
      case 5: wire.append_to(tensor.int32_data); break;
      case 6: tensor.has_strings = true; break;
      case 7: wire.append_to(tensor.int64_data); break;
      case 8: tensor.name = wire.text(); break;
      case 9:
        tensor.raw_data = wire.bytes();
        tensor.has_raw_data = true;
        break;
      case 10: tensor.double_data.push_back(wire.fixed64s()); break;
      case 11: wire.append_to(tensor.uint64_data); break;
      case 13: entry(wire.bytes(), tensor.external_data); break;
      case 14: tensor.is_external = wire.small_integer() == 1; break;
      default: break;
    }
  }
  return tensor;
}

void Reader::entry(Bytes bytes, std::map<std::string, std::string>& entries) {
  std::string key, value;
  for (Wire wire(bytes, "StringStringEntryProto"); wire.next();) {
    if (wire.field() == 1) key = wire.text();
    if (wire.field() == 2) value = wire.text();
  }
  entries[key] = value;
}

SparseTensorProto Reader::sparse_tensor(Bytes bytes) {
  SparseTensorProto sparse;
  for (Wire wire(bytes, "SparseTensorProto"); wire.next();) {
    if (wire.field() == 1) sparse.values = tensor(wire.bytes());
    if (wire.field() == 2) sparse.indices = tensor(wire.bytes());
    if (wire.field() == 3) wire.append_to(sparse.dims);
  }
  return sparse;
}

ValueInfoProto Reader::value_info(Bytes bytes) {
  count();
  ValueInfoProto value;
  for (Wire wire(bytes, "ValueInfoProto"); wire.next();) {
    if (wire.field() == 1) value.name = wire.text();
    if (wire.field() == 2) value.type = type(wire.bytes());
  }
  return value;
}

TypeProto Reader::type(Bytes bytes) {
  const Deeper deeper(depth_);
  TypeProto type;
  using Kind = TypeProto::Kind;
  const auto container = [&](Kind kind, Bytes contents) {
    type.kind = kind;
    for (Wire wire(contents, "TypeProto"); wire.next();) {
      if (wire.field() == 1) type.element = std::make_shared<TypeProto>(this->type(wire.bytes()));
    }
  };
  for (Wire wire(bytes, "TypeProto"); wire.next();) {
    switch (wire.field()) {
      case 1:
        type.kind = Kind::kTensor;
        tensor_type(wire.bytes(), type);
        break;
      case 4: container(Kind::kSequence, wire.bytes()); break;
      case 5: type.kind = Kind::kMap; break;
      case 8: type.kind = Kind::kSparseTensor; break;
      case 9: container(Kind::kOptional, wire.bytes()); break;
      default: break;
    }
  }
  return type;
}

void Reader::tensor_type(Bytes bytes, TypeProto& type) {
  for (Wire wire(bytes, "TypeProto.Tensor"); wire.next();) {
    if (wire.field() == 1) type.elem_type = wire.small_integer();
    if (wire.field() == 2) type.shape = shape(wire.bytes());
  }
}

std::vector<TypeProto::Dimension> Reader::shape(Bytes bytes) {
  std::vector<TypeProto::Dimension> dimensions;
  for (Wire wire(bytes, "TensorShapeProto"); wire.next();) {
    if (wire.field() == 1) dimensions.push_back(dimension(wire.bytes()));
  }
  return dimensions;
}

TypeProto::Dimension Reader::dimension(Bytes bytes) {
  TypeProto::Dimension dimension;
  for (Wire wire(bytes, "TensorShapeProto.Dimension"); wire.next();) {
    if (wire.field() == 1) dimension.value = wire.integer();
    if (wire.field() == 2) dimension.parameter = wire.text();
  }
  return dimension;
}

}  // namespace

const AttributeProto* NodeProto::find_attribute(std::string_view attribute) const {
  const auto found = std::ranges::find(attributes, attribute, &AttributeProto::name);
  return found == attributes.end() ? nullptr : &*found;
}

std::string domain_name(std::string domain) { return domain == "ai.onnx" ? std::string() : domain; }

ModelProto read_model(Bytes bytes) { return Reader().model(bytes); }
TensorProto read_tensor(Bytes bytes) { return Reader().tensor(bytes); }

}  // namespace tensord::jit::onnx
