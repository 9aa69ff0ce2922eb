// Invalid parts of an exported program: sizes and guards as strings, JSON, containers, bodies of operators.
#include <utility>
#include <vector>

#include "core/jit/importers/pt2/expression.h"
#include "core/jit/importers/pt2/json.h"
#include "core/jit/importers/pt2/pytree.h"
#include "tests/pt2/parts_fixture.h"

namespace tensord::jit::pt2_parts_test {
namespace {

using ::testing::ElementsAre;

// The expression in prefix notation.
std::string shown(const pt2::Expression& e) {
  using Kind = pt2::Expression::Kind;
  std::string out;
  switch (e.kind) {
    case Kind::kInt: return std::to_string(e.number);
    case Kind::kFloat: return concat(e.real);
    case Kind::kBool: return e.number != 0 ? "true" : "false";
    case Kind::kText: return "'" + e.text + "'";
    case Kind::kSymbol: return e.text;
    case Kind::kSource:
      for (const std::string& part : e.path) out += "[" + part + "]";
      return e.call.empty() ? out : concat(out, ".", e.call, ":", e.number);
    case Kind::kCall: break;
  }
  for (const pt2::Expression& operand : e.operands) out += " " + shown(operand);
  return "(" + e.text + out + ")";
}
std::string parsed(const std::string& text) {
  try {
    return shown(pt2::parse_expression(text));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnimplemented) << text;
    return error.what();
  }
}

TEST(Pt2Expressions, Forms) {
  const std::pair<const char*, const char*> forms[] = {
      {"2*s0 + 1", "(+ (* 2 s0) 1)"},
      {" 2 * ( s0 + 1 ) ", "(* 2 (+ s0 1))"},
      {"a - b - c", "(- (- a b) c)"},
      {"a // b / c % d", "(% (/ (// a b) c) d)"},
      {"a / b", "(/ a b)"},
      {"a*b**2", "(* a (** b 2))"},
      {"a**b**c", "(** a (** b c))"},
      {"-a**2", "(neg (** a 2))"},
      {"not a == b and c != d or e", "(or (and (not (== a b)) (!= c d)) e)"},
      {"a <= b", "(<= a b)"},
      {"a >= b", "(>= a b)"},
      {"a < b", "(< a b)"},
      {"a > b", "(> a b)"},
      {"note + orb + andy", "(+ (+ note orb) andy)"},  // names that begin like operators
      {"True", "true"},
      {"false", "false"},
      {"1.5", "1.5"},
      {".5", "0.5"},
      {"2e3", "2000"},
      {"'a b'", "'a b'"},
      {"\"it's\"", "'it's'"},
      {"Integer(7)", "7"},
      {"Add(Integer(1), Symbol('s0', positive=True, integer=True))", "(+ 1 s0)"},
      {"Symbol(\"s1\")", "s1"},
      {"Max(1, s0, s1)", "(max 1 s0 s1)"},
      {"Min( s0 , 3 )", "(min s0 3)"},
      {"L['x'].size()[0] % 8 == 0", "(== (% [x].size:0 8) 0)"},
      {"L['x'][1].shape[2]", "[x][1].size:2"},
      {"L['x'].storage_offset()", "[x].storage_offset:0"},
  };
  for (const auto& [text, expected] : forms) {
    EXPECT_EQ(parsed(text), expected) << text;
  }
  EXPECT_EQ(parsed("L['x'].field.size()[1]"), "[x][field].size:1");
  EXPECT_THAT(pt2::symbols_of(pt2::parse_expression("a + b*a + Symbol('c') + 1")), ElementsAre("a", "b", "c"));
}

TEST(Pt2Expressions, WhatIsNone) {
  const std::pair<const char*, const char*> wrong[] = {
      {"", "it ends too early"},
      {"   ", "it ends too early"},
      {"a +", "it ends too early"},
      {"(a", "expected ')' at character 2"},
      {"a b", "unexpected 'b'"},
      {"a)", "unexpected ')'"},
      {"&", "unexpected '&'"},
      {".", "a number is malformed"},
      {"1e999", "a number is malformed"},
      {"'a", "a text does not end"},
      {"\"a'", "a text does not end"},
      {"os.path", "'os.path' is not known"},
      {"exec(1)", "'exec' is not known"},
      {"Integer(1, 2)", "'Integer' is not known"},
      {"Max()", "'Max' has no operands"},
      {"Max(1", "expected ')'"},
      {"Symbol(s0)", "a symbol has no name"},
      {"Symbol(", "a symbol has no name"},
      {"Symbol('s0'", "a symbol does not end"},
      {"Symbol('s0', positive=True", "a symbol does not end"},
      {"L[", "it ends too early"},
      {"L['x'", "expected ']'"},
      {"L[1.5]", "an index is not an integer"},
      {"L['x'].size()[0.5]", "an index is not an integer"},
      {"L['x'].size(0)", "expected ')'"},
      {"L['x'].size()[0", "expected ']'"},
  };
  for (const auto& [text, message] : wrong) {
    EXPECT_THAT(parsed(text), HasSubstr(concat("'", text, "': "))) << text;
    EXPECT_THAT(parsed(text), HasSubstr(message)) << text;
  }
  EXPECT_EQ(parsed("99999999999999999999"), "1e+20");
}

// Each limit, and one beyond it.
TEST(Pt2Expressions, Bounds) {
  const auto sum = [](int count) {
    std::string text = "a";
    for (int i = 1; i < count; ++i) text += "+a";
    return text;
  };
  EXPECT_THAT(parsed(sum(102)), HasSubstr("(+ (+ "));
  EXPECT_THAT(parsed(sum(103)), HasSubstr("it is too long"));
  const auto spaces = [](size_t size) { return std::string(size - 1, ' ') + "7"; };
  EXPECT_EQ(parsed(spaces(1 << 16)), "7");
  EXPECT_THAT(parsed(spaces((1 << 16) + 1)), HasSubstr("it is too long"));
  const auto nested = [](int depth) { return std::string(static_cast<size_t>(depth), '-') + "7"; };
  const auto is_taken = [&](int depth) { return parsed(nested(depth)).starts_with("(neg"); };
  EXPECT_TRUE(is_taken(50));
  EXPECT_FALSE(is_taken(100));
  EXPECT_THAT(parsed(nested(100)), HasSubstr("it is nested too deep"));
  EXPECT_THAT(parsed(std::string(101, '(') + "7" + std::string(101, ')')), HasSubstr("it is nested too deep"));
}

TEST(Pt2Json, Unions) {
  const auto error = [](const char* text) { return error_of([&] { pt2::union_case(json::parse(text), "spec"); }); };
  const json one = json::parse(R"({"as_int": 3, "as_none": null})");
  EXPECT_EQ(pt2::union_case(one, "spec").name, "as_int");
  EXPECT_EQ(pt2::union_case(one, "spec").value, 3);
  EXPECT_EQ(error(R"({"as_int": 3, "as_text": "a"})"), "DATA_LOSS spec: two cases of a union, 'as_int' and 'as_text'");
  EXPECT_EQ(error("{}"), "DATA_LOSS spec: a union without a case");
  EXPECT_EQ(error(R"({"as_int": null})"), "DATA_LOSS spec: a union without a case");
  EXPECT_EQ(error("[1]"), "DATA_LOSS spec: expected an object but got array");
}

TEST(Pt2Json, Members) {
  const json object = json::parse(R"({"int": 1, "text": "a", "bool": true, "list": [], "object": {}, "none": null})");
  EXPECT_EQ(pt2::find_member(object, "none"), nullptr);
  EXPECT_EQ(pt2::find_member(object, "other"), nullptr);
  EXPECT_EQ(pt2::find_member(json::array(), "int"), nullptr);
  EXPECT_NE(pt2::find_member(object, "int"), nullptr);
  EXPECT_EQ(error_of([&] { pt2::member(object, "other", "here"); }), "DATA_LOSS here: 'other' is missing");
  EXPECT_EQ(error_of([&] { pt2::member(json(1), "other", "here"); }),
            "DATA_LOSS here: expected an object but got number");
  EXPECT_EQ(error_of([&] { pt2::string_member(object, "int", "here"); }),
            "DATA_LOSS here: int: expected a text but got number");
  EXPECT_EQ(error_of([&] { pt2::int_member(object, "text", "here"); }),
            "DATA_LOSS here: text: expected an integer but got string");
  EXPECT_EQ(error_of([&] { pt2::bool_member(object, "int", "here"); }),
            "DATA_LOSS here: int: expected true or false but got number");
  EXPECT_EQ(error_of([&] { pt2::array_member(object, "object", "here"); }),
            "DATA_LOSS here: object: expected a list but got object");
  EXPECT_EQ(error_of([&] { pt2::object_member(object, "list", "here"); }),
            "DATA_LOSS here: list: expected an object but got array");
}

// PyTorch 2.5's non-finite numbers, which are not valid JSON; and metadata of nodes, which is skipped.
TEST(Pt2Json, WhatIsReadOtherwise) {
  EXPECT_EQ(pt2::parse_json(R"([Infinity, -Infinity, NaN, "NaN \"NaN\" Infinity"])", "x"),
            json::parse(R"(["Infinity", "-Infinity", "NaN", "NaN \"NaN\" Infinity"])"));
  EXPECT_EQ(pt2::parse_json(R"({"a\\": NaN})", "x"), json::parse(R"({"a\\": "NaN"})"));
  EXPECT_EQ(
      pt2::parse_json(R"({"target": "t", "metadata": {"a": [1, {"b": 2}], "stack_trace": "s", "c": 3}, "z": 1})", "x"),
      json::parse(R"({"target": "t", "metadata": {"stack_trace": "s"}, "z": 1})"));
  EXPECT_EQ(pt2::parse_json(R"({"metadata": {"a": 1}})", "x"), json::parse(R"({"metadata": {"a": 1}})"));
  const auto deep = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(error_of([&] { pt2::parse_json(deep(200), "x"); }), "none");
  EXPECT_EQ(error_of([&] { pt2::parse_json(deep(201), "x"); }), "RESOURCE_EXHAUSTED x: nested more than 200 deep");
  const auto unread = [&](size_t depth) {
    return error_of([&] { pt2::parse_json(R"({"target": 1, "metadata": {"a": )" + deep(depth) + "}}", "x"); });
  };
  EXPECT_EQ(unread(200), "none");
  EXPECT_EQ(unread(201), "RESOURCE_EXHAUSTED x: nested more than 200 deep");
}

