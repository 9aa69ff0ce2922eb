#include "core/distributed/engines.h"

#include "core/base/error.h"
#include "core/distributed/gloo/gloo_engine.h"
#include "core/distributed/local/local_engine.h"
#include "core/distributed/nccl/nccl_engine.h"

namespace tensord::distributed {

EngineFactory engines_by_name(const std::string& name, const std::string& master) {
  if (name == "local") return local_engines();
  if (name == "gloo") return gloo_engines({.address = own_address(master)});
  if (name == "nccl") return nccl_engines();
  fail(ErrorCode::kInvalidArgument, "backend: '", name, "' is none of gloo, nccl, local");
}

}  // namespace tensord::distributed
