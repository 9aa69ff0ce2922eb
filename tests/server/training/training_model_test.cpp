// Which models a job accepts: arguments, losses and outputs in each variant, and what is refused.
#include "server/training/training_model.h"

#include <gmock/gmock.h>

#include "core/autograd/variable.h"
#include "tests/server/error_of.h"
#include "tests/server/temporary_folder.h"
#include "tests/support/places.h"

namespace tensord::server::training_model_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Inputs = std::map<std::string, std::string>;

Tensor floats(const Dims& shape, std::initializer_list<float> values) {
  Tensor tensor = Tensor::empty(shape, DType::kFloat32);
  std::copy(values.begin(), values.end(), tensor.data<float>());
  return tensor;
}

LossSpec by_method(const std::string& method, const std::string& label = "") {
  LossSpec spec;
  spec.method = method;
  spec.label = label;
  return spec;
}

LossSpec by_name(const std::string& builtin, const std::string& output = "") {
  LossSpec spec;
  spec.builtin = builtin;
  spec.label = "y";
  spec.output = output;
  return spec;
}

class TrainingModelTest : public ::testing::Test {
 protected:
  // An archive with one parameter, `weight` of two elements, and these methods.
  std::string archive(const std::string& methods) const {
    const std::string source = R"(
class Net(Module):
    __parameters__ = ["weight"]
    weight: Tensor
    training: bool
)" + methods;
    jit::LoadOptions options;
    options.for_training = true;
    const auto module = jit::Module::compile(source, {{"weight", floats({2}, {1, 2})}}, options);
    for (const auto& [name, tensor] : module->named_parameters()) autograd::set_requires_grad(tensor);
    std::string path = (folder_.path() / "net.pt").string();
    module->save(path);
    return path;
  }
  TrainingModel model(const std::string& methods, const LossSpec& loss, const Inputs& inputs = {},
                      bool needs_output = false) const {
    return {archive(methods), loss, inputs, needs_output};
  }
  Error refusal(const std::string& methods, const LossSpec& loss, const Inputs& inputs = {}) const {
    const std::string path = archive(methods);
    return error_of([&] { TrainingModel(path, loss, inputs, false); });
  }
  static double loss_of(TrainingModel& model, std::vector<Tensor> batch = {floats({2}, {3, 4})}) {
    return model.loss(batch, {}).item_double();
  }
  std::string loss_error(const std::string& result) const {
    TrainingModel made = model("    def step(self, x: Tensor):\n        return " + result + "\n", by_method("step"));
    return error_of([&] { loss_of(made); }).what();
  }

  const fixtures::TemporaryFolder folder_{"training_model"};
};

TEST_F(TrainingModelTest, TheLossOfAMethodIsATensorOrTheFirstOfATupleOrNamed) {
  for (const char* result : {"torch.sum(torch.mul(x, self.weight))", "(torch.sum(torch.mul(x, self.weight)), x)",
                             R"({"loss": torch.sum(torch.mul(x, self.weight)), "x": x})",
                             R"({"x": x, "loss": torch.sum(torch.mul(x, self.weight))})"}) {
    TrainingModel made =
        model(std::string("    def step(self, x: Tensor):\n        return ") + result + "\n", by_method("step"));
    EXPECT_EQ(loss_of(made), 11) << result;
    EXPECT_THAT(made.arrays(), ElementsAre("x"));
    EXPECT_THAT(made.methods_of_loss(), ElementsAre("step"));
  }
}

TEST_F(TrainingModelTest, LossesThatAreNone) {
  EXPECT_EQ(loss_error(R"({"other": x})"), "loss.method: the dict that 'step' gives has no 'loss'");
  EXPECT_THAT(loss_error("1.5"), HasSubstr("loss.method: 'step' gives a "));
  EXPECT_THAT(loss_error("1.5"), HasSubstr(", not a tensor"));
  EXPECT_THAT(loss_error("()"), HasSubstr("loss.method: 'step' gives a "));
  EXPECT_THAT(loss_error("x"), HasSubstr("must be a single number, but has shape [2]"));
  EXPECT_THAT(loss_error("torch.argmax(x)"), HasSubstr("must be a floating number, but is "));
}

