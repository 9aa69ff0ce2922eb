// In-place writes and views: whose graph changes, and which writes are refused.
#include <optional>

#include "core/autograd/view.h"
#include "core/ops/registry.h"
#include "tests/autograd/support.h"

namespace tensord::autograd::inplace_test {
namespace {

TEST(InPlace, RewritesTheHistoryOfTheTensor) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = scale(x, 2);
  const Tensor same = scale_in_place(y, 3);
  EXPECT_TRUE(same.is_same(y));
  EXPECT_EQ(name_of(grad_fn(y)), "MulBackward1");
  backward(sum(y));
  EXPECT_EQ(numbers(grad(x)), (Numbers{6, 6, 6}));
}

TEST(InPlace, MakesAConstantDependOnWhatIsAdded) {
  const Tensor x = leaf({1, 2});
  const Tensor total = constant({0, 0});
  add_in_place(total, mul(x, x));
  add_in_place(total, x);
  EXPECT_TRUE(requires_grad(total));
  EXPECT_FALSE(is_leaf(total));
  backward(sum(total));
  EXPECT_EQ(numbers(grad(x)), (Numbers{3, 5}));
}

TEST(InPlace, KeepsWhatItOverwritesWhenTheGradientReadsIt) {
  const Tensor x = leaf({2, 3}), w = leaf({5, 7});
  const Tensor y = scale(x, 1);
  ops::call_by_name("aten::mul_.Tensor", y, w);
  backward(sum(y));
  EXPECT_EQ(numbers(grad(x)), (Numbers{5, 7}));
  EXPECT_EQ(numbers(grad(w)), (Numbers{2, 3}));
}

// Ones for every argument of an operator; none if it takes other types.
std::optional<std::vector<ops::Value>> plain_arguments(const ops::Schema& schema, const Tensor& first) {
  std::vector<ops::Value> out;
  for (const ops::Argument& argument : schema.arguments) {
    if (argument.name == "out") continue;
    if (out.empty() && argument.type->kind() == ops::TypeKind::kTensor) {
      out.emplace_back(first);
    } else if (argument.type->kind() == ops::TypeKind::kTensor) {
      out.emplace_back(constant({1, 1, 1, 1}, {2, 2}));
    } else if (argument.default_value) {
      out.push_back(*argument.default_value);
    } else if (argument.type->kind() == ops::TypeKind::kNumber || argument.type->kind() == ops::TypeKind::kFloat) {
      out.emplace_back(1.0);
    } else if (argument.type->kind() == ops::TypeKind::kInt) {
      out.emplace_back(1);
    } else {
      return std::nullopt;
    }
  }
  return out;
}

bool is_in_place(const ops::Op& op) { return op.base && op.base->schema.name != op.schema.name; }
bool is_out(const ops::Op& op) { return op.base && op.base->schema.name == op.schema.name; }

// 1 if the operator ran with the written tensor and bumped its version; 0 if it takes other arguments.
int counts_its_write(const ops::Op& op) {
  const Tensor target = constant({1, 1, 1, 1}, {2, 2}), input = constant({1, 1, 1, 1}, {2, 2});
  auto arguments = plain_arguments(op.schema, is_out(op) ? input : target);
  if (!arguments) return 0;
  if (is_out(op)) arguments->emplace_back(target);
  const uint32_t before = target.storage()->version();
  const auto storage = target.storage();
  try {
    ops::run(op, *arguments);
  } catch (const Error&) {
    return 0;
  }
  EXPECT_NE(target.storage() == storage ? target.storage()->version() : before + 1, before) << op.schema.full_name();
  return 1;
}

TEST(InPlace, EveryDerivedFormCountsItsWrite) {
  int in_place = 0, out = 0;
  for (const ops::Op* op : ops::all_ops()) {
    if (is_in_place(*op)) in_place += counts_its_write(*op);
    if (is_out(*op)) out += counts_its_write(*op);
  }
  EXPECT_GT(in_place, 60);
  EXPECT_GT(out, 60);
}

TEST(InPlace, EveryDerivedFormRefusesMemoryThatSeveralElementsShare) {
  int refused = 0;
  for (const ops::Op* op : ops::all_ops()) {
    if (!is_in_place(*op) || counts_its_write(*op) == 0) continue;
    const Tensor shared = ops::call_by_name("aten::expand", constant({1, 1}, {1, 2}), Dims{2, 2}, false);
    EXPECT_THAT(error_of([&] { ops::run(*op, *plain_arguments(op->schema, shared)); }),
                HasSubstr("more than one element of the written-to tensor refers to a single memory location"))
        << op->schema.full_name();
    ++refused;
  }
  EXPECT_GT(refused, 60);
}

TEST(InPlace, AnOutputWrittenAfterItWasSavedIsAnError) {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4});
  const Tensor y = constant({5, 6});
  const Tensor z = mul(w, y);
  {
    const NoGradGuard off;
    ops::call_by_name("aten::exp.out", x, y);
  }
  EXPECT_THAT(error_of([&] { backward(sum(z)); }), HasSubstr("modified by an inplace operation"));
}

