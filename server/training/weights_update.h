#pragma once

#include <string>

namespace tensord::server {

// Writes the model `base`, in its format, to `out`, with the tensors of the file `weights` (a state dict saved by
// torch.save, or .safetensors) as its parameters and buffers of the same names; the others are unchanged. Converts
// between floating-point types. All files may be hostile. Throws Error: kInvalidArgument (a name, shape or type that
// the model does not have), or a reading or writing error.
void write_with_weights(const std::string& base, const std::string& weights, const std::string& out);

// Writes a module that was loaded from `base` and trained to `out`, in the format of `base`: source (.py) becomes an
// archive, every other format stays. The folder of `out` must have no weights files. Throws Error as reading and
// writing do.
void copy_as_base(const std::string& base, const std::string& saved, const std::string& out);

}  // namespace tensord::server
