#pragma once

#include <string>

namespace tensord::server {

// Writes the model `base`, in its format, to `out` with the tensors of the file `weights` (a state dict that torch.save
// wrote, or .safetensors) as its parameters and buffers of these names; the others stay as they are. Numbers are
// converted between floating-point types. All files are taken to be hostile. Throws Error: kInvalidArgument (a name,
// shape or type that the model does not have), or as reading and writing do.
void write_with_weights(const std::string& base, const std::string& weights, const std::string& out);

// Writes to `out`, in the format of `base`, what a module that came from it has saved: source (.py) has been saved as
// an archive, every other format as what it is. The folder of `out` has no files of weights. Throws Error as reading
// and writing do.
void copy_as_base(const std::string& base, const std::string& saved, const std::string& out);

}  // namespace tensord::server
