// The steps of optimizers and the clipping of gradients (optim.cpp) on the CPU.
#include "kernels/optim/optim.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/base/parallel.h"
#include "core/ops/op.h"
#include "kernels/pointwise/pointwise.h"
#include "ops/pointwise.h"

namespace tensord::kernels {
namespace {

using ops::IntList;
using ops::TensorList;

constexpr double kCostPerElementNs = 0.7;

void check_memory(const Tensor& tensor, bool is_written) {
  check(tensor.device() == Device{} && !tensor.is_meta(), "expected tensors on the CPU");
  check(!is_written || tensor.storage()->ensure_writable(), "writes into a tensor whose memory is read-only");
}

void check_operand(const Tensor& tensor, bool is_written) {
  check(tensor.dtype() == DType::kFloat32 || tensor.dtype() == DType::kFloat64, "parameters of ",
        name_of(tensor.dtype()), " cannot be trained, float32 and float64 can");
  check_memory(tensor, is_written);
}

bool is_narrow(const Tensor& tensor) { return tensor.dtype() == DType::kFloat16 || tensor.dtype() == DType::kBFloat16; }

bool have_same_order(const Tensor& a, const Tensor& b) {
  for (size_t i = 0; i < a.sizes().size(); ++i) {
    if (a.sizes()[i] > 1 && a.strides()[i] != b.strides()[i]) return false;
  }
  return true;
}

// The operands of an update as flat memory. Tensors whose order differs from their parameter's are copied.
class FlatOperands {
 public:
  // `columns` are the parameters, the gradients and the states; all but the gradients are written. `rounded`: see
  // optim.cpp.
  FlatOperands(std::span<const TensorList* const> columns, const TensorList& rounded) {
    const TensorList& params = *columns[0];
    const size_t count = params.size();
    check(rounded.empty() || rounded.size() == count, "expected ", count, " tensors but got ", rounded.size());
    narrow_.resize(rounded.size());
    spans_.resize(count);
    ends_.reserve(count);
    int64_t total = 0;
    for (size_t i = 0; i < count; ++i) {
      const Tensor like = lay_out(params[i],
                                  is_non_overlapping_and_dense(params[i].sizes(), params[i].strides())
                                      ? params[i].strides()
                                      : contiguous_strides(params[i].sizes()),
                                  true);
      OptimSpan& span = spans_[i];
      span = {params[i].dtype() == DType::kFloat64, params[i].numel(), like.raw_data(), nullptr, {}};
      for (size_t c = 1; c < columns.size(); ++c) {
        const TensorList& column = *columns[c];
        if (column.empty() && c > 1) continue;
        check(column.size() == count, "expected ", count, " tensors but got ", column.size());
        const Tensor& model = c == 1 && !rounded.empty() ? rounded[i] : params[i];
        check(column[i].sizes() == params[i].sizes() && column[i].dtype() == model.dtype(),
              "expected a tensor like the parameter, ", describe(model), ", but got ", describe(column[i]));
        void* data =
            (have_same_order(column[i], like) ? checked(column[i], c > 1) : lay_out(column[i], like.strides(), c > 1))
                .raw_data();
        if (c == 1)
          span.grad = data;
        else
          span.state[c - 2] = data;
      }
      if (!rounded.empty()) add_narrow(i, rounded[i], params[i], like.strides());
      ends_.push_back(total += span.count);
    }
  }

