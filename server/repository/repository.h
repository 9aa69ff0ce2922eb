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

// The models of the daemon and their states. A request holds the handle that find() returned for as long as it runs.
// Thread-safe.
// While a model is loaded again, its current versions are served until all new ones are loaded and warm; then all of
// them take over in one step. If the newest of the new versions cannot be loaded, nothing changes.
// This class has the operations. States are in ModelTable and change by version_state.h. Each other part is responsible
// for one aspect of a load: what is wanted (LoadPlanner, FolderChanges), how it is loaded (VersionLoader), whether
// there is room (MemoryBudget), and which ensembles are affected (EnsembleSteps).
class Repository final : public ModelDirectory {
 public:
  using Options = RepositorySettings;
  using IndexEntry = ModelTable::IndexEntry;

  Repository(Options options, ModelFactory factory, Metrics& metrics);
  ~Repository() override;

  // Scans the folders and loads the models that the options name. A model that fails is logged and becomes UNAVAILABLE
  // with its reason. Returns when all are READY or UNAVAILABLE. Throws Error{kNotFound} if a repository or a named
  // model is missing.
  void load_all();
  // Stops polling and cancels all loads.
  void stop();

  // `version` empty: the largest one that is READY; otherwise a number, or a label if labels are allowed. Throws Error:
  // kNotFound (no such model or version), kUnavailable (not READY, with the reason), kInvalidArgument (malformed
  // version).
  std::shared_ptr<ModelVersion> find(const std::string& name, const std::string& version) const override {
    return models_.find(name, version);
  }
  // False if it does not exist.
  bool is_ready(const std::string& name, const std::string& version) const;
  // False if it was unloaded.
  bool has_model(const std::string& name) const;
  std::vector<std::string> ready_versions(const std::string& name) const { return models_.ready_versions(name); }
  // Whether every model of the start is READY; false until load_all() has ended. Unloaded models do not count, nor does
  // a newer version that failed to load.
  bool is_all_ready() const { return is_loaded_ && models_.is_all_ready(); }
  bool is_loaded() const { return is_loaded_; }
  // All models that are served or are in a repository.
  std::vector<IndexEntry> index() const;
  std::map<std::string, int64_t> labels(const std::string& name) const;
  ControlMode mode() const { return settings_.mode; }

  // If models are loaded on demand and this one is not loaded: loads it, and calls `then` on another thread when find()
  // can answer. False: find() can answer now, and `then` is not called. Throws Error{kResourceExhausted} if too many
  // requests wait for the model.
  bool load_on_demand(const std::string& name, std::function<void()> then);

  // The cores that runs of all models share; null: each run has its own threads.
  CoreBudget* cores() { return loader_.cores(); }

  using LoadRequest = server::LoadRequest;
  // Loads a model, or what has changed of it; for an ensemble also the models that it runs. Without a configuration,
  // the one that a client sent before applies until the model is unloaded. Files require a configuration, except for
  // `<version>/weights.safetensors` and `<version>/weights.pt`: these alone replace the weights of the served archive.
  // Throws Error: kUnavailable (not in mode explicit), kInvalidArgument (invalid name, file or configuration; a failed
  // load with its reasons), kNotFound, kResourceExhausted (a limit).
  void load(const LoadRequest& request);

  // Versions that were unloaded, to wait for the release of their memory.
  struct Unloading {
    std::string name;
    std::vector<std::shared_future<void>> gone;
    std::vector<OwnerId> owners;
  };
  // Unloads a model: it accepts no new requests and finishes the accepted ones. With dependents: an ensemble with the
  // models that were loaded only for it, a model with the ensembles that run it. Returns at once, unless ensembles run
  // the model; then after their requests.
  Unloading unload(const std::string& name, bool with_dependents = false);
  // As unload(), for a client's request; also cancels loads of the model. Throws Error as load().
  Unloading unload_for_client(const std::string& name, bool with_dependents);
  // Returns when all memory of the unloaded versions was released and returned to the system. Throws
  // Error{kDeadlineExceeded} if that takes longer.
  void wait_until_gone(const Unloading& unloading, std::chrono::milliseconds timeout) const;

