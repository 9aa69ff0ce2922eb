#pragma once

#include <memory>
#include <string>

#include "core/distributed/group/backend.h"

// What the backend's object libtensord_gloo.so gives. It alone is linked to Gloo, and opened when first asked for, so
// that a daemon that only serves needs no Gloo. It is built with the program: kGlooInterface tells whether both are of
// one build.
namespace tensord::distributed {

inline constexpr char kGlooInterface[] = "2 " __VERSION__;

class GlooModule {
 public:
  virtual ~GlooModule() = default;
  virtual const char* interface() const = 0;
  // A socket and a thread that all groups of this process share. `address` in digits: Gloo must not ask for names.
  virtual std::shared_ptr<void> make_device(const std::string& address) const = 0;
  virtual std::unique_ptr<Backend> make_engine(std::shared_ptr<void> device, std::shared_ptr<Store> store, int rank,
                                               int size, Milliseconds timeout) const = 0;
};

// The object's only function: `extern "C" const GlooModule* tensord_gloo_module()`.
using GlooModuleFunction = const GlooModule* (*)();
inline constexpr char kGlooModuleFunction[] = "tensord_gloo_module";

}  // namespace tensord::distributed
