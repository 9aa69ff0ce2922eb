// cuBLASLt's functions for the emulated devices. They refuse what NVIDIA's documentation forbids, and say why by
// cublasLtGetStatusString; products are computed in double.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "core/tensor/half.h"
#include "kernels/cuda/libraries/cublaslt_api.h"
#include "kernels/cuda/libraries/library.h"
#include "tests/cuda/emulated/libraries.h"

namespace tensord::cuda::cublaslt {

struct LtContext {
  int device;
};
struct MatmulDescData {
  ComputeKind compute;
  DataType scale;
  int32_t transpose_a = kOperationN, transpose_b = kOperationN;
  uint32_t epilogue = kEpilogueDefault;
  const void* bias = nullptr;
};
struct LayoutData {
  DataType type;
  uint64_t rows, columns;
  int64_t ld;
  int32_t batches = 1;
  int64_t batch_stride = 0;
};
struct PreferenceData {
  uint64_t max_workspace = 0;
  uint32_t reduction = 7;
  uint32_t alignments[4] = {256, 256, 256, 256};
};

namespace {

using emulated::require;

emulated::Objects& objects() {
  static auto* const all = new emulated::Objects;
  return *all;
}
template <class T>
T* known(T* object, const char* what) {
  return objects().known(object, kInvalidValue, what);
}
template <class T, class... A>
Status make(T** out, A... arguments) {
  *out = objects().make<T>(arguments...);
  return kSuccess;
}
template <class T>
Status destroy(T* object, const char* what) {
  objects().destroy(object, kInvalidValue, what);
  return kSuccess;
}
template <class Fn>
Status checked(const Fn& fn) {
  return emulated::checked<Status>(fn);
}

template <class T>
void set(T& to, const void* value, size_t bytes) {
  require(value && bytes == sizeof(T), kInvalidValue, "an attribute of another size");
  std::memcpy(&to, value, sizeof(T));
}

size_t size_of_type(DataType type) {
  switch (type) {
    case kFloat64: return 8;
    case kFloat32: return 4;
    case kFloat16:
    case kBFloat16: return 2;
    default: throw emulated::Refused{kNotSupported, "an element type that is not known here"};
  }
}

// A layout as a descriptor uses it.
struct Operand {
  const char* name;
  const LayoutData* layout;
  uint64_t rows, columns;  // after its transposition
  bool is_transposed;
  size_t size() const { return size_of_type(layout->type); }
  // From the first to behind the last element of all batches.
  size_t extent() const {
    return static_cast<size_t>((layout->batches - 1) * layout->batch_stride) +
           (layout->columns - 1) * static_cast<size_t>(layout->ld) + layout->rows;
  }
};
Operand operand(const char* name, MatrixLayout layout, int32_t operation) {
  known(layout, name);
  require(operation == kOperationN || operation == kOperationT, kInvalidValue, "an operation that is not N or T");
  require(layout->rows > 0 && layout->columns > 0, kInvalidValue, std::string(name) + " has no elements");
  require(layout->ld >= static_cast<int64_t>(layout->rows), kInvalidValue,
          std::string(name) + "'s leading dimension is less than its rows");
  require(layout->batches >= 1, kInvalidValue, std::string(name) + " has no batches");
  const bool is_transposed = operation == kOperationT;
  return {name, layout, is_transposed ? layout->columns : layout->rows, is_transposed ? layout->rows : layout->columns,
          is_transposed};
}

struct Problem {
  Operand a, b, c, d;
  uint64_t k() const { return a.columns; }
  // What an algorithm was chosen for.
  uint64_t hash(const MatmulDescData& desc) const {
    uint64_t out = static_cast<uint64_t>(desc.compute) * 31 + desc.epilogue;
    for (const Operand& x : {a, b, c, d}) {
      for (const uint64_t part : {static_cast<uint64_t>(x.layout->type), x.rows, x.columns,
                                  static_cast<uint64_t>(x.layout->ld), static_cast<uint64_t>(x.layout->batches),
                                  static_cast<uint64_t>(x.layout->batch_stride), uint64_t{x.is_transposed}})
        out = (out ^ part) * 0x9e3779b97f4a7c15ull;
    }
    return out;
  }
};

void check_types(const MatmulDescData& desc, const Problem& p) {
  const DataType type = p.a.layout->type;
  for (const Operand& x : {p.b, p.c, p.d})
    require(x.layout->type == type, kNotSupported, std::string(x.name) + " has another type than A");
  const bool is_double = type == kFloat64;
  require(
      desc.compute == (is_double ? kCompute64F : kCompute32F) || (desc.compute == kCompute32FTf32 && type == kFloat32),
      kNotSupported, "a type of computing that does not fit the matrices");
  require(desc.scale == (is_double ? kFloat64 : kFloat32), kNotSupported, "a type of alpha that does not fit");
}

Problem problem(MatmulDesc desc, MatrixLayout a, MatrixLayout b, MatrixLayout c, MatrixLayout d) {
  known(desc, "the product's descriptor");
  const Problem p{operand("A", a, desc->transpose_a), operand("B", b, desc->transpose_b), operand("C", c, kOperationN),
                  operand("D", d, kOperationN)};
  check_types(*desc, p);
  require(p.a.columns == p.b.rows, kInvalidValue, "A's columns are not B's rows");
  for (const Operand& x : {p.c, p.d})
    require(x.rows == p.a.rows && x.columns == p.b.columns, kInvalidValue, std::string(x.name) + " has other sizes");
  for (const Operand& x : {p.a, p.b, p.c, p.d})
    require(x.layout->batches == p.d.layout->batches, kInvalidValue, "batches of different numbers");
  const LayoutData& out = *p.d.layout;
  // One of the two strides passes over all of the other's elements.
  const auto matrix = static_cast<int64_t>((out.columns - 1) * static_cast<uint64_t>(out.ld) + out.rows);
  const int64_t rows_of_all = (out.batches - 1) * out.batch_stride + static_cast<int64_t>(out.rows);
  require(out.batches == 1 || out.batch_stride >= matrix ||
              (out.batch_stride >= static_cast<int64_t>(out.rows) && rows_of_all <= out.ld),
          kInvalidValue, "batches of D that overlap");
  const uint32_t activation = desc->epilogue & ~kEpilogueBias;
  require(desc->epilogue == kEpilogueDefault || activation == kEpilogueRelu || activation == kEpilogueGelu ||
              desc->epilogue == kEpilogueBias,
          kNotSupported, "another epilogue");
  require(!(desc->epilogue & kEpilogueBias) || desc->bias, kInvalidValue, "an epilogue with a bias, and no bias");
  return p;
}

// Products of many terms have room for sums of parts of them.
size_t workspace_for(const Problem& p) { return p.k() < 24 ? 0 : 256 * (1 + p.k() % 5); }

Status get_heuristic(Handle handle, MatmulDesc desc, MatrixLayout a, MatrixLayout b, MatrixLayout c, MatrixLayout d,
                     Preference preference, int wanted, HeuristicResult* results, int* count) {
  known(handle, "the handle");
  known(preference, "the preference");
  const Problem p = problem(desc, a, b, c, d);
  require(wanted >= 1 && results && count, kInvalidValue, "no room for an algorithm");
  const size_t workspace = workspace_for(p) > preference->max_workspace ? 0 : workspace_for(p);
  const auto& aligned = preference->alignments;
  results[0] = {};
  results[0].algorithm = {{0xa190, p.hash(*desc), aligned[0], aligned[1], aligned[2], aligned[3], workspace, 0}};
  results[0].workspace_bytes = workspace;
  *count = 1;
  return kSuccess;
}

void check_addresses(int device, const Problem& p, const void* const* addresses, const Algorithm& algorithm) {
  const Operand* const operands[] = {&p.a, &p.b, &p.c, &p.d};
  for (int i = 0; i < 4; ++i) {
    const Operand& x = *operands[i];
    emulated::require_memory(device, addresses[i], x.extent(), x.size(), kInvalidValue, x.name);
    require(reinterpret_cast<uintptr_t>(addresses[i]) % algorithm.words[2 + i] == 0, kInvalidValue,
            std::string(x.name) + " is less aligned than the algorithm needs");
  }
}

double load(DataType type, const void* at, size_t index) {
  switch (type) {
    case kFloat64: return static_cast<const double*>(at)[index];
    case kFloat32: return static_cast<const float*>(at)[index];
    case kFloat16: return static_cast<float>(static_cast<const Half*>(at)[index]);
    default: return static_cast<float>(static_cast<const BFloat16*>(at)[index]);
  }
}
void store(DataType type, void* at, size_t index, double value) {
  switch (type) {
    case kFloat64: static_cast<double*>(at)[index] = value; break;
    case kFloat32: static_cast<float*>(at)[index] = static_cast<float>(value); break;
    case kFloat16: static_cast<Half*>(at)[index] = Half(static_cast<float>(value)); break;
    default: static_cast<BFloat16*>(at)[index] = BFloat16(static_cast<float>(value));
  }
}

// Column by column, widened; in TF32 rounded first.
std::vector<double> widened(const Operand& x, const void* from, int64_t batch, bool is_tf32) {
  std::vector<double> out(x.rows * x.columns);
  const auto start = static_cast<size_t>(batch * x.layout->batch_stride), ld = static_cast<size_t>(x.layout->ld);
  for (size_t column = 0; column < x.columns; ++column) {
    for (size_t row = 0; row < x.rows; ++row)
      out[column * x.rows + row] =
          load(x.layout->type, from, start + (x.is_transposed ? row * ld + column : column * ld + row));
  }
  if (is_tf32) std::ranges::transform(out, out.begin(), emulated::rounded_to_tf32);
  return out;
}

// A product with what its descriptors said when it was queued.
struct Work {
  Problem p;
  LayoutData layouts[4];
  uint32_t epilogue;
  bool is_tf32;
  double alpha, beta;
  const void *a, *b, *c, *bias;
  void* d;
  void* workspace;
  size_t workspace_bytes;