  // Moves labels, "stable=2,canary=3", in one step; "canary=" removes one. Throws Error: kNotFound (the model or
  // version is not served), kInvalidArgument (malformed), kUnimplemented (labels are disabled).
  void set_labels(const std::string& name, const std::string& labels);

  // Scans the folders once: loads what is new or has changed, and unloads what is gone. Never throws; failures are
  // logged.
  void poll();

  // The archive of a version, served or not; 0: the version that requests get. Throws as find().
  using Source = VersionSource;
  Source source_of(const std::string& name, int64_t version) const { return planner_.source_of(name, version); }

  // The configuration that the model is served with; an empty one if it is not served.
  ModelConfig config_of(const std::string& name) const;

  // The folder of the model's versions, whether or not it exists.
  std::filesystem::path folder_of(const std::string& name) const {
    return std::filesystem::path(planner_.root_of(name)) / name;
  }

  // Adds a version to a model, which may be new, and serves it. `write` writes the model's file (second argument) and
  // the version's other files to an empty folder, which is then renamed to the next version. The version is loaded and
  // warmed up while the current ones are served; then the version policy decides in one step which versions are served.
  // A failure leaves everything unchanged. Throws Error. May be called from several threads; calls for the same model
  // are serialized. Call it from a thread of normal priority, which the version's workers inherit.
  using WriteVersion = std::function<void(const std::filesystem::path& folder, const std::string& file_name)>;
  struct Added {
    int64_t version = 0;
    bool is_served = false;  // false: the version policy selects others
  };
  // `file_name`: file name of the new version's format; config.pbtxt may set another one.
  Added add_version(const std::string& name, const WriteVersion& write, const std::string& file_name = "model.pt");

  // Withdraws the newest served version, and serves the previous one again. Throws Error{kFailedPrecondition} if there
  // is none or the version policy names versions, kNotFound for an unknown model.
  struct RolledBack {
    int64_t withdrawn = 0;
    int64_t served = 0;
  };
  RolledBack roll_back(const std::string& name);

 private:
  // The reasons of the versions that could not be loaded.
  using Failures = std::map<int64_t, std::string>;

  // Serves one model. REQUIRES: the caller holds its name. Throws Error{kResourceExhausted} if there is not enough
  // memory, which is logged already.
  Failures serve(const LoadPlan& plan);
  void commit(const LoadPlan& plan, LoadedVersions loaded);
  void serve_changed(const LoadPlan& plan);
  Added add_version_alone(const std::string& name, const WriteVersion& write, const std::string& file_name);
  RolledBack roll_back_alone(const std::string& name);

  // For one model, whose name the caller does not hold.
  void set_error(const std::string& name, const std::string& root, const ModelStamp& stamp, const std::string& error);
  void tell_failure(const std::string& name, const std::string& reason);
  void show_ready(const std::string& name);
  Unloading withdraw(const std::string& name, const std::string& reason, bool is_withheld);
  Unloading withdraw_ensembles_with(const std::string& step, const std::string& reason, bool is_withheld);
  void forget_metrics(const std::string& name, int64_t version);
  void evict(const std::string& victim, const std::string& in_favor_of);
  void check_explicit() const;

  // Loads that clients request, and loads that follow from them.
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
  // Used by loads. Lock order: the budget, a name, the table. Only a thread that holds the budget may wait for a second
  // name.
  MemoryBudget budget_;
  InFlightLoads in_flight_loads_;
  NameLocks names_;  // held while versions of a model come or go
  RetiredVersions retired_;
  std::atomic<bool> is_loaded_{false};
  std::unique_ptr<DemandLoads> demand_;     // null: not on demand
  std::unique_ptr<PeriodicThread> poller_;  // null: not polling
};

}  // namespace tensord::server
