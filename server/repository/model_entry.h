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
#include "server/repository/folder/layout.h"
#include "server/repository/folder/model_overrides.h"
#include "server/repository/folder/model_stamp.h"
#include "server/repository/version_state.h"

namespace tensord::server {

// Start of the reason of a version that was unloaded.
inline constexpr const char* kUnloadedReason = "unloaded";
inline constexpr const char* kTwoRepositories = "model appears in two or more repositories";

// The result of loading a version.
struct LoadedVersion {
  std::shared_ptr<ModelVersion> handle;  // null: loading failed
  std::string reason;                    // why it failed; for a loaded version, a warning or empty
  std::filesystem::path file;
  uint64_t file_bytes = 0;
  std::string stamp;            // of the files that it was loaded from
  bool may_load_later = false;  // the error may go away by itself

  // Its archive plus the memory of its tensors.
  uint64_t bytes() const;
};
using LoadedVersions = std::map<int64_t, LoadedVersion>;

// One version of a model. It is served while it has a handle.
struct VersionEntry {
  VersionState state = VersionState::kUnknown;
  LoadedVersion served;  // `reason` is also set for a version that is not served

  bool belongs() const { return server::belongs(state); }
};

// What should be served of a model.
struct LoadPlan {
  ModelLayout layout;
  ModelStamp stamp;
  std::vector<std::shared_ptr<const OverrideFolder>>
      override_folders;                                // keeps files of the layout alive that a client sent
  std::shared_ptr<const ModelConfig> override_config;  // sent by a client, replaces config.pbtxt; may be null
  bool is_forced = false;                              // also load versions that are served already
  std::optional<int64_t> forced_version;               // load this version even if it is served

  bool is_override() const { return override_config || !override_folders.empty(); }
  std::string stamp_of(int64_t version) const;
};

// One model of the repository. Its functions are the events of the whole model; each moves the versions by the table in
// version_state.h.
struct ModelEntry {
  std::string root;   // its repository; empty: none
  std::string error;  // of the model as a whole
  std::map<int64_t, VersionEntry> versions;
  std::set<int64_t> ended;                           // versions that were served and are not wanted any more
  LoadPlan plan;                                     // what the served versions were loaded from
  ModelStamp seen;                                   // of the files at the last load, successful or not
  std::map<std::string, int64_t> labels;             // current labels
  std::map<std::string, std::string> config_labels;  // labels of the last configuration
  bool is_required = false;                          // strict readiness waits for it
  bool is_withheld = false;                          // unloaded by a client, so not loaded on demand
  bool is_loaded_along = false;                      // loaded only because an ensemble needs it
  std::set<std::string> tried_steps;                 // ensembles: steps at the last load, successful or not
  bool waits_for_step = false;                       // ensembles: load again when its step is loaded
  uint64_t revision = 0;                             // number of times that other versions took over
  std::map<std::string, uint64_t> planned;           // ensembles: revisions of the steps at the last load
  int64_t retry_ns = 0;                              // after a failed load: no load on demand before this time
  mutable std::atomic<int64_t> used_ns{0};           // time of the last request

  bool is_served() const;
  bool is_unloaded() const;  // nothing of it is served, wanted or failed
  bool has_versions() const;
  bool runs(const std::string& step) const;
  uint64_t bytes() const;
  // Whether everything in the plan is served, loaded from the same files.
  bool serves_all_of(const LoadPlan& plan) const;
  // The handle of a served version; null: not served.
  std::shared_ptr<ModelVersion> handle_of(int64_t version) const;

  // Versions of the plan are queued for loading.
  void expect(const LoadPlan& plan);
  // A load of the plan starts. Returns the versions to load; commit() must follow.
  std::vector<const ModelLayout::Version*> begin(const LoadPlan& plan);
  // The load has ended. The loaded versions take over, unless the newest one failed while others are served; then
  // nothing changes. Returns the handles that are no longer served.
  std::vector<std::shared_ptr<ModelVersion>> commit(const LoadPlan& plan, LoadedVersions loaded);
  // The model as a whole cannot be loaded. Returns false if versions are still served.
  bool fail(const std::string& reason, const std::string& in_root, const ModelStamp& stamp);
  // Removes a version that failed to load while others are served.
  void forget_failed(int64_t version);
  // Unloads all versions. Returns their handles by number.
  std::map<int64_t, std::shared_ptr<ModelVersion>> unload(const std::string& reason, bool withhold);
  // The last request of an unloaded version has ended.
  void record_gone(int64_t version, const std::string& reason);

 private:
  // Moves one version to its next state, and removes it from the map if that is kUnknown.
  void move(int64_t version, VersionEvent event);
  void adopt(const LoadPlan& new_plan);
};

}  // namespace tensord::server
