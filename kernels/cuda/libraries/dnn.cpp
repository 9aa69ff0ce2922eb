// Convolutions by cuDNN. The same code calls the library and the tests' twin of it.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "core/tensor/dtype.h"
#include "kernels/cuda/libraries/cudnn_api.h"
#include "kernels/cuda/libraries/library.h"
#include "kernels/cuda/plugin/table.h"

namespace tensord::kernels {
namespace {

using namespace cuda;
using namespace cuda::cudnn;

constexpr size_t kMaxConvWorkspace = size_t{1} << 30, kMaxConvPlans = 4096;
constexpr int kAlgorithms = 10;

TENSORD_OPEN_LIBRARY(cudnn_library, TENSORD_CUDNN_FUNCTIONS, kFile)

Outcome dnn_outcome(const char* function, Status status) {
  if (status == kSuccess) return Outcome::kDone;
  std::string text = std::string(function) + ": " + cudnn_library().call.cudnnGetErrorString(status);
  return status == kAllocFailed ? no_memory_for_call(std::move(text)) : refuse_call(std::move(text));
}
// The outcome of calls, until one fails.
class DnnCalls {
 public:
  template <class... P, class... A>
  DnnCalls& operator()(const char* name, Status (*function)(P...), A... arguments) {
    if (outcome == Outcome::kDone) outcome = dnn_outcome(name, function(arguments...));
    return *this;
  }
  Outcome outcome = Outcome::kDone;
};
#define CALL_DNN(CALLS, NAME, ...) CALLS(#NAME, cudnn_library().call.NAME, __VA_ARGS__)

// A handle holds memory that calls of one stream use one after the other.
struct DnnHandle {
  std::mutex mutex;  // held while it is used
  Handle handle = nullptr;
};
DnnHandle& dnn_handle_of(StreamHandle stream) {
  static std::mutex mutex;
  static auto* const all = new std::map<std::pair<int, StreamHandle>, std::unique_ptr<DnnHandle>>;
  const std::lock_guard lock(mutex);
  std::unique_ptr<DnnHandle>& found = (*all)[{current_device(), stream}];
  if (!found) found = std::make_unique<DnnHandle>();
  return *found;
}

DataType dnn_type_of(int8_t dtype) {
  switch (static_cast<DType>(dtype)) {
    case DType::kFloat16: return kFloat16;
    case DType::kBFloat16: return kBFloat16;
    case DType::kFloat64: return kFloat64;
    default: return kFloat32;
  }
}

// The descriptors of a convolution.
class ConvDescriptors {
 public:
  ConvDescriptors() = default;
  ConvDescriptors(const ConvDescriptors&) = delete;
  ConvDescriptors& operator=(const ConvDescriptors&) = delete;
  ~ConvDescriptors() {
    const Functions& call = cudnn_library().call;
    if (image) call.cudnnDestroyTensorDescriptor(image);
    if (grid) call.cudnnDestroyTensorDescriptor(grid);
    if (weight) call.cudnnDestroyFilterDescriptor(weight);
    if (conv) call.cudnnDestroyConvolutionDescriptor(conv);
  }
  Outcome describe(const DnnConvJob& job) {
    DnnCalls calls;
    const DataType type = dnn_type_of(job.dtype);
    set_tensor(calls, image, job, job.image_channels, job.image);
    set_tensor(calls, grid, job, job.grid_channels, job.grid);
    CALL_DNN(calls, cudnnCreateFilterDescriptor, &weight);
    int32_t sizes[5] = {job.grid_channels, job.image_channels / job.groups};
    std::copy_n(job.kernel, job.spatial, sizes + 2);
    CALL_DNN(calls, cudnnSetFilterNdDescriptor, weight, type, kDense, job.spatial + 2, sizes);
    CALL_DNN(calls, cudnnCreateConvolutionDescriptor, &conv);
    CALL_DNN(calls, cudnnSetConvolutionNdDescriptor, conv, job.spatial, job.padding, job.stride, job.dilation,
             kCrossCorrelation, type == kFloat64 ? kFloat64 : kFloat32);
    CALL_DNN(calls, cudnnSetConvolutionGroupCount, conv, job.groups);
    CALL_DNN(calls, cudnnSetConvolutionMathType, conv,
             type == kFloat16 || type == kBFloat16 ? kTensorMath
             : type == kFloat64 || job.allows_tf32 ? kDefaultMath
                                                   : kFmaMath);
    return calls.outcome;
  }

  TensorDesc image = nullptr, grid = nullptr;
  FilterDesc weight = nullptr;
  ConvDesc conv = nullptr;

