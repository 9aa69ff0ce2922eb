// Results are written to memory supplied by the caller if that is safe.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "core/jit/ir/text.h"
#include "core/jit/passes/passes.h"
#include "core/jit/runtime/interpreter.h"

namespace tensord::jit::result_memory_test {
namespace {

using ops::Value;

constexpr size_t kBytes = 4096;

class ResultMemoryTest : public ::testing::Test {
 protected:
  // `body` uses %x and %y, of eight elements each.
  void compile(const std::string& body, const std::string& result, DType dtype = DType::kFloat32) {
    const auto graph = parse_graph(
        "graph(%x : Tensor, %y : Tensor):\n"
        "  %one : int = prim::Constant[value=1]()\n"
        "  %none : NoneType = prim::Constant[value=None]()\n"
        "  %halves : List[int] = prim::Constant[value=[2, 4]]()\n" +
        body + "  return (" + result + ")\n");
    for (GraphValue* input : graph->inputs()) input->set_known(Tensor::meta_strided(Dims{8}, Dims{1}, dtype));
    PassContext context;
    for (auto* pass : {propagate_constants, propagate_shapes, eliminate_dead_code, plan_segments}) {
      pass(*graph, context);
    }
    program = Program::compile(*graph, "test", {});
    ASSERT_GT(plan_totals(*program).plans, 0u) << to_string(*program);
    x = Tensor::empty(Dims{8}, dtype);
    y = Tensor::empty(Dims{8}, dtype);
    for (int64_t i = 0; i < 8; ++i) {
      if (dtype == DType::kFloat32) {
        x.data<float>()[i] = static_cast<float>(i);
        y.data<float>()[i] = 10;
      } else {
        x.data<int64_t>()[i] = i;
        y.data<int64_t>()[i] = 10;
      }
    }
  }

  Storage memory(size_t offset = 0, size_t size_bytes = kBytes) {
    return wrap_storage(bytes + offset, size_bytes, [] {});
  }

  Value run(const std::vector<ResultMemory>& where) {
    std::memset(bytes, 0xee, sizeof(bytes));
    std::vector<Value> arguments{x, y};
    return Interpreter(frame, nullptr, {.result_memory = where}).run(*program, arguments);
  }

  bool is_untouched() const {
    return std::all_of(bytes, bytes + sizeof(bytes), [](unsigned char byte) { return byte == 0xee; });
  }

  alignas(64) unsigned char bytes[kBytes];
  std::unique_ptr<Program> program;
  Frame frame;
  Tensor x, y;
};

constexpr const char* kSum = "  %sum : Tensor = aten::add.Tensor(%x, %y, %one)\n";

TEST_F(ResultMemoryTest, IsWrittenByTheLastCall) {
  compile(std::string(kSum) + "  %out : Tensor = aten::mul.Tensor(%sum, %y)\n", "%out");
  const Value result = run({{0, memory(64)}});
  EXPECT_EQ(result.to_tensor().raw_data(), bytes + 64);
  EXPECT_EQ(result.to_tensor().data<float>()[3], 130.f);
}

TEST_F(ResultMemoryTest, IsNotKept) {
  compile(kSum, "%sum");
  const Storage given = memory();
  Value result = run({{0, given}});
  EXPECT_EQ(result.to_tensor().raw_data(), bytes);
  result = {};
  EXPECT_EQ(given->use_count(), 1u);
  const Value other = run({});
  EXPECT_TRUE(is_untouched());
  EXPECT_EQ(other.to_tensor().data<float>()[7], 17.f);
}

TEST_F(ResultMemoryTest, GoesByTheNumberInTuples) {
  compile(std::string(kSum) +
              "  %product : Tensor = aten::mul.Tensor(%x, %y)\n"
              "  %difference : Tensor = aten::sub.Tensor(%x, %y, %one)\n"
              "  %inner : Tuple[Tensor, Tensor] = prim::TupleConstruct(%sum, %product)\n"
              "  %out : Tuple[Tuple[Tensor, Tensor], Tensor] = prim::TupleConstruct(%inner, %difference)\n",
          "%out");
  const Value result = run({{1, memory(128)}, {2, memory(1024)}});
  const auto& outer = result.to_tuple()->items;
  const auto& inner = outer[0].to_tuple()->items;
  EXPECT_EQ(inner[1].to_tensor().raw_data(), bytes + 128);
  EXPECT_EQ(outer[1].to_tensor().raw_data(), bytes + 1024);
  EXPECT_EQ(inner[0].to_tensor().data<float>()[2], 12.f);
  EXPECT_EQ(inner[1].to_tensor().data<float>()[2], 20.f);
  EXPECT_EQ(outer[1].to_tensor().data<float>()[2], -8.f);
}

TEST_F(ResultMemoryTest, IsLeftWhereItDoesNotFit) {
  compile(kSum, "%sum");
  for (const auto& [offset, size_bytes] : {std::pair<size_t, size_t>{4, 64}, {0, 31}}) {
    const Value result = run({{0, memory(offset, size_bytes)}});
    EXPECT_TRUE(is_untouched()) << offset;
    EXPECT_EQ(result.to_tensor().data<float>()[0], 10.f);
  }
}

TEST_F(ResultMemoryTest, IsLeftWhereTwoResultsShareMemory) {
  compile(std::string(kSum) +
              "  %view : Tensor = aten::view(%sum, %halves)\n"
              "  %out : Tuple[Tensor, Tensor] = prim::TupleConstruct(%sum, %view)\n",
          "%out");
  const Value result = run({{0, memory()}});
  EXPECT_TRUE(is_untouched());
  EXPECT_EQ(result.to_tuple()->items[1].to_tensor().data<float>()[7], 17.f);
}

TEST_F(ResultMemoryTest, IsLeftWhereTheResultHasAnotherUse) {
  compile(std::string(kSum) + "  %out : Tuple[Tensor, Tensor] = prim::TupleConstruct(%sum, %sum)\n", "%out");
  run({{0, memory()}, {1, memory(1024)}});
  EXPECT_TRUE(is_untouched());
}

TEST_F(ResultMemoryTest, HoldsNoIntegersThatAreReadBack) {
  compile(std::string(kSum) +
              "  %product : Tensor = aten::mul.Tensor(%sum, %y)\n"
              "  %out : Tuple[Tensor, Tensor] = prim::TupleConstruct(%sum, %product)\n",
          "%out", DType::kInt64);
  const Value result = run({{0, memory()}, {1, memory(1024)}});
  EXPECT_NE(result.to_tuple()->items[0].to_tensor().raw_data(), bytes);
  EXPECT_EQ(result.to_tuple()->items[1].to_tensor().raw_data(), bytes + 1024);
  EXPECT_EQ(result.to_tuple()->items[1].to_tensor().data<int64_t>()[1], 110);
}

}  // namespace
}  // namespace tensord::jit::result_memory_test
