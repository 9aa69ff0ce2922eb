// 4. Asks a daemon that serves what train_circle trained: ask_circle [ADDRESS]
#include <tensord/client/client.h>

#include <cstdio>

int main(int argc, char** argv) {
  namespace client = tensord::client;
  client::Client daemon(argc > 1 ? argv[1] : "127.0.0.1:8001");
  std::vector<float> points{0, 0, 0.9f, 0.9f};
  const client::Result result = daemon.infer("circle", {client::Tensor::take(std::move(points), {2, 2})});
  const auto scores = result.output().values<float>();
  for (int i = 0; i < 2; ++i) std::printf("%s\n", scores[2 * i + 1] > scores[2 * i] ? "inside" : "outside");
}
