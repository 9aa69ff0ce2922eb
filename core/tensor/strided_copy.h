#pragma once

#include "core/tensor/loops.h"
#include "core/tensor/tensor.h"

namespace tensord {

// Copies every element of `source` to `target`, converting the dtype. Both are CPU
// tensors of the same sizes with any strides; memory that is dense in both is
// copied as blocks. Runs on the caller's thread team.
void strided_copy(const Tensor& target, const Tensor& source);

// Rows of halves to float32 and back, for copies between these types; null where a loop over them is to do. Kernels
// give theirs before main, which take what the processor has.
struct HalfRows {
  void (*widen_half)(const Half* from, float* to, int64_t count) = nullptr;
  void (*widen_bfloat16)(const BFloat16* from, float* to, int64_t count) = nullptr;
  void (*narrow_half)(const float* from, Half* to, int64_t count) = nullptr;
  void (*narrow_bfloat16)(const float* from, BFloat16* to, int64_t count) = nullptr;
};
void set_half_rows(const HalfRows& rows);

// A copy within one dtype, laid out for known sizes and strides; the tensors may be meta.
// Immutable; runs without allocation on memory given each time.
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
  size_t width_;   // bytes of an element
  size_t across_;  // the dimension in which the source is dense; the last one: no transposition
};

}  // namespace tensord
