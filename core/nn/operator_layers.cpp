#include "core/nn/operator_layers.h"

#include <utility>

#include "core/nn/losses.h"
#include "core/ops/run.h"

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
