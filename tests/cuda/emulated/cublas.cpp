// cuBLAS's functions for triangular systems on the emulated devices, over BLAS. They refuse what NVIDIA's documentation
// forbids.
#include <algorithm>
#include <complex>

#include "kernels/cuda/libraries/cusolver_api.h"
#include "kernels/cuda/libraries/library.h"
#include "tests/cuda/emulated/libraries.h"

#define TWIN_BLAS(T, P)                                                                                         \
  void P##trsm_(const char*, const char*, const char*, const char*, const int*, const int*, const T*, const T*, \
                const int*, T*, const int*, size_t, size_t, size_t, size_t);
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
  const void* a;
  int lda;
  void* b;
  int ldb;
};

size_t extent(int rows, int columns, int leading) {
  return static_cast<size_t>(columns - 1) * static_cast<size_t>(leading) + static_cast<size_t>(rows);
}

template <class T, class Trsm>
void solve(cublas::Handle handle, const System& s, Trsm trsm) {
  objects().known(handle, cublas::kInvalidValue, "the handle");
  require(handle->device == current_device() && handle->stream &&
              emulated::device_of_stream(handle->stream) == handle->device,
          cublas::kInvalidValue, "a handle or a stream of another device");
  const int rows = s.side == kLeft ? s.m : s.n;
  require(s.m >= 0 && s.n >= 0 && s.lda >= std::max(1, rows) && s.ldb >= std::max(1, s.m), cublas::kInvalidValue,
          "a leading dimension that is less than the rows");
  require(s.alpha, cublas::kInvalidValue, "no alpha");
  if (s.m == 0 || s.n == 0) return;
  emulated::require_memory(handle->device, s.a, extent(rows, rows, s.lda), sizeof(T), cublas::kInvalidValue, "A");
  emulated::require_memory(handle->device, s.b, extent(s.m, s.n, s.ldb), sizeof(T), cublas::kInvalidValue, "B");
  emulated::queue_lapack(handle->stream, [s, trsm, factor = *static_cast<const T*>(s.alpha)] {
    const char side = s.side == kLeft ? 'L' : 'R', triangle = s.triangle == kLower ? 'L' : 'U',
               operation = s.operation == kOperationN   ? 'N'
                           : s.operation == kOperationT ? 'T'
                                                        : 'C',
               diagonal = s.diagonal == kUnit ? 'U' : 'N';
    trsm(&side, &triangle, &operation, &diagonal, &s.m, &s.n, &factor, static_cast<const T*>(emulated::inside(s.a)),
         &s.lda, static_cast<T*>(emulated::inside(s.b)), &s.ldb, 1, 1, 1, 1);
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

#define TWIN_TRSM(P, T, TRSM)                                                                                 \
  cublas::Status cublas##P##trsm_v2(cublas::Handle handle, int32_t side, int32_t triangle, int32_t operation, \
                                    int32_t diagonal, int32_t m, int32_t n, const void* alpha, const void* a, \
                                    int32_t lda, void* b, int32_t ldb) {                                      \
    return checked([&] {                                                                                      \
      solve<T>(handle, {side, triangle, operation, diagonal, m, n, alpha, a, lda, b, ldb}, TRSM);             \
    });                                                                                                       \
  }
TWIN_TRSM(S, float, strsm_)
TWIN_TRSM(D, double, dtrsm_)
TWIN_TRSM(C, std::complex<float>, ctrsm_)
TWIN_TRSM(Z, std::complex<double>, ztrsm_)

}  // namespace tensord::cuda::cublas
