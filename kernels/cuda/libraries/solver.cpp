// Factorizations by cuSOLVER and triangular systems by cuBLAS. The same code calls the libraries and the tests' twins.
#include <complex>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/dtype.h"
#include "kernels/cuda/libraries/cusolver_api.h"
#include "kernels/cuda/libraries/library.h"
#include "kernels/cuda/plugin/table.h"

namespace tensord::kernels {
namespace {

using namespace cuda;
using namespace cuda::cusolver;

TENSORD_OPEN_LIBRARY(cusolver_library, TENSORD_CUSOLVER_FUNCTIONS, kFile)

namespace triangular {
using cublas::Functions;
TENSORD_OPEN_LIBRARY(library, TENSORD_CUBLAS_FUNCTIONS, cublas::kFile)
}  // namespace triangular

Outcome failed(const char* function, int32_t status, bool is_no_memory) {
  std::string text = std::string(function) + " answers " + std::to_string(status);
  return is_no_memory ? no_memory_for_call(std::move(text)) : refuse_call(std::move(text));
}
Outcome solver_outcome(const char* function, Status status) {
  return status == kSuccess ? Outcome::kDone : failed(function, status, status == kAllocFailed);
}
Outcome triangular_outcome(const char* function, cublas::Status status) {
  return status == cublas::kSuccess ? Outcome::kDone : failed(function, status, status == cublas::kAllocFailed);
}
#define CALL_SOLVER(NAME, ...) solver_outcome(#NAME, cusolver_library().call.NAME(__VA_ARGS__))

// Handles hold memory that calls of one stream use one after the other.
struct SolverHandles {
  std::mutex mutex;  // held while one is used
  Handle solver = nullptr;
  Params params = nullptr;
  cublas::Handle triangular = nullptr;
};
SolverHandles& handles_of(StreamHandle stream) {
  static std::mutex mutex;
  static auto* const all = new std::map<std::pair<int, StreamHandle>, std::unique_ptr<SolverHandles>>;
  const std::lock_guard lock(mutex);
  std::unique_ptr<SolverHandles>& found = (*all)[{current_device(), stream}];
  if (!found) found = std::make_unique<SolverHandles>();
  return *found;
}
// REQUIRES: its mutex is held.
Outcome make_solver(SolverHandles& handles) {
  Outcome outcome = Outcome::kDone;
  if (!handles.solver) outcome = CALL_SOLVER(cusolverDnCreate, &handles.solver);
  if (outcome == Outcome::kDone && !handles.params) outcome = CALL_SOLVER(cusolverDnCreateParams, &handles.params);
  return outcome;
}

struct Types {
  explicit Types(int8_t dtype) {
    switch (static_cast<DType>(dtype)) {
      case DType::kFloat64: element = real = kFloat64, letter = 'D', size = 8; break;
      case DType::kComplex64: element = kComplex64, real = kFloat32, letter = 'C', size = 8; break;
      case DType::kComplex128: element = kComplex128, real = kFloat64, letter = 'Z', size = 16; break;
      default: element = real = kFloat32, letter = 'S', size = 4;
    }
  }
  DataType element, real;
  char letter;
  size_t size;
};

// The functions with the type in their names.
struct Typed {
  decltype(Functions::cusolverDnSorgqr) orgqr;
  decltype(Functions::cusolverDnSorgqr_bufferSize) orgqr_size;
  decltype(Functions::cusolverDnSormqr) ormqr;
  decltype(Functions::cusolverDnSormqr_bufferSize) ormqr_size;
  decltype(Functions::cusolverDnSlaswp) laswp;
  decltype(Functions::cusolverDnSpotrfBatched) potrf_batched;
};
Typed typed(char letter) {
  const Functions& f = cusolver_library().call;
#define TYPED(P, OR)                                                                               \
  Typed {                                                                                          \
    f.cusolverDn##P##OR##gqr, f.cusolverDn##P##OR##gqr_bufferSize, f.cusolverDn##P##OR##mqr,       \
        f.cusolverDn##P##OR##mqr_bufferSize, f.cusolverDn##P##laswp, f.cusolverDn##P##potrfBatched \
  }
  switch (letter) {
    case 'D': return TYPED(D, or);
    case 'C': return TYPED(C, un);
    case 'Z': return TYPED(Z, un);
    default: return TYPED(S, or);
  }
#undef TYPED
}

int32_t narrow(int64_t size) { return static_cast<int32_t>(size); }  // host halves refuse larger ones
void* written(DeviceAddress address) { return const_cast<void*>(address.at); }

// The jobs with workspaces: sizes(…) asks for them, run(…) computes.
class SolverCall {
 public:
  SolverCall(const SolverHandles& handles, const SolverJob& job)
      : h_(handles.solver), p_(handles.params), job_(job), type_(job.dtype) {}

