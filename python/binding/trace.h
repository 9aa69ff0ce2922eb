#pragma once

#include "core/jit/exporters/function_trace.h"
#include "core/jit/runtime/step/step_recording.h"

namespace tensord::python {

// Called when Python reads something that a trace or the recording of a step cannot follow: sizes and other metadata,
// which the trace then guards, and elements.
void record_read(const Tensor& tensor, jit::TensorRead what);
inline void record_sizes_read(const Tensor& tensor) { record_read(tensor, jit::TensorRead::kSizes); }
void record_values_read();
// The recording of the step on this thread; null if none.
jit::StepRecording* step_recording();
// Throws Error{kUnimplemented} while a function is traced. A recorded step becomes an interpreted one.
void refuse_in_trace(const char* what);

}  // namespace tensord::python
