#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/jit/formats/export_tracing/traced.h"
#include "core/jit/formats/onnx/message_writer.h"
#include "core/jit/formats/unique_names.h"
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
  // A name that nothing has yet, like the hint.
  std::string new_name(std::string_view hint);
  void add_input(const WrittenTensor& input) { inputs_.push_back(input); }
  void add_output(const WrittenTensor& output) { outputs_.push_back(output); }
  // A tensor in the file; its name may become another.
  std::string add_initializer(std::string_view hint, const Tensor& tensor);
  // A node with `count` outputs, whose names are given back.
  Strings add_node(const char* op_type, const Strings& inputs, const Attributes& attributes, size_t count,
                   std::string_view hint);
  // Nodes go into a graph of their own until end_branch, which gives it these outputs; they may read what is outside.
  void begin_branch();
  void end_branch(const std::vector<WrittenTensor>& outputs);
  // An If over the last two ways, of which the first is for true; its outputs.
  Strings add_if(const std::string& condition, std::string_view hint);
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
  // Those that lead to the outputs, in order; the names that they read are added to `wanted`, which has the outputs.
  static std::vector<const NodeText*> live_nodes(const std::vector<NodeText>& nodes, std::set<std::string>& wanted);

  struct Way {
    std::string bytes;
    Strings reads;  // from outside
    size_t outputs = 0;
  };
  std::vector<NodeText> nodes_;
  std::vector<std::vector<NodeText>> outside_;  // while a way is written, the innermost last
  std::vector<Way> ways_;
  std::vector<Initializer> initializers_;
  UniqueNames names_taken_;
};

}  // namespace tensord::jit::onnx