  Outcome sizes(size_t* device, size_t* host) const {
    const SolverJob& j = job_;
    const DataType t = type_.element, real = type_.real;
    int32_t count = 0;
    switch (j.task) {
      case SolverTask::kCholesky:
        return CALL_SOLVER(cusolverDnXpotrf_bufferSize, h_, p_, triangle(), j.n, t, j.a.at, j.a_leading, t, device,
                           host);
      case SolverTask::kLu:
        return CALL_SOLVER(cusolverDnXgetrf_bufferSize, h_, p_, j.m, j.n, t, j.a.at, j.a_leading, t, device, host);
      case SolverTask::kHouseholder:
        return CALL_SOLVER(cusolverDnXgeqrf_bufferSize, h_, p_, j.m, j.n, t, j.a.at, j.a_leading, t, j.numbers.at, t,
                           device, host);
      case SolverTask::kSymmetric:
        return CALL_SOLVER(cusolverDnXsyevd_bufferSize, h_, p_, mode(), triangle(), j.n, t, j.a.at, j.a_leading, real,
                           j.numbers.at, t, device, host);
      case SolverTask::kSingular:
        return CALL_SOLVER(cusolverDnXgesvd_bufferSize, h_, p_, vectors(), vectors(), j.m, j.n, t, j.a.at, j.a_leading,
                           real, j.numbers.at, t, j.b.at, j.b_leading, t, j.c.at, j.c_leading, t, device, host);
      case SolverTask::kReflectors: {
        const Outcome outcome = solver_outcome("cusolverDn…orgqr_bufferSize",
                                               typed(type_.letter)
                                                   .orgqr_size(h_, narrow(j.m), narrow(j.n), narrow(j.k), j.a.at,
                                                               narrow(j.a_leading), j.numbers.at, &count));
        *device = static_cast<size_t>(count) * type_.size;
        return outcome;
      }
      case SolverTask::kReflect: {
        const Outcome outcome =
            solver_outcome("cusolverDn…ormqr_bufferSize",
                           typed(type_.letter)
                               .ormqr_size(h_, side(), operation(), narrow(j.m), narrow(j.n), narrow(j.k), j.a.at,
                                           narrow(j.a_leading), j.numbers.at, j.b.at, narrow(j.b_leading), &count));
        *device = static_cast<size_t>(count) * type_.size;
        return outcome;
      }
      default: return Outcome::kDone;
    }
  }

