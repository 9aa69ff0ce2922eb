// cuBLAS's functions for triangular systems on the emulated devices, over BLAS. They refuse what NVIDIA's documentation
// forbids.
#include <algorithm>
#include <complex>
#include <vector>

#include "kernels/cuda/libraries/cusolver_api.h"
#include "kernels/cuda/libraries/library.h"
#include "tests/cuda/emulated/libraries.h"

#define TWIN_BLAS(T, P)                                                                                         \
  void P##trsm_(const char*, const char*, const char*, const char*, const int*, const int*, const T*, const T*, \
                const int*, T*, const int*, size_t, size_t, size_t, size_t);                                    \
  void P##getrf_(const int*, const int*, T*, const int*, int*, int*);
extern "C" {
TWIN_BLAS(float, s)
TWIN_BLAS(double, d)
TWIN_BLAS(std::complex<float>, c)
TWIN_BLAS(std::complex<double>, z)
}

namespace tensord::cuda::cublas {

struct BlasContext {
  int device;
  StreamHandle stream = nullptr;
};

namespace {

using namespace cusolver;  // sides, triangles, operations
using cublas::Handle;
using emulated::require;

emulated::Objects& objects() {
  static auto* const all = new emulated::Objects;
  return *all;
}
template <class Fn>
cublas::Status checked(const Fn& fn) {
  return emulated::checked<cublas::Status>([&] {
    fn();
    return cublas::kSuccess;
  });
}

// A call's arguments.
struct System {
  int side, triangle, operation, diagonal, m, n;
  const void* alpha;
  const void* a;  // of many systems: the list of their addresses; b too
  int lda;
  void* b;
  int ldb;
  int count = 0;  // 0: one
};

size_t extent(int rows, int columns, int leading) {
  return static_cast<size_t>(columns - 1) * static_cast<size_t>(leading) + static_cast<size_t>(rows);
}

void check_handle(cublas::Handle handle) {
  objects().known(handle, cublas::kInvalidValue, "the handle");
  require(handle->device == current_device() && handle->stream &&
              emulated::device_of_stream(handle->stream) == handle->device,
          cublas::kInvalidValue, "a handle or a stream of another device");
}
void check_memory(cublas::Handle handle, const void* at, size_t count, size_t size, const char* what) {
  emulated::require_memory(handle->device, at, count, size, cublas::kInvalidValue, what);
}

template <class T, class Trsm>
void solve(cublas::Handle handle, const System& s, Trsm trsm) {
  check_handle(handle);
  const int rows = s.side == kLeft ? s.m : s.n;
  require(s.m >= 0 && s.n >= 0 && s.lda >= std::max(1, rows) && s.ldb >= std::max(1, s.m), cublas::kInvalidValue,
          "a leading dimension that is less than the rows");
  require(s.alpha, cublas::kInvalidValue, "no alpha");
  if (s.m == 0 || s.n == 0) return;
  if (s.count > 0) {
    check_memory(handle, s.a, static_cast<size_t>(s.count), sizeof(void*), "the list of A");
    check_memory(handle, s.b, static_cast<size_t>(s.count), sizeof(void*), "the list of B");
  } else {
    check_memory(handle, s.a, extent(rows, rows, s.lda), sizeof(T), "A");
    check_memory(handle, s.b, extent(s.m, s.n, s.ldb), sizeof(T), "B");
  }
  emulated::queue_lapack(handle->stream, [s, trsm, factor = *static_cast<const T*>(s.alpha)] {
    const char side = s.side == kLeft ? 'L' : 'R', triangle = s.triangle == kLower ? 'L' : 'U',
               operation = s.operation == kOperationN   ? 'N'
                           : s.operation == kOperationT ? 'T'
                                                        : 'C',
               diagonal = s.diagonal == kUnit ? 'U' : 'N';
    const auto solve_one = [&](const T* a, T* b) {
      trsm(&side, &triangle, &operation, &diagonal, &s.m, &s.n, &factor, a, &s.lda, b, &s.ldb, 1, 1, 1, 1);
    };
    if (s.count == 0) {
      return solve_one(static_cast<const T*>(emulated::inside(s.a)), static_cast<T*>(emulated::inside(s.b)));
    }
    const std::vector<T*> all_a = emulated::listed<T>(s.a, s.count), all_b = emulated::listed<T>(s.b, s.count);
    for (size_t i = 0; i < all_a.size(); ++i) solve_one(all_a[i], all_b[i]);
  });
}

template <class T, class Getrf>
void factorize(cublas::Handle handle, int32_t n, void* const* a, int32_t lda, int32_t* pivots, int32_t* info,
               int32_t count, Getrf getrf) {
  check_handle(handle);
  require(n >= 0 && count >= 0 && lda >= std::max(1, n), cublas::kInvalidValue,
          "a leading dimension that is less than the rows");
  if (n == 0 || count == 0) return;
  const auto matrices = static_cast<size_t>(count);
  check_memory(handle, a, matrices, sizeof(void*), "the list of A");
  check_memory(handle, pivots, matrices * static_cast<size_t>(n), sizeof(int32_t), "the pivots");
  check_memory(handle, info, matrices, sizeof(int32_t), "info");
  emulated::queue_lapack(handle->stream, [=] {
    auto* rows = static_cast<int*>(emulated::inside(pivots));
    auto* code = static_cast<int*>(emulated::inside(info));
    for (T* const matrix : emulated::listed<T>(a, count)) {
      getrf(&n, &n, matrix, &lda, rows, code++);
      rows += n;
    }
  });
}

}  // namespace

#define F(RESULT, NAME, PARAMETERS) extern "C" [[gnu::visibility("default")]] RESULT NAME PARAMETERS;
TENSORD_CUBLAS_FUNCTIONS(F)
#undef F

cublas::Status cublasCreate_v2(cublas::Handle* handle) {
  return checked([&] { *handle = objects().make<BlasContext>(current_device()); });
}
cublas::Status cublasSetStream_v2(cublas::Handle handle, StreamHandle stream) {
  return checked([&] { objects().known(handle, cublas::kInvalidValue, "the handle")->stream = stream; });
}

#define TWIN_FUNCTIONS(P, T, LETTER)                                                                                  \
  cublas::Status cublas##P##trsm_v2(cublas::Handle handle, int32_t side, int32_t triangle, int32_t operation,         \
                                    int32_t diagonal, int32_t m, int32_t n, const void* alpha, const void* a,         \
                                    int32_t lda, void* b, int32_t ldb) {                                              \
    return checked([&] {                                                                                              \
      solve<T>(handle, {side, triangle, operation, diagonal, m, n, alpha, a, lda, b, ldb}, LETTER##trsm_);            \
    });                                                                                                               \
  }                                                                                                                   \
  cublas::Status cublas##P##trsmBatched(                                                                              \
      cublas::Handle handle, int32_t side, int32_t triangle, int32_t operation, int32_t diagonal, int32_t m,          \
      int32_t n, const void* alpha, const void* const* a, int32_t lda, void* const* b, int32_t ldb, int32_t count) {  \
    return checked([&] {                                                                                              \
      require(count >= 0, cublas::kInvalidValue, "a count below 0");                                                  \
      if (count == 0) return;                                                                                         \
      solve<T>(handle, {side, triangle, operation, diagonal, m, n, alpha, a, lda, const_cast<void**>(b), ldb, count}, \
               LETTER##trsm_);                                                                                        \
    });                                                                                                               \
  }                                                                                                                   \
  cublas::Status cublas##P##getrfBatched(cublas::Handle handle, int32_t n, void* const* a, int32_t lda,               \
                                         int32_t* pivots, int32_t* info, int32_t count) {                             \
    return checked([&] { factorize<T>(handle, n, a, lda, pivots, info, count, LETTER##getrf_); });                    \
  }
TWIN_FUNCTIONS(S, float, s)
TWIN_FUNCTIONS(D, double, d)
TWIN_FUNCTIONS(C, std::complex<float>, c)
TWIN_FUNCTIONS(Z, std::complex<double>, z)

}  // namespace tensord::cuda::cublas
