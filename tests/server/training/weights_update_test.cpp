// New weights in a model's archive: which are accepted and which are refused.
#include "server/training/weights_update.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "core/base/read_whole_file.h"
#include "core/jit/archive/safetensors.h"
#include "core/jit/archive/torch_file.h"
#include "core/jit/runtime/module.h"
#include "server/training/value_dict.h"
#include "tests/server/error_of.h"
#include "tests/server/temporary_folder.h"

namespace tensord::server::weights_update_test {
namespace {

using ::testing::HasSubstr;
using Tensors = std::vector<std::pair<std::string, Tensor>>;

constexpr const char* kCounted = R"(
class Net(Module):
    __parameters__ = ["weight"]
    __buffers__ = ["seen"]
    weight: Tensor
    seen: Tensor
    training: bool

    def forward(self, x: Tensor) -> Tensor:
        return torch.mul(x, self.weight)
)";

Tensor numbers(DType dtype, std::initializer_list<float> values) {
  Tensor out = Tensor::empty(Dims{static_cast<int64_t>(values.size())}, DType::kFloat32);
  std::copy(values.begin(), values.end(), out.data<float>());
  return out.to(dtype);
}

class WeightsUpdateTest : public ::testing::Test {
 protected:
  WeightsUpdateTest() {
    jit::LoadOptions options;
    options.for_training = true;
    jit::Module::compile(kCounted,
                         {{"weight", numbers(DType::kFloat32, {1, 2})}, {"seen", numbers(DType::kInt64, {7})}}, options)
        ->save(file("base.pt"));
  }
  std::string file(const char* name) const { return (folder_.path() / name).string(); }
  // Parameter and buffer afterwards.
  std::vector<double> update(const Tensors& weights) const {
    jit::write_safetensors(file("new.safetensors"), weights);
    write_with_weights(file("base.pt"), file("new.safetensors"), file("out.pt"));
    std::vector<double> out;
    for (const auto& [name, tensor] : jit::Module::load(file("out.pt"))->named_tensors()) {
      const Tensor values = tensor.to(DType::kFloat64);
      out.insert(out.end(), values.data<double>(), values.data<double>() + values.numel());
    }
    return out;
  }
  std::string refusal(const Tensors& weights) const {
    const Error error = error_of([&] { update(weights); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }

  const fixtures::TemporaryFolder folder_{"weights_update"};
};

TEST_F(WeightsUpdateTest, SomeOfThemInOtherFloats) {
  EXPECT_EQ(update({{"weight", numbers(DType::kFloat32, {3, 4})}}), (std::vector<double>{3, 4, 7}));
  EXPECT_EQ(update({{"weight", numbers(DType::kFloat16, {5, 6})}}), (std::vector<double>{5, 6, 7}));
  EXPECT_EQ(update({{"seen", numbers(DType::kInt64, {8})}}), (std::vector<double>{1, 2, 8}));
  ValueDict dict;
  dict.set("weight", numbers(DType::kFloat32, {9, 9}));
  jit::save_torch_file(file("new.pt"), dict.value());
  EXPECT_NO_THROW(write_with_weights(file("base.pt"), file("new.pt"), file("out.pt")));
}

// The checkpoint of a source model is an archive. The model published from it is source again, with its weights beside
// it.
TEST_F(WeightsUpdateTest, WhatIsPublishedHasTheFormatOfItsBase) {
  update({{"weight", numbers(DType::kFloat32, {3, 4})}, {"seen", numbers(DType::kInt64, {8})}});
  std::ofstream(file("base.py")) << kCounted;
  jit::write_safetensors(file("weights.safetensors"),
                         {{"weight", numbers(DType::kFloat32, {1, 2})}, {"seen", numbers(DType::kInt64, {7})}});
  const auto text_of = [&](const std::string& name) { return read_whole_file(name).value_or("none"); };
  std::filesystem::create_directory(file("1"));
  copy_as_base(file("base.py"), file("out.pt"), file("1/model.py"));
  EXPECT_EQ(text_of(file("1/model.py")), kCounted);
  const auto published = jit::Module::load(file("1/model.py"))->named_tensors();
  ASSERT_EQ(published.size(), 2u);
  EXPECT_EQ(published[0].second.data<float>()[1], 4);
  EXPECT_EQ(published[1].second.item_int(), 8);
  copy_as_base(file("base.py"), file("out.pt"), file("model.pt"));
  copy_as_base(file("base.pt"), file("out.pt"), file("other.py"));
  EXPECT_EQ(text_of(file("model.pt")), text_of(file("out.pt")));
  EXPECT_EQ(text_of(file("other.py")), text_of(file("out.pt")));
  jit::write_safetensors(file("weights.safetensors"),
                         {{"weight", numbers(DType::kFloat32, {1, 2, 3})}, {"seen", numbers(DType::kInt64, {7})}});
  const auto copy = [&] { copy_as_base(file("base.py"), file("out.pt"), file("1/model.py")); };
  EXPECT_THAT(error_of(copy).what(), HasSubstr("has no tensor 'weight' as the model has it"));
}

TEST_F(WeightsUpdateTest, WhatDoesNotFit) {
  EXPECT_EQ(refusal({}), "the file of weights has no tensors");
  EXPECT_THAT(refusal({{"other", numbers(DType::kFloat32, {1})}}), HasSubstr("'other': the model has no parameter"));
  EXPECT_THAT(refusal({{"weight", numbers(DType::kFloat32, {1})}}), HasSubstr("'weight': has shape [1]"));
  EXPECT_THAT(refusal({{"seen", numbers(DType::kFloat32, {1})}}), HasSubstr("'seen': is of type "));
  EXPECT_THAT(refusal({{"seen", numbers(DType::kInt32, {1})}}), HasSubstr("'seen': is of type "));
  EXPECT_THAT(refusal({{"weight", numbers(DType::kInt64, {1, 2})}}), HasSubstr("'weight': is of type "));
}

}  // namespace
}  // namespace tensord::server::weights_update_test
