// Damaged weights in each file format: .safetensors, the tensors of .pt2, the external data of ONNX. Each damage gives
// one Error that names the file, or a model that stays within its memory. To run for hours, or to repeat one seed:
//
//     TENSORD_GUARD=1 TENSORD_FUZZ_SECONDS=3600 build/dev/tests/weights_hostile_test
//     TENSORD_FUZZ_SEED=17 build/dev/tests/weights_hostile_test --gtest_filter=*Safetensors*
//
// The file that crashes the process stays in the folder for temporary files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "core/jit/archive/safetensors.h"
#include "core/jit/archive/torch_file.h"
#include "core/jit/archive/zip.h"
#include "core/jit/archive/zip_writer.h"
#include "core/jit/runtime/module.h"
#include "tests/formats/damage.h"
#include "tests/onnx/message.h"
#include "tests/support/places.h"

namespace tensord::jit::weights_hostile_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ops::Value;

std::string bytes_of_floats(size_t count) {
  std::string bytes(count * sizeof(float), '\0');
  for (size_t i = 0; i < count; ++i) {
    const float value = static_cast<float>(i) / 8;
    std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
  }
  return bytes;
}

class HostileWeights : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("weights_hostile." + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override {
    fs::remove_all(folder_);
    if (std::getenv("TENSORD_FUZZ_SEED")) return;
    EXPECT_GT(refused_, 0U);
    EXPECT_GT(run_, 0U);
  }

  std::string write(const std::string& name, const std::string& bytes) {
    const fs::path path = folder_ / name;
    fs::remove(path);
    std::ofstream(path, std::ios::binary) << bytes;
    return path.string();
  }
  static std::string read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // Loading fails with an Error of the file, or the model runs. `call`: clones of its tensors are the arguments.
  template <class F>
  void attempt(unsigned seed, const F& load_and_run) {
    try {
      load_and_run();
      ++run_;
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::kInternal) << "seed " << seed << ": " << error.what();
      ++refused_;
    }
  }
  static void run(const Module& module, const std::vector<Value>& call) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    const std::function<bool()> is_late = [&] { return std::chrono::steady_clock::now() > end; };
    std::vector<Value> arguments;
    for (const Value& value : call) arguments.push_back(value.is_tensor() ? Value(value.to_tensor().clone()) : value);
    Frame frame;
    module.method("forward").run(frame, arguments, {.is_cancelled = &is_late});
  }

  fs::path folder_;
  size_t refused_ = 0, run_ = 0;
};

// Every byte of a tensor must be readable, and bools must be 0 or 1.
void read_all(const Tensor& tensor) {
  const Tensor whole = tensor.contiguous();
  const auto* bytes = static_cast<const unsigned char*>(whole.raw_data());
  unsigned sum = 0, max = 0;
  for (size_t i = 0; i < whole.size_bytes(); ++i) {
    sum += bytes[i];
    max = std::max<unsigned>(max, bytes[i]);
  }
  const volatile unsigned kept = sum;  // so that they are read
  static_cast<void>(kept);
  if (tensor.dtype() == DType::kBool) {
    EXPECT_LE(max, 1U);
  }
}

std::string with_length(const std::string& header, uint64_t length) {
  std::string out(sizeof length, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  return out + header;
}

TEST_F(HostileWeights, Safetensors) {
  const json whole = {{"__metadata__", {{"format", "pt"}}},
                      {"a", {{"dtype", "F32"}, {"shape", {2, 3}}, {"data_offsets", {0, 24}}}},
                      {"b", {{"dtype", "BOOL"}, {"shape", {5}}, {"data_offsets", {24, 29}}}},
                      {"c", {{"dtype", "I64"}, {"shape", json::array()}, {"data_offsets", {29, 37}}}},
                      {"d", {{"dtype", "BF16"}, {"shape", {0, 4}}, {"data_offsets", {37, 37}}}}};
  const std::string data(37, '\1');
  Seeds seeds(3000);
  while (const auto seed = seeds.next()) {
    Damage damage(*seed);
    json header = whole;
    const bool breaks_header = damage.pick(2) == 0;
    if (breaks_header) damage.apply(header);
    const std::string text = header.dump();
    std::string bytes = with_length(text, text.size()) + data;
    if (!breaks_header && damage.pick(8) > 0) damage.apply(bytes);
    if (damage.pick(4) == 0) {
      const uint64_t lengths[] = {0, text.size() - 1, bytes.size(), uint64_t{1} << 40, ~uint64_t{0}, ~uint64_t{7}};
      bytes.replace(0, 8, with_length("", damage.one_of(lengths)));
    }
    const std::string path = write("w.safetensors", bytes);
    attempt(*seed, [&] {
      for (const bool copies : {false, true}) {
        for (const auto& [name, tensor] : read_safetensors(path, copies).tensors) read_all(tensor);
      }
    });
  }
}

// Beside a model, as its new parameters.
TEST_F(HostileWeights, SafetensorsOfAModel) {
  const Message weight = float_tensor("layer.weight", {3}, {10, 20, 30});
  write("model.onnx", model(graph({node("Add", {"x", "layer.weight"}, {"y"})}, {"x"}, {"y"}, {weight})).str());
  const json whole = {{"layer.weight", {{"dtype", "F32"}, {"shape", {3}}, {"data_offsets", {0, 12}}}}};
  const Tensor x = Tensor::empty(Dims{3}, DType::kFloat32);
  std::memset(x.raw_data(), 0, x.size_bytes());
  Seeds seeds(150);
  while (const auto seed = seeds.next()) {
    Damage damage(*seed);
    json header = whole;
    if (damage.pick(4) > 0) damage.apply(header);
    const std::string text = header.dump();
    std::string bytes = with_length(text, text.size()) + bytes_of_floats(3);
    if (damage.pick(4) == 0) damage.apply(bytes);
    write("weights.safetensors", bytes);
    attempt(*seed, [&] { run(*Module::load((folder_ / "model.onnx").string()), {x}); });
  }
}

// A message of external data with random damage.
Message external_tensor(Damage& damage, const std::string& name, const std::vector<int64_t>& dims, size_t offset,
                        size_t length) {
  static const std::string kNumbers[] = {"0",  "-1",   "1",  "18446744073709551615", "9223372036854775807", "4096", "",
                                         " 4", "0x10", "1e3"};
  static const std::string kPlaces[] = {"data",    "other",       "",      ".",    "..",
                                        "../data", "/etc/passwd", "data/", "link", "sub/../data"};
  std::vector<std::pair<std::string, std::string>> entries = {
      {"location", "data"}, {"offset", std::to_string(offset)}, {"length", std::to_string(length)}};
  std::vector<int64_t> sizes = dims;
  uint64_t dtype = 1;
  switch (damage.pick(9)) {
    case 0: entries[0].second = damage.one_of(kPlaces); break;
    case 1: entries[1].second = damage.one_of(kNumbers); break;
    case 2: entries[2].second = damage.one_of(kNumbers); break;
    case 3: entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(damage.pick(3))); break;
    case 4: entries.push_back(damage.one_of({entries[0], entries[1], entries[2]})); break;
    case 5:
      sizes[damage.pick(sizes.size())] = damage.one_of<int64_t>({0, -1, int64_t{1} << 40, INT64_MAX, INT64_MIN});
      break;
    case 6: dtype = damage.pick(30); break;
    default: break;
  }
  Message tensor;
  for (const int64_t size : sizes) tensor.number(1, static_cast<uint64_t>(size));
  tensor.number(2, dtype).bytes(8, name);
  for (const auto& [key, value] : entries) tensor.message(13, Message().bytes(1, key).bytes(2, value));
  return tensor.number(14, 1);
}

