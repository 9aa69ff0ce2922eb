// The functions of cuSOLVER, and cuBLAS's of triangular systems, for the emulated devices, over LAPACK. They refuse
// what NVIDIA's documentation forbids.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/cuda/libraries/cusolver_api.h"
#include "kernels/cuda/libraries/library.h"
#include "tests/cuda/emulated/libraries.h"

#define TWIN_LAPACK(T, R, P, OR, SY)                                                                                 \
  void P##potrf_(const char*, const int*, T*, const int*, int*, size_t);                                             \
  void P##getrf_(const int*, const int*, T*, const int*, int*, int*);                                                \
  void P##geqrf_(const int*, const int*, T*, const int*, T*, T*, const int*, int*);                                  \
  void P##OR##gqr_(const int*, const int*, const int*, T*, const int*, const T*, T*, const int*, int*);              \
  void P##OR##mqr_(const char*, const char*, const int*, const int*, const int*, const T*, const int*, const T*, T*, \
                   const int*, T*, const int*, int*, size_t, size_t);                                                \
  void P##laswp_(const int*, T*, const int*, const int*, const int*, const int*, const int*);
#define TWIN_REAL(T, P)                                                                                          \
  void P##syev_(const char*, const char*, const int*, T*, const int*, T*, T*, const int*, int*, size_t, size_t); \
  void P##gesdd_(const char*, const int*, const int*, T*, const int*, T*, T*, const int*, T*, const int*, T*,    \
                 const int*, int*, int*, size_t);
#define TWIN_COMPLEX(T, R, P)                                                                                        \
  void P##heev_(const char*, const char*, const int*, T*, const int*, R*, T*, const int*, R*, int*, size_t, size_t); \
  void P##gesdd_(const char*, const int*, const int*, T*, const int*, R*, T*, const int*, T*, const int*, T*,        \
                 const int*, R*, int*, int*, size_t);
extern "C" {
TWIN_LAPACK(float, float, s, or, sy)
TWIN_LAPACK(double, double, d, or, sy)
TWIN_LAPACK(std::complex<float>, float, c, un, he)
TWIN_LAPACK(std::complex<double>, double, z, un, he)
TWIN_REAL(float, s)
TWIN_REAL(double, d)
TWIN_COMPLEX(std::complex<float>, float, c)
TWIN_COMPLEX(std::complex<double>, double, z)
}

