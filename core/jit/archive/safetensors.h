#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/mapped_file.h"
#include "core/tensor/tensor.h"

namespace tensord::jit {

// A file of named tensors as the package safetensors writes it: the length of a header, the header (JSON), the data.
struct SafetensorsFile {
  std::shared_ptr<const MappedFile> file;
  std::vector<std::pair<std::string, Tensor>> tensors;  // in the order of their data
};

// Tensors lie in the mapped file where they are aligned for their type, or are copies. Checked as the package does, and
// more: the lengths, the JSON's depth, names that come twice, that the data of the tensors covers the file without gap
// or overlap, that each has as many bytes as its shape and type take. Throws Error naming file and tensor: kNotFound,
// kDataLoss, kResourceExhausted (a header beyond all use), kUnimplemented (a type that no tensor here has).
SafetensorsFile read_safetensors(const std::string& path, bool copies = false, bool copies_file = false);

// Writes such a file, row-major and in the order given; it appears whole or not at all. Throws Error as AtomicFile
// does, and kUnimplemented naming a tensor whose type the format does not have.
void write_safetensors(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& tensors);

}  // namespace tensord::jit
