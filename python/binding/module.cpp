#include "python/binding/python.h"

// The extension module tensord.engine._engine. The package's __init__.py lists the public names.
NB_MODULE(_engine, module) {
  using namespace tensord::python;
  nb::set_leak_warnings(false);  // modules that live until exit hold objects of it
  bind_errors(module);
  bind_constants(module);
  bind_tensor(module);
  bind_functions(module);
  bind_memory(module);
  bind_storage(module);
  bind_literals(module);
  bind_dlpack(module);
  bind_cuda(module);
  bind_autograd(module);
  bind_function_class(module);
  bind_optim(module);
  bind_distributed(module);
  bind_models(module);
  bind_trace(module);
  bind_planned_step(module);
  bind_runtime(module);
}
