#pragma once

#include <functional>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "server/executor/model_version.h"
#include "server/repository/layout.h"

namespace tensord::server {

enum class ModelState { kLoading, kReady, kUnavailable };
const char* to_string(ModelState state);  // "READY"

// Opens a model file. Throws Error with the reason it cannot.
using ModelFactory = std::function<std::unique_ptr<const Model>(const std::string& file, const ModelConfig& config)>;

// The models of the daemon and their states. A request holds the handle that find() gave it
// for as long as it runs. Thread-safe.
class Repository {
 public:
  struct Options {
    std::vector<std::string> roots;
    std::vector<std::string> only;  // load these models; empty: all
    int workers = 1;                // where the config says nothing
    int threads_per_worker = 0;     // 0: the cores divided by the model's workers
    int cores = 0;                  // that runs of all models share; 0: each takes its threads
    size_t max_queue_size = 1024;
    int load_threads = 1;
  };
  struct IndexEntry {
    std::string name;
    std::string version;  // empty: the model has none
    ModelState state = ModelState::kUnavailable;
    std::string reason;
  };

  Repository(Options options, ModelFactory factory, Metrics& metrics);
  ~Repository();

  // Scans the folders and loads every model; a model that fails is logged and becomes
  // UNAVAILABLE with its reason. Returns when all are READY or UNAVAILABLE. Throws
  // Error{kNotFound} when a repository is not there.
  void load_all();

  // `version` empty: the largest that is READY. Throws Error: kNotFound (no such model or
  // version), kUnavailable (not READY, with the reason), kInvalidArgument (bad version text).
  std::shared_ptr<ModelVersion> find(const std::string& name, const std::string& version) const;
  // False for what is not there.
  bool is_ready(const std::string& name, const std::string& version) const;
  bool has_model(const std::string& name) const;
  std::vector<std::string> ready_versions(const std::string& name) const;
  // Every model loaded and READY; false until load_all() has ended.
  bool is_all_ready() const;
  bool is_loaded() const;
  std::vector<IndexEntry> index() const;

 private:
  struct VersionEntry {
    ModelState state = ModelState::kLoading;
    std::string reason;
    std::shared_ptr<ModelVersion> handle;
  };
  struct Entry {
    std::string error;  // of the model as a whole
    std::map<int64_t, VersionEntry> versions;
  };
  struct Job;

  void add_entries(const std::vector<ModelLayout>& layouts);
  void load_version(const Job& job);
  std::shared_ptr<ModelVersion> make_version(const Job& job);
  void set_state(const Job& job, VersionEntry entry);

  const Options options_;
  const ModelFactory factory_;
  Metrics& metrics_;
  CoreBudget cores_;
  mutable std::shared_mutex mutex_;
  std::map<std::string, Entry> models_;  // by mutex_
  bool is_loaded_ = false;               // by mutex_
};

}  // namespace tensord::server
