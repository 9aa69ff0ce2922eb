// The interpreter alone: graphs from text, with operators that this file registers.
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "core/jit/ir/text.h"
#include "core/jit/runtime/interpreter.h"
#include "core/ops/op.h"

namespace tensord::jit::interpreter_test {
namespace {

using ops::Value;

OP("rt::add(int a, int b) -> int").impl([](int64_t a, int64_t b) { return a + b; });
OP("rt::lt(int a, int b) -> bool").impl([](int64_t a, int64_t b) { return a < b; });
OP("rt::fail(int a) -> int").impl([](int64_t a) -> int64_t { fail(ErrorCode::kOutOfRange, "bad\nvalue ", a); });
OP("rt::raise(str message) -> ()").impl([](const std::string& message) { fail(ErrorCode::kScriptRaised, message); });
OP("rt::one_of_two(int a) -> (int, int)").impl([](int64_t a) { return ops::Returns{{Value(a)}}; });
OP("rt::uses(Tensor x) -> int").impl([](const Tensor& x) -> int64_t { return x.impl()->use_count(); });
OP("rt::push(int[] list, int item) -> ()").impl([](const ops::List& list, int64_t item) {
  list->items.emplace_back(item);
});

class Functions final : public FunctionLibrary {
 public:
  void add(const std::string& name, const char* text) {
    auto function = std::make_unique<Function>();
    function->name = name;
    function->graph = parse_graph(text);
    functions_[name] = std::move(function);
  }
  const Function* find_function(const std::string& name) const override {
    const auto found = functions_.find(name);
    return found == functions_.end() ? nullptr : found->second.get();
  }
  const Function* find_method(const std::string& class_name, const std::string& method) const override {
    return find_function(class_name + "." + method);
  }
  ops::TypePtr find_type(const std::string&) const override { return nullptr; }
  std::vector<std::string> method_names(const std::string&) const override { return {}; }

 private:
  std::map<std::string, std::unique_ptr<Function>> functions_;
};

std::unique_ptr<Program> compile(const char* text) { return Program::compile(*parse_graph(text), "test"); }

Value run(const Program& program, std::vector<Value> arguments, Frame& frame, ProgramLibrary* library = nullptr) {
  return Interpreter(frame, library).run(program, arguments);
}

Value run(const char* text, std::vector<Value> arguments) {
  Frame frame;
  const auto program = compile(text);
  const Value first = run(*program, arguments, frame);
  // A second run with the same frame gives the same result: no state remains.
  const Value second = run(*program, arguments, frame);
  if (first.is_int()) {
    EXPECT_EQ(first.to_int(), second.to_int());
  }
  return first;
}

constexpr const char* kSumBelow = R"(graph(%n : int):
  %zero : int = prim::Constant[value=0]()
  %true : bool = prim::Constant[value=True]()
  %sum : int = prim::Loop(%n, %true, %zero)
    block0(%i : int, %acc : int):
      %next : int = rt::add(%acc, %i)
      -> (%true, %next)
  return (%sum))";

std::string error_of(const char* text, std::vector<Value> arguments) {
  try {
    run(text, std::move(arguments));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Interpreter, ItemsOfTuplesFromEitherEnd) {
  const Value pair = ops::make_tuple({Value(7), Value(8)});
  const auto item = [](int index) {
    return concat("graph(%t : Tuple[int, int]):\n  %y : int = prim::TupleIndex[index=", index, "](%t)\n  return (%y)");
  };
  EXPECT_EQ(run(item(0).c_str(), {pair}).to_int(), 7);
  EXPECT_EQ(run(item(1).c_str(), {pair}).to_int(), 8);
  EXPECT_EQ(run(item(-1).c_str(), {pair}).to_int(), 8);
  EXPECT_EQ(run(item(-2).c_str(), {pair}).to_int(), 7);
  EXPECT_NE(error_of(item(2).c_str(), {pair}).find("tuple index 2 out of range 2"), std::string::npos);
  EXPECT_NE(error_of(item(-3).c_str(), {pair}).find("tuple index -1 out of range 2"), std::string::npos);
}

TEST(Interpreter, WantsAsManyArgumentsAsThereAre) {
  EXPECT_NE(error_of(kSumBelow, {}).find("test: expected 1 arguments but got 0"), std::string::npos);
  EXPECT_NE(error_of(kSumBelow, {Value(1), Value(2)}).find("expected 1 arguments but got 2"), std::string::npos);
}

// Only jump instructions print their targets.
TEST(Interpreter, ProgramsAsTexts) {
  const std::string text = to_string(*compile(R"(graph(%n : int, %c : bool):
  %zero : int = prim::Constant[value=0]()
  %sum : int = prim::Loop(%n, %c, %zero)
    block0(%i : int, %acc : int):
      %next : int = rt::add(%acc, %i)
      -> (%c, %next)
  %y : int = prim::If(%c)
    block0():
      %a : int = rt::add(%sum, %n)
      -> (%a)
    block1():
      -> (%n)
  return (%y))"));
  std::map<std::string, int> jumps;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    for (const char* code : {"prim::If", "prim::Loop", "rt::add", "return"}) {
      if (line.find(code) != std::string::npos) jumps[code] += line.find(" -> ") != std::string::npos ? 1 : 100;
    }
  }
  EXPECT_EQ(jumps, (std::map<std::string, int>{{"prim::If", 1}, {"prim::Loop", 1}, {"rt::add", 200}, {"return", 100}}))
      << text;
}

TEST(Interpreter, LoopsAndCarriesValues) {
  EXPECT_EQ(run(kSumBelow, {Value(10)}).to_int(), 45);
  EXPECT_EQ(run(kSumBelow, {Value(0)}).to_int(), 0);
}

TEST(Interpreter, SwapsCarriedValuesInParallel) {
  const Value result = run(R"(graph(%n : int, %a : int, %b : int):
  %true : bool = prim::Constant[value=True]()
  %x : int, %y : int = prim::Loop(%n, %true, %a, %b)
    block0(%i : int, %p : int, %q : int):
      -> (%true, %q, %p)
  %pair : Tuple[int, int] = prim::TupleConstruct(%x, %y)
  return (%pair))",
                           {Value(3), Value(1), Value(2)});
  EXPECT_EQ(result.to_tuple()->items[0].to_int(), 2);
  EXPECT_EQ(result.to_tuple()->items[1].to_int(), 1);
}

TEST(Interpreter, StopsALoopByItsCondition) {
  EXPECT_EQ(run(R"(graph(%limit : int):
  %max : int = prim::Constant[value=9223372036854775807]()
  %zero : int = prim::Constant[value=0]()
  %seven : int = prim::Constant[value=7]()
  %start : bool = rt::lt(%zero, %limit)
  %out : int = prim::Loop(%max, %start, %zero)
    block0(%i : int, %x : int):
      %next : int = rt::add(%x, %seven)
      %more : bool = rt::lt(%next, %limit)
      -> (%more, %next)
  return (%out))",
                {Value(20)})
                .to_int(),
            21);
}

