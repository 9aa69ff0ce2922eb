#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/jit/importers/new_weights.h"
#include "core/jit/ir/function.h"
#include "core/ops/value.h"

namespace tensord::jit {

// A tensor input or output of a method, as the file describes it.
struct TensorSignature {
  std::string name;
  std::optional<DType> dtype;  // unset: any
  std::optional<Dims> shape;   // -1: dynamic; unset: any rank
  // Names of the dimensions in the file; sizes with the same name are equal. "" means unnamed; empty if no dimension
  // has a name.
  std::vector<std::string> size_names = {};
};

// Inputs in the order of the method's arguments (without self), outputs in the order in which the result is flattened:
// tuples and lists item by item. A result that is always None is omitted.
struct MethodSignature {
  std::vector<TensorSignature> inputs, outputs;
};

// The files that a model was read from, open while tensors may view them.
class ModelFile {
 public:
  virtual ~ModelFile() = default;
  // See ZipArchive, which has the same methods.
  virtual void check_unchanged() const = 0;
  virtual size_t release_pages() const = 0;
};

// A model as its reader returns it: an object with parameters and buffers, and the methods of its class.
struct LoadedModel {
  std::unique_ptr<const FunctionLibrary> functions;
  ops::ObjectPtr object;
  std::vector<Tensor> with_gradient;                  // those that require gradients according to the file
  std::map<std::string, MethodSignature> signatures;  // by method
  std::shared_ptr<const ModelFile> file;              // null if nothing views the file
  // Writes the model with the current values of its tensors in its original format. Empty if that is impossible, for
  // the reason below.
  std::function<void(const std::string& path)> save;
  std::string why_not_saved;
};

struct ReadOptions {
  bool copies_tensors = false;  // copy tensors instead of viewing the file
  bool copies_files = false;    // read each file from a private copy, see copy_privately
  // Tensors that override parameters and buffers of the file; null: none. See new_weights.h.
  const NewWeights* weights = nullptr;
};

// A file format of models. TorchScript is not among them: files that no format here recognizes are TorchScript
// archives.
struct ModelFormat {
  const char* name;       // for messages: "exported program"
  const char* platform;   // as Triton calls it: "pytorch_libtorch"
  const char* file_name;  // in a model repository: "model.pt2"
  // Whether the file has this format, by its first bytes or its directory; never throws for invalid contents.
  bool (*probe)(const std::string& path);
  // Throws Error as Module::load does.
  LoadedModel (*read)(const std::string& path, const ReadOptions& options);
};

// All formats except TorchScript.
std::span<const ModelFormat* const> model_formats();
// The format of a file; null for a TorchScript archive or an unknown file.
const ModelFormat* find_format(const std::string& path);

}  // namespace tensord::jit
