#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/jit/ir/function.h"
#include "core/jit/ir/graph.h"

namespace tensord::jit {

// How the pipeline runs, from the flags --jit-disable, --jit-limit and `tensord inspect`.
struct PassOptions {
  std::set<std::string> disabled = {};         // pass names
  std::map<std::string, int64_t> limits = {};  // pass → changes it may make; bisects a bad rewrite
  // Called after every pass that changed the graph (and once before the first with pass "").
  std::function<void(const std::string& pass, const Graph& graph)> observer = {};
  // Called behind every pass; breaks graphs, or throws. For tests.
  std::function<void(const std::string& pass, Graph& graph)> alter = {};
};

// How often passes failed: a bug in tensord each time. Thread-safe.
class PassFailures {
 public:
  void add(const std::string& pass) {
    const MutexLock lock(mutex_);
    ++counts_[pass];
  }
  std::map<std::string, uint64_t> counts() const {
    const MutexLock lock(mutex_);
    return counts_;
  }

 private:
  mutable Mutex mutex_;
  std::map<std::string, uint64_t> counts_ TENSORD_GUARDED_BY(mutex_);
};

// What passes may ask about the world around a graph.
struct PassContext {
  const FunctionLibrary* functions = nullptr;
  // The module object that graph input 0 stands for; null for plain functions.
  ops::ObjectPtr self;
  // Attribute paths below `self` ("layer1.0.bn1.running_mean") that some method may change;
  // everything else is constant while the module is loaded. See freeze.
  const std::set<std::string>* changing_attributes = nullptr;
  // Runs of the graph are recorded by autograd, to which it matters which tensor is which: equal
  // tensors are not merged, none is replaced by another that holds the same or shared by several runs.
  bool is_for_training = false;
  ops::Precision precision = ops::Precision::kF32;  // weights are packed for it
  // Where packed weights are kept; the module's. One of its own when it is null.
  std::shared_ptr<ops::PackStore> packs;
  PassFailures* failures = nullptr;  // null: they are only logged
  // Changes still allowed to the running pass; it counts down and stops at 0.
  int64_t remaining_changes = INT64_MAX;
  bool take_change() { return remaining_changes > 0 && remaining_changes-- > 0; }
};

// One rewrite of a graph, in a file of its own. Returns whether it changed something. Null for a
// step of the planner, which works on no graph.
struct Pass {
  const char* name;
  bool (*run)(Graph& graph, PassContext& context);
  bool compiles = false;  // what it calls is compiled by it, so what it throws may be the model's fault
};

}  // namespace tensord::jit