// The base of a view may itself start in the middle of its storage.
TEST(InPlace, WritesIntoAViewOfDetachedMemoryThatBeginsLater) {
  const Tensor whole = constant({0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  const Tensor base = ops::call_by_name("aten::detach", slice(whole, 2, 10));
  const Tensor y = leaf({1, 2});
  ops::call_by_name("aten::copy_", slice(base, 1, 3), y);
  EXPECT_EQ(numbers(base), (Numbers{0, 1, 2, 0, 0, 0, 0, 0}));
  const Tensor weights = constant({1, 2, 3, 4, 5, 6, 7, 8});
  backward(sum(mul(base, weights)));
  EXPECT_EQ(numbers(grad(y)), (Numbers{2, 3}));
}

TEST(InPlace, SavedResultIsTheOneAfterTheWrite) {
  const Tensor x = leaf({-1, 2});
  const Tensor y = scale(x, 3);
  ops::call_by_name("aten::relu_", y);
  backward(sum(mul(y, y)));
  EXPECT_EQ(numbers(grad(x)), (Numbers{0, 36}));
}

TEST(InPlace, SecondDerivativeThroughAWrite) {
  const Tensor x = leaf({2}), w = leaf({5});
  const Tensor y = mul(x, x);
  ops::call_by_name("aten::mul_.Tensor", y, w);
  BackwardOptions options;
  options.create_graph = true;
  const Tensor of_w = grad(std::vector{y}, std::vector{w}, {}, options).at(0);
  EXPECT_EQ(numbers(of_w), (Numbers{4}));
  EXPECT_EQ(numbers(grad(std::vector{of_w}, std::vector{x}).at(0)), (Numbers{4}));
}

TEST(InPlace, WrittenAfterItWasSavedIsAnError) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = scale(x, 2), z = ops::call_by_name("aten::sigmoid", y);
  add_in_place(z, constant({1, 1, 1}));
  EXPECT_THAT(
      error_of([&] { backward(sum(z)); }),
      HasSubstr("one of the variables needed for gradient computation has been modified by an inplace operation: "
                "[float64[3]], which is output 0 of SigmoidBackward0, is at version 1; expected version 0 "
                "instead. Hint: enable anomaly detection"));
  const Tensor a = scale(x, 2), b = mul(a, x);
  add_in_place(slice(a, 0, 1), constant({1}));
  EXPECT_THAT(error_of([&] { backward(sum(b)); }), HasSubstr("is at version 1; expected version 0 instead"));
}

TEST(InPlace, WrittenWithItselfIsAnError) {
  const Tensor y = scale(leaf({1, 2}), 1);
  ops::call_by_name("aten::mul_.Tensor", y, y);
  EXPECT_THAT(error_of([&] { backward(sum(y)); }), HasSubstr("is at version 1; expected version 0 instead"));
}

TEST(InPlace, WrittenWithItselfLeavesNoCycle) {
  NodePtr first, second;
  {
    const Tensor y = scale(leaf({1, 2}), 1);
    ops::call_by_name("aten::mul_.Tensor", y, y);
    first = grad_fn(y);
    const Tensor z = scale(leaf({1, 2}), 1);
    ops::call_by_name("aten::mul_.Tensor", slice(z, 0, 1), slice(z, 1, 2));
    second = grad_fn(z);
  }
  EXPECT_EQ(first->use_count(), 1u);
  EXPECT_EQ(second->use_count(), 1u);
}

TEST(InPlace, WrittenWhenTheGradientDoesNotReadItIsFine) {
  const Tensor x = leaf({1, 2});
  const Tensor y = scale(x, 2), z = add(y, x);
  scale_in_place(y, 0);
  backward(sum(z));
  EXPECT_EQ(numbers(grad(x)), (Numbers{3, 3}));
}

TEST(InPlace, LeavesAreRefused) {
  const Tensor x = leaf({1, 2, 3});
  EXPECT_THAT(error_of([&] { scale_in_place(x, 2); }),
              HasSubstr("a leaf Variable that requires grad is being used in an in-place operation."));
  EXPECT_THAT(error_of([&] { scale_in_place(select(x, 0), 2); }),
              HasSubstr("a view of a leaf Variable that requires grad is being used in an in-place operation."));
  EXPECT_EQ(numbers(x), (Numbers{1, 2, 3}));
  const NoGradGuard guard;
  scale_in_place(x, 2);
  scale_in_place(select(x, 0), 2);
  EXPECT_EQ(numbers(x), (Numbers{4, 4, 6}));
  EXPECT_TRUE(is_leaf(x));
}

TEST(InPlace, OutFormsAreRefused) {
  const Tensor x = leaf({1, 2}), out = constant({0, 0});
  const auto run = [&] { ops::call_by_name("aten::mul.out", x, x, out); };
  EXPECT_THAT(error_of(run), ::testing::StartsWith("mul(): functions with out=... arguments don't support automatic "
                                                   "differentiation, but one of the arguments requires grad."));
  const NoGradGuard guard;
  run();
  EXPECT_EQ(numbers(out), (Numbers{1, 4}));
}

TEST(Views, GradientsGoThroughThem) {
  const Tensor x = leaf({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor row = select(x, 1), column = ops::call_by_name("aten::t", x);
  EXPECT_TRUE(is_view(row));
  EXPECT_TRUE(base_of(row).is_same(x));
  EXPECT_TRUE(base_of(select(column, 0)).is_same(x));
  EXPECT_EQ(name_of(grad_fn(row)), "SelectBackward0");
  backward(sum(mul(row, select(ops::call_by_name("aten::t", column), 0))));
  EXPECT_EQ(numbers(grad(x)), (Numbers{4, 5, 6, 1, 2, 3}));
}

TEST(Views, WritingAViewChangesItsBase) {
  const Tensor x = leaf({1, 2, 3, 4});
  const Tensor y = scale(x, 2), part = slice(y, 1, 3);
  scale_in_place(part, 5);
  EXPECT_EQ(name_of(grad_fn(y)), "CopySlices");
  EXPECT_EQ(name_of(grad_fn(part)), "AsStridedBackward0");
  backward(sum(y), {}, {});
  EXPECT_EQ(numbers(grad(x)), (Numbers{2, 10, 10, 2}));
}

TEST(Views, WritingAViewChangesOtherViews) {
  const Tensor x = leaf({1, 2, 3, 4});
  const Tensor y = scale(x, 2), left = slice(y, 0, 2), middle = slice(y, 1, 3);
  scale_in_place(middle, 5);
  EXPECT_EQ(name_of(grad_fn(left)), "AsStridedBackward0");
  backward(sum(left));
  EXPECT_EQ(numbers(grad(x)), (Numbers{2, 10, 0, 0}));
}

TEST(Views, WritingTheBaseChangesItsViews) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = scale(x, 2), part = select(y, 1);
  ops::call_by_name("aten::mul_.Tensor", y, x);
  backward(part);
  EXPECT_EQ(numbers(grad(x)), (Numbers{0, 8, 0}));
}

TEST(Views, WritingAViewOfAConstantMakesItDepend) {
  const Tensor x = leaf({3, 4});
  const Tensor whole = constant({0, 0, 0}), first = slice(whole, 0, 2), last = slice(whole, 1, 3);
  ops::call_by_name("aten::copy_", first, x);
  EXPECT_TRUE(requires_grad(whole));
  EXPECT_TRUE(requires_grad(last));
  EXPECT_EQ(name_of(grad_fn(whole)), "CopySlices");
  backward(sum(mul(last, last)));
  EXPECT_EQ(numbers(grad(x)), (Numbers{0, 8}));
}

TEST(Views, WritesThroughTransposedAndNestedViews) {
  const Tensor x = leaf({1, 2, 3, 4, 5, 6}, {2, 3}), w = leaf({10, 20});
  const Tensor y = scale(x, 1), column = select(ops::call_by_name("aten::t", y), 2);
  ops::call_by_name("aten::mul_.Tensor", column, w);
  EXPECT_EQ(numbers(y), (Numbers{1, 2, 30, 4, 5, 120}));
  backward(sum(mul(y, y)));
  EXPECT_EQ(numbers(grad(x)), (Numbers{2, 4, 600, 8, 10, 4800}));
  EXPECT_EQ(numbers(grad(w)), (Numbers{2 * 30 * 3, 2 * 120 * 6}));
}

TEST(Views, SecondDerivativeThroughAWrittenView) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = mul(x, x), part = slice(y, 1, 3);
  ops::call_by_name("aten::mul_.Tensor", part, slice(x, 1, 3));
  BackwardOptions options;
  options.create_graph = true;
  const Tensor first = grad(std::vector{sum(y)}, std::vector{x}, {}, options).at(0);
  EXPECT_EQ(numbers(first), (Numbers{2, 12, 27}));
  EXPECT_EQ(numbers(grad(std::vector{sum(first)}, std::vector{x}).at(0)), (Numbers{2, 12, 18}));
}

TEST(Views, SecondDerivativeThroughASavedResultOfAWrittenView) {
  const Tensor x = leaf({0.5, 0.25});
  const Tensor y = scale(x, 1), part = select(y, 0);
  ops::call_by_name("aten::sigmoid_", part);
  const double s = numbers(part)[0];
  BackwardOptions options;
  options.create_graph = true;
  const Tensor first = grad(std::vector{sum(y)}, std::vector{x}, {}, options).at(0);
  EXPECT_NEAR(numbers(first)[0], s * (1 - s), 1e-12);
  EXPECT_NEAR(numbers(grad(std::vector{sum(first)}, std::vector{x}).at(0))[0], s * (1 - s) * (1 - 2 * s), 1e-12);
}

TEST(Views, OfSeveralResultsMayNotBeWritten) {
  const Tensor x = leaf({1, 2});
  const Tensor y = scale(x, 1);
  const Tensor first = ops::call_by_name<std::vector<Tensor>>("aten::unbind.int", y, 0).at(0);
  EXPECT_THAT(error_of([&] { scale_in_place(first, 2); }),
              HasSubstr("Output 0 of UnbindBackward0 is a view and is being modified inplace. This view is the output "
                        "of a function that returns multiple views."));
  scale_in_place(y, 2);
  EXPECT_THAT(error_of([&] { sum(first); }), HasSubstr("Output 0 of UnbindBackward0 is a view and its base or another "
                                                       "view of its base has been modified inplace."));
}

TEST(Views, OfNoGradModeMayNotBeWrittenOutsideOfIt) {
  const Tensor x = leaf({1, 2});
  const Tensor y = scale(x, 1);
  Tensor part;
  {
    const NoGradGuard guard;
    part = select(y, 0);
  }
  EXPECT_EQ(name_of(grad_fn(part)), "none");
  EXPECT_THAT(error_of([&] { scale_in_place(part, 2); }),
              HasSubstr("A view was created in no_grad mode and is being modified inplace with grad mode enabled."));
  const NoGradGuard guard;
  scale_in_place(part, 2);
}

TEST(Views, OfViewsOfNoGradModeMayNotEither) {
  const Tensor y = scale(leaf({1, 2}), 1);
  const Tensor part = [&] {
    const NoGradGuard guard;
    return slice(y, 0, 1);
  }();
  const Tensor inner = slice(part, 0, 1);
  EXPECT_THAT(error_of([&] { scale_in_place(inner, 2); }),
              HasSubstr("Output 0 of SliceBackward0 is a view of a view which was created in no_grad mode and is being "
                        "modified inplace with grad mode enabled."));
}

TEST(Views, OfTensorsWithoutMemory) {
  const Tensor x = Tensor::meta(Dims{2, 3}, DType::kFloat64);
  set_requires_grad(x);
  const Tensor row = select(x, 1);
  EXPECT_TRUE(is_view(row));
  EXPECT_TRUE(base_of(row).is_same(x));
}

TEST(Views, DetachedTensorsAreNone) {
  const Tensor x = leaf({1, 2});
  const Tensor y = scale(x, 1), constant_y = detach(y), other = ops::call_by_name("aten::detach", y);
  EXPECT_FALSE(requires_grad(constant_y));
  EXPECT_FALSE(requires_grad(other));
  EXPECT_FALSE(is_view(other));
  EXPECT_EQ(constant_y.raw_data(), y.raw_data());
  const Tensor z = mul(y, y);
  scale_in_place(constant_y, 2);  // visible to y: one storage, one version
  EXPECT_THAT(error_of([&] { backward(sum(z)); }), HasSubstr("is at version 1; expected version 0"));
}

TEST(Inference, TensorsTakeNoPart) {
  Tensor made;
  const Tensor x = leaf({1, 2});
  {
    const InferenceModeGuard guard;
    made = mul(x, x);
    EXPECT_FALSE(requires_grad(made));
    scale_in_place(made, 2);
  }
  EXPECT_THAT(error_of([&] { scale_in_place(made, 2); }),
              HasSubstr("Inplace update to inference tensor outside InferenceMode is not allowed."));
  EXPECT_THAT(error_of([&] { scale_in_place(select(made, 0), 2); }),
              HasSubstr("Inplace update to inference tensor outside InferenceMode is not allowed."));
  EXPECT_THAT(error_of([&] { mul(x, made); }), HasSubstr("Inference tensors cannot be saved for backward."));
  EXPECT_THAT(error_of([&] { set_requires_grad(made); }),
              HasSubstr("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."));
  const Tensor y = add(x, made);  // saves nothing of it
  backward(sum(y));
  EXPECT_EQ(numbers(grad(x)), (Numbers{1, 1}));
}

TEST(Modes, NoGradAndEnableGrad) {
  const Tensor x = leaf({1, 2});
  {
    const NoGradGuard off;
    EXPECT_FALSE(requires_grad(mul(x, x)));
    {
      const EnableGradGuard on;
      EXPECT_TRUE(requires_grad(mul(x, x)));
    }
    EXPECT_FALSE(requires_grad(mul(x, x)));
  }
  EXPECT_TRUE(requires_grad(mul(x, x)));
}

// An argument that is both read and written keeps its shape, as in PyTorch.
TEST(InPlace, AnOutputThatIsReadIsNotResized) {
  const Tensor kept = constant({2}, {1, 1}), x = constant({3, 4}, {2, 1});
  EXPECT_THAT(error_of([&] { ops::call_by_name("aten::add.out", kept, x, ops::Scalar(1), kept); }),
              HasSubstr("output with shape [1, 1] doesn't match the broadcast shape [2, 1]"));
  ops::call_by_name("aten::add.out", x, kept, ops::Scalar(1), x);
  EXPECT_EQ(numbers(x), (Numbers{5, 6}));
}

}  // namespace
}  // namespace tensord::autograd::inplace_test
