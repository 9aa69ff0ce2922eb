// cuDNN's functions of convolutions for the emulated devices. They refuse what NVIDIA's documentation forbids, and say
// why by cudnnGetErrorString; sums are computed in double.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "core/tensor/half.h"
#include "kernels/cuda/libraries/cudnn_api.h"
#include "kernels/cuda/libraries/library.h"
#include "tests/cuda/emulated/libraries.h"

namespace tensord::cuda::cudnn {

struct DnnContext {
  int device;
  StreamHandle stream = nullptr;
};
// Samples and channels, and three dimensions of space: of two, the first has size 1.
struct TensorDescData {
  DataType type = -1;
  int dims = 0;
  std::array<int, 5> sizes{};
};
struct FilterDescData {
  DataType type = -1;
  int dims = 0;
  std::array<int, 5> sizes{};
};
struct ConvDescData {
  int spatial = 0;
  std::array<int, 3> padding{}, stride{}, dilation{};
  DataType compute = -1;
  int groups = 1, math = kDefaultMath;
};

namespace {

using emulated::require;

constexpr int kForwardAlgorithm = 1, kDataAlgorithm = 1, kFilterAlgorithm = 1;

emulated::Objects& objects() {
  static auto* const all = new emulated::Objects;
  return *all;
}
template <class T>
T* known(T* object, const char* what) {
  return objects().known(object, kBadParam, what);
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
    case kFloat64: return 8;
    case kFloat32: return 4;
    case kFloat16:
    case kBFloat16: return 2;
    default: throw emulated::Refused{kBadParam, "an element type that is not known here"};
  }
}
std::array<int, 5> with_space(int dims, const int32_t* sizes) {
  require(dims == 4 || dims == 5, kBadParam, "not four or five dimensions");
  for (int d = 0; d < dims; ++d) require(sizes[d] > 0, kBadParam, "a size that is not positive");
  std::array<int, 5> out{sizes[0], sizes[1], 1, 1, 1};
  std::copy_n(sizes + 2, dims - 2, out.end() - (dims - 2));
  return out;
}
std::array<int, 3> with_space(int spatial, const int32_t* values, int otherwise) {
  std::array<int, 3> out{otherwise, otherwise, otherwise};
  std::copy_n(values, spatial, out.end() - spatial);
  return out;
}
size_t count_of(const std::array<int, 5>& sizes) {
  size_t count = 1;
  for (const int size : sizes) count *= static_cast<size_t>(size);
  return count;
}

// A convolution whose descriptors fit each other.
struct Problem {
  std::array<int, 5> image, weight, grid;
  ConvDescData conv;
  DataType type;
};
Problem problem(TensorDesc image, FilterDesc weight, ConvDesc conv, TensorDesc grid) {
  known(image, "the image's descriptor"), known(weight, "the weight's descriptor");
  known(conv, "the convolution's descriptor"), known(grid, "the grid's descriptor");
  const Problem p{image->sizes, weight->sizes, grid->sizes, *conv, image->type};
  require(weight->type == p.type && grid->type == p.type, kBadParam, "tensors of different types");
  require(conv->compute == (p.type == kFloat64 ? kFloat64 : kFloat32), kNotSupported,
          "a type of computing that does not fit the tensors");
  require(image->dims == conv->spatial + 2 && weight->dims == image->dims && grid->dims == image->dims, kBadParam,
          "descriptors of different numbers of dimensions");
  const int groups = conv->groups;
  require(groups >= 1 && p.image[1] == p.weight[1] * groups, kBadParam, "the image's channels are not the weight's");
  require(p.grid[1] == p.weight[0] && p.weight[0] % groups == 0, kBadParam, "the grid's channels are not the weight's");
  require(p.grid[0] == p.image[0], kBadParam, "different numbers of samples");
  for (size_t d = 0; d < 3; ++d) {
    const int room = p.image[2 + d] + 2 * conv->padding[d] - (conv->dilation[d] * (p.weight[2 + d] - 1) + 1);
    require(room >= 0 && room / conv->stride[d] + 1 == p.grid[2 + d], kBadParam,
            "the grid has another size than the convolution gives");
  }
  return p;
}

size_t workspace_of(const Problem& p) { return count_of(p.weight) < 16 ? 0 : 512 + 16 * count_of(p.weight); }

void give_algorithms(Handle handle, const Problem& p, int algorithm, int wanted, int* count, AlgorithmPerf* results) {
  known(handle, "the handle");
  require(wanted >= 1 && count && results, kBadParam, "no room for an algorithm");
  // The first is one that the caller does not want.
  *count = std::min(wanted, 2);
  results[0] = {0, kSuccess, 1, 0, 0, p.conv.math, {}};
  if (*count == 2) results[1] = {algorithm, kSuccess, 2, workspace_of(p), kDeterministic, p.conv.math, {}};
}

struct Memory {
  const void* image;
  const void* weight;
  const void* grid;
};
void check_call(Handle handle, const Problem& p, const Memory& memory, int algorithm, int expected, void* workspace,
                size_t workspace_bytes) {
  known(handle, "the handle");
  require(handle->device == current_device(), kBadParam, "a handle of another device than the current one");
  require(handle->stream && emulated::device_of_stream(handle->stream) == handle->device, kBadParam,
          "no stream, or a stream of another device");
  require(algorithm == expected, kNotSupported, "an algorithm that is not deterministic, or not known");
  const size_t size = size_of_type(p.type);
  emulated::require_memory(handle->device, memory.image, count_of(p.image), size, kBadParam, "the image");
  emulated::require_memory(handle->device, memory.weight, count_of(p.weight), size, kBadParam, "the weight");
  emulated::require_memory(handle->device, memory.grid, count_of(p.grid), size, kBadParam, "the grid");
  require(workspace_bytes >= workspace_of(p), kBadParam, "the workspace is smaller than the algorithm needs");
  if (workspace_bytes > 0) {
    emulated::require_memory(handle->device, workspace, workspace_bytes, 1, kBadParam, "the workspace");
    require(reinterpret_cast<uintptr_t>(workspace) % 256 == 0, kBadParam, "the workspace is not aligned to 256");
  }
}

std::vector<double> widened(DataType type, const void* from, size_t count) {
  std::vector<double> out(count);
  for (size_t i = 0; i < count; ++i) {
    switch (type) {
      case kFloat64: out[i] = static_cast<const double*>(from)[i]; break;
      case kFloat32: out[i] = static_cast<const float*>(from)[i]; break;
      case kFloat16: out[i] = static_cast<float>(static_cast<const Half*>(from)[i]); break;
      default: out[i] = static_cast<float>(static_cast<const BFloat16*>(from)[i]);
    }
  }
  return out;
}
void narrow(DataType type, const std::vector<double>& from, void* to) {
  for (size_t i = 0; i < from.size(); ++i) {
    switch (type) {
      case kFloat64: static_cast<double*>(to)[i] = from[i]; break;
      case kFloat32: static_cast<float*>(to)[i] = static_cast<float>(from[i]); break;
      case kFloat16: static_cast<Half*>(to)[i] = Half(static_cast<float>(from[i])); break;
      default: static_cast<BFloat16*>(to)[i] = BFloat16(static_cast<float>(from[i]));
    }
  }
}

// Calls term(image, weight, grid) with the places of each product of the convolution.
template <class Term>
class Terms {
 public:
  Terms(const Problem& p, const Term& term) : p_(p), term_(term) {}
  void run() const {
    const int groups = p_.conv.groups, outs = p_.weight[0] / groups;
    for (int sample = 0; sample < p_.image[0]; ++sample) {
      for (int out = 0; out < p_.weight[0]; ++out) {
        for (int in = 0; in < p_.weight[1]; ++in)
          run_planes(place(p_.image, sample, out / outs * p_.weight[1] + in), place(p_.weight, out, in),
                     place(p_.grid, sample, out));
      }
    }
  }

