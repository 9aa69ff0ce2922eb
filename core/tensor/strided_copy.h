#pragma once

#include "core/tensor/loops.h"
#include "core/tensor/tensor.h"

namespace tensord {

// Copies every element of `source` to `target`, converted to its dtype. Both are CPU tensors of the same sizes with any
// strides; memory that is dense in both is copied as blocks. Runs on the caller's thread team.
void strided_copy(const Tensor& target, const Tensor& source);

// Converts rows of float16 or bfloat16 to float32 and back; null: strided_copy uses a scalar loop. Kernels register
// versions for the processor's instruction set before main.
struct HalfRows {
  void (*widen_half)(const Half* from, float* to, int64_t count) = nullptr;
  void (*widen_bfloat16)(const BFloat16* from, float* to, int64_t count) = nullptr;
  void (*narrow_half)(const float* from, Half* to, int64_t count) = nullptr;
  void (*narrow_bfloat16)(const float* from, BFloat16* to, int64_t count) = nullptr;
};
void set_half_rows(const HalfRows& rows);

// A copy within one dtype, prepared for known sizes and strides; the tensors may be meta. Immutable; runs without
// allocation on memory that is passed to each run.
class StridedCopy {
 public:
  StridedCopy(const Tensor& target, const Tensor& source);
  void run(void* target, const void* source) const;

 private:
  template <class T>
  void run_as(T* target, const T* source) const;
  template <class T>
  void transpose(T* target, const T* source) const;

  LoopNest<2> nest_;
  size_t width_;   // in bytes, of an element
  size_t across_;  // the dimension in which the source is dense; the last one if it is not a transpose
};

}  // namespace tensord
