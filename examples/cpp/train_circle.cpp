// 3. A module, a training loop, and the trained model as an archive in a model repository: train_circle MODELS. Points
// are inside of a circle or not. `tensord serve --model-repository MODELS` then answers for it, see ask_circle.cpp.
#include <tensord/tensord.h>

#include <cstdio>
#include <filesystem>

using namespace tensord;

struct Circle final : nn::Layer {
  Circle() : Layer("Circle") {
    hidden = register_module("hidden", std::make_shared<nn::Linear>(2, 32));
    out = register_module("out", std::make_shared<nn::Linear>(32, 2));
  }
  using Layer::forward;
  Tensor forward(const Tensor& x) override { return (*out)(tanh((*hidden)(x))); }
  std::shared_ptr<nn::Linear> hidden, out;
};

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: train_circle MODELS\n"), 2;
  manual_seed(0);
  const Tensor points = tensord::rand({512, 2}) * 2 - 1;
  const Tensor labels = to(lt(sum(points * points, 1), 0.5), DType::kInt64);
  Circle net;
  nn::CrossEntropyLoss loss_of;
  nn::AdamW optimizer(net.parameters(), {.lr = 0.02});
  nn::CosineAnnealingLR schedule(optimizer, 200);
  for (int step = 0; step < 200; ++step) {
    const Tensor loss = loss_of(net(points), labels);
    optimizer.zero_grad();
    autograd::backward(loss);
    optimizer.step();
    schedule.step();
  }
  net.eval();
  const NoGradGuard guard;
  const Tensor right = mean(to(eq(argmax(net(points), 1), labels), DType::kFloat32));
  std::printf("right: %s\n", right.item_double() > 0.95 ? "more than 95 %" : "not enough");

  const std::filesystem::path folder = std::filesystem::path(argv[1]) / "circle" / "1";
  std::filesystem::create_directories(folder);
  const Tensor some = index(points, {Slice(0, 3)});
  jit::save_trace(folder / "model.pt", net, {some}, {.any_sizes = true, .check_inputs = {{points}}});
  // The archive, in this process.
  const auto module = jit::Module::load(folder / "model.pt");
  const ops::Value arguments[] = {some};
  const Tensor again = module->method("forward").run(*jit::make_frame(), arguments).to_tensor();
  std::printf("the archive says the same: %s\n", allclose(again, net(some)) ? "yes" : "no");
}
