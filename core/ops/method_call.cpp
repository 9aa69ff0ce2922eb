#include "core/ops/method_call.h"

#include <set>
#include <utility>

namespace tensord::ops {
namespace {

thread_local MethodCaller* current_caller = nullptr;

// Filled before main.
std::set<std::string>& callers() {
  static std::set<std::string> names;
  return names;
}

}  // namespace

MethodCallerScope::MethodCallerScope(MethodCaller& caller) : outer_(std::exchange(current_caller, &caller)) {}
MethodCallerScope::~MethodCallerScope() { current_caller = outer_; }

Value call_method(const ObjectPtr& object, const std::string& method, std::vector<Value> arguments) {
  if (!current_caller) {
    fail(ErrorCode::kUnimplemented, object->type->name(), ".", method, " cannot be called outside of a script");
  }
  return current_caller->call_method(object, method, std::move(arguments));
}

bool calls_methods(const Op& op) { return callers().contains(op.schema.full_name()); }

CallsMethodsBuilder::CallsMethodsBuilder(const char* op) { callers().insert(op); }

}  // namespace tensord::ops
