#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "core/jit/archive/model_archive.h"
#include "core/jit/archive/torch_file.h"
#include "core/ops/quantized.h"
#include "tests/support/places.h"

namespace tensord::jit::archive_test {
namespace {

using ops::ClassType;
using ops::TypePtr;
using ops::Value;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string data_file(const std::string& name) { return std::string(tests_folder()) + "/jit/data/" + name; }

std::vector<double> numbers(const Value& value) {
  const Tensor tensor = value.to_tensor().to(DType::kFloat64).contiguous();
  return {tensor.data<double>(), tensor.data<double>() + tensor.numel()};
}

// Classes as the front end would create them, from (name, annotation) pairs.
class Classes {
 public:
  using Fields = std::vector<std::pair<std::string, std::string>>;

  void add(const std::string& name, const Fields& fields) {
    auto type = std::make_shared<ClassType>(name, true);
    for (const auto& [field, annotation] : fields)
      type->add_attribute(field, ops::parse_annotation(annotation, resolver()));
    types_[name] = type;
  }
  void add(const std::string& name, TypePtr type) { types_[name] = std::move(type); }
  ops::TypeResolver resolver() const {
    return [this](const std::string& name) {
      const auto it = types_.find(name);
      return it == types_.end() ? nullptr : it->second;
    };
  }
  ObjectHooks hooks() const { return {resolver(), nullptr, nullptr}; }

