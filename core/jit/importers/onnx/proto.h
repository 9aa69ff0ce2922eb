#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

// The messages of onnx.proto, limited to fields that affect a model's meaning, with the same names. Tensor data is not
// copied from the file.
namespace tensord::jit::onnx {

struct TensorProto {
  std::string name;
  int32_t data_type = 0;
  std::vector<int64_t> dims;
  std::span<const uint8_t> raw_data;
  bool has_raw_data = false;
  // Packed in most files, so they are decoded on demand.
  std::vector<std::span<const uint8_t>> float_data, double_data;
  std::vector<int64_t> int32_data, int64_data;
  std::vector<uint64_t> uint64_data;
  bool has_strings = false;
  bool is_external = false;
  std::map<std::string, std::string> external_data;  // location, offset, length, checksum
};

struct SparseTensorProto {
  TensorProto values, indices;
  std::vector<int64_t> dims;
};

struct TypeProto {
  enum class Kind : uint8_t { kNone, kTensor, kSparseTensor, kSequence, kMap, kOptional };
  struct Dimension {
    std::optional<int64_t> value;
    std::string parameter;  // symbolic name, if it has no value
  };
  Kind kind = Kind::kNone;
  int32_t elem_type = 0;                        // of a tensor
  std::optional<std::vector<Dimension>> shape;  // of a tensor; unset: any rank
  std::shared_ptr<const TypeProto> element;     // of a sequence or an optional
};

struct ValueInfoProto {
  std::string name;
  TypeProto type;
};

struct GraphProto;

struct AttributeProto {
  // AttributeProto.AttributeType
  enum Type : int32_t {
    kUndefined = 0,
    kFloat = 1,
    kInt = 2,
    kString = 3,
    kTensor = 4,
    kGraph = 5,
    kFloats = 6,
    kInts = 7,
    kStrings = 8,
    kTensors = 9,
    kGraphs = 10,
    kSparseTensor = 11,
    kSparseTensors = 12,
    kTypeProto = 13,
    kTypeProtos = 14,
  };
  std::string name;
  std::string ref_attr_name;  // inside a function: the function's attribute that provides the value
  int32_t type = kUndefined;
  float f = 0;
  int64_t i = 0;
  std::string s;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  std::shared_ptr<const TensorProto> t;
  std::shared_ptr<const SparseTensorProto> sparse_tensor;
  std::shared_ptr<const GraphProto> g;
  std::shared_ptr<const TypeProto> tp;
};

struct NodeProto {
  std::vector<std::string> inputs, outputs;  // "": an optional one that is left out
  std::string name, op_type, domain, overload;
  std::vector<AttributeProto> attributes;

  const AttributeProto* find_attribute(std::string_view attribute) const;
};

struct GraphProto {
  std::string name;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;
  std::vector<SparseTensorProto> sparse_initializers;
  std::vector<ValueInfoProto> inputs, outputs, value_infos;
};

using OpsetImports = std::map<std::string, int64_t>;  // by domain; "" is ai.onnx

struct FunctionProto {
  std::string name, domain, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> attributes;           // without a default
  std::vector<AttributeProto> attribute_protos;  // with a default
  std::vector<NodeProto> nodes;
  OpsetImports opset_imports;
};

struct ModelProto {
  int64_t ir_version = 0;
  std::string producer_name, producer_version;
  OpsetImports opset_imports;
  GraphProto graph;
  std::vector<FunctionProto> functions;
  bool has_training_info = false;
};

// Both throw Error{kDataLoss} for bytes that are not such a message, and {kResourceExhausted} beyond the limits of
// depth and size.
ModelProto read_model(std::span<const uint8_t> bytes);
TensorProto read_tensor(std::span<const uint8_t> bytes);
// Normalizes "ai.onnx" to "".
std::string domain_name(std::string domain);

}  // namespace tensord::jit::onnx
