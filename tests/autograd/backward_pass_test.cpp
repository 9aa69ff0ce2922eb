// Passes by several threads, several passes at once, targets of a pass, and anomaly mode.
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <limits>
#include <thread>

#include "core/autograd/anomaly.h"
#include "core/autograd/function.h"
#include "tests/autograd/support.h"

namespace tensord::autograd::backward_pass_test {
namespace {

// Sums whose order matters in float32: many branches of different sizes that meet in a few leaves.
Tensor wide_graph(const std::vector<Tensor>& leaves, int branches) {
  Tensor total = constant({0}, {1}, DType::kFloat32);
  for (int i = 0; i < branches; ++i) {
    const Tensor& a = leaves[static_cast<size_t>(i) % leaves.size()];
    const Tensor& b = leaves[static_cast<size_t>(i * 7 + 3) % leaves.size()];
    Tensor y = mul(ops::call_by_name("aten::sin", scale(a, 1 + 0.37 * i)),
                   ops::call_by_name("aten::exp", scale(b, 0.1 * (i % 9))));
    if (i % 5 == 0) y = mul(y, ops::call_by_name("aten::sigmoid", y));
    total = add(total, ops::call_by_name("aten::sum", y));
  }
  return total;
}

std::vector<Numbers> gradients_by(int threads) {
  std::vector<Tensor> leaves;
  for (int i = 0; i < 4; ++i) {
    Numbers values;
    for (int k = 0; k < 50; ++k) values.push_back(std::sin(0.1 * k + i));
    leaves.push_back(leaf(values, {50}, DType::kFloat32));
  }
  BackwardOptions options;
  options.threads = threads;
  backward(ops::call_by_name("aten::sum", wide_graph(leaves, 200)), {}, options);
  std::vector<Numbers> out;
  for (const Tensor& tensor : leaves) out.push_back(numbers(grad(tensor)));
  return out;
}

TEST(Threads, DoNotChangeResults) {
  const auto serial = gradients_by(1);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(gradients_by(2 + i % 3), serial);
}

struct NotesItsThread : Function<NotesItsThread> {
  static Tensor forward(FunctionContext&, const Tensor& x) { return scale(x, 1); }
  static std::vector<Tensor> backward(FunctionContext&, std::vector<Tensor> grads) {
    // Both branches must be in here at once for either to go on.
    ++waiting;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(200);
    while (waiting.load() < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return grads;
  }
  static inline std::atomic<int> waiting{0};
};

TEST(Threads, BranchesRunSideBySide) {
  const Tensor x = leaf({1}), w = leaf({2});
  NotesItsThread::waiting = 0;
  BackwardOptions options;
  options.threads = 2;
  backward(add(NotesItsThread::apply(x), NotesItsThread::apply(w)), {}, options);
  EXPECT_EQ(NotesItsThread::waiting.load(), 2);
  EXPECT_EQ(numbers(grad(x)), (Numbers{1}));
}

// How many are in there at most at once. Each waits a while for others.
struct Meets : Function<Meets> {
  static Tensor forward(FunctionContext&, const Tensor& x) { return scale(x, 1); }
  static std::vector<Tensor> backward(FunctionContext&, std::vector<Tensor> grads) {
    const int others = inside++;
    for (int most = largest; most <= others && !largest.compare_exchange_weak(most, others + 1);) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    --inside;
    return grads;
  }
  static Tensor of_branches(const Tensor& x, int count) {
    Tensor total = x;
    for (int i = 0; i < count; ++i) total = add(total, apply(scale(x, 1)));
    largest = 0;
    return total;
  }
  static inline std::atomic<int> inside{0}, largest{0};
};

TEST(Threads, AreNoneWhereNodesAreNumberedOrWaitedFor) {
  const Tensor x = leaf({1});
  BackwardOptions options{.create_graph = true, .threads = 3};
  backward(Meets::of_branches(x, 3), {}, options);
  EXPECT_EQ(Meets::largest, 1);
  // A pass within another one keeps to its thread.
  const Tensor outer = scale(x, 1);
  options.create_graph = false;
  register_hook(outer, [&](const Tensor&) {
    const EnableGradGuard recorded;
    backward(Meets::of_branches(leaf({1}), 3), {}, options);
    return Tensor();
  });
  backward(outer);
  EXPECT_EQ(Meets::largest, 1);
}

TEST(Threads, AreNotMoreThanAFew) {
  backward(Meets::of_branches(leaf({1}), 80), {}, {.threads = 80});
  EXPECT_GT(Meets::largest, 1);
  EXPECT_LE(Meets::largest, 64);
}

struct Throws : Function<Throws> {
  static Tensor forward(FunctionContext&, const Tensor& x) { return scale(x, 1); }
  static std::vector<Tensor> backward(FunctionContext&, std::vector<Tensor>) {
    fail(ErrorCode::kOutOfRange, "thrown by a node");
  }
};

TEST(Threads, ErrorsReachTheCaller) {
  for (const int threads : {1, 3}) {
    const Tensor x = leaf({1});
    BackwardOptions options;
    options.threads = threads;
    const auto run = [&] { backward(add(Throws::apply(scale(x, 2)), mul(x, x)), {}, options); };
    EXPECT_EQ(error_of(run), "thrown by a node");
    try {
      run();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kOutOfRange);
    }
  }
}

// Two that fail at once: the first is told of.
struct FailsInTurn : Function<FailsInTurn> {
  static Tensor forward(FunctionContext& context, const Tensor& x, bool is_first) {
    context.data["is_first"] = is_first;
    return scale(x, 1);
  }
  static std::vector<Tensor> backward(FunctionContext& context, std::vector<Tensor>) {
    ++inside;
    const bool is_first = context.data["is_first"].to_bool();
    if (is_first) first_thread = gettid();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(200);
    // The second until the first one's thread has nothing more to do: then its error was taken.
    const auto may_fail = [&] { return is_first ? inside.load() == 2 : is_asleep(first_thread); };
    while (!may_fail() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    fail(ErrorCode::kOutOfRange, is_first ? "the first" : "the second");
  }
  static bool is_asleep(int thread) {
    std::ifstream file(concat("/proc/self/task/", thread, "/stat"));
    std::string text;
    std::getline(file, text);
    const size_t name_end = text.rfind(") ");
    return name_end != std::string::npos && text[name_end + 2] == 'S';
  }
  static inline std::atomic<int> inside{0}, first_thread{0};
};

TEST(Threads, TheFirstErrorIsTheOneThatIsThrown) {
  FailsInTurn::inside = FailsInTurn::first_thread = 0;
  const Tensor x = leaf({1}), w = leaf({2});
  BackwardOptions options;
  options.threads = 2;
  EXPECT_EQ(error_of([&] { backward(add(FailsInTurn::apply(x, true), FailsInTurn::apply(w, false)), {}, options); }),
            "the first");
}

TEST(Threads, ManyPassesAtOnceAddToTheSameLeaves) {
  const Tensor w = leaf({1, 2, 3});
  constexpr int kThreads = 4, kPasses = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kPasses; ++i) backward(sum(mul(w, constant({1, 2, 4}))));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(numbers(grad(w)), (Numbers{kThreads * kPasses * 1.0, kThreads * kPasses * 2.0, kThreads * kPasses * 4.0}));
}

TEST(Targets, OfGradNeedNotBeLeaves) {
  const Tensor x = leaf({2, 3}), w = leaf({5, 7});
  const Tensor y = mul(x, w), z = mul(y, y);
  const std::vector<Tensor> found = grad(std::vector{sum(z)}, std::vector{y, w, z});
  EXPECT_EQ(numbers(found[0]), (Numbers{20, 42}));
  EXPECT_EQ(numbers(found[1]), (Numbers{40, 126}));
  EXPECT_EQ(numbers(found[2]), (Numbers{1, 1}));
  EXPECT_FALSE(grad(x).defined());
  EXPECT_FALSE(grad(w).defined());
}

TEST(Targets, OnlyWhatLeadsToThemRuns) {
  const Tensor x = leaf({2}), w = leaf({5});
  const Tensor y = add(Throws::apply(x), scale(w, 3));
  EXPECT_EQ(numbers(grad(std::vector{y}, std::vector{w}).at(0)), (Numbers{3}));
  const std::vector<Tensor> only = {w};
  BackwardOptions options;
  options.inputs = only;
  backward(add(Throws::apply(x), scale(w, 3)), {}, options);
  EXPECT_EQ(numbers(grad(w)), (Numbers{3}));
  EXPECT_FALSE(grad(x).defined());
}

TEST(Targets, UnusedOnesAreUndefinedWhenAllowed) {
  const Tensor x = leaf({2}), w = leaf({5});
  const std::vector<Tensor> found = grad(std::vector{mul(x, x)}, std::vector{w, x}, {}, {}, true);
  EXPECT_FALSE(found[0].defined());
  EXPECT_EQ(numbers(found[1]), (Numbers{4}));
}

TEST(Targets, TheSameTensorTwiceAndAsItsOwnOutput) {
  const Tensor x = leaf({2, 3});
  const std::vector<Tensor> found =
      grad(std::vector{x, scale(x, 4)}, std::vector{x, x}, std::vector{constant({1, 1}), constant({1, 10})});
  EXPECT_EQ(numbers(found[0]), (Numbers{5, 41}));
  EXPECT_EQ(numbers(found[1]), (Numbers{5, 41}));
}

TEST(Roots, VectorJacobianProducts) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = mul(x, x);
  backward(std::vector{y, sum(x)}, std::vector{constant({1, 10, 100}), Tensor()});
  EXPECT_EQ(numbers(grad(x)), (Numbers{3, 41, 601}));
  const Tensor z = leaf({4});
  backward(z);  // a leaf itself
  EXPECT_EQ(numbers(grad(z)), (Numbers{1}));
}

// An operator that nobody gave a gradient.
const ops::OpBuilder no_gradient =
    ops::OpBuilder("test::no_gradient(Tensor self, Tensor[] others) -> Tensor", __FILE__, __LINE__)
        .impl([](const Tensor& x, const std::vector<Tensor>&) { return x.clone(); });
// And one whose result is a constant.
const ops::OpBuilder constant_result =
    ops::OpBuilder("test::constant_result(Tensor self) -> Tensor", __FILE__, __LINE__)
        .impl([](const Tensor& x) { return x.clone(); })
        .constant_result();

TEST(Nodes, WithoutAGradientRefuse) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = ops::call_by_name("test::no_gradient", x, std::vector{constant({1})});
  EXPECT_EQ(name_of(grad_fn(y)), "NoGradientBackward0");
  EXPECT_EQ(error_of([&] { backward(sum(y)); }), "derivative for test::no_gradient is not implemented");
  EXPECT_TRUE(requires_grad(ops::call_by_name("test::no_gradient", constant({1}), std::vector{x})));
  EXPECT_FALSE(requires_grad(ops::call_by_name("test::constant_result", x)));
  struct Stops : Function<Stops> {
    static Tensor forward(FunctionContext&, const Tensor& x) { return scale(x, 1); }
    static std::vector<Tensor> backward(FunctionContext&, std::vector<Tensor>) { return {Tensor()}; }
  };
  EXPECT_EQ(error_of([&] { backward(sum(Stops::apply(y))); }), "no error");  // none comes to it
}

