// Times elementwise operators for tests/bench/elementwise_bench.py: reads lines "threads part operator elements" and
// answers with the microseconds of one call; "forward", "recorded" (with its node) or "backward" alone.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "core/base/parallel.h"
#include "core/ops/run.h"

namespace tensord {
namespace {

using ops::Value;

Tensor positive(int64_t elements) {
  const Tensor out = Tensor::empty(Dims{elements}, DType::kFloat32);
  uint32_t state = 12345;
  for (int64_t i = 0; i < elements; ++i) {
    state = state * 1664525u + 1013904223u;
    out.data<float>()[i] = static_cast<float>(state >> 8) / 16777216.0f + 0.25f;
  }
  return out;
}

// Of one thread the processor's time, which other processes take nothing of; of several what has passed.
double now_us() {
  if (thread_budget() == 1) return static_cast<double>(std::clock()) * 1e6 / CLOCKS_PER_SEC;
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The median of batches of calls over 60 ms, at least 3.
double microseconds(const std::function<void()>& call) {
  const double start = now_us();
  for (int i = 0; i < 100; ++i) call();
  const int batch = static_cast<int>(std::max(1.0, 2e5 / std::max(1.0, now_us() - start)));
  std::vector<double> times;
  for (double sum = 0; sum < 6e4 || times.size() < 3;) {
    const double begin = now_us();
    for (int i = 0; i < batch; ++i) call();
    const double took = now_us() - begin;
    sum += took;
    times.push_back(took / batch);
  }
  std::nth_element(times.begin(), times.begin() + static_cast<int64_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

double answer(const std::string& line) {
  std::istringstream in(line);
  int threads = 1;
  std::string part, name;
  int64_t elements = 0;
  in >> threads >> part >> name >> elements;
  set_thread_budget(threads);
  const ops::Op& op = ops::get_op("aten::" + name);
  const Tensor x = positive(elements), y = positive(elements), g = positive(elements);
  std::vector<Value> arguments{x};
  if (name == "pow.Tensor_Scalar") arguments.emplace_back(2);
  if (name.ends_with(".Tensor")) arguments.emplace_back(y);
  arguments = ops::bind(op, std::move(arguments));
  if (part == "forward") {
    const InferenceModeGuard inference;
    return microseconds([&] { ops::run(op, arguments); });
  }
  std::vector<Tensor> leaves;
  for (const Value& value : arguments) {
    if (!value.is_tensor()) continue;
    autograd::set_requires_grad(value.to_tensor());
    leaves.push_back(value.to_tensor());
  }
  if (part == "recorded") return microseconds([&] { ops::run(op, arguments); });
  const Tensor result = ops::run(op, arguments).front().to_tensor();
  return microseconds([&] { autograd::grad(std::span(&result, 1), leaves, std::span(&g, 1), {.retain_graph = true}); });
}

}  // namespace
}  // namespace tensord

int main() {
  for (std::string line; std::getline(std::cin, line);) std::cout << tensord::answer(line) << std::endl;
}
