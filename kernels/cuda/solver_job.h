#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor/cuda/address.h"

namespace tensord::kernels {

// By cuSOLVER, with LAPACK's meaning; the last one by cuBLAS.
enum class SolverTask : int8_t {
  kCholesky,      // a (n × n) in place
  kLu,            // a (m × n) in place; numbers: min(m, n) row numbers, int64
  kHouseholder,   // a (m × n) in place, numbers: min(m, n) factors
  kReflectors,    // of the k reflections in a, numbers: the first n columns of their product, in place of a (m × n)
  kReflect,       // of those in a, numbers: their product with b (m × n), in place
  kExchangeRows,  // of a, with n columns, in place; numbers: k row numbers, int32
  kSymmetric,     // values in numbers, vectors in place of a (n × n)
  kSingular,      // of a (m × n, m >= n), which is overwritten: values in numbers, vectors in b and c (adjoint)
  kTriangular,    // a x = b, or x a = b, in place of b (m × n)
};

// One matrix, column by column; or many small ones by one call.
struct SolverJob {
  SolverTask task{};
  int8_t dtype = 0;       // float32, float64, complex64 or complex128; values are real
  bool is_upper = false;  // the triangle of a that is read
  bool has_vectors = false, is_full = false;
  bool is_left = true;     // a, or the reflections, are on the left
  bool is_turned = false;  // the conjugate transpose of the reflections, or the transpose of a triangle
  bool is_unit = false;    // a triangle with ones on its diagonal
  bool is_undone = false;  // exchanges from the last one on
  int64_t m = 0, n = 0, k = 0;
  cuda::DeviceAddress a, b, c, numbers;
  int64_t a_leading = 1, b_leading = 1, c_leading = 1;  // distances of columns
  cuda::DeviceAddress info;                             // int32: LAPACK's code; not of the tasks without one

  // Of kCholesky, kLu (m = n) and kTriangular: a call takes so many matrices, a and b are lists of their addresses, and
  // info and numbers, here int32, are those of all of them. 0: one matrix.
  int64_t count = 0;

  // What LibraryTable::plan_solver found.
  size_t workspace_bytes = 0, host_workspace_bytes = 0;
  cuda::DeviceAddress workspace;  // aligned to 256; the caller's
};

}  // namespace tensord::kernels