namespace tensord::cuda::cusolver {

struct SolverContext {
  int device;
  StreamHandle stream = nullptr;
};
struct ParamsData {};

namespace {

using emulated::require;

// LAPACK's routines for a type.
template <class T>
struct Lapack;
#define TWIN_TYPE(T, P, OR)                    \
  template <>                                  \
  struct Lapack<T> {                           \
    static constexpr auto potrf = P##potrf_;   \
    static constexpr auto getrf = P##getrf_;   \
    static constexpr auto geqrf = P##geqrf_;   \
    static constexpr auto orgqr = P##OR##gqr_; \
    static constexpr auto ormqr = P##OR##mqr_; \
    static constexpr auto laswp = P##laswp_;   \
    static constexpr auto gesdd = P##gesdd_;   \
  };
TWIN_TYPE(float, s, or)
TWIN_TYPE(double, d, or)
TWIN_TYPE(std::complex<float>, c, un)
TWIN_TYPE(std::complex<double>, z, un)

template <class T>
constexpr bool kIsComplex = !std::is_floating_point_v<T>;
template <class T>
using Real = decltype(std::abs(T()));

emulated::Objects& objects() {
  static auto* const all = new emulated::Objects;
  return *all;
}
template <class Fn>
Status checked(const Fn& fn) {
  return emulated::checked<Status>([&] {
    fn();
    return kSuccess;
  });
}

size_t size_of_type(DataType type) {
  switch (type) {
    case kFloat32: return 4;
    case kFloat64:
    case kComplex64: return 8;
    case kComplex128: return 16;
    default: throw emulated::Refused{kInvalidValue, "an element type that is not known here"};
  }
}
DataType real_of(DataType type) { return type == kComplex64 ? kFloat32 : type == kComplex128 ? kFloat64 : type; }
template <class Fn>
void for_type(DataType type, const Fn& fn) {
  switch (type) {
    case kFloat32: return fn.template operator()<float>();
    case kFloat64: return fn.template operator()<double>();
    case kComplex64: return fn.template operator()<std::complex<float>>();
    default: return fn.template operator()<std::complex<double>>();
  }
}

// A call's arguments as they are checked.
class Call {
 public:
  explicit Call(Handle handle) : handle_(objects().known(handle, kInvalidValue, "the handle")) {
    require(handle->device == current_device(), kInvalidValue, "a handle of another device than the current one");
  }
  // For those that compute.
  StreamHandle stream() const {
    require(handle_->stream && emulated::device_of_stream(handle_->stream) == handle_->device, kInvalidValue,
            "no stream, or a stream of another device");
    return handle_->stream;
  }
  static void params(Params params) { objects().known(params, kInvalidValue, "params"); }
  static void sizes(int64_t m, int64_t n, int64_t leading) {
    require(m >= 0 && n >= 0, kInvalidValue, "a size below 0");
    require(leading >= std::max<int64_t>(1, m), kInvalidValue, "the leading dimension is less than the rows");
  }
  void memory(const void* at, int64_t count, DataType type, const char* what) const {
    if (count <= 0) return;
    emulated::require_memory(handle_->device, at, static_cast<size_t>(count), size_of_type(type), kInvalidValue, what);
  }
  void matrix(const void* at, int64_t m, int64_t n, int64_t leading, DataType type, const char* what) const {
    require(leading >= std::max<int64_t>(1, m), kInvalidValue,
            std::string(what) + "'s leading dimension is less than its rows");
    if (m > 0 && n > 0) memory(at, (n - 1) * leading + m, type, what);
  }
  void workspace(const void* device, size_t device_bytes, size_t wanted, const int32_t* info) const {
    require(device_bytes >= wanted, kInvalidValue, "the workspace is smaller than the bytes that were asked for");
    if (wanted > 0) emulated::require_memory(handle_->device, device, device_bytes, 1, kInvalidValue, "the workspace");
    emulated::require_memory(handle_->device, info, 1, 4, kInvalidValue, "info");
  }

