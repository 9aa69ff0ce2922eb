#pragma once

#include <string>

namespace tensord::jit {

// What a file or a folder is that has weights and no model in it, and what can be done: GGUF, safetensors, a folder of
// Hugging Face's transformers. "" for everything else. By first bytes and names; never throws.
std::string describe_foreign_weights(const std::string& path);

// The same of what stands in for a file of any format: a pointer of Git LFS.
std::string describe_placeholder(const std::string& path);

}  // namespace tensord::jit
