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

// How the reason of a version that was unloaded begins.
inline constexpr const char* kUnloadedReason = "unloaded";
inline constexpr const char* kTwoRepositories = "model appears in two or more repositories";

// What a load made of a version.
struct LoadedVersion {
  std::shared_ptr<ModelVersion> handle;  // null: it could not be loaded
  std::string reason;                    // why; of one that was loaded what is to be said of it, or empty
  std::filesystem::path file;
  uint64_t file_bytes = 0;
  std::string stamp;            // of the files that it was loaded from
  bool may_load_later = false;  // what it could not be loaded for may pass by itself

  // Its archive, and what its tensors hold.
  uint64_t bytes() const;
};
using LoadedVersions = std::map<int64_t, LoadedVersion>;

// One version of a model in the repository's map: it serves as long as there is a handle.
struct VersionEntry {
  VersionState state = VersionState::kUnknown;
  LoadedVersion served;  // `reason` also of one that does not serve: why

  bool belongs() const { return server::belongs(state); }
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

// One model in the repository's map. Its functions are what happens to it as a whole; each moves its versions by the
// table of version_state.h.
struct ModelEntry {
  std::string root;   // the repository it lies in; empty: none
  std::string error;  // of the model as a whole
  std::map<int64_t, VersionEntry> versions;
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
  bool has_versions() const;
  bool runs(const std::string& step) const;
  uint64_t bytes() const;
  // What the plan wants is served already, from these very files.
  bool serves_all_of(const LoadPlan& plan) const;
  // The handle of a version that serves; null: it does not.
  std::shared_ptr<ModelVersion> handle_of(int64_t version) const;

  // Versions of the plan are to be loaded soon.
  void expect(const LoadPlan& plan);
  // A load of the plan begins. Gives back those of its versions that are to be loaded; commit() comes after it.
  std::vector<const ModelLayout::Version*> begin(const LoadPlan& plan);
  // It has ended: what was loaded takes over, or, where the newest version serves not yet and could not be loaded
  // while others serve, nothing changes. Gives back what is not served any more.
  std::vector<std::shared_ptr<ModelVersion>> commit(const LoadPlan& plan, LoadedVersions loaded);
  // The model as a whole cannot be loaded. What is served goes on (false).
  bool fail(const std::string& reason, const std::string& in_root, const ModelStamp& stamp);
  // A version that could not be loaded beside others is not known any more.
  void forget_failed(int64_t version);
  // No version serves any more. Gives back what did, by number.
  std::map<int64_t, std::shared_ptr<ModelVersion>> unload(const std::string& reason, bool withhold);
  // The requests of a version that was unloaded have ended.
  void record_gone(int64_t version, const std::string& reason);

 private:
  // Moves one version; one that is unknown then goes from the map.
  void move(int64_t version, VersionEvent event);
  void adopt(const LoadPlan& new_plan);
};

}  // namespace tensord::server
