// Prepared forms of elementwise operators and of calls along the last dimension: tile programs of one call. Here the
// fuser also learns what an operator computes.
#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>

#include "core/tensor/half.h"
#include "kernels/fused/tile_program.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/reduce/row_kernel.h"

namespace tensord::kernels {

namespace {

// Whether PyTorch converts a number to the dtype of the tensor beside it first: it rounds to float16 and bfloat16, and
// wraps to narrow integers. Sums and products of integers wrap all the same. Of halves, products and plain quotients
// have kept it in float since 2.0, as have bounds, weights and factors.
bool converts_numbers(Formula formula) {
  switch (formula) {
    case Formula::add:
    case Formula::sub:
    case Formula::rsub:
    case Formula::remainder:
    case Formula::fmod:
    case Formula::div_floor:
    case Formula::div_trunc:
    case Formula::pow:
    case Formula::xlogy:
    case Formula::xlog1py:
    case Formula::hardshrink:
    case Formula::eq:
    case Formula::ne:
    case Formula::lt:
    case Formula::le:
    case Formula::gt:
    case Formula::ge: return true;
    default: return false;
  }
}

// The formula that rounds every step that PyTorch rounds.
Formula by_steps(Formula formula, DType compute) {
  if (compute != DType::kBFloat16) return formula;
  switch (formula) {
    case Formula::div_floor: return Formula::div_floor_bfloat16;
    case Formula::pow_cube: return Formula::pow_cube_bfloat16;
    case Formula::pow_reciprocal_square: return Formula::pow_reciprocal_square_bfloat16;
    case Formula::xlogy: return Formula::xlogy_bfloat16;
    case Formula::xlog1py: return Formula::xlog1py_bfloat16;
    default: return formula;
  }
}

double rounded(double number, DType dtype) {
  const auto single = static_cast<float>(number);
  return dtype == DType::kFloat16 ? static_cast<float>(Half(single)) : static_cast<float>(BFloat16(single));
}

int64_t wrapped(int64_t number, DType dtype) {
  switch (dtype) {
    case DType::kUInt8: return static_cast<uint8_t>(number);
    case DType::kInt8: return static_cast<int8_t>(number);
    case DType::kInt16: return static_cast<int16_t>(number);
    case DType::kInt32: return static_cast<int32_t>(number);
    default: return number;
  }
}

}  // namespace

PointwiseCall::PointwiseCall(Formula formula, DType compute, Operands given, const Numbers& numbers)
    : formula(formula), compute(compute), count(given.size()), numbers(numbers) {
  std::copy(given.begin(), given.end(), operands.begin());
  this->formula = by_steps(formula, compute);
  const bool is_half = compute == DType::kFloat16 || compute == DType::kBFloat16;
  const bool is_integer = is_integral(compute, false) && formula != Formula::pow;
  if (!(is_half || is_integer) || !converts_numbers(formula)) return;
  for (Operand& operand : std::span(operands).first(count)) {
    if (operand.tensor != nullptr) continue;
    const ops::Scalar& number = operand.number;
    operand.number = is_half ? ops::Scalar(rounded(number.to_double(), compute)) : wrapped(number.to_int(), compute);
  }
  if (is_integer) return;
  for (double& number : this->numbers.floats) number = rounded(number, compute);
}

bool has_nan(std::initializer_list<ops::Scalar> numbers) {
  return std::ranges::any_of(numbers, [](const ops::Scalar& number) { return std::isnan(number.to_double()); });
}

PointwiseCall nan_of(const Tensor& like, DType compute) {
  return {Formula::mul, compute, std::array{Operand(like), Operand(std::numeric_limits<double>::quiet_NaN())}};
}

void PointwiseCall::own_operands() {
  for (size_t k = 0; k < count; ++k) {
    if (operands[k].tensor != nullptr) owned[k] = *operands[k].tensor;
  }
}

bool PointwiseCall::checks_divisor() const {
  const bool divides = formula == Formula::remainder || formula == Formula::fmod || formula == Formula::div_floor ||
                       formula == Formula::div_trunc;
  return divides && !is_floating(compute);
}

const char* name_of(Formula formula) {
  static constexpr const char* kNames[] = {
#define FORMULA(NAME, ...) #NAME,
#define UNARY(NAME, ...) #NAME,
#define UNARY_NUMBERS(NAME, ...) #NAME,
#define BINARY(NAME, ...) #NAME,
#define BINARY_TENSOR_SCALAR(NAME, ...) #NAME,
#define BINARY_SHIFT(NAME, ...) #NAME,
#define BINARY_ALPHA(NAME, ...) #NAME,
#include "kernels/pointwise/all.def"
  };
  return kNames[static_cast<size_t>(formula)];
}

double formula_cost_ns(Formula formula, DType loop) {
  // The order of the tables: arithmetic before functions and activations, special functions last.
  if (formula >= Formula::i0) return 30;
  if (formula < Formula::exp) return loop == DType::kFloat32 ? 0.06 : 0.2;
  return loop == DType::kFloat32 ? 0.4 : 8;
}

std::unique_ptr<ops::PreparedCall> prepare_alone(const ops::PrepareArgs& args) {
  if (args.outputs.size() != 1) return nullptr;
  TileBuilder builder(true);
  std::vector<std::pair<int, int>> operands;
  for (size_t i = 0; i < args.arguments.size(); ++i) {
    if (args.arguments[i].is_tensor())
      operands.emplace_back(static_cast<int>(i), builder.add_input(args.arguments[i].to_tensor()));
  }
  const int value = builder.add_call(args.op, {args.arguments.begin(), args.arguments.end()}, operands);
  return value < 0 ? nullptr : builder.finish(std::span(&value, 1), args.outputs, args.threads);
}

const PointwiseMaker* find_pointwise(const ops::Op& op) {
  const auto* attribute = op.attributes.get<Pointwise>();
  return attribute ? &attribute->make : nullptr;
}
const RowKernelMaker* find_row_kernel(const ops::Op& op) {
  const auto* attribute = op.attributes.get<RowKernelAttribute>();
  return attribute ? &attribute->make : nullptr;
}

std::optional<ops::Epilogue> epilogue_of(const PointwiseMaker& make, uint64_t tensors,
                                         std::span<const ops::Value> arguments) {
  const ops::Value tensor = Tensor::meta(Dims{}, DType::kFloat32);
  std::vector<ops::Value> filled(arguments.begin(), arguments.end());
  size_t missing = 0;
  for (size_t i = 0; i < filled.size(); ++i) {
    if (!filled[i].is_none() || !(tensors >> i & 1)) continue;
    filled[i] = tensor;
    ++missing;
  }
  PointwiseCall call;
  try {
    call = make(filled);
  } catch (const Error&) {
    return std::nullopt;  // arguments that it refuses
  }
  if (call.count == 0 || call.compute != DType::kFloat32) return std::nullopt;
  if (missing == 2 && call.count == 2 && call.formula == Formula::add && call.numbers.floats[0] == 1)
    return ops::Epilogue{.kind = ops::Epilogue::Kind::kAdd};
  if (missing != 1 || call.count != 1) return std::nullopt;
  ops::Epilogue epilogue{.formula = name_of(call.formula)};
  std::copy_n(call.numbers.floats, epilogue.numbers.size(), epilogue.numbers.begin());
  return epilogue;
}

const char* keep_text(std::string text) {
  static auto* texts = new std::deque<std::string>();
  return texts->emplace_back(std::move(text)).c_str();
}

void add_pointwise_maker(const char* op, PointwiseMaker maker) {
  ops::set_attribute(op, Pointwise{std::move(maker)});
  ops::PrepareBuilder(op, DeviceKind::kCPU, prepare_alone);
}

void add_row_kernel_maker(const char* op, RowKernelMaker maker, bool prepares) {
  ops::set_attribute(op, RowKernelAttribute{std::move(maker)});
  if (prepares) ops::PrepareBuilder(op, DeviceKind::kCPU, prepare_alone);
}

}  // namespace tensord::kernels
