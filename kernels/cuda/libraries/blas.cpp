// Matrix products by cuBLASLt. The same code calls the library and the tests' twin of it.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

#include "core/tensor/dtype.h"
#include "kernels/cuda/libraries/cublaslt_api.h"
#include "kernels/cuda/libraries/library.h"
#include "kernels/cuda/plugin/table.h"

namespace tensord::kernels {
namespace {

using namespace cuda;
using namespace cuda::cublaslt;

constexpr uint64_t kMaxWorkspaceBytes = 32 << 20;
constexpr size_t kMaxPlans = 4096;
constexpr uint32_t kMaxAlignment = 256;  // what the library asks of no address

TENSORD_OPEN_LIBRARY(library, TENSORD_CUBLASLT_FUNCTIONS, kFile)

Outcome outcome_of(Status status, const char* function) {
  if (status == kSuccess) return Outcome::kDone;
  std::string text = std::string(function) + ": " + library().call.cublasLtGetStatusString(status);
  return status == kAllocFailed ? no_memory_for_call(std::move(text)) : refuse_call(std::move(text));
}

// Calls functions until one fails.
class Calls {
 public:
  template <class... P, class... A>
  bool operator()(const char* name, Status (*function)(P...), A... arguments) {
    if (outcome == Outcome::kDone) outcome = outcome_of(function(arguments...), name);
    return outcome == Outcome::kDone;
  }
  Outcome outcome = Outcome::kDone;
};
#define CALL(CALLS, NAME, ...) CALLS(#NAME, library().call.NAME, __VA_ARGS__)

// A handle belongs to a device, and is for all threads.
Outcome handle_of(int device, Handle& out) {
  static std::mutex mutex;
  static auto* const handles = new std::map<int, Handle>;
  const std::lock_guard lock(mutex);
  if (const auto found = handles->find(device); found != handles->end()) {
    out = found->second;
    return Outcome::kDone;
  }
  Calls calls;
  if (CALL(calls, cublasLtCreate, &out)) handles->emplace(device, out);
  return calls.outcome;
}

DataType type_of(int8_t dtype) {
  switch (static_cast<DType>(dtype)) {
    case DType::kFloat16: return kFloat16;
    case DType::kBFloat16: return kBFloat16;
    case DType::kFloat64: return kFloat64;
    default: return kFloat32;
  }
}

uint32_t epilogue_of(const BlasJob& job) {
  const uint32_t bias = job.bias.at ? kEpilogueBias : 0;
  switch (job.epilogue) {
    case BlasEpilogue::kRelu: return bias | kEpilogueRelu;
    case BlasEpilogue::kGelu: return bias | kEpilogueGelu;
    case BlasEpilogue::kNone: break;
  }
  return bias ? bias : kEpilogueDefault;
}

// The descriptors of a product.
class Descriptors {
 public:
  Descriptors() = default;
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;
  ~Descriptors() {
    if (preference) library().call.cublasLtMatmulPreferenceDestroy(preference);
    for (const MatrixLayout layout : {a, b, c}) {
      if (layout) library().call.cublasLtMatrixLayoutDestroy(layout);
    }
    if (desc) library().call.cublasLtMatmulDescDestroy(desc);
  }

