#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/error.h"
#include "core/jit/archive/zip.h"
#include "core/jit/archive/zip_writer.h"
#include "core/jit/runtime/module.h"
#include "tests/support/places.h"

// Programs of tests/pt2/data with a part changed.
namespace tensord::jit {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

// "CODE message", or "none".
inline std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return concat(to_string(error.code()), " ", error.what());
  }
  return "none";
}

class Pt2Parts : public ::testing::Test {
 protected:
  Pt2Parts() : file_(fs::path(::testing::TempDir()) / concat("pt2_parts.", getpid(), ".pt2")) {}
  ~Pt2Parts() override { fs::remove(file_); }

  // The error of loading a program of tests/pt2/data after a change.
  std::string error_after(const std::string& name, const std::function<void(json&)>& change) {
    const auto zip = ZipArchive::open((fs::path(tests_folder()) / "pt2" / "data" / (name + ".pt2")).string());
    fs::remove(file_);
    ZipWriter writer(file_.string());
    for (const ZipArchive::Entry& entry : zip->entries()) {
      std::string text(zip->read(entry));
      if (entry.name == "models/model.json" || entry.name == "serialized_exported_program.json") {
        json program = json::parse(text);
        change(program);
        text = program.dump();
      }
      writer.add("m/" + entry.name, text);
    }
    writer.finish();
    return error_of([&] { Module::load(file_.string())->method("forward"); });
  }
  static json& module_of(json& program) { return program["graph_module"]; }
  static json& graph_of(json& program) { return module_of(program)["graph"]; }
  static json& spec(json& program, const char* list, size_t index) {
    return module_of(program)["signature"][list][index];
  }
  // The node of a higher-order operator, and the graph that is its argument.
  static json& higher_order(json& program) {
    for (json& node : graph_of(program)["nodes"]) {
      if (node["target"].get<std::string>().starts_with("torch.ops.higher_order.")) return node;
    }
    ADD_FAILURE() << "no such node";
    return program;
  }
  static json& body(json& program, size_t argument) {
    return higher_order(program)["inputs"][argument]["arg"]["as_graph"]["graph"];
  }

  const fs::path file_;
};

}  // namespace tensord::jit
