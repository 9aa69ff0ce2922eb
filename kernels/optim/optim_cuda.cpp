// The steps of optimizers and the clipping of gradients on a CUDA device.
#include <cmath>
#include <utility>
#include <vector>

#include "core/ops/run.h"
#include "core/tensor/device_copy.h"
#include "kernels/cuda/launch.h"
#include "kernels/optim/optim.h"
#include "kernels/reduce/reduce.h"

namespace tensord::kernels {
namespace {

using ops::IntList;
using ops::KernelContext;
using ops::TensorList;

void check_there(const Tensor& tensor, Device device, bool is_written) {
  check(tensor.device() == device, "Expected all tensors to be on the same device, but found at least two devices");
  check(!is_written || tensor.storage()->ensure_writable(), "writes into a tensor whose memory is read-only");
}
bool has_16_bits(const Tensor& t) { return t.dtype() == DType::kFloat16 || t.dtype() == DType::kBFloat16; }

// Parameters with their gradients and states, each in the memory order of its parameter; tensors in another order are
// copied.
class DeviceOperands {
 public:
  // `columns` are the parameters, the gradients and the states; all but the gradients are written. `rounded`: see
  // kernels/optim/optim.cpp. `takes_narrow`: the second column may have 16 bits.
  DeviceOperands(std::initializer_list<const TensorList*> columns, const TensorList& rounded, bool takes_narrow = false)
      : takes_narrow_(takes_narrow) {
    const TensorList& params = **columns.begin();
    spans_.resize(params.size());
    check(rounded.empty() || rounded.size() == params.size(), "expected ", params.size(), " tensors but got ",
          rounded.size());
    for (size_t i = 0; i < params.size(); ++i) {
      check_param(params[i], rounded.empty() ? nullptr : &rounded[i]);
      add(i, columns, rounded);
    }
  }
  std::vector<DeviceSpan>& spans() { return spans_; }

  void run(OptimJob job) {
    if (params_.empty()) return;
    const KernelContext context(params_[0].device());
    for (const bool is_double : {false, true}) {
      job.is_double = is_double;
      job.spans = 0;
      for (size_t i = 0; i < spans_.size(); ++i) {
        if (spans_[i].count == 0 || (params_[i].dtype() == DType::kFloat64) != is_double) continue;
        job.span[job.spans++] = spans_[i];
        if (job.spans == kOptimSpans) launch(context, &KernelTable::optim_step, std::exchange(job, restarted(job)));
      }
      if (job.spans > 0) launch(context, &KernelTable::optim_step, job);
    }
    for (const auto& [target, copy] : copies_) target.copy_from(copy);
    for (const Tensor& tensor : written_) tensor.storage()->bump_version();
  }

 private:
  static OptimJob restarted(OptimJob job) {
    job.spans = 0;
    return job;
  }
  static void check_param(const Tensor& param, const Tensor* rounded) {
    check(param.dtype() == DType::kFloat32 || param.dtype() == DType::kFloat64, "parameters of ",
          name_of(param.dtype()), " cannot be trained, float32 and float64 can");
    check(!rounded || (param.dtype() == DType::kFloat32 && has_16_bits(*rounded) && rounded->sizes() == param.sizes()),
          "expected float32 copies of parameters of 16 bits, but got ", describe(param), " of ",
          rounded ? describe(*rounded) : "");
  }
  void add(size_t i, std::initializer_list<const TensorList*> columns, const TensorList& rounded) {
    const Tensor& param = (**columns.begin())[i];
    const bool is_dense = is_non_overlapping_and_dense(param.sizes(), param.strides());
    const Dims strides = is_dense ? param.strides() : contiguous_strides(param.sizes());
    DeviceSpan& span = spans_[i];
    params_.push_back(laid_out(param, strides, true));
    span.count = param.numel();
    span.param = params_.back().raw_data();
    size_t c = 0;
    for (const TensorList* column : columns) {
      const size_t at = c++;
      if (at == 0 || (column->empty() && at > 1)) continue;
      check(column->size() == spans_.size(), "expected ", spans_.size(), " tensors but got ", column->size());
      const Tensor &one = (*column)[i], &model = at == 1 && !rounded.empty() ? rounded[i] : param;
      const bool has_dtype = one.dtype() == model.dtype() || (takes_narrow_ && at == 1 && has_16_bits(one));
      check(one.sizes() == param.sizes() && has_dtype, "expected a tensor like the parameter, ", describe(model),
            ", but got ", describe(one));
      const Tensor flat = laid_out(one, strides, at > 1);
      if (at == 1)
        span.grad = flat.raw_data(), span.grad_dtype = static_cast<int8_t>(flat.dtype());
      else
        span.state[at - 2] = flat.raw_data();
    }
    if (rounded.empty()) return;
    const Tensor narrow = laid_out(rounded[i], strides, true);
    span.rounded = narrow.raw_data(), span.rounded_dtype = static_cast<int8_t>(narrow.dtype());
  }
  Tensor laid_out(const Tensor& tensor, const Dims& strides, bool is_written) {
    check_there(tensor, params_.empty() ? tensor.device() : params_[0].device(), is_written);
    if (is_written) written_.push_back(tensor);
    if (tensor.strides() == strides) return tensor;
    const Tensor flat = Tensor::empty_strided(tensor.sizes(), strides, tensor.dtype(), tensor.device());
    flat.copy_from(tensor);
    if (is_written) copies_.emplace_back(tensor, flat);
    kept_.push_back(flat);
    return flat;
  }