 private:
  static size_t place(const std::array<int, 5>& sizes, int first, int second) {
    return (static_cast<size_t>(first) * static_cast<size_t>(sizes[1]) + static_cast<size_t>(second)) *
           static_cast<size_t>(sizes[2]) * static_cast<size_t>(sizes[3]) * static_cast<size_t>(sizes[4]);
  }
  // Of the image, in dimension d; negative or too large: padding.
  int position(size_t d, int grid, int kernel) const {
    return grid * p_.conv.stride[d] - p_.conv.padding[d] + kernel * p_.conv.dilation[d];
  }
  void run_planes(size_t image, size_t weight, size_t grid) const {
    const int depth = p_.weight[2], height = p_.weight[3], width = p_.weight[4];
    for (int z = 0; z < p_.grid[2]; ++z) {
      for (int y = 0; y < p_.grid[3]; ++y) {
        for (int x = 0; x < p_.grid[4]; ++x, ++grid) {
          for (int k = 0; k < depth * height * width; ++k) {
            const int at[] = {position(0, z, k / (height * width)), position(1, y, k / width % height),
                              position(2, x, k % width)};
            if (at[0] < 0 || at[1] < 0 || at[2] < 0 || at[0] >= p_.image[2] || at[1] >= p_.image[3] ||
                at[2] >= p_.image[4])
              continue;
            const int to = (at[0] * p_.image[3] + at[1]) * p_.image[4] + at[2];
            term_(image + static_cast<size_t>(to), weight + static_cast<size_t>(k), grid);
          }
        }
      }
    }
  }