  void operator()() {
    p.a.layout = &layouts[0], p.b.layout = &layouts[1], p.c.layout = &layouts[2], p.d.layout = &layouts[3];
    if (workspace_bytes) std::memset(workspace, 0xff, workspace_bytes);
    for (int64_t batch = 0; batch < p.d.layout->batches; ++batch) run(batch);
  }
  void run(int64_t batch) const {
    const std::vector<double> left = widened(p.a, a, batch, is_tf32), right = widened(p.b, b, batch, is_tf32);
    std::vector<double> sums(p.d.rows);
    for (size_t column = 0; column < p.d.columns; ++column) {
      std::ranges::fill(sums, 0);
      for (size_t i = 0; i < p.k(); ++i) {
        const double factor = right[column * p.k() + i];
        const double* const terms = left.data() + i * p.d.rows;
        for (size_t row = 0; row < p.d.rows; ++row) sums[row] += terms[row] * factor;
      }
      for (size_t row = 0; row < p.d.rows; ++row) finish(batch, column, row, sums[row]);
    }
  }
  void finish(int64_t batch, size_t column, size_t row, double sum) const {
    const auto place = [&](const LayoutData& x) {
      return static_cast<size_t>(batch * x.batch_stride) + column * static_cast<size_t>(x.ld) + row;
    };
    double value = alpha * sum;
    if (beta != 0) value += beta * load(layouts[2].type, c, place(layouts[2]));
    if (bias) value += load(layouts[3].type, bias, row);
    if (epilogue & kEpilogueRelu) value = value > 0 || value != value ? value : 0;
    if (epilogue & kEpilogueGelu)
      value = value / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (value + 0.044715 * value * value * value)));
    store(layouts[3].type, d, place(layouts[3]), value);
  }
};

