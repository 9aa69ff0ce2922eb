// Times of single calls through the dispatcher, in microseconds; see tests/bench/eager/README.md.

#include <iostream>

#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "core/ops/run.h"
#include "ops/linear.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "tests/bench/call_time.h"

namespace tensord::bench {
namespace {

using ops::Value;

std::string only;  // the name of a case; empty: all

template <class Call>
void report(const char* name, const Call& call) {
  if (!only.empty() && only != name) return;
  std::cout << name << ' ' << microseconds(call) << std::endl;
}

// The dispatch alone: the record is found once, and the arguments are values already.
class Bound {
 public:
  template <class... Arguments>
  explicit Bound(const char* name, const Arguments&... arguments)
      : op_(ops::get_op(name)), arguments_(ops::bind(op_, {Value(arguments)...})) {}
  void operator()() const { ops::run(op_, arguments_); }

 private:
  const ops::Op& op_;
  std::vector<Value> arguments_;
};

void time_calls() {
  const Tensor a = random({16}), b = random({16}), m = random({4, 4}), n = random({4, 4}), x = random({8, 64});
  const Tensor weight = random({64}), rows = random({10, 4});
  const Tensor index = Tensor::scalar<int64_t>(3);
  report("add16", Bound("aten::add.Tensor", a, b, 1));
  report("add16_function", [&] { ops::add(a, b); });
  report("add16_by_name", [&] { ops::call_by_name("aten::add.Tensor", a, b, 1); });
  report("add16_inplace", Bound("aten::add_.Tensor", a, b, 1));
  report("matmul4x4", Bound("aten::matmul", m, n));
  report("layer_norm8x64", Bound("aten::layer_norm", x, ops::make_int_list(Dims{64}), weight, weight));
  report("select", Bound("aten::select.int", rows, 0, 3));
  report("index", Bound("aten::index.Tensor", rows, ops::make_tensor_list({index})));
  report("view", Bound("aten::view", m, ops::make_int_list(Dims{16})));
  report("size", Bound("aten::size.int", m, 0));
}

void time_backward() {
  std::vector<Tensor> weights;
  for (int i = 0; i < 4; ++i) {
    weights.push_back(random({32, 32}));
    autograd::set_requires_grad(weights.back());
  }
  const Tensor x = random({8, 32});
  report("mlp_backward", [&] {
    Tensor y = x;
    for (const Tensor& w : weights) y = ops::relu(ops::linear(y, w));
    autograd::grad(std::vector{ops::sum(y)}, weights);
  });
}

}  // namespace
}  // namespace tensord::bench

int main(int argc, char** argv) {
  if (argc > 1) tensord::bench::only = argv[1];
  tensord::set_thread_budget(1);
  tensord::bench::time_calls();
  {
    const tensord::InferenceModeGuard inference;
    std::cout << "in inference mode:" << std::endl;
    tensord::bench::time_calls();
  }
  tensord::bench::time_backward();
}
