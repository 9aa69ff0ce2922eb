// Fourier transforms by cuFFT. The same code calls the library and the tests' twin of it.
#include <algorithm>
#include <array>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "kernels/cuda/libraries/cufft_api.h"
#include "kernels/cuda/libraries/library.h"
#include "kernels/cuda/plugin/table.h"

namespace tensord::kernels {
namespace {

using namespace cuda;
using namespace cuda::cufft;

constexpr size_t kMaxPlans = 256;

TENSORD_OPEN_LIBRARY(cufft_library, TENSORD_CUFFT_FUNCTIONS, kFile)

Outcome fft_outcome(Status status, const char* function) {
  if (status == kSuccess) return Outcome::kDone;
  std::string text = std::string(function) + " answers " + std::to_string(status);
  return status == kAllocFailed ? no_memory_for_call(std::move(text)) : refuse_call(std::move(text));
}

// A plan of the library, for one call at a time.
struct FftPlan {
  FftPlan() = default;
  FftPlan(const FftPlan&) = delete;
  FftPlan& operator=(const FftPlan&) = delete;
  ~FftPlan() {
    if (is_made) cufft_library().call.cufftDestroy(plan);
  }
  Outcome make(const FftJob& job) {
    const Functions& call = cufft_library().call;
    Status status = call.cufftCreate(&plan);
    if (status != kSuccess) return fft_outcome(status, "cufftCreate");
    is_made = true;
    status = call.cufftSetAutoAllocation(plan, 0);  // the caller gives the workspace
    if (status != kSuccess) return fft_outcome(status, "cufftSetAutoAllocation");
    long long sizes[kMaxFftRank];
    std::copy_n(job.sizes, job.rank, sizes);
    const DataType real = job.is_double ? kFloat64 : kFloat32, complex = job.is_double ? kComplex128 : kComplex64;
    // Without layouts: dense.
    status =
        call.cufftXtMakePlanMany(plan, job.rank, sizes, nullptr, 1, 0, job.has_real_input ? real : complex, nullptr, 1,
                                 0, job.has_real_output ? real : complex, job.batches, &workspace_bytes, complex);
    return fft_outcome(status, "cufftXtMakePlanMany");
  }
  Outcome run(const FftJob& job, StreamHandle stream) {
    const std::lock_guard lock(mutex);
    const Functions& call = cufft_library().call;
    Status status = call.cufftSetStream(plan, stream);
    if (status != kSuccess) return fft_outcome(status, "cufftSetStream");
    if (job.workspace.at) status = call.cufftSetWorkArea(plan, const_cast<void*>(job.workspace.at));
    if (status != kSuccess) return fft_outcome(status, "cufftSetWorkArea");
    status = call.cufftXtExec(plan, const_cast<void*>(job.in.at), const_cast<void*>(job.out.at),
                              job.is_forward ? kForward : kInverse);
    return fft_outcome(status, "cufftXtExec");
  }

  std::mutex mutex;
  Plan plan = 0;
  bool is_made = false;
  size_t workspace_bytes = 0;
};

// The plans used last.
class FftPlans {
 public:
  static FftPlans& instance() {
    static auto* const plans = new FftPlans;
    return *plans;
  }
  // The job's plan, made if there is none.
  Outcome find(const FftJob& job, std::shared_ptr<FftPlan>& out) {
    const Key key{current_device(),
                  job.is_double,
                  job.has_real_input,
                  job.has_real_output,
                  job.rank,
                  job.sizes[0],
                  job.rank > 1 ? job.sizes[1] : 0,
                  job.rank > 2 ? job.sizes[2] : 0,
                  job.batches};
    const std::lock_guard lock(mutex_);
    if (const auto found = places_.find(key); found != places_.end()) {
      plans_.splice(plans_.begin(), plans_, found->second);
      out = found->second->second;
      return Outcome::kDone;
    }
    auto made = std::make_shared<FftPlan>();
    if (const Outcome outcome = made->make(job); outcome != Outcome::kDone) return outcome;
    out = made;
    plans_.emplace_front(key, std::move(made));
    places_[key] = plans_.begin();
    if (plans_.size() > kMaxPlans) {
      places_.erase(plans_.back().first);
      plans_.pop_back();
    }
    return Outcome::kDone;
  }

 private:
  using Key = std::array<int64_t, 9>;
  std::mutex mutex_;
  std::list<std::pair<Key, std::shared_ptr<FftPlan>>> plans_;
  std::map<Key, decltype(plans_)::iterator> places_;
};

const char* why_no_fft() { return cufft_library().problem.c_str(); }

Outcome plan_fft(FftJob& job) {
  std::shared_ptr<FftPlan> plan;
  const Outcome outcome = FftPlans::instance().find(job, plan);
  if (plan) job.workspace_bytes = plan->workspace_bytes;
  return outcome;
}

Outcome run_fft(const FftJob& job, StreamHandle stream) {
  std::shared_ptr<FftPlan> plan;
  const Outcome outcome = FftPlans::instance().find(job, plan);
  return outcome == Outcome::kDone ? plan->run(job, stream) : outcome;
}

}  // namespace

void add_fft(LibraryTable& table) {
  table.why_no_fft = why_no_fft;
  table.plan_fft = plan_fft;
  table.fft = run_fft;
}

}  // namespace tensord::kernels