  const Problem& p_;
  const Term& term_;
};
template <class Term>
void for_each_term(const Problem& p, const Term& term) {
  Terms<Term>(p, term).run();
}

// With alpha = 1 and beta = 0.
void check_factors(DataType type, const void* alpha, const void* beta) {
  const double a = widened(type == kFloat64 ? kFloat64 : kFloat32, alpha, 1)[0],
               b = widened(type == kFloat64 ? kFloat64 : kFloat32, beta, 1)[0];
  require(a == 1 && b == 0, kNotSupported, "factors that are not known here");
}

enum class Wanted { kGrid, kImage, kWeight };
void queue_convolution(Handle handle, const Problem& p, const Memory& memory, Wanted wanted, void* workspace,
                       size_t workspace_bytes) {
  const auto reached = [](const void* at) { return emulated::inside(at); };
  emulated::queue_call(handle->stream, [=] {
    if (workspace_bytes > 0) std::memset(reached(workspace), 0xff, workspace_bytes);
    // What kDefaultMath allows.
    const bool is_tf32 = p.type == kFloat32 && p.conv.math == kDefaultMath;
    const auto read = [&](Wanted what, const void* at, const std::array<int, 5>& sizes) {
      if (wanted == what) return std::vector<double>(count_of(sizes));
      std::vector<double> out = widened(p.type, reached(at), count_of(sizes));
      if (is_tf32) std::ranges::transform(out, out.begin(), emulated::rounded_to_tf32);
      return out;
    };
    std::vector<double> image = read(Wanted::kImage, memory.image, p.image),
                        weight = read(Wanted::kWeight, memory.weight, p.weight),
                        grid = read(Wanted::kGrid, memory.grid, p.grid);
    switch (wanted) {
      case Wanted::kGrid:
        for_each_term(p, [&](size_t i, size_t w, size_t g) { grid[g] += image[i] * weight[w]; });
        return narrow(p.type, grid, reached(memory.grid));
      case Wanted::kImage:
        for_each_term(p, [&](size_t i, size_t w, size_t g) { image[i] += grid[g] * weight[w]; });
        return narrow(p.type, image, reached(memory.image));
      case Wanted::kWeight:
        for_each_term(p, [&](size_t i, size_t w, size_t g) { weight[w] += grid[g] * image[i]; });
        return narrow(p.type, weight, reached(memory.weight));
    }
  });
}

}  // namespace
}  // namespace tensord::cuda::cudnn

using namespace tensord::cuda;
using namespace tensord::cuda::cudnn;

#define F(RESULT, NAME, PARAMETERS) extern "C" [[gnu::visibility("default")]] RESULT NAME PARAMETERS;
TENSORD_CUDNN_FUNCTIONS(F)
#undef F

const char* cudnnGetErrorString(Status) { return emulated::refusal().c_str(); }
size_t cudnnGetVersion() { return 91900; }
Status cudnnCreate(Handle* handle) {
  return checked([&] { *handle = objects().make<DnnContext>(current_device()); });
}
Status cudnnSetStream(Handle handle, StreamHandle stream) {
  return checked([&] { known(handle, "the handle")->stream = stream; });
}
Status cudnnCreateTensorDescriptor(TensorDesc* desc) {
  return checked([&] { *desc = objects().make<TensorDescData>(); });
}
Status cudnnSetTensorNdDescriptor(TensorDesc desc, DataType type, int32_t dims, const int32_t* sizes,
                                  const int32_t* strides) {
  return checked([&] {
    *known(desc, "a descriptor") = {type, dims, with_space(dims, sizes)};
    size_of_type(type);
    for (int d = dims - 1, dense = 1; d >= 0; dense *= sizes[d--])
      require(strides[d] == dense, kNotSupported, "strides that are not dense are not known here");
  });
}
Status cudnnDestroyTensorDescriptor(TensorDesc desc) {
  return checked([&] { objects().destroy(desc, kBadParam, "a descriptor"); });
}
Status cudnnCreateFilterDescriptor(FilterDesc* desc) {
  return checked([&] { *desc = objects().make<FilterDescData>(); });
}
Status cudnnSetFilterNdDescriptor(FilterDesc desc, DataType type, int32_t format, int32_t dims, const int32_t* sizes) {
  return checked([&] {
    require(format == kDense, kNotSupported, "a format that is not known here");
    size_of_type(type);
    *known(desc, "a descriptor") = {type, dims, with_space(dims, sizes)};
  });
}
Status cudnnDestroyFilterDescriptor(FilterDesc desc) {
  return checked([&] { objects().destroy(desc, kBadParam, "a descriptor"); });
}
Status cudnnCreateConvolutionDescriptor(ConvDesc* desc) {
  return checked([&] { *desc = objects().make<ConvDescData>(); });
}
Status cudnnSetConvolutionNdDescriptor(ConvDesc desc, int32_t spatial, const int32_t* padding, const int32_t* stride,
                                       const int32_t* dilation, int32_t mode, DataType compute) {
  return checked([&] {
    require(spatial == 2 || spatial == 3, kBadParam, "not two or three dimensions of space");
    require(mode == kCrossCorrelation, kNotSupported, "a mode that is not known here");
    for (int d = 0; d < spatial; ++d)
      require(padding[d] >= 0 && stride[d] > 0 && dilation[d] > 0, kBadParam,
              "a padding, stride or dilation that is out of range");
    ConvDescData& to = *known(desc, "a descriptor");
    to.spatial = spatial;
    to.padding = with_space(spatial, padding, 0);
    to.stride = with_space(spatial, stride, 1);
    to.dilation = with_space(spatial, dilation, 1);
    to.compute = compute;
  });
}
Status cudnnSetConvolutionGroupCount(ConvDesc desc, int32_t groups) {
  return checked([&] {
    require(groups >= 1, kBadParam, "no group");
    known(desc, "a descriptor")->groups = groups;
  });
}
Status cudnnSetConvolutionMathType(ConvDesc desc, int32_t math) {
  return checked([&] { known(desc, "a descriptor")->math = math; });
}
Status cudnnDestroyConvolutionDescriptor(ConvDesc desc) {
  return checked([&] { objects().destroy(desc, kBadParam, "a descriptor"); });
}

