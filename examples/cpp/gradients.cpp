// 2. Gradients, and a function with a backward of its own.
#include <tensord/autograd.h>
#include <tensord/operators.h>
#include <tensord/tensor.h>

#include <cstdio>

using namespace tensord;

struct Cube : autograd::Function<Cube> {
  static Tensor forward(autograd::FunctionContext& context, const Tensor& x) {
    context.save_for_backward({x});
    return x * x * x;
  }
  static std::vector<Tensor> backward(autograd::FunctionContext& context, std::vector<Tensor> grads) {
    const Tensor x = context.saved().at(0);
    return {3 * x * x * grads[0]};
  }
};

int main() {
  const Tensor x = tensor({1.0, 2.0, 3.0}).requires_grad_();
  (Cube::apply(x) + x.sin() * 0).sum().backward();
  const Tensor gradient = x.grad();
  std::printf("3x² is %.0f %.0f %.0f\n", gradient.data<double>()[0], gradient.data<double>()[1],
              gradient.data<double>()[2]);
  // Finite differences say the same.
  autograd::gradcheck([](const std::vector<Tensor>& inputs) { return std::vector<Tensor>{Cube::apply(inputs[0])}; },
                      {x});
  const NoGradGuard guard;
  x -= 0.1 * gradient;
  std::printf("stepped to %.1f\n", x.data<double>()[0]);
}
