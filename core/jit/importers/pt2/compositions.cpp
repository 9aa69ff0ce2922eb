// Operators that only exported programs have, composed of registered operators.

#include "core/jit/importers/pt2/compositions.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/ops/registry.h"

namespace tensord::jit::pt2 {

using ops::Value;

const Json* NodeCall::json(std::string_view name) const {
  for (const Json& input : array_member(node_, "inputs", "node")) {
    if (string_member(input, "name", "node") == name) return &member(input, "arg", "node");
  }
  return nullptr;
}

bool NodeCall::has(std::string_view name) const {
  const Json* given = json(name);
  return given && union_case(*given, "argument").name != "as_none";
}

GraphValue* NodeCall::find(std::string_view name) const {
  const Json* given = json(name);
  return given ? reader_.argument(*given, scope_) : nullptr;
}

GraphValue* NodeCall::at(std::string_view name) const {
  GraphValue* value = find(name);
  if (!value) fail(ErrorCode::kDataLoss, "argument '", name, "' is missing");
  return value;
}

GraphValue* NodeCall::or_constant(std::string_view name, Value otherwise) const {
  GraphValue* value = has(name) ? find(name) : nullptr;
  return value ? value : builder().constant(std::move(otherwise));
}

Value NodeCall::constant(std::string_view name, Value otherwise) const {
  if (!has(name)) return otherwise;
  const Value* known = at(name)->constant();
  if (!known) fail(ErrorCode::kUnimplemented, "argument '", name, "' has to be a constant");
  return *known;
}

std::string NodeCall::output_kind() const {
  const Json& outputs = array_member(node_, "outputs", "node");
  return outputs.empty() ? std::string() : union_case(outputs[0], "result").name;
}

namespace {

using Results = std::vector<GraphValue*>;

GraphValue* raise(GraphBuilder& builder, GraphValue* message) { return builder.op("prim::RaiseException", {message}); }

// Always copies, unlike aten::to.
Results to_copy(const NodeCall& call) {
  GraphBuilder& builder = call.builder();
  GraphValue* self = call.at("self");
  GraphValue* format = call.or_constant("memory_format", Value());
  if (!call.has("dtype")) return {builder.op("aten::clone", {self, format})};
  GraphValue* off = builder.constant(false);
  return {builder.op("aten::to.dtype", {self, call.at("dtype"), off, builder.constant(true), format})};
}

// Asserts what the program was traced with. Results depend on dtype and sizes; strides are an implementation choice.
Results assert_tensor_metadata(const NodeCall& call) {
  GraphBuilder& builder = call.builder();
  GraphValue* tensor = call.at(call.json("a") ? "a" : "self");
  if (call.has("dtype")) {
    GraphValue* same = builder.op("aten::eq.int", {builder.op("prim::dtype", {tensor}), call.at("dtype")});
    builder.require(
        same, [&] { raise(builder, builder.constant("a tensor has another dtype than in the exported program")); });
  }
  if (call.has("size")) {
    GraphValue* same = builder.op("aten::eq.int_list", {builder.op("aten::size", {tensor}), call.at("size")});
    builder.require(same,
                    [&] { raise(builder, builder.constant("a tensor has other sizes than in the exported program")); });
  }
  return {};
}

GraphValue* as_condition(GraphBuilder& builder, GraphValue* value) {
  switch (value->type()->kind()) {
    case ops::TypeKind::kBool: return value;
    case ops::TypeKind::kTensor: return builder.op("aten::Bool.Tensor", {value});
    default: return builder.scalar_op("aten::Bool", {value});
  }
}

Results assert_true(const NodeCall& call) {
  GraphBuilder& builder = call.builder();
  const Value message = call.constant("assert_msg", Value("an assertion of the exported program does not hold"));
  builder.require(as_condition(builder, call.at("self")), [&] { raise(builder, builder.constant(message)); });
  return {};
}

Results constrain_range(const NodeCall& call) {
  GraphBuilder& builder = call.builder();
  GraphValue* size = call.at(call.json("size") ? "size" : "symbol");
  const auto bound = [&](const char* name, const char* op, const char* word) {
    if (!call.has(name)) return;
    GraphValue* limit = call.at(name);
    builder.require(builder.op(op, {size, limit}), [&] {
      raise(builder, builder.constant(concat("a size that the data decides is ", word, " of the exported program")));
    });
  };
  bound("min", "aten::ge.int", "below the smallest");
  bound("max", "aten::le.int", "above the largest");
  return {};
}

// In evaluation mode, the other two results are empty.
Results batch_norm_no_training(const NodeCall& call) {
  GraphBuilder& builder = call.builder();
  GraphValue* out = builder.op(
      "aten::batch_norm", {call.at("input"), call.or_constant("weight", Value()), call.or_constant("bias", Value()),
                           call.at("running_mean"), call.at("running_var"), builder.constant(false),
                           call.at("momentum"), call.at("eps"), builder.constant(false)});
  GraphValue* empty = builder.op("aten::slice.Tensor", {call.at("running_mean"), builder.constant(0),
                                                        builder.constant(0), builder.constant(0), builder.constant(1)});
  return {out, empty, empty};
}

// Running statistics are returned instead of being updated in place.
Results batch_norm_functional(const NodeCall& call) {
  GraphBuilder& builder = call.builder();
  GraphValue* mean = builder.op("aten::clone", {call.at("running_mean"), builder.none()});
  GraphValue* var = builder.op("aten::clone", {call.at("running_var"), builder.none()});
  Node* norm =
      builder.call(ops::get_op("aten::native_batch_norm"),
                   Results{call.at("input"), call.or_constant("weight", Value()), call.or_constant("bias", Value()),
                           mean, var, call.at("training"), call.at("momentum"), call.at("eps")});
  return {norm->output(0), norm->output(1), norm->output(2), mean, var};
}

Results batch_norm_in_place(const NodeCall& call) {
  GraphBuilder& builder = call.builder();
  Node* norm = builder.call(ops::get_op("aten::native_batch_norm"),
                            Results{call.at("input"), call.or_constant("weight", Value()),
                                    call.or_constant("bias", Value()), call.at("running_mean"), call.at("running_var"),
                                    call.at("training"), call.at("momentum"), call.at("eps")});
  return {norm->output(0), norm->output(1), norm->output(2)};
}

Results batch_norm_without_statistics(const NodeCall& call) {
  GraphBuilder& builder = call.builder();
  Node* norm =
      builder.call(ops::get_op("aten::native_batch_norm"),
                   Results{call.at("input"), call.or_constant("weight", Value()), call.or_constant("bias", Value()),
                           builder.none(), builder.none(), call.at("training"), call.at("momentum"), call.at("eps")});
  return {norm->output(0), norm->output(1), norm->output(2)};
}

// A tensor with permuted memory layout: allocated in that order and viewed in the other.
Results empty_permuted(const NodeCall& call) {
  GraphBuilder& builder = call.builder();
  GraphValue* sizes = call.at("size");
  GraphValue* layout = call.at("physical_layout");
  if (sizes->node()->kind() != NodeKind::kListConstruct || layout->node()->kind() != NodeKind::kListConstruct ||
      sizes->node()->inputs().size() != layout->node()->inputs().size()) {
    fail(ErrorCode::kUnimplemented, "aten::empty_permuted: sizes and layout have to be lists of one length");
  }
  const size_t rank = sizes->node()->inputs().size();
  Results physical, inverse(rank, nullptr);
  for (size_t i = 0; i < rank; ++i) {
    const Value* dim = layout->node()->input(i)->constant();
    if (!dim || !dim->is_int() || dim->to_int() < 0 || dim->to_int() >= static_cast<int64_t>(rank) ||
        inverse[static_cast<size_t>(dim->to_int())]) {
      fail(ErrorCode::kDataLoss, "aten::empty_permuted: the layout is not an order of dimensions");
    }
    physical.push_back(sizes->node()->input(static_cast<size_t>(dim->to_int())));
    inverse[static_cast<size_t>(dim->to_int())] = builder.constant(static_cast<int64_t>(i));
  }
  GraphValue* made = builder.op("aten::empty.memory_format",
                                {builder.list(ops::int_type(), physical), call.or_constant("dtype", Value())});
  return {builder.op("aten::permute", {made, builder.list(ops::int_type(), inverse)})};
}

// The element of a one-element tensor, with the type that the program uses.
Results item(const NodeCall& call) {
  const std::string kind = call.output_kind();
  const char* op = kind == "as_sym_int"     ? "aten::Int.Tensor"
                   : kind == "as_sym_float" ? "aten::Float.Tensor"
                   : kind == "as_sym_bool"  ? "aten::Bool.Tensor"
                                            : nullptr;
  if (!op) fail(ErrorCode::kUnimplemented, "a result of kind ", kind, " is not supported");
  return {call.builder().op(op, {call.at("self")})};
}

// The second result is only needed for the gradient, which autograd computes from the operator itself.
Results attention_for_cpu(const NodeCall& call) {
  GraphBuilder& builder = call.builder();
  GraphValue* out =
      builder.op("aten::scaled_dot_product_attention",
                 {call.at("query"), call.at("key"), call.at("value"), call.or_constant("attn_mask", Value()),
                  call.or_constant("dropout_p", Value(0.0)), call.or_constant("is_causal", Value(false)),
                  call.or_constant("scale", Value()), builder.constant(false)});
  return {out, nullptr};
}

// A copy of the source with the dtype and shape of `self`.
Results copy(const NodeCall& call) {
  GraphBuilder& builder = call.builder();
  GraphValue* out = builder.op("aten::clone", {call.at("self"), builder.none()});
  builder.op("aten::copy_", {out, call.at("src"), builder.constant(false)});
  return {out};
}

struct Entry {
  std::string_view name;
  Results (*make)(const NodeCall& call);
};

constexpr Entry kCompositions[] = {
    {"aten::_to_copy", to_copy},
    {"aten::_assert_tensor_metadata", assert_tensor_metadata},
    {"aten::_assert_scalar", assert_true},
    {"aten::_assert_async", assert_true},
    {"aten::_assert_async.msg", assert_true},
    {"aten::sym_constrain_range", constrain_range},
    {"aten::sym_constrain_range_for_size", constrain_range},
    {"aten::_native_batch_norm_legit_no_training", batch_norm_no_training},
    {"aten::_native_batch_norm_legit_functional", batch_norm_functional},
    {"aten::_native_batch_norm_legit", batch_norm_in_place},
    {"aten::_native_batch_norm_legit.no_stats", batch_norm_without_statistics},
    {"aten::empty_permuted", empty_permuted},
    {"aten::item", item},
    {"aten::_local_scalar_dense", item},
    {"aten::_scaled_dot_product_flash_attention_for_cpu", attention_for_cpu},
    {"aten::copy", copy},
};

struct Renaming {
  std::string_view exported, registered;
};

// Operators on symbolic sizes are the ones on sizes; wrappers that export adds around constants become a copy or
// nothing.
constexpr Renaming kRenamings[] = {
    {"aten::sym_size.int", "aten::size.int"},
    {"aten::sym_size", "aten::size"},
    {"aten::sym_stride.int", "aten::stride.int"},
    {"aten::sym_numel", "aten::numel"},
    {"aten::sym_storage_offset", "aten::storage_offset"},
    {"aten::lift_fresh_copy", "aten::clone"},
    {"aten::detach_", "aten::detach"},
    {"aten::_unsafe_index.Tensor", "aten::index.Tensor"},
    {"aten::_unsafe_index_put", "aten::index_put"},
    {"aten::_adaptive_avg_pool2d", "aten::adaptive_avg_pool2d"},
    {"aten::_adaptive_avg_pool3d", "aten::adaptive_avg_pool3d"},
    {"transformers::grouped_mm_fallback", "aten::_grouped_mm"},
};

}  // namespace

Composition find_composition(std::string_view operator_name) {
  // Looked up again, because a plain function pointer cannot capture the entry.
  static constexpr auto kMake = [](GraphReader& reader, const Json& node, const GraphReader::Scope& scope) -> Results {
    const std::string name = ::tensord::jit::pt2::operator_name(string_member(node, "target", "node"));
    return std::ranges::find(kCompositions, std::string_view(name), &Entry::name)->make(NodeCall(reader, node, scope));
  };
  const auto found = std::ranges::find(kCompositions, operator_name, &Entry::name);
  return found == std::end(kCompositions) ? nullptr : Composition(kMake);
}

std::string_view registry_name(std::string_view operator_name) {
  const auto found = std::ranges::find(kRenamings, operator_name, &Renaming::exported);
  return found == std::end(kRenamings) ? operator_name : found->registered;
}

}  // namespace tensord::jit::pt2
