#pragma once

#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace tensord::jit {

// Seeds for damaging files: `count` of them; with TENSORD_FUZZ_SECONDS=N new ones for that time; with
// TENSORD_FUZZ_SEED=N only this one.
class Seeds {
 public:
  explicit Seeds(unsigned count) : end_(count) {
    if (const char* seed = std::getenv("TENSORD_FUZZ_SEED")) {
      next_ = static_cast<unsigned>(std::strtoul(seed, nullptr, 10));
      end_ = next_ + 1;
    } else if (const char* seconds = std::getenv("TENSORD_FUZZ_SECONDS")) {
      next_ = std::random_device()();
      until_ = std::chrono::steady_clock::now() + std::chrono::seconds(std::strtol(seconds, nullptr, 10));
    }
  }
  std::optional<unsigned> next() {
    const bool is_over = until_ ? std::chrono::steady_clock::now() > *until_ : next_ == end_;
    return is_over ? std::nullopt : std::optional(next_++);
  }

 private:
  unsigned next_ = 0, end_;
  std::optional<std::chrono::steady_clock::time_point> until_;
};

class Damage {
 public:
  explicit Damage(unsigned seed) : random_(seed) {}

  size_t pick(size_t count) { return static_cast<size_t>(random_() % count); }
  template <class T, size_t N>
  const T& one_of(const T (&all)[N]) {
    return all[pick(N)];
  }

  // Removes a value of a document, replaces it with another value or an out-of-range number, or changes it slightly.
  void apply(nlohmann::json& document) {
    std::vector<nlohmann::json::json_pointer> places;
    collect(document, nlohmann::json::json_pointer(), places);
    nlohmann::json& target = document[places[pick(places.size())]];
    const nlohmann::json other = document[places[pick(places.size())]];
    switch (pick(5)) {
      case 0: target = one_of(kNumbers); break;
      case 1: target = other; break;
      case 2: target = nullptr; break;
      case 3:
        if (target.is_array() && !target.empty()) target.erase(pick(target.size()));
        if (target.is_object() && !target.empty())
          target.erase(std::next(target.begin(), static_cast<long>(pick(target.size()))));
        if (target.is_number_integer()) target = target.get<int64_t>() + 1;
        break;
      default:
        if (target.is_array() && !target.empty()) target.push_back(target[pick(target.size())]);
        if (target.is_string()) target = "as_tensor";
        if (target.is_number_integer()) target = -1;
        if (target.is_boolean()) target = !target.get<bool>();
    }
  }

  // Changes, truncates, repeats or removes bytes.
  void apply(std::string& bytes) {
    if (bytes.empty()) return;
    const size_t at = pick(bytes.size()), count = 1 + pick(std::min<size_t>(bytes.size() - at, 64));
    switch (pick(6)) {
      case 0: bytes.resize(at); break;
      case 1: bytes.insert(at, bytes.substr(at, count)); break;
      case 2: bytes.erase(at, count); break;
      case 3: bytes.replace(at, count, count, one_of({'\0', '\xff', '\x7f', '\x80', '9'})); break;
      default:
        for (size_t changes = 1 + pick(3); changes > 0; --changes)
          bytes[pick(bytes.size())] = static_cast<char>(random_());
    }
  }

 private:
  static constexpr int64_t kNumbers[] = {0, -1, 3, 13, int64_t{1} << 62, INT64_MIN, INT64_MAX};

  // Collects the JSON pointers of all values in a document.
  static void collect(const nlohmann::json& value, const nlohmann::json::json_pointer& at,
                      std::vector<nlohmann::json::json_pointer>& places) {
    places.push_back(at);
    if (value.is_object()) {
      for (auto it = value.begin(); it != value.end(); ++it) collect(it.value(), at / it.key(), places);
    } else if (value.is_array()) {
      for (size_t i = 0; i < value.size(); ++i) collect(value[i], at / i, places);
    }
  }

  std::mt19937 random_;
};

}  // namespace tensord::jit
