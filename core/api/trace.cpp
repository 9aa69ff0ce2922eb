#include "core/api/trace.h"

#include "core/autograd/variable.h"
#include "core/jit/exporters/function_trace.h"
#include "core/jit/runtime/module.h"
#include "core/ops/run.h"
#include "ops/pointwise.h"

namespace tensord::jit {
namespace {

using nn::Tensors;
using ops::Value;
using TensorsFunction = std::function<Tensors(const Tensors&)>;

Tensors copies(const Tensors& tensors) {
  Tensors out;
  for (const Tensor& tensor : tensors) out.push_back(tensor.clone(true));
  return out;
}

// The traced function of a module. It restores the module's buffers after each run.
class Traced {
 public:
  Traced(TensorsFunction function, std::vector<TracedWeight> weights)
      : function_(std::move(function)), weights_(std::move(weights)) {
    for (const TracedWeight& weight : weights_) {
      if (!weight.is_parameter) before_.push_back(weight.tensor.clone());
    }
  }
  const std::vector<TracedWeight>& weights() const { return weights_; }
  Tensors run(const Tensors& inputs) const {
    const NoGradGuard guard;
    Tensors out = function_(inputs);
    check(!out.empty(), "trace: the function gives no tensor");
    return out;
  }
  // A result may alias a buffer, so the results are copied before the buffers are restored.
  Tensors run_and_restore(const Tensors& inputs) const {
    Tensors out = copies(run(inputs));
    restore();
    return out;
  }
  void restore() const {
    size_t at = 0;
    for (const TracedWeight& weight : weights_) {
      if (!weight.is_parameter) weight.tensor.copy_from(before_[at++]);
    }
  }

 private:
  const TensorsFunction function_;
  const std::vector<TracedWeight> weights_;
  Tensors before_;
};

Value result_of(const Tensors& outputs) {
  if (outputs.size() == 1) return outputs.front();
  return ops::make_tuple({outputs.begin(), outputs.end()});
}

void check_trace(const std::string& path, const Traced& traced, const Tensors& inputs, const TraceOptions& options) {
  const Tensors wanted = traced.run_and_restore(copies(inputs));
  const auto module = Module::load(path);
  const auto frame = make_frame();
  const Tensors given = copies(inputs);
  const Value got = module->method("forward").run(*frame, std::vector<Value>(given.begin(), given.end()));
  const std::vector<Value> found = got.is_tuple() ? got.to_tuple()->items : std::vector<Value>{got};
  check_internal(found.size() == wanted.size(), "trace: another number of results");
  for (size_t i = 0; i < found.size(); ++i) {
    const Tensor& one = found[i].to_tensor();
    const bool is_same = one.sizes() == wanted[i].sizes() && one.dtype() == wanted[i].dtype() &&
                         ops::allclose(one, wanted[i], options.rtol, options.atol, true);
    if (is_same) continue;
    fail(ErrorCode::kFailedPrecondition, "trace: result ", i, " differs from the function's (", describe(one), ", ",
         describe(wanted[i]), "): does it draw random numbers, or look at elements or sizes?");
  }
}

void trace_to(const std::string& path, const Traced& traced, const Tensors& inputs, const TraceOptions& options) {
  check(!inputs.empty(), "trace: there are no inputs");
  std::vector<std::pair<std::string, Tensor>> named;
  Tensors own;  // separate handles, so that no two inputs, and no input and parameter, are the same object
  for (size_t i = 0; i < inputs.size(); ++i) {
    check(inputs[i].defined(), "trace: input ", i, " is an undefined tensor");
    own.push_back(autograd::detach(inputs[i].clone(true)));
    named.emplace_back(i < options.input_names.size() ? options.input_names[i] : concat("input_", i), own.back());
  }
  Trace trace(traced.weights(), named);
  for (const Tensor& input : own) {
    trace.record_read(input, TensorRead::kDType);
    trace.record_read(input, options.any_sizes ? TensorRead::kRank : TensorRead::kSizes);
  }
  Tensors outputs;
  try {
    const ops::ObserverScope scope(Functionality::kTracer, &trace);
    outputs = traced.run(own);
  } catch (...) {
    traced.restore();
    throw;
  }
  traced.restore();
  if (trace.are_values_read())
    fail(ErrorCode::kFailedPrecondition, "trace: an operator gave elements as numbers; what depends on them is lost");
  trace.save(path, result_of(outputs));
  check_trace(path, traced, inputs, options);
  for (const Tensors& others : options.check_inputs) check_trace(path, traced, others, options);
}

std::vector<TracedWeight> weights_of(const nn::Module& module) {
  std::vector<TracedWeight> out;
  for (const auto& [name, tensor] : module.named_parameters())
    out.push_back({name, tensor, true, autograd::requires_grad(tensor)});
  for (const auto& [name, tensor] : module.named_buffers()) out.push_back({name, tensor, false, false});
  return out;
}

}  // namespace

void save_trace(const std::string& path, nn::Module& module, const Tensors& inputs, const TraceOptions& options) {
  const auto run = [&](const Tensors& given) { return module.run(given); };
  trace_to(path, Traced(run, weights_of(module)), inputs, options);
}

void save_trace(const std::string& path, const TensorsFunction& function, const Tensors& inputs,
                const TraceOptions& options) {
  trace_to(path, Traced(function, {}), inputs, options);
}

}  // namespace tensord::jit