TEST(Pt2Pytrees, Names) {
  const auto below = [](const std::string& prefix, const std::string& tree, const pt2::NamedTuples& tuples = {}) {
    return pt2::leaf_names(pt2::parse_pytree("[1, " + tree + "]", tuples, "spec"), prefix);
  };
  const auto names = [&](const std::string& tree, const pt2::NamedTuples& tuples = {}) {
    return below("x", tree, tuples);
  };
  const std::string leaf = R"({"type": null, "context": null, "children_spec": []})";
  const auto node = [&](const std::string& context) {
    return R"({"type": "t", "context": )" + context + R"(, "children_spec": [)" + leaf + ", " + leaf + "]}";
  };
  EXPECT_THAT(names(leaf), ElementsAre("x"));
  EXPECT_THAT(below("", node("null")), ElementsAre("", ""));  // positional children have no names
  EXPECT_THAT(below("", node(R"("[\"a\", \"b\"]")")), ElementsAre("a", "b"));
  EXPECT_THAT(names(node("null")), ElementsAre("x.0", "x.1"));
  EXPECT_THAT(names(node(R"("[\"a\", \"b\"]")")), ElementsAre("x.a", "x.b"));
  EXPECT_THAT(names(node(R"("[\"a\", 7]")")), ElementsAre("x.a", "x.7"));
  EXPECT_THAT(names(node(R"("[[\"a\", \"b\"], []]")")), ElementsAre("x.a", "x.b"));
  EXPECT_THAT(names(node(R"("[\"a\"]")")), ElementsAre("x.0", "x.1"));               // too few
  EXPECT_THAT(names(node(R"("[\"a\", \"b\", null]")")), ElementsAre("x.0", "x.1"));  // and another type
  EXPECT_THAT(names(node(R"("[[\"a\"], [\"c\", \"d\"]]")")), ElementsAre("x.c", "x.d"));
  EXPECT_THAT(names(node(R"("no JSON")")), ElementsAre("x.0", "x.1"));
  EXPECT_THAT(names(node(R"("\"my.Pair\"")"), {{"my.Pair", {"l", "r"}}}), ElementsAre("x.l", "x.r"));
  EXPECT_THAT(names(node(R"("\"my.Pair\"")"), {{"my.Pair", {"l", "r", "s"}}}), ElementsAre("x.0", "x.1"));
  EXPECT_THAT(names(node(R"("\"other\"")"), {{"my.Pair", {"l", "r"}}}), ElementsAre("x.0", "x.1"));
}

TEST(Pt2Pytrees, WhatIsNone) {
  const auto error = [](const std::string& text) { return error_of([&] { pt2::parse_pytree(text, {}, "spec"); }); };
  const std::string leaf = R"({"type": null, "context": null, "children_spec": []})";
  // A string that is not JSON gives no names; one that is nested too deep is still refused.
  const auto with_context = [&](const std::string& text) {
    return error(R"([1, {"type": "t", "context": ")" + text + R"(", "children_spec": [)" + leaf + "]}]");
  };
  EXPECT_EQ(with_context("no JSON"), "none");
  EXPECT_THAT(with_context(std::string(300, '[') + std::string(300, ']')), HasSubstr("nested more than 200 deep"));
  EXPECT_EQ(error("[1, " + leaf + "]"), "none");
  EXPECT_EQ(error("[1]"), "DATA_LOSS spec: no TreeSpec");
  EXPECT_EQ(error("[1, " + leaf + ", 2]"), "DATA_LOSS spec: no TreeSpec");
  EXPECT_EQ(error("{}"), "DATA_LOSS spec: no TreeSpec");
  EXPECT_EQ(error("[2, " + leaf + "]"), "UNIMPLEMENTED spec: protocol 2 of TreeSpec is not known");
  EXPECT_EQ(error(R"([1, {"type": null, "children_spec": [)" + leaf + "]}]"), "DATA_LOSS spec: a leaf has children");
  const auto deep = [&](int depth) {
    std::string tree = leaf;
    for (int i = 0; i < depth; ++i) tree = R"({"type": "t", "context": null, "children_spec": [)" + tree + "]}";
    return error("[1, " + tree + "]");
  };
  EXPECT_EQ(deep(30), "none");
  EXPECT_EQ(deep(31), "RESOURCE_EXHAUSTED spec: nested more than 30 deep");
}

TEST_F(Pt2Parts, NothingChanged) {
  for (const char* name : {"conv", "cond", "while_loop", "map", "scan", "buffers_core", "input_mutation_core"}) {
    EXPECT_EQ(error_after(name, [](json&) {}), "none") << name;
  }
}

TEST_F(Pt2Parts, HigherOrderOperators) {
  const auto refused = [&](const char* name, const std::function<void(json&)>& change, const std::string& why) {
    EXPECT_THAT(error_after(name, change), HasSubstr(why)) << name;
  };
  const auto again = [](json& list) { list.push_back(list[0]); };
  refused(
      "scan", [](json& p) { higher_order(p)["inputs"] = json::array({higher_order(p)["inputs"][0]}); },
      "scan: argument 1 is missing");
  refused(
      "cond",
      [](json& p) {
        higher_order(p)["inputs"][1]["arg"] = json{{"as_int", 1}};
      },
      "argument 1 is as_int, not a graph");
  refused(
      "cond", [&](json& p) { again(body(p, 1)["inputs"]); }, "a body takes ");
  refused(
      "cond", [&](json& p) { again(body(p, 2)["outputs"]); }, "cond: the branches differ in results");
  refused(
      "while_loop", [&](json& p) { again(body(p, 0)["outputs"]); }, "while_loop: a condition has 2 results");
  refused(
      "while_loop", [](json& p) { body(p, 0)["outputs"] = json::array(); }, "while_loop: a condition has 0 results");
  refused(
      "while_loop", [&](json& p) { again(body(p, 1)["outputs"]); },
      "while_loop: a body takes 2 values, but is given 3");
  refused(
      "while_loop",
      [](json& p) {
        json& outputs = body(p, 1)["outputs"];
        outputs.erase(1);
      },
      "while_loop: a body takes 2 values, but is given 1");
  refused(
      "associative_scan", [&](json& p) { again(body(p, 0)["outputs"]); },
      "associative_scan: the body gives another number of values");
  refused(
      "associative_scan",
      [](json& p) {
        higher_order(p)["inputs"][1]["arg"] = json{{"as_tensors", json::array()}};
      },
      "associative_scan: there is nothing to go over");
  // Numbers instead of tensors.
  refused(
      "while_loop",
      [](json& p) {
        body(p, 1)["outputs"][1] = json{{"as_int", 3}};
      },
      "while_loop: value 1 that is carried changes its type");
  refused(
      "cond",
      [](json& p) {
        body(p, 1)["outputs"][0] = json{{"as_int", 3}};
      },
      "cond: result 0 has another type in each branch");
  refused(
      "map",
      [](json& p) {
        higher_order(p)["inputs"][1]["arg"] = json{{"as_tensors", json::array()}};
      },
      "map: there is nothing to go over");
  refused(
      "scan",
      [](json& p) {
        higher_order(p)["inputs"][2]["arg"] = json{{"as_tensors", json::array()}};
      },
      "scan: there is nothing to go over");
  refused(
      "scan", [](json& p) { body(p, 0)["outputs"] = json::array(); }, "scan: the body gives less than it carries");
  refused(
      "cond", [](json& p) { higher_order(p)["target"] = "torch.ops.higher_order.other"; }, "other");
  // The direction argument of PyTorch 2.6.
  const auto argument = [](size_t index, const json& value) {
    return [=](json& p) { higher_order(p)["inputs"][index]["arg"] = value; };
  };
  EXPECT_EQ(error_after("scan_torch26", argument(3, json{{"as_int", 0}})), "none");
  refused("scan_torch26", argument(3, json{{"as_int", 1}}), "scan of PyTorch 2.6 over another dimension than 0");
  refused("scan_torch26", argument(4, json{{"as_bool", true}}), "scan of PyTorch 2.6 in reverse");
  refused("scan_torch26", argument(4, json{{"as_int", 0}}), "scan of PyTorch 2.6 in reverse");
  refused("no_grad", argument(0, json{{"as_int", 1}}), "the mode is not a constant");
  refused("autocast_off", argument(2, json{{"as_bool", true}}), "autocast on the CPU is not supported");
}

TEST_F(Pt2Parts, MoreResultsThanABodyGives) {
  EXPECT_THAT(error_after("cond",
                          [](json& p) {
                            json& outputs = higher_order(p)["outputs"];
                            json& list = outputs[0].contains("as_tensors") ? outputs[0]["as_tensors"] : outputs;
                            json more = list[0];
                            (more.contains("as_tensor") ? more["as_tensor"] : more)["name"] = "more";
                            list.push_back(more);
                          }),
              HasSubstr("cond: has more results than its body"));
}

TEST_F(Pt2Parts, Signatures) {
  const auto refused = [&](const char* name, const std::function<void(json&)>& change, const std::string& why) {
    EXPECT_THAT(error_after(name, change), HasSubstr(why)) << name;
  };
  const auto find = [](json& program, const char* list, const char* kind) -> json& {
    for (json& one : module_of(program)["signature"][list]) {
      if (one.contains(kind) && !one[kind].is_null()) return one[kind];
    }
    ADD_FAILURE() << kind;
    return program;
  };
  refused(
      "conv", [&](json& p) { find(p, "input_specs", "parameter")["parameter_name"] = "other"; },
      "tensor 'other' is not in the file");
  refused(
      "conv", [](json& p) { graph_of(p)["tensor_values"].erase("x"); }, "tensor_values has no 'x'");
  refused(
      "conv",
      [](json& p) {
        spec(p, "input_specs", 0) = json{{"strange", json::object()}};
      },
      "an input of kind strange is not supported");
  refused(
      "conv",
      [](json& p) {
        spec(p, "output_specs", 0) = json{{"strange", json::object()}};
      },
      "a result of kind strange is not supported");
  refused(
      "conv",
      [](json& p) {
        json& outputs = module_of(p)["signature"]["output_specs"];
        outputs.push_back(outputs[0]);
      },
      "gives 2 values, but out_spec has 1");
  refused(
      "buffers_core", [&](json& p) { find(p, "output_specs", "buffer_mutation")["buffer_name"] = "other"; },
      "output_specs: there is no tensor 'other'");
  refused(
      "buffers_core", [&](json& p) { find(p, "output_specs", "buffer_mutation")["arg"]["name"] = "other"; },
      "output_specs: there is no value 'other'");
  refused(
      "input_mutation_core",
      [&](json& p) { find(p, "output_specs", "user_input_mutation")["user_input_name"] = "other"; },
      "output_specs: there is no input 'other'");
  refused(
      "conv",
      [](json& p) {
        json& inputs = module_of(p)["signature"]["input_specs"];
        inputs.push_back(inputs.back());
      },
      "appears twice");
  refused(
      "conv", [](json& p) { module_of(p)["module_call_graph"] = json::array(); },
      "module_call_graph: the program's own entry is missing");
  refused(
      "conv",
      [](json& p) {
        module_of(p)["module_call_graph"][0]["signature"]["in_spec"] =
            R"([1, {"type": null, "context": null, "children_spec": []}])";
      },
      "in_spec: expected arguments and keyword arguments");
}

TEST_F(Pt2Parts, SizesAndGuards) {
  const auto guard = [&](const std::string& text) {
    return error_after("conv", [&](json& p) { p["guards_code"] = {text}; });
  };
  EXPECT_EQ(guard("L['x'].size()[0] >= 0"), "none");
  EXPECT_EQ(guard("True"), "none");
  EXPECT_EQ(guard("L['x'].numel() >= 0 and L['x'].dim() == 4 and L['x'].storage_offset() == 0"), "none");
  EXPECT_THAT(guard("L['x'].size()[0] + 1"), HasSubstr("': is not a condition"));
  EXPECT_THAT(guard("L['other'].size()[0] == 1"), HasSubstr("'other': is not an input of the program"));
  EXPECT_THAT(guard("L['x'].grad()[0] == 1"), HasSubstr("'x.grad()': is not supported"));
  EXPECT_THAT(guard("s99 == 1"), HasSubstr("'s99': is not known"));
  EXPECT_THAT(guard("abs(1) == 1"), HasSubstr("'abs': is not supported"));
  EXPECT_THAT(error_after("conv", [](json& p) { p["guards_code"] = {1}; }), HasSubstr("guards_code: expected a text"));
  EXPECT_THAT(error_after("conv",
                          [](json& p) {
                            graph_of(p)["tensor_values"]["x"]["sizes"][0] = json{{"as_text", {{"expr_str", "s0"}}}};
                          }),
              HasSubstr("a size of kind as_text"));
}

}  // namespace
}  // namespace tensord::jit::pt2_parts_test
