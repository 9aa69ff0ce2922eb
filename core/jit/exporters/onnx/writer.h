#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/jit/importers/onnx/message_writer.h"
#include "core/jit/importers/unique_names.h"
#include "core/jit/tracing/traced.h"
#include "core/tensor/tensor.h"

namespace tensord::jit::onnx {

// The opset that is written.
inline constexpr int64_t kWrittenOpset = 21;
inline constexpr int64_t kWrittenIr = 10;

using tracing::Strings;
using AttributeValue = std::variant<int64_t, double, std::string, std::vector<int64_t>>;
using Attributes = std::vector<std::pair<const char*, AttributeValue>>;

// An input or output: its type and sizes, -1 if dynamic.
struct WrittenTensor {
  std::string name;
  DType dtype = DType::kFloat32;
  Dims sizes;
  Strings size_names;  // of sizes that are -1; "" or left out: none
};

// Collects a graph and writes it to a file.
class ModelWriter {
 public:
  // An unused name derived from the hint.
  std::string new_name(std::string_view hint);
  void add_input(const WrittenTensor& input) { inputs_.push_back(input); }
  void add_output(const WrittenTensor& output) { outputs_.push_back(output); }
  // Adds a tensor to the file and returns its name, which may differ from the hint.
  std::string add_initializer(std::string_view hint, const Tensor& tensor);
  // Adds a node with `count` outputs and returns their names.
  Strings add_node(const char* op_type, const Strings& inputs, const Attributes& attributes, size_t count,
                   std::string_view hint);
  // Until end_branch, nodes are added to a subgraph with these outputs; they may read outer values.
  void begin_branch();
  void end_branch(const std::vector<WrittenTensor>& outputs);
  // Adds an If over the last two subgraphs (the first one is the true side) and returns its outputs.
  Strings add_if(const std::string& condition, std::string_view hint);
  // Writes the file atomically. Nodes that no output depends on, and unused initializers, are left out. Throws
  // Error{kResourceExhausted} above 2 GB.
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
  // The nodes that outputs depend on, in order; names that they read are added to `wanted`, which initially has the
  // outputs.
  static std::vector<const NodeText*> live_nodes(const std::vector<NodeText>& nodes, std::set<std::string>& wanted);

  struct Way {
    std::string bytes;
    Strings reads;  // outer values
    size_t outputs = 0;
  };
  std::vector<NodeText> nodes_;
  std::vector<std::vector<NodeText>> outside_;  // while subgraphs are written, innermost last
  std::vector<Way> ways_;
  std::vector<Initializer> initializers_;
  UniqueNames names_taken_;
};

}  // namespace tensord::jit::onnx
