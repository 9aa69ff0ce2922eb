#include "kernels/base/epilogue_step.h"

#include <cmath>
#include <string_view>

namespace tensord::kernels {

std::optional<EpilogueStep> epilogue_step_of(const ops::Epilogue& epilogue) {
  using Kind = EpilogueStep::Kind;
  if (epilogue.kind == ops::Epilogue::Kind::kAdd) return EpilogueStep{Kind::kAdd, 0, 0};
  if (epilogue.kind != ops::Epilogue::Kind::kFormula) return std::nullopt;
  const auto number = [&](size_t i) { return static_cast<float>(epilogue.numbers[i]); };
  const std::string_view is = epilogue.formula;
  // Bounds that cross or are NaN, and slopes that turn a zero into NaN, are left to the plain operator.
  if (is == "hardtanh" || is == "clamp") {
    if (!(epilogue.numbers[0] <= epilogue.numbers[1])) return std::nullopt;
    return EpilogueStep{Kind::kClip, number(0), number(1)};
  }
  if (is == "elu") {
    if (!std::isfinite(number(0)) || epilogue.numbers[1] != 1 || epilogue.numbers[2] != 1) return std::nullopt;
    return EpilogueStep{Kind::kElu, number(0), 0};
  }
  if (is == "relu") return EpilogueStep{Kind::kRelu, 0, 0};
  if (is == "leaky_relu") {
    if (!std::isfinite(number(0)) || number(0) == 0) return std::nullopt;
    return EpilogueStep{Kind::kRelu, number(0), 0};
  }
  if (is == "relu6") return EpilogueStep{Kind::kClip, 0, 6};
  constexpr struct {
    std::string_view formula;
    Kind kind;
  } kWithoutNumbers[] = {{"sigmoid", Kind::kSigmoid},        {"tanh", Kind::kTanh}, {"gelu", Kind::kGelu},
                         {"gelu_tanh", Kind::kGeluTanh},     {"silu", Kind::kSilu}, {"hardswish", Kind::kHardSwish},
                         {"hardsigmoid", Kind::kHardSigmoid}};
  for (const auto& row : kWithoutNumbers) {
    if (is == row.formula) return EpilogueStep{row.kind, 0, 0};
  }
  return std::nullopt;
}

}  // namespace tensord::kernels
