// Times elementwise operators for tests/bench/elementwise_bench.py: reads lines "threads part operator elements" and
// answers with the microseconds of one call; `part` is "forward", "recorded" (with autograd) or "backward".
#include <sstream>
#include <string>
#include <vector>

#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "core/ops/run.h"
#include "tests/bench/call_time.h"

namespace tensord {
namespace {

using bench::microseconds;
using ops::Value;

Tensor positive(int64_t elements) { return bench::random({elements}, false, 0.25f); }

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

int main() { return tensord::bench::answer_lines(tensord::answer); }
