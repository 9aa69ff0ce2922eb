// embedding_bag on the CPU: checks indices and offsets, then threads share the bags and call sum_bags.
#include <algorithm>
#include <array>
#include <optional>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/ops/op.h"
#include "kernels/embedding/embedding_bag.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;
using OptionalTensor = std::optional<Tensor>;

// What infer leaves to be checked, and the shapes that it promised.
struct BagCall {
  Tensor table, indices, offsets;
  BagMode mode = BagMode::kSum;
  OptionalTensor weights;
  int64_t padding_idx = -1;
  DType index = DType::kInt64;  // of the results
  int64_t bags = 0;
  bool has_offset2bag = false;

  int64_t width() const { return table.sizes()[1]; }
};

BagCall make_call(const Tensor& table, const Tensor& indices, const Tensor& offsets, int64_t mode,
                  const OptionalTensor& weights, std::optional<int64_t> padding, std::span<const Tensor> outputs) {
  return {.table = table,
          .indices = indices,
          .offsets = offsets,
          .mode = static_cast<BagMode>(mode),
          .weights = weights,
          .padding_idx = padding ? *padding + (*padding < 0 ? table.sizes()[0] : 0) : -1,
          .index = outputs[1].dtype(),
          .bags = outputs[0].sizes()[0],
          .has_offset2bag = outputs[1].numel() > 0};
}

template <class I>
void check_contents(const I* indices, int64_t count, const I* offsets, int64_t offset_count, int64_t rows) {
  I before = 0;
  for (int64_t i = 0; i < offset_count; ++i) {
    check(i > 0 || offsets[0] == 0,
          "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, "
          "got ",
          offsets[0]);
    check(offsets[i] <= count, "offsets[-1] can not be greater than input's length ", count, " but got offsets[-1] of ",
          offsets[i]);
    check(offsets[i] >= before, "embedding_bag: offsets must not decrease, but got ", offsets[i], " after ", before);
    before = offsets[i];
  }
  for (int64_t i = 0; i < count; ++i) {
    if (indices[i] < 0 || indices[i] >= rows) [[unlikely]] {
      fail(ErrorCode::kOutOfRange, "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be ",
           indices[i]);
    }
  }
}

// The bag of each index. The end of the last bag may be given as one more offset.
template <class I>
void fill_offset2bag(const I* offsets, int64_t offset_count, int64_t count, I* out) {
  for (int64_t bag = 0; bag < offset_count; ++bag) {
    const I end = bag + 1 < offset_count ? offsets[bag + 1] : static_cast<I>(count);
    std::fill(out + offsets[bag], out + end, static_cast<I>(bag));
  }
}

// The cost of adding a row that has to come from memory.
double row_ns(int64_t width) { return 4 + 0.1 * static_cast<double>(width); }

// `offset2bag` may be null. No two bags share a sum, so the division among threads does not change results.
template <class T, class I>
void run_bags(const BagArgs<T, I>& args, int64_t bags, I* offset2bag) {
  check_contents(args.indices, args.index_count, args.offsets, args.offset_count, args.table_rows);
  if (offset2bag) fill_offset2bag(args.offsets, args.offset_count, args.index_count, offset2bag);
  if (bags == 0) return;
  const double rows = static_cast<double>(args.index_count) / static_cast<double>(bags);
  parallel_for_cost(bags, rows * row_ns(args.width), [&](int64_t begin, int64_t end) { sum_bags(args, begin, end); });
}

// Sizes of bags are given for means and maxima, and zeros for sums; for means they are in two outputs.
template <class I>
void finish_sizes(BagMode mode, int64_t offset_count, int64_t bags, I* sizes, I* max_indices) {
  if (mode == BagMode::kSum) {
    std::fill_n(sizes, offset_count, I(0));
    std::fill_n(max_indices, offset_count, I(0));
  } else if (mode == BagMode::kMean) {
    std::copy_n(sizes, bags, max_indices);
  }
}

// The memory of a call's tensors.
struct BagMemory {
  const void *table, *indices, *offsets, *weights;
  void *out, *offset2bag, *sizes, *max_indices;
};

// `call` has the shapes. The data is row-major, of types T and I.
template <class T, class I>
void run_call(const BagCall& call, const BagMemory& memory) {
  const bool is_sum = call.mode == BagMode::kSum;
  BagArgs<T, I> args{};
  args.table = static_cast<const T*>(memory.table);
  args.table_rows = call.table.sizes()[0];
  args.row_stride = call.table.strides()[0];
  args.width = call.width();
  args.indices = static_cast<const I*>(memory.indices);
  args.offsets = static_cast<const I*>(memory.offsets);
  args.index_count = call.indices.numel();
  args.offset_count = call.offsets.numel();
  args.weights = static_cast<const T*>(memory.weights);
  args.padding_idx = call.padding_idx;
  args.mode = call.mode;
  args.out = static_cast<T*>(memory.out);
  args.bag_sizes = is_sum ? nullptr : static_cast<I*>(memory.sizes);
  args.max_indices = call.mode == BagMode::kMax ? static_cast<I*>(memory.max_indices) : nullptr;
  run_bags(args, call.bags, call.has_offset2bag ? static_cast<I*>(memory.offset2bag) : nullptr);
  finish_sizes(call.mode, args.offset_count, call.bags, static_cast<I*>(memory.sizes),
               static_cast<I*>(memory.max_indices));
}

