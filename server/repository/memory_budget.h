#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "server/repository/model_table.h"

namespace tensord::server {

// What all loaded models may take together: archives and tensors. Thread-safe.
class MemoryBudget {
 public:
  // Unloads the model and waits until its memory is back.
  using Evict = std::function<void(const std::string& victim, const std::string& in_favor_of)>;
  // `limit_bytes` 0: no limit. `evict` empty: what is loaded stays.
  MemoryBudget(uint64_t limit_bytes, const ModelTable& models, Evict evict)
      : limit_bytes_(limit_bytes), models_(models), evict_(std::move(evict)) {}

  // For the whole of a load, before the model's name is held; where there is no limit it holds nothing.
  [[nodiscard]] std::unique_lock<std::mutex> hold();
  // Before versions of a model are loaded, by the sizes of their files.
  void make_room_for(const std::string& model, const std::vector<const ModelLayout::Version*>& versions);
  // When they are loaded, by what they take. Both unload the models that were used least recently, where that may be;
  // throw Error{kResourceExhausted}.
  void make_room_for(const std::string& model, const LoadedVersions& versions);

 private:
  void make_room(const std::string& model, uint64_t needed_bytes);
  uint64_t bytes_of_others(const std::string& model) const;
  std::string least_recently_used(const std::string& but) const;

  const uint64_t limit_bytes_;
  const ModelTable& models_;
  const Evict evict_;
  std::mutex mutex_;  // held by loads
};

}  // namespace tensord::server
