// PyTorch's backward operators of norms: those of this folder, with None for what output_mask leaves out.
#include "core/ops/attributes/may_lack_results.h"
#include "core/ops/op.h"
#include "core/ops/run.h"

namespace tensord::kernels {
namespace {

// The mask is the last argument.
auto masked(const char* name) {
  return [name](std::span<const ops::Value> arguments) -> ops::Returns {
    std::vector<ops::Value> results =
        ops::run(ops::get_op(name), std::vector<ops::Value>(arguments.begin(), arguments.end()));
    const auto& mask = arguments.back().to_list()->items;
    for (size_t i = 0; i < results.size(); ++i) {
      if (!mask[i].to_bool()) results[i] = ops::Value();
    }
    return {std::move(results)};
  };
}

OP("aten::native_layer_norm_backward")
    .set<ops::MayLackResults>()
    .impl(masked("tensord::native_layer_norm_backward"))
    .composite();
OP("aten::native_group_norm_backward")
    .set<ops::MayLackResults>()
    .impl(masked("tensord::native_group_norm_backward"))
    .composite();
OP("aten::native_batch_norm_backward")
    .set<ops::MayLackResults>()
    .impl(masked("tensord::native_batch_norm_backward"))
    .composite();

}  // namespace
}  // namespace tensord::kernels
