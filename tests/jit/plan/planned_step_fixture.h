#pragma once

// Steps that are trained twice, planned and interpreted, for tests/jit/planned_step*_test.cpp.
#include "core/jit/runtime/step/planned_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "core/autograd/anomaly.h"
#include "core/autograd/engine.h"
#include "core/autograd/function.h"
#include "core/autograd/hooks/saved_hooks.h"
#include "core/autograd/variable.h"
#include "core/base/error.h"
#include "core/jit/runtime/module.h"
#include "core/jit/runtime/step/module_step.h"
#include "core/ops/generator.h"
#include "core/ops/run.h"

namespace tensord::jit {
using ops::call_by_name;
using ops::Value;
using ::testing::HasSubstr;
using Tensors = std::vector<Tensor>;

constexpr int kSteps = 9;

// Numbers that depend only on the seed.
inline Tensor random(const Dims& sizes, unsigned seed, float scale = 1) {
  std::mt19937 engine(seed);
  const Tensor out = Tensor::empty(sizes, DType::kFloat32);
  for (int64_t i = 0; i < out.numel(); ++i)
    out.data<float>()[i] = scale * (static_cast<float>(engine() % 2001) / 1000 - 1);
  return out;
}
inline Tensor labels(int64_t count, int64_t classes, unsigned seed) {
  std::mt19937 engine(seed);
  const Tensor out = Tensor::empty(Dims{count}, DType::kInt64);
  for (int64_t i = 0; i < count; ++i) out.data<int64_t>()[i] = static_cast<int64_t>(engine() % classes);
  return out;
}
inline Tensor parameter(const Dims& sizes, unsigned seed, float scale = 0.3F) {
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

inline void note(History& history, const Job& job, const Tensor& loss) {
  history.values.push_back(loss.clone());
  for (const Tensor& p : job.parameters) {
    history.values.push_back(autograd::grad(p).defined() ? autograd::grad(p).clone() : Tensor());
    history.values.push_back(autograd::detach(p).clone());
  }
  for (const Tensor& b : job.buffers) history.values.push_back(b.clone());
}

inline History train(const Case& of, bool plans, PlannedStepOptions options = {}, int steps = kSteps) {
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
      if (autograd::grad(p).defined()) call_by_name("aten::add_.Tensor", p, autograd::grad(p), -0.1);
      autograd::set_grad(p, Tensor());
    }
  }
  history.report = step.report();
  return history;
}

inline bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.defined() != b.defined()) return false;
  if (!a.defined()) return true;
  const Tensor x = a.contiguous(), y = b.contiguous();
  return x.sizes() == y.sizes() && x.dtype() == y.dtype() &&
         std::memcmp(x.raw_data(), y.raw_data(), x.size_bytes()) == 0;
}

inline double difference(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return INFINITY;
  return call_by_name("aten::max", call_by_name("aten::abs", call_by_name("aten::sub.Tensor", a, b))).item_double();
}

inline void expect_same(const History& planned, const History& interpreted) {
  ASSERT_EQ(planned.values.size(), interpreted.values.size());
  for (size_t i = 0; i < planned.values.size(); ++i)
    ASSERT_TRUE(same_bits(planned.values[i], interpreted.values[i]))
        << "value " << i << ", by " << difference(planned.values[i], interpreted.values[i]);
}

// Planned from some step on, with the bits of the interpreted steps.
inline void expect_planned(const Case& of, int steps = kSteps) {
  const History planned = train(of, true, {}, steps);
  EXPECT_GT(planned.report.planned, 0U) << planned.report.reason;
  EXPECT_GT(planned.report.identical, 0U);
  EXPECT_EQ(planned.report.planned + planned.report.interpreted, static_cast<uint64_t>(steps));
  expect_same(planned, train(of, false, {}, steps));
}

// Interpreted, for this reason.
inline void expect_interpreted(const Case& of, const std::string& reason) {
  const History planned = train(of, true);
  EXPECT_EQ(planned.report.planned, 0U);
  EXPECT_THAT(planned.report.reason, HasSubstr(reason));
  expect_same(planned, train(of, false));
}

inline Tensor cross_entropy(const Tensor& scores, const Tensor& labels) {
  return call_by_name("aten::cross_entropy_loss", scores, labels);
}
inline Tensor linear(const Tensor& x, const Tensor& w, const Value& b = {}) {
  return call_by_name("aten::linear", x, w, b);
}
inline Tensor mean(const Tensor& x) { return call_by_name("aten::mean", x); }
inline Tensors rows(unsigned number) { return {random({8, 6}, 100 + number), labels(8, 3, 200 + number)}; }

inline Case with(
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
inline Tensors mlp_parameters() {
  return {parameter({16, 6}, 1), parameter({16}, 2), parameter({3, 16}, 3), parameter({3}, 4)};
}
inline Tensor mlp(const Tensors& p, std::span<const Tensor> batch) {
  const Tensor h = call_by_name("aten::relu", linear(batch[0], p[0], p[1]));
  return cross_entropy(linear(h, p[2], p[3]), batch[1]);
}

}  // namespace tensord::jit
