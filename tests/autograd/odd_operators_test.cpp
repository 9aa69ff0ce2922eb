// Operators of forms that few have: results that are none or no tensors, an argument given back, writes that give
// nothing; and calls that the registry or the memory does not know.
#include "core/autograd/hooks/saved_hooks.h"
#include "core/autograd/meta.h"
#include "core/autograd/storage_changes.h"
#include "core/ops/registry.h"
#include "tests/autograd/support.h"

namespace tensord::autograd::odd_operators_test {
namespace {

using ops::GradArgs;
using ops::OpBuilder;
using ops::Value;
using Values = std::vector<Value>;

Tensor exp(const Tensor& x) { return ops::call_by_name("aten::exp", x); }
BackwardOptions creating() {
  BackwardOptions options;
  options.create_graph = true;
  return options;
}

// Nothing, a number, numbers and e to the power of x: gradients are counted by what may be a tensor.
const OpBuilder mixed =
    OpBuilder("test::mixed(Tensor self) -> (Tensor?, int, int[], Tensor)", __FILE__, __LINE__)
        .impl([](std::span<const Value> v) {
          return ops::detail::Returns{{Value(), 7, ops::make_int_list(Dims{8, 9}), exp(v[0].to_tensor())}};
        })
        .gradient([](const GradArgs& args) {
          return std::vector<Tensor>{mul(args.grad_outputs[1], args.outputs[3].to_tensor())};
        })
        .saves("result3");

TEST(OddOperators, WithResultsThatAreNoTensors) {
  const Tensor x = leaf({0, 0});
  const Values results = ops::run(ops::get_op("test::mixed"), Values{x});
  EXPECT_EQ(results[1].to_int(), 7);
  const Tensor y = results[3].to_tensor();
  EXPECT_EQ(output_nr(y), 1u);
  const Tensor first = grad(std::vector{sum(scale(y, 3))}, std::vector{x}, {}, creating()).at(0);
  EXPECT_EQ(numbers(first), (Numbers{3, 3}));
  EXPECT_EQ(numbers(grad(std::vector{sum(first)}, std::vector{x}).at(0)), (Numbers{3, 3}));
}

TEST(OddOperators, HistoriesAreOfResultsThatAreThere) {
  const Values results = ops::run(ops::get_op("test::mixed"), Values{leaf({0, 0})});
  const NodePtr node = grad_fn(results[3].to_tensor());
  const Tensor other = constant({0, 0});
  EXPECT_THAT(error_of([&] { set_history(other, node, 0); }), HasSubstr("knows no such result"));
  EXPECT_EQ(grad_fn(other), nullptr);
  EXPECT_FALSE(retains_grad(other));
}

// As mixed, and nobody knows its gradient.
const OpBuilder without_gradient =
    OpBuilder("test::without_gradient(Tensor self) -> (Tensor?, Tensor)", __FILE__, __LINE__)
        .impl([](std::span<const Value> v) {
          return ops::detail::Returns{{Value(), exp(v[0].to_tensor())}};
        });

TEST(OddOperators, WithoutAGradientAndWithAResultThatIsNone) {
  const Values results = ops::run(ops::get_op("test::without_gradient"), Values{leaf({0, 0})});
  EXPECT_THAT(error_of([&] { backward(sum(results[1].to_tensor())); }), HasSubstr("is not implemented"));
}

// x, and nothing and e to the power of its halves.
const OpBuilder lists =
    OpBuilder("test::with_list(Tensor self) -> (Tensor, Tensor[])", __FILE__, __LINE__)
        .impl([](std::span<const Value> v) {
          const Tensor x = v[0].to_tensor();
          Values halves{Value(), exp(slice(x, 0, 1)), exp(slice(x, 1, 2))};
          return ops::detail::Returns{{x.clone(), ops::make_list(ops::tensor_type(), std::move(halves))}};
        })
        .gradient([](const GradArgs& args) {
          const auto& halves = args.outputs[1].to_list()->items;
          std::vector<Tensor> parts;
          for (size_t i = 1; i < 3; ++i) {
            const Tensor& gradient = args.grad_outputs[1 + i];
            parts.push_back(gradient.defined() ? mul(gradient, halves[i].to_tensor()) : constant({0}));
          }
          return std::vector{ops::call_by_name("aten::cat", parts, 0)};
        })
        .saves("result1");

TEST(OddOperators, WithAListBehindATensor) {
  const Tensor x = leaf({0, 0});
  const auto halves = [&] {
    const Values results = ops::run(ops::get_op("test::with_list"), Values{x});
    const Values& items = results[1].to_list()->items;
    return std::vector{items.at(1).to_tensor(), items.at(2).to_tensor()};
  };
  const Tensor first = grad(std::vector{scale(halves()[1], 3)}, std::vector{x}, {}, creating()).at(0);
  EXPECT_EQ(numbers(first), (Numbers{0, 3}));
  EXPECT_EQ(numbers(grad(std::vector{sum(first)}, std::vector{x}).at(0)), (Numbers{0, 3}));
  const std::vector<Tensor> written = halves();
  add_in_place(written[1], constant({1}));
  EXPECT_THAT(error_of([&] { backward(written[0]); }),
              HasSubstr("which is output 3 of WithListBackward0, is at version 1"));
}

const OpBuilder given_back = OpBuilder("test::given_back(Tensor self) -> Tensor", __FILE__, __LINE__)
                                 .impl([](const Tensor& x) { return x; })
                                 .gradient([](const GradArgs& args) { return std::vector{args.grad_outputs[0]}; })
                                 .saves("");

TEST(OddOperators, ThatGiveTheirArgumentBack) {
  const Tensor x = leaf({1, 2}), y = ops::call_by_name("test::given_back", x);
  EXPECT_TRUE(y.is_same(x));
  EXPECT_TRUE(is_leaf(x));
  backward(sum(y));
  EXPECT_EQ(numbers(grad(x)), (Numbers{1, 1}));
}

const OpBuilder negate =
    OpBuilder("test::negate_(Tensor(a!) self) -> ()", __FILE__, __LINE__).impl([](const Tensor& x) {
      for (double& value : std::span(x.data<double>(), static_cast<size_t>(x.numel()))) {
        value = -value;
      }
    });

TEST(OddOperators, ThatWriteAndGiveNothing) {
  const ops::Op& op = ops::get_op("test::negate_");
  const Tensor x = leaf({1, 2});
  EXPECT_THAT(error_of([&] { ops::run(op, Values{x}); }), HasSubstr("a leaf Variable that requires grad"));
  EXPECT_EQ(numbers(x), (Numbers{1, 2}));
}

// Its schema says that it gives a view, as PyTorch's reshape does, but it gives new memory, or none.
const OpBuilder fresh = OpBuilder("test::fresh(Tensor(a) self, bool is_meta) -> Tensor(a)", __FILE__, __LINE__)
                            .impl([](const Tensor& x, bool is_meta) {
                              return is_meta ? Tensor::meta(x.sizes(), x.dtype()) : constant({1, 2});
                            })
                            .gradient([](const GradArgs& args) { return std::vector{args.grad_outputs[0]}; })
                            .saves("");

TEST(OddOperators, ThatGiveNoViewAfterAll) {
  const Tensor meta = Tensor::meta(Dims{2}, DType::kFloat64);
  set_requires_grad(meta);
  for (const Tensor& x : {leaf({3, 4}), meta}) {
    for (const bool is_meta : {false, true}) {
      const Tensor y = ops::call_by_name("test::fresh", x, is_meta);
      EXPECT_FALSE(is_view(y)) << is_meta;
      EXPECT_EQ(name_of(grad_fn(y)), "FreshBackward0");
    }
  }
}

// Multiplies by what it makes up, which it writes into the second argument, as rrelu_with_noise_ does.
const OpBuilder noisy = OpBuilder("test::noisy_(Tensor(a!) self, Tensor(b!) noise) -> Tensor(a!)", __FILE__, __LINE__)
                            .impl([](const Tensor& x, const Tensor& noise) {
                              noise.data<double>()[0] = 4;
                              x.data<double>()[0] *= 4;
                              return x;
                            })
                            .gradient([](const GradArgs& args) {
                              return std::vector{mul(args.grad_outputs[0], args.inputs[1].to_tensor()), Tensor()};
                            })
                            .saves("noise");

TEST(OddOperators, ThatWriteWhatTheirGradientReadsToo) {
  const Tensor x = leaf({3}), y = scale(x, 1), noise = constant({0});
  ops::run(ops::get_op("test::noisy_"), Values{y, noise});
  EXPECT_EQ(numbers(y), (Numbers{12}));
  backward(y);
  EXPECT_EQ(numbers(grad(x)), (Numbers{4}));
}

// An operator in a module's code may be replaced by a composite that the registry does not hold.
TEST(OddOperators, ThatTheRegistryDoesNotHold) {
  const Tensor x = leaf({1, 2});
  const ops::Op copy = ops::get_op("aten::mul.Tensor");
  EXPECT_THAT(error_of([&] { ops::run(copy, Values{x, x}); }), HasSubstr("is not in the registry"));
  const auto stand_in = ops::with_function(copy, [](std::span<const Value> v, Values& returns) {
    returns.emplace_back(scale(mul(v[0].to_tensor(), v[1].to_tensor()), 10));
  });
  backward(sum(ops::run(*stand_in, Values{x, x})[0].to_tensor()));
  EXPECT_EQ(numbers(grad(x)), (Numbers{20, 40}));
}

TEST(OddOperators, OnTensorsWithoutMemory) {
  const Tensor x = leaf({1, 2}), nothing = Tensor::meta(Dims{2}, DType::kFloat64);
  int packed = 0;
  const SavedTensorHooksScope scope({[&](const Tensor& tensor) -> std::any { return ++packed, tensor; },
                                     [](const std::any& kept) { return std::any_cast<const Tensor&>(kept); }});
  EXPECT_NE(error_of([&] { mul(x, nothing); }), "no error");
  EXPECT_EQ(packed, 0);  // the gradient reads it, but there is nothing to keep
}

// The shape that is known from the call is not that of a tensor which has other memory since.
TEST(OddOperators, OnTensorsThatWereGivenOtherMemory) {
  const auto with_memory_of = [](const Tensor& other) {
    const Tensor y = scale(leaf({1, 2, 3, 4}, {2, 2}), 1);
    EXPECT_TRUE(shape_of(y).is_same(grad_fn(y)->results()[0]));
    take_memory(y, other);
    const Tensor shape = shape_of(y);
    EXPECT_EQ(shape.sizes(), other.sizes());
    EXPECT_EQ(shape.strides(), other.strides());
    EXPECT_EQ(shape.offset(), other.offset());
  };
  const Tensor memory = constant({1, 2, 3, 4, 5, 6, 7, 8}, {4, 2});
  with_memory_of(memory.as_view({2, 2}, {2, 1}, 0));
  with_memory_of(memory.as_view({1, 2}, {2, 1}, 0));
  with_memory_of(memory.as_view({2, 2}, {1, 2}, 0));
  with_memory_of(memory.as_view({2, 2}, {2, 1}, 3));
}

}  // namespace
}  // namespace tensord::autograd::odd_operators_test
