// gradcheck passes for correct gradients, and reports where gradients are wrong.
#include "core/autograd/gradcheck.h"

#include "core/autograd/function.h"
#include "tests/autograd/support.h"

namespace tensord::autograd::gradcheck_test {
namespace {

struct Cube : Function<Cube> {
  static Tensor forward(FunctionContext& context, const Tensor& x, double factor) {
    context.save_for_backward({x});
    context.data["factor"] = factor;
    return mul(mul(x, x), x);
  }
  // Correct if the factor is 3.
  static std::vector<Tensor> backward(FunctionContext& context, std::vector<Tensor> grads) {
    const Tensor x = context.saved().at(0);
    return {mul(grads[0], scale(mul(x, x), context.data["factor"].to_float())), {}};
  }
};

TEST(Gradcheck, RightGradientsPass) {
  const std::vector<Tensor> inputs = {leaf({0.3, -1.2, 2}), leaf({1.5, 0.7, -0.4}), constant({1, 2, 3})};
  const TensorFunction function = [](const std::vector<Tensor>& x) {
    const Tensor y = mul(ops::call_by_name("aten::sigmoid", x[0]), add(x[1], x[2]));
    return std::vector<Tensor>{y, sum(mul(y, x[1])), ops::call_by_name("aten::argsort", x[0])};
  };
  gradcheck(function, inputs);
  gradgradcheck(function, inputs);
  EXPECT_EQ(numbers(inputs[0]), (Numbers{0.3, -1.2, 2}));  // restored
  gradcheck([](const std::vector<Tensor>& x) { return std::vector{Cube::apply(x[0], 3.0)}; }, {inputs[0]});
  gradgradcheck([](const std::vector<Tensor>& x) { return std::vector{Cube::apply(x[0], 3.0)}; }, {inputs[0]});
}

TEST(Gradcheck, WrongGradientsAreShown) {
  const TensorFunction wrong = [](const std::vector<Tensor>& x) { return std::vector{Cube::apply(x[1], 2.5)}; };
  const std::string text = error_of([&] { gradcheck(wrong, {constant({1}), leaf({2, 3})}); });
  EXPECT_THAT(text, HasSubstr("Jacobian mismatch for output 0 with respect to input 1, first at input element 0 and "
                              "output element 0: numerical 12"));
  EXPECT_THAT(text, HasSubstr("analytical 10"));
}

// A large Jacobian is shown by its first eight rows and columns.
TEST(Gradcheck, JacobiansAreShownInPart) {
  const auto shown = [](int64_t inputs, int64_t outputs) {
    const Tensor x = leaf(Numbers(static_cast<size_t>(inputs), 1));
    const TensorFunction wrong = [&](const std::vector<Tensor>& in) {
      const Tensor cubes = Cube::apply(in[0], 2.5), flat = ops::call_by_name("aten::sum", cubes);
      return std::vector{ops::call_by_name("aten::expand", flat, Dims{outputs})};
    };
    const std::string text = error_of([&] { gradcheck(wrong, {x}); });
    const size_t from = text.find("\nanalytical:");
    return text.substr(std::min(from, text.size()));
  };
  const auto rows = [](int count, const std::string& row) {
    std::string text = "\nanalytical:";
    for (int i = 0; i < count; ++i) text += "\n  " + row;
    return text;
  };
  EXPECT_EQ(shown(2, 3), rows(2, "2.5 2.5 2.5 "));
  const std::string eight = "2.5 2.5 2.5 2.5 2.5 2.5 2.5 2.5 ";
  EXPECT_EQ(shown(8, 8), rows(8, eight));
  EXPECT_EQ(shown(9, 9), rows(8, eight + "…") + "\n  …");
}

TEST(Gradcheck, DifferencesUpToTheTolerancePass) {
  struct Doubles : Function<Doubles> {
    static Tensor forward(FunctionContext& context, const Tensor& x, double slope) {
      context.data["slope"] = slope;
      return scale(x, 2);
    }
    static std::vector<Tensor> backward(FunctionContext& context, std::vector<Tensor> grads) {
      return {scale(grads[0], context.data["slope"].to_float()), {}};
    }
  };
  // Every number is exact in binary.
  const auto check_slope = [](double slope, double atol, double rtol) {
    const GradcheckOptions options{.eps = 0x1p-10, .atol = atol, .rtol = rtol};
    gradcheck([&](const std::vector<Tensor>& x) { return std::vector{Doubles::apply(x[0], slope)}; }, {leaf({1, 2})},
              options);
  };
  check_slope(2, 0, 0);
  check_slope(2.5, 0.5, 0);
  check_slope(2.5, 0, 0.25);
  EXPECT_THAT(error_of([&] { check_slope(2.5, 0.25, 0); }), HasSubstr("numerical 2, analytical 2.5"));
  EXPECT_THAT(error_of([&] { check_slope(2.5, 0, 0.125); }), HasSubstr("numerical 2, analytical 2.5"));
}

TEST(Gradcheck, WrongSecondGradientsAreShown) {
  // The first derivative is correct, but not recorded as a function of x.
  struct Cut : Function<Cut> {
    static Tensor forward(FunctionContext& context, const Tensor& x) {
      context.save_for_backward({x});
      return mul(x, x);
    }
    static std::vector<Tensor> backward(FunctionContext& context, std::vector<Tensor> grads) {
      return {mul(grads[0], scale(detach(context.saved()[0]), 2))};
    }
  };
  const TensorFunction function = [](const std::vector<Tensor>& x) { return std::vector{Cut::apply(x[0])}; };
  gradcheck(function, {leaf({2, 3})});
  EXPECT_THAT(error_of([&] { gradgradcheck(function, {leaf({2, 3})}); }), HasSubstr("Jacobian mismatch"));
}

// Two results of value 0; the gradient is `alone` if only one of them has a gradient.
struct Uneven : Function<Uneven> {
  static std::vector<Tensor> forward(FunctionContext& context, const Tensor& x) {
    context.set_materialize_grads(false);
    return {scale(x, 0), scale(x, 0)};
  }
  static std::vector<Tensor> backward(FunctionContext&, std::vector<Tensor> grads) {
    const bool is_alone = !grads[0].defined() || !grads[1].defined();
    const Tensor like = grads[0].defined() ? grads[0] : grads[1];
    return {constant(Numbers(static_cast<size_t>(like.numel()), is_alone ? alone : 0), like.sizes())};
  }
  static inline double alone = 0;
};

TEST(Gradcheck, UndefinedGradientsMayDifferALittle) {
  const TensorFunction function = [](const std::vector<Tensor>& x) { return Uneven::apply(x[0]); };
  const auto with = [&](double alone) {
    Uneven::alone = alone;
    return error_of([&] { gradcheck(function, {leaf({0.5})}); });
  };
  EXPECT_EQ(with(0), "no error");
  EXPECT_EQ(with(1e-9), "no error");
  EXPECT_THAT(with(1.1e-9), HasSubstr("Expected backward function to handle undefined output grads"));
}

TEST(Gradcheck, UndefinedGradientsOfWhatIsNoNumberOrNotUsed) {
  const TensorFunction function = [](const std::vector<Tensor>& x) {
    return std::vector{ops::call_by_name("aten::sqrt", x[0]), scale(x[0], 2)};
  };
  gradcheck(function, {leaf({-1})});
  gradcheck(function, {leaf({4}), leaf({1})});
}

TEST(Gradcheck, ANumberForNoneIsWrong) {
  struct Root : Function<Root> {
    static Tensor forward(FunctionContext&, const Tensor& x) { return ops::call_by_name("aten::sqrt", x); }
    static std::vector<Tensor> backward(FunctionContext&, std::vector<Tensor> grads) { return {grads[0]}; }
  };
  const TensorFunction function = [](const std::vector<Tensor>& x) { return std::vector{Root::apply(x[0])}; };
  EXPECT_THAT(error_of([&] { gradcheck(function, {leaf({-1})}); }), HasSubstr("Jacobian mismatch"));
}

TEST(Gradcheck, GradientsOfAnotherDtypeAreRefused) {
  const Tensor x = leaf({1, 2});
  register_hook(x, [](const Tensor& gradient) { return gradient.to(DType::kFloat32); });
  const TensorFunction function = [](const std::vector<Tensor>& x) { return std::vector{scale(x[0], 2)}; };
  EXPECT_THAT(error_of([&] { gradcheck(function, {x}); }),
              HasSubstr("gradcheck: the gradient of float64[2] is float32[2]"));
}

struct Listens : Function<Listens> {
  static Tensor forward(FunctionContext&, const Tensor& x) { return scale(x, 1); }
  static std::vector<Tensor> backward(FunctionContext&, std::vector<Tensor> grads) {
    heard.push_back(numbers(grads[0]));
    return grads;
  }
  static inline std::vector<Numbers> heard;
};

TEST(Gradcheck, SecondGradientsAreTakenAtTheGivenOnes) {
  const TensorFunction function = [](const std::vector<Tensor>& x) {
    return std::vector{mul(x[0], x[0]), Listens::apply(mul(x[0], x[0]))};
  };
  const auto first_heard = [&](const std::vector<Tensor>& grad_outputs) {
    Listens::heard.clear();
    gradgradcheck(function, {leaf({2, 3})}, grad_outputs);
    return Listens::heard.at(0);
  };
  EXPECT_EQ(first_heard({Tensor(), constant({7, 8})}), (Numbers{7, 8}));
  const Numbers made_up = first_heard({constant({7, 8}), Tensor()});
  EXPECT_NE(made_up, (Numbers{7, 8}));
  EXPECT_EQ(first_heard({constant({7, 8})}), made_up);
}

TEST(Gradcheck, StridedInputsAndViews) {
  const Tensor x = constant({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor transposed = x.as_view({3, 2}, {1, 3}, 0);
  set_requires_grad(transposed);
  const TensorFunction function = [](const std::vector<Tensor>& inputs) {
    const Tensor y = scale(inputs[0], 2);
    ops::call_by_name("aten::mul_.Tensor", select(y, 1), select(inputs[0], 2));
    return std::vector{mul(y, y)};
  };
  gradcheck(function, {transposed});
  gradgradcheck(function, {transposed});
}

TEST(Gradcheck, RefusesWhatItCannotCheck) {
  const TensorFunction same = [](const std::vector<Tensor>& x) { return std::vector{scale(x[0], 1)}; };
  EXPECT_THAT(error_of([&] { gradcheck(same, {constant({1})}); }),
              HasSubstr("gradcheck expects at least one input tensor to require gradient"));
  EXPECT_THAT(error_of([&] { gradgradcheck(same, {constant({1})}); }),
              HasSubstr("gradcheck expects at least one input tensor to require gradient"));
  EXPECT_THAT(error_of([&] { gradcheck(same, {leaf({1}, {1}, DType::kFloat32)}); }),
              HasSubstr("input 0 must be float64, got float32"));
  for (const int64_t size : {2, 3}) {
    const Tensor wide = constant({1}).as_view({size}, {0}, 0);
    set_requires_grad(wide);
    EXPECT_THAT(error_of([&] { gradcheck(same, {wide}); }), HasSubstr("share memory")) << size;
  }
  const Tensor single = constant({1}).as_view({1}, {0}, 0);
  set_requires_grad(single);
  gradcheck(same, {single});
}

}  // namespace
}  // namespace tensord::autograd::gradcheck_test
