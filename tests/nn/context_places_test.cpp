// Every field of the ExecutionContext is passed on wherever the engine uses another thread. Those of core/base are
// tested in tests/base/execution_context_test.cpp.
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "core/nn/data/data_loader.h"
#include "tests/autograd/support.h"
#include "tests/distributed/ranks.h"
#include "tests/support/changed_context.h"

namespace tensord::context_places_test {
namespace {

using autograd::leaf;

// An operator that records its context.
OP("test::twice(Tensor x) -> Tensor")
    .infer([](const Tensor& x) {
      return ops::TensorMeta{x.sizes(), x.dtype(), {}, {}};
    })
    .gradient([](const ops::GradArgs& args) {
      return std::vector<Tensor>{ops::call_by_name("test::twice", args.grad_outputs[0])};
    })
    .saves("");
IMPL("test::twice", kCPU, [](const ops::KernelContext&, const Tensor& x, Tensor& out) {
  for (int64_t i = 0; i < x.numel(); ++i) out.data<double>()[i] = 2 * x.data<double>()[i];
});
Tensor twice(const Tensor& x) { return ops::call_by_name("test::twice", x); }

// Two branches whose hooks wait for each other, so that they run on different threads.
TEST(ContextPlaces, HelpersOfABackwardPass) {
  const Tensor x = leaf({1}), y = leaf({2});
  std::mutex mutex;
  std::map<std::thread::id, ExecutionContext> seen;
  std::atomic<int> arrived{0};
  const auto look = [&](const Tensor&) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
    const std::lock_guard lock(mutex);
    seen.emplace(std::this_thread::get_id(), execution_context());
    return Tensor();
  };
  const Tensor left = twice(x), right = twice(y);
  autograd::register_hook(left, look);
  autograd::register_hook(right, look);
  const std::vector<Tensor> roots{twice(left), twice(right)}, leaves{x, y};
  const std::vector<Tensor> ones{autograd::constant({1}), autograd::constant({1})};
  autograd::BackwardOptions options;
  options.threads = 2;
  const ExecutionContext changed = changed_context(nullptr);
  {
    const ExecutionScope whole(changed);
    autograd::grad(roots, leaves, ones, options);
  }
  ExecutionContext expected = changed;
  expected.grad_mode = {false, false};  // the pass has its own
  expected.threads = changed.threads / 2;
  ASSERT_EQ(seen.size(), 2u);
  for (const auto& [thread, got] : seen) EXPECT_EQ(got, expected);
}

// Nested passes, until they get a stack of their own.
TEST(ContextPlaces, PassesThatLieDeep) {
  const ExecutionContext changed = changed_context(nullptr);
  std::map<std::thread::id, ExecutionContext> seen;
  std::function<void(int)> descend = [&](int depth) {
    seen.emplace(std::this_thread::get_id(), execution_context());
    if (depth == 0) return;
    std::vector<Tensor> leaves, roots, ones;
    {
      const ExecutionScope recording{ExecutionContext()};
      leaves = {leaf({1})};
      ones = {autograd::constant({1})};
      roots = {twice(leaves[0])};
      autograd::register_hook(roots[0], [&, depth](const Tensor&) {
        descend(depth - 1);
        return Tensor();
      });
    }
    autograd::grad(roots, leaves, ones);
  };
  {
    const ExecutionScope whole(changed);
    descend(60);
  }
  ASSERT_EQ(seen.size(), 2u);
  for (const auto& [thread, got] : seen) {
    ExecutionContext expected = changed;
    if (thread != std::this_thread::get_id()) expected.grad_mode = {false, false};  // inside a pass
    EXPECT_EQ(got, expected);
  }
}

class Looks final : public nn::Dataset {
 public:
  int64_t size() const override { return 1; }
  std::vector<Tensor> get(int64_t) const override {
    seen = execution_context();
    thread = std::this_thread::get_id();
    return {autograd::constant({1})};
  }
  mutable ExecutionContext seen;
  mutable std::thread::id thread;
};

TEST(ContextPlaces, WorkersOfADataLoader) {
  const Looks dataset;
  const auto first = [](std::span<const std::vector<Tensor>> samples) { return samples[0]; };
  nn::DataLoader loader(dataset, {.workers = 1, .collate = first});
  const ExecutionContext changed = changed_context(nullptr);
  {
    ExecutionContext without_generator = changed;  // the loader draws from it
    without_generator.generator = nullptr;
    const ExecutionScope whole(without_generator);
    loader.start_epoch();
    ASSERT_TRUE(loader.next().has_value());
  }
  EXPECT_NE(dataset.thread, std::this_thread::get_id());
  EXPECT_NE(dataset.seen.generator, nullptr);  // the batch's own
  ExecutionContext expected = without_stack(changed);
  expected.generator = dataset.seen.generator;
  EXPECT_NE(dataset.seen.cancellation, nullptr);  // the loader's own, which stops workers between samples
  expected.cancellation = dataset.seen.cancellation;
  expected.threads = 1;
  expected.grad_mode.is_enabled = false;
  EXPECT_EQ(dataset.seen, expected);
}

TEST(ContextPlaces, QueuesOfAProcessGroup) {
  using namespace distributed;
  const ExecutionContext changed = changed_context(nullptr);
  std::promise<void> is_waited_for;
  std::shared_future<void> may_start = is_waited_for.get_future().share();
  std::vector<ExecutionContext> seen;
  std::vector<std::thread::id> threads;
  distributed::fixtures::on_ranks(2, local_backends(), [&](ProcessGroup& group) {
    const Tensor value = autograd::constant({1}), other = autograd::constant({2});
    if (group.rank() == 1) {
      may_start.wait();
      group.all_reduce(value)->wait();
      group.send(other, 0)->wait();
      return;
    }
    std::vector<WorkPtr> works;
    {
      const ExecutionScope whole(changed);
      works = {group.all_reduce(value), group.recv(other, 1)};
    }
    // Called by the thread that ends the work, which is another one: the other rank has not started.
    std::mutex mutex;
    for (const WorkPtr& work : works) {
      work->on_done([&](const Work&) {
        const std::lock_guard lock(mutex);
        seen.push_back(execution_context());
        threads.push_back(std::this_thread::get_id());
      });
    }
    is_waited_for.set_value();
    for (const WorkPtr& work : works) work->wait();
    for (const std::thread::id thread : threads) EXPECT_NE(thread, std::this_thread::get_id());
  });
  ASSERT_EQ(seen.size(), 2u);
  for (const ExecutionContext& got : seen) EXPECT_EQ(got, without_stack(changed));
}

}  // namespace
}  // namespace tensord::context_places_test
