#include "server/executor/model/class_labels.h"

#include <fstream>

#include "core/base/error.h"

namespace tensord::server {
namespace {

constexpr size_t kMaxBytes = size_t{64} << 20;

std::vector<std::string> read_lines(const std::string& path, const std::string& output) {
  std::ifstream file(path);
  if (!file) fail(ErrorCode::kNotFound, "label_filename of output '", output, "': cannot read ", path);
  std::vector<std::string> lines;
  std::string line;
  size_t bytes = 0;
  while (std::getline(file, line)) {
    if (line.ends_with('\r')) line.pop_back();
    bytes += line.size() + 1;
    check(bytes <= kMaxBytes, "label_filename of output '", output, "': ", path, " has more than ", kMaxBytes,
          " bytes");
    lines.push_back(line);
  }
  if (file.bad()) fail(ErrorCode::kDataLoss, "label_filename of output '", output, "': cannot read ", path);
  return lines;
}

}  // namespace

ClassLabels read_class_labels(const ModelConfig& config) {
  ClassLabels labels;
  for (const ModelConfig::TensorConfig& output : config.outputs) {
    if (!output.label_filename.empty()) labels[output.name] = read_lines(output.label_filename, output.name);
  }
  return labels;
}

}  // namespace tensord::server
