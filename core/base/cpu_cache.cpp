#include "core/base/cpu_cache.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

namespace tensord {
namespace {

constexpr size_t kUsual = size_t{8} << 20;
constexpr int kMaxCaches = 8;

// Parses "32768K", "1M" or "4096". Gives 0 for any other text.
size_t parse_size(const std::string& text) {
  char* end = nullptr;
  const unsigned long long number = std::strtoull(text.c_str(), &end, 10);
  constexpr unsigned long long kMax = 1ull << 32;
  if (end == text.c_str() || number > kMax) return 0;
  const int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
  return static_cast<size_t>(number) << shift;
}

size_t read_sizes() {
  size_t largest = 0;
  for (int i = 0; i < kMaxCaches; ++i) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/size");
    std::string text;
    if (file >> text) largest = std::max(largest, parse_size(text));
  }
  return largest > 0 ? largest : kUsual;
}

}  // namespace

size_t last_cache_bytes() {
  static const size_t bytes = read_sizes();
  return bytes;
}

}  // namespace tensord
