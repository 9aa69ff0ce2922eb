#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/jit/frontend/source_text.h"
#include "core/jit/ir/function.h"

namespace tensord::jit {

class Declarations;

// The script files of one archive, compiled on demand: the first access to a name in a file parses the file, the first
// request for a function compiles it. Thread-safe. Returned pointers stay valid and their targets unchanged for the
// lifetime of the unit; functions until forget_functions().
class CompilationUnit final : public FunctionLibrary {
 public:
  explicit CompilationUnit(std::vector<SourceFile> sources);
  ~CompilationUnit() override;

  // Sets the archive's format version (1 or later), which selects the old meaning of operators that changed. Without it
  // the newest version applies. REQUIRES: nothing is compiled yet.
  void set_version(int64_t version);
  // Sets the author's places that errors report instead of places in the scripts. REQUIRES: nothing is compiled yet.
  void set_origins(SourceOrigins origins);
  // Sets the values of CONSTANTS.cN. REQUIRES: nothing is compiled yet.
  void set_constants(std::vector<ops::Value> constants);

  // Also finds methods, as "__torch__.M.forward".
  const Function* find_function(const std::string& qualified_name) const override;
  const Function* find_method(const std::string& class_name, const std::string& method) const override;
  ops::TypePtr find_type(const std::string& qualified_name) const override;
  // In the order of the class body.
  std::vector<std::string> method_names(const std::string& class_name) const override;

  // The members of an enum in order; each is an EnumObject. Empty if the name is not an enum.
  std::vector<ops::Value> enum_members(const std::string& qualified_name) const;
  // Lists all declarations, which parses every file.
  std::vector<std::string> function_names() const;
  std::vector<std::string> class_names() const;

  // Releases the memory of functions and syntax trees; the next request makes them again. REQUIRES: no caller holds a
  // function.
  void forget_functions();

 private:
  const Function* compile(const std::string& name) const TENSORD_REQUIRES(mutex_);

  mutable Mutex mutex_;
  const std::unique_ptr<Declarations> declarations_ TENSORD_PT_GUARDED_BY(mutex_);
  mutable std::map<std::string, std::unique_ptr<const Function>> functions_ TENSORD_GUARDED_BY(mutex_);
  mutable std::set<std::string> compiling_ TENSORD_GUARDED_BY(mutex_);
};

}  // namespace tensord::jit
