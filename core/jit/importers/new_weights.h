#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/jit/archive/safetensors.h"

namespace tensord::jit {

// The weights file next to a model's file: weights.safetensors. For source files (model.py), which contain no weights,
// also a .safetensors file of the same name, or weights.pt. "" if there is none.
std::string weights_beside(const std::string& model);

// Tensors of a weights file. They override the model's parameters and buffers of the same names while the model is
// read; other tensors keep the values in the model's own file.
class NewWeights {
 public:
  // Reads a .safetensors file, or a state dict that torch.save wrote (.pt, always copied). `copies`: copies the tensors
  // instead of viewing the file. Throws Error as read_safetensors does.
  NewWeights(const std::string& path, bool copies, bool copies_file = false);

  // The override of each of the model's tensors. `members` are the names of all parameters and buffers; tensors with
  // several names, or over the same elements, are replaced together. Throws Error{kInvalidArgument} that names the
  // tensor for an unknown name, a different shape or type, two values for one tensor, or memory that partially overlaps
  // another parameter.
  std::map<const TensorImpl*, Tensor> match(const std::vector<std::pair<std::string, Tensor>>& members) const;
  // In the order of the file.
  const std::vector<std::pair<std::string, Tensor>>& tensors() const { return file_.tensors; }
  // As for ModelFile; does nothing if the tensors are copies.
  void check_unchanged() const {
    if (file_.file) file_.file->check_unchanged();
  }
  size_t release_pages() const { return file_.file ? file_.file->release_pages() : 0; }

 private:
  std::string path_;
  SafetensorsFile file_;
};

// Whether a tensor covers its whole storage in row-major order, so that another storage can replace it.
bool is_whole_storage(const Tensor& tensor);

}  // namespace tensord::jit
