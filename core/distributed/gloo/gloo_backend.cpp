#include "core/distributed/gloo/gloo_backend.h"

#include <csignal>

#include "core/base/error.h"
#include "core/base/shared_object.h"
#include "core/distributed/gloo/module_interface.h"

namespace tensord::distributed {
namespace {

const GlooModule* open_module(std::string& problem) {
  void* const found =
      find_in_object(places_of_object("libtensord_gloo.so", "TENSORD_GLOO"), kGlooModuleFunction, false, problem);
  if (!found) return nullptr;
  const GlooModule* const module = reinterpret_cast<GlooModuleFunction>(found)();
  if (std::string(module->interface()) == kGlooInterface) return module;
  problem += ", of another build";
  return nullptr;
}

// Opened once and never closed: Gloo's threads run in it.
struct OpenedModule {
  std::string problem;
  const GlooModule* const module = open_module(problem);
};
const OpenedModule& opened() {
  static const OpenedModule once;
  return once;
}

void ignore_broken_pipes() {
  struct sigaction action {};
  if (sigaction(SIGPIPE, nullptr, &action) == 0 && action.sa_handler == SIG_DFL) signal(SIGPIPE, SIG_IGN);
}

}  // namespace

bool has_gloo() { return opened().module != nullptr; }

BackendFactory gloo_backends(const GlooOptions& options) {
  const GlooModule* const module = opened().module;
  if (!module) fail(ErrorCode::kUnimplemented, "gloo: this build has no backend of Gloo: ", opened().problem);
  ignore_broken_pipes();
  return [module, device = module->make_device(options.address)](std::shared_ptr<Store> store, const std::string&,
                                                                 int rank, int size, Milliseconds timeout) {
    return module->make_engine(device, std::move(store), rank, size, timeout);
  };
}

}  // namespace tensord::distributed
