// Lower bounds of sizes and numbers of a program over all inputs.
#include <limits>
#include <optional>

#include "core/jit/exporters/pt2/program_writer.h"
#include "core/jit/importers/pt2/expression.h"

namespace tensord::jit::pt2 {
namespace {

constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::min();

int64_t sum(int64_t a, int64_t b) {
  int64_t out;
  return a == kUnbounded || b == kUnbounded || __builtin_add_overflow(a, b, &out) ? kUnbounded : out;
}

int64_t product(int64_t a, int64_t b) {
  int64_t out;
  return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &out) ? kUnbounded : out;
}

// The lower bound of an expression, given lower bounds of its symbols.
template <class OfSymbol>
int64_t lower_bound(const Expression& expression, const OfSymbol& of_symbol) {
  using Kind = Expression::Kind;
  if (expression.kind == Kind::kInt) return expression.number;
  if (expression.kind == Kind::kSymbol) return of_symbol(expression.text);
  if (expression.kind != Kind::kCall || expression.operands.size() != 2) return kUnbounded;
  const auto bound = [&](size_t i) { return lower_bound(expression.operands[i], of_symbol); };
  const Expression& second = expression.operands[1];
  if (expression.text == "+") return sum(bound(0), bound(1));
  if (expression.text == "*") return product(bound(0), bound(1));
  if (expression.text == "//" && second.kind == Kind::kInt && second.number > 0) {
    const int64_t a = bound(0);
    return a < 0 ? kUnbounded : a / second.number;
  }
  return kUnbounded;
}

int sign_of(int64_t a, int64_t b) { return (a > b) - (a < b); }

// The result of comparing two numbers whose difference has this sign.
std::optional<bool> holds(std::string_view op, int difference) {
  if (op == "aten::eq") return difference == 0;
  if (op == "aten::ne") return difference != 0;
  if (op == "aten::lt") return difference < 0;
  if (op == "aten::le") return difference <= 0;
  if (op == "aten::gt") return difference > 0;
  if (op == "aten::ge") return difference >= 0;
  return std::nullopt;
}

// The comparison with exchanged operands.
std::string_view mirrored(std::string_view op) {
  if (op == "aten::lt") return "aten::gt";
  if (op == "aten::le") return "aten::ge";
  if (op == "aten::gt") return "aten::lt";
  if (op == "aten::ge") return "aten::le";
  return op;
}

}  // namespace

int64_t ProgramWriter::least(const Traced& number) const {
  if (!number.a.is_int()) return kUnbounded;
  if (!number.is_dynamic) return number.a.to_int();
  const auto found = expressions_.find(number.number);
  if (found == expressions_.end()) return kUnbounded;
  return lower_bound(parse_expression(found->second), [&](const std::string& symbol) {
    const auto range = ranges_.find(symbol);
    const bool is_known = range != ranges_.end() && (*range)["min_val"].is_number_integer();
    return is_known ? (*range)["min_val"].get<int64_t>() : kUnbounded;
  });
}

bool ProgramWriter::is_same_number(const Traced& one, const Traced& other) const {
  if (Target::is_same_number(one, other)) return true;
  const auto first = expressions_.find(one.number), second = expressions_.find(other.number);
  return one.is_dynamic && other.is_dynamic && one.a.is_int() && other.a.is_int() && first != expressions_.end() &&
         second != expressions_.end() && first->second == second->second;
}

std::optional<bool> ProgramWriter::compare_bounds(std::string_view op, const Traced& x, const Traced& y) const {
  if (!x.a.is_int() || !y.a.is_int()) return std::nullopt;
  const bool is_same = x.is_dynamic && is_same_number(x, y);
  if (is_same) return holds(op, 0);
  if (!x.is_dynamic && !y.is_dynamic) return holds(op, sign_of(x.a.to_int(), y.a.to_int()));
  if (x.is_dynamic && y.is_dynamic) return std::nullopt;
  if (y.is_dynamic) return compare_bounds(mirrored(op), y, x);
  const int64_t bound = least(x), fixed = y.a.to_int();
  if (bound > fixed) return holds(op, 1);
  if (bound == fixed && op == "aten::ge") return true;
  if (bound == fixed && op == "aten::lt") return false;
  return std::nullopt;
}

std::optional<bool> ProgramWriter::compare(std::string_view op, const Traced& x, const Traced& y) const {
  const std::optional<bool> answer = compare_bounds(op, x, y);
  const auto value_in = [](const Traced& number, size_t set) -> std::optional<int64_t> {
    if (!number.is_dynamic) return number.a.to_int();
    if (!number.probes || set >= number.probes->size()) return std::nullopt;
    const std::optional<ops::Value>& one = (*number.probes)[set];
    return one && one->is_int() ? std::optional(one->to_int()) : std::nullopt;
  };
  const size_t count = std::max(x.probes ? x.probes->size() : 0, y.probes ? y.probes->size() : 0);
  for (size_t set = 0; answer && set < count; ++set) {
    const std::optional<int64_t> first = value_in(x, set), second = value_in(y, set);
    if (first && second && holds(op, sign_of(*first, *second)) != answer) return std::nullopt;
  }
  return answer;
}

}  // namespace tensord::jit::pt2
