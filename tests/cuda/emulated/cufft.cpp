// cuFFT's functions for the emulated devices, over PocketFFT. They refuse what NVIDIA's documentation forbids; input
// that the library may overwrite is overwritten.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#define POCKETFFT_NO_MULTITHREADING
#include <pocketfft.hpp>

#include "kernels/cuda/libraries/cufft_api.h"
#include "kernels/cuda/libraries/library.h"
#include "tests/cuda/emulated/libraries.h"

namespace tensord::cuda::cufft {
namespace {

using emulated::require;

struct PlanState {
  int device = 0;
  bool allocates = true, is_planned = false;
  std::vector<size_t> sizes;
  bool is_double = false, has_real_input = false, has_real_output = false;
  size_t batches = 0, workspace_bytes = 0;
  StreamHandle stream = nullptr;
  void* workspace = nullptr;

  size_t numbers_of(bool is_real) const {
    size_t count = batches;
    for (size_t d = 0; d + 1 < sizes.size(); ++d) count *= sizes[d];
    const bool is_half = !is_real && (has_real_input || has_real_output);
    return count * (is_half ? sizes.back() / 2 + 1 : sizes.back());
  }
};
std::map<Plan, PlanState>& plans() {
  static auto* const all = new std::map<Plan, PlanState>;
  return *all;
}
PlanState& known(Plan plan) {
  const auto found = plans().find(plan);
  require(found != plans().end(), kInvalidPlan, "the plan was not made, or is destroyed");
  return found->second;
}
template <class Fn>
Status checked(const Fn& fn) {
  return emulated::checked<Status>(fn);
}

bool is_complex_type(DataType type) { return type == kComplex64 || type == kComplex128; }
bool is_double_type(DataType type) { return type == kFloat64 || type == kComplex128; }

void make_plan(PlanState& plan, int32_t rank, const long long* sizes, DataType in_type, DataType out_type,
               long long batches, DataType compute_type) {
  require(!plan.is_planned, kInvalidPlan, "the plan is made already");
  require(rank >= 1 && rank <= 3 && batches >= 1, kInvalidValue, "a rank or number of batches that is out of range");
  require(is_complex_type(in_type) || is_complex_type(out_type), kInvalidValue, "real numbers on both sides");
  require(is_complex_type(compute_type) && is_double_type(in_type) == is_double_type(compute_type) &&
              is_double_type(out_type) == is_double_type(compute_type),
          kInvalidValue, "types that do not fit");
  for (int32_t d = 0; d < rank; ++d) {
    require(sizes[d] >= 1, kInvalidSize, "a size that is not positive");
    plan.sizes.push_back(static_cast<size_t>(sizes[d]));
  }
  plan.batches = static_cast<size_t>(batches);
  plan.is_double = is_double_type(compute_type);
  plan.has_real_input = !is_complex_type(in_type);
  plan.has_real_output = !is_complex_type(out_type);
  plan.workspace_bytes = plan.sizes.back() < 8 ? 0 : plan.numbers_of(false) * 16;
  plan.is_planned = true;
}

template <class T>
void transform(const PlanState& plan, void* in, void* out, bool is_forward) {
  using C = std::complex<T>;
  std::vector<size_t> shape{plan.batches}, axes;
  for (const size_t size : plan.sizes) {
    shape.push_back(size);
    axes.push_back(axes.size() + 1);
  }
  const auto strides_of = [&](bool is_real) {
    std::vector<std::ptrdiff_t> strides(shape.size());
    std::ptrdiff_t stride = is_real ? sizeof(T) : sizeof(C);
    const bool is_half = !is_real && (plan.has_real_input || plan.has_real_output);
    for (size_t d = shape.size(); d-- > 0;) {
      strides[d] = stride;
      stride *= static_cast<std::ptrdiff_t>(is_half && d + 1 == shape.size() ? shape[d] / 2 + 1 : shape[d]);
    }
    return strides;
  };
  const auto from = strides_of(plan.has_real_input), to = strides_of(plan.has_real_output);
  if (plan.has_real_input) {
    pocketfft::r2c(shape, from, to, axes, true, static_cast<const T*>(in), static_cast<C*>(out), T(1), 1);
  } else if (plan.has_real_output) {
    pocketfft::c2r(shape, from, to, axes, false, static_cast<const C*>(in), static_cast<T*>(out), T(1), 1);
    std::memset(in, 0xff, plan.numbers_of(false) * sizeof(C));
  } else {
    pocketfft::c2c(shape, from, to, axes, is_forward, static_cast<const C*>(in), static_cast<C*>(out), T(1), 1);
  }
}

void execute(const PlanState& plan, void* in, void* out, int32_t direction) {
  require(plan.is_planned, kInvalidPlan, "the plan is not made yet");
  require(plan.device == current_device(), kInvalidValue, "a plan of another device than the current one");
  require(plan.stream && emulated::device_of_stream(plan.stream) == plan.device, kInvalidValue,
          "no stream, or a stream of another device");
  require(direction == kForward || direction == kInverse, kInvalidValue, "no direction");
  require(!plan.has_real_input || direction == kForward, kInvalidValue, "real numbers are transformed forward");
  require(!plan.has_real_output || direction == kInverse, kInvalidValue, "half a spectrum is transformed back");
  const size_t real = plan.is_double ? 8 : 4, complex = 2 * real;
  const auto check_side = [&](void* at, bool is_real, const char* what) {
    require(reinterpret_cast<uintptr_t>(at) % complex == 0, kUnaligned,
            std::string(what) + " is not aligned to complex numbers");
    emulated::require_memory(plan.device, at, plan.numbers_of(is_real), is_real ? real : complex, kInvalidValue, what);
  };
  check_side(in, plan.has_real_input, "the input");
  check_side(out, plan.has_real_output, "the output");
  require(in != out || (!plan.has_real_input && !plan.has_real_output), kInvalidValue,
          "a transform in place whose sides differ");
  if (plan.workspace_bytes > 0) {
    require(!plan.allocates && plan.workspace, kNoWorkspace, "no workspace");
    emulated::require_memory(plan.device, plan.workspace, plan.workspace_bytes, 1, kInvalidValue, "the workspace");
  }
  emulated::queue_call(plan.stream, [plan, in = emulated::inside(in), out = emulated::inside(out), direction] {
    if (plan.workspace_bytes > 0) std::memset(emulated::inside(plan.workspace), 0xff, plan.workspace_bytes);
    plan.is_double ? transform<double>(plan, in, out, direction == kForward)
                   : transform<float>(plan, in, out, direction == kForward);
  });
}

}  // namespace
}  // namespace tensord::cuda::cufft

