#pragma once

#include <string>

#include "core/jit/archive/zip.h"
#include "core/ops/value.h"

namespace tensord::jit {

// Reads a file of torch.save in the zip format (PyTorch 1.6 to 2.x). It may hold tensors, parameters, None, bool, int,
// float, str, torch.dtype (as its number), torch.device, torch.Size, list, tuple, dict and OrderedDict, nested. Lists
// and dicts get the common type of their items. Tensors that share a storage in the file share it in memory. Tensors
// that are marked as requiring a gradient require it, except in inference mode. Throws Error as ModelArchive::open
// does; other kinds of values are rejected by name.
ops::Value load_torch_file(const std::string& path, const ZipOptions& options = {});

// Writes a file for torch.load, also with weights_only=True. CPU tensors are written compactly, dense ones with their
// strides; a NamedTuple becomes a tuple. Replaces an existing file in one step. Throws Error{kUnimplemented} for
// objects, enums, functions and futures, Error{kUnavailable} if writing fails.
void save_torch_file(const std::string& path, const ops::Value& value);

}  // namespace tensord::jit