 private:
  Handle handle_;
};

constexpr size_t kHostBytes = 64;  // each call wants some on both sides
size_t device_bytes_of(int64_t m, int64_t n, DataType type) {
  return static_cast<size_t>(std::max<int64_t>(1, std::min(m, n))) * 32 * size_of_type(type);
}
Status give_sizes(size_t* device, size_t* host, int64_t m, int64_t n, DataType type) {
  *device = device_bytes_of(m, n, type);
  *host = kHostBytes;
  return kSuccess;
}
void check_host(const void* host, size_t bytes) {
  require(host && bytes >= kHostBytes, kInvalidValue,
          "the host's workspace is smaller than the bytes that were asked for");
}
void check_types(DataType type, DataType compute, DataType other, DataType expected) {
  require(type == compute && other == expected, kInvalidValue, "types that do not fit");
}

template <class T>
T* at(void* address) {
  return static_cast<T*>(emulated::inside(address));
}
template <class T>
const T* at(const void* address) {
  return static_cast<const T*>(emulated::inside(address));
}
template <class T>
bool is_finite(const T* a, int m, int n, int lda) {
  for (int c = 0; c < n; ++c) {
    for (int r = 0; r < m; ++r) {
      if (!std::isfinite(std::abs(a[static_cast<ptrdiff_t>(c) * lda + r]))) return false;
    }
  }
  return true;
}

// Work memory of LAPACK's blocked routines.
template <class T>
std::vector<T> work_for(int m, int n) {
  return std::vector<T>(static_cast<size_t>(std::max(1, std::max(m, n))) * 64);
}

template <class T>
void symmetric(bool has_vectors, char triangle, int n, T* a, int lda, Real<T>* values, int* info) {
  if (!is_finite(a, n, n, lda)) {
    *info = 1;
    return;
  }
  const char job = has_vectors ? 'V' : 'N';
  std::vector<T> work = work_for<T>(n, n);
  const int size = static_cast<int>(work.size());
  if constexpr (kIsComplex<T>) {
    std::vector<Real<T>> reals(static_cast<size_t>(3 * n + 1));
    const auto heev = [] {
      if constexpr (sizeof(T) == 8)
        return cheev_;
      else
        return zheev_;
    }();
    heev(&job, &triangle, &n, a, &lda, values, work.data(), &size, reals.data(), info, 1, 1);
  } else {
    const auto syev = [] {
      if constexpr (sizeof(T) == 4)
        return ssyev_;
      else
        return dsyev_;
    }();
    syev(&job, &triangle, &n, a, &lda, values, work.data(), &size, info, 1, 1);
  }
}

template <class T>
void singular(char job, int m, int n, T* a, int lda, Real<T>* s, T* u, int ldu, T* vh, int ldvh, int* info) {
  if (!is_finite(a, m, n, lda)) {
    *info = 1;
    return;
  }
  const auto small = static_cast<size_t>(n), large = static_cast<size_t>(m);
  std::vector<T> work(8 * small * small + 16 * (large + small) + 64 * large + 64);
  std::vector<int> integers(8 * small + 8);
  const int size = static_cast<int>(work.size());
  if constexpr (kIsComplex<T>) {
    std::vector<Real<T>> reals(small * (7 * small + 7) + 2 * large * small + 64);
    Lapack<T>::gesdd(&job, &m, &n, a, &lda, s, u, &ldu, vh, &ldvh, work.data(), &size, reals.data(), integers.data(),
                     info, 1);
  } else {
    Lapack<T>::gesdd(&job, &m, &n, a, &lda, s, u, &ldu, vh, &ldvh, work.data(), &size, integers.data(), info, 1);
  }
}

template <class T>
void orgqr(Handle handle, int m, int n, int k, void* a, int lda, const void* tau, void* work, int size, int* info,
           DataType type) {
  const Call call(handle);
  require(m >= n && n >= k && k >= 0, kInvalidValue, "more reflections than columns, or columns than rows");
  call.matrix(a, m, n, lda, type, "A");
  call.memory(tau, k, type, "tau");
  call.workspace(work, static_cast<size_t>(size) * sizeof(T), device_bytes_of(m, n, type), info);
  emulated::queue_lapack(call.stream(), [=] {
    std::vector<T> own = work_for<T>(m, n);
    const int own_size = static_cast<int>(own.size());
    Lapack<T>::orgqr(&m, &n, &k, at<T>(a), &lda, at<T>(tau), own.data(), &own_size, at<int>(info));
  });
}
template <class T>
void ormqr(Handle handle, int side, int operation, int m, int n, int k, const void* a, int lda, const void* tau,
           void* c, int ldc, void* work, int size, int* info, DataType type) {
  const Call call(handle);
  const int rows = side == kLeft ? m : n;
  require(side == kLeft || side == kRight, kInvalidValue, "no side");
  require(operation == kOperationN || operation == (kIsComplex<T> ? kOperationC : kOperationT), kInvalidValue,
          "an operation that the type does not have");
  require(k >= 0 && k <= rows, kInvalidValue, "more reflections than rows");
  call.matrix(a, rows, k, lda, type, "A");
  call.memory(tau, k, type, "tau");
  call.matrix(c, m, n, ldc, type, "C");
  call.workspace(work, static_cast<size_t>(size) * sizeof(T), device_bytes_of(m, n, type), info);
  emulated::queue_lapack(call.stream(), [=] {
    const char of_side = side == kLeft ? 'L' : 'R', turn = operation == kOperationN ? 'N' : kIsComplex<T> ? 'C' : 'T';
    std::vector<T> own = work_for<T>(m, n);
    const int own_size = static_cast<int>(own.size());
    Lapack<T>::ormqr(&of_side, &turn, &m, &n, &k, at<T>(a), &lda, at<T>(tau), at<T>(c), &ldc, own.data(), &own_size,
                     at<int>(info), 1, 1);
  });
}
template <class T>
void laswp(Handle handle, int n, void* a, int lda, int first, int last, const int* pivots, int step, DataType type) {
  const Call call(handle);
  require(first >= 1 && last >= first && (step == 1 || step == -1), kInvalidValue, "rows that are out of range");
  call.matrix(a, lda, n, lda, type, "A");
  emulated::require_memory(current_device(), pivots, static_cast<size_t>(last), 4, kInvalidValue, "pivots");
  emulated::queue_lapack(call.stream(),
                         [=] { Lapack<T>::laswp(&n, at<T>(a), &lda, &first, &last, at<int>(pivots), &step); });
}

}  // namespace
}  // namespace tensord::cuda::cusolver

