#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>

#include "core/base/parallel.h"
#include "core/base/thread_budget_scope.h"
#include "core/tensor/complex.h"
#include "kernels/linalg/linalg.h"

// LAPACK by its Fortran symbols: matrices column by column, numbers by pointer, 32-bit sizes, the lengths of texts
// last. Whichever library is linked runs on the calling thread alone: batches are cut by our own threads
// (for_each_matrix).
#define TENSORD_LAPACK_ROUTINES(T, P)                                                                                  \
  void P##geqrf_(const int*, const int*, T*, const int*, T*, T*, const int*, int*);                                    \
  void P##orgqr_(const int*, const int*, const int*, T*, const int*, const T*, T*, const int*, int*);                  \
  void P##ormqr_(const char*, const char*, const int*, const int*, const int*, const T*, const int*, const T*, T*,     \
                 const int*, T*, const int*, int*, size_t, size_t);                                                    \
  void P##gesdd_(const char*, const int*, const int*, T*, const int*, T*, T*, const int*, T*, const int*, T*,          \
                 const int*, int*, int*, size_t);                                                                      \
  void P##syevd_(const char*, const char*, const int*, T*, const int*, T*, T*, const int*, int*, const int*, int*,     \
                 size_t, size_t);                                                                                      \
  void P##sytrf_(const char*, const int*, T*, const int*, int*, T*, const int*, int*, size_t);                         \
  void P##sytrs_(const char*, const int*, const int*, const T*, const int*, const int*, T*, const int*, int*, size_t); \
  void P##gels_(const char*, const int*, const int*, const int*, T*, const int*, T*, const int*, T*, const int*, int*, \
                size_t);                                                                                               \
  void P##gelsy_(const int*, const int*, const int*, T*, const int*, T*, const int*, int*, const T*, int*, T*,         \
                 const int*, int*);                                                                                    \
  void P##gelsd_(const int*, const int*, const int*, T*, const int*, T*, const int*, T*, const T*, int*, T*,           \
                 const int*, int*, int*);                                                                              \
  void P##gelss_(const int*, const int*, const int*, T*, const int*, T*, const int*, T*, const T*, int*, T*,           \
                 const int*, int*);
extern "C" {
TENSORD_LAPACK_ROUTINES(float, s)
TENSORD_LAPACK_ROUTINES(double, d)
}
#undef TENSORD_LAPACK_ROUTINES

namespace tensord::kernels::linalg {

template <class T>
struct Lapack;
#define TENSORD_LAPACK_TYPE(T, P)            \
  template <>                                \
  struct Lapack<T> {                         \
    static constexpr auto geqrf = P##geqrf_; \
    static constexpr auto orgqr = P##orgqr_; \
    static constexpr auto ormqr = P##ormqr_; \
    static constexpr auto gesdd = P##gesdd_; \
    static constexpr auto syevd = P##syevd_; \
    static constexpr auto sytrf = P##sytrf_; \
    static constexpr auto sytrs = P##sytrs_; \
    static constexpr auto gels = P##gels_;   \
    static constexpr auto gelsy = P##gelsy_; \
    static constexpr auto gelsd = P##gelsd_; \
    static constexpr auto gelss = P##gelss_; \
  };
TENSORD_LAPACK_TYPE(float, s)
TENSORD_LAPACK_TYPE(double, d)
#undef TENSORD_LAPACK_TYPE

template <class Fn>
decltype(auto) dispatch_real(DType dtype, std::string_view op, Fn&& fn) {
  if (dtype == DType::kFloat32) return fn.template operator()<float>();
  if (dtype == DType::kFloat64) return fn.template operator()<double>();
  fail_dtype(op, dtype);
}

// Throws unless LAPACK can count a matrix of these sizes, its work memory included: both up to 2²⁴, the smaller one up
// to 16000, since work memory grows with its square.
void check_lapack_sizes(std::string_view op, int64_t rows, int64_t columns);

// A leading dimension: LAPACK wants 1 for a matrix without rows.
inline int leading(int64_t rows) { return static_cast<int>(rows > 1 ? rows : 1); }

// What a routine answers when it is asked for the size of its work memory, which comes as a number of its type and may
// have been rounded down.
template <class T>
int work_size(T answer) {
  const double exact = std::nextafter(static_cast<double>(answer), std::numeric_limits<double>::infinity());
  const double up = std::ceil(exact * (1 + std::numeric_limits<T>::epsilon()));
  check(up < static_cast<double>(std::numeric_limits<int>::max()), "LAPACK's work memory would be too large");
  return up < 1 ? 1 : static_cast<int>(up);
}

// Work memory, counted as that of tensors is.
template <class T>
class Scratch {
 public:
  // `beyond` is room behind it that OpenBLAS's loops may read: for complex numbers they load four columns at a time.
  explicit Scratch(int64_t count, int64_t beyond = 0)
      : tensor_(Tensor::empty(Dims{std::max<int64_t>(count, 1) + beyond}, dtype_of<T>)) {}
  T* get() const { return tensor_.template data<T>(); }

 private:
  Tensor tensor_;
};

template <class T>
inline constexpr bool is_complex_type = std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>;

template <class T>
T* matrix_data(const Tensor& x, const Dims& batch, int64_t index) {
  return static_cast<T*>(matrix_at(x, batch, index).data);
}

// The bytes that may be read behind a matrix with this many rows.
template <class T>
int64_t read_beyond(int64_t rows) {
  return is_complex_type<T> ? 4 * rows : 0;
}

// Matrix `index` of `x`, column by column, where LAPACK may work on it. Complex ones are copied for as long as this
// lives, and back again, since OpenBLAS's loops for them load beyond the last column, where a tensor's memory may end.
template <class T>
class LapackMatrix {
 public:
  enum class Use { kWritten, kRead };
  LapackMatrix(const Tensor& x, const Dims& batch, int64_t index, Use use = Use::kWritten)
      : place_(matrix_data<T>(x, batch, index)), count_(rows_of(x) * columns_of(x)), use_(use) {
    if constexpr (is_complex_type<T>) {
      copy_ = std::make_unique<Scratch<T>>(count_, read_beyond<T>(rows_of(x)));
      std::copy_n(place_, count_, copy_->get());
    }
  }
  ~LapackMatrix() {
    if (copy_ && use_ == Use::kWritten) std::copy_n(copy_->get(), count_, place_);
  }
  LapackMatrix(const LapackMatrix&) = delete;
  LapackMatrix& operator=(const LapackMatrix&) = delete;
  T* get() const { return copy_ ? copy_->get() : place_; }

 private:
  T* place_;
  int64_t count_;
  Use use_;
  std::unique_ptr<Scratch<T>> copy_;
};

// Whether LAPACK may see these elements: infinities corrupt the heap in some routines, and NaN may never converge.
bool is_finite(const Tensor& x, const Dims& batch, int64_t index);

// Calls fn(begin, end) for ranges of matrices on our own threads, in each of which LAPACK has one.
template <class Fn>
void for_each_range(int64_t count, double cost_ns, Fn&& fn) {
  parallel_for_cost(count, cost_ns, [&](int64_t begin, int64_t end) {
    const ThreadBudgetScope alone(1);
    fn(begin, end);
  });
}

// The approximate cost of n³ steps.
inline double cost_of(int64_t rows, int64_t columns) {
  const double small = static_cast<double>(rows < columns ? rows : columns);
  return 500 + 4 * static_cast<double>(rows) * static_cast<double>(columns) * small;
}

}  // namespace tensord::kernels::linalg
