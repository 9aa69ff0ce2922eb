#include "server/repository/version_labels.h"

#include <algorithm>
#include <sstream>

#include "core/base/ascii.h"
#include "core/base/error.h"
#include "server/repository/folder/layout.h"

namespace tensord::server {
namespace {

constexpr size_t kMaxLabelBytes = 64;
constexpr size_t kMaxLabels = 256;

bool is_label(const std::string& text) {
  return !text.empty() && text.size() <= kMaxLabelBytes && is_ascii_letter(text[0]) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_ascii_alnum(c) || c == '_' || c == '-' || c == '.'; });
}

int64_t parse_number(const std::string& label, const std::string& text) {
  const int64_t number = text.empty() ? 0 : version_number(text);
  check(number > 0, "version label '", label, "': '", text, "' is not the number of a version");
  return number;
}

void check_label(const std::string& label) {
  check(is_label(label), "version label '", label.substr(0, kMaxLabelBytes),
        "': a label is a letter, then up to 63 letters, digits, '_', '-' and '.'");
}

}  // namespace

std::map<std::string, int64_t> parse_labels(const std::string& text) {
  std::map<std::string, int64_t> labels;
  std::istringstream in(text);
  for (std::string item; std::getline(in, item, ',');) {
    const size_t sign = item.find('=');
    check(sign != std::string::npos, "version labels are given as stable=2,canary=3, got '", item.substr(0, 100), "'");
    const std::string label = item.substr(0, sign);
    check_label(label);
    const std::string number = item.substr(sign + 1);
    const bool is_new = labels.emplace(label, number.empty() ? 0 : parse_number(label, number)).second;
    check(is_new, "version label '", label, "' is given twice");
    check(labels.size() <= kMaxLabels, "more than ", kMaxLabels, " version labels");
  }
  check(!labels.empty(), "version labels are given as stable=2,canary=3, got nothing");
  return labels;
}

std::map<std::string, int64_t> configured_labels(const std::map<std::string, std::string>& labels) {
  std::map<std::string, int64_t> out;
  for (const auto& [label, number] : labels) {
    check_label(label);
    out.emplace(label, parse_number(label, number));
  }
  return out;
}

}  // namespace tensord::server
