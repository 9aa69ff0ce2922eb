#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/jit/formats/new_weights.h"
#include "core/jit/ir/function.h"
#include "core/ops/value.h"

namespace tensord::jit {

// What a file says of one tensor that goes into or comes out of a method.
struct TensorSignature {
  std::string name;
  std::optional<DType> dtype;  // none: any
  std::optional<Dims> shape;   // -1: any size; none: any rank
  // What the file calls each size: those of one name are equal. "" has none; empty where no size has.
  std::vector<std::string> size_names = {};
};

// Inputs by argument of the method (self left out), outputs in the order in which the result is taken apart: tuples and
// lists item after item. A result that is always None has no place among them.
struct MethodSignature {
  std::vector<TensorSignature> inputs, outputs;
};

// The files that a model was read from, open as long as tensors may view them.
class ModelFile {
 public:
  virtual ~ModelFile() = default;
  // See ZipArchive, which has both.
  virtual void check_unchanged() const = 0;
  virtual size_t release_pages() const = 0;
};

// A model as its file's reader leaves it: an object with parameters and buffers, and the methods of its class.
struct LoadedModel {
  std::unique_ptr<const FunctionLibrary> functions;
  ops::ObjectPtr object;
  std::vector<Tensor> with_gradient;                  // those that the file says require one
  std::map<std::string, MethodSignature> signatures;  // by method
  std::shared_ptr<const ModelFile> file;              // null: nothing views it
  // Writes the model with its tensors as they are now, in the format it came in. Empty: it cannot, for this reason.
  std::function<void(const std::string& path)> save;
  std::string why_not_saved;
};

struct ReadOptions {
  bool copies_tensors = false;  // tensors get memory of their own instead of viewing the file
  bool copies_files = false;    // each file is read from a private copy, see copy_privately
  // Tensors that take the place of parameters and buffers of the file; null: none. See new_weights.h.
  const NewWeights* weights = nullptr;
};

// A kind of file that models are read from. TorchScript archives have none: what no format here claims is one.
struct ModelFormat {
  const char* name;       // for messages: "exported program"
  const char* platform;   // as Triton calls it: "pytorch_libtorch"
  const char* file_name;  // in a model repository: "model.pt2"
  // Whether the file is of this kind, by its first bytes or its directory; never throws for what is in the file.
  bool (*probe)(const std::string& path);
  // Throws Error as Module::load does.
  LoadedModel (*read)(const std::string& path, const ReadOptions& options);
};

// Every format but TorchScript.
std::span<const ModelFormat* const> model_formats();
// The format of a file; null: a TorchScript archive, or nothing that is known.
const ModelFormat* find_format(const std::string& path);

}  // namespace tensord::jit
