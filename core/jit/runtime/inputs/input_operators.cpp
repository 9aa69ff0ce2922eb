// Shape rules of operators: the result's shape, and constraints on the operands. For an operator without a rule,
// nothing is known about the result.
#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "core/jit/runtime/inputs/traced.h"

namespace tensord::jit {
namespace {

using Operands = std::span<const TracedOperand>;
using Result = std::optional<TracedShape>;

// A call as seen by a rule. `examples` are shapes that the call accepts; a rule that knows some adds them.
struct Call {
  const ops::Op& op;
  Operands operands;
  Facts& facts;
  std::vector<Dims>& examples;

  const TracedOperand* operand(std::string_view name) const {
    const auto& arguments = op.schema.arguments;
    for (size_t i = 0; i < arguments.size() && i < operands.size(); ++i) {
      if (arguments[i].name == name) return &operands[i];
    }
    return nullptr;
  }
  std::optional<int64_t> number(std::string_view name) const {
    const TracedOperand* found = operand(name);
    return found ? found->number() : std::nullopt;
  }
  const Tensor* tensor(std::string_view name) const {
    const TracedOperand* found = operand(name);
    return found && found->is_tensor_constant() ? &found->tensor() : nullptr;
  }
  const Result& shape() const { return operands[0].traced.shape; }
  Result fail() const {
    facts.fails = true;
    return std::nullopt;
  }
  // Normalizes a dimension; returns -1 and marks the run as failing if it is out of range.
  int dim(int64_t number, size_t rank) const {
    const auto limit = static_cast<int64_t>(std::max<size_t>(rank, 1));
    if (number < -limit || number >= limit) {
      facts.fails = true;
      return -1;
    }
    return static_cast<int>(number < 0 ? number + limit : number);
  }
  void meets(const Tensor& weight) const { facts.weight_dtypes.insert(weight.dtype()); }
};

Result same(const Call& call) { return call.shape(); }

// Broadcasts: dimensions of size 1, and missing ones, are expanded.
Result broadcast(const Call& call) {
  Result out;
  const auto join = [&](const TracedShape& other) {
    if (!out) return void(out = other);
    if (other.size() > out->size()) out->insert(out->begin(), other.size() - out->size(), Dim{-1, 1});
    for (size_t i = 0; i < other.size(); ++i) {
      Dim& mine = (*out)[out->size() - other.size() + i];
      const Dim& theirs = other[i];
      if (mine == theirs || theirs.size == 1) continue;
      mine = mine.size == 1 ? theirs : mine.size > 1 ? mine : theirs.size > 1 ? theirs : Dim{};
    }
  };
  for (const TracedOperand& operand : call.operands) {
    if (operand.is_tensor_constant()) {
      TracedShape sizes;
      for (const int64_t size : operand.tensor().sizes()) sizes.push_back({-1, size});
      join(sizes);
    } else if (operand.traced.is_traced && !operand.traced.number) {
      if (!operand.traced.shape) return std::nullopt;
      join(*operand.traced.shape);
    } else if (!operand.constant) {
      return std::nullopt;
    }
  }
  return out;
}

Result linear(const Call& call) {
  const Tensor* weight = call.tensor("weight");
  if (!weight || weight->sizes().size() != 2) return std::nullopt;
  call.meets(*weight);
  call.examples = {{2, weight->sizes()[1]}};
  if (!call.shape()) return std::nullopt;
  TracedShape out = *call.shape();
  if (out.empty()) return call.fail();
  call.facts.require(out.back(), weight->sizes()[1]);
  out.back() = {-1, weight->sizes()[0]};
  return out;
}

// self @ other with a constant on the right.
Result product(const Call& call, const TracedOperand& left, const TracedOperand& right, bool is_2d) {
  if (!right.is_tensor_constant() || !left.traced.is_traced) return std::nullopt;
  const auto& sizes = right.tensor().sizes();
  if (sizes.empty() || sizes.size() > 2 || (is_2d && sizes.size() != 2)) return std::nullopt;
  call.meets(right.tensor());
  call.examples = {{2, sizes[0]}};
  if (!left.traced.shape) return std::nullopt;
  TracedShape out = *left.traced.shape;
  if (out.empty() || (is_2d && out.size() != 2)) return call.fail();
  call.facts.require(out.back(), sizes[0]);
  out.pop_back();
  if (sizes.size() == 2) out.push_back({-1, sizes[1]});
  return out;
}

Result matmul(const Call& call) { return product(call, call.operands[0], call.operands[1], false); }
Result mm(const Call& call) { return product(call, call.operands[0], call.operands[1], true); }
Result addmm(const Call& call) {
  return call.operands[0].constant ? product(call, call.operands[1], call.operands[2], true) : std::nullopt;
}

// Whether the shape is (batch, channels, spatial…) rather than (channels, spatial…), which has `rank` dimensions.
bool has_samples(const Call& call, const TracedShape& shape, size_t rank) {
  if (shape.size() != rank && shape.size() != rank + 1) {
    call.facts.fails = true;
    return false;
  }
  call.facts.is_without_batch = call.facts.is_without_batch || shape.size() == rank;
  return true;
}

Result convolution(const Call& call) {
  const Tensor* weight = call.tensor("weight");
  const std::optional<int64_t> groups = call.number("groups");
  if (!weight || weight->sizes().size() < 3 || !groups || *groups < 1) return std::nullopt;
  const size_t rank = weight->sizes().size() - 1;
  const bool is_method = call.op.name().find("transpose") != std::string::npos;
  const bool is_transposed = is_method || call.number("transposed").value_or(0) != 0;
  const int64_t in = is_transposed ? weight->sizes()[0] : weight->sizes()[1] * *groups;
  const int64_t out_channels = is_transposed ? weight->sizes()[1] * *groups : weight->sizes()[0];
  call.meets(*weight);
  constexpr int64_t kSpatial = 64;  // larger than most kernels with their dilation
  Dims example(rank + 1, kSpatial);
  example[0] = 2;
  example[1] = in;
  call.examples = {example};
  if (!call.shape() || !has_samples(call, *call.shape(), rank)) return std::nullopt;
  TracedShape out = *call.shape();
  const size_t channel = out.size() - rank;
  call.facts.require(out[channel], in);
  for (size_t i = channel; i < out.size(); ++i) out[i] = {};
  out[channel] = {-1, out_channels};
  return out;
}

template <size_t kRank>
Result pool(const Call& call) {
  call.examples = {Dims(kRank + 1, 64)};
  if (!call.shape() || !has_samples(call, *call.shape(), kRank)) return std::nullopt;
  TracedShape out = *call.shape();
  for (size_t i = out.size() - kRank + 1; i < out.size(); ++i) out[i] = {};
  return out;
}

// The call determines the last dimensions.
template <size_t kRank>
Result adaptive_pool(const Call& call) {
  Result out = pool<kRank>(call);
  const TracedOperand* sizes = call.operand("output_size");
  const auto numbers = sizes ? sizes->numbers() : std::nullopt;
  if (!out || !numbers || numbers->size() != kRank - 1) return out;
  for (size_t i = 0; i < numbers->size(); ++i) {
    if (const auto& number = (*numbers)[i]) (*out)[out->size() - numbers->size() + i] = {-1, *number};
  }
  return out;
}

// Normalization over (batch, channels, …).
Result channel_norm(const Call& call) {
  const Tensor* channels = call.tensor("weight");
  if (!channels) channels = call.tensor("running_mean");
  if (!channels || channels->sizes().size() != 1) return std::nullopt;
  call.meets(*channels);
  const int64_t size = channels->sizes()[0];
  call.examples = {{2, size, 4, 4}, {2, size, 4}, {2, size, 4, 4, 4}, {2, size}};
  if (!call.shape()) return std::nullopt;
  if (call.shape()->size() < 2) return call.fail();
  call.facts.require((*call.shape())[1], size);
  return call.shape();
}

Result trailing_norm(const Call& call) {
  const TracedOperand* sizes = call.operand("normalized_shape");
  const auto numbers = sizes ? sizes->numbers() : std::nullopt;
  if (!numbers || numbers->empty()) return std::nullopt;
  Dims example{2};
  for (const auto& number : *numbers) {
    if (!number) return std::nullopt;
    example.push_back(*number);
  }
  if (const Tensor* weight = call.tensor("weight")) call.meets(*weight);
  call.examples = {example};
  if (!call.shape()) return std::nullopt;
  if (call.shape()->size() < numbers->size()) return call.fail();
  const size_t first = call.shape()->size() - numbers->size();
  for (size_t i = 0; i < numbers->size(); ++i) call.facts.require((*call.shape())[first + i], *(*numbers)[i]);
  return call.shape();
}

Result embedding(const Call& call) {
  const Tensor* weight = call.tensor("weight");
  if (!weight || weight->sizes().size() != 2) return std::nullopt;
  call.examples = {{2}};
  const Traced& indices = call.operands[1].traced;
  if (!indices.shape) return std::nullopt;
  TracedShape out = *indices.shape;
  out.push_back({-1, weight->sizes()[1]});
  return out;
}

// The product of the dimensions, if known.
Dim joined_dims(std::span<const Dim> dims) {
  int64_t size = 1;
  for (const Dim& dim : dims) {
    if (dim.size < 0 || __builtin_mul_overflow(size, dim.size, &size)) return {};
  }
  return {-1, size};
}

Result flatten(const Call& call) {
  const auto start = call.number("start_dim"), end = call.number("end_dim");
  if (!call.shape() || !start || !end) return std::nullopt;
  const TracedShape& shape = *call.shape();
  const int first = call.dim(*start, shape.size()), last = call.dim(*end, shape.size());
  if (first < 0 || last < 0 || first > last) return call.fail();
  if (shape.empty()) return TracedShape{{-1, 1}};
  TracedShape out(shape.begin(), shape.begin() + first + 1);
  if (last > first) out.back() = joined_dims({shape.begin() + first, shape.begin() + last + 1});
  out.insert(out.end(), shape.begin() + last + 1, shape.end());
  return out;
}

Result unsqueeze(const Call& call) {
  const auto dim = call.number("dim");
  if (!call.shape() || !dim) return std::nullopt;
  TracedShape out = *call.shape();
  const int place = call.dim(*dim, out.size() + 1);
  if (place < 0) return std::nullopt;
  out.insert(out.begin() + place, Dim{-1, 1});
  return out;
}

Result transpose(const Call& call) {
  const auto first = call.number("dim0"), second = call.number("dim1");
  if (!call.shape() || !first || !second) return std::nullopt;
  TracedShape out = *call.shape();
  const int a = call.dim(*first, out.size()), b = call.dim(*second, out.size());
  if (a < 0 || b < 0 || out.empty()) return std::nullopt;
  std::swap(out[static_cast<size_t>(a)], out[static_cast<size_t>(b)]);
  return out;
}

Result permute(const Call& call) {
  const TracedOperand* dims = call.operand("dims");
  const auto numbers = dims ? dims->numbers() : std::nullopt;
  if (!call.shape() || !numbers) return std::nullopt;
  if (numbers->size() != call.shape()->size()) return call.fail();
  TracedShape out;
  for (const auto& number : *numbers) {
    const int from = number ? call.dim(*number, numbers->size()) : -1;
    if (from < 0) return std::nullopt;
    out.push_back((*call.shape())[static_cast<size_t>(from)]);
  }
  return out;
}

Result select(const Call& call) {
  const auto dim = call.number("dim");
  if (!call.shape() || !dim) return std::nullopt;
  TracedShape out = *call.shape();
  if (out.empty()) return call.fail();
  const int place = call.dim(*dim, out.size());
  if (place >= 0) out.erase(out.begin() + place);
  return out;
}

Result slice(const Call& call) {
  const auto dim = call.number("dim");
  if (!call.shape() || !dim) return std::nullopt;
  TracedShape out = *call.shape();
  if (out.empty()) return call.fail();
  const int place = call.dim(*dim, out.size());
  if (place >= 0) out[static_cast<size_t>(place)] = {};
  return out;
}

Result reduce(const Call& call) {
  const TracedOperand* dims = call.operand("dim");
  const auto numbers = dims ? dims->numbers() : std::nullopt;
  const auto keeps = call.number("keepdim");
  if (!call.shape() || !numbers || numbers->empty() || !keeps) return std::nullopt;
  std::set<int> reduced;
  for (const auto& number : *numbers) {
    const int dim = number ? call.dim(*number, call.shape()->size()) : -1;
    if (dim < 0) return std::nullopt;
    reduced.insert(dim);
  }
  TracedShape out;
  for (size_t i = 0; i < call.shape()->size(); ++i) {
    if (!reduced.contains(static_cast<int>(i))) out.push_back((*call.shape())[i]);
    if (reduced.contains(static_cast<int>(i)) && *keeps) out.push_back({-1, 1});
  }
  return out;
}

// view and reshape: the result has as many dimensions as the list has items.
Result reshape(const Call& call) {
  const auto numbers = call.operands.size() > 1 ? call.operands[1].numbers() : std::nullopt;
  if (!numbers) return std::nullopt;
  TracedShape out;
  for (const auto& number : *numbers) out.push_back({-1, number && *number >= 0 ? *number : -1});
  return out;
}

struct Rule {
  Result (*shape)(const Call& call);
  size_t input = 0;          // the operand that must depend on the argument
  bool keeps_dtype = false;  // for all scalar arguments
};

const std::unordered_map<std::string_view, Rule>& rules() {
  static const std::unordered_map<std::string_view, Rule> table{
      {"aten::linear", {linear}},
      {"aten::matmul", {matmul}},
      {"aten::mm", {mm}},
      {"aten::addmm", {addmm, 1}},
      {"aten::conv1d", {convolution}},
      {"aten::conv2d", {convolution}},
      {"aten::conv3d", {convolution}},
      {"aten::conv_transpose1d", {convolution}},
      {"aten::conv_transpose2d", {convolution}},
      {"aten::conv_transpose3d", {convolution}},
      {"aten::convolution", {convolution}},
      {"aten::_convolution", {convolution}},
      {"aten::batch_norm", {channel_norm}},
      {"aten::instance_norm", {channel_norm}},
      {"aten::group_norm", {channel_norm}},
      {"aten::layer_norm", {trailing_norm}},
      {"aten::rms_norm", {trailing_norm}},
      {"aten::embedding", {embedding, 1}},
      {"aten::max_pool1d", {pool<2>}},
      {"aten::avg_pool1d", {pool<2>}},
      {"aten::adaptive_avg_pool1d", {adaptive_pool<2>}},
      {"aten::max_pool2d", {pool<3>}},
      {"aten::avg_pool2d", {pool<3>}},
      {"aten::adaptive_avg_pool2d", {adaptive_pool<3>}},
      {"aten::max_pool3d", {pool<4>}},
      {"aten::avg_pool3d", {pool<4>}},
      {"aten::adaptive_avg_pool3d", {adaptive_pool<4>}},
      {"aten::flatten", {flatten, 0, true}},
      {"aten::unsqueeze", {unsqueeze, 0, true}},
      {"aten::transpose", {transpose, 0, true}},
      {"aten::permute", {permute, 0, true}},
      {"aten::select", {select, 0, true}},
      {"aten::slice", {slice, 0, true}},
      {"aten::view", {reshape, 0, true}},
      {"aten::reshape", {reshape, 0, true}},
      {"aten::mean", {reduce}},
      {"aten::sum", {reduce}},
      {"aten::dropout", {same}},
      {"aten::feature_dropout", {same}},
      {"aten::contiguous", {same}},
      {"aten::clone", {same}},
      {"aten::detach", {same}},
      {"aten::to", {same}},
      {"aten::softmax", {same}},
      {"aten::log_softmax", {same}},
      {"aten::gelu", {same}},
      {"aten::hardtanh", {same}},
  };
  return table;
}

// Shapes that most operators accept.
const std::vector<Dims>& plain_examples() {
  static const std::vector<Dims> examples{{4, 6, 16, 16}, {4, 6, 16}, {4, 6}, {4, 6, 16, 16, 16}};
  return examples;
}

// Whether the result has the dtype of the first operand, whatever the scalar arguments are.
bool keeps_dtype(const ops::Op& op, const Rule* rule) {
  if (!rule || !rule->keeps_dtype) return false;
  return op.schema.arguments.size() < 2 || op.schema.arguments[1].name != "dtype";
}

}  // namespace

std::optional<int64_t> TracedOperand::number() const {
  if (!constant) return traced.number;
  if (constant->is_bool()) return constant->to_bool();
  if (constant->is_int()) return constant->to_int();
  return std::nullopt;
}

std::optional<std::vector<std::optional<int64_t>>> TracedOperand::numbers() const {
  if (!constant) return traced.numbers;
  if (constant->is_int()) return std::vector<std::optional<int64_t>>{constant->to_int()};
  if (!constant->is_list() || constant->to_list()->element->kind() != ops::TypeKind::kInt) return std::nullopt;
  std::vector<std::optional<int64_t>> out;
  for (const ops::Value& item : constant->to_list()->items) out.emplace_back(item.to_int());
  return out;
}

Traced trace_call(const ops::Op& op, std::span<const TracedOperand> operands, Facts& facts) {
  Traced out;
  out.is_traced = std::ranges::any_of(operands, [](const TracedOperand& operand) { return operand.traced.is_traced; });
  if (!out.is_traced) return out;
  if (op.base) {
    // In place: dtype and shape stay, and type promotion is not checked. The target may be resized.
    const bool is_in_place = op.schema.arguments.size() == op.base->schema.arguments.size();
    return is_in_place && operands[0].traced.is_traced ? operands[0].traced : out;
  }
  const auto found = rules().find(op.name());
  const Rule* rule = found == rules().end() ? nullptr : &found->second;
  std::vector<Dims> examples = plain_examples();
  const Call call{op, operands, facts, examples};
  if (rule && rule->input < operands.size() && operands[rule->input].traced.is_traced) {
    out.shape = rule->shape(call);
  } else if (op.is_pointwise) {
    out.shape = broadcast(call);
  }
  if (facts.fails) return out;
  out.dtypes = keeps_dtype(op, rule) ? operands[0].traced.dtypes : trace_dtypes(op, operands, examples, facts);
  return out;
}

}  // namespace tensord::jit