  const bool takes_narrow_;
  std::vector<DeviceSpan> spans_;
  std::vector<std::pair<Tensor, Tensor>> copies_;
  std::vector<Tensor> params_, kept_, written_;
};

TensorList sgd_step_cuda(const TensorList& params, const TensorList& grads, const TensorList& given, double lr,
                         double weight_decay, double momentum, double dampening, bool nesterov, bool maximize,
                         const TensorList& rounded) {
  const bool is_first = momentum != 0 && given.empty();
  TensorList made = is_first ? tensors_like(params) : TensorList();
  OptimJob job;
  job.step = OptimStep::kSgd;
  job.lr = lr, job.weight_decay = weight_decay, job.momentum = momentum, job.dampening = dampening;
  job.nesterov = nesterov, job.maximize = maximize, job.is_first = is_first;
  DeviceOperands({&params, &grads, is_first ? &made : &given}, rounded).run(job);
  return made;
}

void adam_step_cuda(const TensorList& params, const TensorList& grads, const TensorList& means,
                    const TensorList& squares, const TensorList& max_squares, const IntList& steps, double lr,
                    double beta1, double beta2, double eps, double weight_decay, bool decoupled, bool maximize,
                    const TensorList& rounded) {
  check(steps.size() == params.size(), "expected ", params.size(), " numbers of steps but got ", steps.size());
  check(means.size() == params.size() && squares.size() == params.size(), "expected a state for each parameter");
  OptimJob job;
  job.step = OptimStep::kAdam;
  job.weight_decay = decoupled ? 0 : weight_decay, job.shrink = decoupled ? 1 - lr * weight_decay : 1;
  job.beta1 = beta1, job.beta2 = beta2, job.eps = eps, job.maximize = maximize;
  DeviceOperands operands({&params, &grads, &means, &squares, &max_squares}, rounded);
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto n = static_cast<double>(steps[i]);
    operands.spans()[i].step_size = lr / (1 - std::pow(beta1, n));
    operands.spans()[i].root_factor = 1 / std::sqrt(1 - std::pow(beta2, n));
  }
  operands.run(job);
}

void rmsprop_step_cuda(const TensorList& params, const TensorList& grads, const TensorList& squares,
                       const TensorList& buffers, const TensorList& means, double lr, double alpha, double eps,
                       double weight_decay, double momentum, bool maximize, const TensorList& rounded) {
  check(squares.size() == params.size(), "expected a state for each parameter");
  OptimJob job;
  job.step = OptimStep::kRmsprop;
  job.lr = lr, job.alpha = alpha, job.eps = eps, job.weight_decay = weight_decay, job.momentum = momentum;
  job.maximize = maximize;
  DeviceOperands({&params, &grads, &squares, &buffers, &means}, rounded).run(job);
}

void adagrad_step_cuda(const TensorList& params, const TensorList& grads, const TensorList& sums, const IntList& steps,
                       double lr, double lr_decay, double weight_decay, double eps, bool maximize,
                       const TensorList& rounded) {
  check(steps.size() == params.size(), "expected ", params.size(), " numbers of steps but got ", steps.size());
  check(sums.size() == params.size(), "expected a state for each parameter");
  OptimJob job;
  job.step = OptimStep::kAdagrad;
  job.weight_decay = weight_decay, job.eps = eps, job.maximize = maximize;
  DeviceOperands operands({&params, &grads, &sums}, rounded);
  for (size_t i = 0; i < steps.size(); ++i)
    operands.spans()[i].step_size = lr / (1 + static_cast<double>(steps[i] - 1) * lr_decay);
  operands.run(job);
}

void average_step_cuda(const TensorList& averages, const TensorList& params, double weight) {
  OptimJob job;
  job.step = OptimStep::kAverage;
  job.number = weight;
  DeviceOperands({&averages, &params}, {}, /*takes_narrow=*/true).run(job);
}

// --- clipping

// Gradients without elements are left out; those with gaps are copied, and change() copies them back.
class DeviceGradients {
 public:
  DeviceGradients(const TensorList& grads, bool is_written) {
    for (const Tensor& grad : grads) {
      check(is_floating(grad.dtype()), "gradients of ", name_of(grad.dtype()), " cannot be clipped");
      check_there(grad, grads[0].device(), is_written);
      if (grad.numel() == 0) continue;
      const bool is_dense = is_non_overlapping_and_dense(grad.sizes(), grad.strides());
      given_.push_back(grad);
      dense_.push_back(is_dense ? grad : grad.contiguous());
    }
  }
  size_t size() const { return given_.size(); }
  Device device() const { return given_[0].device(); }