TEST_F(TrainingModelTest, ArgumentsAreTensorsOrHaveDefaults) {
  const std::string methods = R"(
    def step(self, x: Tensor, mask: Optional[Tensor]=None, times: int=3) -> Tensor:
        out = torch.sum(torch.mul(x, self.weight))
        if mask is not None:
            out = torch.mul(out, torch.sum(mask))
        return torch.mul(out, times)

    def counted(self, x: Tensor, times: int) -> Tensor:
        return torch.mul(torch.sum(x), times)

    def chosen(self, x: Tensor, times: Optional[int]) -> Tensor:
        return torch.sum(x)

    def masked(self, x: Tensor, mask: Optional[Tensor]) -> Tensor:
        return torch.sum(x)
)";
  TrainingModel plain = model(methods, by_method("step"));
  EXPECT_THAT(plain.arrays(), ElementsAre("x"));
  EXPECT_EQ(loss_of(plain), 33);
  TrainingModel mapped = model(methods, by_method("step"), {{"x", "pixels"}, {"mask", "m"}});
  EXPECT_THAT(mapped.arrays(), ElementsAre("pixels", "m"));
  EXPECT_EQ(loss_of(mapped, {floats({2}, {3, 4}), floats({1}, {2})}), 66);
  EXPECT_THAT(model(methods, by_method("masked")).arrays(), ElementsAre("x", "mask"));
  for (const char* name : {"counted", "chosen"}) {
    const Error error = refusal(methods, by_method(name));
    EXPECT_EQ(error.code(), ErrorCode::kUnimplemented);
    EXPECT_THAT(error.what(), HasSubstr(concat("argument 'times' of ", name, " has type ")));
  }
  // An argument with a default that the data should supply.
  EXPECT_EQ(refusal(methods, by_method("step"), {{"times", "t"}}).code(), ErrorCode::kUnimplemented);
  EXPECT_THAT(refusal(methods, by_method("step"), {{"other", "o"}}).what(), HasSubstr("has no argument 'other'"));
  EXPECT_THAT(refusal(methods, by_method("none")).what(), HasSubstr("loss.method: the model has no method 'none'"));
  EXPECT_EQ(std::string(refusal(methods, by_name("mse")).what()), "loss.builtin: the model has no method 'forward'");
}

TEST_F(TrainingModelTest, ABatchIsAsItWasAfterAModelThatWrites) {
  TrainingModel made = model(
      "    def step(self, x: Tensor) -> Tensor:\n        x.add_(1.0)\n"
      "        return torch.sum(torch.mul(x, self.weight))\n",
      by_method("step"));
  const Tensor x = floats({2}, {3, 4});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(loss_of(made, {x}), 14);
  EXPECT_EQ(x.data<float>()[0], 3);
}

TEST_F(TrainingModelTest, OutputsByNameOrTheFirst) {
  const auto loss = [&](const std::string& type, const std::string& result, const std::string& output) {
    try {
      TrainingModel made = model("    def forward(self, x: Tensor) -> " + type +
                                     ":\n        z = torch.mul(x, self.weight)\n"
                                     "        return " +
                                     result + "\n",
                                 by_name("l1", output));
      EXPECT_THAT(made.arrays(), ElementsAre("x", "y"));
      EXPECT_THAT(made.methods_of_loss(), ElementsAre("forward"));
      return std::to_string(static_cast<int>(loss_of(made, {floats({2}, {3, 3}), floats({2}, {0, 0})}) * 2));
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(loss("Tensor", "z", ""), "9");
  EXPECT_EQ(loss("Tensor", "z", "OUTPUT__0"), "9");
  EXPECT_EQ(loss("Tensor", "z", "b"), "loss.output: forward gives OUTPUT__0, not 'b'");
  const std::string tuple = "Tuple[str, Tensor, Tensor]";
  EXPECT_EQ(loss(tuple, R"(("text", z, x))", ""), "9");
  EXPECT_EQ(loss(tuple, R"(("text", z, x))", "OUTPUT__2"), "6");
  EXPECT_EQ(loss(tuple, R"(("text", z, x))", "OUTPUT__0"),
            "loss.output: forward gives OUTPUT__0, OUTPUT__1, OUTPUT__2, not 'OUTPUT__0'");
  const std::string dict = R"({"a": z, "b": x})";
  EXPECT_EQ(loss("Dict[str, Tensor]", dict, "b"), "6");
  EXPECT_EQ(loss("Dict[str, Tensor]", dict, ""), "9");
  EXPECT_EQ(loss("Dict[str, Tensor]", dict, "c"), "loss.output: forward gives a, b, not 'c'");
  EXPECT_EQ(loss("Optional[Tensor]", "None", ""), "loss.output: forward gives no tensor, not ''");
}

TEST_F(TrainingModelTest, MetricsOfAModelWithALossOfItsOwnNeedItsOutput) {
  const std::string methods = R"(
    def forward(self, x: Tensor) -> Tensor:
        return torch.mul(x, self.weight)

    def step(self, y: Tensor, x: Tensor) -> Tensor:
        return torch.sum(torch.sub(self.forward(x), y))
)";
  const std::vector<Tensor> batch{floats({2}, {1, 1}), floats({2}, {3, 4})};  // y comes first
  TrainingModel measured = model(methods, by_method("step", "y"), {}, true);
  ASSERT_THAT(measured.arrays(), ElementsAre("y", "x"));
  const TrainingModel::Evaluated all = measured.evaluate(batch, {});
  EXPECT_EQ(all.loss.item_double(), 9);
  ASSERT_TRUE(all.label.defined());
  EXPECT_EQ(all.label.data<float>()[0], 1);
  ASSERT_TRUE(all.output.defined());
  EXPECT_EQ(all.output.data<float>()[1], 8);
  TrainingModel plain = model(methods, by_method("step"));
  const TrainingModel::Evaluated loss = plain.evaluate(batch, {});
  EXPECT_EQ(loss.loss.item_double(), 9);
  EXPECT_FALSE(loss.output.defined());
  EXPECT_FALSE(loss.label.defined());
}

TEST_F(TrainingModelTest, LabelsThatDoNotCountAreOfClasses) {
  const std::string methods = R"(
    def forward(self, x: Tensor) -> Tensor:
        return torch.mul(x, self.weight)

    def step(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.sum(self.forward(x))
)";
  const auto is_refused = [&](const LossSpec& spec, const Tensor& labels) {
    const TrainingModel made = model(methods, spec);
    EXPECT_THAT(made.arrays(), ElementsAre("x", "y"));
    try {
      made.check_all_rows_count(std::vector<Tensor>{floats({2, 2}, {1, 2, 3, 4}), labels});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnimplemented);
      EXPECT_THAT(error.what(), HasSubstr("loss.label: 'y' has -100"));
      return true;
    }
    return false;
  };
  const Tensor chances = floats({2}, {-100, 1}), classes = chances.to(DType::kInt32);
  for (const char* name : {"cross_entropy", "nll"}) {
    EXPECT_TRUE(is_refused(by_name(name), classes)) << name;
    EXPECT_FALSE(is_refused(by_name(name), floats({2}, {0, 1}).to(DType::kInt32))) << name;
    EXPECT_FALSE(is_refused(by_name(name), chances)) << name;
  }
  EXPECT_FALSE(is_refused(by_name("mse"), classes));
  EXPECT_FALSE(is_refused(by_method("step", "y"), classes));
}

