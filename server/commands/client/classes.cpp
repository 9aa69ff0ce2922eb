#include "server/commands/client/classes.h"

#include <tensord/client/error.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "server/commands/client/table.h"

namespace tensord::server {
namespace {

struct Class {
  double score = 0;
  int64_t index = 0;
  std::string label;  // empty if the model has no labels
};

Class parse_class(const std::string& text) {
  Class out;
  const char* end = text.data() + text.size();
  const auto score = std::from_chars(text.data(), end, out.score);
  const bool has_score = score.ec == std::errc() && score.ptr != end && *score.ptr == ':';
  const auto index = has_score ? std::from_chars(score.ptr + 1, end, out.index) : score;
  if (!has_score || index.ec != std::errc() || (index.ptr != end && *index.ptr != ':')) {
    client::throw_error(client::StatusCode::kDataLoss, "the server sent the class '" + text + "'");
  }
  if (index.ptr != end) out.label.assign(index.ptr + 1, end);
  return out;
}

std::vector<std::vector<Class>> rows_of(const client::Tensor& tensor) {
  const std::vector<std::string> texts = tensor.strings();
  const size_t width = tensor.shape().empty() ? 1 : static_cast<size_t>(tensor.shape().back());
  std::vector<std::vector<Class>> rows;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i % width == 0) rows.emplace_back();
    rows.back().push_back(parse_class(texts[i]));
  }
  return rows;
}

}  // namespace

nlohmann::ordered_json json_of_classes(const client::Tensor& tensor) {
  auto rows = nlohmann::ordered_json::array();
  for (const std::vector<Class>& row : rows_of(tensor)) {
    rows.push_back(nlohmann::ordered_json::array());
    for (const Class& item : row) {
      nlohmann::ordered_json score = item.score;
      if (!std::isfinite(item.score)) score = nullptr;
      rows.back().push_back({{"score", score}, {"index", item.index}, {"label", item.label}});
    }
  }
  return rows;
}

void print_classes(std::ostream& out, const client::Tensor& tensor) {
  for (const std::vector<Class>& row : rows_of(tensor)) {
    std::string line;
    for (const Class& item : row) {
      line += line.empty() ? "  " : ", ";
      line += (item.label.empty() ? std::to_string(item.index) : item.label) + " " + number_text(item.score);
    }
    out << printable(line) << "\n";
  }
}

}  // namespace tensord::server