  // Calls update(i, piece) for pieces of all parameters, in parallel.
  template <class Update>
  void run(const Update& update) const {
    if (ends_.empty()) return;
    parallel_for_cost(ends_.back(), kCostPerElementNs, [&](int64_t begin, int64_t end) {
      auto i = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), begin) - ends_.begin());
      for (; begin < end; ++i) {
        const int64_t stop = std::min(end, ends_[i]);
        const OptimSpan& whole = spans_[i];
        const int64_t first = begin - (ends_[i] - whole.count);
        if (narrow_.empty())
          update(i, piece(whole, first, stop - begin));
        else
          run_narrow(i, first, stop - begin, update);
        begin = stop;
      }
    });
  }

  // Writes the copies back.
  void finish() const {
    for (const auto& [target, copy] : copies_) target.copy_from(copy);
    for (const Tensor& tensor : written_) tensor.storage()->bump_version();
  }

 private:
  // A parameter of 16 bits and its gradient.
  struct Narrow {
    DType dtype;
    const void* grad;
    void* param;
  };

  void add_narrow(size_t i, const Tensor& rounded, const Tensor& param, const Dims& strides) {
    check(param.dtype() == DType::kFloat32 && is_narrow(rounded) && rounded.sizes() == param.sizes(),
          "expected float32 copies of parameters of 16 bits, but got ", describe(param), " of ", describe(rounded));
    narrow_[i] = {rounded.dtype(), spans_[i].grad, lay_out(rounded, strides, true).raw_data()};
    spans_[i].grad = nullptr;
  }

  // In blocks that stay in the L1 cache.
  template <class Update>
  void run_narrow(size_t i, int64_t begin, int64_t count, const Update& update) const {
    constexpr int64_t kBlock = 1024;
    float grad[kBlock];
    const Narrow& narrow = narrow_[i];
    for (const int64_t end = begin + count; begin < end; begin += kBlock) {
      const int64_t size = std::min(kBlock, end - begin);
      OptimSpan span = piece(spans_[i], begin, size);
      load_tile(narrow.dtype, static_cast<const uint16_t*>(narrow.grad) + begin, 1, DType::kFloat32, grad, size);
      span.grad = grad;
      update(i, span);
      store_tile(DType::kFloat32, span.param, narrow.dtype, static_cast<uint16_t*>(narrow.param) + begin, 1, size);
    }
  }

  const Tensor& checked(const Tensor& tensor, bool is_written) {
    if (narrow_.empty() || !is_narrow(tensor)) check_operand(tensor, is_written);
    check_memory(tensor, is_written);
    if (is_written) written_.push_back(tensor);
    return tensor;
  }
  Tensor lay_out(const Tensor& tensor, const Dims& strides, bool is_written) {
    checked(tensor, is_written);
    const Tensor flat = tensor.strides() == strides
                            ? tensor
                            : Tensor::empty_strided(tensor.sizes(), strides, tensor.dtype(), tensor.device());
    if (flat.is_same(tensor)) return flat;
    flat.copy_from(tensor);
    if (is_written) copies_.emplace_back(tensor, flat);
    kept_.push_back(flat);
    return flat;
  }
  static OptimSpan piece(const OptimSpan& whole, int64_t begin, int64_t count) {
    const auto at = [&](const void* data) {
      const int64_t offset = begin * static_cast<int64_t>(whole.is_double ? sizeof(double) : sizeof(float));
      return data ? const_cast<char*>(static_cast<const char*>(data)) + offset : nullptr;
    };
    return {whole.is_double,
            count,
            at(whole.param),
            at(whole.grad),
            {at(whole.state[0]), at(whole.state[1]), at(whole.state[2])}};
  }

  std::vector<OptimSpan> spans_;
  std::vector<Narrow> narrow_;  // empty if the parameters are updated themselves
  std::vector<int64_t> ends_;   // the offset in the parameters, as if all were one array
  std::vector<std::pair<Tensor, Tensor>> copies_;
  std::vector<Tensor> kept_, written_;
};

template <class Update>
void update_all(std::initializer_list<const TensorList*> columns, const TensorList& rounded, const Update& update) {
  FlatOperands operands(std::span(columns.begin(), columns.size()), rounded);
  operands.run(update);
  operands.finish();
}

TensorList sgd_step(const TensorList& params, const TensorList& grads, const TensorList& given, double lr,
                    double weight_decay, double momentum, double dampening, bool nesterov, bool maximize,
                    const TensorList& rounded) {
  const bool is_first = momentum != 0 && given.empty();
  TensorList made = is_first ? tensors_like(params) : TensorList();
  const SgdNumbers numbers{lr, weight_decay, momentum, dampening, nesterov, maximize, is_first};
  update_all({&params, &grads, is_first ? &made : &given}, rounded,
             [&](size_t, const OptimSpan& span) { sgd_span(numbers, span); });
  return made;
}