using RunFn = void (*)(const BagCall&, const BagMemory&);
// REQUIRES: float32 or float64.
RunFn run_for(DType table, DType index) {
  if (table == DType::kFloat64) return index == DType::kInt64 ? run_call<double, int64_t> : run_call<double, int32_t>;
  return index == DType::kInt64 ? run_call<float, int64_t> : run_call<float, int32_t>;
}

// Halves are summed in float32.
void run_kernel(const BagCall& call, std::span<const Tensor> outputs) {
  const bool is_half = size_of(call.table.dtype()) == 2;
  const DType dtype = is_half ? DType::kFloat32 : call.table.dtype(), index = call.index;
  BagCall dense = call;
  dense.table = call.table.to(dtype);
  if (dense.table.strides()[1] != 1) dense.table = dense.table.contiguous();
  dense.indices = call.indices.to(index).contiguous();
  dense.offsets = call.offsets.to(index).contiguous();
  if (call.weights) dense.weights = call.weights->to(dtype).contiguous();
  const Tensor out = is_half ? Tensor::empty(outputs[0].sizes(), dtype) : outputs[0];
  run_for(dtype, index)(dense, {dense.table.raw_data(), dense.indices.raw_data(), dense.offsets.raw_data(),
                                dense.weights ? dense.weights->raw_data() : nullptr, out.raw_data(),
                                outputs[1].raw_data(), outputs[2].raw_data(), outputs[3].raw_data()});
  if (is_half) outputs[0].copy_from(out);
}

class PreparedBags final : public ops::PreparedCall {
 public:
  // For table, indices, offsets and weights: which of the run's inputs they are; -1 if constant or absent.
  using Slots = std::array<int, 4>;

  PreparedBags(BagCall call, const Slots& slots)
      : call_(std::move(call)), slots_(slots), function_(run_for(call_.table.dtype(), call_.index)) {
    const double elements = static_cast<double>(call_.indices.numel() * call_.width());
    cost = {elements, (elements + static_cast<double>(call_.bags * call_.width())) *
                          static_cast<double>(size_of(call_.table.dtype()))};
  }

  void run(const ops::KernelContext&, const ops::PreparedRun& run) const override {
    const auto value = [&](size_t i, const Tensor& constant) -> const void* {
      return slots_[i] >= 0 ? run.inputs[slots_[i]] : constant.raw_data();
    };
    function_(call_, {value(0, call_.table), value(1, call_.indices), value(2, call_.offsets),
                      call_.weights ? value(3, *call_.weights) : nullptr, run.outputs[0], run.outputs[1],
                      run.outputs[2], run.outputs[3]});
  }

 private:
  BagCall call_;
  Slots slots_;
  RunFn function_;
};

std::unique_ptr<ops::PreparedCall> prepare_call(const BagCall& call, const ops::PrepareArgs& args) {
  const bool fits = call.table.strides()[1] == 1 && size_of(call.table.dtype()) >= 4 && call.indices.is_contiguous() &&
                    call.offsets.is_contiguous() && call.indices.dtype() == call.offsets.dtype() &&
                    (!call.weights || call.weights->is_contiguous());
  const auto is_dense = [](const Tensor& out) { return out.is_contiguous(); };
  if (!fits || !std::all_of(args.outputs.begin(), args.outputs.end(), is_dense)) return nullptr;
  int next = 0;
  PreparedBags::Slots slots{-1, -1, -1, -1};
  const Tensor* tensors[] = {&call.table, &call.indices, &call.offsets, call.weights ? &*call.weights : nullptr};
  for (size_t i = 0; i < slots.size(); ++i) {
    if (tensors[i] && tensors[i]->is_meta()) slots[i] = next++;
  }
  return std::make_unique<PreparedBags>(call, slots);
}

// The overload without padding_idx has one argument fewer.
std::unique_ptr<ops::PreparedCall> prepare(const ops::PrepareArgs& args) {
  const std::span<const ops::Value> v = args.arguments;
  const auto padding = v.size() > 8 ? ops::Unbox<std::optional<int64_t>>::get(v[8]) : std::nullopt;
  return prepare_call(make_call(v[0].to_tensor(), v[1].to_tensor(), v[2].to_tensor(), v[4].to_int(),
                                ops::Unbox<OptionalTensor>::get(v[6]), padding, args.outputs),
                      args);
}

void bag_kernel(const KernelContext&, const Tensor& table, const Tensor& indices, const Tensor& offsets, bool,
                int64_t mode, bool, const OptionalTensor& weights, bool, Tensor& out, Tensor& offset2bag, Tensor& sizes,
                Tensor& max_indices) {
  const std::array outputs{out, offset2bag, sizes, max_indices};
  run_kernel(make_call(table, indices, offsets, mode, weights, {}, outputs), outputs);
}
void padded_bag_kernel(const KernelContext&, const Tensor& table, const Tensor& indices, const Tensor& offsets, bool,
                       int64_t mode, bool, const OptionalTensor& weights, bool, std::optional<int64_t> padding,
                       Tensor& out, Tensor& offset2bag, Tensor& sizes, Tensor& max_indices) {
  const std::array outputs{out, offset2bag, sizes, max_indices};
  run_kernel(make_call(table, indices, offsets, mode, weights, padding, outputs), outputs);
}

IMPL("aten::embedding_bag", kCPU, bag_kernel);
PREPARE("aten::embedding_bag", kCPU, prepare);
IMPL("aten::embedding_bag.padding_idx", kCPU, padded_bag_kernel);
PREPARE("aten::embedding_bag.padding_idx", kCPU, prepare);

}  // namespace
}  // namespace tensord::kernels
