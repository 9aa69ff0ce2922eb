// libtorch without Python, compiled by footprint_bench.py: prints "ready", and after a line on its standard input loads
// the archive, runs it once and prints "answer". Usage: libtorch_resnet50 ARCHIVE
#include <torch/script.h>

#include <iostream>
#include <string>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::string line;
  std::cout << "ready" << std::endl;
  std::getline(std::cin, line);
  const c10::InferenceMode guard;
  torch::jit::Module model = torch::jit::load(argv[1]);
  model.eval();
  const torch::Tensor scores = model.forward({torch::zeros({1, 3, 224, 224})}).toTensor();
  if (scores.numel() != 1000) return 1;
  std::cout << "answer" << std::endl;
  std::getline(std::cin, line);
  return 0;
}