using namespace tensord::cuda;
using namespace tensord::cuda::cusolver;

#define F(RESULT, NAME, PARAMETERS) extern "C" [[gnu::visibility("default")]] RESULT NAME PARAMETERS;
TENSORD_CUSOLVER_FUNCTIONS(F)
#undef F

Status cusolverDnCreate(Handle* handle) {
  return checked([&] { *handle = objects().make<SolverContext>(current_device()); });
}
Status cusolverDnSetStream(Handle handle, StreamHandle stream) {
  return checked([&] { objects().known(handle, kInvalidValue, "the handle")->stream = stream; });
}
Status cusolverDnCreateParams(Params* params) {
  return checked([&] { *params = objects().make<ParamsData>(); });
}

Status cusolverDnXpotrf_bufferSize(Handle, Params, int32_t, int64_t n, DataType type, const void*, int64_t, DataType,
                                   size_t* device_bytes, size_t* host_bytes) {
  return give_sizes(device_bytes, host_bytes, n, n, type);
}
Status cusolverDnXpotrf(Handle handle, Params params, int32_t triangle, int64_t n, DataType type, void* a, int64_t lda,
                        DataType compute, void* device, size_t device_bytes, void* host, size_t host_bytes,
                        int32_t* info) {
  return checked([&] {
    const Call call(handle);
    Call::params(params);
    check_types(type, compute, type, type);
    call.matrix(a, n, n, lda, type, "A");
    call.workspace(device, device_bytes, device_bytes_of(n, n, type), info);
    check_host(host, host_bytes);
    const char of = triangle == kLower ? 'L' : 'U';
    const int size = static_cast<int>(n), leading = static_cast<int>(lda);
    for_type(type, [&]<class T>() {
      emulated::queue_lapack(call.stream(),
                             [=] { Lapack<T>::potrf(&of, &size, at<T>(a), &leading, at<int>(info), 1); });
    });
  });
}

Status cusolverDnXgetrf_bufferSize(Handle, Params, int64_t m, int64_t n, DataType type, const void*, int64_t, DataType,
                                   size_t* device_bytes, size_t* host_bytes) {
  return give_sizes(device_bytes, host_bytes, m, n, type);
}
Status cusolverDnXgetrf(Handle handle, Params params, int64_t m, int64_t n, DataType type, void* a, int64_t lda,
                        int64_t* pivots, DataType compute, void* device, size_t device_bytes, void* host,
                        size_t host_bytes, int32_t* info) {
  return checked([&] {
    const Call call(handle);
    Call::params(params);
    check_types(type, compute, type, type);
    call.matrix(a, m, n, lda, type, "A");
    call.memory(pivots, std::min(m, n), kFloat64, "pivots");
    call.workspace(device, device_bytes, device_bytes_of(m, n, type), info);
    check_host(host, host_bytes);
    const int rows = static_cast<int>(m), columns = static_cast<int>(n), leading = static_cast<int>(lda);
    for_type(type, [&]<class T>() {
      emulated::queue_lapack(call.stream(), [=] {
        std::vector<int> narrow(static_cast<size_t>(std::min(rows, columns)));
        Lapack<T>::getrf(&rows, &columns, at<T>(a), &leading, narrow.data(), at<int>(info));
        std::ranges::copy(narrow, at<int64_t>(pivots));
      });
    });
  });
}

