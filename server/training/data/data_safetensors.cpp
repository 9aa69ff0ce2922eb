#include "core/jit/archive/safetensors.h"
#include "server/training/data/data_formats.h"

namespace tensord::server {

NamedArrays read_safetensors(const std::string& path) { return jit::read_safetensors(path).tensors; }

}  // namespace tensord::server