  // As few launches as spans allow; calls before(job) for each.
  template <class Before>
  void run(OptimJob job, const Before& before) const {
    const KernelContext context(device());
    for (const bool is_double : {false, true}) {
      job.is_double = is_double;
      job.spans = 0;
      for (size_t i = 0; i < dense_.size(); ++i) {
        if ((dense_[i].dtype() == DType::kFloat64) != is_double) continue;
        DeviceSpan& span = job.span[job.spans++];
        span.count = dense_[i].numel();
        span.grad = dense_[i].raw_data(), span.grad_dtype = static_cast<int8_t>(dense_[i].dtype());
        if (job.spans == kOptimSpans) queue(context, job, before);
      }
      if (job.spans > 0) queue(context, job, before);
    }
  }
  void change(OptimStep step, double number) const {
    if (given_.empty()) return;
    OptimJob job;
    job.step = step;
    job.number = number;
    run(job, [](OptimJob&) {});
    for (size_t i = 0; i < given_.size(); ++i) {
      if (!dense_[i].is_same(given_[i])) given_[i].copy_from(dense_[i]);
      given_[i].storage()->bump_version();
    }
  }

 private:
  template <class Before>
  static void queue(const KernelContext& context, OptimJob& job, const Before& before) {
    before(job);
    launch(context, &KernelTable::optim_step, job);
    job.spans = 0;
  }

  std::vector<Tensor> given_, dense_;
};

// The norm over all gradients, for which the host waits.
double norm_of_all(const DeviceGradients& grads, double norm_type) {
  check(norm_type > 0, "expected a norm type above 0 but got ", norm_type);
  if (grads.size() == 0) return 0;
  const bool is_max = std::isinf(norm_type);
  OptimJob job;
  job.step = OptimStep::kNorm;
  job.norm = norm_type == 1   ? GradientNorm::kAbsolutes
             : norm_type == 2 ? GradientNorm::kSquares
             : is_max         ? GradientNorm::kLargest
                              : GradientNorm::kPowers;
  job.number = norm_type;
  const auto count = static_cast<int64_t>(grads.size()) * kNormParts;
  const Tensor parts = Tensor::empty(Dims{count}, DType::kFloat64, grads.device()),
               total = Tensor::empty(Dims{1}, DType::kFloat64, grads.device());
  int64_t done = 0;
  grads.run(job, [&](OptimJob& one) {
    one.parts = static_cast<const double*>(parts.raw_data()) + done;
    done += one.spans * kNormParts;
  });
  run_reduction({.reducer = is_max ? Reducer::kMax : Reducer::kSum, .compute = DType::kFloat64}, parts, total);
  const double sum = total.item_double();
  return is_max || norm_type == 1 ? sum : norm_type == 2 ? std::sqrt(sum) : std::pow(sum, 1 / norm_type);
}

double grad_norm_cuda(const TensorList& grads, double norm_type) {
  return norm_of_all(DeviceGradients(grads, false), norm_type);
}

double clip_grad_norm_cuda(const TensorList& given, double max_norm, double norm_type, bool error_if_nonfinite) {
  const DeviceGradients grads(given, true);
  const double norm = norm_of_all(grads, norm_type);
  check(!error_if_nonfinite || std::isfinite(norm), "The total norm of order ", norm_type,
        " for gradients from `parameters` is non-finite, so it cannot be clipped. To disable this error and scale the "
        "gradients by the non-finite norm anyway, set `error_if_nonfinite=False`");
  const double factor = max_norm / (norm + 1e-6);
  if (!(factor >= 1)) grads.change(OptimStep::kScale, factor);
  return norm;
}

void clip_grad_value_cuda(const TensorList& grads, double value) {
  DeviceGradients(grads, true).change(OptimStep::kClamp, value);
}

IMPL("tensord::average_step_", kCUDA, average_step_cuda);
IMPL("tensord::sgd_step_", kCUDA, sgd_step_cuda);
IMPL("tensord::adam_step_", kCUDA, adam_step_cuda);
IMPL("tensord::rmsprop_step_", kCUDA, rmsprop_step_cuda);
IMPL("tensord::adagrad_step_", kCUDA, adagrad_step_cuda);
IMPL("tensord::grad_norm", kCUDA, grad_norm_cuda);
IMPL("tensord::clip_grad_norm_", kCUDA, clip_grad_norm_cuda);
IMPL("tensord::clip_grad_value_", kCUDA, clip_grad_value_cuda);

}  // namespace
}  // namespace tensord::kernels