TEST_F(HostileWeights, ExternalDataOfOnnx) {
  const std::string data = bytes_of_floats(40);
  fs::create_symlink("/etc/passwd", folder_ / "link");
  const Tensor x = Tensor::empty(Dims{4}, DType::kFloat32);
  std::memset(x.raw_data(), 0, x.size_bytes());
  Seeds seeds(600);
  while (const auto seed = seeds.next()) {
    Damage damage(*seed);
    const std::vector<Message> tensors = {external_tensor(damage, "w", {8, 4}, 0, 128),
                                          external_tensor(damage, "b", {4}, damage.pick(2) * 128, 16)};
    std::string bytes =
        model(graph({node("Mul", {"w", "x"}, {"z"}), node("Add", {"z", "b"}, {"y"})}, {"x"}, {"y"}, tensors)).str();
    if (damage.pick(3) == 0) damage.apply(bytes);
    write("data", damage.pick(6) == 0 ? data.substr(0, damage.pick(data.size())) : data);
    const std::string path = write("model.onnx", bytes);
    attempt(*seed, [&] { run(*Module::load(path), {x}); });
  }
}

// The tensor lists of a program, their entries, and the archive's bytes.
TEST_F(HostileWeights, TensorsOfPrograms) {
  const fs::path data = fs::path(tests_folder()) / "pt2" / "data";
  const Value calls = load_torch_file((data / "calls.pt").string());
  static const std::string kNames[] = {"conv", "tied", "buffers", "lists", "dtypes", "views"};
  std::map<std::string, std::map<std::string, std::string>> programs;
  for (const std::string& name : kNames) {
    const auto zip = ZipArchive::open((data / (name + ".pt2")).string());
    for (const ZipArchive::Entry& entry : zip->entries()) programs[name][entry.name] = zip->read(entry);
  }
  Seeds seeds(400);
  while (const auto seed = seeds.next()) {
    Damage damage(*seed);
    const std::string name = damage.one_of(kNames);
    std::map<std::string, std::string> entries = programs[name];
    const bool breaks_list = damage.pick(3) > 0;
    for (auto& [entry, bytes] : entries) {
      const bool is_list = entry.ends_with("_config.json");
      if (is_list && breaks_list) {
        json list = json::parse(bytes);
        damage.apply(list);
        bytes = list.dump();
      } else if (!is_list && entry.starts_with("data/") && damage.pick(4) == 0) {
        damage.apply(bytes);
      }
    }
    const std::string path = (folder_ / "m.pt2").string();
    fs::remove(path);
    ZipWriter writer(path);
    for (const auto& [entry, bytes] : entries) writer.add("m/" + entry, bytes);
    writer.finish();
    if (damage.pick(4) == 0) {
      std::string archive = read(path);
      damage.apply(archive);
      write("m.pt2", archive);
    }
    const std::ptrdiff_t index = calls.to_dict()->find(Value(name));
    const Value& call = calls.to_dict()->items()[static_cast<size_t>(index)].second.to_list()->items[0];
    attempt(*seed, [&] { run(*Module::load(path), call.to_tuple()->items[0].to_tuple()->items); });
  }
}

}  // namespace
}  // namespace tensord::jit::weights_hostile_test