  Outcome run() const {
    const SolverJob& j = job_;
    const DataType t = type_.element, real = type_.real;
    std::vector<char> host(j.host_workspace_bytes);
    void *const a = written(j.a), *const numbers = written(j.numbers), *const work = written(j.workspace);
    auto* const info = static_cast<int32_t*>(written(j.info));
    const int32_t work_count = narrow(static_cast<int64_t>(j.workspace_bytes / type_.size));
    switch (j.task) {
      case SolverTask::kCholesky:
        if (j.count > 0) {
          return solver_outcome("cusolverDn…potrfBatched",
                                typed(type_.letter)
                                    .potrf_batched(h_, triangle(), narrow(j.n), static_cast<void* const*>(a),
                                                   narrow(j.a_leading), info, narrow(j.count)));
        }
        return CALL_SOLVER(cusolverDnXpotrf, h_, p_, triangle(), j.n, t, a, j.a_leading, t, work, j.workspace_bytes,
                           host.data(), host.size(), info);
      case SolverTask::kLu:
        return CALL_SOLVER(cusolverDnXgetrf, h_, p_, j.m, j.n, t, a, j.a_leading, static_cast<int64_t*>(numbers), t,
                           work, j.workspace_bytes, host.data(), host.size(), info);
      case SolverTask::kHouseholder:
        return CALL_SOLVER(cusolverDnXgeqrf, h_, p_, j.m, j.n, t, a, j.a_leading, t, numbers, t, work,
                           j.workspace_bytes, host.data(), host.size(), info);
      case SolverTask::kSymmetric:
        return CALL_SOLVER(cusolverDnXsyevd, h_, p_, mode(), triangle(), j.n, t, a, j.a_leading, real, numbers, t, work,
                           j.workspace_bytes, host.data(), host.size(), info);
      case SolverTask::kSingular:
        return CALL_SOLVER(cusolverDnXgesvd, h_, p_, vectors(), vectors(), j.m, j.n, t, a, j.a_leading, real, numbers,
                           t, written(j.b), j.b_leading, t, written(j.c), j.c_leading, t, work, j.workspace_bytes,
                           host.data(), host.size(), info);
      case SolverTask::kReflectors:
        return solver_outcome("cusolverDn…orgqr", typed(type_.letter)
                                                      .orgqr(h_, narrow(j.m), narrow(j.n), narrow(j.k), a,
                                                             narrow(j.a_leading), numbers, work, work_count, info));
      case SolverTask::kReflect:
        return solver_outcome("cusolverDn…ormqr", typed(type_.letter)
                                                      .ormqr(h_, side(), operation(), narrow(j.m), narrow(j.n),
                                                             narrow(j.k), a, narrow(j.a_leading), numbers, written(j.b),
                                                             narrow(j.b_leading), work, work_count, info));
      case SolverTask::kExchangeRows:
        return solver_outcome("cusolverDn…laswp",
                              typed(type_.letter)
                                  .laswp(h_, narrow(j.n), a, narrow(j.a_leading), 1, narrow(j.k),
                                         static_cast<const int32_t*>(j.numbers.at), j.is_undone ? -1 : 1));
      default: return refuse_call("a task that cuSOLVER does not have");
    }
  }

 private:
  int32_t triangle() const { return job_.is_upper ? kUpper : kLower; }
  int32_t mode() const { return job_.has_vectors ? kWithVectors : kWithoutVectors; }
  int32_t side() const { return job_.is_left ? kLeft : kRight; }
  int32_t operation() const {
    return !job_.is_turned ? kOperationN : type_.element == type_.real ? kOperationT : kOperationC;
  }
  signed char vectors() const { return static_cast<signed char>(!job_.has_vectors ? 'N' : job_.is_full ? 'A' : 'S'); }

