// Programs that a format cannot express: each is refused with its reason, in one format or in both. Where it is
// exported, the results must be equal. All of them are also written as TorchScript.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "core/base/error.h"
#include "core/jit/exporters/onnx/export.h"
#include "core/jit/exporters/pt2/export.h"
#include "core/jit/exporters/torchscript/export.h"
#include "tests/formats/export_fixture.h"

namespace tensord::jit::export_refusals_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StrEq;
using tracing::ExportArgument;

struct Refusal {
  const char* program;  // the body of forward(self, x), where x has sizes [4, 4]; attributes are below
  bool is_open;         // the first dimension: also run with [7, 4]
  const char* pt2;      // what is said; nothing: it is written, "*": and gives other numbers each time
  const char* onnx;
  const char* torchscript = "";
};

constexpr const char* kHead = R"(
class Point:
    x: Tensor

    def __init__(self, x: Tensor) -> None:
        self.x = x

class M(Module):
    __parameters__ = ["weight"]
    __buffers__ = ["mean", "part", "whole"]
    training: bool
    weight: Tensor
    mean: Tensor
    part: Tensor
    whole: Tensor
    nothing: Optional[Tensor]

    def forward(self, x: Tensor):
)";

const Refusal kRefusals[] = {
#include "tests/formats/export_refusals.inc"
};

class ExportRefusals : public ::testing::TestWithParam<Refusal> {
 protected:
  ExportRefusals() : folder_(fs::temp_directory_path() / concat("export_refusals_", getpid())) {
    fs::create_directories(folder_);
  }
  ~ExportRefusals() override { fs::remove_all(folder_); }

  static std::shared_ptr<Module> module() {
    std::string source = kHead;
    std::istringstream lines(GetParam().program);
    for (std::string line; std::getline(lines, line);) source += "        " + line + "\n";
    const Tensor whole = example({4, 4}, 5);
    const Tensor part = Tensor::from_storage(whole.storage(), Dims{4}, Dims{1}, 0, DType::kFloat32);
    LoadOptions options;
    options.for_training = true;  // the graph has the model's own operators
    return Module::compile(
        source, {{"weight", example({4, 4}, 3)}, {"mean", example({4}, 4)}, {"part", part}, {"whole", whole}}, options);
  }

  const fs::path folder_;
};

TEST_P(ExportRefusals, SaysWhy) {
  const Refusal& one = GetParam();
  const Tensor first = example({4, 4}, 1), second = example({one.is_open ? 7 : 4, 4}, 2);
  const auto expected = [&](const Tensor& input) { return results(*module(), input); };
  const std::vector<ExportArgument> arguments{{.name = "x", .first = first, .second = second, .fixed = {}}};
  const GradModeGuard guard({.is_enabled = true, .is_inference = false});
  const auto expect = [&](const char* what, const char* file, const auto& write) {
    SCOPED_TRACE(one.program);
    const std::string path = (folder_ / file).string();
    try {
      write(path, *module());
    } catch (const Error& error) {
      ASSERT_THAT(what, Not(AnyOf(StrEq(""), StrEq("*")))) << file << ": " << error.what();
      ASSERT_THAT(error.what(), HasSubstr(what)) << file;
      return;
    }
    if (std::string_view(what) == "*") return;
    ASSERT_STREQ(what, "") << file;
    expect_same(results(*Module::load(path), first), expected(first));
    expect_same(results(*Module::load(path), second), expected(second));
  };
  expect(one.pt2, "m.pt2", [&](const std::string& path, const Module& made) {
    pt2::export_program(path, made.method("forward").graph(), made.object(), arguments);
  });
  expect(one.onnx, "m.onnx", [&](const std::string& path, const Module& made) {
    onnx::export_model(path, made.method("forward").graph(), made.object(), arguments, {});
  });
  const bool is_random = std::string_view(one.pt2) == "*";
  expect(is_random ? one.pt2 : one.torchscript, "m.pt", [](const std::string& path, const Module& made) {
    const Method& forward = made.method("forward");
    export_torchscript(path, made.object(), {{"forward", &forward.schema(), &forward.graph()}});
  });
}

INSTANTIATE_TEST_SUITE_P(All, ExportRefusals, ::testing::ValuesIn(kRefusals),
                         [](const auto& info) { return concat("case", info.index); });

}  // namespace
}  // namespace tensord::jit::export_refusals_test