constexpr const char* kNestedIfs = R"(graph(%a : int, %b : int, %c : bool):
  %k : int = rt::add(%a, %b)
  %r : int, %s : int = prim::If(%c)
    block0():
      %d : bool = rt::lt(%a, %b)
      %inner : int = prim::If(%d)
        block0():
          %t : int = rt::add(%k, %a)
          -> (%t)
        block1():
          -> (%k)
      -> (%inner, %a)
    block1():
      %u : int = rt::add(%b, %b)
      %v : int = rt::add(%u, %u)
      -> (%v, %b)
  %sum : int = rt::add(%r, %s)
  return (%sum))";

TEST(Interpreter, BranchesReuseRegistersWithoutMixingThemUp) {
  EXPECT_EQ(run(kNestedIfs, {Value(1), Value(2), Value(true)}).to_int(), 5);
  EXPECT_EQ(run(kNestedIfs, {Value(3), Value(2), Value(true)}).to_int(), 8);
  EXPECT_EQ(run(kNestedIfs, {Value(3), Value(2), Value(false)}).to_int(), 10);
}

TEST(Interpreter, MovesATensorOutOfItsLastUse) {
  // At its last use only the argument slot holds the tensor; before, the register holds it too.
  const char* text = R"(graph(%x : Tensor, %c : bool):
  %early : int = rt::uses(%x)
  %late : int = prim::If(%c)
    block0():
      %n : int = rt::uses(%x)
      -> (%n)
    block1():
      -> (%early)
  %pair : Tuple[int, int] = prim::TupleConstruct(%early, %late)
  return (%pair))";
  const auto program = compile(text);
  Frame frame;
  std::vector<Value> arguments{Value(Tensor::empty(Dims{2}, DType::kFloat32)), Value(true)};
  const Value result = Interpreter(frame, nullptr).run(*program, arguments);
  EXPECT_EQ(result.to_tuple()->items[0].to_int(), 2);
  EXPECT_EQ(result.to_tuple()->items[1].to_int(), 1);
}

