// Tracks small integer tensors element by element, because ONNX and traces compute sizes in them.
#include <algorithm>
#include <optional>
#include <string_view>

#include "core/base/error.h"
#include "core/jit/exporters/pt2/program_writer.h"
#include "core/ops/registry.h"
#include "core/ops/run.h"
#include "core/tensor/grad_mode.h"
#include "ops/view.h"

namespace tensord::jit::pt2 {
namespace {

using Elements = std::vector<Traced>;

constexpr int64_t kMaxElements = 64;

bool is_of(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

// They only move elements of their first argument.
constexpr std::string_view kMoves[] = {
    "aten::select",  "aten::slice",   "aten::index_select", "aten::index",     "aten::gather",
    "aten::reshape", "aten::view",    "aten::squeeze",      "aten::unsqueeze", "aten::flatten",
    "aten::expand",  "aten::permute", "aten::transpose",    "aten::flip",      "aten::clone",
    "aten::alias",   "aten::detach",  "aten::contiguous",   "aten::narrow",    "aten::take",
    "aten::repeat",  "aten::tile",    "aten::unbind",       "aten::split",     "aten::broadcast_to"};
// They take a list of tensors.
constexpr std::string_view kJoins[] = {"aten::cat", "aten::stack", "aten::concat"};
constexpr std::string_view kArithmetic[] = {"aten::add", "aten::sub",       "aten::mul", "aten::floor_divide",
                                            "aten::div", "aten::remainder", "aten::neg"};
constexpr std::string_view kComparisons[] = {"aten::eq", "aten::ne", "aten::lt", "aten::le", "aten::gt", "aten::ge"};

bool is_followed(const Tensor& tensor) {
  const DType dtype = tensor.dtype();
  return (dtype == DType::kInt64 || dtype == DType::kInt32 || dtype == DType::kBool) && tensor.numel() <= kMaxElements;
}

std::vector<int64_t> integers_of(const Tensor& tensor) {
  const Tensor wide = tensor.to(DType::kInt64).contiguous();
  return {wide.data<int64_t>(), wide.data<int64_t>() + wide.numel()};
}

// A tensor of the same shape with elements first, first + 1 ….
Tensor ids_like(const Tensor& tensor, int64_t first) {
  Tensor ids = Tensor::empty(tensor.sizes(), DType::kInt64);
  for (int64_t i = 0; i < ids.numel(); ++i) ids.data<int64_t>()[i] = first + i;
  return ids;
}

Traced number_of(int64_t a, int64_t b) { return tracing::wrap(a, b); }

}  // namespace

std::optional<Elements> ProgramWriter::elements_of(Call& call, const Traced& tensor) const {
  if (!tensor.a.is_strided()) return std::nullopt;
  const Tensor& a = tensor.a.to_tensor();
  if (!is_followed(a)) return std::nullopt;
  const auto found = elements_.find(a.impl());
  if (found != elements_.end()) return found->second.items;
  if (call.tracer().is_dynamic(tensor) || !call.tracer().has_one_shape(tensor)) return std::nullopt;
  Elements out;
  for (const int64_t value : integers_of(a)) out.push_back(number_of(value, value));
  return out;
}

// The elements must match the tensors of both examples.
void ProgramWriter::set_elements(const Call& call, const Traced& tensor, Elements items) {
  const Tensor &a = tensor.a.to_tensor(), &b = tensor.b.to_tensor();
  if (!is_followed(a) || !call.tracer().has_one_shape(tensor)) return;
  const std::vector<int64_t> first = integers_of(a), second = integers_of(b);
  check_internal(items.size() == first.size(), "a followed tensor has other elements than it should");
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i].a.is_int() || items[i].a.to_int() != first[i] || items[i].b.to_int() != second[i]) return;
  }
  elements_[a.impl()] = {a, std::move(items)};
}

// The contents of this memory are unknown from now on.
void ProgramWriter::forget_elements(const Tensor& written) {
  std::erase_if(elements_, [&](const auto& one) { return one.second.tensor.storage() == written.storage(); });
}

void ProgramWriter::follow_elements(Call& call) {
  for (size_t i = 0; i < call.arguments().size() && i < call.op().schema.arguments.size(); ++i) {
    const Traced& argument = call.arguments()[i];
    if (call.op().schema.arguments[i].alias.is_write && argument.a.is_strided()) {
      forget_elements(argument.a.to_tensor());
    }
  }
  if (call.op().schema.is_mutating() || call.results().size() != 1 || call.arguments().empty()) return;
  const std::string_view name = call.op().schema.name;
  const NoGradGuard no_grad;
  if (is_of(name, kMoves) || is_of(name, kJoins)) return follow_moves(call);
  const Traced& result = call.results()[0];
  if (!result.a.is_strided() || !is_followed(result.a.to_tensor())) return;
  if (name == "aten::_shape_as_tensor") {
    Elements sizes;
    for (int64_t i = 0; i < call.t().ndim(); ++i) sizes.push_back(size_at(call, call.first(), i));
    set_elements(call, result, std::move(sizes));
  } else if (name == "aten::to" || name == "aten::_to_copy") {
    if (auto items = elements_of(call, call.first())) set_elements(call, result, std::move(*items));
  } else if (is_of(name, kArithmetic) || is_of(name, kComparisons) || name == "aten::where") {
    follow_pointwise(call);
  } else if ((name == "aten::prod" || name == "aten::sum") && result.a.to_tensor().numel() == 1) {
    follow_reduction(call);
  }
}

