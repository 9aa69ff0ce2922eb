#pragma once

#include <string>

namespace tensord::jit {

// Describes a file or folder that has weights but no model, with advice: GGUF, safetensors, or a folder of Hugging
// Face's transformers. Returns "" for everything else. Looks at first bytes and names only; never throws.
std::string describe_foreign_weights(const std::string& path);

// Describes a placeholder for a file of any format: a Git LFS pointer.
std::string describe_placeholder(const std::string& path);

}  // namespace tensord::jit
