// Branches on comparisons of dynamic sizes: for any size, also one that takes a branch which no example took, an
// exported file gives the module's results. For each comparison the test lists whether it can be exported.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "core/base/error.h"
#include "core/jit/exporters/onnx/export.h"
#include "core/jit/exporters/pt2/export.h"
#include "tests/formats/export_fixture.h"

namespace tensord::jit::export_conditions_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using tracing::ExportArgument;

constexpr int64_t kSizes[] = {1, 2, 3, 5, 8, 64};
constexpr const char* kOperators[] = {"<", "<=", ">", ">=", "==", "!="};
constexpr const char* kMirrored[] = {">", ">=", "<", "<=", "==", "!="};

class ExportConditions : public ::testing::Test {
 protected:
  ExportConditions() : folder_(fs::temp_directory_path() / concat("export_conditions_", getpid())) {
    fs::create_directories(folder_);
  }
  ~ExportConditions() override { fs::remove_all(folder_); }

  static std::string branch(const std::string& condition) {
    return concat("if ", condition, ":\n            y = x + 1\n        else:\n            y = x * 2\n        return y");
  }

  // 'w': the file is written, and correct for all sizes; '-': it is refused for a reason that contains `reason`.
  template <class Write>
  char outcome(const std::string& body, const char* reason, const char* file, const Write& write) const {
    const auto module = Module::compile(
        concat("class M(Module):\n    training: bool\n    def forward(self, x: Tensor):\n        ", body, "\n"));
    const Tensor first = example({4, 4}, 1), second = example({7, 4}, 2);
    const std::vector<ExportArgument> arguments{{.name = "x", .first = first, .second = second, .fixed = {}}};
    const std::string path = (folder_ / file).string();
    try {
      write(path, *module, arguments);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), ::testing::AnyOf(HasSubstr(reason), HasSubstr("cannot be exported to"))) << body;
      return '-';
    }
    const auto written = Module::load(path);
    for (const int64_t size : kSizes) {
      SCOPED_TRACE(concat(body, " for ", size, " in ", file));
      const Tensor input = example({size, 4}, 3);
      expect_same(results(*written, input), results(*module, input));
    }
    return 'w';
  }
  char pt2(const std::string& body, const char* reason) const {
    return outcome(body, reason, "m.pt2", [](const std::string& path, const Module& module, const auto& arguments) {
      pt2::export_program(path, module.method("forward").graph(), module.object(), arguments);
    });
  }
  char onnx(const std::string& body, const char* reason) const {
    return outcome(body, reason, "m.onnx", [](const std::string& path, const Module& module, const auto& arguments) {
      onnx::export_model(path, module.method("forward").graph(), module.object(), arguments, {});
    });
  }

  const fs::path folder_;
};

// By the constant operand: 0, 1, 2, 3 and 4, with the operators in order.
TEST_F(ExportConditions, AreRightForEverySizeOrRefused) {
  const std::map<std::string, std::vector<std::string>> kExpected = {
#include "tests/formats/export_conditions.inc"
  };
  for (const auto& [left, rows] : kExpected) {
    for (size_t op = 0; op < std::size(kOperators); ++op) {
      std::string row;
      for (int number = 0; number <= 4; ++number) {
        const char* const kReason = "which branch is taken depends on a dynamic size";
        const char way = pt2(branch(concat(left, " ", kOperators[op], " ", number)), kReason);
        EXPECT_EQ(pt2(branch(concat(number, " ", kMirrored[op], " ", left)), kReason), way)
            << left << kOperators[op] << number;
        EXPECT_EQ(onnx(branch(concat(left, " ", kOperators[op], " ", number)), kReason), 'w')
            << left << kOperators[op] << number;
        row += way;
      }
      EXPECT_EQ(row, rows.at(op)) << left << " " << kOperators[op];
    }
  }
}

// Numbers computed from a dynamic size n and added to a tensor: in pt2, and in ONNX.
TEST_F(ExportConditions, NumbersOfSizesAreRightOrRefused) {
  struct Number {
    const char* text;
    char pt2, onnx;
  };
  const Number kNumbers[] = {
#include "tests/formats/export_numbers.inc"
  };
  for (const auto& [text, by_pt2, by_onnx] : kNumbers) {
    const char* const kReason = "a number depends on a dynamic size or on data in a way";
    const std::string body = concat("n = x.size(0)\n        return x + ", text);
    EXPECT_EQ(pt2(body, kReason), by_pt2) << text;
    EXPECT_EQ(onnx(body, kReason), by_onnx) << text;
  }
}

}  // namespace
}  // namespace tensord::jit::export_conditions_test
