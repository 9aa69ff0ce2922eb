#pragma once

#include <dnnl.hpp>

#include "core/tensor/tensor.h"

// What kernels share to call oneDNN. Primitives run on the calling thread's budget (OpenMP).
namespace tensord::kernels {

// The CPU engine; one per process, thread-safe.
const dnnl::engine& onednn_engine();
// The calling thread's stream; primitives are done when execute returns.
dnnl::stream& onednn_stream();

using MemoryDesc = dnnl::memory::desc;

using OnednnType = dnnl::memory::data_type;
// Whether the processor multiplies bfloat16, so that oneDNN is fast for it.
bool onednn_multiplies_bf16();

// The tensor's memory as it lies: sizes and strides.
MemoryDesc onednn_desc(std::span<const int64_t> sizes, std::span<const int64_t> strides,
                       OnednnType type = OnednnType::f32);
// The same sizes in whatever order the primitive likes best.
MemoryDesc onednn_any(std::span<const int64_t> sizes, OnednnType type = OnednnType::f32);
inline dnnl::memory onednn_memory(const MemoryDesc& desc, const void* data) {
  return dnnl::memory(desc, onednn_engine(), const_cast<void*>(data));
}
inline dnnl::memory::dims onednn_dims(std::span<const int64_t> sizes) { return {sizes.begin(), sizes.end()}; }

// `tensor`'s elements in the order of `desc`, reordered into pooled memory when they lie otherwise;
// `holder` keeps that memory.
dnnl::memory onednn_reordered(const dnnl::memory& source, const MemoryDesc& desc, Tensor& holder);
// Pooled memory for `desc`.
dnnl::memory onednn_allocate(const MemoryDesc& desc, Tensor& holder);

// Calls fn and turns oneDNN's exception into an Error that starts with `op`.
template <class Fn>
decltype(auto) onednn_call(const char* op, Fn&& fn) {
  try {
    return fn();
  } catch (const dnnl::error& e) {
    fail(e.status == dnnl_out_of_memory ? ErrorCode::kResourceExhausted : ErrorCode::kInternal, op, ": ", e.what());
  }
}

}  // namespace tensord::kernels
