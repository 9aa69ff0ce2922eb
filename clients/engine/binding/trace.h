#pragma once

#include "core/jit/formats/trace/trace.h"

namespace tensord::python {

// Called where Python reads what a trace cannot follow: sizes and the like, which the trace then checks, and elements.
void note_read(const Tensor& tensor, jit::TensorRead what);
inline void note_sizes_read(const Tensor& tensor) { note_read(tensor, jit::TensorRead::kSizes); }
void note_values_read();
// Throws Error{kUnimplemented} while a function is traced.
void refuse_in_trace(const char* what);

}  // namespace tensord::python
