#include "kernels/onednn/onednn.h"

namespace tensord::kernels {

const dnnl::engine& onednn_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& onednn_stream() {
  thread_local dnnl::stream stream(onednn_engine());
  return stream;
}

bool onednn_multiplies_bf16() {
  static const bool has_bf16 =
      (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_bf16) == dnnl_cpu_isa_avx512_core_bf16;
  return has_bf16;
}

MemoryDesc onednn_desc(std::span<const int64_t> sizes, std::span<const int64_t> strides, OnednnType type) {
  // A tensor may have any stride in dimensions of size 1, but oneDNN compares descriptors and refuses some of them.
  Dims plain(strides);
  if (is_contiguous(sizes, strides))
    plain = contiguous_strides(sizes);
  else if (sizes.size() >= 4 && sizes.size() <= 5 && is_channels_last(sizes, strides))
    plain = channels_last_strides(sizes);
  return MemoryDesc(onednn_dims(sizes), type, onednn_dims(plain));
}

MemoryDesc onednn_any(std::span<const int64_t> sizes, OnednnType type) {
  return MemoryDesc(onednn_dims(sizes), type, dnnl::memory::format_tag::any);
}

dnnl::memory onednn_allocate(const MemoryDesc& desc, Tensor& holder) {
  holder = Tensor::empty(Dims{static_cast<int64_t>(desc.get_size())}, DType::kUInt8);
  return onednn_memory(desc, holder.raw_data());
}

dnnl::memory onednn_reordered(const dnnl::memory& source, const MemoryDesc& desc, Tensor& holder) {
  if (source.get_desc() == desc) return source;
  dnnl::memory target = onednn_allocate(desc, holder);
  dnnl::memory from = source;
  dnnl::reorder(from, target).execute(onednn_stream(), from, target);
  return target;
}

}  // namespace tensord::kernels
