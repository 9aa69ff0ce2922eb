// The operator that runs a fused group; see core/ops/attributes/fused.h. For known shapes it becomes a tile program;
// otherwise its calls run one by one.
#include "core/ops/attributes/fused.h"

#include "core/ops/attributes/batch_independence.h"
#include "kernels/fused/tile_program.h"

namespace tensord::kernels {
namespace {

OP("tensord::fused")
    .set<ops::BatchIndependent>([](std::span<const ops::Value> v) {  // pointwise but for the last dimension
      const auto& inputs = v[1].to_list()->items;
      return std::any_of(inputs.begin(), inputs.end(), [](const ops::Value& x) { return x.to_tensor().ndim() >= 2; });
    })
    .impl([](const IntrusivePtr<ops::FusedCalls>& group, const std::vector<Tensor>& inputs) {
      return group->run(inputs);
    })
    .kind(ops::OpKind::kComposite);

std::unique_ptr<ops::PreparedCall> prepare_fused(const ops::PrepareArgs& args) {
  const auto group = ops::Unbox<IntrusivePtr<ops::FusedCalls>>::get(args.arguments[0]);
  const auto inputs = ops::Unbox<std::vector<Tensor>>::get(args.arguments[1]);
  if (inputs.size() != group->input_count() || args.outputs.size() != group->outputs().size()) return nullptr;
  TileBuilder builder;
  std::vector<int> values;  // by the group's operand numbers
  for (const Tensor& input : inputs) values.push_back(builder.add_input(input));
  for (const ops::FusedStep& step : group->steps()) {
    std::vector<std::pair<int, int>> operands;
    for (const auto& [argument, operand] : step.operands)
      operands.emplace_back(argument, values[static_cast<size_t>(operand)]);
    values.push_back(builder.add_call(*step.op, step.arguments, operands));
    if (values.back() < 0) return nullptr;
  }
  std::vector<int> outputs;
  for (const int output : group->outputs()) outputs.push_back(values[static_cast<size_t>(output)]);
  auto prepared = builder.finish(outputs, args.outputs, args.threads);
  if (prepared) {
    const std::string name = group->class_name();  // "tensord.Fused<add mul>"
    const size_t begin = name.find('<') + 1;
    prepared->label = name.substr(begin, name.size() - begin - 1);
    for (char& c : prepared->label) c = c == ' ' ? '+' : c;
    prepared->variant = "tiles";
  }
  return prepared;
}
PREPARE("tensord::fused", DeviceKind::kCPU, prepare_fused);

}  // namespace
}  // namespace tensord::kernels
