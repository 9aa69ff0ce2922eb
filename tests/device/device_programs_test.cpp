// Models of all formats, moved to the device of these tests: exported programs of tests/pt2/data with their results,
// and what a model's code says of devices.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "core/autograd/variable.h"
#include "core/jit/archive/torch_file.h"
#include "core/jit/ir/text.h"
#include "core/jit/runtime/module.h"
#include "core/jit/runtime/placement.h"
#include "core/ops/op.h"
#include "core/tensor/cuda/runtime.h"
#include "tests/device/async_device.h"
#include "tests/device/async_kernels.h"
#include "tests/support/leaves.h"
#include "tests/support/places.h"
#include "tests/support/ways_to_run.h"

namespace tensord::device_programs_test {
namespace {

namespace fs = std::filesystem;
using late::kFirst;
using ops::Value;

[[maybe_unused]] const bool is_installed = (late::install(), late::install_kernels(), true);

std::vector<Value> at(const std::vector<Value>& values, Device device) {
  std::vector<Value> out;
  for (const Value& value : values) {
    if (value.is_tensor()) {
      out.emplace_back(value.to_tensor().to(device).clone(/*preserve_strides=*/true));
    } else if (value.is_list()) {
      out.emplace_back(ops::make_list(value.to_list()->element, at(value.to_list()->items, device)));
    } else if (value.is_tuple()) {
      out.push_back(ops::make_tuple(at(value.to_tuple()->items, device)));
    } else {
      out.push_back(value);
    }
  }
  return out;
}

void expect_close(const Tensor& got, const Tensor& expected, const std::string& what) {
  const Tensor a = got.to(Device{}).to(DType::kFloat64).contiguous(), b = expected.to(DType::kFloat64).contiguous();
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  const double tolerance = got.dtype() == DType::kBFloat16 ? 1e-2 : got.dtype() == DType::kFloat16 ? 1e-3 : 1e-5;
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double x = a.data<double>()[i], y = b.data<double>()[i];
    if (std::isnan(x) && std::isnan(y)) continue;
    ASSERT_TRUE(x == y || std::abs(x - y) <= tolerance + tolerance * std::abs(y)) << what << ", element " << i;
  }
}

void expect_leaves(const std::vector<Value>& got, const std::vector<Value>& expected, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    const std::string where = concat(what, ", result ", i);
    if (!expected[i].is_tensor()) {
      EXPECT_TRUE(got[i].equals(expected[i])) << where;
      continue;
    }
    ASSERT_TRUE(got[i].is_tensor()) << where;
    EXPECT_EQ(got[i].to_tensor().device(), kFirst) << where;
    expect_close(got[i].to_tensor(), expected[i].to_tensor(), where);
  }
}

TEST(DevicePrograms, GiveWhatPyTorchGives) {
  const fs::path data = fs::path(tests_folder()) / "pt2" / "data";
  const Value calls = jit::load_torch_file((data / "calls.pt").string());
  for (const auto& [name, list] : calls.to_dict()->items()) {
    SCOPED_TRACE(name.to_string());
    jit::in_every_way([&](jit::LoadOptions options, const char* how) {
      options.device = kFirst;
      const auto module = jit::Module::load((data / (name.to_string() + ".pt2")).string(), options);
      for (const auto& [parameter, tensor] : module->named_tensors()) EXPECT_EQ(tensor.device(), kFirst) << parameter;
      jit::Frame frame;
      for (const Value& call : list.to_list()->items) {
        const std::vector<Value>& parts = call.to_tuple()->items;
        const Value got = module->method("forward").run(frame, at(parts[0].to_tuple()->items, kFirst));
        expect_leaves(ops::leaves_of(got), ops::leaves_of(parts[1]), how);
      }
    });
  }
}

// Traced on the CPU, code names it; most code leaves the device open.
TEST(DevicePrograms, TakeTheModelsDeviceForTheirs) {
  const char* const source = R"(
class Net(Module):
    __parameters__ = ["weight", "tied"]
    weight: Tensor
    tied: Tensor

    def forward(self, x: Tensor) -> Tensor:
        places = torch.arange(x.size(0), dtype=torch.float32, device=torch.device("cpu"))
        shift = torch.zeros([2], device="cuda:0") + torch.ones([2])
        table = torch.tensor([1.0, 2.0])
        return x.to("cpu") * self.weight + places.unsqueeze(1) + shift + table + self.tied
)";
  const Tensor weight = Tensor::empty(Dims{2}, DType::kFloat32), x = Tensor::empty(Dims{3, 2}, DType::kFloat32);
  for (int64_t i = 0; i < 2; ++i) weight.data<float>()[i] = static_cast<float>(i) + 0.5F;
  for (int64_t i = 0; i < 6; ++i) x.data<float>()[i] = static_cast<float>(i) * 0.25F;
  jit::in_every_way([&](jit::LoadOptions options, const char* how) {
    options.device = kFirst;
    // The same memory by two names: it stays one on the device.
    const auto module =
        jit::Module::compile(source, {{"weight", weight}, {"tied", weight.as_view(Dims{2}, Dims{1}, 0)}}, options);
    const auto tensors = module->named_tensors();
    EXPECT_EQ(tensors.at(0).second.raw_data(), tensors.at(1).second.raw_data()) << how;
    jit::Frame frame;
    for (int i = 0; i < 3; ++i) {
      const Tensor got = module->method("forward").run(frame, std::vector<Value>{x.to(kFirst)}).to_tensor();
      EXPECT_EQ(got.device(), kFirst) << how;
      const Tensor home = got.to(Device{}).contiguous();
      for (int64_t k = 0; k < 6; ++k) {
        const float w = weight.data<float>()[k % 2];
        const float want = x.data<float>()[k] * w + static_cast<float>(k / 2) + 1 + static_cast<float>(1 + k % 2) + w;
        EXPECT_FLOAT_EQ(home.data<float>()[k], want) << how << ", element " << k;
      }
    }
  });
}

