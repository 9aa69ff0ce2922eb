#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/jit/ir/graph.h"

namespace tensord::jit {

// Which values of a graph may share memory, and who writes it; a snapshot of the graph it
// was made from. Built from the alias marks of schemas by merging sets of values that may be
// the same memory (Steensgaard's analysis), so it is nearly linear. Where it is not sure it
// says "may".
//
// A *location* stands for a set of values. A list, tuple or object is one location and what
// it holds are others. Memory that lives longer than a run, or came from outside (inputs,
// attributes, constants), is *external*. All unknown memory is one location, the wildcard.
//
// Values that were made after the snapshot count as wildcards. Destroying nodes, or replacing
// a value by one it was made from, keeps a snapshot usable.
class AliasAnalysis {
 public:
  // With `self`, attribute chains from graph input 0 are followed in the object itself, so
  // that attributes are told apart by the storage they have now; else they are wildcards.
  explicit AliasAnalysis(const Graph& graph, ops::ObjectPtr self = nullptr);
  ~AliasAnalysis();
  AliasAnalysis(const AliasAnalysis&) = delete;
  AliasAnalysis& operator=(const AliasAnalysis&) = delete;

  // Whether values of the type are, or hold, memory that can be written.
  static bool is_mutable_type(const ops::Type& type);

  // Whether the memory of the two themselves may overlap; what they hold is not compared.
  bool may_alias(const GraphValue* a, const GraphValue* b) const;
  // Whether `node` (with its blocks) may write `value` or anything reachable from it.
  bool writes_to(const Node* node, const GraphValue* value) const;
  // Whether any node may write `value` or anything reachable from it.
  bool has_writers(const GraphValue* value) const;
  // Whether a write to `value`, or what it holds, may run after `from` and before `to`, where
  // `from` comes first in the text. Iterations of a loop around `to` alone are taken in.
  bool may_be_written_between(const GraphValue* value, const Node* from, const Node* to) const;
  // The same up to the end of the run (`from` may be in a loop).
  bool may_be_written_after(const GraphValue* value, const Node* from) const;
  // Whether `value` may be, or be held by, what the graph gives back or external memory.
  bool escapes(const GraphValue* value) const;
  // Whether the node (with its blocks) does something that is seen outside of the run or
  // is not a function of its inputs: prints, raises, draws random numbers, calls unknown
  // code, writes external memory. Writes to memory of this run alone are not counted.
  bool has_side_effects(const Node* node) const;

  // Locations: small ints, or that of values without memory.
  static constexpr int kNoMemory = -1;
  int location(const GraphValue* value) const;
  int wildcard() const { return find(kWildcard); }
  bool is_external(int location) const;
  // Whether the graph's outputs are, or hold, this location.
  bool is_given_back(int location) const;
  // The value's location and all that can be reached from it.
  std::vector<int> reachable(const GraphValue* value) const;
  std::vector<int> reachable(int location) const;
  // Nodes that write a location, in the order of the graph when the snapshot was made.
  const std::vector<const Node*>& writers(int location) const;
  // Locations that the node itself writes, without its blocks.
  std::vector<int> written_by(const Node* node) const;

  // With `self`: where a tensor, list, dict or object of the outside is; -1 when the graph
  // does not touch it.
  int location_of_memory(const ops::Value& value) const;
  // The object or other value that a graph value is known to be, or null.
  const ops::Value* known_value(const GraphValue* value) const;

 private:
  // Calls visit(cell) for what can be reached until it says true; gives back whether it did.
  template <class Visit>
  bool any_reachable(int location, Visit&& visit) const;

  static constexpr int kWildcard = 0;
  static constexpr int kNotSeen = -2;
  struct Cell {
    int parent;
    int content = kNoMemory;  // what a list, dict or future holds
    bool is_external = false;
    bool is_collapsed = false;  // content and fields are this cell itself
    bool escapes = false;
    std::map<std::string, int> fields;  // of objects and tuples
    std::vector<int> members;           // held, but not merged: see is_transient
    std::vector<const Node*> writers;
    std::vector<int> write_order;  // of each writer, which may be destroyed by now
  };
  struct Span {
    int begin = -1, end = -1;  // order of the node, and of the last one in its blocks
  };
  const std::vector<int>& write_order(int cell) const { return cells_[static_cast<size_t>(cell)].write_order; }
  // Null for nodes that are newer than the snapshot.
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
  mutable std::vector<int> visit_marks_;  // by cell: the last walk that saw it
  mutable int walk_ = 0;
  std::vector<int> values_;                    // by id: the cell, kNoMemory or kNotSeen
  std::unordered_map<const void*, int> heap_;  // storages, lists, objects of the outside
  std::unordered_map<const GraphValue*, ops::Value> known_;
  std::unordered_set<std::string> assigned_names_;  // by some SetAttr
  std::vector<int> local_objects_;                  // whose attributes are used
  std::vector<Span> order_;                         // by id of the node
  int next_order_ = 0;
  bool heap_is_wild_ = false;  // unknown code may reach every object
  ops::ObjectPtr self_;
};

}  // namespace tensord::jit
