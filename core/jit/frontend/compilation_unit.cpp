#include "core/jit/frontend/compilation_unit.h"

#include "core/jit/frontend/declarations.h"
#include "core/jit/frontend/function_emitter.h"

namespace tensord::jit {

CompilationUnit::CompilationUnit(std::vector<SourceFile> sources)
    : declarations_(std::make_unique<Declarations>(std::move(sources))) {}

CompilationUnit::~CompilationUnit() = default;

void CompilationUnit::set_version(int64_t version) {
  const MutexLock lock(mutex_);
  declarations_->set_version(version);
}

void CompilationUnit::set_origins(SourceOrigins origins) {
  const MutexLock lock(mutex_);
  declarations_->set_origins(std::move(origins));
}

void CompilationUnit::set_constants(std::vector<ops::Value> constants) {
  const MutexLock lock(mutex_);
  declarations_->set_constants(std::move(constants));
}

const Function* CompilationUnit::compile(const std::string& name) const {
  if (const auto it = functions_.find(name); it != functions_.end()) return it->second.get();
  const Signature* signature = declarations_->find_signature(name);
  if (!signature) return nullptr;
  const Symbol& symbol = signature->symbol;
  // Compiling one function compiles another only if that one has no return annotation.
  constexpr size_t kMaxNesting = 50;
  if (compiling_.size() >= kMaxNesting || !compiling_.insert(name).second) {
    symbol.tree->source.fail(symbol.function->begin,
                             "the return type of '" + name + "' depends on itself; annotate it");
  }
  struct Compiling {
    std::set<std::string>& names;
    const std::string& name;
    ~Compiling() { names.erase(name); }
  } compiling{compiling_, name};
  const auto return_type_of = [this](const std::string& callee)
                                  TENSORD_REQUIRES(mutex_) { return compile(callee)->schema.returns.front().type; };
  std::unique_ptr<Function> function = FunctionEmitter(*declarations_, *signature, return_type_of).emit();
  return (functions_[name] = std::move(function)).get();
}

const Function* CompilationUnit::find_function(const std::string& qualified_name) const {
  const MutexLock lock(mutex_);
  return compile(qualified_name);
}

const Function* CompilationUnit::find_method(const std::string& class_name, const std::string& method) const {
  const MutexLock lock(mutex_);
  return compile(class_name + "." + method);
}

ops::TypePtr CompilationUnit::find_type(const std::string& qualified_name) const {
  const MutexLock lock(mutex_);
  return declarations_->find_type(qualified_name);
}

std::vector<std::string> CompilationUnit::method_names(const std::string& class_name) const {
  const MutexLock lock(mutex_);
  const Symbol symbol = declarations_->find(class_name);
  std::vector<std::string> out;
  if (symbol.kind != Symbol::Kind::kClass) return out;
  for (const FunctionDef* method : symbol.class_def->methods) out.emplace_back(method->name);
  return out;
}

std::vector<ops::Value> CompilationUnit::enum_members(const std::string& qualified_name) const {
  const MutexLock lock(mutex_);
  return declarations_->enum_members(qualified_name);
}

std::vector<std::string> CompilationUnit::function_names() const {
  const MutexLock lock(mutex_);
  return declarations_->function_names();
}

std::vector<std::string> CompilationUnit::class_names() const {
  const MutexLock lock(mutex_);
  return declarations_->class_names();
}

void CompilationUnit::forget_functions() {
  const MutexLock lock(mutex_);
  functions_.clear();
  declarations_->forget_trees();
}

}  // namespace tensord::jit
