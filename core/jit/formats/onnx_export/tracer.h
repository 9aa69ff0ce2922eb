#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/jit/formats/onnx_export/traced.h"
#include "core/jit/formats/onnx_export/writer.h"
#include "core/jit/ir/graph.h"

namespace tensord::jit::onnx {

// Runs a graph for two sets of examples and writes what its operators do to tensors as ONNX. Branches and loops have to
// go the same way for every input, so they leave nothing in the file; those that hang on data or on an open size are
// refused, unless the other way only raises an error. Throws Error{kUnimplemented} that names operator and place.
class Tracer {
 public:
  // `has_open_sizes`: the sets differ; otherwise one run does.
  Tracer(ModelWriter& writer, const ops::ObjectPtr& self, bool has_open_sizes);

  Traced add_input(const std::string& name, const Tensor& a, const Tensor& b, const Strings& size_names);
  Traced run(const Block& block, std::vector<Traced> arguments);

  ModelWriter& writer() { return writer_; }
  bool is_double() const { return is_double_; }

  // Whether it is not the same for every input; of containers, whether something in them is not.
  bool is_dynamic(const Traced& value) const;
  // The tensor's name in the file, where it is put as an initializer when it is a constant.
  std::string name_of(const Traced& tensor);
  bool is_constant(const Tensor& a) const;
  void bind(const Tensor& a, std::string name);
  // Wraps what is the same for both sets, or a pair of results. Containers are taken apart.
  static Traced wrap(const ops::Value& a, const ops::Value& b);
  ops::Value to_value(const Traced& value, bool second) const;
  [[noreturn]] static void refuse(const Node& node, const std::string& why);

 private:
  using Scope = std::unordered_map<const GraphValue*, Traced>;
  std::vector<Traced> run_block(const Block& block);
  void visit(const Node& node);
  void call(const Node& node);
  std::vector<Tensor> written_tensors(const Node& node, const ops::Op& op, const std::vector<Traced>& arguments) const;
  // The memory of this tensor was written, with what comes from inputs or not: others that view it have other values
  // now than the file says.
  void mark_written(const Tensor& a, bool is_open);
  void run_if(const Node& node);
  void choose(const Node& node, bool first_way, bool second_way);
  void run_loop(const Node& node);
  void get_attribute(const Node& node);
  void construct(const Node& node);
  void unpack(const Node& node);
  const Traced& at(const GraphValue* value) const { return scope_.at(value); }
  void set(const GraphValue* value, Traced traced) { scope_[value] = std::move(traced); }

  ModelWriter& writer_;
  bool is_double_;
  Scope scope_;
  std::unordered_map<const ops::Object*, std::string> paths_;  // of modules: "layer1.0."
  struct Named {
    std::string name;
    bool is_stale = false;
  };
  std::unordered_map<const TensorImpl*, Named> tensors_;  // those that are not constant
  std::unordered_map<const TensorImpl*, std::string> constants_;
  std::set<const StorageImpl*> written_storages_;  // with what comes from inputs
  std::vector<Tensor> kept_;                       // addresses stay theirs
};

}  // namespace tensord::jit::onnx
