// Training steps that are planned: the same bits as interpreted ones, step after step, or a reason why not.
#include "core/jit/runtime/step/planned_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "core/autograd/anomaly.h"
#include "core/autograd/engine.h"
#include "core/autograd/function.h"
#include "core/autograd/post_accumulate.h"
#include "core/autograd/saved_hooks.h"
#include "core/autograd/variable.h"
#include "core/base/error.h"
#include "core/jit/runtime/module.h"
#include "core/jit/runtime/step/module_step.h"
#include "core/ops/generator.h"
#include "core/ops/run.h"

namespace tensord::jit {
namespace {

using ops::call;
using ops::Value;
using testing::HasSubstr;
using Tensors = std::vector<Tensor>;

constexpr int kSteps = 9;

// Numbers that hang on the seed alone.
Tensor random(const Dims& sizes, unsigned seed, float scale = 1) {
  std::mt19937 engine(seed);
  const Tensor out = Tensor::empty(sizes, DType::kFloat32);
  for (int64_t i = 0; i < out.numel(); ++i)
    out.data<float>()[i] = scale * (static_cast<float>(engine() % 2001) / 1000 - 1);
  return out;
}
Tensor labels(int64_t count, int64_t classes, unsigned seed) {
  std::mt19937 engine(seed);
  const Tensor out = Tensor::empty(Dims{count}, DType::kInt64);
  for (int64_t i = 0; i < count; ++i) out.data<int64_t>()[i] = static_cast<int64_t>(engine() % classes);
  return out;
}
Tensor parameter(const Dims& sizes, unsigned seed, float scale = 0.3F) {
  const Tensor out = random(sizes, seed, scale);
  autograd::set_requires_grad(out);
  return out;
}

struct Job {
  Tensors parameters, buffers;
  std::function<Tensor(std::span<const Tensor> batch)> loss;
};
struct Case {
  std::function<Job()> make;                      // the same each time
  std::function<Tensors(unsigned number)> batch;  // of a step
};

struct History {
  Tensors values;  // after each step: loss, gradients, parameters, buffers
  PlannedStepReport report;
};

void note(History& history, const Job& job, const Tensor& loss) {
  history.values.push_back(loss.clone());
  for (const Tensor& p : job.parameters) {
    history.values.push_back(autograd::grad(p).defined() ? autograd::grad(p).clone() : Tensor());
    history.values.push_back(autograd::detach(p).clone());
  }
  for (const Tensor& b : job.buffers) history.values.push_back(b.clone());
}

History train(const Case& of, bool plans, PlannedStepOptions options = {}, int steps = kSteps) {
  const Job job = of.make();
  ops::Generator generator(5);
  const ops::GeneratorGuard guard(generator);
  PlannedStep step(job.parameters, job.buffers, options);
  History history;
  for (int i = 0; i < steps; ++i) {
    const Tensors batch = of.batch(static_cast<unsigned>(i));
    Tensor loss;
    if (plans) {
      loss = step.run(batch, [&] { return job.loss(batch); });
    } else {
      const Tensor recorded = job.loss(batch);
      autograd::backward(recorded);
      loss = autograd::detach(recorded);
    }
    const NoGradGuard no_grad;
    note(history, job, loss);
    for (const Tensor& p : job.parameters) {
      if (autograd::grad(p).defined()) call("aten::add_.Tensor", p, autograd::grad(p), -0.1);
      autograd::set_grad(p, Tensor());
    }
  }
  history.report = step.report();
  return history;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.defined() != b.defined()) return false;
  if (!a.defined()) return true;
  const Tensor x = a.contiguous(), y = b.contiguous();
  return x.sizes() == y.sizes() && x.dtype() == y.dtype() &&
         std::memcmp(x.raw_data(), y.raw_data(), x.size_bytes()) == 0;
}

double difference(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return INFINITY;
  return call("aten::max", call("aten::abs", call("aten::sub.Tensor", a, b))).item_double();
}

void expect_same(const History& planned, const History& interpreted) {
  ASSERT_EQ(planned.values.size(), interpreted.values.size());
  for (size_t i = 0; i < planned.values.size(); ++i)
    ASSERT_TRUE(same_bits(planned.values[i], interpreted.values[i]))
        << "value " << i << ", by " << difference(planned.values[i], interpreted.values[i]);
}

// Planned from some step on, with the bits of the interpreted steps.
void expect_planned(const Case& of, int steps = kSteps) {
  const History planned = train(of, true, {}, steps);
  EXPECT_GT(planned.report.planned, 0U) << planned.report.reason;
  EXPECT_GT(planned.report.identical, 0U);
  EXPECT_EQ(planned.report.planned + planned.report.interpreted, static_cast<uint64_t>(steps));
  expect_same(planned, train(of, false, {}, steps));
}

// Interpreted, for this reason.
void expect_interpreted(const Case& of, const std::string& reason) {
  const History planned = train(of, true);
  EXPECT_EQ(planned.report.planned, 0U);
  EXPECT_THAT(planned.report.reason, HasSubstr(reason));
  expect_same(planned, train(of, false));
}

Tensor cross_entropy(const Tensor& scores, const Tensor& labels) {
  return call("aten::cross_entropy_loss", scores, labels);
}
Tensor linear(const Tensor& x, const Tensor& w, const Value& b = {}) { return call("aten::linear", x, w, b); }
Tensor mean(const Tensor& x) { return call("aten::mean", x); }
Tensors rows(unsigned number) { return {random({8, 6}, 100 + number), labels(8, 3, 200 + number)}; }

Case with(
    std::function<Tensor(const Tensors& p, const Tensors& b, std::span<const Tensor> batch)> loss,
    std::function<Tensors()> parameters, std::function<Tensors()> buffers = [] { return Tensors{}; },
    std::function<Tensors(unsigned)> batch = rows) {
  return {[=] {
            Job job{parameters(), buffers(), {}};
            job.loss = [=, p = job.parameters, b = job.buffers](std::span<const Tensor> given) {
              return loss(p, b, given);
            };
            return job;
          },
          batch};
}
Tensors mlp_parameters() {
  return {parameter({16, 6}, 1), parameter({16}, 2), parameter({3, 16}, 3), parameter({3}, 4)};
}
Tensor mlp(const Tensors& p, std::span<const Tensor> batch) {
  const Tensor h = call("aten::relu", linear(batch[0], p[0], p[1]));
  return cross_entropy(linear(h, p[2], p[3]), batch[1]);
}

TEST(PlannedStep, Mlp) {
  expect_planned(with([](const Tensors& p, const Tensors&, std::span<const Tensor> batch) { return mlp(p, batch); },
                      mlp_parameters));
}

TEST(PlannedStep, ConvolutionAndBatchNormWithRunningStatistics) {
  const auto batch = [](unsigned i) { return Tensors{random({4, 2, 8, 8}, 30 + i), labels(4, 3, 60 + i)}; };
  const auto loss = [](const Tensors& p, const Tensors& b, std::span<const Tensor> in) {
    Tensor x = call("aten::conv2d", in[0], p[0], p[1], Dims{1, 1}, Dims{1, 1}, Dims{1, 1}, 1);
    x = call("aten::batch_norm", x, p[2], p[3], b[0], b[1], true, 0.1, 1e-5, false);
    call("aten::add_.Tensor", b[2], Value(Tensor::scalar<int64_t>(1)), 1);
    x = call("aten::max_pool2d", call("aten::relu", x), Dims{2, 2});
    return cross_entropy(linear(call("aten::flatten.using_ints", x, 1, -1), p[4]), in[1]);
  };
  expect_planned(with(
      loss,
      [] {
        return Tensors{parameter({4, 2, 3, 3}, 1), parameter({4}, 2), parameter({4}, 3), parameter({4}, 4),
                       parameter({3, 64}, 5)};
      },
      [] {
        return Tensors{random({4}, 7), random({4}, 8, 0.5F), Tensor::scalar<int64_t>(0)};
      },
      batch));
}

TEST(PlannedStep, DropoutDrawsTheSameNumbers) {
  const auto loss = [](const Tensors& p, const Tensors&, std::span<const Tensor> batch) {
    Tensor h = call("aten::dropout", call("aten::tanh", linear(batch[0], p[0], p[1])), 0.4, true);
    h = call("aten::add.Tensor", h, call("aten::mul.Tensor", call("aten::rand_like", h), Tensor::scalar(0.1F)));
    return cross_entropy(linear(h, p[2], p[3]), batch[1]);
  };
  expect_planned(with(loss, mlp_parameters), 14);
}

TEST(PlannedStep, AttentionLayerNormAndEmbedding) {
  const auto batch = [](unsigned i) {
    return Tensors{call("aten::view", labels(12, 9, 80 + i), Dims{2, 6}), labels(12, 9, 90 + i)};
  };
  const auto loss = [](const Tensors& p, const Tensors&, std::span<const Tensor> in) {
    const Tensor x = call("aten::embedding", p[0], in[0]);
    const auto heads = [&](size_t i) {
      return call("aten::transpose.int", call("aten::view", linear(x, p[i]), Dims{2, 6, 2, 4}), 1, 2);
    };
    const Tensor q = heads(1), k = heads(2), v = heads(3);
    const Tensor scores =
        call("aten::div.Scalar", call("aten::matmul", q, call("aten::transpose.int", k, -2, -1)), 2.0);
    Tensor y = call("aten::matmul", call("aten::softmax.int", scores, -1), v);
    y = call("aten::reshape", call("aten::transpose.int", y, 1, 2), Dims{2, 6, 8});
    y = call("aten::layer_norm", call("aten::add.Tensor", x, y), Dims{8}, p[4], p[5]);
    y = linear(call("aten::gelu", y), p[0]);  // tied to the embedding
    return cross_entropy(call("aten::view", y, Dims{12, 9}), in[1]);
  };
  expect_planned(with(
      loss,
      [] {
        return Tensors{parameter({9, 8}, 1), parameter({8, 8}, 2), parameter({8, 8}, 3),
                       parameter({8, 8}, 4), parameter({8}, 5),    parameter({8}, 6)};
      },
      [] { return Tensors{}; }, batch));
}

TEST(PlannedStep, FrozenUnusedAndSharedGradients) {
  const auto parameters = [] {
    Tensors p = mlp_parameters();
    p.push_back(random({16}, 9));         // frozen
    p.push_back(parameter({7}, 10));      // unused
    p.push_back(parameter({8, 16}, 11));  // its gradient is also that of the next
    p.push_back(parameter({8, 16}, 12));
    return p;
  };
  const auto loss = [](const Tensors& p, const Tensors&, std::span<const Tensor> batch) {
    Tensor h = call("aten::mul.Tensor", call("aten::relu", linear(batch[0], p[0], p[1])), p[4]);
    h = call("aten::add.Tensor", h, call("aten::add.Tensor", p[6], p[7]));
    return cross_entropy(linear(h, p[2], p[3]), batch[1]);
  };
  expect_planned(with(loss, parameters));
}

TEST(PlannedStep, WritesInPlaceIntoWholesAndParts) {
  const auto loss = [](const Tensors& p, const Tensors& b, std::span<const Tensor> batch) {
    Tensor h = linear(batch[0], p[0], p[1]);
    const Tensor part = call("aten::slice.Tensor", h, 1, 2, 6, 1);
    call("aten::mul_.Scalar", part, 3.0);
    h = call("aten::mul.Scalar", h, 2.0);
    call("aten::relu_", h);
    {
      const NoGradGuard no_grad;
      call("aten::mul_.Scalar", b[0], 0.9);
      call("aten::add_.Tensor", call("aten::select.int", b[0], 0, 1), call("aten::mean", h), 0.5);
      call("aten::copy_", b[1], call("aten::mean.dim", h, Dims{0}));
    }
    return cross_entropy(linear(h, p[2], p[3]), batch[1]);
  };
  expect_planned(with(loss, mlp_parameters, [] { return Tensors{random({4}, 1), random({16}, 2)}; }));
}

TEST(PlannedStep, LastSmallBatchHasAPlanOfItsOwn) {
  Case of = with([](const Tensors& p, const Tensors&, std::span<const Tensor> batch) { return mlp(p, batch); },
                 mlp_parameters);
  of.batch = [](unsigned i) {
    const int64_t count = i % 3 == 2 ? 5 : 8;
    return Tensors{random({count, 6}, 100 + i), labels(count, 3, 200 + i)};
  };
  const History planned = train(of, true, {}, 30);
  EXPECT_GE(planned.report.planned, 15U);
  expect_same(planned, train(of, false, {}, 30));
  PlannedStepOptions one_shape;
  one_shape.cache_size = 1;
  const History other = train(of, true, one_shape, 30);
  EXPECT_THAT(other.report.reason, HasSubstr("too many shapes"));
  expect_same(other, train(of, false, {}, 30));
}

TEST(PlannedStep, BFloat16) {
  const auto half = [](const Tensor& x) { return x.to(DType::kBFloat16); };
  const auto parameters = [=] {
    Tensors p;
    for (const Tensor& one : mlp_parameters()) {
      p.push_back(half(autograd::detach(one)));
      autograd::set_requires_grad(p.back());
    }
    return p;
  };
  const auto batch = [=](unsigned i) { return Tensors{half(random({8, 6}, 100 + i)), labels(8, 3, 200 + i)}; };
  const auto loss = [](const Tensors& p, const Tensors&, std::span<const Tensor> in) {
    const Tensor h = call("aten::gelu", linear(in[0], p[0], p[1]));
    return cross_entropy(call("aten::to.dtype", linear(h, p[2], p[3]), DType::kFloat32), in[1]);
  };
  const Case of = with(
      loss, parameters, [] { return Tensors{}; }, batch);
  expect_same(train(of, true), train(of, false));
}

// --- what is refused

Tensor scaled(const Tensors& p, std::span<const Tensor> batch, double by) {
  return call("aten::mul.Scalar", mlp(p, batch), by);
}

TEST(PlannedStep, NumbersReadFromTensorsAreRefused) {
  expect_interpreted(with(
                         [](const Tensors& p, const Tensors&, std::span<const Tensor> batch) {
                           return scaled(p, batch, 1 + call("aten::sum", batch[0]).item_double());
                         },
                         mlp_parameters),
                     "read as a number");
  expect_interpreted(with(
                         [](const Tensors& p, const Tensors&, std::span<const Tensor> batch) {
                           const Tensor positive = call("aten::gt.Scalar", batch[0], 0);
                           return call(
                               "aten::add.Tensor", mlp(p, batch),
                               mean(call("aten::mul.Scalar", call("aten::masked_select", batch[0], positive), 2.0)));
                         },
                         mlp_parameters),
                     "hangs on data");
  // By a pointer, which nobody sees: the two runs have other numbers.
  expect_interpreted(
      with([](const Tensors& p, const Tensors&,
              std::span<const Tensor> batch) { return scaled(p, batch, 2.0F + batch[0].data<float>()[0]); },
           mlp_parameters),
      "the same with other numbers");
}

TEST(PlannedStep, HooksAnomalyModeAndGradientsToAddToAreRefused) {
  const auto plain = [](const Tensors& p, const Tensors&, std::span<const Tensor> batch) { return mlp(p, batch); };
  const auto hooked = [=](const Tensors& p, const Tensors&, std::span<const Tensor> batch) {
    const Tensor h = linear(batch[0], p[0], p[1]);
    autograd::register_hook(h, [](const Tensor& g) { return call("aten::mul.Scalar", g, 2.0); });
    return cross_entropy(linear(h, p[2], p[3]), batch[1]);
  };
  expect_interpreted(with(hooked, mlp_parameters), "has hooks");
  const Case of = with(plain, mlp_parameters);
  {
    const autograd::SavedTensorHooksScope hooks(autograd::save_on_cpu());
    expect_interpreted(of, "hooks for saved tensors");
  }
  const Job job = of.make();
  PlannedStep step(job.parameters, {});
  for (unsigned i = 0; i < 6; ++i) {
    const Tensors batch = of.batch(i);
    step.run(batch, [&] { return job.loss(batch); });
  }
  EXPECT_EQ(step.report().planned, 0U);
  EXPECT_THAT(step.report().reason, HasSubstr("added to those of an earlier step"));
}

TEST(PlannedStep, HooksThatComeLaterAreCalled) {
  const Case of = with([](const Tensors& p, const Tensors&, std::span<const Tensor> batch) { return mlp(p, batch); },
                       mlp_parameters);
  const Job job = of.make();
  PlannedStep step(job.parameters, {});
  const auto run = [&](unsigned number) {
    const Tensors batch = of.batch(number);
    step.run(batch, [&] { return job.loss(batch); });
    for (const Tensor& parameter : job.parameters) autograd::set_grad(parameter, Tensor());
  };
  for (unsigned i = 0; i < 6; ++i) run(i);
  ASSERT_TRUE(step.report().is_planned) << step.report().reason;
  int gradients = 0, sums = 0;
  auto hook = autograd::register_hook(job.parameters[0], [&](const Tensor&) { return ++gradients, Tensor(); });
  run(6);
  EXPECT_EQ(gradients, 1);
  EXPECT_EQ(step.report().reason, "a parameter has hooks");
  hook.remove();
  auto after = autograd::register_post_accumulate_grad_hook(job.parameters[1], [&](const Tensor&) { ++sums; });
  run(7);
  EXPECT_EQ(sums, 1);
  after.remove();
  run(8);
  run(9);
  EXPECT_TRUE(step.report().is_planned) << step.report().reason;
  EXPECT_EQ(gradients + sums, 2);
}

struct Twice : autograd::Function<Twice> {
  static Tensor forward(autograd::FunctionContext&, const Tensor& x) { return call("aten::mul.Scalar", x, 2.0); }
  static Tensors backward(autograd::FunctionContext&, Tensors grads) {
    return {call("aten::mul.Scalar", grads[0], 2.0)};
  }
};

TEST(PlannedStep, FunctionsOfTheUserAndTensorsThatStayAreRefused) {
  expect_interpreted(
      with([](const Tensors& p, const Tensors&, std::span<const Tensor> batch) { return Twice::apply(mlp(p, batch)); },
           mlp_parameters),
      "is no operator's gradient");
  const auto kept = std::make_shared<Tensor>();
  expect_interpreted(with(
                         [=](const Tensors& p, const Tensors&, std::span<const Tensor> batch) {
                           *kept = autograd::detach(linear(batch[0], p[0], p[1]));
                           return mlp(p, batch);
                         },
                         mlp_parameters),
                     "outlives the step");
  // What it read is made anew for each step, by no operator.
  expect_interpreted(with(
                         [](const Tensors& p, const Tensors&, std::span<const Tensor> batch) {
                           return mlp(p, Tensors{call("aten::add.Tensor", batch[0], random({8, 6}, 3)), batch[1]});
                         },
                         mlp_parameters),
                     "no operator made");
}

TEST(PlannedStep, SparseGradientsAreRefused) {
  const Tensor table = parameter({9, 4}, 1), weight = parameter({3, 4}, 2);
  PlannedStep step({table, weight}, {});
  for (unsigned i = 0; i < 5; ++i) {
    const Tensors batch{labels(6, 9, 80 + i), labels(6, 3, 90 + i)};
    step.run(batch, [&] {
      return cross_entropy(linear(call("aten::embedding", table, batch[0], -1, false, true), weight), batch[1]);
    });
    for (const Tensor& p : {table, weight}) autograd::set_grad(p, Tensor());
  }
  EXPECT_EQ(step.report().planned, 0U);
  EXPECT_THAT(step.report().reason, HasSubstr("sparse"));
}

// --- what is wrong is found

TEST(PlannedStep, ANumberThatChangesLaterIsFoundByTheChecks) {
  // The same in both recordings, another from the step on that is checked first.
  for (const int changes_at : {2, 3, 6}) {
    const auto count = std::make_shared<int>(0);
    const Case of =
        with([=](const Tensors& p, const Tensors&,
                 std::span<const Tensor> batch) { return scaled(p, batch, (*count)++ < changes_at ? 1.0 : 2.0); },
             mlp_parameters);
    if (changes_at < 4) {
      const History planned = train(of, true);
      EXPECT_EQ(planned.report.planned, 0U);
      EXPECT_THAT(planned.report.reason, HasSubstr("differs from the interpreted one"));
      *count = 0;
      expect_same(planned, train(of, false));
      continue;
    }
    try {
      train(of, true, {}, 20);
      ADD_FAILURE() << changes_at;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInternal);
      EXPECT_THAT(error.what(), HasSubstr("run the steps without plans"));
    }
  }
}