  Outcome describe(const BlasJob& job) {
    Calls calls;
    const bool is_double = static_cast<DType>(job.dtype) == DType::kFloat64;
    CALL(calls, cublasLtMatmulDescCreate, &desc,
         is_double         ? kCompute64F
         : job.allows_tf32 ? kCompute32FTf32
                           : kCompute32F,
         is_double ? kFloat64 : kFloat32);
    set_operation(calls, kTransposeA, job.a.is_transposed);
    set_operation(calls, kTransposeB, job.b.is_transposed);
    const uint32_t epilogue = epilogue_of(job);
    CALL(calls, cublasLtMatmulDescSetAttribute, desc, kEpilogue, &epilogue, sizeof(epilogue));
    if (job.bias.at) CALL(calls, cublasLtMatmulDescSetAttribute, desc, kBiasPointer, &job.bias.at, sizeof(job.bias.at));
    set_layout(calls, a, job, job.a, job.m, job.k);
    set_layout(calls, b, job, job.b, job.k, job.n);
    set_layout(calls, c, job, job.c, job.m, job.n);
    return calls.outcome;
  }
  // Sums of partial products are kept in the type of computing, and in an order that is the same each time.
  Outcome describe_preference(const std::array<uint32_t, 3>& alignments) {
    Calls calls;
    CALL(calls, cublasLtMatmulPreferenceCreate, &preference);
    set_preference(calls, kMaxWorkspace, kMaxWorkspaceBytes);
    set_preference(calls, kReductionMask, kReductionCompute);
    set_preference(calls, kAlignmentA, alignments[0]);
    set_preference(calls, kAlignmentB, alignments[1]);
    set_preference(calls, kAlignmentC, alignments[2]);
    set_preference(calls, kAlignmentD, alignments[2]);
    return calls.outcome;
  }

  MatmulDesc desc = nullptr;
  MatrixLayout a = nullptr, b = nullptr, c = nullptr;
  Preference preference = nullptr;

 private:
  void set_operation(Calls& calls, Attribute attribute, bool is_transposed) {
    const int32_t operation = is_transposed ? kOperationT : kOperationN;
    CALL(calls, cublasLtMatmulDescSetAttribute, desc, attribute, &operation, sizeof(operation));
  }
  template <class T>
  void set_preference(Calls& calls, Attribute attribute, const T& value) {
    CALL(calls, cublasLtMatmulPreferenceSetAttribute, preference, attribute, &value, sizeof(value));
  }
  static void set_layout(Calls& calls, MatrixLayout& out, const BlasJob& job, const BlasMatrix& matrix, int64_t rows,
                         int64_t columns) {
    if (matrix.is_transposed) std::swap(rows, columns);
    CALL(calls, cublasLtMatrixLayoutCreate, &out, type_of(job.dtype), static_cast<uint64_t>(rows),
         static_cast<uint64_t>(columns), matrix.column_stride);
    if (job.batches == 1) return;
    CALL(calls, cublasLtMatrixLayoutSetAttribute, out, kBatchCount, &job.batches, sizeof(job.batches));
    CALL(calls, cublasLtMatrixLayoutSetAttribute, out, kBatchStride, &matrix.batch_stride, sizeof(matrix.batch_stride));
  }
};

uint32_t alignment_of(DeviceAddress address) {
  const auto at = reinterpret_cast<uintptr_t>(address.at);
  return at == 0 ? kMaxAlignment : static_cast<uint32_t>(std::min<uintptr_t>(kMaxAlignment, at & ~(at - 1)));
}
std::array<uint32_t, 3> alignments_of(const BlasJob& job) {
  return {alignment_of(job.a.at), alignment_of(job.b.at), alignment_of(job.c.at)};
}

// What the choice of an algorithm depends on.
using Key = std::array<int64_t, 20>;
Key key_of(int device, const BlasJob& job, const std::array<uint32_t, 3>& alignments) {
  return {device,
          job.dtype,
          job.allows_tf32,
          static_cast<int64_t>(job.epilogue),
          job.m,
          job.n,
          job.k,
          job.batches,
          job.a.is_transposed,
          job.b.is_transposed,
          job.a.column_stride,
          job.b.column_stride,
          job.c.column_stride,
          job.a.batch_stride,
          job.b.batch_stride,
          job.c.batch_stride,
          job.bias.at ? alignment_of(job.bias) : 0,
          alignments[0],
          alignments[1],
          alignments[2]};
}
struct ProductPlan {
  bool has_algorithm = false;
  Algorithm algorithm{};
  size_t workspace_bytes = 0;
};
// The plans of all shapes so far; when there are too many, they are found anew.
class Plans {
 public:
  static Plans& instance() {
    static auto* const plans = new Plans;
    return *plans;
  }
  std::optional<ProductPlan> find(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto found = plans_.find(key);
    return found == plans_.end() ? std::nullopt : std::optional(found->second);
  }
  void keep(const Key& key, const ProductPlan& plan) {
    const std::lock_guard lock(mutex_);
    if (plans_.size() >= kMaxPlans) plans_.clear();
    plans_[key] = plan;
  }

