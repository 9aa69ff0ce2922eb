// The operator that runs a fused group; see core/ops/fused.h.
#include "core/ops/fused.h"

namespace tensord::kernels {
namespace {

OP("tensord::fused(tensord.Fused group, Tensor[] inputs) -> Tensor[]")
    .direct([](const IntrusivePtr<ops::FusedCalls>& group, const std::vector<Tensor>& inputs) {
      return group->run(inputs);
    });

}  // namespace
}  // namespace tensord::kernels
