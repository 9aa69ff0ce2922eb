// softmax and log_softmax of tensors: row by row, or many neighboring rows at once.
#include <vector>

#include "kernels/base/lines.h"
#include "kernels/fused/tile_program.h"
#include "kernels/norm/softmax.h"
#include "kernels/norm/softmax_run.h"
#include "kernels/pointwise/pointwise.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;

template <class T>
void run_lines(const Tensor& in, int64_t dim, bool is_log, const Tensor& out) {
  const int64_t length = line_length(in, dim), in_step = line_stride(in, dim), out_step = line_stride(out, dim);
  const auto in_size = static_cast<int64_t>(size_of(in.dtype())), out_size = static_cast<int64_t>(size_of(out.dtype()));
  const char* in_data = static_cast<const char*>(in.raw_data());
  char* out_data = static_cast<char*>(out.raw_data());
  const bool in_direct = in.dtype() == dtype_of<T> && in_step == 1;
  const bool out_direct = out.dtype() == dtype_of<T> && out_step == 1;
  for_each_line<2>(without(in.sizes(), dim), {without(out.strides(), dim), without(in.strides(), dim)}, length,
                   [&](const std::array<int64_t, 2>& offset) {
                     thread_local std::vector<T> scratch;
                     const char* source = in_data + offset[1] * in_size;
                     char* target = out_data + offset[0] * out_size;
                     T* result = reinterpret_cast<T*>(target);
                     if (!out_direct) {
                       scratch.resize(static_cast<size_t>(length));
                       result = scratch.data();
                     }
                     const T* values = reinterpret_cast<const T*>(source);
                     if (!in_direct) {
                       load_tile(in.dtype(), source, in_step, dtype_of<T>, result, length);
                       values = result;
                     }
                     softmax_row(values, result, length, is_log);
                     if (!out_direct) store_tile(dtype_of<T>, result, out.dtype(), target, out_step, length);
                   });
}

// Softmax along a dimension whose elements are not contiguous, beside one whose elements are: many lanes at once.
// Prepared for known shapes.
class ColumnPlan {
 public:
  // Whether there is such a dimension. The tensors may be meta tensors.
  static bool covers(const Tensor& in, int64_t dim, const Tensor& out) {
    if (in.dtype() != DType::kFloat32 || out.dtype() != DType::kFloat32 || in.ndim() < 2 || out.numel() == 0)
      return false;
    if (line_length(in, dim) == 1) return false;
    const LoopNest<2> nest = lanes(in, dim, out);
    const size_t last = nest.ndim() - 1;
    return nest.size(last) >= 8 && nest.stride(0, last) == 1 && nest.stride(1, last) == 1;
  }
  ColumnPlan(const Tensor& in, int64_t dim, bool is_log, const Tensor& out)
      : nest_(lanes(in, dim, out)),
        length_(line_length(in, dim)),
        in_step_(line_stride(in, dim)),
        out_step_(line_stride(out, dim)),
        is_log_(is_log) {}
  void run(const float* in, float* out) const {
    nest_.parallel_rows(std::max<int64_t>(64, 16384 / length_), [&](const std::array<int64_t, 2>& offset, int64_t count,
                                                                    const std::array<int64_t, 2>&) {
      softmax_columns(in + offset[1], in_step_, out + offset[0], out_step_, length_, count, is_log_);
    });
  }

 private:
  static LoopNest<2> lanes(const Tensor& in, int64_t dim, const Tensor& out) {
    return LoopNest<2>(without(in.sizes(), dim), {without(out.strides(), dim), without(in.strides(), dim)});
  }
  LoopNest<2> nest_;  // over the lanes: out, in
  int64_t length_, in_step_, out_step_;
  bool is_log_;
};

class PreparedColumns final : public ops::PreparedCall {
 public:
  PreparedColumns(const Tensor& in, int64_t dim, bool is_log, const Tensor& out) : plan_(in, dim, is_log, out) {
    cost.flops = 4.0 * static_cast<double>(in.numel());
    cost.bytes = static_cast<double>(in.size_bytes() + out.size_bytes());
    may_overwrite = in.strides() == out.strides() ? 1 : 0;
    variant = "columns";
  }
  void run(const KernelContext&, const ops::PreparedRun& memory) const override {
    plan_.run(static_cast<const float*>(memory.inputs[0]), static_cast<float*>(memory.outputs[0]));
  }

 private:
  ColumnPlan plan_;
};

}  // namespace

std::unique_ptr<ops::PreparedCall> prepare_softmax(const ops::PrepareArgs& args, bool is_log) {
  const Tensor& in = args.arguments[0].to_tensor();
  const int64_t dim = wrap_dim(args.arguments[1].to_int(), in.ndim());
  if (in.is_meta() && ColumnPlan::covers(in, dim, args.outputs[0]) && line_stride(in, dim) != 1)
    return std::make_unique<PreparedColumns>(in, dim, is_log, args.outputs[0]);
  return prepare_alone(args);
}

void run_softmax(const Tensor& in, int64_t dim, bool is_log, const Tensor& out) {
  if (out.numel() == 0) return;
  dim = wrap_dim(dim, in.ndim());
  if (ColumnPlan::covers(in, dim, out) && line_stride(in, dim) != 1)
    return ColumnPlan(in, dim, is_log, out).run(in.data<float>(), out.data<float>());
  if (loop_dtype(out.dtype()) == DType::kFloat64)
    run_lines<double>(in, dim, is_log, out);
  else
    run_lines<float>(in, dim, is_log, out);
}

// One row as a step of a tile program.
RowKernel softmax_call(const Tensor& in, int64_t dim, DType result, bool is_log) {
  RowKernel call;
  if (wrap_dim(dim, in.ndim()) + 1 != std::max<int64_t>(in.ndim(), 1)) return call;
  call.compute = call.result = loop_dtype(result);
  call.is_log = is_log;
  call.cost_ns = call.compute == DType::kFloat64 ? 5 : 0.4;
  call.run = [](const RowKernel& self, const void* from, const void* const*, void* to, int64_t length) {
    if (self.compute == DType::kFloat64)
      softmax_row(static_cast<const double*>(from), static_cast<double*>(to), length, self.is_log);
    else
      softmax_row(static_cast<const float*>(from), static_cast<float*>(to), length, self.is_log);
  };
  return call;
}

}  // namespace tensord::kernels