Status cusolverDnXgeqrf_bufferSize(Handle, Params, int64_t m, int64_t n, DataType type, const void*, int64_t, DataType,
                                   const void*, DataType, size_t* device_bytes, size_t* host_bytes) {
  return give_sizes(device_bytes, host_bytes, m, n, type);
}
Status cusolverDnXgeqrf(Handle handle, Params params, int64_t m, int64_t n, DataType type, void* a, int64_t lda,
                        DataType tau_type, void* tau, DataType compute, void* device, size_t device_bytes, void* host,
                        size_t host_bytes, int32_t* info) {
  return checked([&] {
    const Call call(handle);
    Call::params(params);
    check_types(type, compute, tau_type, type);
    call.matrix(a, m, n, lda, type, "A");
    call.memory(tau, std::min(m, n), type, "tau");
    call.workspace(device, device_bytes, device_bytes_of(m, n, type), info);
    check_host(host, host_bytes);
    const int rows = static_cast<int>(m), columns = static_cast<int>(n), leading = static_cast<int>(lda);
    for_type(type, [&]<class T>() {
      emulated::queue_lapack(call.stream(), [=] {
        std::vector<T> own = work_for<T>(rows, columns);
        const int size = static_cast<int>(own.size());
        Lapack<T>::geqrf(&rows, &columns, at<T>(a), &leading, at<T>(tau), own.data(), &size, at<int>(info));
      });
    });
  });
}

Status cusolverDnXsyevd_bufferSize(Handle, Params, int32_t, int32_t, int64_t n, DataType type, const void*, int64_t,
                                   DataType, const void*, DataType, size_t* device_bytes, size_t* host_bytes) {
  return give_sizes(device_bytes, host_bytes, n, n, type);
}
Status cusolverDnXsyevd(Handle handle, Params params, int32_t mode, int32_t triangle, int64_t n, DataType type, void* a,
                        int64_t lda, DataType values_type, void* values, DataType compute, void* device,
                        size_t device_bytes, void* host, size_t host_bytes, int32_t* info) {
  return checked([&] {
    const Call call(handle);
    Call::params(params);
    check_types(type, compute, values_type, real_of(type));
    call.matrix(a, n, n, lda, type, "A");
    call.memory(values, n, values_type, "the values");
    call.workspace(device, device_bytes, device_bytes_of(n, n, type), info);
    check_host(host, host_bytes);
    const int size = static_cast<int>(n), leading = static_cast<int>(lda);
    for_type(type, [&]<class T>() {
      emulated::queue_lapack(call.stream(), [=] {
        symmetric<T>(mode == kWithVectors, triangle == kLower ? 'L' : 'U', size, at<T>(a), leading, at<Real<T>>(values),
                     at<int>(info));
      });
    });
  });
}

Status cusolverDnXgesvd_bufferSize(Handle, Params, signed char, signed char, int64_t m, int64_t n, DataType type,
                                   const void*, int64_t, DataType, const void*, DataType, const void*, int64_t,
                                   DataType, const void*, int64_t, DataType, size_t* device_bytes, size_t* host_bytes) {
  return give_sizes(device_bytes, host_bytes, m, n, type);
}
Status cusolverDnXgesvd(Handle handle, Params params, signed char job_u, signed char job_vh, int64_t m, int64_t n,
                        DataType type, void* a, int64_t lda, DataType values_type, void* values, DataType u_type,
                        void* u, int64_t ldu, DataType vh_type, void* vh, int64_t ldvh, DataType compute, void* device,
                        size_t device_bytes, void* host, size_t host_bytes, int32_t* info) {
  return checked([&] {
    const Call call(handle);
    Call::params(params);
    require(m >= n, kInvalidValue, "more columns than rows");
    require(job_u == job_vh && std::strchr("NSA", job_u), kInvalidValue, "vectors of one side alone");
    check_types(type, compute, values_type, real_of(type));
    require(u_type == type && vh_type == type, kInvalidValue, "types that do not fit");
    call.matrix(a, m, n, lda, type, "A");
    call.memory(values, n, values_type, "the values");
    if (job_u != 'N') {
      call.matrix(u, m, job_u == 'A' ? m : n, ldu, type, "U");
      call.matrix(vh, n, n, ldvh, type, "VH");
    }
    call.workspace(device, device_bytes, device_bytes_of(m, n, type), info);
    check_host(host, host_bytes);
    const int rows = static_cast<int>(m), columns = static_cast<int>(n), leading = static_cast<int>(lda),
              u_leading = static_cast<int>(ldu), vh_leading = static_cast<int>(ldvh);
    for_type(type, [&]<class T>() {
      emulated::queue_lapack(call.stream(), [=] {
        singular<T>(static_cast<char>(job_u), rows, columns, at<T>(a), leading, at<Real<T>>(values), at<T>(u),
                    u_leading, at<T>(vh), vh_leading, at<int>(info));
      });
    });
  });
}

