#pragma once

#include <string>

namespace tensord::jit {

// Describes a file or folder that has weights but no model, with advice: GGUF, safetensors, or a folder of Hugging
// Face's transformers. Returns "" for everything else. Looks at first bytes and names only; never throws.
std::string describe_foreign_weights(const std::string& path);

// Describes a placeholder for a file of any format: a Git LFS pointer.
std::string describe_placeholder(const std::string& path);

// The model's file in a folder of a repository: of the version that it is, or of its newest one. Empty if there is
// none.
std::string find_model_file(const std::string& folder);

}  // namespace tensord::jit
