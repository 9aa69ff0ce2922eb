#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/jit/archive/safetensors.h"

namespace tensord::jit {

// The file of weights that lies beside a model's file: weights.safetensors, and beside source, which has none of its
// own (model.py), also a .safetensors file of its name, or weights.pt; "" when there is none.
std::string weights_beside(const std::string& model);

// Tensors of a file of weights, which take the place of a model's parameters and buffers of these names while it is
// read; the others stay as they are in the model's own file.
class NewWeights {
 public:
  // Reads a .safetensors file, or a state dict that torch.save wrote (.pt, always copied). `copies`: tensors get memory
  // of their own. Throws Error as read_safetensors does.
  NewWeights(const std::string& path, bool copies, bool copies_file = false);

  // By tensor of the model: what takes its place. `members` are the names of all parameters and buffers; tensors with
  // several names, or over the very same elements, are replaced together. Throws Error{kInvalidArgument} that names the
  // tensor: a name that the model does not have, another shape or type, two values for one tensor, or memory that
  // another parameter has in part.
  std::map<const TensorImpl*, Tensor> match(const std::vector<std::pair<std::string, Tensor>>& members) const;
  // As they are in the file.
  const std::vector<std::pair<std::string, Tensor>>& tensors() const { return file_.tensors; }
  // As ModelFile's; nothing where the tensors are copies of what was in the file.
  void check_unchanged() const {
    if (file_.file) file_.file->check_unchanged();
  }
  size_t release_pages() const { return file_.file ? file_.file->release_pages() : 0; }

 private:
  std::string path_;
  SafetensorsFile file_;
};

// Whether a tensor is all there is in its storage, in row-major order: a model that holds another storage in its place
// lacks nothing.
bool is_whole_storage(const Tensor& tensor);

}  // namespace tensord::jit
