#include "core/ops/attributes/fused.h"

#include "core/ops/run.h"

namespace tensord::ops {

std::string FusedCalls::class_name() const {
  std::string text = "tensord.Fused<";
  for (size_t i = 0; i < steps_.size(); ++i) {
    const std::string& name = steps_[i].op->schema.name;
    text += (i ? " " : "") + name.substr(name.find("::") + 2);
  }
  return text + ">";
}

std::vector<Tensor> FusedCalls::run(std::span<const Tensor> inputs) const {
  check_internal(inputs.size() == input_count_, class_name(), " takes ", input_count_, " tensors, not ", inputs.size());
  std::vector<Tensor> values(inputs.begin(), inputs.end());
  for (const FusedStep& step : steps_) {
    std::vector<Value> arguments = step.arguments;
    bool is_meta = false;
    for (const auto& [argument, operand] : step.operands) {
      const Tensor& value = values[static_cast<size_t>(operand)];
      is_meta = is_meta || value.is_meta();
      arguments[static_cast<size_t>(argument)] = value;
    }
    const std::vector<Value> results = is_meta ? ops::infer(*step.op, arguments) : ops::run(*step.op, arguments);
    values.push_back(results.front().to_tensor());
  }
  std::vector<Tensor> results;
  for (const int output : outputs_) results.push_back(values[static_cast<size_t>(output)]);
  return results;
}

TypePtr fused_type() {
  static const TypePtr type = opaque_type("tensord.Fused");
  return type;
}

}  // namespace tensord::ops
