// einsum: multiplies operands from left to right, each pair as one batched matrix product over permuted views. Labels
// that nothing later needs are summed as early as possible.
#include <algorithm>
#include <cctype>
#include <map>

#include "core/ops/op.h"
#include "core/ops/run.h"

namespace tensord::kernels {
namespace {

using Labels = std::vector<int>;
constexpr int kEllipsis = 1000;  // labels of the dimensions that "..." stands for, counted from the last

struct Operand {
  Tensor tensor;
  Labels labels;  // one per dimension, no repeats
};

bool has(const Labels& labels, int label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

// One term of the equation; -1 stands for an ellipsis.
Labels parse_term(std::string_view text) {
  Labels out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if (c == '.') {
      check(text.substr(i).starts_with("...") && !has(out, -1),
            "einsum(): found '.' in a subscript that is not part of any ellipsis");
      out.push_back(-1);
      i += 2;
      continue;
    }
    check(std::isalpha(static_cast<unsigned char>(c)), "einsum(): invalid subscript given: '", std::string(1, c),
          "', subscripts must be in [a-zA-Z]");
    out.push_back(c);
  }
  return out;
}

// Replaces an ellipsis by its labels, for a tensor of `ndim` dimensions.
Labels expand_ellipsis(const Labels& term, int64_t ndim, size_t operand) {
  Labels out;
  const int64_t covered = ndim - static_cast<int64_t>(term.size()) + 1;
  for (const int label : term) {
    if (label != -1)
      out.push_back(label);
    else
      for (int64_t i = covered; i-- > 0;) out.push_back(kEllipsis + static_cast<int>(i));
  }
  check(static_cast<int64_t>(out.size()) == ndim, "einsum(): the number of subscripts in the equation (",
        term.size() - (has(term, -1) ? 1 : 0), ") does not match the number of dimensions (", ndim, ") for operand ",
        operand);
  return out;
}

Tensor call(const char* name, const std::vector<ops::Value>& arguments) {
  const ops::Op& op = ops::get_op(name);
  const std::vector<ops::Value> bound = ops::bind(op, arguments);
  return (arguments[0].to_tensor().is_meta() ? ops::infer(op, bound) : ops::run(op, bound)).front().to_tensor();
}

size_t position(const Labels& labels, int label) {
  return static_cast<size_t>(std::find(labels.begin(), labels.end(), label) - labels.begin());
}

// The diagonal over repeated labels, as a view whose last dimension is that diagonal.
Operand make_operand(const Tensor& tensor, const Labels& labels, size_t number) {
  Operand out{tensor, {}};
  for (const int label : labels) {
    const size_t seen = position(out.labels, label), here = out.labels.size();
    out.labels.push_back(label);
    if (seen == here) continue;
    const Dims& sizes = out.tensor.sizes();
    check(sizes[seen] == sizes[here], "einsum(): subscript ", static_cast<char>(label), " is repeated for operand ",
          number, " but the sizes don't match, ", sizes[here], " != ", sizes[seen]);
    // diagonal() puts its dimension last, behind those that the loop has not yet reached.
    out.tensor = call("aten::diagonal", {out.tensor, 0, static_cast<int64_t>(seen), static_cast<int64_t>(here)});
    out.tensor = call("aten::movedim.int", {out.tensor, -1, static_cast<int64_t>(here) - 1});
    out.labels.erase(out.labels.begin() + static_cast<int64_t>(seen));
  }
  return out;
}

Operand sum_over(const Operand& operand, const Labels& keep) {
  Dims gone;
  Operand out;
  for (size_t d = 0; d < operand.labels.size(); ++d) {
    if (has(keep, operand.labels[d]))
      out.labels.push_back(operand.labels[d]);
    else
      gone.push_back(static_cast<int64_t>(d));
  }
  if (gone.empty()) return operand;
  out.tensor = call("aten::sum.dim_IntList",
                    {operand.tensor, ops::make_int_list(gone), false, static_cast<int64_t>(operand.tensor.dtype())});
  return out;
}

Tensor permuted(const Operand& operand, const Labels& order) {
  Dims dims;
  for (const int label : order) dims.push_back(static_cast<int64_t>(position(operand.labels, label)));
  return call("aten::permute", {operand.tensor, ops::make_int_list(dims)});
}

// Reshapes to a batch of matrices: the dimensions merged in three groups.
Tensor as_matrices(const Operand& operand, const Labels& first, const Labels& second, const Labels& third) {
  Labels order = first;
  order.insert(order.end(), second.begin(), second.end());
  order.insert(order.end(), third.begin(), third.end());
  const Tensor t = permuted(operand, order);
  const auto product = [&](size_t begin, size_t count) {
    return checked_numel(t.sizes().span().subspan(begin, count));
  };
  const Dims sizes{product(0, first.size()), product(first.size(), second.size()),
                   product(first.size() + second.size(), third.size())};
  return call("aten::reshape", {t, ops::make_int_list(sizes)});
}

// The product of two operands; sums over the labels that are not in `keep`.
Operand multiply_operands(const Operand& a, const Operand& b, const Labels& keep) {
  const auto needed = [&](const Operand& of, const Operand& other) {
    Labels labels = keep;
    for (const int label : of.labels) {
      if (has(other.labels, label)) labels.push_back(label);
    }
    return sum_over(of, labels);
  };
  const Operand x = needed(a, b), y = needed(b, a);
  Labels batch, summed, left, right;
  Dims sizes;
  for (const int label : x.labels) (!has(y.labels, label) ? left : has(keep, label) ? batch : summed).push_back(label);
  for (const int label : y.labels) {
    if (!has(x.labels, label)) right.push_back(label);
  }
  const Tensor product = call("aten::bmm", {as_matrices(x, batch, left, summed), as_matrices(y, batch, summed, right)});
  Operand out{product, batch};
  out.labels.insert(out.labels.end(), left.begin(), left.end());
  out.labels.insert(out.labels.end(), right.begin(), right.end());
  for (const int label : out.labels) {
    const Operand& from = has(x.labels, label) ? x : y;
    sizes.push_back(from.tensor.sizes()[position(from.labels, label)]);
  }
  out.tensor = call("aten::reshape", {product, ops::make_int_list(sizes)});
  return out;
}

// The output labels of an equation without an arrow: the ellipsis, then the labels that occur once, in alphabetical
// order.
Labels implicit_output(const std::vector<Labels>& terms) {
  std::map<int, int> counts;
  for (const Labels& term : terms) {
    for (const int label : term) ++counts[label];
  }
  Labels out;
  for (auto it = counts.rbegin(); it != counts.rend(); ++it) {
    if (it->first >= kEllipsis) out.push_back(it->first);
  }
  for (const auto& [label, count] : counts) {
    if (label < kEllipsis && count == 1) out.push_back(label);
  }
  return out;
}

// Expands dimensions of size 1 to the size that the label has elsewhere.
void broadcast_labels(std::vector<Operand>& operands) {
  std::map<int, int64_t> sizes;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Operand& operand = operands[i];
    for (size_t d = 0; d < operand.labels.size(); ++d) {
      int64_t& size = sizes.try_emplace(operand.labels[d], 1).first->second;
      const int64_t here = operand.tensor.sizes()[d];
      const int label = operand.labels[d];
      check(size == here || size == 1 || here == 1, "einsum(): subscript ",
            label >= kEllipsis ? "..." : std::string(1, static_cast<char>(label)), " has size ", here, " for operand ",
            i, " which does not broadcast with previously seen size ", size);
      if (size == 1) size = here;
    }
  }
  for (Operand& operand : operands) {
    Dims to;
    for (const int label : operand.labels) to.push_back(sizes[label]);
    if (!(to == operand.tensor.sizes()))
      operand.tensor = call("aten::expand", {operand.tensor, ops::make_int_list(to)});
  }
}

Labels explicit_output(std::string_view text, const std::vector<Labels>& terms) {
  Labels out;
  int ellipsis = 0;
  for (const Labels& term : terms) {
    for (const int label : term) ellipsis = std::max(ellipsis, label >= kEllipsis ? label - kEllipsis + 1 : 0);
  }
  for (const int label : parse_term(text)) {
    if (label == -1) {
      for (int i = ellipsis; i-- > 0;) out.push_back(kEllipsis + i);
      continue;
    }
    check(!has(out, label), "einsum(): output subscript ", static_cast<char>(label),
          " appears more than once in the output");
    const bool is_known = std::any_of(terms.begin(), terms.end(), [&](const Labels& term) { return has(term, label); });
    check(is_known, "einsum(): output subscript ", static_cast<char>(label),
          " does not appear in the equation for any input operand");
    out.push_back(label);
  }
  return out;
}

Tensor einsum(const std::string& equation, const std::vector<Tensor>& tensors, const std::optional<ops::IntList>&) {
  check(!tensors.empty(), "einsum(): must provide at least one operand");
  const size_t arrow = equation.find("->");
  std::string_view inputs = std::string_view(equation).substr(0, arrow);
  std::vector<Labels> terms;
  std::vector<Operand> operands;
  for (size_t i = 0;; ++i) {
    const size_t comma = inputs.find(',');
    check(i < tensors.size(), "einsum(): fewer operands were provided than specified in the equation");
    terms.push_back(expand_ellipsis(parse_term(inputs.substr(0, comma)), tensors[i].ndim(), i));
    operands.push_back(make_operand(tensors[i], terms.back(), i));
    check(tensors[i].dtype() == tensors[0].dtype(), "einsum(): expected all operands to have the same dtype");
    if (comma == std::string_view::npos) break;
    inputs.remove_prefix(comma + 1);
  }
  check(terms.size() == tensors.size(), "einsum(): more operands were provided than specified in the equation");
  const Labels output = arrow == std::string::npos
                            ? implicit_output(terms)
                            : explicit_output(std::string_view(equation).substr(arrow + 2), terms);
  broadcast_labels(operands);
  Operand result = operands[0];
  for (size_t i = 1; i < operands.size(); ++i) {
    Labels keep = output;
    for (size_t later = i + 1; later < operands.size(); ++later)
      keep.insert(keep.end(), operands[later].labels.begin(), operands[later].labels.end());
    result = multiply_operands(result, operands[i], keep);
  }
  const Tensor out = permuted(sum_over(result, output), output);
  // The schema promises new memory.
  const bool is_view = !out.is_meta() && std::any_of(tensors.begin(), tensors.end(),
                                                     [&](const Tensor& t) { return t.storage() == out.storage(); });
  return is_view ? call("aten::clone", {out}) : out;
}

OP("aten::einsum").impl(einsum).composite();

}  // namespace
}  // namespace tensord::kernels
