// A program's requirements on its inputs: guards over sizes, derived sizes, ranges, dtypes; and archives with wrong
// tensors.
#include <cmath>
#include <fstream>
#include <sstream>

#include "core/ops/run.h"
#include "tests/pt2/parts_fixture.h"

namespace tensord::jit::pt2_checks_test {
namespace {

using ops::Value;

class Pt2Checks : public Pt2Parts {
 protected:
  // The result of running the program "conv" with an input; its first size is symbolic and called s77.
  std::string ran(const std::function<void(json&)>& change, const Dims& sizes = {2, 3, 8, 8},
                  DType dtype = DType::kFloat32) {
    const std::string refused = error_after("conv", change);
    if (refused != "none") return "refused: " + refused;
    const std::vector<Value> arguments{ops::call_by_name("aten::zeros", sizes, dtype, Value(), Value(), Value())};
    Frame frame;
    return error_of([&] { Module::load(file_.string())->method("forward").run(frame, arguments); });
  }
  std::string guarded(const std::string& guard, int64_t samples = 2) {
    return ran([&](json& p) { p["guards_code"] = {guard}; }, {samples, 3, 8, 8});
  }
  static void set_size(json& program, int64_t dim, const std::string& expression) {
    graph_of(program)["tensor_values"]["x"]["sizes"][static_cast<size_t>(dim)] =
        json{{"as_expr", {{"expr_str", expression}, {"hint", nullptr}}}};
  }
  // The error of the program's archive with some entries replaced, added, or removed if the string is empty.
  std::string error_with(const std::string& name, const std::map<std::string, std::string>& entries) {
    const auto zip = ZipArchive::open((fs::path(tests_folder()) / "pt2" / "data" / (name + ".pt2")).string());
    fs::remove(file_);
    ZipWriter writer(file_.string());
    std::map<std::string, std::string> rest = entries;
    for (const ZipArchive::Entry& entry : zip->entries()) {
      const auto replaced = rest.find(entry.name);
      const std::string text(replaced == rest.end() ? zip->read(entry) : replaced->second);
      if (replaced != rest.end()) rest.erase(replaced);
      if (!text.empty()) writer.add("m/" + entry.name, text);
    }
    for (const auto& [entry, text] : rest) writer.add("m/" + entry, text);
    writer.finish();
    return error_of([&] { Module::load(file_.string())->method("forward"); });
  }
  // The bytes of an archive of its own.
  std::string archive_of(const std::map<std::string, std::string>& entries) {
    const fs::path inner = file_.string() + ".inner";
    fs::remove(inner);
    ZipWriter writer(inner.string());
    for (const auto& [entry, text] : entries) writer.add("archive/" + entry, text);
    writer.finish();
    std::ostringstream bytes;
    bytes << std::ifstream(inner, std::ios::binary).rdbuf();
    fs::remove(inner);
    return bytes.str();
  }
};

// The names that torch.export gives to parts of forward's *kv and **more.
TEST_F(Pt2Checks, GuardsOfArgumentsWithoutNamesOfTheirOwn) {
  const auto refusal = [&](const std::string& guard, int64_t samples) {
    const auto change = [&](json& p) {
      json& signature = module_of(p)["module_call_graph"][0]["signature"];
      const std::string leaf = R"({"type": null, "context": null, "children_spec": []})";
      const auto tree = [](const std::string& type, const std::string& context, const std::string& parts) {
        return concat(R"({"type": "builtins.)", type, R"(", "context": ")", context, R"(", "children_spec": [)", parts,
                      "]}");
      };
      const bool is_keyword = guard.find("more") != std::string::npos;
      signature["forward_arg_names"] = {is_keyword ? "extra" : "kv_0"};
      signature["in_spec"] =
          concat("[1, ",
                 tree("tuple", "null",
                      tree("tuple", "null", is_keyword ? "" : leaf) + ", " +
                          tree("dict", is_keyword ? R"([\"extra\"])" : "[]", is_keyword ? leaf : "")),
                 "]");
      p["guards_code"] = {guard};
    };
    return ran(change, {samples, 3, 8, 8});
  };
  for (const char* part : {"L['kv'][0]", "L['more']['extra']"}) {
    const std::string guard = concat(part, ".size()[0] == 2");
    EXPECT_EQ(refusal(guard, 2), "none") << guard;
    EXPECT_THAT(refusal(guard, 3), HasSubstr("are not what the program was exported for: " + guard)) << guard;
  }
  EXPECT_THAT(refusal("L['kv'][1].size()[0] == 2", 2), HasSubstr("'kv.1': is not an input of the program"));
  EXPECT_THAT(refusal("L['more']['other'].size()[0] == 2", 2),
              HasSubstr("'more.other': is not an input of the program"));
}

TEST_F(Pt2Checks, EveryOperationOfAGuard) {
  const std::string n = "L['x'].size()[0]";
  // With two samples, in both directions.
  const std::vector<std::pair<std::string, bool>> guards{
      {n + " == 2", true},
      {n + " != 2", false},
      {n + " < 3", true},
      {n + " < 2", false},
      {n + " <= 2", true},
      {n + " <= 1", false},
      {n + " > 1", true},
      {n + " > 2", false},
      {n + " >= 2", true},
      {n + " >= 3", false},
      {n + " + 1 == 3", true},
      {n + " + 1 + 4 == 7", true},
      {n + " - 3 == -1", true},
      {n + " * 5 == 10", true},
      {n + " * 5 * 2 == 20", true},
      {"5 // " + n + " == 2", true},
      {"5 % " + n + " == 1", true},
      {"5 / " + n + " == 2.5", true},
      {n + " ** 3 == 8", true},
      {"-" + n + " == -2", true},
      {"-" + n + " == 2", false},
      {"not " + n + " == 2", false},
      {"not " + n + " == 3", true},
      {n + " == 2 and " + n + " == 3", false},
      {n + " == 2 or " + n + " == 3", true},
      {"torch.sym_max(1, " + n + ") == 2", true},
      {"torch.sym_min(1, " + n + ") == 1", true},
      {"math.floor(5 / " + n + ") == 2", true},
      {"math.ceil(5 / " + n + ") == 3", true},
      {"math.trunc(-5 / " + n + ") == -2", true},
      {"math.floor(-5 / " + n + ") == -3", true},
      {"math.sqrt(" + n + " * 2) == 2.0", true},
      {"float(" + n + ") == 2.0", true},
      {"L['x'].numel() == 384", true},
      {"L['x'].ndimension() == 4", true},
      {"L['x'].dim() == 3", false},
      {"L['x'].stride()[1] == 64", true},
      {"L['x'].stride()[1] == 8", false},
      {"L['x'].storage_offset() == 1", false},
      {"True", true},
      {"False", false},
  };
  for (const auto& [guard, holds] : guards) {
    const std::string said = guarded(guard);
    if (said.starts_with("refused: UNIMPLEMENTED")) {
      ADD_FAILURE() << guard << ": " << said;
    } else if (holds) {
      EXPECT_EQ(said, "none") << guard;
    } else {
      EXPECT_THAT(said, HasSubstr("not what the program was exported for: " + guard));
    }
  }
}

TEST_F(Pt2Checks, SizesThatFollow) {
  const auto sized = [&](const std::string& first, const Dims& sizes, const std::string& second = "Integer(3)") {
    return ran(
        [&](json& p) {
          set_size(p, 0, first);
          set_size(p, 1, second);
          p["range_constraints"] = json::object();
        },
        sizes);
  };
  const std::string s = "Symbol('s1', positive=True, integer=True)", t = "Symbol('s2', positive=True, integer=True)";
  EXPECT_EQ(sized(s, {5, 3, 8, 8}), "none");
  EXPECT_THAT(sized(s, {5, 3, 8, 8}, s), HasSubstr("dimension 1 has to be as large as that of input 'x': dimension 0"));
  EXPECT_EQ(sized(s, {3, 3, 8, 8}, s), "none");
  // 2 s - 1, which determines s.
  const std::string odd = "Add(Mul(Integer(2), " + s + "), Integer(-1))";
  EXPECT_EQ(sized(odd, {3, 3, 8, 8}), "none");
  EXPECT_THAT(sized(odd, {4, 3, 8, 8}), HasSubstr("has to be a multiple of 2 and -1, but is 4"));
  EXPECT_THAT(sized("Mul(Integer(4), " + s + ")", {6, 3, 8, 8}), HasSubstr("has to be a multiple of 4, but is 6"));
  EXPECT_EQ(sized("Mul(Integer(4), " + s + ")", {8, 3, 8, 8}), "none");
  // Constraints from the second size on the first one.
  EXPECT_EQ(sized(odd, {5, 3, 8, 8}, s), "none");
  EXPECT_THAT(sized(odd, {3, 3, 8, 8}, s), HasSubstr("does not go with the sizes of the other inputs: it is 3"));
  EXPECT_EQ(sized("Mul(" + s + ", " + s + ")", {9, 3, 8, 8}, s), "none");
  EXPECT_THAT(sized("Mul(" + s + ", " + s + ")", {8, 3, 8, 8}, s), HasSubstr("does not go with the sizes"));
  EXPECT_THAT(sized("Integer(2)", {3, 3, 8, 8}), HasSubstr("it is 3"));
  // Non-linear expressions, and two unknowns, determine nothing.
  EXPECT_EQ(sized("Mul(" + s + ", " + s + ")", {8, 3, 8, 8}), "none");
  EXPECT_EQ(sized("Add(" + s + ", " + t + ")", {8, 3, 8, 8}), "none");
  EXPECT_EQ(sized("Add(Mul(Integer(9223372036854775807), " + s + "), Integer(5))", {8, 3, 8, 8}), "none");
  EXPECT_EQ(sized("Add(" + s + ", Mul(Integer(-1), " + s + "))", {8, 3, 8, 8}), "none");
}

TEST_F(Pt2Checks, Ranges) {
  const auto ranged = [&](const json& range, int64_t samples) {
    return ran([&](json& p) { p["range_constraints"] = {{"s77", range}}; }, {samples, 3, 8, 8});
  };
  const auto between = [](const json& low, const json& high) { return json{{"min_val", low}, {"max_val", high}}; };
  EXPECT_EQ(ranged(between(3, 5), 3), "none");
  EXPECT_EQ(ranged(between(3, 5), 5), "none");
  EXPECT_THAT(ranged(between(3, 5), 2), HasSubstr("dimension 0 has to be at least 3, but is 2"));
  EXPECT_THAT(ranged(between(3, 5), 6), HasSubstr("dimension 0 has to be at most 5, but is 6"));
  EXPECT_EQ(ranged(between(2, nullptr), 1), "none") << "exported with 2 and more, run with 1";
  EXPECT_EQ(ranged(between(nullptr, 5), 1), "none");
  EXPECT_EQ(ranged(between(0, 9223372036854775807), 40), "none");
  EXPECT_EQ(ranged(between(0, 9223372036854775808U), 40), "none");
  EXPECT_EQ(ranged(json::object(), 40), "none");
}

TEST_F(Pt2Checks, TypesAndSizes) {
  const auto nothing = [](json&) {};
  EXPECT_EQ(ran(nothing), "none");
  EXPECT_THAT(ran(nothing, {2, 3, 8, 8}, DType::kFloat64), HasSubstr("input 'x' has to be of float32"));
  EXPECT_THAT(ran(nothing, {2, 3, 8}), HasSubstr("input 'x' has to have 4 dimensions, but has 3"));
  EXPECT_THAT(ran(nothing, {2, 3, 8, 9}), HasSubstr("dimension 3 has to be 8, but is 9"));
}

TEST_F(Pt2Checks, TensorsThatAreNotWhatTheyShouldBe) {
  const std::string list = "data/weights/model_weights_config.json";
  const auto zip = ZipArchive::open((fs::path(tests_folder()) / "pt2" / "data" / "conv.pt2").string());
  const json weights = json::parse(zip->read(zip->at(list)));
  const auto with = [&](const std::function<void(json&)>& change) {
    json changed = weights;
    change(changed["config"]["conv.weight"]);
    return error_with("conv", {{list, changed.dump()}});
  };
  EXPECT_EQ(with([](json&) {}), "none");
  for (const char* path : {"custom_obj_0", "opaque_obj_0"}) {
    EXPECT_THAT(with([&](json& w) { w["path_name"] = path; }), HasSubstr("is a custom object")) << path;
  }
  EXPECT_THAT(with([](json& w) { w["tensor_meta"]["dtype"] = 12; }), HasSubstr("neither 0 nor 1"));
  EXPECT_THAT(error_with("conv", {{"byteorder", "big"}}), HasSubstr("big"));
  EXPECT_THAT(error_with("conv", {{"archive_format", "pt9"}}), HasSubstr("archive format 'pt9' is not known"));
}

// Tensors as PyTorch stored them up to 2.8, in an archive of their own.
TEST_F(Pt2Checks, PickledTensors) {
  const std::string entry = "serialized_state_dict.pt";
  const auto zip = ZipArchive::open((fs::path(tests_folder()) / "pt2" / "data" / "conv_torch25.pt2").string());
  EXPECT_EQ(error_with("conv_torch25", {}), "none");
  const auto with = [&](const std::map<std::string, std::string>& inner) {
    return error_with("conv_torch25", {{entry, archive_of(inner)}});
  };
  EXPECT_THAT(with({{"data.pkl", "\x80\x02K\x01."}}), HasSubstr("holds a int, not a dict"));
  EXPECT_THAT(with({{"data.pkl", std::string("\x80\x02}K\x01K\x02s.", 10)}}),
              HasSubstr("which is not a tensor with a name"));
  EXPECT_THAT(with({{"data.pkl", std::string("\x80\x02}X\x01\0\0\0aK\x02s.", 14)}}),
              HasSubstr("is not a tensor with a name"));
  EXPECT_THAT(with({{"data.pkl", "\x80\x02}."}, {"byteorder", "big"}}), HasSubstr("big"));
  EXPECT_THAT(with({{"data.pkl", "\x80\x02}."}}), HasSubstr("is not in the file"));
}

}  // namespace
}  // namespace tensord::jit::pt2_checks_test
