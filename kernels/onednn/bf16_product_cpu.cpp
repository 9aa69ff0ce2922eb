#include "kernels/onednn/bf16_product.h"

#include "kernels/onednn/description.h"
#include "kernels/onednn/onednn.h"

namespace tensord::kernels {
namespace {

// Below, describing the primitive takes longer than the product.
constexpr int64_t kMinMultiplies = 128 * 1024;

// Whether oneDNN reads a matrix with these strides in place.
bool has_dense_lines(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
  return (column_stride == 1 && row_stride >= columns) || (row_stride == 1 && column_stride >= rows);
}

MemoryDesc bf16_matrix(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
  return MemoryDesc({rows, columns}, dnnl::memory::data_type::bf16, dnnl::memory::dims{row_stride, column_stride});
}

}  // namespace

bool try_bf16_product(const Bf16Product& p) {
  if (!onednn_multiplies_bf16() || p.rows * p.columns * p.depth < kMinMultiplies) return false;
  if (!has_dense_lines(p.rows, p.depth, p.a_row_stride, p.a_column_stride) ||
      !has_dense_lines(p.depth, p.columns, p.b_row_stride, p.b_column_stride) || p.c_row_stride < p.columns) {
    return false;
  }
  onednn_call("matmul", [&] {
    dnnl::primitive_attr attributes;
    if (p.adds) {
      dnnl::post_ops post;
      post.append_sum();
      attributes.set_post_ops(post);
    }
    const MemoryDesc a = bf16_matrix(p.rows, p.depth, p.a_row_stride, p.a_column_stride),
                     b = bf16_matrix(p.depth, p.columns, p.b_row_stride, p.b_column_stride),
                     c = bf16_matrix(p.rows, p.columns, p.c_row_stride, 1);
    // oneDNN keeps the code of the shapes that were used last.
    const dnnl::matmul product(onednn_describe<dnnl::matmul>(attributes, a, b, c));
    product.execute(onednn_stream(), {{DNNL_ARG_SRC, onednn_memory(a, p.a)},
                                      {DNNL_ARG_WEIGHTS, onednn_memory(b, p.b)},
                                      {DNNL_ARG_DST, onednn_memory(c, p.c)}});
  });
  return true;
}

}  // namespace tensord::kernels
