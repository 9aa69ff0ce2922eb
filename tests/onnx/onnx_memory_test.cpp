// Memory that small files request: how much, and how often.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/jit/runtime/module.h"
#include "core/tensor/memory/owner_limit.h"
#include "tests/onnx/message.h"

namespace tensord::jit::onnx_memory_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const Message kAbs = node("Abs", {"x"}, {"y"});

// "CODE message", or "none", of a load with this memory limit.
std::string error_of(const Message& message, uint64_t limit_bytes) {
  const fs::path file = fs::path(::testing::TempDir()) / concat("onnx_memory.", getpid(), ".onnx");
  std::ofstream(file, std::ios::binary) << message.str();
  const OwnerId owner = memory_owner("onnx_memory_test");
  const MemoryOwnerScope scope(owner);
  set_owner_limit(owner, limit_bytes);
  std::string error = "none";
  try {
    Module::load(file.string())->method("forward");
  } catch (const Error& caught) {
    error = concat(to_string(caught.code()), " ", caught.what());
  }
  set_owner_limit(owner, 0);
  fs::remove(file);
  return error;
}

// The requested memory is summed up before any is allocated.
TEST(OnnxMemory, SparseTensorsAreSummedUp) {
  const auto sparse = [](const std::string& name) {
    return Message()
        .message(1, float_tensor(name, {1}, {5}))
        .message(2, Message().number(1, 1).number(2, 7).number(7, 0))
        .number(3, 512)
        .number(3, 512);
  };
  const auto sparse_node = [&](const std::string& name) {
    return node("Constant", {}, {name}, {Message().bytes(1, "sparse_value").message(22, sparse("s")).number(20, 11)});
  };
  Message initializers = graph({kAbs}, {"x"}, {"y"});
  for (int i = 0; i < 16; ++i) initializers.message(15, sparse(concat("s", i)));
  std::vector<Message> nodes{kAbs};
  for (int i = 0; i < 8; ++i) nodes.push_back(sparse_node(concat("c", i)));
  Message branch = graph({sparse_node("t")}, {}, {"t"});
  for (int i = 0; i < 7; ++i) branch.message(15, sparse(concat("s", i)));
  nodes.push_back(
      node("If", {"c"}, {"z"}, {graph_attribute("then_branch", branch), graph_attribute("else_branch", branch)}));

  const std::string asks = "asks for 16777216 bytes of memory, more than the 8388608 that it may have";
  EXPECT_THAT(error_of(model(initializers), 8 << 20), HasSubstr(asks));
  EXPECT_THAT(error_of(model(graph({kAbs}, {"x"}, {"y"}).message(15, sparse("s"))), 8 << 20), "none");
  EXPECT_THAT(error_of(model(graph(nodes, {"x", "c"}, {"y"})), 8 << 20),
              HasSubstr("asks for 25165824 bytes of memory"));
}

// The tensors of a function are created once, however often it is called.
TEST(OnnxMemory, ConstantsOfFunctionsAreMadeOnce) {
  const std::vector<float> ones(size_t{1} << 16, 1);
  Message function = Message().bytes(1, "f").bytes(4, "a").bytes(5, "b").message(9, opset(17)).bytes(10, "here");
  function.message(7, node("Constant", {}, {"c"},
                           {Message().bytes(1, "value").message(5, float_tensor("", {1 << 16}, ones)).number(20, 4)}));
  function.message(7, node("Add", {"a", "c"}, {"b"}));
  std::vector<Message> calls;
  for (int i = 0; i < 200; ++i)
    calls.push_back(node("f", {i ? concat("v", i) : "x"}, {concat("v", i + 1)}, {}, "here"));
  EXPECT_EQ(error_of(model(graph(calls, {"x"}, {"v200"}), 17, {function}).message(8, opset(1, "here")), 8 << 20),
            "none");
}

}  // namespace
}  // namespace tensord::jit::onnx_memory_test
