#pragma once

#include "core/ops/packed.h"

namespace tensord::kernels {

// aten::linear with its weight and bias bound; null when these cannot be prepared (not f32 on the CPU).
IntrusivePtr<ops::PackedOp> pack_linear(const ops::Op& op, std::span<const ops::Value> arguments,
                                        ops::Precision precision);

// aten::matmul with a matrix bound on its right: a linear without bias, of the transpose.
IntrusivePtr<ops::PackedOp> pack_matmul(const ops::Op& op, std::span<const ops::Value> arguments,
                                        ops::Precision precision);

// aten::mm, the same for an input that is a matrix.
IntrusivePtr<ops::PackedOp> pack_mm(const ops::Op& op, std::span<const ops::Value> arguments, ops::Precision precision);

// aten::addmm with all but its second argument bound, and a first one that is the same for each row.
IntrusivePtr<ops::PackedOp> pack_addmm(const ops::Op& op, std::span<const ops::Value> arguments,
                                       ops::Precision precision);

}  // namespace tensord::kernels
