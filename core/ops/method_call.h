#pragma once

#include <string>
#include <vector>

#include "core/ops/op.h"

namespace tensord::ops {

// How an operator calls a method that a script's class has: sorting asks "__lt__". Who runs scripts sets
// the caller for its thread while such an operator runs.
class MethodCaller {
 public:
  virtual ~MethodCaller() = default;
  // `arguments` are without the object. Throws what the method throws; kNotFound when the class has none.
  virtual Value call_method(const ObjectPtr& object, const std::string& method, std::vector<Value> arguments) = 0;
};

class MethodCallerScope {
 public:
  explicit MethodCallerScope(MethodCaller& caller);
  ~MethodCallerScope();
  MethodCallerScope(const MethodCallerScope&) = delete;
  MethodCallerScope& operator=(const MethodCallerScope&) = delete;

 private:
  MethodCaller* outer_;
};

// Throws Error{kUnimplemented} where nobody runs scripts.
Value call_method(const ObjectPtr& object, const std::string& method, std::vector<Value> arguments);

// Whether the operator may call methods of objects in its arguments. Such a call can do whatever a script
// can, so the graph has a prim::CallFunction for it, not the operator itself.
bool calls_methods(const Op& op);

// Says so of an operator.
class CallsMethodsBuilder {
 public:
  explicit CallsMethodsBuilder(const char* op);
};

#define CALLS_METHODS(OP_NAME) \
  static const ::tensord::ops::CallsMethodsBuilder TENSORD_CONCAT(calls_registration_, __COUNTER__)(OP_NAME)

}  // namespace tensord::ops
