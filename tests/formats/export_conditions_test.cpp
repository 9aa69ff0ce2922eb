// Branches on comparisons of open sizes: whichever way a size that no example had goes, a file that is written gives
// what the module gives. Which ones are written is said for each comparison.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "core/base/error.h"
#include "core/jit/formats/onnx_export/export.h"
#include "core/jit/formats/pt2_export/export.h"
#include "tests/formats/export_fixture.h"

namespace tensord::jit {
namespace {

namespace fs = std::filesystem;
using tracing::ExportArgument;

constexpr int64_t kSizes[] = {1, 2, 3, 5, 8, 64};
constexpr const char* kOperators[] = {"<", "<=", ">", ">=", "==", "!="};

class ExportConditions : public ::testing::Test {
 protected:
  ExportConditions() : folder_(fs::temp_directory_path() / concat("export_conditions_", getpid())) {
    fs::create_directories(folder_);
  }
  ~ExportConditions() override { fs::remove_all(folder_); }

  // 'w': the file is written, and right for all sizes; '-': it is refused for its branch.
  template <class Write>
  char outcome(const std::string& condition, const char* file, const Write& write) const {
    const std::string source =
        concat("class M(Module):\n    training: bool\n    def forward(self, x: Tensor):\n        if ", condition,
               ":\n            y = x + 1\n        else:\n            y = x * 2\n", "        return y\n");
    const auto module = Module::compile(source);
    const Tensor first = example({4, 4}, 1), second = example({7, 4}, 2);
    const std::vector<ExportArgument> arguments{{.name = "x", .first = first, .second = second, .fixed = {}}};
    const std::string path = (folder_ / file).string();
    try {
      write(path, *module, arguments);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("which way a branch goes hangs on an open size")) << condition;
      return '-';
    }
    const auto written = Module::load(path);
    for (const int64_t size : kSizes) {
      SCOPED_TRACE(concat(condition, " for ", size, " in ", file));
      const Tensor input = example({size, 4}, 3);
      expect_same(results(*written, input), results(*module, input));
    }
    return 'w';
  }
  char pt2(const std::string& condition) const {
    return outcome(condition, "m.pt2", [](const std::string& path, const Module& module, const auto& arguments) {
      pt2::export_program(path, module.method("forward").graph(), module.object(), arguments);
    });
  }
  char onnx(const std::string& condition) const {
    return outcome(condition, "m.onnx", [](const std::string& path, const Module& module, const auto& arguments) {
      onnx::export_model(path, module.method("forward").graph(), module.object(), arguments, {});
    });
  }

  const fs::path folder_;
};

// By the number that is compared with: 0, 1, 2, 3, and 4, of the operators in their order.
TEST_F(ExportConditions, AreRightForEverySizeOrRefused) {
  const std::map<std::string, std::vector<std::string>> kExpected = {
#include "tests/formats/export_conditions.inc"
  };
  for (const auto& [left, rows] : kExpected) {
    for (size_t op = 0; op < std::size(kOperators); ++op) {
      std::string row;
      for (int number = 0; number <= 4; ++number) {
        const char way = pt2(concat(left, " ", kOperators[op], " ", number));
        static const std::map<std::string, const char*> kMirrored = {{"<", ">"},   {"<=", ">="}, {">", "<"},
                                                                     {">=", "<="}, {"==", "=="}, {"!=", "!="}};
        EXPECT_EQ(pt2(concat(number, " ", kMirrored.at(kOperators[op]), " ", left)), way)
            << left << kOperators[op] << number;
        EXPECT_EQ(onnx(concat(left, " ", kOperators[op], " ", number)), 'w');
        row += way;
      }
      EXPECT_EQ(row, rows.at(op)) << left << " " << kOperators[op];
    }
  }
}

}  // namespace
}  // namespace tensord::jit
