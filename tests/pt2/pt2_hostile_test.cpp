// Damaged or malicious programs: refused with one Error, or run to their end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/jit/archive/torch_file.h"
#include "core/jit/archive/zip.h"
#include "core/jit/archive/zip_writer.h"
#include "core/jit/importers/pt2/json.h"
#include "core/jit/runtime/module.h"
#include "tests/formats/damage.h"
#include "tests/support/places.h"

namespace tensord::jit::pt2_hostile_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ops::Value;
using ::testing::HasSubstr;

fs::path data() { return fs::path(tests_folder()) / "pt2" / "data"; }

class Pt2HostileTest : public ::testing::Test {
 protected:
  Pt2HostileTest() : file_(fs::path(::testing::TempDir()) / concat("pt2_hostile.", getpid(), ".pt2")) {}
  ~Pt2HostileTest() override { fs::remove(file_); }

  // Writes a program's archive with some entries replaced; an empty string removes the entry.
  void write(const std::string& name, const std::map<std::string, std::string>& entries) {
    fs::remove(file_);
    const auto zip = ZipArchive::open((data() / (name + ".pt2")).string());
    ZipWriter writer(file_.string());
    std::map<std::string, std::string> rest = entries;
    for (const ZipArchive::Entry& entry : zip->entries()) {
      const auto replaced = rest.find(entry.name);
      if (replaced == rest.end()) {
        writer.add("m/" + entry.name, zip->read(entry));
      } else if (!replaced->second.empty()) {
        writer.add("m/" + entry.name, replaced->second);
      }
      if (replaced != rest.end()) rest.erase(replaced);
    }
    for (const auto& [entry, text] : rest) writer.add("m/" + entry, text);
    writer.finish();
  }
  static std::string entry_of(const std::string& name, const std::string& entry) {
    const auto zip = ZipArchive::open((data() / (name + ".pt2")).string());
    return zip->read(zip->at(entry));
  }
  static json program_of(const std::string& name) { return json::parse(entry_of(name, "models/model.json")); }
  void write_program(const std::string& name, const json& program) {
    write(name, {{"models/model.json", program.dump()}});
  }

  std::pair<ErrorCode, std::string> failure() {
    try {
      Module::load(file_.string())->method("forward");
    } catch (const Error& error) {
      return {error.code(), error.what()};
    }
    return {ErrorCode::kInternal, "no error"};
  }
  void expect_refused(ErrorCode code, const std::string& text) {
    const auto [got, message] = failure();
    EXPECT_EQ(got, code) << message;
    EXPECT_THAT(message, HasSubstr(text));
  }

  const fs::path file_;
};

