// Times the matrix products of training steps for tests/bench/products_bench.py: reads lines "threads part shape…" and
// answers with the microseconds of one call.
#include <sstream>
#include <string>
#include <vector>

#include "core/ops/run.h"
#include "tests/bench/call_time.h"

namespace tensord {
namespace {

using bench::microseconds;
using bench::random;
using ops::Value;

Tensor transposed(const Tensor& t) { return ops::call_by_name("aten::transpose.int", t, -2, -1); }

double linear(const std::string& part, int64_t rows, int64_t inputs, int64_t outputs) {
  const Tensor x = random({rows, inputs}), w = random({outputs, inputs}), b = random({outputs}),
               g = random({rows, outputs});
  if (part == "forward") return microseconds([&] { ops::call_by_name("aten::linear", x, w, b); });
  if (part == "input") return microseconds([&] { ops::call_by_name("aten::mm", g, w); });
  if (part == "weight") return microseconds([&] { ops::call_by_name("aten::mm", transposed(g), x); });
  return microseconds([&] { ops::call_by_name("aten::sum.dim_IntList", g, Dims{0}, true); });
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

int main() { return tensord::bench::answer_lines(tensord::answer); }
