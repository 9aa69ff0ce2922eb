#include "core/autograd/gradcheck.h"

#include <cmath>
#include <iomanip>
#include <sstream>

#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "core/base/error.h"

namespace tensord::autograd {
namespace {

// d output / d input, a row for each element of the input.
struct Jacobian {
  int64_t rows = 0, columns = 0;
  std::vector<double> values;
  Jacobian(int64_t rows, int64_t columns)
      : rows(rows), columns(columns), values(static_cast<size_t>(rows * columns), 0.0) {}
  double& at(int64_t row, int64_t column) { return values[static_cast<size_t>(row * columns + column)]; }
  double at(int64_t row, int64_t column) const { return values[static_cast<size_t>(row * columns + column)]; }
};

std::string to_text(const Jacobian& jacobian) {
  constexpr int64_t kMax = 8;
  std::ostringstream out;
  out << std::setprecision(6);
  for (int64_t row = 0; row < std::min(jacobian.rows, kMax); ++row) {
    out << "\n  ";
    for (int64_t column = 0; column < std::min(jacobian.columns, kMax); ++column) {
      out << jacobian.at(row, column) << ' ';
    }
    if (jacobian.columns > kMax) out << "…";
  }
  if (jacobian.rows > kMax) out << "\n  …";
  return out.str();
}

// An element of a strided tensor, by its row-major index.
double& element(const Tensor& tensor, int64_t number) {
  int64_t offset = 0;
  for (int64_t dim = tensor.ndim() - 1; dim >= 0; --dim) {
    offset += number % tensor.sizes()[static_cast<size_t>(dim)] * tensor.strides()[static_cast<size_t>(dim)];
    number /= tensor.sizes()[static_cast<size_t>(dim)];
  }
  return tensor.data<double>()[offset];
}

std::vector<double> elements(const Tensor& tensor) {
  std::vector<double> out(static_cast<size_t>(tensor.numel()));
  for (int64_t i = 0; i < tensor.numel(); ++i) out[static_cast<size_t>(i)] = element(tensor, i);
  return out;
}

bool is_checked(const Tensor& input) { return input.defined() && requires_grad(input); }

void check_inputs(const std::vector<Tensor>& inputs) {
  bool any = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!is_checked(inputs[i])) continue;
    any = true;
    check(inputs[i].dtype() == DType::kFloat64, "gradcheck: input ", i, " must be float64, got ",
          name_of(inputs[i].dtype()));
    for (int64_t dim = 0; dim < inputs[i].ndim(); ++dim) {
      check(inputs[i].size(dim) < 2 || inputs[i].stride(dim) != 0, "gradcheck: input ", i,
            " has elements that share memory (its stride in dimension ", dim, " is 0)");
    }
  }
  check(any, "gradcheck expects at least one input tensor to require gradient");
}

// Keeps the outputs that have a gradient; the others become undefined.
std::vector<Tensor> differentiable(std::vector<Tensor> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined() || !requires_grad(outputs[i])) {
      outputs[i] = {};
    } else {
      check(outputs[i].dtype() == DType::kFloat64, "gradcheck: output ", i, " must be float64, got ",
            name_of(outputs[i].dtype()));
    }
  }
  return outputs;
}

std::vector<std::vector<double>> values_at(const TensorFunction& function, const std::vector<Tensor>& inputs,
                                           const std::vector<Tensor>& outputs) {
  const NoGradGuard guard;
  const std::vector<Tensor> found = function(inputs);
  check(found.size() == outputs.size(), "gradcheck: the function gave ", outputs.size(), " outputs, then ",
        found.size());
  std::vector<std::vector<double>> out(outputs.size());
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (!outputs[o].defined()) continue;
    check(found[o].sizes() == outputs[o].sizes(), "gradcheck: the shape of output ", o, " changed from ",
          outputs[o].sizes(), " to ", found[o].sizes());
    out[o] = elements(found[o]);
  }
  return out;
}

