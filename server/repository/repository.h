#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/executor/model/model_version.h"
#include "server/repository/demand_loads.h"
#include "server/repository/ensemble_steps.h"
#include "server/repository/folder/folder_changes.h"
#include "server/repository/in_flight_loads.h"
#include "server/repository/load_planner.h"
#include "server/repository/memory_budget.h"
#include "server/repository/model_table.h"
#include "server/repository/name_locks.h"
#include "server/repository/periodic_thread.h"
#include "server/repository/repository_settings.h"
#include "server/repository/retired_versions.h"
#include "server/repository/version_loader.h"

namespace tensord::server {

// The models of the daemon and their states. A request holds the handle that find() gave it
// for as long as it runs. Thread-safe.
//
// A model that is loaded again goes on serving with what it has until all that is to take over is loaded and warm;
// then all of it changes in one step. Where the newest version that is to take over cannot be loaded, nothing changes.
//
// This has the verbs. States are in the ModelTable and move by version_state.h; each of the other parts knows one thing
// of a load: what is wanted (LoadPlanner, FolderChanges), how it is made (VersionLoader), whether there is room
// (MemoryBudget), who else is concerned (EnsembleSteps).
class Repository final : public ModelDirectory {
 public:
  using Options = RepositorySettings;
  using IndexEntry = ModelTable::IndexEntry;

  Repository(Options options, ModelFactory factory, Metrics& metrics);
  ~Repository() override;

  // Scans the folders and loads the models that the options name; a model that fails is logged and becomes
  // UNAVAILABLE with its reason. Returns when all are READY or UNAVAILABLE. Throws
  // Error{kNotFound} when a repository, or a model that the options name, is not there.
  void load_all();
  // No more looks at the folders, and no loads: those that are under way are given up.
  void stop();

  // `version` empty: the largest that is READY; else a number, or a label where labels are allowed. Throws Error:
  // kNotFound (no such model or version), kUnavailable (not READY, with the reason), kInvalidArgument (bad version
  // text).
  std::shared_ptr<ModelVersion> find(const std::string& name, const std::string& version) const override {
    return models_.find(name, version);
  }
  // False for what is not there.
  bool is_ready(const std::string& name, const std::string& version) const;
  // False for what was unloaded.
  bool has_model(const std::string& name) const;
  std::vector<std::string> ready_versions(const std::string& name) const { return models_.ready_versions(name); }
  // Every model that the start loads is READY; false until load_all() has ended. What was unloaded does not count, nor
  // a newer version that cannot take over.
  bool is_all_ready() const { return is_loaded_ && models_.is_all_ready(); }
  bool is_loaded() const { return is_loaded_; }
  // All models that are served or lie in a repository.
  std::vector<IndexEntry> index() const;
  std::map<std::string, int64_t> labels(const std::string& name) const;
  ControlMode mode() const { return settings_.mode; }

  // Where models are loaded on demand and this one is not loaded: loads it, and calls `then` on another thread when
  // find() can say more. False: it can say so now, and `then` is not called. Throws Error{kResourceExhausted} when
  // too many requests wait for the model.
  bool load_on_demand(const std::string& name, std::function<void()> then);

  // What runs of all models share; null where each takes its threads.
  CoreBudget* cores() { return loader_.cores(); }

  using LoadRequest = server::LoadRequest;
  // Loads a model, with an ensemble the models it runs, or what has changed of it; without a configuration by the one
  // that a client brought before, until the model is unloaded. Files need a configuration, but for
  // `<version>/weights.safetensors` and `<version>/weights.pt`: these alone are put into the archive that is served.
  // Throws Error: kUnavailable (not in mode explicit), kInvalidArgument (bad name, file or configuration; what cannot
  // be loaded, with the reasons), kNotFound, kResourceExhausted (the limits).
  void load(const LoadRequest& request);

  // What has been unloaded, until its memory is back.
  struct Unloading {
    std::string name;
    std::vector<std::shared_future<void>> gone;
    std::vector<OwnerId> owners;
  };
  // Ends a model: no new requests; those it has are answered. With its dependents: an ensemble with the models it
  // runs that were loaded along with it, a model with the ensembles that run it. Returns at once, unless ensembles run
  // the model: then after their requests.
  Unloading unload(const std::string& name, bool with_dependents = false);
  // The same for a client; loads of the model that are under way are given up. Throws Error as load().
  Unloading unload_for_client(const std::string& name, bool with_dependents);
  // Returns when no byte is charged to what was unloaded, and the memory was given back to the system. Throws
  // Error{kDeadlineExceeded} when that takes longer.
  void wait_until_gone(const Unloading& unloading, std::chrono::milliseconds timeout) const;