 private:
  static void set_tensor(DnnCalls& calls, TensorDesc& desc, const DnnConvJob& job, int channels, const int* spatial) {
    int32_t sizes[5] = {job.samples, channels}, strides[5];
    std::copy_n(spatial, job.spatial, sizes + 2);
    for (int d = job.spatial + 1, stride = 1; d >= 0; stride *= sizes[d--]) strides[d] = stride;
    CALL_DNN(calls, cudnnCreateTensorDescriptor, &desc);
    CALL_DNN(calls, cudnnSetTensorNdDescriptor, desc, dnn_type_of(job.dtype), job.spatial + 2, sizes, strides);
  }
};

struct ConvPlan {
  bool has_algorithm = false;
  int algorithm = 0;
  size_t workspace_bytes = 0;
};

// The fastest algorithm that gives the same bits each time.
Outcome ask_for_conv_plan(Handle handle, const DnnConvJob& job, ConvPlan& plan) {
  ConvDescriptors all;
  const Outcome outcome = all.describe(job);
  if (outcome != Outcome::kDone) return outcome;
  const Functions& call = cudnn_library().call;
  AlgorithmPerf found[kAlgorithms];
  int32_t count = 0;
  Status status = kSuccess;
  switch (job.result) {
    case ConvResult::kGrid:
      status = call.cudnnGetConvolutionForwardAlgorithm_v7(handle, all.image, all.weight, all.conv, all.grid,
                                                           kAlgorithms, &count, found);
      break;
    case ConvResult::kImage:
      status = call.cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, all.weight, all.grid, all.conv, all.image,
                                                                kAlgorithms, &count, found);
      break;
    case ConvResult::kWeight:
      status = call.cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, all.image, all.grid, all.conv, all.weight,
                                                                  kAlgorithms, &count, found);
      break;
  }
  if (is_not_supported(status)) return Outcome::kDone;
  if (status != kSuccess) return dnn_outcome("an algorithm for a convolution", status);
  for (int i = 0; i < count && !plan.has_algorithm; ++i) {
    const AlgorithmPerf& one = found[i];
    if (one.status == kSuccess && one.determinism == kDeterministic && one.workspace_bytes <= kMaxConvWorkspace)
      plan = {true, one.algorithm, one.workspace_bytes};
  }
  return Outcome::kDone;
}

// By what the choice depends on.
class ConvPlans {
 public:
  using Key = std::array<int, 27>;
  static Key key_of(const DnnConvJob& job) {
    Key key{current_device(), static_cast<int>(job.result), job.dtype,         job.spatial,    job.groups,
            job.samples,      job.image_channels,           job.grid_channels, job.allows_tf32};
    auto* to = key.data() + 9;
    for (const auto* part : {&job.image, &job.grid, &job.kernel, &job.stride, &job.padding, &job.dilation})
      to = std::copy_n(*part, 3, to);
    return key;
  }
  static ConvPlans& instance() {
    static auto* const plans = new ConvPlans;
    return *plans;
  }
  std::optional<ConvPlan> find(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto found = plans_.find(key);
    return found == plans_.end() ? std::nullopt : std::optional(found->second);
  }
  void keep(const Key& key, const ConvPlan& plan) {
    const std::lock_guard lock(mutex_);
    if (plans_.size() >= kMaxConvPlans) plans_.clear();
    plans_[key] = plan;
  }

 private:
  std::mutex mutex_;
  std::map<Key, ConvPlan> plans_;
};

const char* why_no_dnn() { return cudnn_library().problem.c_str(); }

Outcome plan_convolution(DnnConvJob& job, StreamHandle stream) {
  const ConvPlans::Key key = ConvPlans::key_of(job);
  std::optional<ConvPlan> plan = ConvPlans::instance().find(key);
  if (!plan) {
    DnnHandle& own = dnn_handle_of(stream);
    const std::lock_guard lock(own.mutex);
    DnnCalls calls;
    if (!own.handle) CALL_DNN(calls, cudnnCreate, &own.handle);
    plan.emplace();
    if (calls.outcome == Outcome::kDone) calls.outcome = ask_for_conv_plan(own.handle, job, *plan);
    if (calls.outcome != Outcome::kDone) return calls.outcome;
    ConvPlans::instance().keep(key, *plan);
  }
  job.has_algorithm = plan->has_algorithm;
  job.algorithm = plan->algorithm;
  job.workspace_bytes = plan->workspace_bytes;
  return Outcome::kDone;
}

Outcome dnn_convolution(const DnnConvJob& job, StreamHandle stream) {
  ConvDescriptors all;
  DnnCalls calls;
  calls.outcome = all.describe(job);
  DnnHandle& own = dnn_handle_of(stream);
  const std::lock_guard lock(own.mutex);
  if (!own.handle) CALL_DNN(calls, cudnnCreate, &own.handle);
  CALL_DNN(calls, cudnnSetStream, own.handle, stream);
  // Both of the type of computing.
  const double wide[] = {1, 0};
  const float narrow[] = {1, 0};
  const bool is_double = static_cast<DType>(job.dtype) == DType::kFloat64;
  const void* const alpha = is_double ? static_cast<const void*>(&wide[0]) : &narrow[0];
  const void* const beta = is_double ? static_cast<const void*>(&wide[1]) : &narrow[1];
  const auto written = [](DeviceAddress address) { return const_cast<void*>(address.at); };
  void* const workspace = written(job.workspace);
  switch (job.result) {
    case ConvResult::kGrid:
      CALL_DNN(calls, cudnnConvolutionForward, own.handle, alpha, all.image, job.image_at.at, all.weight,
               job.weight_at.at, all.conv, job.algorithm, workspace, job.workspace_bytes, beta, all.grid,
               written(job.grid_at));
      break;
    case ConvResult::kImage:
      CALL_DNN(calls, cudnnConvolutionBackwardData, own.handle, alpha, all.weight, job.weight_at.at, all.grid,
               job.grid_at.at, all.conv, job.algorithm, workspace, job.workspace_bytes, beta, all.image,
               written(job.image_at));
      break;
    case ConvResult::kWeight:
      CALL_DNN(calls, cudnnConvolutionBackwardFilter, own.handle, alpha, all.image, job.image_at.at, all.grid,
               job.grid_at.at, all.conv, job.algorithm, workspace, job.workspace_bytes, beta, all.weight,
               written(job.weight_at));
      break;
  }
  return calls.outcome;
}

}  // namespace

void add_dnn(LibraryTable& table) {
  table.why_no_dnn = why_no_dnn;
  table.plan_convolution = plan_convolution;
  table.convolution = dnn_convolution;
}

}  // namespace tensord::kernels
