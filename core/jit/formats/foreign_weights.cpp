#include "core/jit/formats/foreign_weights.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

namespace tensord::jit {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxEntries = 10000;  // of a folder that are looked at

constexpr const char* kGguf =
    "is a GGUF file, weights of llama.cpp in its own quantized types without the model's code; export the model that "
    "it was made from, with torch.export.save (model.pt2) or as ONNX (model.onnx)";
constexpr const char* kSafetensors =
    "is a safetensors file, weights without a model; export the model (model.pt, model.pt2, model.onnx) or write it as "
    "TorchScript source (model.py), and put the weights beside it as weights.safetensors";
constexpr const char* kTransformers =
    "is a folder of Hugging Face's transformers, weights and a configuration without the model's code; export the "
    "model "
    "and serve that: torch.export.save(torch.export.export(model.eval(), inputs), 'model.pt2'), or optimum-cli export "
    "onnx --model FOLDER OUT";

// A length, and a JSON object of that length.
bool is_safetensors(std::ifstream& file, uintmax_t size) {
  uint64_t length = 0;
  char first = 0;
  file.seekg(0);
  return file.read(reinterpret_cast<char*>(&length), sizeof length) && file.get(first) && first == '{' && length >= 2 &&
         length <= size - sizeof length;
}

std::string describe_file(const std::string& path) {
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  if (error || size < 16) return {};
  std::ifstream file(path, std::ios::binary);
  char magic[4] = {};
  if (!file.read(magic, sizeof magic)) return {};
  if (std::memcmp(magic, "GGUF", sizeof magic) == 0) return kGguf;
  return is_safetensors(file, size) ? kSafetensors : "";
}

std::string describe_folder(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(path, error); at != fs::directory_iterator(); at.increment(error)) {
    if (names.size() == kMaxEntries) break;
    names.push_back(at->path().filename().string());
  }
  const auto has = [&](std::string_view begin, std::string_view end) {
    return std::ranges::any_of(names,
                               [&](const std::string& name) { return name.starts_with(begin) && name.ends_with(end); });
  };
  const bool has_weights = has("", ".safetensors") || has("pytorch_model", ".bin") || has("", ".index.json");
  if (has("config.json", "config.json") && has_weights) return kTransformers;
  for (const std::string& name : names) {
    if (!name.ends_with(".gguf") && !name.ends_with(".safetensors")) continue;
    if (const std::string what = describe_file((fs::path(path) / name).string()); !what.empty())
      return "has '" + name + "', which " + what;
  }
  return {};
}

}  // namespace

std::string describe_foreign_weights(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error) ? describe_folder(path) : describe_file(path);
}

}  // namespace tensord::jit
