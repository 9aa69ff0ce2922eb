#pragma once

#include <optional>

#include "core/jit/ir/walk.h"
#include "core/jit/passes/pass.h"
#include "core/ops/attributes/packed.h"

namespace tensord::jit {

// What the passes over packed operators share.

// The packed operator that a node runs; null for other nodes.
const ops::PackedOp* packed_of(const Node& node);
// Makes the node run another packed operator of the same number of tensors.
void set_packed(Node& node, const IntrusivePtr<ops::PackedOp>& packed);
// The value of a constant, or of a list of constants; empty when it is not known before a run.
std::optional<ops::Value> known_value(const GraphValue* value);
// The constant halves that `value` is in float32, on the processor and in the same order; an undefined tensor where it
// is no such conversion.
Tensor halves_of(const GraphValue* value);
// The functional form of a node's operator: itself, or the base of an in-place form; null for
// out= forms and nodes that are no operator.
const ops::Op* functional_op(const Node& node);
// Whether the node asks its tensors for sizes and the like alone.
bool reads_only_shape(const Node& node);
// Joins nodes that follow packed ones and whose epilogue is of a kind that `accepts`.
bool join_epilogues(Graph& graph, PassContext& context, bool (*accepts)(ops::Epilogue::Kind));

}  // namespace tensord::jit
