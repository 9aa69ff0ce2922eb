// Times the products of training steps for tests/bench/products_bench.py: reads lines "threads part shape…" and
// answers with the microseconds of one call.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/parallel.h"
#include "core/ops/run.h"

namespace tensord {
namespace {

using ops::Value;

Tensor random(const Dims& sizes, bool last = false) {
  const Tensor out = last ? Tensor::empty_strided(sizes, channels_last_strides(sizes), DType::kFloat32)
                          : Tensor::empty(sizes, DType::kFloat32);
  uint32_t state = 12345;
  for (int64_t i = 0; i < out.numel(); ++i) {
    state = state * 1664525u + 1013904223u;
    out.data<float>()[i] = static_cast<float>(state >> 8) / 16777216.0f - 0.5f;
  }
  return out;
}

Tensor transposed(const Tensor& t) { return ops::call("aten::transpose.int", t, -2, -1); }

// Of one thread the processor's time, which other processes take nothing of; of several what has passed.
double now_us() {
  if (thread_budget() == 1) return static_cast<double>(std::clock()) * 1e6 / CLOCKS_PER_SEC;
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The median of batches of calls over 60 ms, at least 3.
double microseconds(const std::function<void()>& call) {
  const double start = now_us();
  for (int i = 0; i < 2; ++i) call();
  const int batch = static_cast<int>(std::max(1.0, 2e3 / std::max(1.0, now_us() - start)));
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

double linear(const std::string& part, int64_t rows, int64_t inputs, int64_t outputs) {
  const Tensor x = random({rows, inputs}), w = random({outputs, inputs}), b = random({outputs}),
               g = random({rows, outputs});
  if (part == "forward") return microseconds([&] { ops::call("aten::linear", x, w, b); });
  if (part == "input") return microseconds([&] { ops::call("aten::mm", g, w); });
  if (part == "weight") return microseconds([&] { ops::call("aten::mm", transposed(g), x); });
  return microseconds([&] { ops::call("aten::sum.dim_IntList", g, Dims{0}, true); });
}

struct ConvShape {
  int64_t batch, in, size, out, kernel, stride, padding, last;
};

double conv(const std::string& part, const ConvShape& s) {
  const int64_t to = (s.size + 2 * s.padding - s.kernel) / s.stride + 1;
  const bool last = s.last != 0;
  const Tensor x = random({s.batch, s.in, s.size, s.size}, last), w = random({s.out, s.in, s.kernel, s.kernel}, last),
               g = random({s.batch, s.out, to, to}, last);
  const auto two = [](int64_t value) { return ops::make_int_list(Dims{value, value}); };
  const auto run = [](const char* name, const std::vector<Value>& arguments) {
    const ops::Op& op = ops::get_op(name);
    return microseconds([&] { ops::run(op, arguments); });
  };
  if (part == "forward") return run("aten::conv2d", {x, w, Value(), two(s.stride), two(s.padding), two(1), 1});
  const Value mask = ops::make_list(ops::bool_type(), {part == "input", part == "weight", false});
  return run("aten::convolution_backward",
             {g, x, w, Value(), two(s.stride), two(s.padding), two(1), false, two(0), 1, mask});
}

double attention(const std::string& part, int64_t heads, int64_t rows, int64_t width) {
  const Tensor q = random({heads, rows, width}), k = random({heads, rows, width}), v = random({heads, rows, width}),
               g = random({heads, rows, width});
  const ops::Op& op = ops::get_op("tensord::attention");
  const std::vector<Value> arguments = ops::bind(op, {q, k, v, Value(), 0.125});
  if (part == "forward") return microseconds([&] { ops::run(op, arguments); });
  const std::vector<Value> results = ops::run(op, arguments);
  const std::vector<Tensor> gradients{g};
  return microseconds([&] { op.gradient({arguments, results, gradients, 7}); });
}

double answer(const std::string& line) {
  std::istringstream in(line);
  int threads = 1;
  std::string kind, part;
  in >> threads >> kind >> part;
  std::vector<int64_t> n;
  for (int64_t value = 0; in >> value;) n.push_back(value);
  set_thread_budget(threads);
  if (kind == "linear") return linear(part, n.at(0), n.at(1), n.at(2));
  if (kind == "attention") return attention(part, n.at(0), n.at(1), n.at(2));
  return conv(part, {n.at(0), n.at(1), n.at(2), n.at(3), n.at(4), n.at(5), n.at(6), n.at(7)});
}

}  // namespace
}  // namespace tensord

int main() {
  for (std::string line; std::getline(std::cin, line);) std::cout << tensord::answer(line) << std::endl;
}
