#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/jit/archive/zip.h"
#include "core/ops/value.h"

namespace tensord::jit {

// What writing the objects of an archive needs from its caller.
struct ModelWriterHooks {
  // The result of the class's __getstate__; empty if the class has none. May be empty.
  std::function<std::optional<ops::Value>(const ops::ObjectPtr& object)> get_state;
  // Whether the file marks a tensor as requiring a gradient.
  std::function<bool(const Tensor& tensor)> requires_grad;
};

// Writes a TorchScript archive as torch.jit.save does: the module `object` with its current values, and everything else
// (code, constants, version, extra files) from `source`, the archive that the module was loaded from. Tensors that
// share a storage share it in the file. Weights are written without a copy. The file appears complete or not at all.
// Throws Error as AtomicFile does, kUnimplemented naming a kind of value that the format does not support,
// kFailedPrecondition for a tensor that is not on the CPU.
void write_model_archive(const std::string& path, const ZipArchive& source, const ops::ObjectPtr& object,
                         const ModelWriterHooks& hooks);

// Writes an archive whose other entries (code, constants and version) the caller gives.
void write_model_archive(const std::string& path, const std::vector<std::pair<std::string, std::string>>& entries,
                         const ops::ObjectPtr& object, const ModelWriterHooks& hooks);

}  // namespace tensord::jit
