// Prepared forms of the reductions over any dimensions, and those along the last one as steps of
// tile programs.
#include <algorithm>
#include <string>

#include "core/ops/attributes/batch_independence.h"
#include "kernels/base/lines.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/reduce/dims.h"
#include "kernels/reduce/reduce.h"
#include "kernels/reduce/row_kernel.h"

namespace tensord::kernels {
namespace {

// The positions of an operator's arguments that tell what is reduced; -1: it has no such argument.
struct Form {
  Reducer reducer;
  bool is_mean = false;
  int dims = -1, keepdim = -1, dtype = -1;
};

struct Asked {
  Reduction reduction;
  ReducedDims dims;
  bool keepdim;
  DType result;
};

Asked read(const Form& form, std::span<const ops::Value> v) {
  const Tensor& in = v[0].to_tensor();
  std::optional<Dims> dims;
  if (form.dims >= 0) {
    const ops::Value& given = v[static_cast<size_t>(form.dims)];
    if (given.is_int())
      dims = Dims{given.to_int()};
    else if (!given.is_none())
      dims = ops::Unbox<Dims>::get(given);
  }
  Asked asked{
      {}, ReducedDims(in, dims), form.keepdim >= 0 && v[static_cast<size_t>(form.keepdim)].to_bool(), in.dtype()};
  if (form.dtype >= 0) {
    const ops::Value& dtype = v[static_cast<size_t>(form.dtype)];
    const bool stays = is_floating(in.dtype()) || form.is_mean;
    asked.result = !dtype.is_none() ? dtype.to_dtype() : stays ? in.dtype() : DType::kInt64;
  }
  asked.reduction.reducer = form.reducer;
  asked.reduction.compute = asked.result;
  asked.reduction = over_truth(asked.reduction, in.dtype());
  if (form.is_mean) asked.reduction.scale = 1.0 / static_cast<double>(asked.dims.count);
  return asked;
}

class PreparedReduction final : public ops::PreparedCall {
 public:
  PreparedReduction(const Reduction& reduction, const Tensor& in, const Tensor& out, int threads)
      : plan_(reduction, in, out, threads) {
    scratch_bytes = static_cast<size_t>(plan_.partial_count()) * sizeof(Accumulator);
    cost.flops = static_cast<double>(in.numel());
    cost.bytes = static_cast<double>(in.size_bytes() + out.size_bytes());
  }
  void run(const ops::KernelContext&, const ops::PreparedRun& memory) const override {
    plan_.run(memory.inputs[0], memory.outputs[0], nullptr, static_cast<Accumulator*>(memory.scratch));
  }

 private:
  ReductionPlan plan_;
};

std::unique_ptr<ops::PreparedCall> prepare(const Form& form, const ops::PrepareArgs& args) {
  const Tensor& in = args.arguments[0].to_tensor();
  if (!in.is_meta() || in.numel() == 0 || is_complex(in.dtype())) return nullptr;
  const Asked asked = read(form, args.arguments);
  const Tensor& out = args.outputs[0];
  if (is_complex(asked.result) || out.numel() == 0) return nullptr;
  return std::make_unique<PreparedReduction>(asked.reduction, in, asked.dims.kept(in, out, asked.keepdim),
                                             args.threads);
}

void run_row_kernel(const RowKernel& call, const void* from, const void* const*, void* to, int64_t length) {
  Accumulator accumulator = call.loops->start;
  call.loops->row(from, length, 0, call.power, &accumulator);
  if (call.compute == DType::kInt64) return store_tile(DType::kInt64, &accumulator, call.result, to, 1, 1);
  accumulator.value *= call.scale;
  if (call.result == DType::kFloat32)
    *static_cast<float*>(to) = static_cast<float>(accumulator.value);
  else
    store_tile(DType::kFloat64, &accumulator, call.result, to, 1, 1);
}

RowKernel make_row_kernel(const Form& form, std::span<const ops::Value> v) {
  const Tensor& in = v[0].to_tensor();
  RowKernel call;
  if (in.ndim() == 0) return call;
  const Asked asked = read(form, v);
  for (int64_t d = 0; d < in.ndim(); ++d) {
    if (asked.dims.is_reduced[static_cast<size_t>(d)] != (d + 1 == in.ndim())) return call;
  }
  if (is_complex(asked.result)) return call;
  call.compute = loop_dtype(asked.reduction.compute);
  call.result = asked.result;
  call.reduces = true;
  call.exact_input = true;
  call.cost_ns = 0.06;
  call.loops = &reduce_loops(asked.reduction.reducer, call.compute);
  call.scale = asked.reduction.scale;
  call.run = run_row_kernel;
  return call;
}

void add(const char* op, Form form) {
  ops::PrepareBuilder(op, DeviceKind::kCPU, [form](const ops::PrepareArgs& args) { return prepare(form, args); });
  if (form.dims < 0) return;
  ops::set_attribute(op, ops::BatchIndependent{ops::works_along_other_dims});
  add_row_kernel_maker(
      op, [form](std::span<const ops::Value> v) { return make_row_kernel(form, v); }, false);
}

[[maybe_unused]] const bool reduce_prepare_registered = [] {
  add("aten::sum", {Reducer::kSum, false, -1, -1, 1});
  add("aten::sum.dim_IntList", {Reducer::kSum, false, 1, 2, 3});
  add("aten::mean", {Reducer::kSum, true, -1, -1, 1});
  add("aten::mean.dim", {Reducer::kSum, true, 1, 2, 3});
  add("aten::prod", {Reducer::kProduct, false, -1, -1, 1});
  add("aten::prod.dim_int", {Reducer::kProduct, false, 1, 2, 3});
  add("aten::max", {Reducer::kMax});
  add("aten::min", {Reducer::kMin});
  add("aten::amax", {Reducer::kMax, false, 1, 2});
  add("aten::amin", {Reducer::kMin, false, 1, 2});
  add("aten::any", {Reducer::kAny});
  add("aten::all", {Reducer::kAll});
  return true;
}();

}  // namespace
}  // namespace tensord::kernels
