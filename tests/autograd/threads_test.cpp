// Concurrent use: hooks added and removed during passes, gradients read meanwhile, views whose graph is rebuilt. Most
// failures only show under the thread sanitizer.
#include <array>
#include <atomic>
#include <barrier>
#include <functional>
#include <thread>

#include "core/autograd/hooks/callbacks.h"
#include "core/autograd/node.h"
#include "core/ops/sparse.h"
#include "tests/autograd/support.h"

namespace tensord::autograd::threads_test {
namespace {

using Tensors = std::vector<Tensor>;

BackwardOptions retaining(int threads = 1) {
  BackwardOptions options;
  options.retain_graph = true;
  options.threads = threads;
  return options;
}

// Runs all functions at the same time, each in a thread of its own.
void at_once(const std::vector<std::function<void()>>& functions) {
  std::barrier start(static_cast<std::ptrdiff_t>(functions.size()));
  std::vector<std::thread> threads;
  for (const auto& function : functions) {
    threads.emplace_back([&] {
      start.arrive_and_wait();
      function();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ThreadsOfHooks, ComeAndGoWhilePassesRun) {
  constexpr int kPasses = 40;
  const Tensor x = leaf({1, 2}), y = scale(x, 2), z = sum(mul(y, y));
  const NodePtr node = grad_fn(y);
  std::atomic<int> kept{0}, passing{0};
  register_hook(y, [&](const Tensor&) { return ++kept, Tensor(); });
  node->register_prehook([&](const Tensors&) { return ++kept, std::optional<Tensors>(); });
  node->register_hook([&](const Tensors&, const Tensors&) { return ++kept, std::optional<Tensors>(); });
  retain_grad(y);
  const auto pass = [&] {
    for (int i = 0; i < kPasses; ++i) backward(z, {}, retaining());
  };
  const auto of_tensor = [&] {
    for (int i = 0; i < kPasses; ++i) register_hook(y, [&](const Tensor&) { return ++passing, Tensor(); }).remove();
  };
  const auto of_node = [&] {
    for (int i = 0; i < kPasses; ++i) {
      HookHandle before = node->register_prehook([&](const Tensors&) { return ++passing, std::optional<Tensors>(); });
      HookHandle after =
          node->register_hook([&](const Tensors&, const Tensors&) { return ++passing, std::optional<Tensors>(); });
      before.remove();
      after.remove();
    }
  };
  at_once({pass, pass, of_tensor, of_tensor, of_node, of_node});
  EXPECT_EQ(numbers(grad(x)), (Numbers{8.0 * 2 * kPasses, 16.0 * 2 * kPasses}));
  EXPECT_EQ(numbers(grad(y)), (Numbers{4.0 * 2 * kPasses, 8.0 * 2 * kPasses}));
  EXPECT_EQ(kept, 3 * 2 * kPasses);
  const int before = passing;
  backward(z);
  EXPECT_EQ(passing, before);  // each was removed
}

TEST(ThreadsOfHooks, FirstOnesOfANodeAtOnce) {
  for (int round = 0; round < 50; ++round) {
    const Tensor x = leaf({1}), y = scale(x, 2);
    std::atomic<int> calls{0};
    const auto add_one = [&] { register_hook(y, [&](const Tensor&) { return ++calls, Tensor(); }); };
    at_once({add_one, add_one, add_one});
    backward(y);
    EXPECT_EQ(calls, 3);
  }
}

// Two results of one node; two threads retain their gradients, then write them.
TEST(ThreadsOfHooks, RetainedResultsOfOneNode) {
  constexpr size_t kNodes = 50;
  const ops::Op& var_mean = ops::get_op("aten::var_mean");
  const Tensor x = leaf({1, 2, 6});
  std::vector<Tensors> results;
  for (size_t i = 0; i < kNodes; ++i) {
    const std::vector<ops::Value> pair = ops::run(var_mean, ops::bind(var_mean, {x, true}));
    results.push_back({pair[0].to_tensor(), pair[1].to_tensor()});
  }
  const auto retain = [&](size_t which) {
    return [&results, which] {
      for (Tensors& pair : results) {
        retain_grad(pair[which]);
        scale_in_place(pair[which], 10);
      }
    };
  };
  at_once({retain(0), retain(1)});
  for (const Tensors& pair : results) {
    backward(add(pair[0], scale(pair[1], 3)));
    EXPECT_EQ(numbers(grad(pair[0])), (Numbers{1}));
    EXPECT_EQ(numbers(grad(pair[1])), (Numbers{3}));
  }
}

TEST(ThreadsOfLeaves, GradientsAreReadAndSetMeanwhile) {
  constexpr int kPasses = 60;
  const Tensor w = leaf({1, 2}), other = leaf({1, 2});
  const auto pass = [&] {
    for (int i = 0; i < kPasses; ++i) backward(sum(add(scale(w, 2), other)));
  };
  const auto look = [&] {
    for (int i = 0; i < kPasses; ++i) grad(w);
  };
  const auto set = [&] {
    for (int i = 0; i < kPasses; ++i) set_grad(other, i % 2 ? Tensor() : constant({0, 0}));
  };
  at_once({pass, pass, look, set});
  EXPECT_EQ(numbers(grad(w)), (Numbers{4.0 * kPasses, 4.0 * kPasses}));
}

TEST(ThreadsOfLeaves, SparseGradientsAddUp) {
  constexpr int kPasses = 30;
  const Tensor table = leaf({1, 2, 3, 4}, {2, 2});
  const Tensor index = constant({1}, Dims{1}, DType::kInt64);
  const auto pass = [&] {
    for (int i = 0; i < kPasses; ++i)
      backward(sum(ops::call_by_name("aten::embedding", table, index, -1, false, true)));
  };
  at_once({pass, pass, pass});
  EXPECT_EQ(numbers(ops::call_by_name("aten::to_dense", grad(table))), (Numbers{0, 0, 3.0 * kPasses, 3.0 * kPasses}));
}

TEST(ThreadsOfPasses, CallbacksOfAllBranches) {
  for (int round = 0; round < 5; ++round) {
    constexpr int kBranches = 40;
    const Tensor x = leaf({1});
    std::atomic<int> calls{0};
    Tensor total = x;
    for (int i = 0; i < kBranches; ++i) {
      const Tensor branch = scale(x, i);
      register_hook(branch, [&](const Tensor&) {
        queue_callback([&] { ++calls; });
        return Tensor();
      });
      total = add(total, branch);
    }
    backward(total, {}, retaining(4));
    EXPECT_EQ(calls, kBranches);
    backward(total, {}, retaining(1));
    EXPECT_EQ(calls, 2 * kBranches);
  }
}

// After a write to the base, the first thread that asks rebuilds the view's node.
TEST(ThreadsOfViews, HaveOneHistory) {
  const Tensor x = leaf({1, 2, 3});
  for (int round = 0; round < 50; ++round) {
    const Tensor base = scale(x, 2), view = select(base, 1);
    add_in_place(base, x);
    std::array<NodePtr, 3> found;
    at_once({[&] { found[0] = grad_fn(view); }, [&] { found[1] = grad_fn(view); }, [&] { found[2] = grad_fn(view); }});
    EXPECT_EQ(name_of(found[0]), "AsStridedBackward0");
    EXPECT_EQ(found[0].get(), found[1].get());
    EXPECT_EQ(found[0].get(), found[2].get());
  }
}

}  // namespace
}  // namespace tensord::autograd::threads_test
