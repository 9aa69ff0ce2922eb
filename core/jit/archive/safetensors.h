#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/mapped_file.h"
#include "core/tensor/tensor.h"

namespace tensord::jit {

// A file of named tensors in the safetensors format: the length of the header, the header (JSON), the data.
struct SafetensorsFile {
  std::shared_ptr<const MappedFile> file;
  std::vector<std::pair<std::string, Tensor>> tensors;  // in the order of the data
};

// Maps tensors that are aligned for their dtype, and copies the others. It checks what the safetensors package checks
// and more: the lengths, the depth of the JSON, duplicate names, that the tensors' data covers the file without gaps
// and overlaps, and that each tensor has the bytes of its shape and dtype. Throws Error naming the file and the tensor:
// kNotFound, kDataLoss, kResourceExhausted (the header is too large), kUnimplemented (an unsupported dtype).
SafetensorsFile read_safetensors(const std::string& path, bool copies = false, bool copies_file = false);

// Writes a safetensors file, row-major and in the given order. The file appears complete or not at all. Throws Error as
// AtomicFile does, and kUnimplemented naming a tensor whose dtype the format does not support.
void write_safetensors(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& tensors);

}  // namespace tensord::jit
