#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/executor/model/model_version.h"
#include "server/repository/layout.h"
#include "server/repository/model_overrides.h"
#include "server/repository/model_stamp.h"

namespace tensord::server {

enum class ModelState { kLoading, kReady, kUnloading, kUnavailable };
const char* to_string(ModelState state);  // "READY"

// How the reason of a version that was unloaded begins; what waits for all models to be ready does not wait for it.
inline constexpr const char* kUnloadedReason = "unloaded";
inline constexpr const char* kTwoRepositories = "model appears in two or more repositories";

// One version of a model in the repository's map.
struct VersionEntry {
  ModelState state = ModelState::kLoading;
  std::string reason;                    // why it does not serve; of one that does what is to be said of it, or empty
  std::shared_ptr<ModelVersion> handle;  // not null: served
  std::filesystem::path file;
  uint64_t file_bytes = 0;
  std::string stamp;  // of the files that it was loaded from

  // Its archive, and what its tensors hold.
  uint64_t bytes() const;
};

// A version that is to take over from those that are served, or could not.
struct VersionUpdate {
  ModelState state = ModelState::kLoading;
  std::string reason;
};

// What is to be served of a model.
struct LoadPlan {
  ModelLayout layout;
  ModelStamp stamp;
  std::vector<std::shared_ptr<const OverrideFolder>> override_folders;  // that files of the layout lie in
  std::shared_ptr<const ModelConfig> override_config;                   // a client's, instead of config.pbtxt; or null
  bool is_forced = false;                                               // loads what is served already too
  std::optional<int64_t> forced_version;                                // loads this one, served or not

  bool is_override() const { return override_config || !override_folders.empty(); }
  std::string stamp_of(int64_t version) const;
};

// One model in the repository's map.
struct ModelEntry {
  std::string root;   // the repository it lies in; empty: none
  std::string error;  // of the model as a whole
  std::map<int64_t, VersionEntry> versions;
  std::map<int64_t, VersionUpdate> updates;
  std::set<int64_t> ended;                           // versions that were served, and are not wanted any more
  LoadPlan plan;                                     // what is served came from this
  ModelStamp seen;                                   // of the files when they were last loaded, with or without success
  std::map<std::string, int64_t> labels;             // as they are now
  std::map<std::string, std::string> config_labels;  // as the configuration last said
  bool is_required = false;                          // a strict readiness waits for it
  bool is_withheld = false;                          // unloaded by an operator: not loaded on demand
  bool is_loaded_along = false;                      // for an ensemble, and not by itself
  std::set<std::string> tried_steps;                 // of an ensemble, when it was last loaded, with or without success
  bool waits_for_step = false;                       // an ensemble that is loaded again when its step is
  uint64_t revision = 0;                             // how often other versions took over
  std::map<std::string, uint64_t> planned;           // of an ensemble: its steps' revisions when it was last loaded
  int64_t retry_ns = 0;                              // not loaded on demand before, since that failed
  mutable std::atomic<int64_t> used_ns{0};           // by the last request

  bool is_served() const;
  bool is_unloaded() const;  // nothing of it is served, wanted or broken
  bool runs(const std::string& step) const;
  uint64_t bytes() const;
};

}  // namespace tensord::server
