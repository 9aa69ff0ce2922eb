#pragma once

#include "core/jit/formats/trace/trace.h"
#include "core/jit/runtime/step/step_recording.h"

namespace tensord::python {

// Called where Python reads what a trace, or the recording of a step, cannot follow: sizes and the like, which the trace
// then checks, and elements.
void record_read(const Tensor& tensor, jit::TensorRead what);
inline void record_sizes_read(const Tensor& tensor) { record_read(tensor, jit::TensorRead::kSizes); }
void record_values_read();
// Of the step that this thread records; null: none.
jit::StepRecording* step_recording();
// Throws Error{kUnimplemented} while a function is traced. A step that is recorded stays interpreted.
void refuse_in_trace(const char* what);

}  // namespace tensord::python
