#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/jit/formats/export_tracing/target.h"
#include "core/jit/formats/export_tracing/traced.h"
#include "core/jit/ir/graph.h"

namespace tensord::jit::tracing {

// Runs a graph for two sets of examples and hands what its operators do to tensors to a target. Branches and loops have
// to go the same way for every input, so they leave nothing in the file. A branch that hangs on data or on an open size
// goes into the file where the format has such; else it is refused, unless the other way only raises an error. Throws
// Error{kUnimplemented} that names operator and place. Two examples may agree by chance. So shapes
// are also inferred for many other sizes, the probes. A value is constant only if it is equal in both examples and in
// every probe. A probe for whose sizes the program raises an error is dropped.
class Tracer {
 public:
  // `has_open_sizes`: the sets differ; otherwise one run does.
  Tracer(Target& target, const ops::ObjectPtr& self, bool has_open_sizes, size_t probe_count);

  // An input that the file calls `name`, with its sizes in each probe.
  Traced add_input(const std::string& name, const Tensor& a, const Tensor& b, const std::vector<Dims>& probes);
  // Runs the graph, and writes what the program set attributes to into the tensors that they had before.
  Traced run(const Block& block, std::vector<Traced> arguments);

  bool is_double() const { return is_double_; }

  // Whether it is not the same for every input; of containers, whether something in them is not.
  bool is_dynamic(const Traced& value) const;
  // The tensor's name in the file, where it is put as a constant when it is one.
  std::string name_of(const Traced& tensor);
  bool is_constant(const Tensor& a) const;
  void bind(Traced& tensor, const std::string& name);
  ops::Value to_value(const Traced& value, bool second) const;
  // What a value is in a probe; none where that is not known.
  std::optional<ops::Value> probe(const Traced& value, size_t set) const;
  std::vector<std::optional<Tensor>> probe_tensors(const Traced& tensor) const;
  std::vector<std::optional<int64_t>> probe_sizes(const Traced& tensor, int64_t dim) const;
  // Whether a size of a tensor is not the same for every input, or nothing says that it is.
  bool is_open_size(const Traced& tensor, int64_t dim) const;
  bool has_open_sizes(const Traced& tensor) const;
  // Whether it has one shape in the examples and in all probes.
  bool has_one_shape(const Traced& tensor) const;
  // A size as a number; what the file has for it is the target's to say.
  Traced size_of(const Traced& tensor, int64_t dim) const;
  [[noreturn]] void refuse(const Node& node, const std::string& why) const;
  std::string_view format() const { return target_.format(); }

 private:
  using Scope = std::unordered_map<const GraphValue*, Traced>;
  struct Named {
    std::string name;
    bool is_stale = false;
    bool is_fixed = false;  // it is the same for every input, though an operator of the file gives it
  };
  std::vector<Traced> run_block(const Block& block);
  void visit(const Node& node);
  void call(const Node& node);
  std::vector<Tensor> written_tensors(const Node& node, const ops::Op& op, const std::vector<Traced>& arguments) const;
  // The memory of this tensor was written, with what comes from inputs or not: others that view it have other values
  // now than the file says.
  void mark_written(const Tensor& a, bool is_open);
  // Where memory is shared: throws for a parameter of the model or a constant of the file.
  void check_written(const Node& node, const Tensor& tensor) const;
  // Before a call writes these tensors; `is_open`: with what is not the same for every input.
  void check_writes(const Node& node, const std::vector<Tensor>& written, const std::vector<Traced>& arguments,
                    bool is_open);
  // Names what a call gives, before the target names it in the file; `is_fixed`: the same for every input.
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
  // Where memory is shared: the name of a tensor of the model, "" of another one.
  std::string weight_name(const Tensor& tensor);
  static ops::Value to_container(const ops::Value& sample, std::vector<ops::Value> items);
  // Of each probe the results of a call.
  using ProbeResults = std::vector<std::optional<std::vector<ops::Value>>>;
  ProbeResults run_probes(const ops::Op& op, const std::vector<Traced>& arguments);
  void set_probes(std::vector<Traced>& results, const ProbeResults& found) const;
  void set_probes(Traced& result, const std::vector<std::optional<ops::Value>>& found) const;
  void set_fixed_probes(Traced& value) const;
  // A branch goes this way: probes that go the other, which raises an error, are dropped.
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
  // One that the program sets: what it was in the model, and what it is now.
  struct SetAttribute {
    const ops::Object* owner;
    std::string name;
    Traced old, now;
  };
  SetAttribute* find_set(const ops::Object* owner, const std::string& name);
  std::vector<SetAttribute> set_attributes_;
  std::unordered_map<const TensorImpl*, Attribute> attributes_;  // the model's tensors
  std::unordered_map<const StorageImpl*, std::vector<const TensorImpl*>> attribute_storages_;
  std::set<const StorageImpl*> written_storages_;  // with what comes from inputs
  std::vector<Tensor> kept_;                       // addresses stay theirs
  // Within a way of a branch that goes into the file: memory that was there before.
  std::optional<std::set<const StorageImpl*>> outer_storages_;
  std::set<const StorageImpl*> joined_storages_;  // of results of branches that may be other tensors' memory as well
  std::vector<bool> dead_probes_;
  std::set<const StorageImpl*> lost_storages_;  // of probes' tensors that were written
  std::vector<ops::Value> kept_probes_;
};

}  // namespace tensord::jit::tracing