TEST(Interpreter, FreesValuesThatABranchDoesNotUse) {
  const char* text = R"(graph(%x : Tensor, %c : bool):
  %zero : int = prim::Constant[value=0]()
  %out : int = prim::If(%c)
    block0():
      %n : int = rt::uses(%x)
      -> (%n)
    block1():
      -> (%zero)
  return (%out))";
  const auto program = compile(text);
  Frame frame;
  const Tensor x = Tensor::empty(Dims{2}, DType::kFloat32);
  run(*program, {Value(x), Value(false)}, frame);
  EXPECT_EQ(x.impl()->use_count(), 1u);
}

TEST(Interpreter, BuildsAndTakesApartContainers) {
  const Value result = run(R"(graph(%a : int, %b : int):
  %list : List[int] = prim::ListConstruct(%a, %b)
  %x : int, %y : int = prim::ListUnpack(%list)
  rt::push(%list, %y)
  %key : str = prim::Constant[value="k"]()
  %dict : Dict[str, int] = prim::DictConstruct(%key, %x)
  %tuple : Tuple[List[int], Dict[str, int]] = prim::TupleConstruct(%list, %dict)
  %p : List[int], %q : Dict[str, int] = prim::TupleUnpack(%tuple)
  %first : List[int] = prim::TupleIndex[index=0](%tuple)
  %is_int : bool = prim::isinstance[types=(str, int)](%x)
  %out : Tuple[List[int], Dict[str, int], bool] = prim::TupleConstruct(%first, %q, %is_int)
  return (%out))",
                           {Value(4), Value(5)});
  const auto& items = result.to_tuple()->items;
  ASSERT_EQ(items[0].to_list()->items.size(), 3u);
  EXPECT_EQ(items[0].to_list()->items[2].to_int(), 5);
  EXPECT_EQ(items[1].to_dict()->items()[0].second.to_int(), 4);
  EXPECT_TRUE(items[2].to_bool());
}

TEST(Interpreter, ForkRunsAtOnceAndWaitGivesTheResult) {
  EXPECT_EQ(run(R"(graph(%a : int):
  %f : Future[int] = prim::fork(%a)
    block0(%b : int):
      %c : int = rt::add(%b, %b)
      -> (%c)
  %r : int = prim::wait(%f)
  return (%r))",
                {Value(21)})
                .to_int(),
            42);
}

std::string error_of(const char* text, std::vector<Value> arguments, ErrorCode* code) {
  try {
    run(text, std::move(arguments));
  } catch (const Error& error) {
    *code = error.code();
    return error.what();
  }
  return "no error";
}

TEST(Interpreter, ErrorsNameThePlaceInTheScriptInOneLine) {
  ErrorCode code{};
  const std::string message = error_of(R"(graph(%a : int):
  %b : int = rt::fail(%a)  # code/m.py:12
  return (%b))",
                                       {Value(7)}, &code);
  EXPECT_EQ(code, ErrorCode::kOutOfRange);
  EXPECT_NE(message.find("bad value 7"), std::string::npos) << message;
  EXPECT_TRUE(message.ends_with(" (code/m.py:12)")) << message;
}

TEST(Interpreter, AScriptsOwnMessageStaysAsItIsAndNamesItsPlace) {
  ErrorCode code{};
  EXPECT_EQ(error_of(R"(graph(%m : str):
  rt::raise(%m)  # code/m.py:3
  return (%m))",
                     {Value("line one\nline two")}, &code),
            "line one\nline two (code/m.py:3)");
  EXPECT_EQ(code, ErrorCode::kScriptRaised);
}

TEST(Interpreter, AnOperatorThatGivesTooLittleIsAnError) {
  ErrorCode code{};
  const std::string message = error_of(R"(graph(%a : int):
  %x : int, %y : int = rt::one_of_two(%a)
  return (%y))",
                                       {Value(7)}, &code);
  EXPECT_EQ(code, ErrorCode::kInternal);
  EXPECT_NE(message.find("gave 1 values instead of 2"), std::string::npos) << message;
}

TEST(Interpreter, UnpackingAnotherLengthIsAnError) {
  ErrorCode code{};
  const std::string message = error_of(R"(graph(%a : int):
  %list : List[int] = prim::ListConstruct(%a, %a, %a)
  %x : int, %y : int = prim::ListUnpack(%list)
  return (%y))",
                                       {Value(7)}, &code);
  EXPECT_NE(message.find("Expected 2 elements in a list but found 3"), std::string::npos) << message;
}

TEST(Interpreter, CancelsBetweenInstructions) {
  const auto program = compile(kSumBelow);
  Frame frame;
  int asked = 0;
  const std::function<bool()> is_cancelled = [&] { return ++asked > 50; };
  std::vector<Value> arguments{Value(int64_t{1} << 60)};
  try {
    Interpreter(frame, nullptr, {.is_cancelled = &is_cancelled}).run(*program, arguments);
    FAIL() << "not cancelled";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCancelled);
  }
  // The frame remains usable.
  EXPECT_EQ(run(*program, {Value(4)}, frame).to_int(), 6);
}

