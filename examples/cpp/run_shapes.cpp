// Runs a TorchScript archive in this process, without a daemon: run_shapes examples/models/shapes/1/model.pt
#include <tensord/jit.h>
#include <tensord/tensor.h>

#include <algorithm>
#include <cstdio>

int main(int argc, char** argv) {
  using tensord::Tensor;
  if (argc != 2) return std::fprintf(stderr, "usage: run_shapes MODEL\n"), 2;
  try {
    const auto module = tensord::jit::Module::load(argv[1]);
    const Tensor image = Tensor::empty(tensord::Dims{1, 1, 32, 32}, tensord::DType::kFloat32);
    // A square, brighter than its surroundings.
    float* pixels = image.data<float>();
    for (int i = 0; i < 32 * 32; ++i)
      pixels[i] = std::max(std::abs(i % 32 - 16), std::abs(i / 32 - 15)) <= 9 ? 0.9f : 0.1f;

    const auto frame = tensord::jit::make_frame();
    const tensord::ops::Value arguments[] = {image};
    const tensord::ops::Value result = module->method("forward").run(*frame, arguments);
    constexpr const char* kShapes[] = {"circle", "square", "triangle", "cross"};
    const float* scores = result.to_tensor().data<float>();
    const auto best = std::max_element(scores, scores + 4) - scores;
    std::printf("a %s (%.0f%%)\n", kShapes[best], 100 * static_cast<double>(scores[best]));
  } catch (const tensord::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
