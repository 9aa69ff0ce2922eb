#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "server/executor/model/model_version.h"
#include "server/repository/demand_loads.h"
#include "server/repository/layout.h"
#include "server/repository/load_tickets.h"
#include "server/repository/model_entry.h"
#include "server/repository/name_locks.h"
#include "server/repository/periodic_thread.h"
#include "server/repository/retired_versions.h"
#include "server/scheduler/worker_pool.h"

namespace tensord::server {

// none: the models of the start stay. poll: as the folders change. explicit: by calls.
enum class ControlMode { kNone, kPoll, kExplicit };
ControlMode parse_control_mode(const std::string& text);  // throws Error{kInvalidArgument}

// Opens a model file. Throws Error with the reason it cannot.
using ModelFactory = std::function<std::unique_ptr<const Model>(const std::string& file, const ModelConfig& config)>;

// Writes the archive `base` with the weights of the file `weights` to `out`. Throws Error.
using WeightsWriter = std::function<void(const std::string& base, const std::string& weights, const std::string& out)>;

// The models of the daemon and their states. A request holds the handle that find() gave it
// for as long as it runs. Thread-safe.
//
// A model that is loaded again goes on serving with what it has until all that is to take over is loaded and warm;
// then all of it changes in one step. Where the newest version that is to take over cannot be loaded, nothing changes.
class Repository final : public ModelDirectory {
 public:
  struct Options {
    std::vector<std::string> roots;
    std::vector<std::string> only;  // load these at the start, "*" is all; empty: all, in mode explicit none
    ControlMode mode = ControlMode::kNone;
    int64_t poll_interval_ms = 15000;   // 0: only poll() looks
    bool loads_on_demand = false;       // of kExplicit
    uint64_t memory_limit_bytes = 0;    // of loaded models: archives and tensors; 0: none
    uint64_t override_limit_bytes = 0;  // of files that clients brought and that are in use; 0: none
    std::string config_name = {};       // configs/<name>.pbtxt instead of config.pbtxt, where it is there
    bool needs_whole_configs = false;   // nothing of a configuration is completed from the model's file
    bool allows_labels = true;          // find() takes labels of versions
    bool copies_archives = false;       // so that writing to the file does not reach a model that serves
    int workers = 1;                    // where the config says nothing
    int threads_per_worker = 0;         // 0: the cores divided by the model's workers
    int cores = 0;                      // that runs of all models share; 0: each takes its threads
    size_t max_queue_size = 1024;
    int load_threads = 1;
    int64_t load_timeout_ns = 0;          // a load that takes longer is given up; 0: none
    int reload_nice = 0;                  // of the threads that load versions of a model that is served
    RateLimiter* rate_limiter = nullptr;  // null: no limits
    ResponseCache* cache = nullptr;       // of models with response_cache; null: none
    WeightsWriter write_weights = {};     // empty: weights alone cannot be loaded
  };
  struct IndexEntry {
    std::string name;
    std::string version;              // empty: the model has none, or was never loaded
    std::optional<ModelState> state;  // none: never loaded
    std::string reason;
  };

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
  std::shared_ptr<ModelVersion> find(const std::string& name, const std::string& version) const override;
  // False for what is not there.
  bool is_ready(const std::string& name, const std::string& version) const;
  // False for what was unloaded.
  bool has_model(const std::string& name) const;
  std::vector<std::string> ready_versions(const std::string& name) const;
  // Every model that the start loads is READY; false until load_all() has ended. What was unloaded does not count, nor
  // a newer version that cannot take over.
  bool is_all_ready() const;
  bool is_loaded() const;
  // All models that are served or lie in a repository.
  std::vector<IndexEntry> index() const;
  std::map<std::string, int64_t> labels(const std::string& name) const;
  ControlMode mode() const { return options_.mode; }

  // Where models are loaded on demand and this one is not loaded: loads it, and calls `then` on another thread when
  // find() can say more. False: it can say so now, and `then` is not called. Throws Error{kResourceExhausted} when
  // too many requests wait for the model.
  bool load_on_demand(const std::string& name, std::function<void()> then);

  // What runs of all models share; null where each takes its threads.
  CoreBudget* cores() { return options_.cores > 0 ? &cores_ : nullptr; }

  // What a client asks to load.
  struct LoadRequest {
    std::string name;
    std::optional<std::string> config;         // JSON, instead of config.pbtxt
    std::map<std::string, std::string> files;  // path in the model's folder → bytes, instead of the folder
  };
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
  struct Source {
    std::filesystem::path file;
    int64_t version = 0;
  };
  Source source_of(const std::string& name, int64_t version) const;

  // Where the versions of a model are, or would be.
  std::filesystem::path folder_of(const std::string& name) const;

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
  Added add_version(const std::string& name, const WriteVersion& write);

  // Withdraws the newest served version, and serves the one before it again. Throws Error{kFailedPrecondition} when
  // there is none or the version policy names versions, kNotFound for an unknown model.
  struct RolledBack {
    int64_t withdrawn = 0;
    int64_t served = 0;
  };
  RolledBack roll_back(const std::string& name);

 private:
  // A version to load.
  struct Job {
    const ModelLayout& model;
    const ModelLayout::Version& version;
  };
  // Of the versions that could not be loaded, why.
  using Failures = std::map<int64_t, std::string>;
  using Roots = std::map<std::string, std::vector<std::string>>;  // of each model, the repositories it lies in