TEST(Anomaly, NanIsNamedWithItsForward) {
  const AnomalyModeGuard guard;
  const Tensor x = leaf({0, 1});
  const char* place = "model.py:12, in forward";
  const OriginScope scope([](const void* text) { return std::string(static_cast<const char*>(text)); }, place);
  const Tensor y = scale(ops::call_by_name("aten::sqrt", x), 0);
  const std::string text = error_of([&] { backward(sum(y)); });
  EXPECT_THAT(text, HasSubstr("Function 'SqrtBackward0' returned nan values in its 0th output."));
  EXPECT_THAT(text, HasSubstr("aten::sqrt"));
  EXPECT_THAT(text, HasSubstr("model.py:12, in forward"));
}

struct Double : Function<Double> {
  static Tensor forward(FunctionContext&, const Tensor& x) { return scale(x, 2); }
  static std::vector<Tensor> backward(FunctionContext&, std::vector<Tensor> grads) {
    return {depth++ == 0 ? Double::apply(grads[0]) : scale(grads[0], 2)};
  }
  static inline int depth = 0;
};

// A node that a pass makes comes from the node that ran then, which comes from a call itself.
TEST(Anomaly, NodesOfARecordedPassNameTheNodeThatMadeThem) {
  const AnomalyModeGuard guard;
  const Tensor x = leaf({2});
  const auto origin_of_gradient = [&](const Tensor& y, const Tensor& weight) {
    const Tensor first = grad(std::vector{y}, std::vector{x}, std::vector{weight}, {.create_graph = true}).at(0);
    return grad_fn(first)->origin();
  };
  EXPECT_EQ(origin_of_gradient(ops::call_by_name("aten::exp", x), leaf({1})),
            "aten::mul.Tensor\nin the backward of ExpBackward0, itself made\naten::exp");
  // One of no operator's has nothing before it.
  EXPECT_EQ(origin_of_gradient(Double::apply(x), leaf({1})), "in the backward of DoubleBackward");
}

// A node can be run by hand, outside of a pass.
TEST(Nodes, RunWithoutAPass) {
  const Tensor x = leaf({2, 3}), y = mul(x, constant({5, 7}));
  EXPECT_EQ(numbers(grad_fn(y)->apply({constant({1, 10})}).at(0)), (Numbers{5, 70}));
}

TEST(Anomaly, ErrorsSayWhereTheCallWasMade) {
  const Tensor x = leaf({1});
  const AnomalyModeGuard guard(true, false);
  const Tensor y = ops::call_by_name("aten::exp", x), z = mul(y, y);
  add_in_place(y, constant({1}));
  EXPECT_THAT(error_of([&] { backward(ops::call_by_name("aten::add.Tensor", z, y)); }),
              ::testing::AllOf(HasSubstr("has been modified by an inplace operation"),
                               HasSubstr("Error detected in MulBackward0"), HasSubstr("aten::mul.Tensor")));
  // Not when it is only the values that are odd.
  backward(scale(ops::call_by_name("aten::sqrt", leaf({0})), 0));
}

}  // namespace
}  // namespace tensord::autograd::backward_pass_test