 private:
  std::map<std::string, TypePtr> types_;
};

Classes mlp_classes() {
  Classes classes;
  const Classes::Fields linear = {
      {"weight", "Tensor"}, {"bias", "Tensor"}, {"training", "bool"}, {"_is_full_backward_hook", "NoneType"}};
  classes.add("__torch__.torch.nn.modules.linear.Linear", linear);
  classes.add("__torch__.torch.nn.modules.linear.___torch_mangle_0.Linear", linear);
  classes.add("__torch__.Mlp", {{"training", "bool"},
                                {"hidden", "__torch__.torch.nn.modules.linear.Linear"},
                                {"out", "__torch__.torch.nn.modules.linear.___torch_mangle_0.Linear"}});
  return classes;
}

Classes object_classes() {
  Classes classes;
  classes.add("__torch__.Counter", {{"training", "bool"}, {"count", "int"}});
  classes.add("__torch__.Point",
              ops::named_tuple_type("__torch__.Point", {"x", "y"}, {ops::int_type(), ops::tensor_type()}));
  classes.add("__torch__.Color", ops::enum_type("__torch__.Color", ops::int_type()));
  classes.add("__torch__.Objects", {{"weight", "Tensor"},
                                    {"tied", "Tensor"},
                                    {"base", "Tensor"},
                                    {"row", "Tensor"},
                                    {"transposed", "Tensor"},
                                    {"expanded", "Tensor"},
                                    {"empty", "Tensor"},
                                    {"half_tensor", "Tensor"},
                                    {"brain", "Tensor"},
                                    {"flags", "Tensor"},
                                    {"long_tensor", "Tensor"},
                                    {"strings", "List[str]"},
                                    {"table", "Dict[str, List[int]]"},
                                    {"maybe", "Optional[Tensor]"},
                                    {"nothing", "Optional[int]"},
                                    {"points", "List[__torch__.Point]"},
                                    {"tensors", "List[Tensor]"},
                                    {"numbers", "Tuple[int, float, bool, int]"},
                                    {"floats", "List[float]"},
                                    {"color", "__torch__.Color"},
                                    {"counter", "__torch__.Counter"}});
  return classes;
}

bool set_counter(const ops::ObjectPtr& object, const Value& state) {
  if (object->type->name() != "__torch__.Counter") return false;
  object->attribute("count") = state.to_tuple()->items.at(0);
  object->attribute("training") = state.to_tuple()->items.at(1);
  return true;
}

TEST(ModelArchiveTest, ReadsMlpOfBothVersions) {
  const Classes classes = mlp_classes();
  for (const char* name : {"mlp.pt", "mlp_torch2.pt"}) {
    SCOPED_TRACE(name);
    const ModelArchive archive = ModelArchive::open(data_file(name));
    EXPECT_EQ(archive.version(), 3);
    const std::vector<SourceFile> sources = archive.sources();
    ASSERT_EQ(sources.size(), 3u);
    EXPECT_EQ(sources[0].name, "code/__torch__.py");
    EXPECT_THAT(sources[0].text, HasSubstr("class Mlp(Module):"));
    EXPECT_TRUE(archive.constants(classes.resolver()).empty());

    const Value module = archive.object(classes.hooks());
    EXPECT_FALSE(module.to_object()->attribute("training").to_bool());
    const Value hidden = module.to_object()->attribute("hidden");
    const Tensor& weight = hidden.to_object()->attribute("weight").to_tensor();
    EXPECT_EQ(weight.sizes(), (Dims{3, 4}));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(weight.raw_data()) % 64, 0u);
    EXPECT_FLOAT_EQ(weight.data<float>()[11], 11 / 8.f);
    EXPECT_THAT(numbers(hidden.to_object()->attribute("bias")), ElementsAre(1, 1.125, 1.25));
  }
}

TEST(ModelArchiveTest, ReadsEveryKindOfAttribute) {
  const Classes classes = object_classes();
  const ModelArchive archive = ModelArchive::open(data_file("objects.pt"));
  EXPECT_EQ(archive.version(), 10);
  ASSERT_EQ(archive.constants(classes.resolver()).size(), 1u);
  EXPECT_EQ(archive.constants(classes.resolver())[0].to_string(), "grün");
  EXPECT_EQ(archive.extra_file("labels.txt"), "cat\ndog\n");
  EXPECT_THROW(archive.extra_file("nothing"), Error);

  ObjectHooks hooks = classes.hooks();
  hooks.set_state = set_counter;
  hooks.enum_member = [](const TypePtr& type, const Value& value) {
    return Value(make_intrusive<ops::EnumObject>(type, value.to_int() == 2 ? "GREEN" : "RED", value));
  };
  const Value module = archive.object(hooks);
  const auto get = [&](const char* name) { return module.to_object()->attribute(name); };
  EXPECT_THAT(numbers(get("row")), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(numbers(get("transposed")), ElementsAre(0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11));
  EXPECT_EQ(get("expanded").to_tensor().sizes(), (Dims{3, 5}));
  EXPECT_EQ(get("expanded").to_tensor().strides(), (Dims{4, 0}));
  EXPECT_EQ(get("empty").to_tensor().sizes(), (Dims{0, 3}));
  EXPECT_EQ(get("half_tensor").to_tensor().dtype(), DType::kFloat16);
  EXPECT_THAT(numbers(get("half_tensor")), ElementsAre(0.5, -2));
  EXPECT_EQ(get("brain").to_tensor().dtype(), DType::kBFloat16);
  EXPECT_THAT(numbers(get("brain")), ElementsAre(0.5, -2));
  EXPECT_EQ(get("flags").to_tensor().dtype(), DType::kBool);
  EXPECT_EQ(get("long_tensor").to_tensor().item_int(), int64_t{1} << 40);
  EXPECT_EQ(get("strings").to_list()->items[1].to_string(), "b\n");
  EXPECT_EQ(ops::type_of(get("table"))->str(), "Dict[str, List[int]]");
  EXPECT_EQ(ops::type_of(get("table").to_dict()->items()[1].second)->str(), "List[int]");
  EXPECT_TRUE(get("nothing").is_none());
  const Value point = get("points").to_list()->items[0];
  ASSERT_TRUE(point.to_tuple()->type);
  EXPECT_THAT(point.to_tuple()->type->field_names(), ElementsAre("x", "y"));
  EXPECT_EQ(get("numbers").to_tuple()->items[3].to_int(), -(int64_t{1} << 40));
  EXPECT_TRUE(std::isinf(get("floats").to_list()->items[1].to_float()));
  EXPECT_EQ(get("color").to_enum()->name, "GREEN");
  EXPECT_EQ(get("counter").to_object()->attribute("count").to_int(), 10);
}

TEST(ModelArchiveTest, ViewsShareStorageAndWritesStayPrivate) {
  const Classes classes = object_classes();
  const std::string path = data_file("objects.pt");
  const auto load = [&] {
    ObjectHooks hooks = classes.hooks();
    hooks.set_state = set_counter;
    return ModelArchive::open(path).object(hooks);
  };
  const Value module = load();
  const auto get = [&](const char* name) { return module.to_object()->attribute(name).to_tensor(); };
  EXPECT_EQ(get("row").storage(), get("base").storage());
  EXPECT_EQ(get("tied").storage(), get("weight").storage());
  get("base").data<float>()[5] = 100;
  EXPECT_THAT(numbers(get("row")), ElementsAre(4, 100, 6, 7));
  EXPECT_THAT(numbers(load().to_object()->attribute("row")), ElementsAre(4, 5, 6, 7));
}

std::string error_of(const std::function<void()>& run, ErrorCode expected) {
  try {
    run();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), expected) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

TEST(ModelArchiveTest, ReadsComplexNumbers) {
  Classes classes;
  classes.add("__torch__.Complex",
              Classes::Fields{{"c", "Tensor"}, {"training", "bool"}, {"_is_full_backward_hook", "Optional[bool]"}});
  const ModelArchive archive = ModelArchive::open(data_file("complex.pt"));
  const Tensor c = archive.object(classes.hooks()).to_object()->attribute("c").to_tensor();
  EXPECT_EQ(c.dtype(), DType::kComplex64);
  EXPECT_EQ(c.sizes(), Dims{1});
}

TEST(ModelArchiveTest, QuantizedTensors) {
  Classes classes;
  classes.add("__torch__.Quantized",
              Classes::Fields{{"q", "Tensor"}, {"training", "bool"}, {"_is_full_backward_hook", "Optional[bool]"}});
  const ModelArchive archive = ModelArchive::open(data_file("quantized.pt"));
  const ops::Value object = archive.object(classes.hooks());
  const ops::QuantizedTensor* q = ops::as_quantized(object.to_object()->attribute("q"));
  ASSERT_NE(q, nullptr);
  EXPECT_EQ(q->describe(), "qint8[2]");
  EXPECT_EQ(q->quantizer().scale, 0.5);
  EXPECT_EQ(q->values().data<int8_t>()[1], 2);
}

TEST(ModelArchiveTest, RefusesByName) {
  const Classes none;
  const auto load = [&](const char* name, const Classes& classes) {
    return error_of([&] { ModelArchive::open(data_file(name)).object(classes.hooks()); }, ErrorCode::kUnimplemented);
  };
  EXPECT_THAT(load("mlp.pt", none), HasSubstr("__torch__.Mlp"));
  EXPECT_THAT(load("objects.pt", object_classes()), HasSubstr("__setstate__"));
  const auto open = [](const char* name) {
    return error_of([&] { ModelArchive::open(data_file(name)); }, ErrorCode::kDataLoss);
  };
  EXPECT_THAT(open("values.pt"), HasSubstr("torch.save"));
  error_of([] { ModelArchive::open("/nonexistent/model.pt"); }, ErrorCode::kNotFound);
  error_of([] { ModelArchive::open("/tmp"); }, ErrorCode::kInvalidArgument);
}

TEST(ModelArchiveTest, AttributesOfTheWrongTypeAreRefused) {
  Classes classes = object_classes();
  classes.add("__torch__.Objects", {{"strings", "List[int]"}});
  ObjectHooks hooks = classes.hooks();
  hooks.set_state = set_counter;
  EXPECT_THAT(error_of([&] { ModelArchive::open(data_file("objects.pt")).object(hooks); }, ErrorCode::kDataLoss),
              HasSubstr("strings"));
  classes.add("__torch__.Objects", {{"missing", "int"}});
  hooks = classes.hooks();
  hooks.set_state = set_counter;
  EXPECT_THAT(error_of([&] { ModelArchive::open(data_file("objects.pt")).object(hooks); }, ErrorCode::kDataLoss),
              HasSubstr("'missing'"));
}

void check_values(const Value& value) {
  const std::vector<Value>& items = value.to_tuple()->items;
  ASSERT_EQ(items.size(), 16u);
  EXPECT_EQ(items[0].to_tensor().sizes(), (Dims{3, 4}));
  EXPECT_THAT(numbers(items[1]), ElementsAre(0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11));
  EXPECT_EQ(items[1].to_tensor().strides(), (Dims{1, 4}));
  EXPECT_THAT(numbers(items[2]), ElementsAre(0, 1, 2, 3));
  const std::vector<int64_t> ints = {0, 1, -5, 300, -70000, int64_t{1} << 40, INT64_MIN, INT64_MAX};
  for (size_t i = 0; i < ints.size(); ++i) EXPECT_EQ(items[3].to_tuple()->items.at(i).to_int(), ints[i]);
  const std::vector<Value>& plain = items[4].to_tuple()->items;
  EXPECT_EQ(plain.at(0).to_float(), 1.5);
  EXPECT_TRUE(std::isinf(plain.at(1).to_float()));
  EXPECT_TRUE(plain.at(2).to_bool());
  EXPECT_FALSE(plain.at(3).to_bool());
  EXPECT_TRUE(plain.at(4).is_none());
  EXPECT_EQ(plain.at(5).to_string(), "hé");
  EXPECT_EQ(ops::type_of(items[5].to_list()->items.at(1))->str(), "List[int]");
  EXPECT_EQ(ops::type_of(items[6])->str(), "Dict[str, Tensor]");
  EXPECT_THAT(numbers(items[6].to_dict()->items().at(1).second), ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(items[7].to_dict()->items().at(0).second.to_int(), 1);
  EXPECT_EQ(items[8].to_dtype(), DType::kFloat32);
  EXPECT_EQ(items[9].to_tensor().sizes(), (Dims{0, 3}));
  EXPECT_EQ(items[10].to_tensor().dtype(), DType::kBFloat16);
  EXPECT_EQ(items[11].to_tensor().ndim(), 0);
  EXPECT_EQ(items[11].to_tensor().item_int(), 7);
  EXPECT_TRUE(items[12].is_device());
  EXPECT_EQ(items[13].to_list()->items.at(1).to_int(), 3);
  const std::vector<Value>& shared = items[14].to_list()->items;
  EXPECT_TRUE(shared.at(0).is_same(shared.at(1)));
  EXPECT_EQ(ops::type_of(items[14])->str(), "List[List[int]]");
  EXPECT_TRUE(items[15].to_tuple()->items.empty());
}

class TorchFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "/archive_test." + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
};

TEST_F(TorchFileTest, ReadsWhatBothVersionsSave) {
  for (const char* name : {"values.pt", "values_torch2.pt"}) {
    SCOPED_TRACE(name);
    const Value value = load_torch_file(data_file(name));
    check_values(value);
    EXPECT_EQ(value.to_tuple()->items[0].to_tensor().storage(), value.to_tuple()->items[1].to_tensor().storage());
  }
  for (const char* name : {"state_dict.pt", "state_dict_torch2.pt"}) {
    const Value value = load_torch_file(data_file(name));
    ASSERT_EQ(value.to_dict()->items().size(), 4u) << name;
    EXPECT_EQ(value.to_dict()->items()[3].first.to_string(), "out.bias");
  }
}

TEST_F(TorchFileTest, RoundTrip) {
  save_torch_file(path("r.pt"), load_torch_file(data_file("values.pt")));
  check_values(load_torch_file(path("r.pt")));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1) << "no temporary file is left";
  const auto zip = ZipArchive::open(path("r.pt"));
  for (const ZipArchive::Entry& entry : zip->entries()) EXPECT_EQ(entry.offset % 64, 0u) << entry.name;
}

// The file that we wrote, read by PyTorch, with and without weights_only.
TEST_F(TorchFileTest, PyTorchReadsWhatWeWrite) {
  const Value values = load_torch_file(data_file("values.pt"));
  std::vector<Value> items = values.to_tuple()->items;
  // With weights_only, PyTorch 1.13 supports neither torch.device nor floats.
  items.erase(items.begin() + 12);
  const Tensor strided = items[0].to_tensor().as_view({2, 2}, {8, 2}, 1);
  items.push_back(Value(strided));
  const TypePtr named = ops::named_tuple_type("__torch__.P", {"a"}, {ops::int_type()});
  items.push_back(Value(make_intrusive<ops::TupleObject>(std::vector<Value>{Value(3)}, named)));
  items.push_back(Value(std::string(70000, 'x')));
  save_torch_file(path("all.pt"), ops::make_tuple(items));
  std::vector<Value>& plain = items[4].to_tuple()->items;
  plain.erase(plain.begin(), plain.begin() + 2);
  save_torch_file(path("safe.pt"), ops::make_tuple(items));
  std::ofstream script(path("check.py"));
  script << R"(
import sys, math, torch
try:
    for name, weights_only in (('all', False), ('safe', True)):
        v = torch.load(f'{sys.argv[1]}/{name}.pt', weights_only=weights_only)
        base = torch.arange(12.).view(3, 4)
        assert isinstance(v, tuple) and len(v) == 18
        assert torch.equal(v[0], base) and torch.equal(v[1], base.t()) and v[1].stride() == (1, 4)
        assert v[1].data_ptr() == v[0].data_ptr()
        assert torch.equal(v[2], base[0])
        assert v[3] == (0, 1, -5, 300, -70000, 1 << 40, -(1 << 63), (1 << 63) - 1)
        assert v[4][-4:] == (True, False, None, 'h\u00e9') and v[4][-4] is True
        assert weights_only or v[4][:2] == (1.5, math.inf)
        assert v[5] == [1, [2], 'x']
        assert torch.equal(v[6]['a'], base) and torch.equal(v[6]['b'], base[1])
        assert v[7] == {'k': 1} and v[8] == 6 and v[9].shape == (0, 3)
        assert v[10].dtype == torch.bfloat16 and v[10].tolist() == [0.5, -2.0]
        assert v[11].dtype == torch.int64 and v[11].item() == 7
        assert v[12] == [2, 3] and v[13][0] is v[13][1] and v[13][0] == [1, 2] and v[14] == ()
        assert v[15].tolist() == [[1.0, 3.0], [9.0, 11.0]] and v[16] == (3,) and v[17] == 'x' * 70000
        v[0].add_(1)
except Exception as error:
    print(type(error), error)
    raise
)";
  script.close();
  const std::string command = std::string(tests_python()) + " " + path("check.py") + " " + folder_;
  EXPECT_EQ(std::system(command.c_str()), 0);
}

TEST_F(TorchFileTest, RefusesWhatCannotBeWritten) {
  auto type = std::make_shared<ClassType>("__torch__.M", false);
  const Value object(make_intrusive<ops::Object>(type));
  EXPECT_THAT(error_of([&] { save_torch_file(path("x.pt"), object); }, ErrorCode::kUnimplemented),
              HasSubstr("__torch__.M"));
  Value deep = ops::make_tuple({Value(1)});
  for (int i = 0; i < 2000; ++i) deep = ops::make_tuple({deep});
  error_of([&] { save_torch_file(path("x.pt"), deep); }, ErrorCode::kResourceExhausted);
  error_of([&] { save_torch_file("/nonexistent/x.pt", Value(1)); }, ErrorCode::kUnavailable);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

}  // namespace
}  // namespace tensord::jit::archive_test