  // With mutex_ held. -1 for a text that is neither.
  int64_t parse_version_or_label(const ModelEntry& entry, const std::string& text) const;

  bool is_served(const std::string& name) const;

  // One version.
  std::unique_ptr<const Model> open_model(const Job& job, OwnerId owner);
  std::shared_ptr<ModelVersion> make_version(const Job& job);
  VersionEntry try_load(const Job& job);

  // One model, whose name the caller holds.
  Failures serve(const LoadPlan& plan);
  std::vector<const ModelLayout::Version*> begin_loading(const LoadPlan& plan);
  void commit(const LoadPlan& plan, std::map<int64_t, VersionEntry> loaded, const Failures& failures);
  void adopt(const LoadPlan& plan, ModelEntry& entry);  // with mutex_ held
  bool is_unchanged(const LoadPlan& plan) const;

  // One model, whose name the caller does not hold.
  void set_error(const std::string& name, const std::string& root, const ModelStamp& stamp, const std::string& error);
  void show_ready(const std::string& name);
  Unloading withdraw(const std::string& name, const std::string& reason, bool is_withheld);
  void note_unloaded(const std::string& name, int64_t version, const std::string& reason);
  void forget_metrics(const std::string& name, int64_t version);
  std::string root_of(const std::string& name) const;
  ModelLayout scan(const std::string& root, const std::string& name, const ModelConfig* config = nullptr) const;

  // Versions that tensord itself adds and withdraws; of the first two the caller holds the name.
  LoadPlan plan_of_folder(const std::string& root, const std::string& name) const;
  void serve_changed(const LoadPlan& plan);
  Added add_version_alone(const std::string& name, const WriteVersion& write);
  RolledBack roll_back_alone(const std::string& name);

  // Loads by clients.
  std::string find_root(const std::string& name) const;  // empty: it is in none
  LoadPlan plan_of(const LoadRequest& request);
  LoadPlan plan_of_whole(const LoadRequest& request);
  // What a client brought stays until it is unloaded: its files, and its configuration for the repository's files
  // unless what all versions share (`shared_stamp`) has changed.
  bool keeps_files(const LoadRequest& request) const;
  std::shared_ptr<const ModelConfig> config_for(const LoadRequest& request, const std::string& shared_stamp) const;
  LoadPlan plan_with_weights(const LoadRequest& request);
  void load_model(const LoadRequest& request, bool is_along, const std::vector<std::string>& chain);
  void load_steps(const LoadPlan& plan, std::vector<std::string> chain);
  // The models that an ensemble runs, which stay while that is being loaded.
  class StepsHold;
  void wait_for_ensembles_of(const std::string& step);
  void load_waiting_ensembles(const std::string& step);
  std::vector<std::string> ensembles_with(const std::string& step) const;
  std::vector<std::string> steps_loaded_along(const std::string& ensemble) const;
  // Ensembles that run the model and were planned before its versions changed are loaded again.
  void plan_ensembles_again(const std::string& step);
  Unloading withdraw_ensembles_with(const std::string& step, const std::string& reason, bool is_withheld);

  // Loads by what the folders have.
  std::optional<LoadPlan> plan_found(const std::string& name, const std::vector<std::string>& roots);
  void load_plans(const std::vector<LoadPlan>& plans);
  void load_ensembles(const std::vector<LoadPlan>& plans);
  void serve_found(const LoadPlan& found);
  bool has_changed(const std::string& name, const std::vector<std::string>& roots) const;
  void add_ensembles_of(const std::vector<std::string>& changed, const Roots& found, std::vector<LoadPlan>& plans);
  void unload_missing(const Roots& found);

  // Memory and demand.
  std::unique_lock<std::mutex> hold_memory();
  void make_room(const LoadPlan& plan, const std::vector<const ModelLayout::Version*>& wanted);
  void check_room(const LoadPlan& plan, const std::map<int64_t, VersionEntry>& loaded);
  void make_room(const LoadPlan& plan, uint64_t needed);
  uint64_t bytes_served(const std::string& except) const;
  bool unload_least_recently_used(const LoadPlan& plan);
  bool is_owner_served(OwnerId owner) const;
  void load_demanded(const std::string& name);

  const Options options_;
  const ModelFactory factory_;
  Metrics& metrics_;
  CoreBudget cores_;
  WorkerPool pool_;
  OverrideStore overrides_;
  LoadTickets tickets_;
  mutable std::shared_mutex mutex_;
  std::map<std::string, ModelEntry> models_;  // by mutex_
  bool is_loaded_ = false;                    // by mutex_
  std::map<std::string, int> held_steps_;     // by mutex_: by how many loads of ensembles
  std::condition_variable_any released_;      // of held_steps_
  // Held by loads where there is a limit. Order: memory_mutex_, a name, mutex_. Only who has memory_mutex_ waits for a
  // second name.
  std::mutex memory_mutex_;
  NameLocks names_;  // held while versions of a model come or go
  RetiredVersions retired_;
  std::unique_ptr<DemandLoads> demand_;     // null: not on demand
  std::unique_ptr<PeriodicThread> poller_;  // null: not polling
};

}  // namespace tensord::server
