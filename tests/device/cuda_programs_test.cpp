// Programs on a CUDA device, interpreted and planned: errors that their kernels find, and runs that are cancelled while
// work is queued. With TENSORD_CUDA naming the emulated devices' library, whose queues run when somebody waits.
#include <optional>

#include "core/jit/ir/text.h"
#include "core/jit/ir/walk.h"
#include "core/jit/passes/passes.h"
#include "core/jit/runtime/interpreter.h"
#include "core/jit/runtime/module.h"
#include "core/ops/op.h"
#include "core/tensor/device_copy.h"
#include "tests/device/cuda_fixture.h"

namespace tensord::cuda_programs_test {
namespace {

using cuda_tests::difference;
using cuda_tests::kGpu;
using cuda_tests::message_of;
using cuda_tests::queued_work;
using ops::call_by_name;
using ops::Value;

using CudaPrograms = cuda_tests::CudaDevice;

// The graph, planned for these inputs or as it is.
std::shared_ptr<const jit::Program> program_of(const char* text, const std::vector<Value>& inputs, bool is_planned) {
  const auto graph = jit::parse_graph(text);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& t = inputs[i].to_tensor();
    graph->inputs()[i]->set_known(Tensor::meta_strided(t.sizes(), t.strides(), t.dtype(), t.device()));
  }
  jit::PassContext context;
  if (is_planned) {
    for (auto* pass : {jit::propagate_constants, jit::propagate_shapes, jit::plan_segments}) pass(*graph, context);
    int plans = 0;
    jit::for_each_node(graph->block(), [&](jit::Node* node) { plans += node->kind() == jit::NodeKind::kPlan; });
    EXPECT_GT(plans, 0) << jit::print_graph(*graph);
  }
  return jit::Program::compile(*graph, "test");
}

Value run(jit::Frame& frame, const jit::Program& program, std::vector<Value> inputs,
          const std::function<bool()>* is_cancelled = nullptr) {
  return jit::Interpreter(frame, nullptr, {.is_cancelled = is_cancelled}).run(program, inputs);
}

Tensor ramp(const Dims& sizes, double step) {
  const Tensor out = Tensor::empty(sizes, DType::kFloat64);
  for (int64_t i = 0; i < out.numel(); ++i) out.data<double>()[i] = std::sin(static_cast<double>(i) * step);
  return out.to(DType::kFloat32);
}

// The index that is wrong is found by the first operator, and seen by the last one, which waits for a number of
// elements.
TEST_F(CudaPrograms, ErrorsNameTheOperatorThatQueuedTheKernel) {
  const char* const text = R"(graph(%a : Tensor, %i : Tensor):
    %zero : int = prim::Constant[value=0]()
    %b : Tensor = aten::index_select(%a, %zero, %i)
    %c : Tensor = aten::mul.Tensor(%b, %b)
    %d : Tensor = aten::relu(%c)
    %e : Tensor = aten::nonzero(%d)
    return (%e))";
  Tensor index = Tensor::empty(Dims{2}, DType::kInt64);
  index.data<int64_t>()[0] = 1, index.data<int64_t>()[1] = 5;
  const std::vector<Value> inputs{ramp({5, 3}, 0.3).to(kGpu), index.to(kGpu)};
  for (const bool is_planned : {false, true}) {
    const auto program = program_of(text, inputs, is_planned);
    jit::Frame frame;
    EXPECT_EQ(message_of([&] { run(frame, *program, inputs); }), "aten::index_select: index out of range in self")
        << (is_planned ? "planned" : "interpreted");
  }
}

const char* const kProducts = R"(graph(%a : Tensor, %b : Tensor):
    %c : Tensor = aten::matmul(%a, %b)
    %d : Tensor = aten::relu(%c)
    %e : Tensor = aten::matmul(%d, %b)
    %f : Tensor = aten::relu(%e)
    %g : Tensor = aten::matmul(%f, %b)
    return (%g))";

// Nothing is queued after the run was given up, whenever that is.
TEST_F(CudaPrograms, CancelledRunsQueueNothingMore) {
  const std::vector<Value> inputs{ramp({8, 8}, 0.3).to(kGpu), ramp({8, 8}, 0.7).to(kGpu)};
  for (const bool is_planned : {false, true}) {
    const auto program = program_of(kProducts, inputs, is_planned);
    jit::Frame frame;
    bool was_late = false;
    for (int looks = 1; looks < 12; ++looks) {
      int seen = 0;
      std::optional<uint64_t> then;
      const std::function<bool()> is_cancelled = [&] {
        if (++seen < looks) return false;
        if (!then) then = queued_work();
        return true;
      };
      const std::optional<uint64_t> before = queued_work();
      ASSERT_TRUE(before) << "these are not the emulated devices";
      const std::string message = message_of([&] { run(frame, *program, inputs, &is_cancelled); });
      if (!then) {
        EXPECT_EQ(message, "") << "it ended before";
        break;
      }
      EXPECT_NE(message.find("cancelled"), std::string::npos) << message;
      EXPECT_EQ(queued_work(), then) << "look " << looks;
      was_late = was_late || *then > *before;
    }
    EXPECT_TRUE(was_late) << "no run was cancelled while work was queued";
    synchronize(kGpu);
  }
}

