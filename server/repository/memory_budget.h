#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "server/repository/model_table.h"

namespace tensord::server {

// The memory limit of all loaded models, archives and tensors. Thread-safe.
class MemoryBudget {
 public:
  // Unloads the model and waits until its memory is released.
  using Evict = std::function<void(const std::string& victim, const std::string& in_favor_of)>;
  // `limit_bytes` 0: no limit. `evict` empty: models are not unloaded to make room.
  MemoryBudget(uint64_t limit_bytes, const ModelTable& models, Evict evict)
      : limit_bytes_(limit_bytes), models_(models), evict_(std::move(evict)) {}

  // Must be held for the whole load, and taken before the model's name is locked. Holds nothing if there is no limit.
  [[nodiscard]] std::unique_lock<std::mutex> hold();
  // Called before versions are loaded, with the sizes of their files.
  void make_room_for(const std::string& model, const std::vector<const ModelLayout::Version*>& versions);
  // Called after they were loaded, with their actual sizes. Both unload the least recently used models if that is
  // allowed, and throw Error{kResourceExhausted}.
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
