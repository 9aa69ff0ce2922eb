// fold_batch_norm: folds a per-channel scale and shift after a packed operator (batch norm with known statistics in
// eval mode) into its weights and bias. Other epilogues belong to fuse_epilogue.
#include "core/jit/passes/packing.h"
#include "core/jit/passes/passes.h"

namespace tensord::jit {

bool fold_batch_norm(Graph& graph, PassContext& context) {
  return join_epilogues(graph, context,
                        [](ops::Epilogue::Kind kind) { return kind == ops::Epilogue::Kind::kChannelAffine; });
}

}  // namespace tensord::jit