 private:
  std::mutex mutex_;
  std::map<Key, ProductPlan> plans_;
};

Outcome ask_for_plan(int device, const BlasJob& job, const std::array<uint32_t, 3>& alignments, ProductPlan& plan) {
  Handle handle = nullptr;
  Descriptors all;
  Outcome outcome = handle_of(device, handle);
  if (outcome == Outcome::kDone) outcome = all.describe(job);
  if (outcome == Outcome::kDone) outcome = all.describe_preference(alignments);
  if (outcome != Outcome::kDone) return outcome;
  HeuristicResult result{};
  int count = 0;
  const Status status = library().call.cublasLtMatmulAlgoGetHeuristic(handle, all.desc, all.a, all.b, all.c, all.c,
                                                                      all.preference, 1, &result, &count);
  if (status == kNotSupported || (status == kSuccess && (count == 0 || result.state == kNotSupported)))
    return Outcome::kDone;
  if (status != kSuccess) return outcome_of(status, "cublasLtMatmulAlgoGetHeuristic");
  if (result.state != kSuccess) return outcome_of(result.state, "cublasLtMatmulAlgoGetHeuristic");
  plan = {true, result.algorithm, result.workspace_bytes};
  return Outcome::kDone;
}

const char* why_no_blas() { return library().problem.c_str(); }

Outcome plan_product(BlasJob& job) {
  const int device = current_device();
  const auto alignments = alignments_of(job);
  const Key key = key_of(device, job, alignments);
  std::optional<ProductPlan> plan = Plans::instance().find(key);
  if (!plan) {
    plan.emplace();
    if (const Outcome outcome = ask_for_plan(device, job, alignments, *plan); outcome != Outcome::kDone) return outcome;
    Plans::instance().keep(key, *plan);
  }
  job.has_algorithm = plan->has_algorithm;
  job.workspace_bytes = plan->workspace_bytes;
  std::ranges::copy(plan->algorithm.words, job.algorithm);
  return Outcome::kDone;
}

Outcome blas_product(const BlasJob& job, StreamHandle stream) {
  Handle handle = nullptr;
  Descriptors all;
  Outcome outcome = handle_of(current_device(), handle);
  if (outcome == Outcome::kDone) outcome = all.describe(job);
  if (outcome != Outcome::kDone) return outcome;
  Algorithm algorithm{};
  std::ranges::copy(job.algorithm, algorithm.words);
  const float narrow[] = {static_cast<float>(job.alpha), static_cast<float>(job.beta)};
  const bool is_double = static_cast<DType>(job.dtype) == DType::kFloat64;
  const void* const alpha = is_double ? static_cast<const void*>(&job.alpha) : &narrow[0];
  const void* const beta = is_double ? static_cast<const void*>(&job.beta) : &narrow[1];
  void* const out = const_cast<void*>(job.c.at.at);
  return outcome_of(library().call.cublasLtMatmul(handle, all.desc, alpha, job.a.at.at, all.a, job.b.at.at, all.b, beta,
                                                  out, all.c, out, all.c, &algorithm,
                                                  const_cast<void*>(job.workspace.at), job.workspace_bytes, stream),
                    "cublasLtMatmul");
}

}  // namespace

void add_blas(LibraryTable& table) {
  table.why_no_blas = why_no_blas;
  table.plan_product = plan_product;
  table.product = blas_product;
}

}  // namespace tensord::kernels
