// Training steps that are not planned, with the reason, and wrong plans that are detected.
#include "core/autograd/hooks/post_accumulate.h"
#include "tests/jit/plan/planned_step_fixture.h"

namespace tensord::jit::planned_step_refusals_test {
namespace {

// --- what is refused

Tensor scaled(const Tensors& p, std::span<const Tensor> batch, double by) {
  return call_by_name("aten::mul.Scalar", mlp(p, batch), by);
}

TEST(PlannedStep, NumbersReadFromTensorsAreRefused) {
  expect_interpreted(with(
                         [](const Tensors& p, const Tensors&, std::span<const Tensor> batch) {
                           return scaled(p, batch, 1 + call_by_name("aten::sum", batch[0]).item_double());
                         },
                         mlp_parameters),
                     "read as a number");
  expect_interpreted(
      with(
          [](const Tensors& p, const Tensors&, std::span<const Tensor> batch) {
            const Tensor positive = call_by_name("aten::gt.Scalar", batch[0], 0);
            return call_by_name(
                "aten::add.Tensor", mlp(p, batch),
                mean(call_by_name("aten::mul.Scalar", call_by_name("aten::masked_select", batch[0], positive), 2.0)));
          },
          mlp_parameters),
      "depends on data");
  // Through a pointer, which recording cannot see: the two runs differ in their numbers.
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
    autograd::register_hook(h, [](const Tensor& g) { return call_by_name("aten::mul.Scalar", g, 2.0); });
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
  for (unsigned i = 0; i < 7; ++i) run(i);
  ASSERT_TRUE(step.report().is_planned) << step.report().reason;
  int gradients = 0, sums = 0;
  auto hook = autograd::register_hook(job.parameters[0], [&](const Tensor&) { return ++gradients, Tensor(); });
  run(7);
  EXPECT_EQ(gradients, 1);
  EXPECT_EQ(step.report().reason, "a parameter has hooks");
  hook.remove();
  auto after = autograd::register_post_accumulate_grad_hook(job.parameters[1], [&](const Tensor&) { ++sums; });
  run(8);
  EXPECT_EQ(sums, 1);
  after.remove();
  run(9);
  EXPECT_TRUE(step.report().is_planned) << step.report().reason;
  EXPECT_EQ(gradients + sums, 2);
}

struct Twice : autograd::Function<Twice> {
  static Tensor forward(autograd::FunctionContext&, const Tensor& x) {
    return call_by_name("aten::mul.Scalar", x, 2.0);
  }
  static Tensors backward(autograd::FunctionContext&, Tensors grads) {
    return {call_by_name("aten::mul.Scalar", grads[0], 2.0)};
  }
};

TEST(PlannedStep, FunctionsOfTheUserAndTensorsThatStayAreRefused) {
  expect_interpreted(
      with([](const Tensors& p, const Tensors&, std::span<const Tensor> batch) { return Twice::apply(mlp(p, batch)); },
           mlp_parameters),
      "is not an operator's gradient");
  const auto kept = std::make_shared<Tensor>();
  expect_interpreted(with(
                         [=](const Tensors& p, const Tensors&, std::span<const Tensor> batch) {
                           *kept = autograd::detach(linear(batch[0], p[0], p[1]));
                           return mlp(p, batch);
                         },
                         mlp_parameters),
                     "outlives the step");
  // Its input is created anew for each step, not by an operator.
  expect_interpreted(
      with(
          [](const Tensors& p, const Tensors&, std::span<const Tensor> batch) {
            return mlp(p, Tensors{call_by_name("aten::add.Tensor", batch[0], random({8, 6}, 3)), batch[1]});
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
      return cross_entropy(linear(call_by_name("aten::embedding", table, batch[0], -1, false, true), weight), batch[1]);
    });
    for (const Tensor& p : {table, weight}) autograd::set_grad(p, Tensor());
  }
  EXPECT_EQ(step.report().planned, 0U);
  EXPECT_THAT(step.report().reason, HasSubstr("sparse"));
}

// Each with one call that a graph cannot contain, in a step that would be planned without it. `more` is added to the
// loss.
TEST(PlannedStep, CallsThatNoGraphHolds) {
  using Batch = std::span<const Tensor>;
  struct Row {
    std::function<Tensor(Batch batch)> more;
    const char* reason;
  };
  const Tensor outside = random({8, 6}, 9);
  const Row rows[] = {
      {[](Batch batch) { return mean(call_by_name("aten::abs", call_by_name("aten::complex", batch[0], batch[0]))); },
       "aten::complex is of complex numbers"},
      {[](Batch batch) {
         return call_by_name("aten::mul.Scalar", mean(batch[0]),
                             ops::call_by_name<bool>("aten::equal", batch[0], batch[0]) ? 1.0 : 2.0);
       },
       "aten::equal gives elements as numbers"},
      {[](Batch batch) {
         const Tensor out = call_by_name("aten::mul.Scalar", batch[0], 2.0);
         call_by_name("aten::add.out", batch[0], batch[0], 1, out);
         return mean(out);
       },
       "aten::add.out writes into its arguments"},
      {[](Batch batch) {
         const Tensor made = random({8, 6}, 3);
         return mean(call_by_name("aten::add_.Tensor", made, batch[0]));
       },
       "aten::add_ writes into a tensor that no operator made"},
      {[](Batch batch) {
         const Tensor wide = random({8, 12}, 3);
         const Tensor part = wide.as_view(Dims{8, 6}, Dims{12, 1}, 0);
         call_by_name("aten::copy_", part, batch[0]);
         return mean(part);
       },
       "a write into memory that is neither row-major nor channels_last, by aten::copy_"},
      {[=](Batch batch) {
         const Tensor before = mean(outside);
         call_by_name("aten::mul_.Scalar", outside, 1.0);
         return call_by_name("aten::add.Tensor", before, mean(batch[0]));
       },
       "aten::mul_ writes into a tensor that outlives the step"},
      {[](Batch batch) {
         const Tensor ints =
             call_by_name("aten::to.dtype", batch[0], static_cast<int64_t>(DType::kInt32), false, false, Value());
         const Tensor bytes = Tensor::from_storage(ints.storage(), Dims{8, 6}, Dims{6, 1}, 0, DType::kFloat32);
         return call_by_name("aten::mul.Scalar", mean(bytes), 0.0);
       },
       "reads a view that no operator made"},
      {[](Batch batch) {
         const Tensor bytes = Tensor::empty(Dims{8}, DType::kUInt8);
         std::fill_n(bytes.data<uint8_t>(), 8, uint8_t{1});
         return mean(call_by_name("aten::index.Tensor", batch[0],
                                  ops::make_list(ops::optional_type(ops::tensor_type()), {Value(bytes)})));
       },
       "aten::index: the shape of its result depends on data"},
      {[](Batch batch) {
         const Tensor zero = call_by_name("aten::mul.Scalar", call_by_name("aten::select.int", batch[0], 0, 0), 0.0);
         const ops::Op& norm = ops::get_op("aten::native_batch_norm");
         const std::vector<Value> arguments{
             batch[0], Value(), Value(), zero, call_by_name("aten::add.Scalar", zero, 1.0), true, 0.1, 1e-5};
         return mean(ops::run(norm, arguments).at(0).to_tensor());
       },
       "aten::native_batch_norm writes into its arguments"}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.reason);
    expect_interpreted(
        with([&](const Tensors& p, const Tensors&,
                 Batch batch) { return call_by_name("aten::add.Tensor", mlp(p, batch), row.more(batch)); },
             mlp_parameters),
        row.reason);
  }
}

// Two buffers over one memory: the target of a write is ambiguous.
TEST(PlannedStep, BuffersThatShareMemory) {
  const auto buffers = [] {
    const Tensor whole = random({8}, 1);
    return Tensors{whole, whole.as_view(Dims{8}, Dims{1}, 0)};
  };
  const auto loss = [](const Tensors& p, const Tensors& b, std::span<const Tensor> batch) {
    const NoGradGuard no_grad;
    call_by_name("aten::mul_.Scalar", b[0], 0.5);
    const EnableGradGuard grad;
    return call_by_name("aten::add.Tensor", mlp(p, batch), mean(b[1]));
  };
  expect_interpreted(with(loss, mlp_parameters, buffers), "writes into memory that several tensors share");
}

// A tensor saved from a buffer detects that a planned step wrote to it.
TEST(PlannedStep, WritesToBuffersCount) {
  const Case of = with(
      [](const Tensors& p, const Tensors& b, std::span<const Tensor> batch) {
        {
          const NoGradGuard no_grad;
          call_by_name("aten::mul_.Scalar", b[0], 0.5);
        }
        return call_by_name("aten::add.Tensor", mlp(p, batch), mean(b[0]));
      },
      mlp_parameters, [] { return Tensors{random({8}, 1)}; });
  const Job job = of.make();
  PlannedStep step(job.parameters, job.buffers);
  for (unsigned i = 0; i < 9; ++i) {
    const Tensors batch = of.batch(i);
    const uint32_t before = job.buffers[0].version();
    const uint64_t planned = step.report().planned;
    step.run(batch, [&] { return job.loss(batch); });
    for (const Tensor& p : job.parameters) autograd::set_grad(p, Tensor());
    EXPECT_GT(job.buffers[0].version(), before) << i << (step.report().planned > planned ? ", planned" : "");
  }
  EXPECT_GT(step.report().planned, 0U) << step.report().reason;
}

TEST(PlannedStep, ALossOfNoParameterIsRefused) {
  const Case of = with([](const Tensors&, const Tensors&, std::span<const Tensor> batch) { return mean(batch[0]); },
                       mlp_parameters);
  try {
    train(of, true);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the loss does not depend on any parameter that is trained"));
  }
}

// --- what is wrong is found

TEST(PlannedStep, MasksSelectAsManyAsTheyLike) {
  // The same count in the recorded and checked steps, another one later; the mean divides by the count.
  Case of = with(
      [](const Tensors& p, const Tensors&, std::span<const Tensor> batch) {
        const Tensor mask = call_by_name("aten::gt.Scalar", call_by_name("aten::select.int", batch[0], 1, 0), 0.0);
        const auto indices = ops::make_list(ops::optional_type(ops::tensor_type()), {Value(mask)});
        return mean(linear(call_by_name("aten::index.Tensor", batch[0], indices), p[0], p[1]));
      },
      mlp_parameters);
  of.batch = [](unsigned i) {
    const Tensor x = random({8, 6}, 100 + i);
    for (int64_t row = 0; row < 8; ++row) x.data<float>()[row * 6] = row < (i == 4 ? 5 : 2) ? 1.0F : -1.0F;
    return Tensors{x, labels(8, 3, 200 + i)};
  };
  expect_interpreted(of, "depends on data");
}

TEST(PlannedStep, ANumberThatChangesLaterIsFoundByTheChecks) {
  // The same in both recordings, another value from the first checked step on.
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

TEST(PlannedStep, EveryGradientIsCompared) {
  for (size_t changed = 0; changed < mlp_parameters().size(); ++changed) {
    const auto count = std::make_shared<int>(0);
    // Adds 0 to the loss, and a changing number to the gradient of one parameter.
    const auto loss = [=](const Tensors& p, const Tensors&, std::span<const Tensor> batch) {
      const Tensor zero = call_by_name(
          "aten::sum", call_by_name("aten::sub.Tensor", p[changed], call_by_name("aten::detach", p[changed])));
      const double by = (*count)++ < 2 ? 1.0 : 2.0;
      return call_by_name("aten::add.Tensor", mlp(p, batch), call_by_name("aten::mul.Scalar", zero, by));
    };
    const History planned = train(with(loss, mlp_parameters), true);
    EXPECT_EQ(planned.report.planned, 0U) << changed;
    EXPECT_THAT(planned.report.reason, HasSubstr(concat("the gradient of parameter ", changed, " by ")));
    *count = 0;
    expect_same(planned, train(with(loss, mlp_parameters), false));
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

}  // namespace
}  // namespace tensord::jit::planned_step_refusals_test
