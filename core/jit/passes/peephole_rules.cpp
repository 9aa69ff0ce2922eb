// The table of peephole rules, with guards and rewrites that a pattern cannot express. A guard must be certain: a rule
// applies only if it is valid in every run.
#include <algorithm>

#include "core/jit/ir/graph_builder.h"
#include "core/jit/passes/peephole.h"
#include "core/ops/attributes/may_lack_results.h"
#include "core/ops/registry.h"

namespace tensord::jit {

using ops::TypeKind;
using ops::Value;

namespace {

// ---- guards

// "dims" is [0, 1, 2 …].
bool is_identity(const Match& match) {
  const Value* dims = match.constant("dims");
  if (!dims || !dims->is_list()) return false;
  const auto& items = dims->to_list()->items;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i].is_int() || items[i].to_int() != static_cast<int64_t>(i)) return false;
  }
  return true;
}

// Whether a value of static type Tensor may still be None, because of the operator that returns it, directly or through
// branches. Values carried by a loop or passed to a function got their type where they entered.
bool may_lack(const GraphValue* tensor, int depth = 0) {
  constexpr int kMaxDepth = 8;  // branches may refer to results of earlier branches on both sides
  const Node* const maker = tensor->node();
  if (!maker || depth > kMaxDepth) return maker != nullptr;
  if (maker->kind() == NodeKind::kOp) return maker->op()->attributes.get<ops::MayLackResults>() != nullptr;
  if (maker->kind() != NodeKind::kIf) return false;
  const size_t place = static_cast<size_t>(std::ranges::find(maker->outputs(), tensor) - maker->outputs().begin());
  return std::ranges::any_of(maker->blocks(),
                             [&](const Block* way) { return may_lack(way->outputs()[place], depth + 1); });
}

// Whether a value of this static type is never None.
bool is_never_none(const Match& match) {
  switch (match.value("x")->type()->kind()) {
    case TypeKind::kTensor: return !may_lack(match.value("x"));
    case TypeKind::kInt:
    case TypeKind::kFloat:
    case TypeKind::kBool:
    case TypeKind::kString:
    case TypeKind::kNumber:
    case TypeKind::kDevice:
    case TypeKind::kList:
    case TypeKind::kDict:
    case TypeKind::kTuple:
    case TypeKind::kClass:
    case TypeKind::kEnum:
    case TypeKind::kInterface: return true;
    default: return false;
  }
}

bool is_tensor(const Match& match) { return match.value("x")->type()->kind() == TypeKind::kTensor; }

bool is_none(const Match& match) { return match.value("x")->type()->kind() == TypeKind::kNone; }

// Parameters and conversions have a dtype that is known without a run.
bool is_known_floating(const GraphValue* value) {
  if (const Value* constant = value->constant()) {
    return constant->is_strided() && tensord::is_floating(constant->to_tensor().dtype());
  }
  const Node* node = value->node();
  if (!node || !node->is_op("aten::to.dtype")) return false;
  const Value* dtype = node->input(1)->constant();
  return dtype && dtype->is_int() && tensord::is_floating(dtype->to_dtype());
}

// Then a number does not change the dtype of x.
bool x_is_floating(const Match& match) { return is_known_floating(match.value("x")); }

// Whether "t" is float32 and x is a half-precision weight, so that every element has an exact float32 value.
bool widens_constant(const Match& match) {
  const Value *x = match.constant("x"), *dtype = match.constant("t");
  if (!x || !dtype || !x->is_strided() || !dtype->is_int() || dtype->to_dtype() != DType::kFloat32) return false;
  return x->to_tensor().dtype() == DType::kFloat16 || x->to_tensor().dtype() == DType::kBFloat16;
}

// ---- rewrites

// The node of a list that was just made and is never changed, or null.
const Node* fixed_list(const Match& match, const GraphValue* list) {
  const Node* node = list->node();
  if (!node || node->kind() != NodeKind::kListConstruct) return nullptr;
  int location = match.alias().location(list);
  if (location != AliasAnalysis::kNoMemory &&
      (!match.alias().writers(location).empty() || match.alias().is_external(location)))
    return nullptr;
  return node;
}

GraphValue* item_of_list(const Match& match) {
  const Node* list = fixed_list(match, match.value("list"));
  const Value* index = match.constant("i");
  if (!list || !index || !index->is_int()) return nullptr;
  int64_t count = static_cast<int64_t>(list->inputs().size());
  int64_t i = index->to_int() < 0 ? index->to_int() + count : index->to_int();
  return i >= 0 && i < count ? list->input(static_cast<size_t>(i)) : nullptr;
}

GraphValue* length_of_list(const Match& match) {
  const Node* list = fixed_list(match, match.value("list"));
  if (!list) return nullptr;
  return GraphBuilder(match.root()).constant(static_cast<int64_t>(list->inputs().size()));
}

// "size(x)[i]" queries one size instead of a list of all sizes.
GraphValue* one_size(const Match& match) {
  if (!match.constant("i")) return nullptr;
  const ops::Op* size = nullptr;
  for (const ops::Op* overload : ops::find_overloads("aten::size")) {
    if (overload->schema.overload == "int") size = overload;
  }
  if (!size) return nullptr;
  GraphValue* inputs[] = {match.value("x"), match.value("i")};
  return GraphBuilder(match.root()).call(*size, inputs)->output();
}

