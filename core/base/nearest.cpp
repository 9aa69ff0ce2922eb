#include "core/base/nearest.h"

#include <algorithm>
#include <filesystem>

namespace tensord {
namespace {

// Longer texts are not typing errors.
constexpr size_t kMaxLetters = 200;
constexpr size_t kMinBegin = 3;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// The Damerau-Levenshtein distance in its restricted form: letters between two swapped ones are not edited.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, last, row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before = std::move(last);
    last = row;
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool is_same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (is_same ? 0 : 1)});
      const bool is_swapped =
          i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
      if (is_swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest(std::string_view written, std::span<const std::string> names) {
  if (written.empty() || written.size() > kMaxLetters) return {};
  const std::string* best = nullptr;
  size_t best_distance = 0;
  for (const std::string& name : names) {
    const size_t longer = std::max(name.size(), written.size()), shorter = std::min(name.size(), written.size());
    const size_t allowed = std::max<size_t>(1, longer / 3);
    if (name.size() > kMaxLetters || longer - shorter > allowed) continue;
    const size_t changes = distance(written, name);
    if (changes > allowed || changes >= longer || (best && changes >= best_distance)) continue;
    best = &name;
    best_distance = changes;
  }
  if (best) return *best;
  const auto continues = [&](const std::string& name) {
    return written.size() >= kMinBegin && name.starts_with(written);
  };
  const auto first = std::ranges::find_if(names, continues);
  const bool is_only = first != names.end() && std::find_if(first + 1, names.end(), continues) == names.end();
  return is_only ? *first : std::string();
}

std::string nearest_file(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr size_t kMaxFiles = 10'000;
  const fs::path whole = fs::path(path).has_filename() ? fs::path(path) : fs::path(path).parent_path();
  const fs::path folder = whole.parent_path();
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder.empty() ? "." : folder, error); at != fs::directory_iterator();
       at.increment(error)) {
    if (names.size() < kMaxFiles) names.push_back(at->path().filename().string());
  }
  const std::string near = nearest(whole.filename().string(), names);
  return near.empty() ? near : "; did you mean '" + (folder / near).string() + "'?";
}

std::string right_names(std::string_view written, std::span<const std::string> names, size_t max_names) {
  if (names.empty()) return {};
  const std::string near = nearest(written, names);
  std::string out = near.empty() ? "; " : "; did you mean '" + near + "'? ";
  if (near == written) out = "; ";
  out += near.empty() || near == written ? "there are " : "There are ";
  for (size_t i = 0; i < names.size() && i < max_names; ++i) out += (i > 0 ? ", '" : "'") + names[i] + "'";
  return names.size() > max_names ? out + ", …" : out;
}

}  // namespace tensord
