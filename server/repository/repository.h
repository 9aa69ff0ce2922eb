#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "server/executor/model_version.h"
#include "server/repository/layout.h"
#include "server/repository/retired_versions.h"

namespace tensord::server {

enum class ModelState { kLoading, kReady, kUnavailable };
const char* to_string(ModelState state);  // "READY"

// Opens a model file. Throws Error with the reason it cannot.
using ModelFactory = std::function<std::unique_ptr<const Model>(const std::string& file, const ModelConfig& config)>;

// The models of the daemon and their states. A request holds the handle that find() gave it
// for as long as it runs. Thread-safe.
class Repository final : public ModelDirectory {
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
  ~Repository() override;

  // Scans the folders and loads every model; a model that fails is logged and becomes
  // UNAVAILABLE with its reason. Returns when all are READY or UNAVAILABLE. Throws
  // Error{kNotFound} when a repository is not there.
  void load_all();

  // `version` empty: the largest that is READY. Throws Error: kNotFound (no such model or
  // version), kUnavailable (not READY, with the reason), kInvalidArgument (bad version text).
  std::shared_ptr<ModelVersion> find(const std::string& name, const std::string& version) const override;
  // False for what is not there.
  bool is_ready(const std::string& name, const std::string& version) const;
  bool has_model(const std::string& name) const;
  std::vector<std::string> ready_versions(const std::string& name) const;
  // Every model loaded and READY; false until load_all() has ended.
  bool is_all_ready() const;
  bool is_loaded() const;
  std::vector<IndexEntry> index() const;

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
  // everything as it was. Throws Error. May be called from several threads; one is at work at a time. Call it from a
  // thread of normal priority: the workers of the version inherit it.
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

  // Ends a model: no new requests; those it has are answered.
  void unload(const std::string& name);

 private:
  struct VersionEntry {
    ModelState state = ModelState::kLoading;
    std::string reason;
    std::shared_ptr<ModelVersion> handle;
    std::filesystem::path file;
  };
  struct Entry {
    std::string root;   // the repository it lies in
    std::string error;  // of the model as a whole
    std::map<int64_t, VersionEntry> versions;
  };
  // A version to load.
  struct Job {
    const ModelLayout& model;
    const ModelLayout::Version& version;
  };

  void add_entries(const std::vector<ModelLayout>& layouts);
  void load_version(const Job& job);
  std::shared_ptr<ModelVersion> make_version(const Job& job);
  void set_state(const Job& job, VersionEntry entry);
  VersionEntry try_load(const Job& job);
  std::string root_of(const std::string& name) const;
  bool serves(const std::string& name, const ModelLayout::Version& version) const;
  void serve_layout(const std::string& root, const ModelLayout& layout);

  const Options options_;
  const ModelFactory factory_;
  Metrics& metrics_;
  CoreBudget cores_;
  mutable std::shared_mutex mutex_;
  std::map<std::string, Entry> models_;  // by mutex_
  bool is_loaded_ = false;               // by mutex_
  std::mutex change_mutex_;              // held while versions are added or withdrawn; before mutex_
  RetiredVersions retired_;
};

}  // namespace tensord::server