template <class T>
void potrf_batched(Handle handle, int32_t triangle, int32_t n, void* const* a, int32_t lda, int32_t* info,
                   int32_t count) {
  const Call call(handle);
  Call::sizes(n, n, lda);
  require(count >= 0, kInvalidValue, "a count below 0");
  call.memory(a, count, kFloat64, "the list of matrices");
  call.memory(info, count, kFloat32, "info");
  emulated::queue_lapack(call.stream(), [=] {
    const char of = triangle == kLower ? 'L' : 'U';
    int* code = at<int>(info);
    for (T* const matrix : emulated::listed<T>(a, count)) Lapack<T>::potrf(&of, &n, matrix, &lda, code++, 1);
  });
}

#define TWIN_TYPED(P, OR, T, TYPE)                                                                                     \
  Status cusolverDn##P##OR##gqr_bufferSize(Handle, int32_t m, int32_t n, int32_t, const void*, int32_t, const void*,   \
                                           int32_t* size) {                                                            \
    *size = static_cast<int32_t>(device_bytes_of(m, n, TYPE) / sizeof(T));                                             \
    return kSuccess;                                                                                                   \
  }                                                                                                                    \
  Status cusolverDn##P##OR##gqr(Handle handle, int32_t m, int32_t n, int32_t k, void* a, int32_t lda, const void* tau, \
                                void* work, int32_t size, int32_t* info) {                                             \
    return checked([&] { orgqr<T>(handle, m, n, k, a, lda, tau, work, size, info, TYPE); });                           \
  }                                                                                                                    \
  Status cusolverDn##P##OR##mqr_bufferSize(Handle, int32_t, int32_t, int32_t m, int32_t n, int32_t, const void*,       \
                                           int32_t, const void*, const void*, int32_t, int32_t* size) {                \
    *size = static_cast<int32_t>(device_bytes_of(m, n, TYPE) / sizeof(T));                                             \
    return kSuccess;                                                                                                   \
  }                                                                                                                    \
  Status cusolverDn##P##OR##mqr(Handle handle, int32_t side, int32_t operation, int32_t m, int32_t n, int32_t k,       \
                                const void* a, int32_t lda, const void* tau, void* c, int32_t ldc, void* work,         \
                                int32_t size, int32_t* info) {                                                         \
    return checked([&] { ormqr<T>(handle, side, operation, m, n, k, a, lda, tau, c, ldc, work, size, info, TYPE); });  \
  }                                                                                                                    \
  Status cusolverDn##P##potrfBatched(Handle handle, int32_t triangle, int32_t n, void* const* a, int32_t lda,          \
                                     int32_t* info, int32_t count) {                                                   \
    return checked([&] { potrf_batched<T>(handle, triangle, n, a, lda, info, count); });                               \
  }                                                                                                                    \
  Status cusolverDn##P##laswp(Handle handle, int32_t n, void* a, int32_t lda, int32_t first, int32_t last,             \
                              const int32_t* pivots, int32_t step) {                                                   \
    return checked([&] { laswp<T>(handle, n, a, lda, first, last, pivots, step, TYPE); });                             \
  }
TWIN_TYPED(S, or, float, kFloat32)
TWIN_TYPED(D, or, double, kFloat64)
TWIN_TYPED(C, un, std::complex<float>, kComplex64)
TWIN_TYPED(Z, un, std::complex<double>, kComplex128)
