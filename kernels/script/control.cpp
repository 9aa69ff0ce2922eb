#include <cstdio>
#include <set>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/ops/attributes/exported.h"
#include "core/ops/named_error.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/script/value_text.h"
#include "ops/factory.h"

// Operators with effects outside of the script: raise, warn, print, modes.
namespace tensord::kernels {
namespace {

using ops::Value;

[[noreturn]] void raise(const std::string& message, const std::optional<std::string>& class_name) {
  constexpr std::string_view kBuiltin = "builtins.";
  std::string text = message;
  if (text.empty() && class_name) text = class_name->substr(class_name->starts_with(kBuiltin) ? kBuiltin.size() : 0);
  if (text.empty()) text = "the script raised an error";
  throw Error(ErrorCode::kScriptRaised, text);
}

// Stands for a call of an operator that does not exist, in a branch that may never run.
[[noreturn]] void refuse(const std::string& message) { throw ops::NamedError(ErrorCode::kUnimplemented, message); }

// Raises an error where a request's data is not what the model was exported for. `actual` ends the message.
[[noreturn]] void refuse_input(const std::string& message, std::optional<int64_t> actual) {
  throw ops::NamedError(ErrorCode::kInvalidArgument, concat(message, actual ? std::to_string(*actual) : std::string()));
}

constexpr size_t kMaxWarnings = 1000;

// Each text is logged once; a warning in a model's forward would otherwise be logged on every request.
class SeenWarnings {
 public:
  bool add(const std::string& message) {
    const MutexLock lock(mutex_);
    return seen_.size() < kMaxWarnings && seen_.insert(message).second;
  }

 private:
  Mutex mutex_;
  std::set<std::string> seen_ TENSORD_GUARDED_BY(mutex_);
};

void warn(const std::string& message, int64_t) {
  static SeenWarnings seen;
  if (!seen.add(message)) return;
  log(LogLevel::kWarning, "script warning", {{"text", message}});
}

void print(std::span<const Value> values) {
  std::string line;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) line += ' ';
    line += value_text(values[i]);
  }
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stdout);
}

Value unwrap_optional(const Value& value) {
  check(!value.is_none(), "Unwrapping null optional");
  return value;
}

OP("prim::RaiseException").impl(raise).impure();
OP("prim::InvalidInput").impl(refuse_input).impure();
OP("prim::MissingOperator").impl(refuse).impure();
OP("aten::warn").impl(warn).impure();
OP("prim::Print").impl(print).impure();
OP("aten::is_autocast_enabled").impl([]() { return false; });
OP("aten::is_scripting").impl([]() { return true; });
OP("aten::_unwrap_optional").impl(unwrap_optional);
OP("prim::unchecked_unwrap_optional").impl([](const Value& value) { return value; });
// Around the body of a "with": the interpreter calls the context's __exit__ when the body fails.
OP("prim::Enter").impl([](const Value&) {}).impure();
OP("prim::Exit").impl([](const Value&) {}).impure();
// Profiler ranges, which have no effect here. The handle is what record_function's class keeps.
OP("profiler::_record_function_enter")
    .impl([](const std::string&, const Value&) { return ops::zeros(Dims{1}); })
    .impure();
OP("profiler::_record_function_exit").impl([](const Tensor&) {}).impure();
// Since PyTorch 1.13.
#define RECORD "__torch__.torch.classes.profiler._RecordFunction"
struct RecordFunction final : ops::OpaqueObject {
  RecordFunction(std::string name, std::optional<std::string> arguments)
      : name(std::move(name)), arguments(std::move(arguments)) {}
  std::string class_name() const override { return RECORD; }
  const std::string name;
  const std::optional<std::string> arguments;
};
OP("profiler::_record_function_enter_new")
    .impl([](const std::string& name, std::optional<std::string> arguments) {
      return Value(IntrusivePtr<ops::OpaqueObject>(make_intrusive<RecordFunction>(name, std::move(arguments))));
    })
    .impure();
OP("profiler::_record_function_exit._RecordFunction").impl([](const Value&) {}).impure();
OP("profiler::_call_end_callbacks_on_jit_fut").impl([](const Tensor&, const Value& future) { return future; }).impure();
OP("profiler::_call_end_callbacks_on_jit_fut._RecordFunction")
    .impl([](const Value&, const Value& future) { return future; })
    .impure();
#undef RECORD
// Nanoseconds from an arbitrary origin, as in PyTorch.
OP("prim::TimePoint").impl([]() { return Clock::system().now_ns(); }).impure();

OP("prim::EnumName").impl([](const Value& value) { return value.to_enum()->name; });
OP("prim::EnumValue.int").impl([](const Value& value) { return value.to_enum()->value; });
OP("prim::EnumValue.float").impl([](const Value& value) { return value.to_enum()->value; });
OP("prim::EnumValue.str").impl([](const Value& value) { return value.to_enum()->value; });
OP("aten::eq.enum").impl([](const Value& a, const Value& b) { return a.equals(b); }).set<ops::ComparesNumbers>();
OP("aten::ne.enum").impl([](const Value& a, const Value& b) { return !a.equals(b); }).set<ops::ComparesNumbers>();

}  // namespace

}  // namespace tensord::kernels
