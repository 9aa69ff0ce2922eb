// Prepared forms of elementwise operators and of calls along the last dimension: tile programs
// of one call. Also where the fuser finds what an operator does.
#include <algorithm>
#include <deque>
#include <map>

#include "kernels/common/lane_call.h"
#include "kernels/fused/tile_program.h"
#include "kernels/pointwise/pointwise.h"

namespace tensord::kernels {

PointwiseCall::PointwiseCall(Formula formula, DType compute, Operands given, const Numbers& numbers)
    : formula(formula), compute(compute), count(given.size()), numbers(numbers) {
  std::copy(given.begin(), given.end(), operands.begin());
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

double formula_cost_ns(Formula formula, DType loop) {
  // Table order: arithmetic comes before functions and activations, special functions last.
  if (formula >= Formula::i0) return 30;
  if (formula < Formula::exp) return loop == DType::kFloat32 ? 0.06 : 0.2;
  return loop == DType::kFloat32 ? 0.4 : 8;
}

namespace {

std::map<std::string, PointwiseMaker, std::less<>>& pointwise_makers() {
  static auto* makers = new std::map<std::string, PointwiseMaker, std::less<>>();
  return *makers;
}
std::map<std::string, LaneMaker, std::less<>>& lane_makers() {
  static auto* makers = new std::map<std::string, LaneMaker, std::less<>>();
  return *makers;
}
template <class Makers>
const auto* find_in(const Makers& makers, const ops::Op& op) {
  const auto it = makers.find(op.schema.full_name());
  return it == makers.end() ? nullptr : &it->second;
}

}  // namespace

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

const PointwiseMaker* find_pointwise(const ops::Op& op) { return find_in(pointwise_makers(), op); }
const LaneMaker* find_lane(const ops::Op& op) { return find_in(lane_makers(), op); }

const char* keep_text(std::string text) {
  static auto* texts = new std::deque<std::string>();
  return texts->emplace_back(std::move(text)).c_str();
}

void add_pointwise_maker(const char* op, PointwiseMaker maker) {
  pointwise_makers().emplace(op, std::move(maker));
  ops::PrepareBuilder(op, DeviceKind::kCPU, prepare_alone);
}

void add_lane_maker(const char* op, LaneMaker maker, bool prepares) {
  lane_makers().emplace(op, std::move(maker));
  if (prepares) ops::PrepareBuilder(op, DeviceKind::kCPU, prepare_alone);
}

}  // namespace tensord::kernels
