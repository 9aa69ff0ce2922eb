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

// The script files of one archive, compiled on demand: a file is parsed when something in it
// is first asked for, a function compiled when it is. Thread-safe; what is given out stays
// valid and unchanged as long as the unit lives, functions until forget_functions().
class CompilationUnit final : public FunctionLibrary {
 public:
  explicit CompilationUnit(std::vector<SourceFile> sources);
  ~CompilationUnit() override;

  // The archive's format version, 1 and up: operators that meant other things in older ones get their old meaning. The
  // newest without it. REQUIRES: nothing was compiled yet.
  void set_version(int64_t version);
  // What errors name instead of a place in the scripts. REQUIRES: nothing was compiled yet.
  void set_origins(SourceOrigins origins);
  // The values of CONSTANTS.cN in the scripts. REQUIRES: nothing was compiled yet.
  void set_constants(std::vector<ops::Value> constants);

  // Methods are found here too, as "__torch__.M.forward".
  const Function* find_function(const std::string& qualified_name) const override;
  const Function* find_method(const std::string& class_name, const std::string& method) const override;
  ops::TypePtr find_type(const std::string& qualified_name) const override;
  // In the order of the class body.
  std::vector<std::string> method_names(const std::string& class_name) const override;

  // Members of an enum in order; each is an EnumObject. Empty when it is none.
  std::vector<ops::Value> enum_members(const std::string& qualified_name) const;
  // Everything that is declared; parses every file.
  std::vector<std::string> function_names() const;
  std::vector<std::string> class_names() const;

  // Gives back the memory of functions and syntax trees; they are made again when they are asked for. REQUIRES: nobody
  // holds a function.
  void forget_functions();

 private:
  const Function* compile(const std::string& name) const TENSORD_REQUIRES(mutex_);

  mutable Mutex mutex_;
  const std::unique_ptr<Declarations> declarations_ TENSORD_PT_GUARDED_BY(mutex_);
  mutable std::map<std::string, std::unique_ptr<const Function>> functions_ TENSORD_GUARDED_BY(mutex_);
  mutable std::set<std::string> compiling_ TENSORD_GUARDED_BY(mutex_);
};

}  // namespace tensord::jit
