// Asks a running daemon what is in an image:
//   tensord serve --model-repository examples/models &
//   ask_shapes 127.0.0.1:8001
#include <tensord/client/client.h>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace client = tensord::client;

int main(int argc, char** argv) {
  constexpr int kSize = 32;
  constexpr const char* kShapes[] = {"circle", "square", "triangle", "cross"};
  std::vector<float> image(kSize * kSize, 0.1f);
  for (int y = 0; y < kSize; ++y) {
    for (int x = 0; x < kSize; ++x) {
      if ((x - 15) * (x - 15) + (y - 16) * (y - 16) <= 100) image[static_cast<size_t>(y * kSize + x)] = 0.9f;
    }
  }
  try {
    client::Client daemon(argc > 1 ? argv[1] : "127.0.0.1:8001");
    const client::Result result =
        daemon.infer("shapes", {client::Tensor::take(std::move(image), {1, 1, kSize, kSize})});
    const auto scores = result.output().values<float>();
    const auto best = std::max_element(scores.begin(), scores.end());
    std::printf("version %s of shapes: a %s (%.0f%%)\n", result.version.c_str(), kShapes[best - scores.begin()],
                100 * static_cast<double>(*best));
  } catch (const client::Error& error) {
    std::fprintf(stderr, "%s: %s\n", client::to_string(error.code()), error.what());
    return 1;
  }
}
