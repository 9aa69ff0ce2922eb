// Times normalizations, pooling, dropout and losses of training steps for tests/bench/norms_bench.py: reads lines
// "threads part kind shape…" and answers with the microseconds of one call.
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
using bench::random;
using ops::Value;

Tensor leaf(const Dims& sizes, bool last = false) {
  const Tensor out = random(sizes, last);
  autograd::set_requires_grad(out);
  return out;
}
Value pair(int64_t value) { return ops::make_int_list(Dims{value, value}); }

struct Call {
  std::string op;
  std::vector<Value> arguments;
  std::vector<Tensor> leaves;
};

Call make_call(const std::string& kind, const std::vector<int64_t>& n) {
  if (kind == "batch_norm") {
    const Tensor x = leaf({n.at(0), n.at(1), n.at(2), n.at(2)}, n.at(3) != 0), w = leaf({n[1]}), b = leaf({n[1]});
    return {"aten::batch_norm", {x, w, b, random({n[1]}), random({n[1]}), true, 0.1, 1e-5, false}, {x, w, b}};
  }
  if (kind == "max_pool") {
    const Tensor x = leaf({n.at(0), n.at(1), n.at(2), n.at(2)}, n.at(3) != 0);
    return {"aten::max_pool2d", {x, pair(3), pair(2), pair(1), pair(1), false}, {x}};
  }
  if (kind == "avg_pool") {
    const Tensor x = leaf({n.at(0), n.at(1), n.at(2), n.at(2)}, n.at(3) != 0);
    return {"aten::adaptive_avg_pool2d", {x, pair(1)}, {x}};
  }
  if (kind == "softmax") {
    const Tensor x = leaf({n.at(0), n.at(1), n.at(2)});
    return {"aten::softmax.int", {x, -1}, {x}};
  }
  const Tensor x = leaf({n.at(0), n.at(1)});
  if (kind == "dropout") return {"aten::dropout", {x, 0.1, true}, {x}};
  if (kind == "layer_norm") {
    const Tensor w = leaf({n[1]}), b = leaf({n[1]});
    return {"aten::layer_norm", {x, ops::make_int_list(Dims{n[1]}), w, b}, {x, w, b}};
  }
  const Tensor y = Tensor::empty(Dims{n[0]}, DType::kInt64);
  for (int64_t i = 0; i < n[0]; ++i) y.data<int64_t>()[i] = i * 7 % n[1];
  return {"aten::cross_entropy_loss", {x, y}, {x}};
}

double answer(const std::string& line) {
  std::istringstream in(line);
  int threads = 1;
  std::string part, kind;
  in >> threads >> part >> kind;
  std::vector<int64_t> n;
  for (int64_t value = 0; in >> value;) n.push_back(value);
  set_thread_budget(threads);
  const Call call = make_call(kind, n);
  const ops::Op& op = ops::get_op(call.op);
  const std::vector<Value> arguments = ops::bind(op, call.arguments);
  const Tensor example = ops::run(op, arguments).at(0).to_tensor();
  const Tensor g = Tensor::empty_strided(example.sizes(), example.strides(), DType::kFloat32);
  g.copy_from(Tensor::scalar(0.5f));
  if (part == "forward") return microseconds([&] { ops::run(op, arguments); });
  return microseconds([&] {
    const Tensor out[] = {ops::run(op, arguments).at(0).to_tensor()}, incoming[] = {g};
    autograd::grad(out, call.leaves, incoming);
  });
}

}  // namespace
}  // namespace tensord

int main() { return tensord::bench::answer_lines(tensord::answer); }
