// Autograd, modules and optimizers of the engine: finds the line y = 3x - 1 again from points of it.
#include <tensord/autograd.h>
#include <tensord/nn.h>
#include <tensord/ops.h>
#include <tensord/optim.h>

#include <cstdio>

int main() {
  using tensord::Tensor;
  constexpr int64_t kPoints = 64;
  const Tensor x = Tensor::empty(tensord::Dims{kPoints, 1}, tensord::DType::kFloat32);
  const Tensor y = Tensor::empty(tensord::Dims{kPoints, 1}, tensord::DType::kFloat32);
  for (int i = 0; i < kPoints; ++i) {
    x.data<float>()[i] = static_cast<float>(i) / kPoints * 2 - 1;
    y.data<float>()[i] = 3 * x.data<float>()[i] - 1;
  }
  tensord::nn::Linear line(1, 1);
  tensord::nn::SGD optimizer(line.parameters(), {.lr = 0.2});
  for (int step = 0; step < 200; ++step) {
    const Tensor loss = mse_loss(line(x), y);
    optimizer.zero_grad();
    tensord::autograd::backward(loss);
    optimizer.step();
  }
  std::printf("y = %.3fx %+.3f\n", static_cast<double>(*line.weight.data<float>()),
              static_cast<double>(*line.bias.data<float>()));
}