TEST(Pt2Json, NumbersAreTakenToTheirLimits) {
  const auto error_of = [](const auto& read) -> std::string {
    try {
      read();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(pt2::to_int(json::parse("9223372036854775807"), "end"), INT64_MAX);
  EXPECT_EQ(pt2::to_int(json::parse("-9223372036854775808"), "end"), INT64_MIN);
  EXPECT_EQ(error_of([] { pt2::to_int(json::parse("9223372036854775808"), "end"); }),
            "end: 9223372036854775808 is too large");
  EXPECT_THAT(error_of([] { pt2::to_int(json::parse("1.0"), "end"); }), HasSubstr("end: expected an integer"));
  EXPECT_EQ(pt2::to_float(json::parse("2"), "x"), 2.0);
  EXPECT_EQ(pt2::to_float(json("Infinity"), "x"), HUGE_VAL);
  EXPECT_EQ(pt2::to_float(json("-Infinity"), "x"), -HUGE_VAL);
  EXPECT_TRUE(std::isnan(pt2::to_float(json("NaN"), "x")));
  EXPECT_THAT(error_of([] { pt2::to_float(json("nan"), "x"); }), HasSubstr("x: expected a number"));
}

TEST_F(Pt2HostileTest, NoJson) {
  write("conv", {{"models/model.json", "{\"graph_module\": "}});
  expect_refused(ErrorCode::kDataLoss, "models/model.json: no JSON at byte");
  write("conv", {{"models/model.json", "[]"}});
  expect_refused(ErrorCode::kDataLoss, "models/model.json: expected an object");
  write("conv", {{"models/model.json", ""}});
  expect_refused(ErrorCode::kDataLoss, "has no program in models/");
}

TEST_F(Pt2HostileTest, Depth) {
  const std::string deep(100000, '[');
  write("conv", {{"models/model.json", deep + std::string(100000, ']')}});
  expect_refused(ErrorCode::kResourceExhausted, "nested more than 200 deep");
  // Also in parts that are skipped.
  write("conv",
        {{"models/model.json", "{\"target\": 1, \"metadata\": {\"a\": " + deep + std::string(100000, ']') + "}}"}});
  expect_refused(ErrorCode::kResourceExhausted, "nested more than 200 deep");
  json program = program_of("conv");
  std::string tree = R"({"type": null, "context": null, "children_spec": []})";
  for (int i = 0; i < 60; ++i)
    tree = R"({"type": "builtins.tuple", "context": "null", "children_spec": [)" + tree + "]}";
  program["graph_module"]["module_call_graph"][0]["signature"]["out_spec"] = "[1, " + tree + "]";
  write_program("conv", program);
  expect_refused(ErrorCode::kResourceExhausted, "out_spec: nested more than 30 deep");
}

TEST_F(Pt2HostileTest, ValuesBeforeTheyAreMade) {
  json program = program_of("conv");
  json& nodes = program["graph_module"]["graph"]["nodes"];
  const json last = nodes.back();
  nodes[0]["inputs"][0]["arg"] = last["outputs"][0];
  write_program("conv", program);
  expect_refused(ErrorCode::kDataLoss, "is used before it is defined");
  program = program_of("conv");
  json& again = program["graph_module"]["graph"]["nodes"];
  again.push_back(again.back());
  write_program("conv", program);
  expect_refused(ErrorCode::kDataLoss, "is defined twice");
}

TEST_F(Pt2HostileTest, Enumerations) {
  json program = program_of("conv");
  program["graph_module"]["graph"]["tensor_values"]["x"]["dtype"] = 77;
  write_program("conv", program);
  expect_refused(ErrorCode::kDataLoss, "77 is not a dtype");
  program["graph_module"]["graph"]["tensor_values"]["x"]["dtype"] = 30;
  write_program("conv", program);
  expect_refused(ErrorCode::kUnimplemented, "dtype float8_e5m2 is not supported");
}

TEST_F(Pt2HostileTest, TensorsOutsideOfTheirEntry) {
  const std::string name = "data/weights/model_weights_config.json";
  const auto with = [&](const char* field, const json& value) {
    json config = json::parse(entry_of("conv", name));
    config["config"]["conv.weight"]["tensor_meta"][field] = value;
    write("conv", {{name, config.dump()}});
  };
  const json huge = {{{"as_int", int64_t{1} << 62}}, {{"as_int", 4}}, {{"as_int", 4}}, {{"as_int", 4}}};
  with("sizes", huge);
  expect_refused(ErrorCode::kDataLoss, "'conv.weight'");
  with("strides", huge);
  expect_refused(ErrorCode::kDataLoss, "'conv.weight'");
  with("storage_offset", {{"as_int", 1}});
  expect_refused(ErrorCode::kDataLoss, "'conv.weight'");
  with("storage_offset", {{"as_int", -1}});
  expect_refused(ErrorCode::kDataLoss, "'conv.weight'");
  json config = json::parse(entry_of("conv", name));
  config["config"]["conv.weight"]["path_name"] = "../../../etc/passwd";
  write("conv", {{name, config.dump()}});
  expect_refused(ErrorCode::kDataLoss, "has no entry");
  config["config"]["conv.weight"]["path_name"] = "weight_0";
  config["config"]["conv.weight"]["use_pickle"] = true;
  write("conv", {{name, config.dump()}});
  expect_refused(ErrorCode::kUnimplemented, "'conv.weight' is a pickled tensor");
}

TEST_F(Pt2HostileTest, WhatIsNotRead) {
  json program = program_of("conv");
  program["graph_module"]["graph"]["nodes"][0]["target"] = "torch.ops.mylib.custom_op.default";
  program["graph_module"]["graph"]["nodes"][1]["target"] = "os.system";
  write_program("conv", program);
  expect_refused(ErrorCode::kUnimplemented, "operators that are not supported: mylib::custom_op, os.system");
  program = program_of("conv");
  program["schema_version"]["major"] = 5;
  program["torch_version"] = "2.4.1";
  write_program("conv", program);
  expect_refused(ErrorCode::kUnimplemented, "is of schema version 5");
  expect_refused(ErrorCode::kUnimplemented, "written by PyTorch 2.4.1");
  write("conv", {{"archive_version", "1"}});
  expect_refused(ErrorCode::kUnimplemented, "archive version 1 is newer");
  write("conv", {{"models/model.json", ""}, {"data/aotinductor/model/a.so", "x"}});
  expect_refused(ErrorCode::kUnimplemented, "is a package of AOTInductor");
  // The pickle of the example inputs is never opened.
  write("conv", {{"data/sample_inputs/model.pt", "cos\nsystem\n(S'false'\ntR."}});
  EXPECT_EQ(failure().second, "no error");
}

TEST_F(Pt2HostileTest, GuardsThatAreNotUnderstood) {
  json program = program_of("conv");
  program["guards_code"] = {"__import__('os').system('false')"};
  write_program("conv", program);
  expect_refused(ErrorCode::kUnimplemented, "guard '__import__");
  program["guards_code"] = {std::string(5000, '(') + "1" + std::string(5000, ')')};
  write_program("conv", program);
  expect_refused(ErrorCode::kUnimplemented, "it is nested too deep");
}

TEST_F(Pt2HostileTest, AnyDamageIsAnErrorOrNone) {
  const Value calls = load_torch_file((data() / "calls.pt").string());
  size_t refused = 0, run = 0;
  for (const char* name : {"nested", "cond", "while_loop", "map", "scan", "sizes", "buffers", "lists", "views"}) {
    const json whole = program_of(name);
    const std::ptrdiff_t index = calls.to_dict()->find(Value(name));
    const Value& call = calls.to_dict()->items()[static_cast<size_t>(index)].second.to_list()->items[0];
    for (unsigned seed = 0; seed < 40; ++seed) {
      json damaged = whole;
      Damage damage(seed * 31 + static_cast<unsigned>(index));
      for (unsigned i = 0; i <= seed % 3; ++i) damage.apply(damaged);
      write_program(name, damaged);
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
      const std::function<bool()> is_late = [&] { return std::chrono::steady_clock::now() > end; };
      try {
        Frame frame;
        std::vector<Value> arguments;
        for (const Value& value : call.to_tuple()->items[0].to_tuple()->items) {
          arguments.push_back(value.is_tensor() ? Value(value.to_tensor().clone()) : value);
        }
        Module::load(file_.string())->method("forward").run(frame, arguments, {.is_cancelled = &is_late});
        ++run;
      } catch (const Error& error) {
        EXPECT_NE(error.code(), ErrorCode::kInternal) << name << ", seed " << seed << ": " << error.what();
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(run, 30);
}

}  // namespace
}  // namespace tensord::jit::pt2_hostile_test
