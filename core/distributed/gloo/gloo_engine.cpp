#include "core/distributed/gloo/gloo_engine.h"

#include <dlfcn.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "core/base/error.h"
#include "core/distributed/gloo/module_interface.h"

namespace tensord::distributed {
namespace {

constexpr const char* kObject = "libtensord_gloo.so";

// The folder of the program or library that this code is in.
std::filesystem::path own_folder() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &info) && info.dli_fname && info.dli_fname[0] == '/') {
    // A rank of a training job was started as /proc/self/exe.
    const auto real = std::filesystem::canonical(info.dli_fname, error);
    if (!error) return real.parent_path();
  }
  return program.parent_path();
}

std::vector<std::string> places() {
  if (const char* const given = std::getenv("TENSORD_GLOO"); given && *given) return {given};
  const auto folder = own_folder();
  return {(folder / kObject).string(), (folder / "../lib/tensord" / kObject).lexically_normal().string(),
          (folder / "tensord" / kObject).string()};
}

const GlooModule* open_module(std::string& problem) {
  for (const std::string& place : places()) {
    problem += concat(problem.empty() ? "" : "; ", place, ": ");
    if (!std::filesystem::exists(place)) {
      problem += "not there";
      continue;
    }
    void* const object = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!object) {
      problem += dlerror();
      continue;
    }
    const auto function = reinterpret_cast<GlooModuleFunction>(dlsym(object, kGlooModuleFunction));
    if (function && std::string(function()->interface()) == kGlooInterface) return function();
    problem += "of another build";
    dlclose(object);
  }
  return nullptr;
}

// Opened once, and never closed: Gloo's threads run in it.
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

EngineFactory gloo_engines(const GlooOptions& options) {
  const GlooModule* const module = opened().module;
  if (!module) fail(ErrorCode::kUnimplemented, "gloo: this build has no engine of Gloo: ", opened().problem);
  ignore_broken_pipes();
  return [module, device = module->make_device(options.address)](std::shared_ptr<Store> store, const std::string&,
                                                                 int rank, int size, Milliseconds timeout) {
    return module->make_engine(device, std::move(store), rank, size, timeout);
  };
}

}  // namespace tensord::distributed