TEST(PlannedStep, ABrokenPlanIsNotUsed) {
  const Case of = with([](const Tensors& p, const Tensors&, std::span<const Tensor> batch) { return mlp(p, batch); },
                       mlp_parameters);
  PlannedStepOptions broken;
  broken.alter = [](Plan& plan) {
    for (PlanRoot& root : plan.roots) root.offset = 0;
  };
  const History planned = train(of, true, broken);
  EXPECT_EQ(planned.report.planned, 0U);
  EXPECT_THAT(planned.report.reason, HasSubstr("a plan is refused"));
  expect_same(planned, train(of, false));
}

TEST(PlannedStep, AnErrorIsThatOfTheInterpretedStep) {
  const Case of = with([](const Tensors& p, const Tensors&, std::span<const Tensor> batch) { return mlp(p, batch); },
                       mlp_parameters);
  const auto error_at = [&](bool plans) -> std::string {
    Case bad = of;
    bad.batch = [&](unsigned i) {
      Tensors batch = of.batch(i);
      if (i == 6) batch[1].data<int64_t>()[2] = 77;
      return batch;
    };
    try {
      train(bad, plans);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(error_at(true), error_at(false));
  EXPECT_THAT(error_at(true), HasSubstr("77"));
}

// --- programs at random

Tensor step_of(std::mt19937& engine, const Tensors& p, Tensors& values) {
  const auto pick = [&] { return values[engine() % values.size()]; };
  static const char* const kUnary[] = {"aten::relu", "aten::tanh", "aten::sigmoid", "aten::gelu",
                                       "aten::silu", "aten::exp",  "aten::neg",     "aten::abs"};
  static const char* const kBinary[] = {"aten::mul.Tensor", "aten::add.Tensor", "aten::sub.Tensor", "aten::maximum"};
  switch (engine() % 9) {
    case 0:
    case 1: return call(kUnary[engine() % std::size(kUnary)], call("aten::clamp", pick(), -3, 3));
    case 2:
    case 3: return call(kBinary[engine() % std::size(kBinary)], pick(), pick());
    case 4: return linear(pick(), p[engine() % 3], p[3]);
    case 5: return call("aten::layer_norm", pick(), Dims{6}, p[3], p[4]);
    case 6: return call("aten::softmax.int", pick(), static_cast<int64_t>(engine() % 2));
    case 7: {
      const Tensor a = call("aten::slice.Tensor", pick(), 1, 0, 3, 1),
                   b = call("aten::slice.Tensor", pick(), 1, 3, 6, 1);
      return call("aten::cat", Tensors{b, a}, 1);
    }
    default: {
      const Tensor x = call("aten::mul.Scalar", pick(), 0.5);
      return call("aten::add_.Tensor", x,
                  call("aten::mean.dim", pick(), Dims{static_cast<int64_t>(engine() % 2)}, true));
    }
  }
}

TEST(PlannedStep, ProgramsAtRandom) {
  uint64_t planned = 0;
  const char* const wanted = std::getenv("TENSORD_RANDOM_STEPS");  // how many, for longer runs
  const unsigned count = wanted ? static_cast<unsigned>(std::atoi(wanted)) : 60;
  for (unsigned seed = 0; seed < count; ++seed) {
    const Case of = with(
        [seed](const Tensors& p, const Tensors&, std::span<const Tensor> batch) {
          std::mt19937 engine(seed);
          Tensors values{batch[0], call("aten::mul.Tensor", batch[0], p[3])};
          for (unsigned i = 0; i < 4 + seed % 9; ++i) values.push_back(step_of(engine, p, values));
          return mean(linear(values.back(), p[0], p[4]));
        },
        [] {
          return Tensors{parameter({6, 6}, 1), parameter({6, 6}, 2), parameter({6, 6}, 3), parameter({6}, 4),
                         parameter({6}, 5)};
        });
    const History history = train(of, true, {}, 14);
    planned += history.report.planned > 0;
    EXPECT_TRUE(history.report.planned > 0) << seed << ": " << history.report.reason;
    expect_same(history, train(of, false, {}, 14));
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
  }
  EXPECT_GT(planned, count * 5 / 6);
}

TEST(PlannedStep, FusedStepsAreWithinRounding) {
  const Case of = with([](const Tensors& p, const Tensors&, std::span<const Tensor> batch) { return mlp(p, batch); },
                       mlp_parameters);
  PlannedStepOptions fused;
  fused.keeps_bits = false;
  const History a = train(of, true, fused), b = train(of, false);
  EXPECT_TRUE(a.report.is_fused);
  EXPECT_GT(a.report.planned, 0U) << a.report.reason;
  for (size_t i = 0; i < a.values.size(); ++i) EXPECT_LT(difference(a.values[i], b.values[i]), 1e-5) << i;
}

// --- modules

constexpr const char* kNet = R"(
class Net(Module):
    __parameters__ = ["weight", "bias"]
    weight: Tensor
    bias: Tensor
    seen: List[Tensor]
    training: bool

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        parts: List[Tensor] = []
        for i in range(3):
            parts.append(torch.linear(x, self.weight, self.bias) * float(i + 1))
        return torch.mean(torch.square(torch.sum(torch.stack(parts), dim=0) - y))

    def counts(self, x: Tensor, y: Tensor) -> Tensor:
        self.training = not self.training
        return self.forward(x, y)
)";

TEST(PlannedStep, AMethodOfAModule) {
  LoadOptions options;
  options.for_training = true;
  std::string source = kNet;
  source.erase(source.find("    seen: List[Tensor]\n"), std::strlen("    seen: List[Tensor]\n"));
  const auto module = Module::compile(source, {{"weight", random({4, 6}, 1)}, {"bias", random({4}, 2)}}, options);
  for (const auto& [name, tensor] : module->named_parameters()) autograd::set_requires_grad(tensor);
  const auto report_of = [&](const std::string& method) {
    Frame frame;
    const auto step = make_planned_step(*module, std::span(&method, 1));
    for (unsigned i = 0; i < 7; ++i) {
      const Tensors batch{random({5, 6}, 10 + i), random({5, 4}, 30 + i)};
      const std::vector<Value> arguments(batch.begin(), batch.end());
      step->run(batch, [&] { return module->method(method).run(frame, arguments).to_tensor(); });
      for (const auto& [name, tensor] : module->named_parameters()) autograd::set_grad(tensor, Tensor());
    }
    return step->report();
  };
  const PlannedStepReport planned = report_of("forward");
  EXPECT_GT(planned.planned, 0U) << planned.reason;
  EXPECT_GT(planned.calls, 0U);
  EXPECT_THAT(report_of("counts").reason, HasSubstr("sets the attribute 'training'"));
  int calls = 0;
  const auto hook = module->register_forward_hook(
      "", [&](const HookedCall&, const std::vector<Value>&, const Value&) { return ++calls, std::nullopt; });
  EXPECT_THAT(report_of("forward").reason, HasSubstr("modules have hooks"));
  EXPECT_EQ(calls, 7);
}

}  // namespace
}  // namespace tensord::jit
