#pragma once

#include <string>

#include "core/jit/archive/zip.h"
#include "core/ops/value.h"

namespace tensord::jit {

// Reads a file written by torch.save in its zip format (PyTorch 1.6 to 2.x): tensors, parameters, None,
// bool, int, float, str, torch.dtype (as its number), torch.device, torch.Size, list, tuple, dict and
// OrderedDict, nested. Lists and dicts get the element types that their items have in common. Tensors that share a
// storage in the file share it here. Those that were written as requiring a gradient do, outside of inference mode.
// Throws Error as ModelArchive::open does; what is not in this list is refused by name.
ops::Value load_torch_file(const std::string& path, const ZipOptions& options = {});

// Writes a file that torch.load reads, also with weights_only=True. Tensors (CPU) are written compact,
// dense ones with their strides; a NamedTuple becomes a tuple. Replaces the file in one step. Throws
// Error{kUnimplemented} for objects, enums, functions and futures, Error{kUnavailable} when writing fails.
void save_torch_file(const std::string& path, const ops::Value& value);

}  // namespace tensord::jit
