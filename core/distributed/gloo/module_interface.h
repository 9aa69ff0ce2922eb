#pragma once

#include <memory>
#include <string>

#include "core/distributed/group/backend.h"

// The interface of the shared library libtensord_gloo.so. Only this library links Gloo, and it is opened on first use,
// so that a daemon that only serves does not need Gloo. It is built with the program; kGlooInterface checks that both
// come from the same build.
namespace tensord::distributed {

inline constexpr char kGlooInterface[] = "2 " __VERSION__;

class GlooModule {
 public:
  virtual ~GlooModule() = default;
  virtual const char* interface() const = 0;
  // A socket and a thread, shared by all groups of this process. `address` is numeric, because Gloo must not resolve
  // names.
  virtual std::shared_ptr<void> make_device(const std::string& address) const = 0;
  virtual std::unique_ptr<Backend> make_engine(std::shared_ptr<void> device, std::shared_ptr<Store> store, int rank,
                                               int size, Milliseconds timeout) const = 0;
};

// The library's only exported function: `extern "C" const GlooModule* tensord_gloo_module()`.
using GlooModuleFunction = const GlooModule* (*)();
inline constexpr char kGlooModuleFunction[] = "tensord_gloo_module";

}  // namespace tensord::distributed
