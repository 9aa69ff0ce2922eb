// Names in an exported program: valid in Python, and unique.
#include <gtest/gtest.h>

#include "core/jit/exporters/pt2/program_writer.h"

namespace tensord::jit::pt2::exporter_names_test {
namespace {

std::string given_name(ProgramWriter& writer, const std::string& hint) {
  const Tensor example = Tensor::empty({{2}}, DType::kFloat32);
  return writer.add_input({.name = hint, .first = example, .second = example, .fixed = {}});
}

TEST(Pt2ExportNames, WhatPythonTakes) {
  ProgramWriter writer;
  for (const auto& [hint, name] : std::vector<std::pair<std::string, std::string>>{
           {"azAZ09", "azAZ09"}, {"0x", "v0x"}, {"9x", "v9x"}, {"data:0", "data_0"}, {"`{@[/:", "______"}, {"", "v"}})
    EXPECT_EQ(given_name(writer, hint), name);
}

TEST(Pt2ExportNames, EachOnce) {
  ProgramWriter writer;
  EXPECT_EQ(given_name(writer, "x"), "x");
  EXPECT_EQ(given_name(writer, "x"), "x_1");
  EXPECT_EQ(given_name(writer, "x"), "x_2");
  EXPECT_EQ(given_name(writer, "x_1"), "x_1_1");
}

TEST(Pt2ExportNames, WhatMeansSomethingElseInPython) {
  ProgramWriter writer;
  for (const std::string hint : {"in", "class", "self", "None", "lambda", "torch", "device"})
    EXPECT_EQ(given_name(writer, hint), hint + "_1");
}

}  // namespace
}  // namespace tensord::jit::pt2::exporter_names_test
