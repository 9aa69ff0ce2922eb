// Archives that Module::save writes, read again here and by PyTorch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/autograd/variable.h"
#include "core/base/error.h"
#include "core/jit/archive/zip.h"
#include "core/jit/runtime/module.h"
#include "core/ops/run.h"
#include "tests/support/places.h"

namespace tensord::jit::save_test {
namespace {

namespace fs = std::filesystem;
using ops::Value;
using ::testing::HasSubstr;

std::string data_file(const std::string& name) { return std::string(tests_folder()) + "/jit/data/" + name; }

std::shared_ptr<Module> load(const std::string& path, bool for_training) {
  LoadOptions options;
  options.for_training = for_training;
  return Module::load(path, options);
}

Value run(const Module& module, const char* method, std::vector<Value> arguments) {
  Frame frame;
  return module.method(method).run(frame, arguments);
}

Tensor ones(const Dims& sizes) { return ops::call_by_name("aten::ones", sizes, Value(), Value(), Value(), Value()); }

Tensor member(const Module& module, const std::string& name) {
  for (const auto& [known, tensor] : module.named_tensors()) {
    if (known == name) return tensor;
  }
  ADD_FAILURE() << "no tensor " << name;
  return {};
}

class SaveTest : public ::testing::Test {
 protected:
  SaveTest() : folder_(::testing::TempDir() + "/save_test." + std::to_string(getpid())) {
    fs::create_directories(folder_);
  }
  ~SaveTest() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  // Runs Python with `torch` and the arguments in sys.argv; TENSORD_TORCH_PYTHON selects a newer PyTorch.
  void check_in_python(const std::string& text, const std::string& arguments) {
    std::ofstream(path("check.py")) << "import sys, torch\n" << text;
    const char* const other = std::getenv("TENSORD_TORCH_PYTHON");
    const std::string python = other ? std::string(other) + " -W ignore" : tests_python();
    const std::string command = python + " " + path("check.py") + " " + arguments + " 2>&1";
    FILE* pipe = popen(command.c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    output_.clear();
    for (char buffer[256]; fgets(buffer, sizeof buffer, pipe);) output_ += buffer;
    EXPECT_EQ(pclose(pipe), 0) << output_;
  }

  const std::string folder_;
  std::string output_;  // of the last check
};

// Everything but the weights is unchanged, also as PyTorch reads it, for both ways of loading.
TEST_F(SaveTest, PyTorchFindsNoDifference) {
  std::string pairs;
  for (const char* name : {"mlp.pt", "training.pt", "runtime.pt", "objects.pt"}) {
    for (const bool for_training : {false, true}) {
      const std::string copy = path((for_training ? "trained_" : "served_") + std::string(name));
      load(data_file(name), for_training)->save(copy);
      pairs += data_file(name) + " " + copy + " ";
    }
  }
  check_in_python(R"(
def compare(a, b, where):
    assert a.original_name == b.original_name, where
    assert a.training == b.training, where
    for (name, x), (other, y) in zip(a.named_parameters(recurse=False), b.named_parameters(recurse=False)):
        assert name == other and x.requires_grad == y.requires_grad and x.is_leaf == y.is_leaf, (where, name)
    for name, child in a.named_children():
        compare(child, getattr(b, name), f'{where}.{name}')

for i in range(1, len(sys.argv), 2):
    source, copy = sys.argv[i:i + 2]
    a, b = torch.jit.load(source), torch.jit.load(copy)
    compare(a, b, copy)
    assert a.code == b.code
    assert list(a.state_dict()) == list(b.state_dict())
    for name, value in a.state_dict().items():
        other = b.state_dict()[name]
        assert value.dtype == other.dtype and value.stride() == other.stride() and torch.equal(value, other), (copy, name)
    if 'objects' in source:
        # The class's own __getstate__ doubles the count at every save.
        assert b.counter.count == 2 * a.counter.count
        assert b.strings == a.strings and b.table == a.table and b.numbers == a.numbers and b.floats == a.floats
        assert b.nothing is None and torch.equal(b.maybe, a.maybe)
        # Its color, which Python cannot ask for, decides whether forward prints.
        x = torch.ones(2)
        assert torch.allclose(b(x), a(x) + a.counter.count)
        assert b.points[0][0] == 1 and torch.equal(b.points[0][1], a.points[0][1])
        assert b.tied.data_ptr() == b.weight.data_ptr()
        assert b.row.data_ptr() == b.base.data_ptr() + 16 and b.transposed.data_ptr() == b.base.data_ptr()
        assert b.tensors[1].data_ptr() == b.base.data_ptr()
    if 'training' in source:
        assert b.state()[0] == [1, 2] and b.state()[3] is None and b.state()[5] == [(1, 'one'), (2, 'two')]
        x = torch.tensor([[1., 2.], [3., -1.]])
        assert torch.equal(a(x), b(x))
        assert b.first.weight is not None and b.first.weight.data_ptr() == b.head.weight.data_ptr()
)",
                  pairs);
  // The source and the copy, for each way of loading.
  EXPECT_EQ(output_, "grün\ngrün\ngrün\ngrün\n");
}

TEST_F(SaveTest, WritesWhatTheModuleHoldsNow) {
  const std::shared_ptr<Module> module = load(data_file("training.pt"), true);
  run(*module, "change", {Value(ones({2}))});
  module->set_training(true);
  {
    const NoGradGuard guard;
    ops::call_by_name("aten::mul_.Scalar", member(*module, "first.weight"), 3);
  }
  autograd::set_requires_grad(member(*module, "norm.weight"), false);
  autograd::set_requires_grad(member(*module, "head.scale"), true);
  module->save(path("changed.pt"));
  check_in_python(R"(
m = torch.jit.load(sys.argv[1])
assert all(module.training for module in m.modules())
assert torch.equal(m.first.weight, torch.tensor([[3., -3.], [1.5, 6.]]))
assert m.head.weight.data_ptr() == m.first.weight.data_ptr()
assert not m.norm.weight.requires_grad and m.head.scale.requires_grad and m.norm.bias.requires_grad
sizes, history, names, note, table, pairs = m.state()
assert sizes == [1, 2, 3] and note == 'changed' and torch.equal(history[1], torch.ones(2))
assert list(names) == ['a', 'b', 'c'] and names['c'].data_ptr() == history[1].data_ptr()
assert torch.equal(table, torch.tensor([[2., 3.], [5., 6.]])) and table.stride() == (3, 1)
)",
                  path("changed.pt"));
  // And here, served with the passes and plans.
  const std::shared_ptr<Module> again = load(path("changed.pt"), false);
  EXPECT_TRUE(again->is_training());
  EXPECT_EQ(member(*again, "head.scale").item_double(), 2);
  EXPECT_TRUE(member(*again, "first.weight").is_same(member(*again, "head.weight")));
  const Tensor x = ones({1, 2});
  const Tensor served = run(*again, "forward", {Value(x)}).to_tensor();
  const Tensor trained = run(*module, "forward", {Value(x)}).to_tensor();
  EXPECT_TRUE(ops::call_by_name("aten::all", ops::call_by_name("aten::eq.Tensor", served, trained)).item_bool());
}

TEST_F(SaveTest, ReplacesItsOwnArchive) {
  const std::string file = path("model.pt");
  fs::copy_file(data_file("training.pt"), file);
  for (int i = 0; i < 3; ++i) {
    for (const bool for_training : {false, true}) {
      const std::shared_ptr<Module> module = load(file, for_training);
      run(*module, "change", {Value(ones({1}))});
      module->save(file);
      EXPECT_EQ(run(*module, "change", {Value(ones({1}))}).to_int(), 4 + 2 * i + for_training);
    }
  }
  const auto zip = ZipArchive::open(file);
  for (const ZipArchive::Entry& entry : zip->entries()) {
    EXPECT_TRUE(entry.is_stored) << entry.name;
    EXPECT_EQ(entry.offset % 64, 0u) << entry.name;
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

// PyTorch 2 writes additional entries, which are kept.
TEST_F(SaveTest, ArchivesOfPyTorch2) {
  const std::string source = data_file("mlp_torch2.pt"), copy = path("copy.pt");
  const std::shared_ptr<Module> module = load(source, true);
  module->save(copy);
  const auto entries = [](const std::string& file) {
    std::set<std::string> names;
    const auto zip = ZipArchive::open(file);
    for (const ZipArchive::Entry& entry : zip->entries()) names.insert(entry.name);
    return names;
  };
  EXPECT_EQ(entries(copy), entries(source));
  const std::shared_ptr<Module> again = load(copy, true);
  const Tensor x = ones({2, 4});
  const Tensor before = run(*module, "forward", {Value(x)}).to_tensor();
  const Tensor after = run(*again, "forward", {Value(x)}).to_tensor();
  EXPECT_TRUE(ops::call_by_name("aten::all", ops::call_by_name("aten::eq.Tensor", before, after)).item_bool());
  EXPECT_TRUE(autograd::requires_grad(after));
}

TEST_F(SaveTest, AFullDiskLeavesTheOldFile) {
  const std::string file = path("model.pt");
  fs::copy_file(data_file("training.pt"), file);
  const std::shared_ptr<Module> module = load(file, true);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string message;
  try {
    module->save(file);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
    message = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(message, HasSubstr("model.pt: cannot be written: "));
  EXPECT_TRUE(load(file, false)->has_method("forward"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

}  // namespace
}  // namespace tensord::jit::save_test