double number_at(DataType type, const void* at) { return load(type, at, 0); }

}  // namespace
}  // namespace tensord::cuda::cublaslt

using namespace tensord;
using namespace tensord::cuda;
using namespace tensord::cuda::cublaslt;

#define EXPORTED extern "C" [[gnu::visibility("default")]]

// As the callers declare them.
#define F(RESULT, NAME, PARAMETERS) EXPORTED RESULT NAME PARAMETERS;
TENSORD_CUBLASLT_FUNCTIONS(F)
#undef F

const char* cublasLtGetStatusString(Status) { return emulated::refusal().c_str(); }
size_t cublasLtGetVersion() { return 130100; }
Status cublasLtCreate(Handle* handle) {
  return checked([&] { return make(handle, current_device()); });
}
Status cublasLtMatmulDescCreate(MatmulDesc* desc, ComputeKind compute, DataType scale) {
  return checked([&] { return make(desc, compute, scale); });
}
Status cublasLtMatmulDescDestroy(MatmulDesc desc) {
  return checked([&] { return destroy(desc, "a descriptor"); });
}
Status cublasLtMatmulDescSetAttribute(MatmulDesc desc, Attribute attribute, const void* value, size_t bytes) {
  return checked([&] {
    known(desc, "a descriptor");
    switch (attribute) {
      case kTransposeA: set(desc->transpose_a, value, bytes); break;
      case kTransposeB: set(desc->transpose_b, value, bytes); break;
      case kEpilogue: set(desc->epilogue, value, bytes); break;
      case kBiasPointer: set(desc->bias, value, bytes); break;
      default: require(false, kInvalidValue, "an attribute that is not known here");
    }
    return kSuccess;
  });
}
Status cublasLtMatrixLayoutCreate(MatrixLayout* layout, DataType type, uint64_t rows, uint64_t columns, int64_t ld) {
  return checked([&] { return make(layout, type, rows, columns, ld); });
}
Status cublasLtMatrixLayoutDestroy(MatrixLayout layout) {
  return checked([&] { return destroy(layout, "a layout"); });
}
Status cublasLtMatrixLayoutSetAttribute(MatrixLayout layout, Attribute attribute, const void* value, size_t bytes) {
  return checked([&] {
    known(layout, "a layout");
    switch (attribute) {
      case kBatchCount: set(layout->batches, value, bytes); break;
      case kBatchStride: set(layout->batch_stride, value, bytes); break;
      default: require(false, kInvalidValue, "an attribute that is not known here");
    }
    return kSuccess;
  });
}
Status cublasLtMatmulPreferenceCreate(Preference* preference) {
  return checked([&] { return make(preference); });
}
Status cublasLtMatmulPreferenceDestroy(Preference preference) {
  return checked([&] { return destroy(preference, "a preference"); });
}
Status cublasLtMatmulPreferenceSetAttribute(Preference preference, Attribute attribute, const void* value,
                                            size_t bytes) {
  return checked([&] {
    known(preference, "a preference");
    if (attribute == kMaxWorkspace) {
      set(preference->max_workspace, value, bytes);
    } else if (attribute == kReductionMask) {
      set(preference->reduction, value, bytes);
    } else {
      require(attribute >= kAlignmentA && attribute <= kAlignmentD, kInvalidValue,
              "an attribute that is not known here");
      set(preference->alignments[attribute - kAlignmentA], value, bytes);
    }
    return kSuccess;
  });
}
Status cublasLtMatmulAlgoGetHeuristic(Handle handle, MatmulDesc desc, MatrixLayout a, MatrixLayout b, MatrixLayout c,
                                      MatrixLayout d, Preference preference, int wanted, HeuristicResult* results,
                                      int* count) {
  return checked([&] { return get_heuristic(handle, desc, a, b, c, d, preference, wanted, results, count); });
}
Status cublasLtMatmul(Handle handle, MatmulDesc desc, const void* alpha, const void* a, MatrixLayout a_layout,
                      const void* b, MatrixLayout b_layout, const void* beta, const void* c, MatrixLayout c_layout,
                      void* d, MatrixLayout d_layout, const Algorithm* algorithm, void* workspace,
                      size_t workspace_bytes, StreamHandle stream) {
  return checked([&] {
    const int device = known(handle, "the handle")->device;
    require(device == current_device(), kInvalidValue, "a handle of another device than the current one");
    require(emulated::device_of_stream(stream) == device, kInvalidValue, "a stream of another device");
    const Problem p = problem(desc, a_layout, b_layout, c_layout, d_layout);
    require(alpha && beta, kInvalidValue, "no alpha, or no beta");
    require(algorithm && algorithm->words[0] == 0xa190, kInvalidValue, "no algorithm");
    require(algorithm->words[1] == p.hash(*desc), kInvalidValue, "the algorithm is for another product");
    require(workspace_bytes >= algorithm->words[6], kInvalidValue, "the workspace is smaller than the algorithm needs");
    if (workspace_bytes > 0) {
      emulated::require_memory(device, workspace, workspace_bytes, 1, kInvalidValue, "the workspace");
      require(reinterpret_cast<uintptr_t>(workspace) % 256 == 0, kInvalidValue, "the workspace is not aligned to 256");
    }
    const void* const addresses[] = {a, b, c, d};
    check_addresses(device, p, addresses, *algorithm);
    const bool has_bias = (desc->epilogue & kEpilogueBias) != 0;
    if (has_bias) emulated::require_memory(device, desc->bias, p.d.rows, p.d.size(), kInvalidValue, "the bias");
    emulated::queue_call(stream, Work{p,
                                      {*a_layout, *b_layout, *c_layout, *d_layout},
                                      desc->epilogue,
                                      desc->compute == kCompute32FTf32,
                                      number_at(desc->scale, alpha),
                                      number_at(desc->scale, beta),
                                      emulated::inside(a),
                                      emulated::inside(b),
                                      emulated::inside(c),
                                      has_bias ? emulated::inside(desc->bias) : nullptr,
                                      emulated::inside(d),
                                      emulated::inside(workspace),
                                      workspace_bytes});
    return kSuccess;
  });
}
