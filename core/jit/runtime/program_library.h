#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/base/mutex.h"
#include "core/jit/ir/function.h"
#include "core/jit/runtime/program.h"

namespace tensord::jit {

// Programs of functions and methods that remain calls at run time: recursion, interfaces, function values. Each is
// compiled on its first call. Thread-safe.
class ProgramLibrary {
 public:
  // Makes the graph to run from a function's graph: applies passes, or copies it.
  using Prepare = std::function<std::unique_ptr<Graph>(const Function&)>;

  // `functions` must outlive the library.
  ProgramLibrary(const FunctionLibrary& functions, Prepare prepare);

  // Both throw Error{kNotFound} that names what is missing. The result lives as long as the library.
  const CallTarget& find_function(const std::string& qualified_name);
  const CallTarget& find_method(const ops::Type& receiver, const std::string& method);
  const Program& program_of(const Function& function);
  // Whether no program was compiled, so that no function needs to be kept for calls.
  bool is_empty();

 private:
  const Program& compile(const Function& function) TENSORD_REQUIRES(mutex_);
  const CallTarget& add_target(const ops::Type* receiver, const Program& program) TENSORD_REQUIRES(mutex_);

  const FunctionLibrary& functions_;
  Prepare prepare_;
  Mutex mutex_;
  std::unordered_map<const Function*, std::unique_ptr<Program>> programs_ TENSORD_GUARDED_BY(mutex_);
  std::deque<CallTarget> targets_ TENSORD_GUARDED_BY(mutex_);
  std::map<std::string, const CallTarget*> by_function_ TENSORD_GUARDED_BY(mutex_);
  std::map<std::pair<const ops::Type*, std::string>, const CallTarget*> by_method_ TENSORD_GUARDED_BY(mutex_);
};

}  // namespace tensord::jit
