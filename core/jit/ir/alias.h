#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/jit/ir/graph.h"

namespace tensord::jit {

// Finds which values of a graph may share memory and which nodes write it. The result is a snapshot of the graph. The
// analysis reads the alias annotations of schemas and merges sets of values that may share memory (Steensgaard's
// analysis), so it is nearly linear. It errs on the side of "may".
//
// A *location* stands for a set of values. A list, tuple or object is one location; its contents are others. Memory
// that outlives a run or comes from outside (inputs, attributes, constants) is *external*. All unknown memory is one
// location, the wildcard.
//
// Values made after the snapshot count as wildcards. A snapshot stays valid when nodes are destroyed or a value is
// replaced by one that it was computed from.
class AliasAnalysis {
 public:
  // With `self`, attribute chains from graph input 0 are resolved in the object, and attributes are distinguished by
  // their current storage. Without it they are wildcards.
  explicit AliasAnalysis(const Graph& graph, ops::ObjectPtr self = nullptr);
  ~AliasAnalysis();
  AliasAnalysis(const AliasAnalysis&) = delete;
  AliasAnalysis& operator=(const AliasAnalysis&) = delete;

  // Whether a value of the type is writable memory or contains such memory.
  static bool is_mutable_type(const ops::Type& type);

  // Whether the memory of the two values may overlap; their contents are not compared.
  bool may_alias(const GraphValue* a, const GraphValue* b) const;
  // Whether `node` (with its blocks) may write `value` or anything reachable from it.
  bool writes_to(const Node* node, const GraphValue* value) const;
  // Whether any node may write `value` or anything reachable from it.
  bool has_writers(const GraphValue* value) const;
  // Whether a write to `value` or its contents may run after `from` and before `to`. `from` precedes `to` in the text.
  // If a loop contains only `to`, its whole body counts.
  bool may_be_written_between(const GraphValue* value, const Node* from, const Node* to) const;
  // Does the same up to the end of the run (`from` may be in a loop).
  bool may_be_written_after(const GraphValue* value, const Node* from) const;
  // Whether `value` may be, or be contained in, a graph output or external memory.
  bool escapes(const GraphValue* value) const;
  // Whether the node (with its blocks) has an effect outside the run or depends on more than its inputs: it prints,
  // raises, draws random numbers, calls unknown code, or writes external memory. Writes to memory of this run alone do
  // not count.
  bool has_side_effects(const Node* node) const;

  // A location is a small integer; kNoMemory stands for values without memory.
  static constexpr int kNoMemory = -1;
  int location(const GraphValue* value) const;
  int wildcard() const { return find(kWildcard); }
  bool is_external(int location) const;
  // Whether the graph's outputs are or contain this location.
  bool is_given_back(int location) const;
  // The value's location and all locations reachable from it.
  std::vector<int> reachable(const GraphValue* value) const;
  std::vector<int> reachable(int location) const;
  // The nodes that write a location, in the order of the graph at the snapshot.
  const std::vector<const Node*>& writers(int location) const;
  // The locations that the node itself writes, without its blocks.
  std::vector<int> written_by(const Node* node) const;

  // With `self`: the location of an external tensor, list, dict or object; -1 if the graph does not use it.
  int location_of_memory(const ops::Value& value) const;
  // The object or other value that a graph value is known to be; null if unknown.
  const ops::Value* known_value(const GraphValue* value) const;

 private:
  // Calls visit(cell) for reachable cells until it returns true; returns whether it did.
  template <class Visit>
  bool any_reachable(int location, Visit&& visit) const;

  static constexpr int kWildcard = 0;
  static constexpr int kNotSeen = -2;
  struct Cell {
    int parent;
    int content = kNoMemory;  // the content of a list, dict or future
    bool is_external = false;
    bool is_collapsed = false;  // content and fields are the cell itself
    bool escapes = false;
    std::map<std::string, int> fields;  // fields of objects and tuples
    std::vector<int> members;           // contents that are not merged: see is_transient
    std::vector<const Node*> writers;
    std::vector<int> write_order;  // the positions of the writers, which may be destroyed by now
  };
  struct Span {
    int begin = -1, end = -1;  // positions of the node and of the last node in its blocks
  };
  const std::vector<int>& write_order(int cell) const { return cells_[static_cast<size_t>(cell)].write_order; }
  // Null for nodes that were made after the snapshot.
  const Span* span_of(const Node* node) const;

  int find(int cell) const;
  int new_cell(bool is_external = false);
  void unify(int a, int b);
  void unify_values(const GraphValue* a, const GraphValue* b);
  void collapse(int cell);
  int content(int cell);
  int field(int cell, const std::string& name);
  int cell_of(const GraphValue* value);
  int& value_slot(const GraphValue* value) { return values_[static_cast<size_t>(value->id())]; }
  int heap_cell(const ops::Value& value, int depth = 0);
  const void* heap_key(const ops::Value& value) const;

  void collect(const Block& block);
  void analyze(const Block& block);
  void analyze_node(const Node& node);
  void analyze_op(const Node& node);
  void analyze_marked_return(const Node& node, size_t i);
  void analyze_container(const Node& node);
  void analyze_loop(const Node& node);
  void analyze_get_attribute(const Node& node);
  void analyze_set_attribute(const Node& node);
  void analyze_unknown_call(const Node& node);
  int wildcard_group(const Node& node);
  bool is_transient(const Node& list) const;
  void finish(const Graph& graph);
  void record_writes(const Block& block);

  mutable std::vector<Cell> cells_;
  mutable std::vector<int> visit_marks_;  // by cell: the last walk that visited it
  mutable int walk_ = 0;
  std::vector<int> values_;                    // by value id: the cell, kNoMemory or kNotSeen
  std::unordered_map<const void*, int> heap_;  // external storages, lists and objects
  std::unordered_map<const GraphValue*, ops::Value> known_;
  std::unordered_set<std::string> assigned_names_;  // names that some SetAttr assigns
  std::vector<int> local_objects_;                  // objects of the run whose attributes are used
  std::vector<Span> order_;                         // by node id
  int next_order_ = 0;
  bool heap_is_wild_ = false;  // unknown code may reach every object
  ops::ObjectPtr self_;
};

}  // namespace tensord::jit