// The memory of a cancelled run, all of which its owner gave back, is not given out again before the kernels that write
// it have run, in another stream than that which it belongs to.
TEST_F(CudaPrograms, MemoryOfCancelledRunsIsKept) {
  const char* const text = R"(graph(%a : Tensor, %b : Tensor):
    %one : int = prim::Constant[value=1]()
    %c : Tensor = aten::add.Scalar(%b, %one, %one)
    %d : Tensor = aten::add_.Tensor(%a, %c, %one)
    %e : Tensor = aten::relu(%d)
    return (%e))";
  const Dims sizes{64, 64};
  const auto running = device_runtime(kGpu).make_stream(kGpu.index);
  {
    const std::vector<Value> inputs{ramp(sizes, 0.3).to(kGpu), ramp(sizes, 0.7).to(kGpu)};
    const auto program = program_of(text, inputs, false);
    synchronize(kGpu);
    const ContextPart<&ExecutionContext::stream> scope(running.get());
    jit::Frame frame;
    int looks = 0;
    const std::function<bool()> is_cancelled = [&] { return ++looks > 3; };  // before relu
    EXPECT_NE(message_of([&] { run(frame, *program, inputs, &is_cancelled); }).find("cancelled"), std::string::npos);
  }
  std::vector<Tensor> fresh;
  for (int i = 0; i < 8; ++i) {
    fresh.push_back(Tensor::empty(sizes, DType::kFloat32, kGpu));
    zero_elements(fresh.back());
  }
  synchronize(kGpu);  // the default stream, to which the memory belongs
  running->synchronize();
  const Tensor zeros = call_by_name("aten::zeros_like", fresh[0]).to(Device{});
  for (const Tensor& tensor : fresh) EXPECT_EQ(difference(tensor.to(Device{}), zeros), "");
}

// Linear, its bias and the activation behind it are one call of cuBLASLt; other activations are kernels of their own.
TEST_F(CudaPrograms, ActivationsAreEpiloguesOfLinear) {
  struct Case {
    const char* expression;
    uint64_t work;  // calls and kernels of a planned run
  };
  const Tensor weight = ramp({6, 5}, 0.7), bias = ramp({6}, 0.2), x = ramp({4, 5}, 0.3);
  for (const Case& one : {Case{"torch.relu(y)", 1}, Case{"torch.gelu(y, approximate=\"tanh\")", 1},
                          Case{"torch.gelu(y)", 2}, Case{"torch.relu(torch.relu(y) * 2)", 3}}) {
    SCOPED_TRACE(one.expression);
    const std::string source = concat(R"(class Net(Module):
  __parameters__ = ["weight", "bias"]
  weight : Tensor
  bias : Tensor
  def forward(self, x: Tensor) -> Tensor:
    y = torch.linear(x, self.weight, self.bias)
    return )",
                                      one.expression, "\n");
    jit::LoadOptions options;
    const auto on_host = jit::Module::compile(source, {{"weight", weight.clone()}, {"bias", bias.clone()}}, options);
    options.device = kGpu;
    const auto module = jit::Module::compile(source, {{"weight", weight.clone()}, {"bias", bias.clone()}}, options);
    jit::Frame frame, frame_of_host;
    const Value given[] = {x.to(kGpu)}, here[] = {x};
    const auto run = [&] { return module->method("forward").run(frame, given).to_tensor(); };
    const Tensor expected = on_host->method("forward").run(frame_of_host, here).to_tensor();
    EXPECT_EQ(difference(run().to(Device{}), expected, 1e-6), "");
    synchronize(kGpu);
    const std::optional<uint64_t> before = queued_work();
    const Tensor out = run();
    if (before && !std::getenv("TENSORD_CUDA_LIBRARIES")) {
      EXPECT_EQ(*queued_work(), *before + one.work);
    }
    EXPECT_EQ(difference(out.to(Device{}), expected, 1e-6), "");
  }
}

}  // namespace
}  // namespace tensord::cuda_programs_test
