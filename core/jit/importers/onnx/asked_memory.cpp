#include "core/jit/importers/onnx/asked_memory.h"

#include <algorithm>
#include <charconv>

#include "core/jit/importers/onnx/tensors.h"
#include "core/tensor/allocator.h"

namespace tensord::jit::onnx {
namespace {

// Invalid tensors are reported when they are read; here only their size counts.
class Sum {
 public:
  explicit Sum(bool copies) : copies_(copies) {}
  uint64_t bytes() const { return bytes_; }

  void graph(const GraphProto& graph) {
    for (const TensorProto& proto : graph.initializers) tensor(proto);
    for (const SparseTensorProto& proto : graph.sparse_initializers) sparse(proto);
    nodes(graph.nodes);
  }

  void nodes(const std::vector<NodeProto>& nodes) {
    for (const NodeProto& node : nodes) attributes(node.attributes);
  }

  void attributes(const std::vector<AttributeProto>& attributes) {
    for (const AttributeProto& attribute : attributes) {
      if (attribute.t) tensor(*attribute.t);
      if (attribute.sparse_tensor) sparse(*attribute.sparse_tensor);
      if (attribute.g) graph(*attribute.g);
    }
  }

 private:
  void add(const std::vector<int64_t>& dims, int64_t data_type) {
    const std::optional<DType> dtype = find_dtype(data_type);
    uint64_t size = dtype ? size_of(*dtype) : 1;
    for (const int64_t dim : dims) {
      if (dim <= 0) return;
      if (__builtin_mul_overflow(size, static_cast<uint64_t>(dim), &size)) size = UINT64_MAX;
    }
    if (__builtin_add_overflow(bytes_, size, &bytes_)) bytes_ = UINT64_MAX;
  }

  void tensor(const TensorProto& proto) {
    if (proto.is_external && (copies_ || has_four_bits(proto.data_type) || !is_aligned(proto))) {
      add(proto.dims, proto.data_type);
    }
  }

  void sparse(const SparseTensorProto& proto) {
    tensor(proto.values);
    tensor(proto.indices);
    add(proto.dims, proto.values.data_type);
  }

  // External data is mapped at page boundaries.
  static bool is_aligned(const TensorProto& proto) {
    const auto found = proto.external_data.find("offset");
    if (found == proto.external_data.end()) return true;
    uint64_t offset = 1;
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), offset);
    return offset % kAlignment == 0;
  }

  const bool copies_;
  uint64_t bytes_ = 0;
};

}  // namespace

uint64_t asked_bytes(const ModelProto& model, bool copies) {
  Sum sum(copies);
  sum.graph(model.graph);
  for (const FunctionProto& function : model.functions) {
    sum.nodes(function.nodes);
    sum.attributes(function.attribute_protos);
  }
  return sum.bytes();
}

}  // namespace tensord::jit::onnx
