#pragma once

#include <string>

namespace tensord::jit {

// Describes a file or folder that has weights but no model, with advice: GGUF, safetensors, or a folder of Hugging
// Face's transformers. Returns "" for everything else. Looks at first bytes and names only; never throws.
std::string describe_foreign_weights(const std::string& path);

// Describes a placeholder for a file of any format: a Git LFS pointer.
std::string describe_placeholder(const std::string& path);

// Describes a file that has the name of an ONNX model but the first bytes of another format. Empty if it is not known.
std::string describe_no_onnx(const std::string& path);

// Why the file of a model cannot be loaded, as far as its first bytes and the directory of an archive tell; reads no
// tensor. Empty if it may load. Never throws.
std::string why_no_model(const std::string& path);

// The model's file in a folder of a repository: of the version that it is, or of its newest one. Empty if there is
// none.
std::string find_model_file(const std::string& folder);

}  // namespace tensord::jit
