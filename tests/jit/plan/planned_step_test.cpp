// Training steps that are planned: the same bits as interpreted ones, step after step.
#include "tests/jit/plan/planned_step_fixture.h"

namespace tensord::jit::planned_step_test {
namespace {

TEST(PlannedStep, Mlp) {
  expect_planned(with([](const Tensors& p, const Tensors&, std::span<const Tensor> batch) { return mlp(p, batch); },
                      mlp_parameters));
}

TEST(PlannedStep, ConvolutionAndBatchNormWithRunningStatistics) {
  const auto batch = [](unsigned i) { return Tensors{random({4, 2, 8, 8}, 30 + i), labels(4, 3, 60 + i)}; };
  const auto loss = [](const Tensors& p, const Tensors& b, std::span<const Tensor> in) {
    Tensor x = call_by_name("aten::conv2d", in[0], p[0], p[1], Dims{1, 1}, Dims{1, 1}, Dims{1, 1}, 1);
    x = call_by_name("aten::batch_norm", x, p[2], p[3], b[0], b[1], true, 0.1, 1e-5, false);
    call_by_name("aten::add_.Tensor", b[2], Value(Tensor::scalar<int64_t>(1)), 1);
    x = call_by_name("aten::max_pool2d", call_by_name("aten::relu", x), Dims{2, 2});
    return cross_entropy(linear(call_by_name("aten::flatten.using_ints", x, 1, -1), p[4]), in[1]);
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
    Tensor h = call_by_name("aten::dropout", call_by_name("aten::tanh", linear(batch[0], p[0], p[1])), 0.4, true);
    h = call_by_name("aten::add.Tensor", h,
                     call_by_name("aten::mul.Tensor", call_by_name("aten::rand_like", h), Tensor::scalar(0.1F)));
    return cross_entropy(linear(h, p[2], p[3]), batch[1]);
  };
  expect_planned(with(loss, mlp_parameters), 14);
}

TEST(PlannedStep, AttentionLayerNormAndEmbedding) {
  const auto batch = [](unsigned i) {
    return Tensors{call_by_name("aten::view", labels(12, 9, 80 + i), Dims{2, 6}), labels(12, 9, 90 + i)};
  };
  const auto loss = [](const Tensors& p, const Tensors&, std::span<const Tensor> in) {
    const Tensor x = call_by_name("aten::embedding", p[0], in[0]);
    const auto heads = [&](size_t i) {
      return call_by_name("aten::transpose.int", call_by_name("aten::view", linear(x, p[i]), Dims{2, 6, 2, 4}), 1, 2);
    };
    const Tensor q = heads(1), k = heads(2), v = heads(3);
    const Tensor scores = call_by_name(
        "aten::div.Scalar", call_by_name("aten::matmul", q, call_by_name("aten::transpose.int", k, -2, -1)), 2.0);
    Tensor y = call_by_name("aten::matmul", call_by_name("aten::softmax.int", scores, -1), v);
    y = call_by_name("aten::reshape", call_by_name("aten::transpose.int", y, 1, 2), Dims{2, 6, 8});
    y = call_by_name("aten::layer_norm", call_by_name("aten::add.Tensor", x, y), Dims{8}, p[4], p[5]);
    y = linear(call_by_name("aten::gelu", y), p[0]);  // tied to the embedding
    return cross_entropy(call_by_name("aten::view", y, Dims{12, 9}), in[1]);
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
    p.push_back(parameter({8, 16}, 11));  // shares its gradient with the next
    p.push_back(parameter({8, 16}, 12));
    return p;
  };
  const auto loss = [](const Tensors& p, const Tensors&, std::span<const Tensor> batch) {
    Tensor h = call_by_name("aten::mul.Tensor", call_by_name("aten::relu", linear(batch[0], p[0], p[1])), p[4]);
    h = call_by_name("aten::add.Tensor", h, call_by_name("aten::add.Tensor", p[6], p[7]));
    return cross_entropy(linear(h, p[2], p[3]), batch[1]);
  };
  expect_planned(with(loss, parameters));
}

TEST(PlannedStep, WritesInPlaceIntoWholesAndParts) {
  const auto loss = [](const Tensors& p, const Tensors& b, std::span<const Tensor> batch) {
    Tensor h = linear(batch[0], p[0], p[1]);
    const Tensor part = call_by_name("aten::slice.Tensor", h, 1, 2, 6, 1);
    call_by_name("aten::mul_.Scalar", part, 3.0);
    h = call_by_name("aten::mul.Scalar", h, 2.0);
    call_by_name("aten::relu_", h);
    {
      const NoGradGuard no_grad;
      call_by_name("aten::mul_.Scalar", b[0], 0.9);
      call_by_name("aten::add_.Tensor", call_by_name("aten::select.int", b[0], 0, 1), call_by_name("aten::mean", h),
                   0.5);
      call_by_name("aten::copy_", b[1], call_by_name("aten::mean.dim", h, Dims{0}));
    }
    return cross_entropy(linear(h, p[2], p[3]), batch[1]);
  };
  expect_planned(with(loss, mlp_parameters, [] { return Tensors{random({4}, 1), random({16}, 2)}; }));
}

// The written value has another dtype, size or layout than its target.
TEST(PlannedStep, WritesOfOtherTypesSizesAndLayouts) {
  const auto loss = [](const Tensors& p, const Tensors& b, std::span<const Tensor> batch) {
    const Tensor h = linear(batch[0], p[0], p[1]);
    const Tensor painted = call_by_name("aten::mul.Scalar", batch[0], 2.0);
    call_by_name("aten::zero_", call_by_name("aten::slice.Tensor", painted, 1, 0, 2, 1));
    call_by_name("aten::fill_.Scalar", call_by_name("aten::slice.Tensor", painted, 1, 2, 3, 1), 0.25);
    {
      const NoGradGuard no_grad;
      const Tensor means = call_by_name("aten::mean.dim", h, Dims{0});
      call_by_name("aten::copy_", b[0],
                   call_by_name("aten::to.dtype", means, static_cast<int64_t>(DType::kFloat64), false, false, Value()));
      call_by_name("aten::copy_", b[1], call_by_name("aten::mean", h));
      const Tensor square = call_by_name("aten::mm", call_by_name("aten::t", batch[0]), batch[0]);
      call_by_name("aten::copy_", call_by_name("aten::t", b[2]), square);
      call_by_name("aten::copy_", b[3], call_by_name("aten::t", batch[0]));
      call_by_name("aten::copy_", b[4],
                   call_by_name("aten::mul.Scalar", call_by_name("aten::view", batch[0], Dims{2, 3, 2, 4}), 0.5));
    }
    return call_by_name("aten::add.Tensor", cross_entropy(linear(h, p[2], p[3]), batch[1]), mean(painted));
  };
  expect_planned(with(loss, mlp_parameters, [] {
    return Tensors{random({16}, 1), random({4}, 2), random({6, 6}, 3), random({6, 8}, 4),
                   call_by_name("aten::contiguous", random({2, 3, 2, 4}, 5), 2)};
  }));
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
    const Tensor h = call_by_name("aten::gelu", linear(in[0], p[0], p[1]));
    return cross_entropy(call_by_name("aten::to.dtype", linear(h, p[2], p[3]), DType::kFloat32), in[1]);
  };
  const Case of = with(
      loss, parameters, [] { return Tensors{}; }, batch);
  expect_same(train(of, true), train(of, false));
}

// --- programs at random

Tensor step_of(std::mt19937& engine, const Tensors& p, Tensors& values) {
  const auto pick = [&] { return values[engine() % values.size()]; };
  static const char* const kUnary[] = {"aten::relu", "aten::tanh", "aten::sigmoid", "aten::gelu",
                                       "aten::silu", "aten::exp",  "aten::neg",     "aten::abs"};
  static const char* const kBinary[] = {"aten::mul.Tensor", "aten::add.Tensor", "aten::sub.Tensor", "aten::maximum"};
  switch (engine() % 9) {
    case 0:
    case 1: return call_by_name(kUnary[engine() % std::size(kUnary)], call_by_name("aten::clamp", pick(), -3, 3));
    case 2:
    case 3: return call_by_name(kBinary[engine() % std::size(kBinary)], pick(), pick());
    case 4: return linear(pick(), p[engine() % 3], p[3]);
    case 5: return call_by_name("aten::layer_norm", pick(), Dims{6}, p[3], p[4]);
    case 6: return call_by_name("aten::softmax.int", pick(), static_cast<int64_t>(engine() % 2));
    case 7: {
      const Tensor a = call_by_name("aten::slice.Tensor", pick(), 1, 0, 3, 1),
                   b = call_by_name("aten::slice.Tensor", pick(), 1, 3, 6, 1);
      return call_by_name("aten::cat", Tensors{b, a}, 1);
    }
    default: {
      const Tensor x = call_by_name("aten::mul.Scalar", pick(), 0.5);
      return call_by_name("aten::add_.Tensor", x,
                          call_by_name("aten::mean.dim", pick(), Dims{static_cast<int64_t>(engine() % 2)}, true));
    }
  }
}

TEST(PlannedStep, ProgramsAtRandom) {
  uint64_t planned = 0;
  const char* const wanted = std::getenv("TENSORD_RANDOM_STEPS");  // the number of programs, for longer runs
  const unsigned count = wanted ? static_cast<unsigned>(std::atoi(wanted)) : 60;
  for (unsigned seed = 0; seed < count; ++seed) {
    const Case of = with(
        [seed](const Tensors& p, const Tensors&, std::span<const Tensor> batch) {
          std::mt19937 engine(seed);
          Tensors values{batch[0], call_by_name("aten::mul.Tensor", batch[0], p[3])};
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
}  // namespace tensord::jit::planned_step_test