// By output.
std::vector<Jacobian> numerical(const TensorFunction& function, const std::vector<Tensor>& inputs, size_t input,
                                const std::vector<Tensor>& outputs, double eps) {
  std::vector<Jacobian> out;
  for (const Tensor& output : outputs) out.emplace_back(inputs[input].numel(), output.defined() ? output.numel() : 0);
  for (int64_t i = 0; i < inputs[input].numel(); ++i) {
    double& place = element(inputs[input], i);
    const double before = place;
    struct Restore {
      double &place, value;
      ~Restore() { place = value; }
    } const restore{place, before};
    place = before + eps;
    const auto above = values_at(function, inputs, outputs);
    place = before - eps;
    const auto below = values_at(function, inputs, outputs);
    for (size_t o = 0; o < outputs.size(); ++o) {
      for (size_t k = 0; k < above[o].size(); ++k) {
        out[o].at(i, static_cast<int64_t>(k)) = (above[o][k] - below[o][k]) / (2 * eps);
      }
    }
  }
  return out;
}

BackwardOptions retaining() {
  BackwardOptions options;
  options.retain_graph = true;
  return options;
}

// By input; for the elements of an output one after the other.
std::vector<Jacobian> analytical(const Tensor& output, const std::vector<Tensor>& inputs, double nondet_tol) {
  std::vector<Tensor> checked;
  std::vector<Jacobian> out;
  for (const Tensor& input : inputs) {
    if (!is_checked(input)) continue;
    checked.push_back(input);
    out.emplace_back(input.numel(), output.numel());
  }
  for (int64_t k = 0; k < output.numel(); ++k) {
    const Tensor seed = Tensor::empty(output.sizes(), DType::kFloat64);
    std::fill_n(seed.data<double>(), seed.numel(), 0.0);
    seed.data<double>()[k] = 1;
    const auto found = grad({&output, 1}, checked, {&seed, 1}, retaining(), true);
    const auto again = grad({&output, 1}, checked, {&seed, 1}, retaining(), true);
    for (size_t i = 0; i < checked.size(); ++i) {
      if (!found[i].defined()) continue;
      check(found[i].sizes() == checked[i].sizes() && found[i].dtype() == DType::kFloat64,
            "gradcheck: the gradient of ", describe(checked[i]), " is ", describe(found[i]));
      const std::vector<double> values = elements(found[i]), second = elements(again[i]);
      for (size_t row = 0; row < values.size(); ++row) {
        out[i].at(static_cast<int64_t>(row), k) = values[row];
        if (std::abs(values[row] - second[row]) > nondet_tol) {
          fail(ErrorCode::kFailedPrecondition,
               "Backward is not reentrant: two passes over one graph with the same gradients gave ", values[row],
               " and ", second[row]);
        }
      }
    }
  }
  return out;
}

void compare(const Jacobian& expected, const Jacobian& got, size_t output, size_t input,
             const GradcheckOptions& options) {
  for (size_t i = 0; i < expected.values.size(); ++i) {
    const double a = expected.values[i], b = got.values[i];
    if (std::abs(a - b) <= options.atol + options.rtol * std::abs(a) || (std::isnan(a) && std::isnan(b))) continue;
    const auto row = static_cast<int64_t>(i) / expected.columns, column = static_cast<int64_t>(i) % expected.columns;
    fail(ErrorCode::kFailedPrecondition, "Jacobian mismatch for output ", output, " with respect to input ", input,
         ", first at input element ", row, " and output element ", column, ": numerical ", a, ", analytical ", b,
         "\nnumerical:", to_text(expected), "\nanalytical:", to_text(got));
  }
}

