#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/jit/archive/zip.h"
#include "core/ops/value.h"

namespace tensord::jit {

// What writing an archive's objects needs from its surroundings.
struct ModelWriterHooks {
  // What the class's __getstate__ gives; nothing when the class has none. May be empty.
  std::function<std::optional<ops::Value>(const ops::ObjectPtr& object)> get_state;
  // Whether a tensor is written as requiring a gradient.
  std::function<bool(const Tensor& tensor)> requires_grad;
};

// Writes a TorchScript archive as torch.jit.save does: `object`, a module, with what it holds now, and everything else
// (code, constants, version, extra files) as it is in `source`, the archive that the module came from. Tensors
// that share a storage do so in the file. The weights are written from where they lie. The file appears whole or
// not at all; throws Error as AtomicFile does, and kUnimplemented naming a kind of value that cannot be written,
// kFailedPrecondition for a tensor that is not on the CPU.
void write_model_archive(const std::string& path, const ZipArchive& source, const ops::ObjectPtr& object,
                         const ModelWriterHooks& hooks);

// The same of an archive whose other entries are given: code, constants and version.
void write_model_archive(const std::string& path, const std::vector<std::pair<std::string, std::string>>& entries,
                         const ops::ObjectPtr& object, const ModelWriterHooks& hooks);

}  // namespace tensord::jit