OP("test::of_the_host(Tensor self) -> Tensor").infer([](const Tensor& x) {
  return ops::TensorMeta{x.sizes(), x.dtype(), {}, {}};
});
IMPL("test::of_the_host", kCPU, [](const ops::KernelContext&, const Tensor& x, Tensor& out) { out.copy_from(x); });

OP("test::real_on_the_host(Tensor self, Tensor weight) -> Tensor").infer([](const Tensor& x, const Tensor&) {
  return ops::TensorMeta{x.sizes(), x.dtype(), {}, {}};
});
IMPL("test::real_on_the_host", kCPU,
     [](const ops::KernelContext&, const Tensor& x, const Tensor&, Tensor& out) { out.copy_from(x); });
IMPL("test::real_on_the_host", ops::kComplexComposite, [](const Tensor& x, const Tensor&) { return x; });

std::string refusal_of(const std::string& graph, const std::vector<Value>& constants = {}) {
  const auto parsed = jit::parse_graph(graph, constants);
  jit::check_kernels(*parsed, Device{kCPU});
  try {
    jit::check_kernels(*parsed, Device{kCUDA, 1});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(DevicePrograms, AreRefusedForOperatorsWithoutKernel) {
  EXPECT_EQ(refusal_of(R"(graph(%x : Tensor):
  %y : Tensor = test::of_the_host(%x)
  %z : Tensor = test::of_the_host(%y)
  return (%z))"),
            "cuda:1 has no kernel for test::of_the_host");
  // The device has code for complex numbers only, which x may be; the weight says.
  EXPECT_EQ(refusal_of(R"(graph(%x : Tensor):
  %y : Tensor = test::real_on_the_host(%x, %x)
  return (%y))"),
            "");
  const char* const with_weight = R"(graph(%x : Tensor):
  %w : Tensor = prim::Constant[value=<Tensor @0>]()
  %y : Tensor = test::real_on_the_host(%x, %w)
  return (%y))";
  EXPECT_EQ(refusal_of(with_weight, {Tensor::empty(Dims{2}, DType::kFloat32)}),
            "cuda:1 has no kernel for test::real_on_the_host");
  EXPECT_EQ(refusal_of(with_weight, {Tensor::empty(Dims{2}, DType::kComplex64)}), "");
}

TEST(DevicePrograms, AreSavedFromWhereTheyAre) {
  const fs::path data = fs::path(tests_folder()) / "pt2" / "data";
  const std::string path = testing::TempDir() + "/from_device.pt2";
  jit::LoadOptions options;
  options.for_training = true;
  options.device = kFirst;
  const auto module = jit::Module::load((data / "tied.pt2").string(), options);
  for (const auto& [name, tensor] : module->named_parameters()) {
    tensor.copy_from(tensor.to(Device{}).clone().as_view(tensor.sizes(), Dims(tensor.sizes().size(), 0), 0).to(kFirst));
  }
  module->save(path);
  const auto saved = jit::Module::load(path)->named_tensors();
  const auto expected = module->named_tensors();
  ASSERT_EQ(saved.size(), expected.size());
  for (size_t i = 0; i < saved.size(); ++i) {
    EXPECT_EQ(expected[i].second.device(), kFirst) << "where it was before";
    expect_close(saved[i].second, expected[i].second.to(Device{}), saved[i].first);
  }
}

TEST(DevicePrograms, AreRefusedWhereNoDeviceIs) {
  jit::LoadOptions options;
  options.device = {kCUDA, 77};
  const std::string path = std::string(tests_folder()) + "/pt2/data/tied.pt2";
  try {
    jit::Module::load(path, options);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("device cuda:77 is not available"), std::string::npos) << error.what();
  }
  options.device = kFirst;
  options.precision = ops::Precision::kBf16;
  try {
    jit::Module::load(path, options);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("for the CPU only"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tensord::device_programs_test
