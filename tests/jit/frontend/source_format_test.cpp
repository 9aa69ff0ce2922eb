// Models of TorchScript source: files with weights beside them, and sources with tensors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "core/jit/archive/safetensors.h"
#include "core/jit/archive/torch_file.h"
#include "core/jit/ir/operator_search.h"
#include "core/jit/runtime/module.h"

namespace tensord::jit::source_format_test {
namespace {

namespace fs = std::filesystem;
using ops::Value;
using Tensors = std::vector<std::pair<std::string, Tensor>>;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kNet = R"(
class Scale(Module):
    __parameters__ = ["weight"]
    weight: Tensor
    bias: Optional[Tensor]

    def forward(self, x: Tensor) -> Tensor:
        y = x * self.weight
        b = self.bias
        if b is not None:
            y = y + b
        return y

class Net(Module):
    __buffers__ = ["mean"]
    inner: Scale
    mean: Tensor
    times: int = 2
    training: bool

    def forward(self, x: Tensor) -> Tensor:
        x = x - self.mean
        for i in range(self.times):
            x = self.inner(x)
        return x

    def twice(self, x: Tensor) -> Tensor:
        return self.forward(x) * 2.0
)";

Tensor vector_of(std::initializer_list<float> values) {
  const Tensor out = Tensor::empty(Dims{static_cast<int64_t>(values.size())}, DType::kFloat32);
  std::copy(values.begin(), values.end(), out.data<float>());
  return out;
}
std::vector<float> numbers(const Value& value) {
  const Tensor tensor = value.to_tensor().contiguous();
  return {tensor.data<float>(), tensor.data<float>() + tensor.numel()};
}
std::vector<float> run(const Module& module, const Tensor& x, const char* method = "forward") {
  Frame frame;
  const Value arguments[] = {x};
  return numbers(module.method(method).run(frame, arguments));
}
std::string error_of(const std::string& source, const Tensors& tensors) {
  try {
    Module::compile(source, tensors)->method("forward");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    return error.what();
  }
  return "no error";
}

struct SourceFormat : ::testing::Test {
  const Tensors tensors{{"inner.weight", vector_of({2, 3})}, {"mean", vector_of({1, 1})}};
  const fs::path folder = fs::path(::testing::TempDir()) / "source_format" /
                          ::testing::UnitTest::GetInstance()->current_test_info()->name();
  SourceFormat() {
    fs::remove_all(folder);
    fs::create_directories(folder);
  }
  ~SourceFormat() override { fs::remove_all(folder); }
  std::string write(const std::string& text, const char* name = "model.py") const {
    std::ofstream(folder / name) << text;
    return (folder / name).string();
  }
};

TEST_F(SourceFormat, TextWithTensors) {
  const auto module = Module::compile(kNet, tensors);
  EXPECT_EQ(run(*module, vector_of({2, 3})), (std::vector<float>{4, 18}));
  EXPECT_EQ(run(*module, vector_of({2, 3}), "twice"), (std::vector<float>{8, 36}));
  EXPECT_EQ(module->named_parameters().at(0).first, "inner.weight");
  EXPECT_EQ(module->named_buffers().at(0).first, "mean");
  Tensors more = tensors;
  more.emplace_back("inner.bias", vector_of({1, 1}));
  EXPECT_EQ(run(*Module::compile(kNet, more), vector_of({2, 3})), (std::vector<float>{7, 22}));
}

TEST_F(SourceFormat, FunctionsAreMethods) {
  const auto module = Module::compile(
      "def helper(x: Tensor) -> Tensor:\n  return x + 1\n"
      "def forward(x: Tensor, by: float = 2.0) -> Tensor:\n  return helper(x) * by\n");
  EXPECT_THAT(module->method_names(), ElementsAre("forward", "helper"));
  EXPECT_EQ(run(*module, vector_of({1})), (std::vector<float>{4}));
  EXPECT_EQ(run(*module, vector_of({1}), "helper"), (std::vector<float>{2}));
}

TEST_F(SourceFormat, WeightsOfEachKindBesideAFile) {
  const std::string path = write(kNet);
  try {
    Module::load(path);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("its weights have no 'inner.weight', which __torch__.Scale declares; there is no "
                          "weights.safetensors"));
  }
  auto state = make_intrusive<ops::DictObject>(ops::string_type(), ops::tensor_type());
  for (const auto& [name, tensor] : tensors) state->set(Value(name), Value(tensor));
  save_torch_file((folder / "weights.pt").string(), Value(ops::Dict(state)));
  const auto of_state = Module::load(path);
  EXPECT_EQ(run(*of_state, vector_of({2, 3})), (std::vector<float>{4, 18}));
  of_state->check_file();
  EXPECT_EQ(of_state->release_file_memory(), 0u);
  Tensors others = tensors;
  others[0].second = vector_of({10, 10});
  write_safetensors((folder / "model.safetensors").string(), others);
  EXPECT_EQ(run(*Module::load(path), vector_of({2, 3})), (std::vector<float>{100, 200}));
  others[0].second = vector_of({1, 1});
  write_safetensors((folder / "weights.safetensors").string(), others);
  EXPECT_EQ(run(*Module::load(path), vector_of({2, 3})), (std::vector<float>{1, 2}));
}