// Runs the operator on element numbers, which shows where each element comes from.
void ProgramWriter::follow_moves(Call& call) {
  Elements pool;
  const auto ids_of = [&](const Traced& tensor) -> std::optional<Tensor> {
    const std::optional<Elements> items = elements_of(call, tensor);
    if (!items) return std::nullopt;
    Tensor ids = ids_like(tensor.a.to_tensor(), std::ssize(pool));
    pool.insert(pool.end(), items->begin(), items->end());
    return ids;
  };
  std::vector<ops::Value> arguments;
  for (size_t i = 0; i < call.arguments().size(); ++i) {
    const Traced& argument = call.arguments()[i];
    if (i > 0) {
      if (call.tracer().is_dynamic(argument)) return;
      arguments.push_back(call.tracer().to_value(argument, false));
    } else if (argument.a.is_strided()) {
      const std::optional<Tensor> ids = ids_of(argument);
      if (!ids) return;
      arguments.emplace_back(*ids);
    } else if (argument.items) {
      std::vector<Tensor> all;
      for (const Traced& item : *argument.items) {
        const std::optional<Tensor> ids = ids_of(item);
        if (!ids) return;
        all.push_back(*ids);
      }
      arguments.push_back(ops::make_tensor_list(all));
    } else {
      return;
    }
  }
  const ops::Value moved = ops::run(call.op(), arguments).at(0);
  const auto take = [&](const Traced& result, const Tensor& ids) {
    Elements items;
    for (const int64_t id : integers_of(ids)) items.push_back(pool.at(static_cast<size_t>(id)));
    set_elements(call, result, std::move(items));
  };
  const Traced& result = call.results()[0];
  if (moved.is_strided()) return take(result, moved.to_tensor());
  const std::vector<ops::Value>& all = moved.to_list()->items;
  for (size_t i = 0; result.items && i < all.size() && i < result.items->size(); ++i) {
    take((*result.items)[i], all[i].to_tensor());
  }
}

// The elements of an operand, broadcast to the result.
std::optional<Elements> ProgramWriter::broadcast_elements(Call& call, const Traced& operand,
                                                          const Tensor& result) const {
  if (operand.a.is_int()) return Elements(static_cast<size_t>(result.numel()), operand);
  const std::optional<Elements> items = elements_of(call, operand);
  if (!items) return std::nullopt;
  const Tensor ids = ids_like(operand.a.to_tensor(), 0);
  const Tensor all = ops::expand(ids, result.sizes());
  Elements out;
  for (const int64_t id : integers_of(all)) out.push_back((*items)[static_cast<size_t>(id)]);
  return out;
}

Traced ProgramWriter::element_of(Call& call, std::string_view op, const std::vector<Traced>& operands, int64_t a,
                                 int64_t b) {
  Traced out = number_of(a, b);
  const bool is_open = std::ranges::any_of(operands, [](const Traced& one) { return one.is_dynamic; });
  if (!is_open) return out;
  if (is_of(op, kComparisons)) {
    // A bool that is constant over all inputs, or unknown.
    out.is_dynamic = !compare(op, operands[0], operands[1]).has_value();
    return out;
  }
  out.is_dynamic = true;
  out.number = python_number(call, op, operands, out);
  return out;
}

void ProgramWriter::follow_pointwise(Call& call) {
  std::string_view name = call.op().schema.name;
  const Traced& result = call.results()[0];
  const Tensor& a = result.a.to_tensor();
  if ((name == "aten::add" || name == "aten::sub") && call.has("alpha") && call.in("alpha").is_dynamic) return;
  if ((name == "aten::add" || name == "aten::sub") && call.has("alpha") && call.integer("alpha") != 1) return;
  const bool is_truncated = name == "aten::div";
  if (is_truncated) {
    if (!call.has("rounding_mode")) return;
    name = "aten::floor_divide";
  }
  const size_t count = name == "aten::neg" ? 1 : name == "aten::where" ? 3 : 2;
  std::vector<Elements> operands;
  for (size_t i = 0; i < count; ++i) {
    if (i >= call.arguments().size()) return;
    std::optional<Elements> items = broadcast_elements(call, call.arguments()[i], a);
    if (!items) return;
    operands.push_back(std::move(*items));
  }
  if (!call.tracer().has_one_shape(result)) return;
  const std::vector<int64_t> first = integers_of(a), second = integers_of(result.b.to_tensor());
  Elements out;
  for (size_t i = 0; i < first.size(); ++i) {
    std::vector<Traced> here;
    for (const Elements& operand : operands) here.push_back(operand[i]);
    if (name == "aten::where") {
      if (here[0].is_dynamic) return;
      out.push_back(here[here[0].a.to_int() != 0 ? 1 : 2]);
      continue;
    }
    // Truncation and floor are the same for positive numbers.
    if (is_truncated && (least(here[0]) < 0 || least(here[1]) <= 0)) return;
    out.push_back(element_of(call, name, here, first[i], second[i]));
  }
  set_elements(call, result, std::move(out));
}

void ProgramWriter::follow_reduction(Call& call) {
  const std::optional<Elements> items = elements_of(call, call.first());
  if (!items || items->empty()) return;
  const bool is_product = std::string_view(call.op().schema.name) == "aten::prod";
  Traced total = items->front();
  for (size_t i = 1; i < items->size(); ++i) {
    const Traced& next = (*items)[i];
    const auto join = [&](const ops::Value& x, const ops::Value& y) {
      return is_product ? x.to_int() * y.to_int() : x.to_int() + y.to_int();
    };
    total = element_of(call, is_product ? "aten::mul" : "aten::add", {total, next}, join(total.a, next.a),
                       join(total.b, next.b));
  }
  set_elements(call, call.results()[0], {total});
}

}  // namespace tensord::jit::pt2
