#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "core/ops/value.h"

namespace tensord::server {

// The checkpoints of one job, a folder each that is there whole or not at all:
//   checkpoint-<step>/model.pt       the model as an archive, with every attribute as it is
//   checkpoint-<step>/state.pt       the rest of the job's state, a torch.save file
//   checkpoint-<step>/curve.json     the points so far
//   checkpoint-<step>/manifest.json  size and CRC of each file
// Not thread-safe.
class Checkpoints {
 public:
  Checkpoints(std::filesystem::path folder, int64_t keep) : folder_(std::move(folder)), keep_(keep) {}

  struct Files {
    std::function<void(const std::string& path)> save_model;
    ops::Value state;
    std::string curve;
  };
  // Writes a checkpoint atomically, then removes the oldest ones above the limit. An existing checkpoint of this step
  // is kept. Throws Error (kResourceExhausted: the disk is full); the existing checkpoints are then unchanged.
  void write(int64_t step, const Files& files) const;

  struct Found {
    int64_t step = 0;
    std::filesystem::path folder;
    std::string model_file() const { return (folder / "model.pt").string(); }
    std::string state_file() const { return (folder / "state.pt").string(); }
    std::string curve_file() const { return (folder / "curve.json").string(); }
  };
  // The newest intact one. Damaged ones are logged and skipped. Throws Error{kUnimplemented} for one of a newer daemon.
  std::optional<Found> newest() const;
  // The newest one, without a check of its files.
  std::optional<Found> newest_unchecked() const;
  std::vector<int64_t> steps() const;  // ascending

 private:
  std::filesystem::path folder_of(int64_t step) const;
  const std::filesystem::path folder_;
  const int64_t keep_;
};

}  // namespace tensord::server
