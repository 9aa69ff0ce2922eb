// Tensors by name: the modules that names imply, and weights that replace a model's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "core/base/error.h"
#include "core/jit/archive/torch_file.h"
#include "core/jit/importers/module_tree.h"
#include "core/jit/importers/new_weights.h"

namespace tensord::jit::named_weights_test {
namespace {

namespace fs = std::filesystem;
using ops::Value;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Tensors = std::vector<std::pair<std::string, Tensor>>;

template <class Fn>
std::string error_of(Fn&& fn, ErrorCode code) {
  try {
    fn();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  return "none";
}

Tensor numbers(const Dims& sizes, float first = 1) {
  const Tensor out = Tensor::empty(sizes, DType::kFloat32);
  for (int64_t i = 0; i < out.numel(); ++i) out.data<float>()[i] = first + static_cast<float>(i);
  return out;
}

std::string tree_error(const std::vector<std::string>& names) {
  ModuleTree tree("__torch__.M");
  for (size_t i = 0; i + 1 < names.size(); ++i) tree.add(names[i], numbers({1}), ModuleTree::Kind::kParameter);
  return error_of([&] { tree.add(names.back(), numbers({1}), ModuleTree::Kind::kParameter); }, ErrorCode::kDataLoss);
}

TEST(ModuleTree, NamesThatAreNone) {
  EXPECT_EQ(tree_error({"a.b", "a.c"}), "none");
  EXPECT_EQ(tree_error({"a.b", "c.b"}), "none");
  EXPECT_EQ(tree_error({""}), "tensor '': the last part of its name is empty");
  EXPECT_EQ(tree_error({"a."}), "tensor 'a.': the last part of its name is empty");
  EXPECT_EQ(tree_error({"a..b"}), "module 'a.': a part of its name is empty");
  EXPECT_EQ(tree_error({"a.b", "a.b"}), "'a.b' appears twice");
  EXPECT_EQ(tree_error({"a.b", "a"}), "'a' appears twice");
  EXPECT_EQ(tree_error({"a", "a.b"}), "'a' is a tensor and a module");
  const auto deep = [](int dots) {
    std::string name = "a";
    for (int i = 0; i < dots; ++i) name += ".a";
    return name;
  };
  EXPECT_EQ(tree_error({deep(100)}), "none");
  EXPECT_THAT(tree_error({deep(101)}), HasSubstr("' is nested too deep"));
}

TEST(ModuleTree, MakesModules) {
  ModuleTree tree("__torch__.M");
  const Tensor weight = numbers({2}), mean = numbers({3}), top = numbers({1});
  tree.add("a.0.weight", weight, ModuleTree::Kind::kParameter);
  tree.add("a.mean", mean, ModuleTree::Kind::kBuffer);
  tree.add("top", top, ModuleTree::Kind::kConstant);
  EXPECT_TRUE(tree.has("a.0.weight"));
  EXPECT_FALSE(tree.has("a.0"));
  GraphLibrary library;
  const ops::ObjectPtr object = tree.finish(library);
  EXPECT_TRUE(tensor_at(object, "a.0.weight").is_same(weight));
  EXPECT_TRUE(tensor_at(object, "a.mean").is_same(mean));
  EXPECT_TRUE(tensor_at(object, "top").is_same(top));
  const ops::ObjectPtr a = object->attribute("a").to_object();
  EXPECT_EQ(a->type->name(), "__torch__.M.a");
  EXPECT_THAT(a->type->buffer_names, ElementsAre("mean"));
  EXPECT_THAT(a->attribute("0").to_object()->type->parameter_names, ElementsAre("weight"));
  EXPECT_TRUE(object->type->parameter_names.empty());
  EXPECT_NE(library.find_type("__torch__.M.a.0"), nullptr);
}

class NewWeightsTest : public ::testing::Test {
 protected:
  NewWeightsTest()
      : file_((fs::path(::testing::TempDir()) / concat("new_weights.", getpid(), ".safetensors")).string()) {}
  ~NewWeightsTest() override { fs::remove(file_); }

  // The replacements of the model's tensors, in order: the first element of each, or 0 if it is not replaced.
  std::vector<float> replaced(const Tensors& model, const Tensors& given) const {
    write_safetensors(file_, given);
    const auto found = NewWeights(file_, /*copies=*/true).match(model);
    std::vector<float> out;
    for (const auto& [name, tensor] : model) {
      const auto at = found.find(tensor.impl());
      out.push_back(at == found.end() ? 0 : at->second.data<float>()[0]);
    }
    return out;
  }
  std::string error(const Tensors& model, const Tensors& given) const {
    const std::string text = error_of([&] { replaced(model, given); }, ErrorCode::kInvalidArgument);
    return text == "none" ? text : text.substr(file_.size() + 2);
  }
  const std::string file_;
};

TEST_F(NewWeightsTest, TakeThePlaceOfThoseOfTheirName) {
  const Tensors model{{"a", numbers({2})}, {"b", numbers({3})}};
  EXPECT_THAT(replaced(model, {{"b", numbers({3}, 9)}}), ElementsAre(0, 9));
  EXPECT_EQ(error(model, {{"c", numbers({2})}}), "'c': the model has no parameter or buffer of this name");
  EXPECT_EQ(error(model, {{"a", numbers({3})}}), "'a': has shape [3], the model's has [2]");
  EXPECT_EQ(error(model, {{"a", numbers({2, 1})}}), "'a': has shape [2, 1], the model's has [2]");
  EXPECT_EQ(error(model, {{"a", numbers({2}).to(DType::kFloat64)}}), "'a': is of type float64, the model's of float32");
}

TEST_F(NewWeightsTest, OfTensorsThatShareMemory) {
  const Tensor whole = numbers({4});
  const Tensor same = whole.as_view(Dims{4}, Dims{1}, 0), half = whole.as_view(Dims{2}, Dims{1}, 0),
               rest = whole.as_view(Dims{2}, Dims{1}, 2);
  // Two names of one tensor, or of the same elements, are replaced together.
  for (const Tensor& twin : {whole, same}) {
    const Tensors tied{{"a", whole}, {"b", twin}};
    EXPECT_THAT(replaced(tied, {{"a", numbers({4}, 5)}}), ElementsAre(5, 5));
    EXPECT_THAT(replaced(tied, {{"a", numbers({4}, 5)}, {"b", numbers({4}, 5)}}), ElementsAre(5, 5));
    EXPECT_EQ(error(tied, {{"a", numbers({4}, 5)}, {"b", numbers({4}, 6)}}),
              "'b': is the same tensor of the model as 'a', but has other values");
  }
  // Disjoint parts of one memory are separate.
  EXPECT_THAT(replaced({{"half", half}, {"rest", rest}}, {{"rest", numbers({2}, 7)}}), ElementsAre(0, 7));
  EXPECT_EQ(error({{"whole", whole}, {"half", half}}, {{"half", numbers({2}, 7)}}),
            "'half': shares memory with 'whole' in the model, and cannot be replaced alone");
  const Tensor none = Tensor::empty(Dims{0}, DType::kFloat32);
  EXPECT_EQ(error({{"a", none}, {"b", none}}, {{"a", none}, {"b", none}}), "none");
}

TEST_F(NewWeightsTest, FilesOfOtherValues) {
  const std::string path = file_ + ".pt";
  const auto error = [&](const Value& value) {
    save_torch_file(path, value);
    const std::string text = error_of([&] { NewWeights(path, false); }, ErrorCode::kInvalidArgument);
    return text == "none" ? text : text.substr(path.size() + 2);
  };
  const auto dict = [](const Value& key, const Value& value) {
    auto made = make_intrusive<ops::DictObject>(ops::any_type(), ops::any_type());
    made->set(key, value);
    return Value(ops::Dict(std::move(made)));
  };
  EXPECT_EQ(error(dict(Value("a"), Value(numbers({2})))), "none");
  EXPECT_EQ(error(Value(numbers({2}))), "no dict of tensors, as a module's state_dict() is");
  EXPECT_EQ(error(dict(Value("a"), Value(1))), "'a' is not a tensor");
  EXPECT_EQ(error(dict(Value(7), Value(numbers({2})))), "'int' is not a tensor");
  fs::remove(path);
}

TEST_F(NewWeightsTest, LieBesideTheModel) {
  const fs::path folder = fs::path(::testing::TempDir()) / concat("weights_beside.", getpid());
  fs::create_directories(folder);
  const auto beside = [&](const char* model) {
    const std::string found = weights_beside((folder / model).string());
    return found.empty() ? found : fs::path(found).filename().string();
  };
  const auto put = [&](const char* name) { write_safetensors((folder / name).string(), {}); };
  EXPECT_EQ(beside("model.py"), "");
  put("weights.pt");
  EXPECT_EQ(beside("model.py"), "weights.pt");
  EXPECT_EQ(beside("model.pt"), "");  // it has its own
  put("model.safetensors");
  EXPECT_EQ(beside("model.py"), "model.safetensors");
  EXPECT_EQ(beside("other.py"), "weights.pt");
  EXPECT_EQ(beside("model.onnx"), "");
  put("weights.safetensors");
  EXPECT_EQ(beside("model.py"), "weights.safetensors");
  EXPECT_EQ(beside("model.onnx"), "weights.safetensors");
  fs::remove_all(folder);
}

TEST(WholeStorages, HaveNothingElse) {
  const Tensor whole = numbers({2, 3});
  EXPECT_TRUE(is_whole_storage(whole));
  EXPECT_FALSE(is_whole_storage(whole.as_view(Dims{1, 3}, Dims{3, 1}, 0)));
  EXPECT_FALSE(is_whole_storage(whole.as_view(Dims{1, 3}, Dims{3, 1}, 3)));
  EXPECT_FALSE(is_whole_storage(whole.as_view(Dims{3, 2}, Dims{1, 3}, 0)));
  EXPECT_TRUE(is_whole_storage(whole.as_view(Dims{6}, Dims{1}, 0)));
}

}  // namespace
}  // namespace tensord::jit::named_weights_test