TEST_F(SourceFormat, IsSavedAsItCameOrAsAnArchive) {
  LoadOptions training;
  training.for_training = true;
  const auto module = Module::compile(kNet, tensors, training);
  module->named_parameters().at(0).second.data<float>()[0] = 5;
  const std::string source = (folder / "model.py").string(), archive = (folder / "model.pt").string();
  module->save(source);
  module->save(archive);
  EXPECT_EQ(run(*Module::load(source), vector_of({2, 3})), (std::vector<float>{25, 18}));
  const auto loaded = Module::load(archive);
  EXPECT_EQ(run(*loaded, vector_of({2, 3})), (std::vector<float>{25, 18}));
  EXPECT_EQ(run(*loaded, vector_of({2, 3}), "twice"), (std::vector<float>{50, 36}));
  EXPECT_EQ(loaded->named_parameters().at(0).first, "inner.weight");
  // An archive with the file name of a source is loaded as an archive.
  fs::copy_file(archive, source, fs::copy_options::overwrite_existing);
  EXPECT_EQ(run(*Module::load(source), vector_of({2, 3})), (std::vector<float>{25, 18}));
}

TEST_F(SourceFormat, SourceThatWouldBeAnyNumberOfModulesOrFramesIsBounded) {
  std::string twice = "class C0(Module):\n  def forward(self) -> int:\n    return 1\n";
  for (int i = 1; i < 60; ++i) {
    const std::string below = "C" + std::to_string(i - 1);
    twice += "class C" + std::to_string(i) + "(Module):\n  a: " + below + "\n  b: " + below +
             "\n  def forward(self) -> int:\n    return 1\n";
  }
  EXPECT_THAT(error_of(twice, {}), HasSubstr("is of more than 100000 modules"));
  std::string chain = "def f0(x: Tensor) -> Tensor:\n  return x\n";
  constexpr int kCalls = 20'000;
  for (int i = 1; i < kCalls; ++i) {
    chain += "def f" + std::to_string(i) + "(x: Tensor) -> Tensor:\n  return f" + std::to_string(i - 1) + "(x)\n";
  }
  chain += "def forward(x: Tensor) -> Tensor:\n  return f" + std::to_string(kCalls - 1) + "(x)\n";
  // The inliner decides which calls stay calls; a search over all functions must not recurse for each.
  const std::shared_ptr<Module> module = Module::compile(chain);
  OperatorSearch search(module->functions(), changes_shape);
  EXPECT_EQ(search.find(module->functions().find_function("__torch__.forward")->graph->block()), nullptr);
}

TEST_F(SourceFormat, SaysWhatIsWrong) {
  EXPECT_THAT(error_of("def forward(x: Tensor) -> Tensor:\n  return x +\n", {}),
              HasSubstr("/source:2:13: expected an expression"));
  EXPECT_THAT(error_of("", {}), HasSubstr("neither a class that derives from Module nor a function"));
  EXPECT_THAT(error_of("class A:\n  def forward(self) -> int:\n    return 1\n", {}),
              HasSubstr("neither a class that derives"));
  EXPECT_THAT(error_of("class A(Module):\n  pass\nclass B(Module):\n  pass\n", {}),
              HasSubstr("there are __torch__.A, __torch__.B"));
  Tensors more = tensors;
  more.emplace_back("inner.wrong", vector_of({1}));
  EXPECT_THAT(error_of(kNet, more), HasSubstr("its weights have 'inner.wrong', but no module declares such a tensor"));
  EXPECT_THAT(error_of("class A(Module):\n  n: List[int]\n  def forward(self) -> int:\n    return 1\n", {}),
              HasSubstr("__torch__.A.n is a List[int], which a file of weights does not have; give it a value"));
  const std::string self = "class A(Module):\n  a: A\n  def forward(self) -> int:\n    return 1\n";
  EXPECT_THAT(error_of(self, {}), HasSubstr("each is an attribute of another"));
}

}  // namespace
}  // namespace tensord::jit::source_format_test
