#include "core/distributed/backends.h"

#include "core/base/error.h"
#include "core/distributed/gloo/gloo_backend.h"
#include "core/distributed/local/local_backend.h"
#include "core/distributed/nccl/nccl_backend.h"

namespace tensord::distributed {

BackendFactory backends_by_name(const std::string& name, const std::string& master) {
  if (name == "local") return local_backends();
  if (name == "gloo") return gloo_backends({.address = own_address(master)});
  if (name == "nccl") return nccl_backends();
  fail(ErrorCode::kInvalidArgument, "backend: '", name, "' is none of gloo, nccl, local");
}

}  // namespace tensord::distributed