  Handle h_;
  Params p_;
  const SolverJob& job_;
  Types type_;
};

// cuBLAS's functions with the type in their names.
struct TypedBlas {
  decltype(cublas::Functions::cublasStrsm_v2) trsm;
  decltype(cublas::Functions::cublasStrsmBatched) trsm_batched;
  decltype(cublas::Functions::cublasSgetrfBatched) getrf_batched;
};
TypedBlas typed_blas(char letter) {
  const cublas::Functions& f = triangular::library().call;
#define TYPED(P) \
  TypedBlas { f.cublas##P##trsm_v2, f.cublas##P##trsmBatched, f.cublas##P##getrfBatched }
  switch (letter) {
    case 'D': return TYPED(D);
    case 'C': return TYPED(C);
    case 'Z': return TYPED(Z);
    default: return TYPED(S);
  }
#undef TYPED
}

// Triangular systems, and LU of many matrices.
Outcome call_cublas(SolverHandles& handles, const SolverJob& job, StreamHandle stream) {
  const cublas::Functions& call = triangular::library().call;
  Outcome outcome = Outcome::kDone;
  if (!handles.triangular) outcome = triangular_outcome("cublasCreate", call.cublasCreate_v2(&handles.triangular));
  if (outcome == Outcome::kDone)
    outcome = triangular_outcome("cublasSetStream", call.cublasSetStream_v2(handles.triangular, stream));
  if (outcome != Outcome::kDone) return outcome;
  const std::complex<double> one(1), *const alpha = &one;
  const std::complex<float> narrow_one(1);
  const char letter = Types(job.dtype).letter;
  const TypedBlas blas = typed_blas(letter);
  if (job.task == SolverTask::kLu) {
    return triangular_outcome(
        "cublas…getrfBatched",
        blas.getrf_batched(handles.triangular, narrow(job.n), static_cast<void* const*>(written(job.a)),
                           narrow(job.a_leading), static_cast<int32_t*>(written(job.numbers)),
                           static_cast<int32_t*>(written(job.info)), narrow(job.count)));
  }
  const bool is_wide = letter == 'D' || letter == 'Z';
  const void* const factor = is_wide ? static_cast<const void*>(alpha) : &narrow_one;
  const int32_t side = job.is_left ? kLeft : kRight, triangle = job.is_upper ? kUpper : kLower,
                operation = job.is_turned ? kOperationT : kOperationN, diagonal = job.is_unit ? kUnit : kNotUnit;
  if (job.count > 0) {
    return triangular_outcome(
        "cublas…trsmBatched",
        blas.trsm_batched(handles.triangular, side, triangle, operation, diagonal, narrow(job.m), narrow(job.n), factor,
                          static_cast<const void* const*>(job.a.at), narrow(job.a_leading),
                          static_cast<void* const*>(written(job.b)), narrow(job.b_leading), narrow(job.count)));
  }
  return triangular_outcome(
      "cublas…trsm", blas.trsm(handles.triangular, side, triangle, operation, diagonal, narrow(job.m), narrow(job.n),
                               factor, job.a.at, narrow(job.a_leading), written(job.b), narrow(job.b_leading)));
}
bool is_of_cublas(const SolverJob& job) {
  return job.task == SolverTask::kTriangular || (job.task == SolverTask::kLu && job.count > 0);
}

const char* why_no_solver() {
  const std::string& first = cusolver_library().problem;
  return first.empty() ? triangular::library().problem.c_str() : first.c_str();
}

Outcome plan_solver(SolverJob& job, StreamHandle stream) {
  if (job.count > 0 || is_of_cublas(job) || job.task == SolverTask::kExchangeRows) return Outcome::kDone;
  SolverHandles& handles = handles_of(stream);
  const std::lock_guard lock(handles.mutex);
  const Outcome outcome = make_solver(handles);
  if (outcome != Outcome::kDone) return outcome;
  return SolverCall(handles, job).sizes(&job.workspace_bytes, &job.host_workspace_bytes);
}

Outcome solver(const SolverJob& job, StreamHandle stream) {
  SolverHandles& handles = handles_of(stream);
  const std::lock_guard lock(handles.mutex);
  if (is_of_cublas(job)) return call_cublas(handles, job, stream);
  Outcome outcome = make_solver(handles);
  if (outcome == Outcome::kDone) outcome = CALL_SOLVER(cusolverDnSetStream, handles.solver, stream);
  return outcome == Outcome::kDone ? SolverCall(handles, job).run() : outcome;
}

}  // namespace

void add_solver(LibraryTable& table) {
  table.why_no_solver = why_no_solver;
  table.plan_solver = plan_solver;
  table.solver = solver;
}

}  // namespace tensord::kernels