Status cudnnGetConvolutionForwardAlgorithm_v7(Handle handle, TensorDesc x, FilterDesc w, ConvDesc conv, TensorDesc y,
                                              int32_t wanted, int32_t* count, AlgorithmPerf* results) {
  return checked([&] { give_algorithms(handle, problem(x, w, conv, y), kForwardAlgorithm, wanted, count, results); });
}
Status cudnnGetConvolutionBackwardDataAlgorithm_v7(Handle handle, FilterDesc w, TensorDesc dy, ConvDesc conv,
                                                   TensorDesc dx, int32_t wanted, int32_t* count,
                                                   AlgorithmPerf* results) {
  return checked([&] { give_algorithms(handle, problem(dx, w, conv, dy), kDataAlgorithm, wanted, count, results); });
}
Status cudnnGetConvolutionBackwardFilterAlgorithm_v7(Handle handle, TensorDesc x, TensorDesc dy, ConvDesc conv,
                                                     FilterDesc dw, int32_t wanted, int32_t* count,
                                                     AlgorithmPerf* results) {
  return checked([&] { give_algorithms(handle, problem(x, dw, conv, dy), kFilterAlgorithm, wanted, count, results); });
}

Status cudnnConvolutionForward(Handle handle, const void* alpha, TensorDesc x_desc, const void* x, FilterDesc w_desc,
                               const void* w, ConvDesc conv, int32_t algorithm, void* workspace, size_t workspace_bytes,
                               const void* beta, TensorDesc y_desc, void* y) {
  return checked([&] {
    const Problem p = problem(x_desc, w_desc, conv, y_desc);
    check_factors(p.type, alpha, beta);
    check_call(handle, p, {x, w, y}, algorithm, kForwardAlgorithm, workspace, workspace_bytes);
    queue_convolution(handle, p, {x, w, y}, Wanted::kGrid, workspace, workspace_bytes);
  });
}
Status cudnnConvolutionBackwardData(Handle handle, const void* alpha, FilterDesc w_desc, const void* w,
                                    TensorDesc dy_desc, const void* dy, ConvDesc conv, int32_t algorithm,
                                    void* workspace, size_t workspace_bytes, const void* beta, TensorDesc dx_desc,
                                    void* dx) {
  return checked([&] {
    const Problem p = problem(dx_desc, w_desc, conv, dy_desc);
    check_factors(p.type, alpha, beta);
    check_call(handle, p, {dx, w, dy}, algorithm, kDataAlgorithm, workspace, workspace_bytes);
    queue_convolution(handle, p, {dx, w, dy}, Wanted::kImage, workspace, workspace_bytes);
  });
}
Status cudnnConvolutionBackwardFilter(Handle handle, const void* alpha, TensorDesc x_desc, const void* x,
                                      TensorDesc dy_desc, const void* dy, ConvDesc conv, int32_t algorithm,
                                      void* workspace, size_t workspace_bytes, const void* beta, FilterDesc dw_desc,
                                      void* dw) {
  return checked([&] {
    const Problem p = problem(x_desc, dw_desc, conv, dy_desc);
    check_factors(p.type, alpha, beta);
    check_call(handle, p, {x, dw, dy}, algorithm, kFilterAlgorithm, workspace, workspace_bytes);
    queue_convolution(handle, p, {x, dw, dy}, Wanted::kWeight, workspace, workspace_bytes);
  });
}
