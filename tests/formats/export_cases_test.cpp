// Calls exported to ONNX and to exported programs, read back and run: results must be equal, for fixed and dynamic
// sizes.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "core/base/error.h"
#include "core/jit/exporters/onnx/export.h"
#include "core/jit/exporters/pt2/export.h"
#include "tests/formats/export_fixture.h"

namespace tensord::jit::export_cases_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using tracing::ExportArgument;

struct ExportCase {
  const char* body;               // of forward(x), where x has sizes [4, 4]
  bool is_open = false;           // the first dimension: also run with [7, 4]
  const char* onnx_refuses = "";  // with this message
};

class ExportCases : public ::testing::TestWithParam<ExportCase> {
 protected:
  ExportCases() : folder_(fs::temp_directory_path() / concat("export_cases_", getpid())) {
    fs::create_directories(folder_);
  }
  ~ExportCases() override { fs::remove_all(folder_); }

  std::string path(const char* name) const { return (folder_ / name).string(); }

  const fs::path folder_;
};

TEST_P(ExportCases, IsTheSameInBothFormats) {
  const ExportCase& one = GetParam();
  const std::string source = concat(
      "class M(Module):\n    training: bool\n    def forward(self, x: Tensor):\n        return ", one.body, "\n");
  LoadOptions options;
  options.for_training = true;  // the graph has the model's own operators
  const auto module = Module::compile(source, {}, options);
  const Tensor first = example({4, 4}, 1), second = example({one.is_open ? 7 : 4, 4}, 2);
  const std::vector<Tensor> expected[] = {results(*module, first), results(*module, second)};
  const Method& method = module->method("forward");
  const std::vector<ExportArgument> arguments{{.name = "x", .first = first, .second = second, .fixed = {}}};
  const auto expect_written = [&](const std::string& file) {
    const auto written = Module::load(file);
    expect_same(results(*written, first), expected[0]);
    expect_same(results(*written, second), expected[1]);
  };
  const GradModeGuard guard({.is_enabled = true, .is_inference = false});
  {
    SCOPED_TRACE("pt2");
    pt2::export_program(path("m.pt2"), method.graph(), module->object(), arguments);
    expect_written(path("m.pt2"));
  }
  SCOPED_TRACE("onnx");
  try {
    onnx::export_model(path("m.onnx"), method.graph(), module->object(), arguments, {});
  } catch (const Error& error) {
    ASSERT_STRNE(one.onnx_refuses, "") << error.what();
    ASSERT_THAT(error.what(), HasSubstr(one.onnx_refuses));
    return;
  }
  ASSERT_STREQ(one.onnx_refuses, "");
  expect_written(path("m.onnx"));
}

const ExportCase kCases[] = {
#include "tests/formats/export_cases.inc"
};

INSTANTIATE_TEST_SUITE_P(All, ExportCases, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return concat("case", info.index); });

}  // namespace
}  // namespace tensord::jit::export_cases_test
