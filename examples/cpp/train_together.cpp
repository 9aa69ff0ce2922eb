// Two processes that train one model: each has half of the points of y = 3x - 1, and both find the same line.
//   tensord launch --nproc 2 train_together
#include <core/autograd/engine.h>
#include <core/distributed/launch/environment.h>
#include <core/nn/data/distributed_sampler.h>
#include <core/nn/distributed.h>
#include <core/nn/layers/layers.h>
#include <core/nn/optim/optimizer.h>
#include <ops/loss.h>

#include <cstdio>
#include <exception>

namespace {

using tensord::Tensor;
constexpr int64_t kPoints = 64;

void train() {
  const auto environment = tensord::distributed::WorkerEnvironment::read();
  const auto world = tensord::distributed::make_world(environment);
  tensord::nn::DistributedSampler sampler(kPoints, world->size(), world->rank());
  const int64_t count = sampler.size();
  const Tensor x = Tensor::empty(tensord::Dims{count, 1}, tensord::DType::kFloat32);
  const Tensor y = Tensor::empty(tensord::Dims{count, 1}, tensord::DType::kFloat32);

  const auto line = std::make_shared<tensord::nn::Linear>(1, 1);  // rank 0's weights are everybody's
  tensord::nn::DistributedDataParallel model(line, *world);
  tensord::nn::SGD optimizer(model.parameters(), {.lr = 0.2});
  for (int step = 0; step < 200; ++step) {
    sampler.start_epoch();
    for (int64_t i = 0; i < count; ++i) {
      x.data<float>()[i] = static_cast<float>(*sampler.next()) / kPoints * 2 - 1;
      y.data<float>()[i] = 3 * x.data<float>()[i] - 1;
    }
    const Tensor loss = tensord::ops::mse_loss(model(x), y);
    optimizer.zero_grad();
    tensord::autograd::backward(loss);
    optimizer.step();
  }
  std::printf("rank %d of %d: y = %.3fx %+.3f\n", world->rank(), world->size(),
              static_cast<double>(*line->weight.data<float>()), static_cast<double>(*line->bias.data<float>()));
  world->close(std::chrono::seconds(10), /*serves_store=*/environment.rank == 0);
}

}  // namespace

int main() {
  try {
    train();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "train_together: %s\n", error.what());
    return 1;
  }
}