void adam_step(const TensorList& params, const TensorList& grads, const TensorList& means, const TensorList& squares,
               const TensorList& max_squares, const IntList& steps, double lr, double beta1, double beta2, double eps,
               double weight_decay, bool decoupled, bool maximize, const TensorList& rounded) {
  check(steps.size() == params.size(), "expected ", params.size(), " numbers of steps but got ", steps.size());
  std::vector<AdamNumbers> numbers;
  for (const int64_t step : steps) {
    const double n = static_cast<double>(step);
    numbers.push_back({lr / (1 - std::pow(beta1, n)), decoupled ? 0 : weight_decay,
                       decoupled ? 1 - lr * weight_decay : 1, beta1, beta2, eps, 1 / std::sqrt(1 - std::pow(beta2, n)),
                       maximize});
  }
  check(means.size() == params.size() && squares.size() == params.size(), "expected a state for each parameter");
  update_all({&params, &grads, &means, &squares, &max_squares}, rounded,
             [&](size_t i, const OptimSpan& span) { adam_span(numbers[i], span); });
}

void rmsprop_step(const TensorList& params, const TensorList& grads, const TensorList& squares,
                  const TensorList& buffers, const TensorList& means, double lr, double alpha, double eps,
                  double weight_decay, double momentum, bool maximize, const TensorList& rounded) {
  const RmspropNumbers numbers{lr, alpha, eps, weight_decay, momentum, maximize};
  check(squares.size() == params.size(), "expected a state for each parameter");
  update_all({&params, &grads, &squares, &buffers, &means}, rounded,
             [&](size_t, const OptimSpan& span) { rmsprop_span(numbers, span); });
}

void adagrad_step(const TensorList& params, const TensorList& grads, const TensorList& sums, const IntList& steps,
                  double lr, double lr_decay, double weight_decay, double eps, bool maximize,
                  const TensorList& rounded) {
  check(steps.size() == params.size(), "expected ", params.size(), " numbers of steps but got ", steps.size());
  check(sums.size() == params.size(), "expected a state for each parameter");
  update_all({&params, &grads, &sums}, rounded, [&](size_t i, const OptimSpan& span) {
    const double rate = lr / (1 + static_cast<double>(steps[i] - 1) * lr_decay);
    adagrad_span({rate, weight_decay, eps, maximize}, span);
  });
}

// Gradients as lists of flat parts of at most kBlock elements; their sums do not depend on the threads. Those of 16
// bits are computed in float32 and rounded once on writing.
class FlatGradients {
 public:
  FlatGradients(const TensorList& tensors, bool is_written) : tensors_(tensors) {
    for (const Tensor& tensor : tensors) {
      check(is_floating(tensor.dtype()), "gradients of ", name_of(tensor.dtype()), " cannot be clipped");
      check_memory(tensor, is_written);
      const bool is_dense = is_non_overlapping_and_dense(tensor.sizes(), tensor.strides());
      const Tensor dense = is_dense ? tensor : tensor.contiguous();
      flat_.push_back(size_of(tensor.dtype()) < 4 ? dense.to(DType::kFloat32) : dense);
      for (int64_t begin = 0; begin < tensor.numel(); begin += kBlock) {
        blocks_.push_back({flat_.size() - 1, begin, std::min(kBlock, tensor.numel() - begin)});
      }
    }
  }
  size_t size() const { return tensors_.size(); }

