#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/jit/ir/graph.h"
#include "core/jit/tracing/target.h"
#include "core/jit/tracing/traced.h"

namespace tensord::jit::tracing {

// Runs a graph on two sets of examples and passes the tensor operators to a target. Branches and loops must go the same
// way for every input, so they are unrolled. A branch that depends on data or on a dynamic size is written if the
// format supports it; otherwise it is refused, unless the other side only raises an error. Throws Error{kUnimplemented}
// that names the operator and its source location. Two examples may agree by chance, so shapes are also inferred for
// many other sizes, the probes. A value is constant only if it is equal in both examples and in every probe. A probe
// for whose sizes the program raises an error is dropped.
class Tracer {
 public:
  // `has_open_sizes`: the sets differ; otherwise only one of them is run.
  Tracer(Target& target, const ops::ObjectPtr& self, bool has_open_sizes, size_t probe_count);

  // Adds an input that the file calls `name`, with its shape in each probe.
  Traced add_input(const std::string& name, const Tensor& a, const Tensor& b, const std::vector<Dims>& probes);
  // Runs the graph. Tensors that the program assigned to attributes are written to the original tensors.
  Traced run(const Block& block, std::vector<Traced> arguments);

  bool is_double() const { return is_double_; }

  // Whether the value, or for containers any element, is not constant over all inputs.
  bool is_dynamic(const Traced& value) const;
  // The tensor's name in the file; adds a constant if necessary.
  std::string name_of(const Traced& tensor);
  bool is_constant(const Tensor& a) const;
  void bind(Traced& tensor, const std::string& name);
  ops::Value to_value(const Traced& value, bool second) const;
  // The value in a probe; nullopt if unknown.
  std::optional<ops::Value> probe(const Traced& value, size_t set) const;
  std::vector<std::optional<Tensor>> probe_tensors(const Traced& tensor) const;
  std::vector<std::optional<int64_t>> probe_sizes(const Traced& tensor, int64_t dim) const;
  // Whether a size of a tensor is not constant over all inputs, or not known to be.
  bool is_open_size(const Traced& tensor, int64_t dim) const;
  bool has_open_sizes(const Traced& tensor) const;
  // Whether the tensor has the same shape in the examples and in all probes.
  bool has_one_shape(const Traced& tensor) const;
  // A size as a number; the target decides how the file expresses it.
  Traced size_of(const Traced& tensor, int64_t dim) const;
  [[noreturn]] void refuse(const Node& node, const std::string& why) const;
  std::string_view format() const { return target_.format(); }

 private:
  using Scope = std::unordered_map<const GraphValue*, Traced>;
  struct Named {
    std::string name;
    bool is_stale = false;
    bool is_fixed = false;  // constant over all inputs, although an operator of the file returns it
  };
  std::vector<Traced> run_block(const Block& block);
  void visit(const Node& node);
  void call(const Node& node);
  std::vector<Tensor> written_tensors(const Node& node, const ops::Op& op, const std::vector<Traced>& arguments) const;
  // Marks the tensor's memory as written, with data that depends on inputs or not: other views of it no longer have the
  // values in the file.
  void mark_written(const Tensor& a, bool is_open);
  // If memory is shared: throws for a parameter of the model or a constant of the file.
  void check_written(const Node& node, const Tensor& tensor) const;
  // Called before a call writes to these tensors. `is_open`: the data depends on inputs.
  void check_writes(const Node& node, const std::vector<Tensor>& written, const std::vector<Traced>& arguments,
                    bool is_open);
  // Registers a call's results before the target names them. `is_fixed`: constant over all inputs.
  void mark_results(std::vector<Traced>& results, const std::vector<Traced>& arguments, bool is_fixed);
  void run_if(const Node& node);
  void choose(const Node& node, const Traced& condition);
  void run_branchs(const Node& node, const Traced& condition);
  std::vector<Traced> run_branch(const Node& node, const Traced& condition, bool way);
  Traced join_tensors(const Traced& condition, const Traced& yes, const Traced& no) const;
  std::set<const StorageImpl*> storages_so_far() const;
  void check_branch_writes(const Node& node, const Tensor& tensor) const;
  std::optional<Traced> join_ways(const Traced& condition, const Traced& yes, const Traced& no) const;
  void run_loop(const Node& node);
  void get_attribute(const Node& node);
  void set_attribute(const Node& node);
  void write_attributes(const Traced& result);
  // If memory is shared: the name of a tensor of the model; "" for others.
  std::string weight_name(const Tensor& tensor);
  static ops::Value to_container(const ops::Value& sample, std::vector<ops::Value> items);
  // The results of a call in each probe.
  using ProbeResults = std::vector<std::optional<std::vector<ops::Value>>>;
  ProbeResults run_probes(const ops::Op& op, const std::vector<Traced>& arguments);
  void set_probes(std::vector<Traced>& results, const ProbeResults& found) const;
  void set_probes(Traced& result, const std::vector<std::optional<ops::Value>>& found) const;
  void set_fixed_probes(Traced& value) const;
  // The program takes this side of a branch: drops probes that take the other side, which raises an error.
  void record_branch(const Node& node, const Traced& condition, bool way, bool may_raise);
  void construct(const Node& node);
  void unpack(const Node& node);
  const Traced& at(const GraphValue* value) const { return scope_.at(value); }
  void set(const GraphValue* value, Traced traced) { scope_[value] = std::move(traced); }

  Target& target_;
  bool is_double_;
  Scope scope_;
  std::unordered_map<const ops::Object*, std::string> paths_;  // of modules: "layer1.0."
  std::unordered_map<const TensorImpl*, Named> tensors_;       // those that are not constant
  std::unordered_map<const TensorImpl*, std::string> constants_, weights_;
  struct Attribute {
    std::string path;
    bool is_parameter = false;
  };
  // An attribute that the program assigns: its tensor in the model, and its current value.
  struct SetAttribute {
    const ops::Object* owner;
    std::string name;
    Traced old, now;
  };
  SetAttribute* find_set(const ops::Object* owner, const std::string& name);
  std::vector<SetAttribute> set_attributes_;
  std::unordered_map<const TensorImpl*, Attribute> attributes_;  // the model's tensors
  std::unordered_map<const StorageImpl*, std::vector<const TensorImpl*>> attribute_storages_;
  std::set<const StorageImpl*> written_storages_;  // written with data that depends on inputs
  std::vector<Tensor> kept_;                       // keeps addresses unique
  // While a side of a written branch is traced: memory from before the branch.
  std::optional<std::set<const StorageImpl*>> outer_storages_;
  std::set<const StorageImpl*> joined_storages_;  // memory of branch results that may alias other tensors
  std::vector<bool> dead_probes_;
  std::set<const StorageImpl*> lost_storages_;  // memory of probe tensors that were written
  std::vector<ops::Value> kept_probes_;
};

}  // namespace tensord::jit::tracing