constexpr auto kGivesBack = PeepholeRule::Memory::kGivesBack;
constexpr auto kShapeOnly = PeepholeRule::Memory::kShapeOnly;

const PeepholeRule kRules[] = {
    // Layout.
    {"double t", "aten::t(aten::t(x))", "x"},
    {"transpose back", "aten::transpose.int(aten::transpose.int(x, a, b), a, b)", "x"},
    {"transpose back, swapped", "aten::transpose.int(aten::transpose.int(x, a, b), b, a)", "x"},
    {"permute nothing", "aten::permute(x, dims)", "x", is_identity},
    {"contiguous twice", "aten::contiguous(y=aten::contiguous(_, f), f)", "y"},
    {"view as itself", "aten::view(x, aten::size(x))", "x"},
    {"expand to itself", "aten::expand(x, aten::size(x), _)", "x"},
    {"detach", "aten::detach(x)", "x"},
    {"detach in place", "aten::detach_(x)", "x", nullptr, nullptr, kGivesBack},

    // Conversions.
    {"same dtype again", "aten::to.dtype(y=aten::to.dtype(_, t, _, _, _), t, _, False, None)", "y"},
    {"type_as of itself", "aten::type_as(x, x)", "x"},
    {"rows of a widened table", "aten::embedding(aten::to.dtype(x, t, n, False, m), i, p, s, q)",
     "aten::to.dtype(aten::embedding(x, i, p, s, q), t, n, False, None)", widens_constant},

    // For training only: these operators return their argument if `train` is False.
    {"dropout off", "aten::dropout(x, _, False)", "x", nullptr, nullptr, kGivesBack},
    {"dropout_ off", "aten::dropout_(x, _, False)", "x", nullptr, nullptr, kGivesBack},
    {"feature_dropout off", "aten::feature_dropout(x, _, False)", "x", nullptr, nullptr, kGivesBack},
    {"feature_dropout_ off", "aten::feature_dropout_(x, _, False)", "x", nullptr, nullptr, kGivesBack},
    {"alpha_dropout off", "aten::alpha_dropout(x, _, False)", "x", nullptr, nullptr, kGivesBack},
    {"alpha_dropout_ off", "aten::alpha_dropout_(x, _, False)", "x", nullptr, nullptr, kGivesBack},
    {"feature_alpha_dropout off", "aten::feature_alpha_dropout(x, _, False)", "x", nullptr, nullptr, kGivesBack},

    // Arithmetic of tensors with a number that changes nothing. x + 0 is not in the list, because it turns -0.0 into
    // 0.0.
    {"subtract zero", "aten::sub.Scalar(x, 0)", "x", x_is_floating},
    {"mul one", "aten::mul.Scalar(x, 1)", "x", x_is_floating},
    {"mul one point", "aten::mul.Scalar(x, 1.0)", "x", x_is_floating},
    {"div one", "aten::div.Scalar(x, 1)", "x", x_is_floating},
    {"div one point", "aten::div.Scalar(x, 1.0)", "x", x_is_floating},
    {"relu twice", "aten::relu(y=aten::relu(_))", "y"},

    // Arithmetic of ints and bools.
    {"int plus zero", "aten::add.int(x, 0)", "x"},
    {"zero plus int", "aten::add.int(0, x)", "x"},
    {"int minus zero", "aten::sub.int(x, 0)", "x"},
    {"int times one", "aten::mul.int(x, 1)", "x"},
    {"one times int", "aten::mul.int(1, x)", "x"},
    {"int by one", "aten::floordiv.int(x, 1)", "x"},
    {"double neg", "aten::neg.int(aten::neg.int(x))", "x"},
    {"double not", "aten::__not__(aten::__not__(x))", "x"},
    {"and true", "aten::__and__.bool(x, True)", "x"},
    {"and false", "aten::__and__.bool(_, False)", "False"},
    {"or false", "aten::__or__.bool(x, False)", "x"},
    {"or true", "aten::__or__.bool(_, True)", "True"},
    {"is None, never", "aten::__is__(x, None)", "False", is_never_none},
    {"is not None, always", "aten::__isnot__(x, None)", "True", is_never_none},
    {"is None, always", "aten::__is__(x, None)", "True", is_none},
    {"is not None, never", "aten::__isnot__(x, None)", "False", is_none},
    {"is itself", "aten::__is__(x, x)", "True", is_tensor},
    {"is not itself", "aten::__isnot__(x, x)", "False", is_tensor},
    {"unwrap what is there", "aten::_unwrap_optional(x)", "x", is_never_none},
    {"unwrap what is there, unchecked", "prim::unchecked_unwrap_optional(x)", "x", is_never_none},

    // Lists.
    {"item of a list just made", "aten::__getitem__.t(list, i)", nullptr, nullptr, item_of_list},
    {"length of a list just made", "aten::len.t(list)", nullptr, nullptr, length_of_list},
    {"one size", "aten::__getitem__.t(sizes=aten::size(x), i)", nullptr, nullptr, one_size},
    {"number of sizes", "aten::len.t(aten::size(x))", "aten::dim(x)"},

    // Rank queries move to earlier values, so that a check (batch norm makes one) does not prevent the fusion of its
    // operand.
    {"rank of what keeps it", "aten::dim(keeps_rank(x, ...))", "aten::dim(x)", nullptr, nullptr, kShapeOnly},
};

}  // namespace

std::span<const PeepholeRule> peephole_rules() { return kRules; }

}  // namespace tensord::jit
