// Tensors of modules, by dotted names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/jit/runtime/module_tensors.h"

namespace tensord::jit::module_tensors_test {
namespace {

using ops::ClassType;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<ClassType> module_type(const std::string& name) { return std::make_shared<ClassType>(name, true); }

std::vector<std::string> names(const std::vector<std::pair<std::string, Tensor>>& members) {
  std::vector<std::string> out;
  for (const auto& [name, tensor] : members) out.push_back(name);
  return out;
}

// encoder.layer.weight, and the same tensor as encoder.tied
ops::ObjectPtr model() {
  const Tensor weight = Tensor::empty(Dims{2}, DType::kFloat32);
  auto layer_type = module_type("Layer"), encoder_type = module_type("Encoder"), type = module_type("Model");
  layer_type->add_attribute("weight", ops::tensor_type());
  layer_type->parameter_names = {"weight", "none"};
  encoder_type->add_attribute("layer", layer_type);
  encoder_type->add_attribute("tied", ops::tensor_type());
  encoder_type->parameter_names = {"tied"};
  type->add_attribute("encoder", encoder_type);
  type->add_attribute("mean", ops::tensor_type());
  type->buffer_names = {"mean"};
  const auto layer = make_intrusive<ops::Object>(layer_type), encoder = make_intrusive<ops::Object>(encoder_type),
             root = make_intrusive<ops::Object>(type);
  layer->attribute("weight") = encoder->attribute("tied") = weight;
  encoder->attribute("layer") = layer;
  root->attribute("encoder") = encoder;
  root->attribute("mean") = Tensor::empty(Dims{3}, DType::kFloat32);
  return root;
}

TEST(ModuleTensors, ModulesByTheirNames) {
  const ops::ObjectPtr root = model();
  EXPECT_EQ(find_module(root, ""), root);
  EXPECT_EQ(find_module(root, "encoder.layer")->type->name(), "Layer");
  for (const char* name : {"encoder.", ".encoder", "encoder..layer", "mean", "encoder.layer.weight", "other"}) {
    try {
      find_module(root, name);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kNotFound);
      EXPECT_THAT(error.what(), HasSubstr(concat("there is no module '", name, "'")));
    }
  }
  std::vector<std::string> found;
  for (const auto& [name, module] : collect_named_modules(root)) found.push_back(name);
  EXPECT_THAT(found, ElementsAre("", "encoder", "encoder.layer"));
}

// A class that got more attributes after the object was created; and nonexistent names.
TEST(ModuleTensors, ObjectsOfFewerSlots) {
  const auto type = module_type("Late");
  type->add_attribute("weight", ops::tensor_type());
  const auto object = make_intrusive<ops::Object>(type);
  object->attribute("weight") = Tensor::empty(Dims{2}, DType::kFloat32);
  type->add_attribute("late", ops::tensor_type());
  type->parameter_names = {"late", "weight", "none"};
  ASSERT_EQ(object->slots.size(), 1U);
  EXPECT_THAT(names(collect_members(object, &ClassType::parameter_names)), ElementsAre("weight"));
  EXPECT_EQ(collect_member_slots(object).size(), 1U);
  EXPECT_THROW(find_module(object, "late"), Error);
}

TEST(ModuleTensors, ATensorOfTwoNames) {
  const ops::ObjectPtr root = model();
  EXPECT_THAT(names(collect_members(root, &ClassType::parameter_names)), ElementsAre("encoder.tied"));
  EXPECT_THAT(names(collect_members(root, &ClassType::buffer_names)), ElementsAre("mean"));
  std::vector<std::string> slots;
  for (const auto& [name, value] : collect_member_slots(root)) slots.push_back(name);
  EXPECT_THAT(slots, ElementsAre("mean", "encoder.tied", "encoder.layer.weight"));
}

}  // namespace
}  // namespace tensord::jit::module_tensors_test
