#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/onednn/onednn.h"

// Where the interfaces of oneDNN 2 (Debian 12's library) and 3 (Debian 13's, and scripts/onednn) are not the same.
namespace tensord::kernels {

#if DNNL_VERSION_MAJOR >= 3
inline dnnl::memory::dims onednn_sizes(const MemoryDesc& desc) { return desc.get_dims(); }
inline bool onednn_is_any(const MemoryDesc& desc) { return desc.get_format_kind() == dnnl::memory::format_kind::any; }
// The same text for equal descriptors.
inline std::string onednn_key(MemoryDesc desc) {  // a copy, since get_blob() is not const
  const std::vector<uint8_t> blob = desc.get_blob();
  return {blob.begin(), blob.end()};
}

// Describes a primitive; `arguments` are from the propagation kind, or the algorithm, to the padding. Throws
// dnnl::error.
template <class Primitive, class... Arguments>
typename Primitive::primitive_desc onednn_describe(const dnnl::primitive_attr& attr, const Arguments&... arguments) {
  return {onednn_engine(), arguments..., attr};
}
// The same of a gradient, whose forward pass `forward` describes.
template <class Primitive, class... Arguments>
typename Primitive::primitive_desc onednn_describe_backward(const dnnl::primitive_attr& attr,
                                                            const dnnl::convolution_forward::primitive_desc& forward,
                                                            const Arguments&... arguments) {
  return {onednn_engine(), arguments..., forward, attr};
}

inline void onednn_append(dnnl::post_ops& post, dnnl::algorithm algorithm, float alpha, float beta) {
  post.append_eltwise(algorithm, alpha, beta);
}
#else
inline dnnl::memory::dims onednn_sizes(const MemoryDesc& desc) { return desc.dims(); }
inline bool onednn_is_any(const MemoryDesc& desc) { return desc.data.format_kind == dnnl_format_kind_any; }
inline std::string onednn_key(const MemoryDesc& desc) {
  const dnnl_memory_desc_t& d = desc.data;
  std::string key;
  const auto add = [&key](const auto& field) { key.append(reinterpret_cast<const char*>(&field), sizeof(field)); };
  add(d.ndims), add(d.data_type), add(d.format_kind), add(d.offset0);
  for (int i = 0; i < d.ndims; ++i) add(d.dims[i]), add(d.padded_dims[i]), add(d.padded_offsets[i]);
  if (d.format_kind == dnnl_blocked) {
    const dnnl_blocking_desc_t& blocking = d.format_desc.blocking;
    for (int i = 0; i < d.ndims; ++i) add(blocking.strides[i]);
    for (int i = 0; i < blocking.inner_nblks; ++i) add(blocking.inner_blks[i]), add(blocking.inner_idxs[i]);
  } else {
    add(d.format_desc);
  }
  add(d.extra.flags), add(d.extra.compensation_mask), add(d.extra.scale_adjust);
  return key;
}

template <class Primitive, class... Arguments>
typename Primitive::primitive_desc onednn_describe(const dnnl::primitive_attr& attr, const Arguments&... arguments) {
  return {typename Primitive::desc(arguments...), attr, onednn_engine()};
}
template <class Primitive, class... Arguments>
typename Primitive::primitive_desc onednn_describe_backward(const dnnl::primitive_attr& attr,
                                                            const dnnl::convolution_forward::primitive_desc& forward,
                                                            const Arguments&... arguments) {
  return {typename Primitive::desc(arguments...), attr, onednn_engine(), forward};
}

inline void onednn_append(dnnl::post_ops& post, dnnl::algorithm algorithm, float alpha, float beta) {
  post.append_eltwise(1.0f, algorithm, alpha, beta);
}
#endif

}  // namespace tensord::kernels