using namespace tensord::cuda;
using namespace tensord::cuda::cufft;

#define F(RESULT, NAME, PARAMETERS) extern "C" [[gnu::visibility("default")]] RESULT NAME PARAMETERS;
TENSORD_CUFFT_FUNCTIONS(F)
#undef F

Status cufftGetVersion(int32_t* version) {
  *version = 12000;
  return kSuccess;
}
Status cufftCreate(Plan* plan) {
  return checked([&] {
    static Plan last = 0;
    *plan = ++last;
    plans()[*plan].device = current_device();
    return kSuccess;
  });
}
Status cufftDestroy(Plan plan) {
  return checked([&] {
    known(plan);
    plans().erase(plan);
    return kSuccess;
  });
}
Status cufftSetAutoAllocation(Plan plan, int32_t allocates) {
  return checked([&] {
    require(!known(plan).is_planned, kInvalidPlan, "the plan is made already");
    known(plan).allocates = allocates != 0;
    return kSuccess;
  });
}
Status cufftXtMakePlanMany(Plan plan, int32_t rank, long long* sizes, long long* in_sizes, long long, long long,
                           DataType in_type, long long* out_sizes, long long, long long, DataType out_type,
                           long long batches, size_t* workspace_bytes, DataType compute_type) {
  return checked([&] {
    require(!in_sizes && !out_sizes, kInvalidValue, "layouts that are not dense are not known here");
    make_plan(known(plan), rank, sizes, in_type, out_type, batches, compute_type);
    *workspace_bytes = known(plan).workspace_bytes;
    return kSuccess;
  });
}
Status cufftSetStream(Plan plan, StreamHandle stream) {
  return checked([&] {
    known(plan).stream = stream;
    return kSuccess;
  });
}
Status cufftSetWorkArea(Plan plan, void* workspace) {
  return checked([&] {
    known(plan).workspace = workspace;
    return kSuccess;
  });
}
Status cufftXtExec(Plan plan, void* in, void* out, int32_t direction) {
  return checked([&] {
    execute(known(plan), in, out, direction);
    return kSuccess;
  });
}
