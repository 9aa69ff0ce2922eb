// The ONNX standard's backend tests, as make_cases.py writes them: each model is loaded and run, and its results are
// compared. Cases with unsupported element types are counted separately. not_passing.txt lists the other failing cases
// with reasons: exactly these must fail.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <regex>

#include "core/base/error.h"
#include "core/jit/importers/onnx/proto.h"
#include "core/jit/importers/onnx/tensors.h"
#include "core/jit/importers/onnx/wire.h"
#include "core/jit/runtime/module.h"
#include "tests/support/places.h"

namespace tensord::jit::onnx_cases_test {
namespace {

namespace fs = std::filesystem;
using ops::Value;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// TensorProto, SequenceProto and OptionalProto, according to the model's type.
Value read_value(std::span<const uint8_t> bytes, const onnx::TypeProto& type) {
  onnx::TensorReader reader(nullptr, "", {.copies_tensors = true});
  using Kind = onnx::TypeProto::Kind;
  if (type.kind == Kind::kTensor) return reader.read(onnx::read_tensor(bytes));
  std::vector<Value> items;
  const bool is_optional = type.kind == Kind::kOptional;
  for (onnx::Wire wire(bytes, "SequenceProto"); wire.next();) {
    // OptionalProto: 3 tensor, 5 sequence. SequenceProto: 3 tensors, 5 sequences, 7 optionals.
    if (wire.field() == 3 || wire.field() == 5) items.push_back(read_value(wire.bytes(), *type.element));
  }
  if (is_optional) return items.empty() ? Value() : items.front();
  return ops::make_list(ops::tensor_type(), std::move(items));
}

struct Tolerance {
  double relative = 0, absolute = 0;
};

// "" if they agree.
std::string difference(const Tensor& got, const Tensor& expected, Tolerance tolerance) {
  if (got.dtype() != expected.dtype() || got.sizes() != expected.sizes()) {
    return "got " + describe(got) + ", expected " + describe(expected);
  }
  // The standard's results are rounded once, or after every step; these types have 8 and 11 significant bits.
  if (got.dtype() == DType::kBFloat16) tolerance.relative = std::max(tolerance.relative, std::exp2(-6.0));
  if (got.dtype() == DType::kFloat16) tolerance.relative = std::max(tolerance.relative, std::exp2(-9.0));
  const bool is_floating_type = is_floating(got.dtype());
  const Tensor a = got.to(is_floating_type ? DType::kFloat64 : DType::kInt64).contiguous();
  const Tensor b = expected.to(is_floating_type ? DType::kFloat64 : DType::kInt64).contiguous();
  // If large numbers sum to a small one, its error is the rounding error of the large ones.
  double largest = 0;
  for (int64_t i = 0; is_floating_type && i < b.numel(); ++i) {
    if (std::isfinite(b.data<double>()[i])) largest = std::max(largest, std::abs(b.data<double>()[i]));
  }
  tolerance.absolute = std::max(tolerance.absolute, largest * std::exp2(-21.0));
  for (int64_t i = 0; i < a.numel(); ++i) {
    if (is_floating_type) {
      const double x = a.data<double>()[i], y = b.data<double>()[i];
      const bool agrees = std::isnan(x) || std::isnan(y) ? std::isnan(x) == std::isnan(y)
                          : std::isinf(x) || std::isinf(y)
                              ? x == y
                              : std::abs(x - y) <= tolerance.absolute + tolerance.relative * std::abs(y);
      if (!agrees)
        return "element " + std::to_string(i) + " is " + std::to_string(x) + ", expected " + std::to_string(y);
    } else if (a.data<int64_t>()[i] != b.data<int64_t>()[i]) {
      return "element " + std::to_string(i) + " is " + std::to_string(a.data<int64_t>()[i]) + ", expected " +
             std::to_string(b.data<int64_t>()[i]);
    }
  }
  return {};
}

std::string difference(const Value& got, const Value& expected, Tolerance tolerance) {
  if (got.tag() != expected.tag()) return std::string("got ") + got.tag_name() + ", expected " + expected.tag_name();
  if (got.is_none()) return {};
  if (got.is_tensor()) return difference(got.to_tensor(), expected.to_tensor(), tolerance);
  const auto& a = got.to_list()->items;
  const auto& b = expected.to_list()->items;
  if (a.size() != b.size()) return "got " + std::to_string(a.size()) + " items, expected " + std::to_string(b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    std::string found = difference(a[i], b[i], tolerance);
    if (!found.empty()) return "item " + std::to_string(i) + ": " + found;
  }
  return {};
}

// Runs one set of data; returns the difference, "" if it is right.
std::string run_set(const Module& module, const onnx::ModelProto& model, const fs::path& folder, Tolerance tolerance) {
  const auto read = [&](const char* kind, size_t i, const onnx::TypeProto& type) -> std::optional<Value> {
    const fs::path path = folder / (std::string(kind) + "_" + std::to_string(i) + ".pb");
    if (!fs::exists(path)) return std::nullopt;
    return read_value(bytes_of(read_file(path)), type);
  };
  std::vector<Value> arguments;
  for (size_t i = 0; i < model.graph.inputs.size(); ++i) {
    const std::optional<Value> value = read("input", i, model.graph.inputs[i].type);
    if (value) arguments.push_back(*value);
  }
  const auto frame = make_frame();
  const Value result = module.method("forward").run(*frame, arguments);
  for (size_t i = 0; i < model.graph.outputs.size(); ++i) {
    const std::optional<Value> expected = read("output", i, model.graph.outputs[i].type);
    if (!expected) continue;
    const Value& got = model.graph.outputs.size() == 1 ? result : result.to_tuple()->items.at(i);
    std::string found = difference(got, *expected, tolerance);
    if (!found.empty()) return "output " + std::to_string(i) + ": " + found;
  }
  return {};
}

// A model that must be refused at load, with a certain string in the error.
std::string load_refused(const fs::path& folder, const LoadOptions& options) {
  const std::string text = read_file(folder / "refused");
  try {
    Module::load((folder / "model.onnx").string(), options);
  } catch (const Error& error) {
    const std::string message = error.what();
    return message.find(text) == std::string::npos ? "is refused without \"" + text + "\": " + message : "";
  }
  return "is loaded, though every run fails";
}

std::string run_case(const fs::path& folder, const LoadOptions& options) {
  if (fs::exists(folder / "refused")) return load_refused(folder, options);
  try {
    const std::string text = read_file(folder / "model.onnx");
    const onnx::ModelProto model = onnx::read_model(bytes_of(text));
    const auto module = Module::load((folder / "model.onnx").string(), options);
    Tolerance tolerance;
    std::ifstream(folder / "tolerance") >> tolerance.relative >> tolerance.absolute;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (!entry.is_directory()) continue;
      std::string found = run_set(*module, model, entry.path(), tolerance);
      if (!found.empty()) return found;
    }
    return {};
  } catch (const Error& error) {
    std::string message = error.what();
    std::ranges::replace(message, '\n', ' ');
    return std::string(to_string(error.code())) + ": " + message;
  }
}

// Lines "PATTERN  reason": a regular expression for the names of cases, and why they fail.
struct NotPassing {
  std::string pattern, reason;
  std::regex regex;
  int count = 0;
};

std::vector<NotPassing> read_not_passing() {
  std::vector<NotPassing> all;
  std::ifstream file(fs::path(tests_folder()) / "onnx/not_passing.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t cut = line.find(' ');
    NotPassing entry;
    entry.pattern = line.substr(0, cut);
    entry.reason = cut == std::string::npos ? "" : line.substr(line.find_first_not_of(' ', cut));
    entry.regex = std::regex(entry.pattern);
    all.push_back(std::move(entry));
  }
  return all;
}

// The case's operator or kind, for the table: the part before the first "_" after "test_".
std::string group_of(const std::string& name) {
  const size_t begin = name.starts_with("test_") ? 5 : 0;
  return name.substr(begin, name.find('_', begin) - begin);
}

TEST(OnnxCases, AgreeWithTheStandard) {
  const char* folder = std::getenv("TENSORD_ONNX_CASES");
  ASSERT_NE(folder, nullptr) << "TENSORD_ONNX_CASES is a folder that make_cases.py made";
  const char* filter = std::getenv("TENSORD_ONNX_FILTER");  // part of a name
  LoadOptions options;
  options.optimize = std::getenv("TENSORD_ONNX_INTERPRET") == nullptr;
  std::vector<NotPassing> not_passing = read_not_passing();
  std::vector<fs::path> cases;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() && (!filter || name.find(filter) != std::string::npos)) cases.push_back(entry.path());
  }
  std::ranges::sort(cases);
  ASSERT_FALSE(cases.empty());
  struct Counts {
    int passed = 0, failed = 0;
  };
  std::map<std::string, Counts> table;
  Counts total;
  std::map<std::string, int> other_types;  // cases refused for an element type, by its name
  const std::regex refused_type("element type ([A-Z0-9]+) is not supported");
  for (const fs::path& path : cases) {
    const std::string name = path.filename().string();
    const std::string found = run_case(path, options);
    if (std::smatch match; std::regex_search(found, match, refused_type)) {
      ++other_types[match[1]];
      continue;
    }
    Counts& counts = table[group_of(name)];
    ++(found.empty() ? counts.passed : counts.failed);
    ++(found.empty() ? total.passed : total.failed);
    const auto known =
        std::ranges::find_if(not_passing, [&](const NotPassing& entry) { return std::regex_match(name, entry.regex); });
    if (known != not_passing.end()) ++known->count;
    if (found.empty() && known != not_passing.end()) ADD_FAILURE() << name << " passes, but not_passing.txt names it";
    if (!found.empty() && known == not_passing.end()) ADD_FAILURE() << name << ": " << found;
  }
  for (const auto& [group, counts] : table) {
    std::cout << group << ": " << counts.passed << " of " << counts.passed + counts.failed << "\n";
  }
  for (const NotPassing& entry : not_passing) {
    if (entry.count > 0) std::cout << entry.count << " not passing: " << entry.pattern << " (" << entry.reason << ")\n";
  }
  for (const auto& [type, count] : other_types) std::cout << count << " of element type " << type << "\n";
  std::cout << "passed " << total.passed << " of " << total.passed + total.failed << "\n";
}

}  // namespace
}  // namespace tensord::jit::onnx_cases_test
