// fold_batch_norm: a channelwise scale and shift after a packed operator (batch norm with known
// statistics, in eval mode) goes into its weights and bias. Other epilogues are fuse_epilogue's.
#include "core/jit/passes/packing.h"
#include "core/jit/passes/passes.h"

namespace tensord::jit {

bool fold_batch_norm(Graph& graph, PassContext& context) {
  return join_epilogues(graph, context,
                        [](ops::Epilogue::Kind kind) { return kind == ops::Epilogue::Kind::kChannelAffine; });
}

}  // namespace tensord::jit
