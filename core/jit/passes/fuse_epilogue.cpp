// fuse_epilogue: fuses activations and residual sums after a packed operator into its post-ops, in functional and
// in-place form. This is safe because the packed result is new memory with one use. A residual sum moves the operator
// down to the sum, past no node that writes its input.
#include "core/jit/passes/packing.h"
#include "core/jit/passes/passes.h"

namespace tensord::jit {

bool fuse_epilogue(Graph& graph, PassContext& context) {
  return join_epilogues(graph, context,
                        [](ops::Epilogue::Kind kind) { return kind != ops::Epilogue::Kind::kChannelAffine; });
}

}  // namespace tensord::jit