TEST_F(TrainingModelTest, OperatorsThatRanksHaveForThemselves) {
  const auto found = [&](const std::string& result, const std::string& arguments = "") {
    return model("    def step(self, x: Tensor" + arguments + ") -> Tensor:\n        return " + result + "\n",
                 by_method("step"))
        .local_operators();
  };
  EXPECT_EQ(found("torch.relu(x)"), "");
  EXPECT_EQ(found("torch.dropout(x, 0.5, self.training)"), "dropout");
  EXPECT_EQ(found("torch.dropout(x, 0.0, self.training)"), "");
  EXPECT_EQ(found("torch.dropout(x, 0, self.training)"), "");
  EXPECT_EQ(found("torch.dropout(x, p, self.training)", ", p: float=0.0"), "dropout");  // unknown until it runs
  EXPECT_EQ(found("torch.dropout(x, float(torch.numel(x)), self.training)"), "dropout");
  EXPECT_EQ(found("torch.dropout(torch.mul(x, torch.rand_like(x)), 0.5, True)"), "dropout, rand_like");
  EXPECT_EQ(found("torch.bernoulli(x)"), "bernoulli");
  // With probabilities from a constant tensor.
  const std::string chances = concat(tests_folder(), "/server/data/chances.pt");
  EXPECT_EQ(TrainingModel(chances, by_name("mse"), {}, false).local_operators(), "bernoulli_");
}

TEST_F(TrainingModelTest, ChoicesOfSparseGradientsAreFoundInBranchesToo) {
  const auto has_choice = [&](const std::string& body) {
    return model("    def step(self, x: Tensor, i: Tensor) -> Tensor:\n" + body, by_method("step"))
        .may_have_sparse_gradients();
  };
  EXPECT_FALSE(has_choice("        return torch.sum(x)\n"));
  EXPECT_TRUE(has_choice("        return torch.embedding(x, i, -1, False, False)\n"));
  EXPECT_TRUE(has_choice("        return torch.gather(x, 0, i, sparse_grad=False)\n"));
  EXPECT_TRUE(
      has_choice("        out = x\n        if torch.numel(i) > 3:\n"
                 "            out = torch.embedding(x, i, -1, False, False)\n        return out\n"));
}

}  // namespace
}  // namespace tensord::server::training_model_test
