#include "core/nn/layers/operator_layers.h"

#include <utility>

#include "core/nn/layers/losses.h"
#include "core/ops/run.h"
#include "ops/norm.h"
#include "ops/pointwise.h"

namespace tensord::nn {
namespace {

using ops::Value;

Tensor first_of(const ops::Op& op, std::vector<Value> arguments) {
  return ops::run(op, ops::bind(op, std::move(arguments))).front().to_tensor();
}

}  // namespace

OperatorLayer::OperatorLayer(std::string kind, const char* op, std::vector<Value> options)
    : Layer(std::move(kind)), op_(ops::get_op(op)), options_(std::move(options)) {}

Tensor OperatorLayer::forward(const Tensor& input) {
  std::vector<Value> arguments{input};
  arguments.insert(arguments.end(), options_.begin(), options_.end());
  return first_of(op_, std::move(arguments));
}

Tensor Softsign::forward(const Tensor& input) { return ops::div(input, ops::add(ops::abs(input), 1)); }
Tensor Tanhshrink::forward(const Tensor& input) { return ops::sub(input, ops::tanh(input)); }
Tensor Softmin::forward(const Tensor& input) { return ops::softmax(ops::neg(input), dim_); }

namespace {

Value pair(const char* kind, const Dims& given) {
  check(given.size() == 1 || given.size() == 2, kind, ": expected 1 or 2 numbers but got ", given.size());
  return ops::make_int_list(Dims{given[0], given.size() == 1 ? given[0] : given[1]});
}

}  // namespace

Unfold::Unfold(const SizeList& kernel_size, const SizeList& dilation, const SizeList& padding, const SizeList& stride)
    : OperatorLayer(
          "Unfold", "aten::im2col",
          {pair("Unfold", kernel_size), pair("Unfold", dilation), pair("Unfold", padding), pair("Unfold", stride)}) {}
Fold::Fold(const SizeList& output_size, const SizeList& kernel_size, const SizeList& dilation, const SizeList& padding,
           const SizeList& stride)
    : OperatorLayer("Fold", "aten::col2im",
                    {pair("Fold", output_size), pair("Fold", kernel_size), pair("Fold", dilation),
                     pair("Fold", padding), pair("Fold", stride)}) {}

TrainingLayer::TrainingLayer(std::string kind, const char* op, std::vector<Value> options, int64_t min, int64_t max)
    : Layer(std::move(kind)), op_(ops::get_op(op)), options_(std::move(options)), min_(min), max_(max) {}
Value TrainingLayer::chance(double p) {
  check(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  return p;
}
Tensor TrainingLayer::forward(const Tensor& input) {
  check(input.ndim() >= min_ && input.ndim() <= max_, kind(), ": expected an input of ", min_, " dimensions but got ",
        describe(input));
  std::vector<Value> arguments{input};
  arguments.insert(arguments.end(), options_.begin(), options_.end());
  arguments.emplace_back(is_training());
  return first_of(op_, std::move(arguments));
}

Dims margins_of(const char* kind, const Dims& padding, size_t dims) {
  if (padding.size() == 1) return Dims(2 * dims, padding[0]);
  check(padding.size() == 2 * dims, kind, ": expected 1 or ", 2 * dims, " margins but got ", padding.size());
  return padding;
}

Loss::Loss(std::string kind, const char* op, size_t inputs, std::vector<Value> options, std::vector<Weight> weights)
    : Module(std::move(kind)), op_(ops::get_op(op)), inputs_(inputs), options_(std::move(options)) {
  for (const Weight& weight : weights) {
    register_buffer(weight.name, weight.tensor);
    options_[weight.option] = weight.tensor;
  }
}

Tensors Loss::forward(const Tensors& inputs) {
  check(inputs.size() == inputs_, kind(), ": expected ", inputs_, " tensors but got ", inputs.size());
  std::vector<Value> arguments(inputs.begin(), inputs.end());
  arguments.insert(arguments.end(), options_.begin(), options_.end());
  return {first_of(op_, std::move(arguments))};
}

}  // namespace tensord::nn