// Undefined gradients of some outputs must have the same effect as zeros.
void check_undefined(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> roots, checked;
  for (const Tensor& output : outputs) {
    if (output.defined()) roots.push_back(output);
  }
  for (const Tensor& input : inputs) {
    if (is_checked(input)) checked.push_back(input);
  }
  if (roots.size() < 2) return;
  for (size_t k = 0; k < roots.size(); ++k) {
    std::vector<Tensor> seeds;
    for (size_t o = 0; o < roots.size(); ++o) {
      seeds.push_back(Tensor::empty(roots[o].sizes(), DType::kFloat64));
      std::fill_n(seeds[o].data<double>(), seeds[o].numel(), o == k ? 1.0 : 0.0);
    }
    const auto with_zeros = grad(roots, checked, seeds, retaining(), true);
    const auto without = grad({&roots[k], 1}, checked, {&seeds[k], 1}, retaining(), true);
    for (size_t i = 0; i < checked.size(); ++i) {
      if (!with_zeros[i].defined()) continue;
      const std::vector<double> a = elements(with_zeros[i]);
      const std::vector<double> b = without[i].defined() ? elements(without[i]) : std::vector<double>(a.size(), 0.0);
      for (size_t e = 0; e < a.size(); ++e) {
        if (std::abs(a[e] - b[e]) <= 1e-9 * (1 + std::abs(a[e])) || std::isnan(a[e])) continue;
        fail(ErrorCode::kFailedPrecondition,
             "Expected backward function to handle undefined output grads: the gradient "
             "of input ",
             i, " is ", b[e], " where only output ", k, " has one, and ", a[e], " with zeros for the others");
      }
    }
  }
}

// Arbitrary values, neither symmetric nor special.
Tensor made_up(const Tensor& like, size_t seed) {
  const Tensor out = Tensor::empty(like.sizes(), DType::kFloat64);
  for (int64_t i = 0; i < out.numel(); ++i) {
    out.data<double>()[i] = 0.6 + std::sin(1.7 * static_cast<double>(i + 1) + static_cast<double>(seed));
  }
  set_requires_grad(out);
  return out;
}

}  // namespace

void gradcheck(const TensorFunction& function, const std::vector<Tensor>& inputs, GradcheckOptions options) {
  check_inputs(inputs);
  const EnableGradGuard guard;
  const std::vector<Tensor> outputs = differentiable(function(inputs));
  std::vector<std::vector<Jacobian>> got;  // by output, by checked input
  for (const Tensor& output : outputs) {
    got.push_back(output.defined() ? analytical(output, inputs, options.nondet_tol) : std::vector<Jacobian>());
  }
  size_t checked = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!is_checked(inputs[i])) continue;
    const std::vector<Jacobian> expected = numerical(function, inputs, i, outputs, options.eps);
    for (size_t o = 0; o < outputs.size(); ++o) {
      if (outputs[o].defined()) compare(expected[o], got[o][checked], o, i, options);
    }
    ++checked;
  }
  if (options.checks_undefined_grad) check_undefined(outputs, inputs);
}

void gradgradcheck(const TensorFunction& function, const std::vector<Tensor>& inputs,
                   const std::vector<Tensor>& grad_outputs, GradcheckOptions options) {
  check_inputs(inputs);
  const EnableGradGuard guard;
  const std::vector<Tensor> outputs = differentiable(function(inputs));
  std::vector<Tensor> all = inputs;
  std::vector<size_t> which;  // outputs that have a gradient
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (!outputs[o].defined()) continue;
    which.push_back(o);
    all.push_back(o < grad_outputs.size() && grad_outputs[o].defined() ? grad_outputs[o] : made_up(outputs[o], o));
  }
  check(!which.empty(), "gradgradcheck: no output of the function has a gradient");
  const size_t given = inputs.size();
  const TensorFunction gradients = [&](const std::vector<Tensor>& arguments) {
    // Gradients are computed at the same point as the numerical differences.
    const EnableGradGuard recording;
    const std::vector<Tensor> first(arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(given));
    const std::vector<Tensor> found = function(first);
    std::vector<Tensor> roots, seeds, targets;
    for (size_t k = 0; k < which.size(); ++k) {
      roots.push_back(found[which[k]]);
      seeds.push_back(arguments[given + k]);
    }
    for (const Tensor& input : first) {
      if (is_checked(input)) targets.push_back(input);
    }
    BackwardOptions creating;
    creating.create_graph = true;
    return grad(roots, targets, seeds, creating, true);
  };
  gradcheck(gradients, all, options);
}

}  // namespace tensord::autograd
