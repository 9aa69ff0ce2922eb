#include "core/base/shared_object.h"

#include <dlfcn.h>

#include <cstdlib>

#include "core/base/error.h"

namespace tensord {

std::filesystem::path own_folder() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &info) && info.dli_fname && info.dli_fname[0] == '/') {
    // A rank of a training job is started as /proc/self/exe.
    const auto real = std::filesystem::canonical(info.dli_fname, error);
    if (!error) return real.parent_path();
  }
  return program.parent_path();
}

std::vector<std::string> places_of_object(const char* object, const char* variable) {
  if (const char* const given = std::getenv(variable); given && *given) return {given};
  const auto folder = own_folder();
  std::vector<std::string> places;
  for (const char* const below : {".", "../lib/tensord", "../libexec/tensord", "tensord", "lib/tensord"}) {
    places.push_back((folder / below / object).lexically_normal().string());
  }
  return places;
}

void* find_in_object(const std::vector<std::string>& places, const char* function, bool is_global,
                     std::string& problem) {
  for (const std::string& place : places) {
    problem += concat(problem.empty() ? "" : "; ", place, ": ");
    if (!std::filesystem::exists(place)) {
      problem += "not there";
      continue;
    }
    void* const object = dlopen(place.c_str(), RTLD_NOW | (is_global ? RTLD_GLOBAL : RTLD_LOCAL));
    if (!object) {
      problem += dlerror();
      continue;
    }
    if (void* const found = dlsym(object, function)) return found;
    problem += "it is another library";
    dlclose(object);
  }
  return nullptr;
}

}  // namespace tensord
