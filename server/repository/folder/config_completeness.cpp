#include "server/repository/folder/config_completeness.h"

#include "core/base/error.h"

namespace tensord::server {
namespace {

void check_tensors(const std::vector<ModelConfig::TensorConfig>& tensors, const std::string& file, const char* what) {
  check(!tensors.empty(), file, ": model configuration must contain at least one ", what, ", none were specified");
  for (const ModelConfig::TensorConfig& tensor : tensors) {
    check(!tensor.datatype.empty(), file, ": model ", what, " '", tensor.name, "' must specify 'data_type'");
    check(tensor.has_dims, file, ": model ", what, " '", tensor.name, "' must specify 'dims'");
  }
}

}  // namespace

void check_config_completeness(const ModelLayout& model) {
  const ModelConfig& config = model.config;
  const std::string file = (model.folder / "config.pbtxt").string();
  check(!config.source.empty(), "failed to open text file for read ", file,
        ": No such file or directory; --disable-auto-complete-config needs it");
  check(!config.platform.empty() || !config.backend.empty(), file, ": must specify 'platform' or 'backend' for '",
        model.name, "'");
  check_tensors(config.inputs, file, "input");
  check_tensors(config.outputs, file, "output");
}

}  // namespace tensord::server
