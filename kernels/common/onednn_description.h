#pragma once

#include "kernels/common/onednn.h"

// Where the interfaces of oneDNN 2 (Debian 12's library) and 3 (Debian 13's, and scripts/onednn) are not the same.
namespace tensord::kernels {

#if DNNL_VERSION_MAJOR >= 3
inline dnnl::memory::dims onednn_sizes(const MemoryDesc& desc) { return desc.get_dims(); }
inline bool onednn_is_any(const MemoryDesc& desc) { return desc.get_format_kind() == dnnl::memory::format_kind::any; }

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