  // Moves labels, "stable=2,canary=3", in one step; "canary=" removes one. Throws Error: kNotFound (the model or the
  // version is not served), kInvalidArgument (the text), kUnimplemented (labels are off).
  void set_labels(const std::string& name, const std::string& labels);

  // Looks at the folders once: loads what is new or has changed, unloads what is not there any more. Never throws:
  // what cannot be loaded is logged.
  void poll();

  // The archive of a version, which need not be served; 0 is the one that requests get. Throws as find().
  using Source = VersionSource;
  Source source_of(const std::string& name, int64_t version) const { return planner_.source_of(name, version); }

  // Where the versions of a model are, or would be.
  std::filesystem::path folder_of(const std::string& name) const {
    return std::filesystem::path(planner_.root_of(name)) / name;
  }

  // Adds a version to a model, which may be new, and serves it: `write` puts the model's file (second argument) and
  // whatever else belongs to the version into an empty folder, which then becomes the next version in one step. It
  // is loaded and warmed up while the versions before it go on serving; then the version policy decides which
  // are served from now on, in one step, and the others end with the requests they have. What fails leaves
  // everything as it was. Throws Error. May be called from several threads; for a model one is at work at a time. Call
  // it from a thread of normal priority: the workers of the version inherit it.
  using WriteVersion = std::function<void(const std::filesystem::path& folder, const std::string& file_name)>;
  struct Added {
    int64_t version = 0;
    bool is_served = false;  // false: the version policy wants others
  };
  // `file_name` is what files of the new version's format are called; config.pbtxt may call it otherwise.
  Added add_version(const std::string& name, const WriteVersion& write, const std::string& file_name = "model.pt");

  // Withdraws the newest served version, and serves the one before it again. Throws Error{kFailedPrecondition} when
  // there is none or the version policy names versions, kNotFound for an unknown model.
  struct RolledBack {
    int64_t withdrawn = 0;
    int64_t served = 0;
  };
  RolledBack roll_back(const std::string& name);

 private:
  // Of the versions that could not be loaded, why.
  using Failures = std::map<int64_t, std::string>;

  // One model, whose name the caller holds.
  Failures serve(const LoadPlan& plan);
  void commit(const LoadPlan& plan, LoadedVersions loaded);
  void serve_changed(const LoadPlan& plan);
  Added add_version_alone(const std::string& name, const WriteVersion& write, const std::string& file_name);
  RolledBack roll_back_alone(const std::string& name);

  // One model, whose name the caller does not hold.
  void set_error(const std::string& name, const std::string& root, const ModelStamp& stamp, const std::string& error);
  void show_ready(const std::string& name);
  Unloading withdraw(const std::string& name, const std::string& reason, bool is_withheld);
  Unloading withdraw_ensembles_with(const std::string& step, const std::string& reason, bool is_withheld);
  void forget_metrics(const std::string& name, int64_t version);
  void evict(const std::string& victim, const std::string& in_favor_of);
  void check_explicit() const;

  // Loads by requests of clients, and those that follow from them.
  void load_model(const LoadRequest& request, bool is_along, const std::vector<std::string>& chain);
  void load_steps(const LoadPlan& plan, std::vector<std::string> chain);
  void load_waiting_ensembles(const std::string& step);
  // Ensembles that run the model and were planned before its versions changed are loaded again.
  void plan_ensembles_again(const std::string& step);
  void load_demanded(const std::string& name);

  // Loads by what the folders have.
  void add_plan(const std::string& name, const std::vector<std::string>& roots, std::vector<LoadPlan>& plans);
  void load_plans(const std::vector<LoadPlan>& plans);
  void serve_found(const LoadPlan& found);

  const Options settings_;
  Metrics& metrics_;
  VersionLoader loader_;  // outlives what it made
  ModelTable models_;
  LoadPlanner planner_;
  FolderChanges folders_;
  EnsembleSteps ensembles_;
  // Of loads. Order: budget, a name, the table. Only who has the budget waits for a second name.
  MemoryBudget budget_;
  InFlightLoads in_flight_loads_;
  NameLocks names_;  // held while versions of a model come or go
  RetiredVersions retired_;
  std::atomic<bool> is_loaded_{false};
  std::unique_ptr<DemandLoads> demand_;     // null: not on demand
  std::unique_ptr<PeriodicThread> poller_;  // null: not polling
};

}  // namespace tensord::server