  double norm(double norm_type) const {
    const NormKind kind = norm_type == 1          ? NormKind::kSum
                          : norm_type == 2        ? NormKind::kSquares
                          : std::isinf(norm_type) ? NormKind::kMax
                                                  : NormKind::kPower;
    std::vector<double> parts(blocks_.size());
    for_blocks([&](size_t i, bool is_double, void* data, int64_t count) {
      parts[i] = norm_span(kind, norm_type, is_double, data, count);
    });
    double total = 0;
    for (const double part : parts) {
      if (kind != NormKind::kMax)
        total += part;
      else if (std::isnan(part) || part > total)
        total = part;
      if (std::isnan(total)) return total;
    }
    if (kind == NormKind::kSquares) return std::sqrt(total);
    return kind == NormKind::kPower ? std::pow(total, 1 / norm_type) : total;
  }

  // Calls fn(i, is_double, data, count) for the blocks, in parallel.
  template <class Fn>
  void for_blocks(const Fn& fn) const {
    parallel_for_cost(static_cast<int64_t>(blocks_.size()), kBlock * 0.1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Block& block = blocks_[static_cast<size_t>(i)];
        const Tensor& tensor = flat_[block.tensor];
        const bool is_double = tensor.dtype() == DType::kFloat64;
        char* data =
            static_cast<char*>(tensor.raw_data()) + block.begin * static_cast<int64_t>(size_of(tensor.dtype()));
        fn(static_cast<size_t>(i), is_double, static_cast<void*>(data), block.count);
      }
    });
  }

  void finish() const {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (!flat_[i].is_same(tensors_[i])) tensors_[i].copy_from(flat_[i]);
      tensors_[i].storage()->bump_version();
    }
  }

 private:
  static constexpr int64_t kBlock = 32768;
  struct Block {
    size_t tensor;
    int64_t begin, count;
  };
  const TensorList& tensors_;
  std::vector<Tensor> flat_;
  std::vector<Block> blocks_;
};

void check_norm_type(double norm_type) { check(norm_type > 0, "expected a norm type above 0 but got ", norm_type); }

double grad_norm(const TensorList& grads, double norm_type) {
  check_norm_type(norm_type);
  return FlatGradients(grads, false).norm(norm_type);
}

double clip_grad_norm(const TensorList& grads, double max_norm, double norm_type, bool error_if_nonfinite) {
  check_norm_type(norm_type);
  const FlatGradients flat(grads, true);
  const double norm = flat.norm(norm_type);
  check(!error_if_nonfinite || std::isfinite(norm), "The total norm of order ", norm_type,
        " for gradients from `parameters` is non-finite, so it cannot be clipped. To disable this error and scale the "
        "gradients by the non-finite norm anyway, set `error_if_nonfinite=False`");
  const double factor = max_norm / (norm + 1e-6);
  if (factor >= 1) return norm;
  flat.for_blocks(
      [&](size_t, bool is_double, void* data, int64_t count) { scale_span(factor, is_double, data, count); });
  flat.finish();
  return norm;
}

void clip_grad_value(const TensorList& grads, double value) {
  const FlatGradients flat(grads, true);
  flat.for_blocks(
      [&](size_t, bool is_double, void* data, int64_t count) { clamp_span(value, is_double, data, count); });
  flat.finish();
}

void average_step(const TensorList& averages, const TensorList& params, double weight) {
  check(averages.size() == params.size(), "expected ", averages.size(), " tensors but got ", params.size());
  for (size_t i = 0; i < averages.size(); ++i) {
    check_operand(averages[i], true);
    ops::lerp_(averages[i], is_narrow(params[i]) ? params[i].to(averages[i].dtype()) : params[i], weight);
  }
}

IMPL("tensord::average_step_", kCPU, average_step);
IMPL("tensord::sgd_step_", kCPU, sgd_step);
IMPL("tensord::adam_step_", kCPU, adam_step);
IMPL("tensord::rmsprop_step_", kCPU, rmsprop_step);
IMPL("tensord::adagrad_step_", kCPU, adagrad_step);
IMPL("tensord::grad_norm", kCPU, grad_norm);
IMPL("tensord::clip_grad_norm_", kCPU, clip_grad_norm);
IMPL("tensord::clip_grad_value_", kCPU, clip_grad_value);

}  // namespace
}  // namespace tensord::kernels
