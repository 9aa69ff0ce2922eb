// fuse_epilogue: activations and residual sums after a packed operator become its post-ops, in
// functional and in-place form. Safe because the packed result is fresh memory with one use; a
// residual sum moves the operator down to the sum, past nothing that writes its input.
#include "core/jit/passes/packing.h"
#include "core/jit/passes/passes.h"

namespace tensord::jit {

bool fuse_epilogue(Graph& graph, PassContext& context) {
  return join_epilogues(graph, context,
                        [](ops::Epilogue::Kind kind) { return kind != ops::Epilogue::Kind::kChannelAffine; });
}

}  // namespace tensord::jit
