#include "core/jit/importers/pt2/input_checks.h"

#include <algorithm>
#include <optional>

#include "core/base/error.h"
#include "core/jit/importers/pt2/enums.h"
#include "core/jit/importers/pt2/graph_reader.h"

namespace tensord::jit::pt2 {

using Kind = Expression::Kind;

namespace {

// Programs are exported for sizes of at least 2, but run with 0 and 1 too.
constexpr int64_t kSmallestRange = 2;

// Evaluates a sum of products over integers with `symbol` = `value`; nullopt for other expressions.
std::optional<int64_t> evaluate(const Expression& expression, int64_t value) {
  if (expression.kind == Kind::kInt) return expression.number;
  if (expression.kind == Kind::kSymbol) return value;
  if (expression.kind != Kind::kCall || expression.operands.empty()) return std::nullopt;
  std::optional<int64_t> out = evaluate(expression.operands[0], value);
  if (out && expression.text == "neg") {
    int64_t negative = 0;
    return __builtin_sub_overflow(int64_t{0}, *out, &negative) ? std::nullopt : std::optional(negative);
  }
  for (size_t i = 1; out && i < expression.operands.size(); ++i) {
    const std::optional<int64_t> next = evaluate(expression.operands[i], value);
    int64_t result = 0;
    bool overflows = !next;
    if (next && expression.text == "+") {
      overflows = __builtin_add_overflow(*out, *next, &result);
    } else if (next && expression.text == "-") {
      overflows = __builtin_sub_overflow(*out, *next, &result);
    } else if (next && expression.text == "*") {
      overflows = __builtin_mul_overflow(*out, *next, &result);
    } else {
      overflows = true;
    }
    if (overflows) return std::nullopt;
    out = result;
  }
  return out;
}

std::string joined(const std::vector<std::string>& path) {
  std::string out;
  for (const std::string& part : path) out += concat(out.empty() ? "" : ".", part);
  return out;
}

}  // namespace

std::string InputChecks::describe(const Size& size) {
  if (size.dim < 0) return concat("input '", size.input->name, "'");
  return concat("input '", size.input->name, "': dimension ", size.dim);
}

void InputChecks::refuse_unless(GraphValue* condition, const std::string& message, GraphValue* actual) {
  builder_.require(condition, [&] {
    builder_.op("prim::InvalidInput", {builder_.constant(message), actual ? actual : builder_.none()});
  });
}

void InputChecks::add_shapes() {
  for (const ProgramInput& input : inputs_) {
    if (input.meta) check_tensor(input);
    if (input.symbol) add_size(input, -1, input.value, *input.symbol);
  }
  bind_symbols();
}

void InputChecks::check_tensor(const ProgramInput& input) {
  const DType dtype = to_dtype(int_member(*input.meta, "dtype", input.name), concat("input '", input.name, "'"));
  refuse_unless(builder_.op("aten::eq.int", {builder_.op("prim::dtype", {input.value}), builder_.constant(dtype)}),
                concat("input '", input.name, "' has to be of ", name_of(dtype)));
  const Json& sizes = array_member(*input.meta, "sizes", input.name);
  const auto rank = static_cast<int64_t>(sizes.size());
  GraphValue* dims = builder_.op("aten::dim", {input.value});
  refuse_unless(builder_.op("aten::eq.int", {dims, builder_.constant(rank)}),
                concat("input '", input.name, "' has to have ", rank, " dimensions, but has "), dims);
  for (int64_t dim = 0; dim < rank; ++dim) {
    GraphValue* size = builder_.op("aten::size.int", {input.value, builder_.constant(dim)});
    add_size(input, dim, size, sizes[static_cast<size_t>(dim)]);
  }
}

void InputChecks::add_size(const ProgramInput& input, int64_t dim, GraphValue* value, const Json& size) {
  const auto [kind, given] = union_case(size, input.name);
  Size one{&input, dim, value, {}};
  if (kind == "as_int") {
    const int64_t fixed = to_int(given, input.name);
    refuse_unless(builder_.op("aten::eq.int", {value, builder_.constant(fixed)}),
                  concat(describe(one), " has to be ", fixed, ", but is "), value);
    return;
  }
  if (kind != "as_expr") fail(ErrorCode::kDataLoss, input.name, ": a size of kind ", kind);
  one.expression = parse_expression(string_member(given, "expr_str", input.name));
  sizes_.push_back(std::move(one));
}

// Each symbol is bound to the first size that equals it; others are solved from these.
void InputChecks::bind_symbols() {
  for (const Size& size : sizes_) {
    if (size.expression.kind == Kind::kSymbol && bound_.emplace(size.expression.text, &size).second) {
      symbols_[size.expression.text] = size.value;
    }
  }
  for (const Size& size : sizes_) {
    const std::vector<std::string> names = symbols_of(size.expression);
    if (size.expression.kind == Kind::kSymbol && bound_.at(size.expression.text) == &size) continue;
    const bool is_known = std::ranges::all_of(names, [&](const std::string& name) { return symbols_.contains(name); });
    if (!is_known) {
      // Several unknowns cannot be solved; the program has its own assertions in that case.
      if (names.size() == 1) solve(size);
      continue;
    }
    GraphValue* expected = emit(size.expression);
    std::string message = describe(size);
    if (size.expression.kind == Kind::kSymbol) {
      message += concat(" has to be as large as that of ", describe(*bound_.at(size.expression.text)), ", but is ");
    } else {
      message += " does not go with the sizes of the other inputs: it is ";
    }
    refuse_unless(builder_.op("aten::eq.int", {size.value, expected}), message, size.value);
  }
}

// Solves size = a·symbol + b.
bool InputChecks::solve(const Size& size) {
  const auto at0 = evaluate(size.expression, 0), at1 = evaluate(size.expression, 1), at2 = evaluate(size.expression, 2);
  if (!at0 || !at1 || !at2 || *at2 - *at1 != *at1 - *at0 || *at1 == *at0) return false;
  GraphValue* factor = builder_.constant(*at1 - *at0);
  GraphValue* rest = builder_.op("aten::sub.int", {size.value, builder_.constant(*at0)});
  refuse_unless(builder_.op("aten::eq.int", {builder_.op("aten::remainder.int", {rest, factor}), builder_.constant(0)}),
                concat(describe(size), " has to be a multiple of ", *at1 - *at0,
                       *at0 == 0 ? std::string() : concat(" and ", *at0), ", but is "),
                size.value);
  symbols_[symbols_of(size.expression)[0]] = builder_.op("aten::floordiv.int", {rest, factor});
  return true;
}

void InputChecks::add_ranges(const Json& range_constraints) {
  for (auto it = range_constraints.begin(); it != range_constraints.end(); ++it) {
    const auto symbol = symbols_.find(it.key());
    if (symbol == symbols_.end()) continue;
    const auto bound = bound_.find(it.key());
    const std::string what = bound == bound_.end() ? concat("size ", it.key()) : describe(*bound->second);
    const Json* min = find_member(it.value(), "min_val");
    const Json* max = find_member(it.value(), "max_val");
    if (min && min->is_number_integer() && to_int(*min, what) > kSmallestRange) {
      refuse_unless(builder_.op("aten::ge.int", {symbol->second, builder_.constant(to_int(*min, what))}),
                    concat(what, " has to be at least ", to_int(*min, what), ", but is "), symbol->second);
    }
    // No upper bound: null, or a number that no size reaches.
    if (max && max->is_number_integer() && !(max->is_number_unsigned() && max->get<uint64_t>() > INT64_MAX)) {
      refuse_unless(builder_.op("aten::le.int", {symbol->second, builder_.constant(to_int(*max, what))}),
                    concat(what, " has to be at most ", to_int(*max, what), ", but is "), symbol->second);
    }
  }
}

void InputChecks::add_guards(const Json& guards) {
  for (const Json& guard : guards) {
    const std::string& text = to_text(guard, concat(source_, ": guards_code"));
    try {
      GraphValue* holds = emit(parse_expression(text));
      if (holds->type()->kind() != ops::TypeKind::kBool)
        fail(ErrorCode::kUnimplemented, "'", text, "': is not a condition");
      refuse_unless(holds, concat("the sizes of the inputs are not what the program was exported for: ", text));
    } catch (const Error& error) {
      throw Error(error.code(), concat(source_, ": guard ", error.what()));
    }
  }
}

GraphValue* InputChecks::emit_source(const Expression& expression) {
  const std::string path = joined(expression.path);
  const auto find = [&](const std::string& wanted) {
    return std::ranges::find_if(inputs_, [&](const ProgramInput& input) {
      return input.name == wanted || std::ranges::find(input.paths, wanted) != input.paths.end();
    });
  };
  auto found = find(path);
  // An entry of forward's **kwargs, whatever the parameter is called.
  if (found == inputs_.end() && expression.path.size() > 1)
    found = find(concat("kwargs.", joined({expression.path.begin() + 1, expression.path.end()})));
  if (found == inputs_.end() || !found->value) {
    fail(ErrorCode::kUnimplemented, "'", path, "': is not an input of the program");
  }
  if (expression.call.empty()) return found->value;
  GraphValue* dim = builder_.constant(expression.number);
  if (expression.call == "size") return builder_.op("aten::size.int", {found->value, dim});
  if (expression.call == "stride") return builder_.op("aten::stride.int", {found->value, dim});
  if (expression.call == "storage_offset") return builder_.op("aten::storage_offset", {found->value});
  if (expression.call == "numel") return builder_.op("aten::numel", {found->value});
  if (expression.call == "dim" || expression.call == "ndimension") return builder_.op("aten::dim", {found->value});
  fail(ErrorCode::kUnimplemented, "'", path, ".", expression.call, "()': is not supported");
}

GraphValue* InputChecks::emit(const Expression& expression) {
  switch (expression.kind) {
    case Kind::kInt: return builder_.constant(expression.number);
    case Kind::kFloat: return builder_.constant(expression.real);
    case Kind::kBool: return builder_.constant(expression.number != 0);
    case Kind::kText: return builder_.constant(expression.text);
    case Kind::kSource: return emit_source(expression);
    case Kind::kSymbol: {
      const auto found = symbols_.find(expression.text);
      if (found == symbols_.end()) fail(ErrorCode::kUnimplemented, "'", expression.text, "': is not known");
      return found->second;
    }
    case Kind::kCall: break;
  }
  struct Operation {
    std::string_view name;
    const char* function;
  };
  constexpr Operation kOperations[] = {
      {"+", "_operator.add"},       {"-", "_operator.sub"},   {"*", "_operator.mul"},       {"/", "_operator.truediv"},
      {"//", "_operator.floordiv"}, {"%", "_operator.mod"},   {"**", "_operator.pow"},      {"neg", "_operator.neg"},
      {"==", "_operator.eq"},       {"!=", "_operator.ne"},   {"<", "_operator.lt"},        {"<=", "_operator.le"},
      {">", "_operator.gt"},        {">=", "_operator.ge"},   {"and", "_operator.and_"},    {"or", "_operator.or_"},
      {"not", "torch.sym_not"},     {"max", "torch.sym_max"}, {"min", "torch.sym_min"},     {"floor", "math.floor"},
      {"ceil", "math.ceil"},        {"trunc", "math.trunc"},  {"float", "torch.sym_float"}, {"sqrt", "math.sqrt"},
  };
  const auto known = std::ranges::find(kOperations, std::string_view(expression.text), &Operation::name);
  if (known == std::end(kOperations)) fail(ErrorCode::kUnimplemented, "'", expression.text, "': is not supported");
  std::vector<GraphValue*> operands;
  for (const Expression& operand : expression.operands) operands.push_back(emit(operand));
  constexpr std::string_view kOfOne[] = {"neg", "not", "floor", "ceil", "trunc", "float", "sqrt"};
  if (std::ranges::find(kOfOne, expression.text) != std::end(kOfOne)) {
    return python_call(builder_, known->function, operands);
  }
  GraphValue* out = operands.at(0);
  for (size_t i = 1; i < operands.size(); ++i) {
    GraphValue* const pair[] = {out, operands[i]};
    out = python_call(builder_, known->function, pair);
  }
  return out;
}

}  // namespace tensord::jit::pt2
