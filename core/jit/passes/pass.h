#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/test_hooks.h"
#include "core/jit/ir/function.h"
#include "core/jit/ir/graph.h"

namespace tensord::jit {

// Options of the pipeline, from the flags --jit-disable, --jit-limit and `tensord inspect`.
struct PassOptions {
  std::set<std::string> disabled = {};         // pass names
  std::map<std::string, int64_t> limits = {};  // pass → number of changes it may make, to bisect a wrong rewrite
  // Called after every pass that changed the graph, and once before the first with pass "".
  std::function<void(const std::string& pass, const Graph& graph)> observer = {};
  // Called after every pass; breaks graphs, or throws. For tests.
  TestHook<void(const std::string& pass, Graph& graph)> alter = {};
};

// Counts failures of passes. Each is a bug in tensord. Thread-safe.
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

// The surroundings of a graph that passes may query.
struct PassContext {
  const FunctionLibrary* functions = nullptr;
  // The module object that graph input 0 stands for; null for plain functions.
  ops::ObjectPtr self;
  // Attribute paths below `self` ("layer1.0.bn1.running_mean") that some method may change. All others are constant
  // while the module is loaded. See freeze.
  const std::set<std::string>* changing_attributes = nullptr;
  // Autograd records the runs of the graph, so the identity of tensors matters: equal tensors are not merged, and no
  // tensor is replaced by an equal one or shared by several runs.
  bool is_for_training = false;
  ops::Precision precision = ops::Precision::kF32;  // the precision of packed weights
  // The module's store of packed weights. If null, the context makes its own.
  std::shared_ptr<ops::PackStore> packs;
  PassFailures* failures = nullptr;  // null: failures are only logged
  // The number of changes that the running pass may still make.
  int64_t remaining_changes = INT64_MAX;
  bool take_change() { return remaining_changes > 0 && remaining_changes-- > 0; }
};

// One rewrite of a graph, each in a file of its own. Returns whether it changed the graph. Null for a step of the
// planner, which does not work on a graph.
struct Pass {
  const char* name;
  bool (*run)(Graph& graph, PassContext& context);
  bool compiles = false;  // it compiles called code, so its errors may come from the model
};

}  // namespace tensord::jit
