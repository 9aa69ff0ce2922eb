#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/jit/formats/export_tracing/traced.h"
#include "core/jit/formats/onnx/message_writer.h"
#include "core/tensor/tensor.h"

namespace tensord::jit::onnx {

// The version of ONNX's operators that is written.
inline constexpr int64_t kWrittenOpset = 21;
inline constexpr int64_t kWrittenIr = 10;

using tracing::Strings;
using AttributeValue = std::variant<int64_t, double, std::string, std::vector<int64_t>>;
using Attributes = std::vector<std::pair<const char*, AttributeValue>>;

// What an input or output is: its type and sizes, -1 where any is meant.
struct WrittenTensor {
  std::string name;
  DType dtype = DType::kFloat32;
  Dims sizes;
  Strings size_names;  // of sizes that are -1; "" or left out: none
};

// Collects a graph and writes it as a file.
class ModelWriter {
 public:
  // A name that nothing has yet, like the wish.
  std::string new_name(std::string_view wish);
  void add_input(const WrittenTensor& input) { inputs_.push_back(input); }
  void add_output(const WrittenTensor& output) { outputs_.push_back(output); }
  // A tensor in the file; its name may become another.
  std::string add_initializer(std::string_view wish, const Tensor& tensor);
  // A node with `count` outputs, whose names are given back.
  Strings add_node(const char* op_type, const Strings& inputs, const Attributes& attributes, size_t count,
                   std::string_view wish);
  // Writes the file whole or not at all. Nodes that lead to no output are left out, and initializers that nobody reads.
  // Throws Error{kResourceExhausted} beyond 2 GB.
  void write(const std::string& path, const std::string& graph_name);

 private:
  struct NodeText {
    Strings inputs, outputs;
    std::string bytes;
  };
  struct Initializer {
    std::string name;
    Tensor tensor;
  };
  std::vector<WrittenTensor> inputs_, outputs_;
  std::vector<NodeText> nodes_;
  std::vector<Initializer> initializers_;
  std::vector<std::string> taken_;  // sorted
};

}  // namespace tensord::jit::onnx
