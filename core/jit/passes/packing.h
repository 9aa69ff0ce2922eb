#pragma once

#include <optional>

#include "core/jit/ir/walk.h"
#include "core/jit/passes/pass.h"
#include "core/ops/attributes/packed.h"

namespace tensord::jit {

// Helpers of the passes over packed operators.

// The packed operator that a node runs; null for other nodes.
const ops::PackedOp* packed_of(const Node& node);
// Sets another packed operator with the same number of tensors.
void set_packed(Node& node, const IntrusivePtr<ops::PackedOp>& packed);
// The value of a constant or of a list of constants; empty if it is known only at run time.
std::optional<ops::Value> known_value(const GraphValue* value);
// The constant half-precision tensor that `value` converts to float32 on the CPU in the same memory order; undefined if
// `value` is not such a conversion.
Tensor halves_of(const GraphValue* value);
// The functional form of a node's operator: the operator itself, or the base of an in-place form; null for out= forms
// and for nodes that are not operators.
const ops::Op* functional_op(const Node& node);
// Whether the node reads only sizes and other metadata of its tensors.
bool reads_only_shape(const Node& node);
// Fuses packed operators with the following nodes whose epilogue kind `accepts` allows.
bool join_epilogues(Graph& graph, PassContext& context, bool (*accepts)(ops::Epilogue::Kind));

}  // namespace tensord::jit
