#pragma once

#include <string>
#include <vector>

#include "core/ops/op.h"

namespace tensord::ops {

// Lets an operator call a method of a script's class: sorting calls "__lt__". The interpreter sets the caller for its
// thread while such an operator runs.
class MethodCaller {
 public:
  virtual ~MethodCaller() = default;
  // `arguments` do not include the object. Throws the method's error; kNotFound if the class does not have it.
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

// Throws Error{kUnimplemented} if no interpreter is running.
Value call_method(const ObjectPtr& object, const std::string& method, std::vector<Value> arguments);

// Whether the operator may call methods of objects in its arguments. Such a call can do anything that a script can, so
// the graph has a prim::CallFunction for it instead of the operator.
bool calls_methods(const Op& op);

// Marks an operator as such.
class CallsMethodsBuilder {
 public:
  explicit CallsMethodsBuilder(const char* op);
};

#define CALLS_METHODS(OP_NAME) \
  static const ::tensord::ops::CallsMethodsBuilder TENSORD_CONCAT(calls_registration_, __COUNTER__)(OP_NAME)

}  // namespace tensord::ops