constexpr const char* kCountDown = R"(graph(%n : int):
  %zero : int = prim::Constant[value=0]()
  %minus : int = prim::Constant[value=-1]()
  %more : bool = rt::lt(%zero, %n)
  %out : int = prim::If(%more)
    block0():
      %m : int = rt::add(%n, %minus)
      %r : int = prim::CallFunction[name="f"](%m)
      %s : int = rt::add(%r, %n)
      -> (%s)
    block1():
      -> (%zero)
  return (%out))";

class Calls : public ::testing::Test {
 protected:
  Calls() : library_(functions_, [](const Function& function) { return function.graph->clone(); }) {}
  Functions functions_;
  ProgramLibrary library_;
  Frame frame_;
};

TEST_F(Calls, RecurseUpToABound) {
  functions_.add("f", kCountDown);
  const auto program = compile(kCountDown);
  EXPECT_EQ(run(*program, {Value(100)}, frame_, &library_).to_int(), 5050);
  // 500 calls, including the first one.
  EXPECT_EQ(run(*program, {Value(499)}, frame_, &library_).to_int(), 124750);
  for (const int64_t n : {500, 10000}) {
    try {
      run(*program, {Value(n)}, frame_, &library_);
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
      EXPECT_NE(std::string(error.what()).find("calls nest deeper than 500"), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ(run(*program, {Value(3)}, frame_, &library_).to_int(), 6);
}

TEST_F(Calls, MethodsAreFoundByTheObjectsClass) {
  functions_.add("__torch__.A.get",
                 "graph(%self : __torch__.A):\n  %r : int = prim::Constant[value=1]()\n  return (%r)");
  functions_.add("__torch__.B.get",
                 "graph(%self : __torch__.B):\n  %r : int = prim::GetAttr[name=\"n\"](%self)\n  return (%r)");
  const auto program = compile(R"(graph(%object : __torch__.I):
  %r : int = prim::CallMethod[name="get"](%object)
  return (%r))");
  auto a = std::make_shared<ops::ClassType>("__torch__.A", false);
  auto b = std::make_shared<ops::ClassType>("__torch__.B", false);
  b->add_attribute("n", ops::int_type());
  auto with_slot = make_intrusive<ops::Object>(b);
  with_slot->slots[0] = Value(7);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(run(*program, {Value(make_intrusive<ops::Object>(a))}, frame_, &library_).to_int(), 1);
    EXPECT_EQ(run(*program, {Value(with_slot)}, frame_, &library_).to_int(), 7);
  }
}

TEST_F(Calls, MissingFunctionsAreNamed) {
  const auto program = compile(kCountDown);
  try {
    run(*program, {Value(1)}, frame_, &library_);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_NE(std::string(error.what()).find("no function f"), std::string::npos) << error.what();
  }
}

// Code may use the marks of a "with" directly, and incorrectly.
TEST_F(Calls, MarksOfContextsThatDoNotFit) {
  const auto message_of = [&](const char* text, int64_t n) -> std::string {
    try {
      run(*compile(text), {Value(n)}, frame_, &library_);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message_of("graph(%n : int):\n  prim::Exit(%n)\n  return (%n)\n", 1),
            "prim::Exit: there is no context to leave");
  EXPECT_EQ(message_of("graph(%n : int):\n  prim::Enter(%n)\n  %r : int = rt::fail(%n)\n  return (%r)\n", 1),
            "rt::fail: bad value 1");
  const char* many = R"(graph(%n : int):
  %true : bool = prim::Constant[value=True]()
  prim::Loop(%n, %true)
    block0(%i : int):
      prim::Enter(%n)
      -> (%true)
  return (%n)
)";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(message_of(many, 10000), "no error");
  EXPECT_EQ(message_of(many, 10001), "prim::Enter: contexts nest deeper than 10000");
}

TEST_F(Calls, ManyThreadsShareOneProgram) {
  functions_.add("f", kCountDown);
  const auto program = compile(kCountDown);
  std::vector<std::thread> threads;
  std::vector<int64_t> failures(8, 0);
  for (size_t t = 0; t < failures.size(); ++t) {
    threads.emplace_back([&, t] {
      Frame frame;
      for (int64_t i = 0; i < 500; ++i) {
        const int64_t n = (i + static_cast<int64_t>(t)) % 20;
        failures[t] += run(*program, {Value(n)}, frame, &library_).to_int() != n * (n + 1) / 2;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int64_t count : failures) EXPECT_EQ(count, 0);
}

}  // namespace
}  // namespace tensord::jit::interpreter_test
