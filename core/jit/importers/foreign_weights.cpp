#include "core/jit/importers/foreign_weights.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include "core/jit/archive/zip.h"
#include "core/jit/importers/format.h"
#include "core/jit/importers/onnx/onnx_format.h"

namespace tensord::jit {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxEntries = 10000;  // entries of a folder that are examined

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

constexpr const char* kLfs = "is a Git LFS pointer to a file that was not fetched; `git lfs pull` fetches it";
constexpr const char* kOldSave =
    "is a file of torch.save before PyTorch 1.6, a pickle without the model's code; load it in Python with the model's "
    "class, and write torch.jit.script(model.eval()).save('model.pt'), or torch.export.save (model.pt2)";
constexpr const char* kPickle =
    "is a pickle of Python, objects without the model's code; load it there and export the model (model.pt, model.pt2, "
    "model.onnx)";

struct Magic {
  size_t offset;
  std::string_view bytes;
  const char* what;
};
using namespace std::string_view_literals;
constexpr Magic kMagics[] = {
    {0, "GGUF"sv, kGguf},
    {0, "version https://git-lfs."sv, kLfs},
    {0, "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"sv, kOldSave},
    {0, "\x80\x02"sv, kPickle},
    {0, "\x80\x03"sv, kPickle},
    {0, "\x80\x04"sv, kPickle},
    {0, "\x80\x05"sv, kPickle},
    {0, "\x89HDF\r\n\x1a\n"sv,
     "is an HDF5 file, as Keras writes it; export the model as ONNX (tf2onnx), as model.onnx"},
    {4, "TFL3"sv, "is a TensorFlow Lite model; export the model as ONNX (tf2onnx), as model.onnx"},
    {0, "ftrt"sv,
     "is an engine of TensorRT, made for one GPU; serve the ONNX file that it was built from, as model.onnx"},
    {0, "ptrt"sv,
     "is an engine of TensorRT, made for one GPU; serve the ONNX file that it was built from, as model.onnx"},
    {0, "\x93NUMPY"sv, "is an array of NumPy (.npy) and no model"},
    {0, "\x1f\x8b"sv, "is packed by gzip; unpack it first (gunzip, or tar xzf)"},
    {257, "ustar"sv, "is a tar archive; unpack it first"},
};

// Describes a printable text file by its beginning and its likely format.
std::string describe_text(std::string_view head) {
  const bool is_text = std::ranges::all_of(
      head, [](unsigned char c) { return c == '\n' || c == '\r' || c == '\t' || (c >= 0x20 && c != 0x7f); });
  if (!is_text) return {};
  const size_t begin = std::min(head.find_first_not_of(" \t\r\n"), head.size());
  const std::string_view text = head.substr(begin);
  const std::string shown(text.substr(0, std::min<size_t>(text.find_first_of("\r\n"), 40)));
  std::string way = "a model is an archive of torch.jit.save, torch.export.save or ONNX";
  if (text.starts_with("<")) way = "a page where a download should be, perhaps: get the file again";
  if (text.starts_with("{")) way = "JSON is not a model";
  if (text.starts_with("import ") || text.starts_with("from ") || text.starts_with("class ") || text.starts_with("#")) {
    way =
        "TorchScript source is served as model.py; other Python code has to be exported, by torch.jit.script or "
        "torch.export";
  }
  return "is a text file that begins with '" + shown + "'; " + way;
}

// Whether the file starts with a length and a JSON object of that length.
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
  char bytes[512];
  file.read(bytes, sizeof bytes);
  const std::string_view head(bytes, static_cast<size_t>(file.gcount()));
  for (const Magic& magic : kMagics) {
    if (head.size() > magic.offset && head.substr(magic.offset).starts_with(magic.bytes)) return magic.what;
  }
  if (std::string text = describe_text(head); !text.empty()) return text;
  file.clear();
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
  if (has("saved_model.pb", "saved_model.pb")) {
    return "is a SavedModel of TensorFlow; export the model as ONNX (tf2onnx), as model.onnx";
  }
  for (const std::string& name : names) {
    if (!name.ends_with(".gguf") && !name.ends_with(".safetensors")) continue;
    if (const std::string what = describe_file((fs::path(path) / name).string()); !what.empty())
      return "has '" + name + "', which " + what;
  }
  return {};
}

}  // namespace

std::string describe_placeholder(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string head(std::size(kMagics[1].bytes), 0);
  return file.read(head.data(), static_cast<std::streamsize>(head.size())) && head == kMagics[1].bytes ? kLfs : "";
}

std::string describe_foreign_weights(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error) ? describe_folder(path) : describe_file(path);
}

std::string describe_no_onnx(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char head[4] = {};
  if (file.read(head, sizeof head) && std::string_view(head, sizeof head) == "PK\x03\x04") {
    return "is a zip archive, as torch.jit.save and torch.export.save write it: name it model.pt or model.pt2";
  }
  return describe_foreign_weights(path);
}

std::string why_no_model(const std::string& path) {
  const auto of_file = [&](const std::string& what) { return what.empty() ? what : path + ": " + what; };
  if (const std::string what = describe_placeholder(path); !what.empty()) return of_file(what);
  if (const ModelFormat* format = find_format(path)) {
    return format == &onnx::kOnnxFormat ? of_file(describe_no_onnx(path)) : std::string();
  }
  if (const std::string what = describe_foreign_weights(path); !what.empty()) return of_file(what);
  try {
    ZipArchive::open(path);
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::string find_model_file(const std::string& folder) {
  std::error_code error;
  fs::path newest = folder;
  long number = -1;
  size_t examined = 0;
  for (fs::directory_iterator at(folder, error); at != fs::directory_iterator(); at.increment(error)) {
    if (++examined > kMaxEntries) break;
    const std::string name = at->path().filename().string();
    const bool is_version = name.size() < 10 && std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
    if (is_version && std::stol(name) > number) {
      number = std::stol(name);
      newest = at->path();
    }
  }
  for (const char* name : {"model.pt", "model.pt2", "model.onnx", "model.py"}) {
    for (const fs::path& place : {fs::path(folder) / name, newest / name}) {
      if (fs::is_regular_file(place, error)) return place.string();
    }
  }
  return {};
}

}  // namespace tensord::jit
