// Operators on the test device: a CPU kernel that runs late, in memory that the host cannot access.
#include "tests/device/async_kernels.h"

#include "core/ops/generator.h"
#include "tests/autograd/support.h"
#include "tests/device/async_device.h"

namespace tensord::async_kernels_test {
namespace {

using autograd::constant;
using autograd::error_of;
using autograd::Numbers;
using late::kFirst;

[[maybe_unused]] const bool is_installed = (late::install(), late::install_kernels(), true);

OP("test::times(Tensor self, Tensor other) -> Tensor; inplace, out")
    .infer([](const Tensor& x, const Tensor&) {
      return ops::TensorMeta{x.sizes(), x.dtype(), {}, {}};
    })
    .gradient([](const ops::GradArgs& args) {
      return std::vector<Tensor>{ops::call_by_name("test::times", args.grad_outputs[0], args.inputs[1]), Tensor()};
    })
    .saves("other")
    .pointwise();
IMPL("test::times", kCPU, [](const ops::KernelContext&, const Tensor& x, const Tensor& y, Tensor& out) {
  if (y.item_double() < 0) fail(ErrorCode::kInvalidArgument, "a negative factor");
  for (int64_t i = 0; i < x.numel(); ++i) out.data<double>()[i] = x.data<double>()[i] * y.item_double();
});
OP("test::sum(Tensor[] all) -> Tensor").infer([](const std::vector<Tensor>& all) {
  return ops::TensorMeta{all[0].sizes(), all[0].dtype(), {}, {}};
});
IMPL("test::sum", kCPU, [](const ops::KernelContext&, const std::vector<Tensor>& all, Tensor& out) {
  for (int64_t i = 0; i < out.numel(); ++i) {
    out.data<double>()[i] = 0;
    for (const Tensor& x : all) out.data<double>()[i] += x.data<double>()[i];
  }
});
OP("test::draw(Tensor self) -> Tensor")
    .infer([](const Tensor& x) {
      return ops::TensorMeta{x.sizes(), x.dtype(), {}, {}};
    })
    .random();
IMPL("test::draw", kCPU, [](const ops::KernelContext&, const Tensor&, Tensor& out) {
  ops::Generator& generator = ops::current_generator();
  const auto lock = generator.lock();
  for (int64_t i = 0; i < out.numel(); ++i) out.data<double>()[i] = generator.uniform_double();
});

Tensor number(double value) { return constant({value}, Dims{}); }
Numbers numbers(const Tensor& x) { return autograd::numbers(x.to(Device{})); }

TEST(AsyncKernels, RunWhenTheirResultIsWaitedFor) {
  const Tensor x = constant({1, 2, 3}).to(kFirst);
  synchronize(kFirst);
  const size_t before = late::waiting();
  const Tensor y = ops::call_by_name("test::times", x, number(2).to(kFirst));
  const Tensor z = ops::call_by_name("test::sum", std::vector<Tensor>{x, y, y});
  EXPECT_EQ(z.device(), kFirst);
  EXPECT_EQ(late::waiting() - before, 3u);  // a number, and two calls
  EXPECT_EQ(numbers(z), (Numbers{5, 10, 15}));
  EXPECT_EQ(numbers(y), (Numbers{2, 4, 6}));
}

// A host scalar is copied at the call.
TEST(AsyncKernels, TakeNumbersOfTheHostAtTheCall) {
  const Tensor x = constant({1, 2}).to(kFirst), factor = number(3);
  const Tensor y = ops::call_by_name("test::times", x, factor);
  *factor.data<double>() = 100;
  EXPECT_EQ(numbers(y), (Numbers{3, 6}));
}

TEST(AsyncKernels, WriteInPlaceAndIntoOut) {
  const Tensor x = constant({1, 2}).to(kFirst), out = Tensor::empty(Dims{0}, DType::kFloat64, kFirst);
  ops::call_by_name("test::times.out", x, number(3), out);
  EXPECT_EQ(numbers(out), (Numbers{3, 6}));
  ops::call_by_name("test::times_", x, number(2));
  EXPECT_EQ(numbers(x), (Numbers{2, 4}));
  EXPECT_EQ(x.version(), 1u);
}

TEST(AsyncKernels, HaveGradientsOnTheDevice) {
  const Tensor x = constant({1, 2}).to(kFirst);
  autograd::set_requires_grad(x);
  const Tensor y = ops::call_by_name("test::times", ops::call_by_name("test::times", x, number(3)), number(5));
  const std::vector<Tensor> roots{y}, leaves{x}, given{constant({1, 10}).to(kFirst)};
  const Tensor gradient = autograd::grad(roots, leaves, given)[0];
  EXPECT_EQ(gradient.device(), kFirst);
  EXPECT_GT(late::waiting(), 0u);
  EXPECT_EQ(numbers(gradient), (Numbers{15, 150}));
}

TEST(AsyncKernels, FailWhenTheyRunByTheirName) {
  const Tensor x = constant({1}).to(kFirst);
  const Tensor y = ops::call_by_name("test::times", x, number(-1));
  EXPECT_EQ(error_of([&] { synchronize(kFirst); }), "test::times: a negative factor");
  EXPECT_EQ(error_of([&] { synchronize(kFirst); }), "no error");
}

TEST(AsyncKernels, DrawNumbersInTheOrderOfTheCalls) {
  const Tensor host = constant({0, 0}), there = host.to(kFirst);
  Numbers expected, got;
  for (const bool is_late : {false, true}) {
    ops::Generator generator(7);
    Tensor first, second;
    {
      const ops::GeneratorGuard guard(generator);
      first = ops::call_by_name("test::draw", is_late ? there : host);
      second = ops::call_by_name("test::draw", host);
    }
    Numbers& all = is_late ? got : expected;
    for (const Tensor& x : {first, second}) {
      const Numbers part = numbers(x);
      all.insert(all.end(), part.begin(), part.end());
    }
  }
  EXPECT_EQ(got, expected);
}

TEST(AsyncKernels, RefuseTensorsOfSeveralDevices) {
  const Tensor x = constant({1, 2});
  EXPECT_THAT(error_of([&] {
                ops::call_by_name("test::sum", std::vector<Tensor>{x, x.to(kFirst)});
              }),
              ::testing::HasSubstr("Expected all tensors to be on the same device, but found cpu and privateuseone:0"));
}

}  // namespace
}  // namespace tensord::async_kernels_test
