#include "core/jit/importers/format.h"
#include "core/jit/importers/onnx/onnx_format.h"
#include "core/jit/importers/pt2/pt2.h"
#include "core/jit/importers/source/source_format.h"

namespace tensord::jit {

// To add a format, add a folder here and an entry to this list.
std::span<const ModelFormat* const> model_formats() {
  static const std::vector<const ModelFormat*> kFormats = {&kPt2Format, &onnx::kOnnxFormat, &kSourceFormat};
  return kFormats;
}

const ModelFormat* find_format(const std::string& path) {
  for (const ModelFormat* format : model_formats()) {
    if (format->probe(path)) return format;
  }
  return nullptr;
}

}  // namespace tensord::jit
