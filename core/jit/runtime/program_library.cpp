#include "core/jit/runtime/program_library.h"

#include "core/base/error.h"

namespace tensord::jit {

ProgramLibrary::ProgramLibrary(const FunctionLibrary& functions, Prepare prepare)
    : functions_(functions), prepare_(std::move(prepare)) {}

const CallTarget& ProgramLibrary::find_function(const std::string& qualified_name) {
  MutexLock lock(mutex_);
  const CallTarget*& target = by_function_[qualified_name];
  if (!target) {
    const Function* function = functions_.find_function(qualified_name);
    if (!function) fail(ErrorCode::kNotFound, "no function ", qualified_name);
    target = &add_target(nullptr, compile(*function));
  }
  return *target;
}

const CallTarget& ProgramLibrary::find_method(const ops::Type& receiver, const std::string& method) {
  MutexLock lock(mutex_);
  const CallTarget*& target = by_method_[{&receiver, method}];
  if (!target) {
    const Function* function = functions_.find_method(receiver.name(), method);
    if (!function) fail(ErrorCode::kNotFound, receiver.name(), " has no method ", method);
    target = &add_target(&receiver, compile(*function));
  }
  return *target;
}

const Program& ProgramLibrary::program_of(const Function& function) {
  MutexLock lock(mutex_);
  return compile(function);
}

bool ProgramLibrary::is_empty() {
  MutexLock lock(mutex_);
  return programs_.empty();
}

const Program& ProgramLibrary::compile(const Function& function) {
  std::unique_ptr<Program>& program = programs_[&function];
  if (!program) program = Program::compile(*prepare_(function), function.name);
  return *program;
}

const CallTarget& ProgramLibrary::add_target(const ops::Type* receiver, const Program& program) {
  return targets_.emplace_back(CallTarget{receiver, &program});
}

}  // namespace tensord::jit
