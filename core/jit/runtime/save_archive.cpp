#include "core/jit/runtime/save_archive.h"

#include <deque>

#include "core/jit/exporters/torchscript/export.h"
#include "core/jit/passes/passes.h"

namespace tensord::jit {

void save_archive(const std::string& path, const FunctionLibrary& functions, const ops::ObjectPtr& object,
                  const std::function<bool(const Tensor&)>& requires_grad) {
  PassContext context;
  context.functions = &functions;
  std::deque<ops::Schema> schemas;
  std::vector<std::unique_ptr<Graph>> graphs;
  std::vector<TorchScriptMethod> methods;
  for (const std::string& name : functions.method_names(object->type->name())) {
    const Function* function = functions.find_method(object->type->name(), name);
    schemas.push_back(function->schema);
    schemas.back().arguments.erase(schemas.back().arguments.begin());
    graphs.push_back(function->graph->clone());
    inline_calls(*graphs.back(), context);
    methods.push_back({name, &schemas.back(), graphs.back().get()});
  }
  export_torchscript(path, object, methods, requires_grad);
}

}  // namespace tensord::jit
