// Models that come and go by calls of clients.
#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/base/log.h"
#include "server/config/pbtxt/model_config_text.h"
#include "server/repository/layout_hints.h"
#include "server/repository/repository.h"
#include "server/repository/version_labels.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxConfigBytes = 1 << 20;
// How long requests of an ensemble keep the models that it runs from being unloaded.
constexpr auto kEnsembleTimeout = std::chrono::seconds(30);
constexpr const char* kWeightNames[] = {"weights.safetensors", "weights.pt"};

[[noreturn]] void fail_unknown(const std::string& name) {
  fail(ErrorCode::kNotFound, "failed to load '", name, "', failed to poll from model repository");
}

void check_name(const std::string& name) {
  constexpr const char* kSpaces = " \t\n\r\f\v";
  const size_t first = name.find_first_not_of(kSpaces);
  check(first != std::string::npos, "Model name cannot be empty. Please enter a valid name to deploy.");
  const std::string trimmed = name.substr(first, name.find_last_not_of(kSpaces) + 1 - first);
  check(trimmed != ".." && name.find('/') == std::string::npos, "invalid model name '", name,
        "', model name must not contain path traversal characters");
  if (!is_plain_name(name)) fail_unknown(name);  // no folder of a model has it
}

// The version whose weights the file has, where it is one of weights alone: "2/weights.pt"; else 0.
int64_t version_of_weights(const std::string& path) {
  const size_t slash = path.find('/');
  if (slash == std::string::npos) return 0;
  const std::string file = path.substr(slash + 1);
  const bool is_weights =
      std::any_of(std::begin(kWeightNames), std::end(kWeightNames), [&](const char* name) { return file == name; });
  return is_weights ? version_number(path.substr(0, slash)) : 0;
}

bool has_weights_alone(const Repository::LoadRequest& request) {
  return !request.config && request.files.size() == 1 && version_of_weights(request.files.begin()->first) > 0;
}

std::string to_text(const std::string& name, const std::map<int64_t, std::string>& failures) {
  std::string text = concat("load failed for model '", name, "': ");
  for (const auto& [version, reason] : failures) {
    text += concat("version ", version, " is at UNAVAILABLE state: ", reason, ";\n");
  }
  return text;
}

void append(const Repository::Unloading& part, Repository::Unloading& all) {
  all.gone.insert(all.gone.end(), part.gone.begin(), part.gone.end());
  all.owners.insert(all.owners.end(), part.owners.begin(), part.owners.end());
}

// Puts a version into a layout, and leaves those that the policy then wants.
void add_version_file(ModelLayout& layout, int64_t number, const fs::path& file) {
  std::erase_if(layout.versions, [&](const auto& version) { return version.number == number; });
  const auto place = std::find_if(layout.versions.begin(), layout.versions.end(),
                                  [&](const auto& version) { return version.number > number; });
  layout.versions.insert(place, {.number = number, .file = file, .weights = {}, .error = {}});
  const ModelConfig& config = layout.config;
  if (config.version_policy == ModelConfig::VersionPolicy::kSpecific) {
    const auto& wanted = config.specific_versions;
    check(std::find(wanted.begin(), wanted.end(), number) != wanted.end(), "model '", layout.name,
          "': its version_policy does not name version ", number);
  } else if (config.version_policy == ModelConfig::VersionPolicy::kLatest) {
    while (layout.versions.size() > config.latest_versions) layout.versions.erase(layout.versions.begin());
    check(layout.versions.front().number <= number, "model '", layout.name,
          "': its version_policy wants later versions than ", number);
  }
}

}  // namespace

class Repository::StepsHold {
 public:
  StepsHold(Repository& repository, const ModelConfig& ensemble) : repository_(repository) {
    for (const EnsembleStepConfig& step : ensemble.ensemble_steps) names_.insert(step.model);
    const std::unique_lock lock(repository_.mutex_);
    for (const std::string& name : names_) ++repository_.held_steps_[name];
  }
  ~StepsHold() {
    {
      const std::unique_lock lock(repository_.mutex_);
      for (const std::string& name : names_) {
        const auto held = repository_.held_steps_.find(name);
        if (--held->second == 0) repository_.held_steps_.erase(held);
      }
    }
    repository_.released_.notify_all();
  }
  StepsHold(const StepsHold&) = delete;
  StepsHold& operator=(const StepsHold&) = delete;

 private:
  Repository& repository_;
  std::set<std::string> names_;
};

void Repository::wait_for_ensembles_of(const std::string& step) {
  std::shared_lock lock(mutex_);
  released_.wait_for(lock, kEnsembleTimeout, [&] { return !held_steps_.contains(step); });
}

std::string Repository::find_root(const std::string& name) const {
  std::string root;
  for (const std::string& candidate : options_.roots) {
    std::error_code error;
    if (!fs::is_directory(fs::path(candidate) / name, error)) continue;
    check(root.empty(), kTwoRepositories);
    root = candidate;
  }
  return root;
}

bool Repository::keeps_files(const LoadRequest& request) const {
  if (request.config || !request.files.empty()) return false;
  const std::shared_lock lock(mutex_);
  const auto model = models_.find(request.name);
  return model != models_.end() && model->second.is_served() && model->second.plan.override_config &&
         !model->second.plan.override_folders.empty();
}

std::shared_ptr<const ModelConfig> Repository::config_for(const LoadRequest& request,
                                                          const std::string& shared_stamp) const {
  if (request.config) {
    check(request.config->size() <= kMaxConfigBytes, "parameter 'config' is larger than ", kMaxConfigBytes, " bytes");
    return std::make_shared<const ModelConfig>(
        parse_model_config_json(*request.config, "Invalid config override: parameter 'config'"));
  }
  const std::shared_lock lock(mutex_);
  const auto model = models_.find(request.name);
  if (model == models_.end() || !model->second.is_served()) return nullptr;
  // Who changes config.pbtxt after that means it.
  const LoadPlan& served = model->second.plan;
  return served.stamp.shared == shared_stamp ? served.override_config : nullptr;
}

LoadPlan Repository::plan_of(const LoadRequest& request) {
  if (has_weights_alone(request)) return plan_with_weights(request);
  try {
    return plan_of_whole(request);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidArgument && error.code() != ErrorCode::kUnimplemented) throw;
    const std::string text =
        concat("failed to load '", request.name, "', failed to poll from model repository: ", error.what());
    log(LogLevel::kWarning, "load refused", {{"model", request.name}, {"reason", text}});
    throw Error(error.code(), text);
  }
}

LoadPlan Repository::plan_of_whole(const LoadRequest& request) {
  const std::string& name = request.name;
  check(request.files.empty() || request.config, "Load parameter 'config' must be specified for model file override");
  LoadPlan plan;
  const std::string root = request.files.empty() ? find_root(name) : "";
  if (!root.empty()) plan.stamp = stamp_model(fs::path(root) / name);
  plan.override_config = config_for(request, plan.stamp.shared);
  plan.is_forced = request.config.has_value();
  if (!request.files.empty()) {
    plan.override_folders.push_back(overrides_.add(name, request.files));
    plan.layout = scan(plan.override_folders[0]->root().string(), name, plan.override_config.get());
    return plan;
  }
  if (root.empty()) fail_unknown(name);
  try {
    plan.layout = scan(root, name, plan.override_config.get());
  } catch (const Error& error) {
    fail(ErrorCode::kInvalidArgument, error.what());
  }
  return plan;
}

LoadPlan Repository::plan_with_weights(const LoadRequest& request) {
  const auto& [path, weights] = *request.files.begin();
  const int64_t number = version_of_weights(path);
  const Source base = source_of(request.name, 0);
  LoadPlan plan;
  {
    const std::shared_lock lock(mutex_);
    const auto model = models_.find(request.name);
    if (model == models_.end() || !model->second.is_served()) {
      fail(ErrorCode::kNotFound, "Request for unknown model: '", request.name, "' has no available versions");
    }
    plan = model->second.plan;
  }
  if (plan.layout.config.is_ensemble() || !options_.write_weights) {
    fail(ErrorCode::kUnimplemented, "file:", path, ": model '", request.name, "' has no weights of its own");
  }
  const auto folder = overrides_.add(request.name, request.files, fs::file_size(base.file));
  const fs::path brought = folder->root() / request.name / path;
  const fs::path archive = brought.parent_path() / model_file_name(plan.layout);
  options_.write_weights(base.file.string(), brought.string(), archive.string());
  fs::remove(brought);
  add_version_file(plan.layout, number, archive);
  plan.override_folders.push_back(folder);
  plan.is_forced = false;
  plan.forced_version = number;
  return plan;
}

bool Repository::is_unchanged(const LoadPlan& plan) const {
  if (plan.is_forced || plan.forced_version) return false;
  const std::shared_lock lock(mutex_);
  const auto model = models_.find(plan.layout.name);
  if (model == models_.end() || !model->second.error.empty()) return false;
  const auto& versions = model->second.versions;
  return versions.size() == plan.layout.versions.size() &&
         std::all_of(plan.layout.versions.begin(), plan.layout.versions.end(), [&](const auto& wanted) {
           const auto found = versions.find(wanted.number);
           return found != versions.end() && found->second.handle &&
                  found->second.stamp == plan.stamp_of(wanted.number);
         });
}

void Repository::load_steps(const LoadPlan& plan, std::vector<std::string> chain) {
  const std::string& name = plan.layout.name;
  check(std::find(chain.begin(), chain.end(), name) == chain.end(), "load failed for model '", name,
        "': the ensemble runs itself");
  chain.push_back(name);
  for (const EnsembleStepConfig& step : plan.layout.config.ensemble_steps) {
    if (is_served(step.model)) continue;
    try {
      check_name(step.model);
      load_model({.name = step.model, .config = {}, .files = {}}, /*is_along=*/true, chain);
    } catch (const Error& error) {
      fail(ErrorCode::kInvalidArgument, "load failed for model '", name, "': it runs model '", step.model,
           "': ", error.what());
    }
  }
}

void Repository::load_model(const LoadRequest& request, bool is_along, const std::vector<std::string>& chain) {
  const std::string& name = request.name;
  if (keeps_files(request)) return;
  const LoadTickets::Ticket ticket(tickets_, name);
  LoadPlan plan;
  if (!has_weights_alone(request)) plan = plan_of(request);
  const StepsHold hold(*this, plan.layout.config);
  if (plan.layout.config.is_ensemble()) load_steps(plan, chain);
  const auto room = hold_memory();
  const NameLocks::Held held = names_.hold(name);
  check_work_cancelled();
  // What was read before the wait may be old; files that a client brought are not.
  if (plan.override_folders.empty()) plan = plan_of(request);
  bool was_override = false;
  {
    const std::unique_lock lock(mutex_);
    ModelEntry& entry = models_[name];
    was_override = entry.plan.is_override() && entry.is_served();
    entry.is_loaded_along = is_along && (entry.is_loaded_along || !entry.is_served());
  }
  // A plan that replaces files of clients by those of the repository has the same numbers for other files.
  if (was_override && !plan.is_override()) plan.is_forced = true;
  if (plan.layout.versions.empty()) {
    fail(ErrorCode::kNotFound, "failed to load '", name,
         "', no version is available: ", hint_for_versions(plan.layout.folder));
  }
  if (is_unchanged(plan)) return;
  const Failures failures = serve(plan);
  if (!failures.empty()) fail(ErrorCode::kInvalidArgument, to_text(name, failures));
}

void Repository::load(const LoadRequest& request) {
  if (options_.mode != ControlMode::kExplicit) {
    fail(ErrorCode::kUnavailable, "explicit model load / unload is not allowed if polling is enabled");
  }
  check_name(request.name);
  load_model(request, /*is_along=*/false, {});
  load_waiting_ensembles(request.name);
  plan_ensembles_again(request.name);
}

void Repository::plan_ensembles_again(const std::string& step) {
  for (const std::string& name : ensembles_with(step)) {
    try {
      const LoadTickets::Ticket ticket(tickets_, name);
      const auto room = hold_memory();
      const NameLocks::Held held = names_.hold(name);
      LoadPlan plan;
      {
        const std::shared_lock lock(mutex_);
        const auto model = models_.find(name);
        if (model == models_.end() || !model->second.is_served()) continue;
        const bool is_current =
            std::all_of(model->second.planned.begin(), model->second.planned.end(), [this](const auto& planned) {
              const auto found = models_.find(planned.first);
              return found == models_.end() || found->second.revision == planned.second;
            });
        if (is_current) continue;
        plan = model->second.plan;
      }
      plan.is_forced = true;
      serve(plan);
    } catch (const Error& error) {
      log(LogLevel::kWarning, "ensemble cannot be loaded again", {{"model", name}, {"reason", error.what()}});
    }
  }
}

void Repository::load_waiting_ensembles(const std::string& step) {
  std::vector<std::string> waiting;
  {
    const std::shared_lock lock(mutex_);
    for (const auto& [name, entry] : models_) {
      if (entry.waits_for_step && entry.runs(step)) waiting.push_back(name);
    }
  }
  for (const std::string& name : waiting) {
    try {
      load_model({.name = name, .config = {}, .files = {}}, /*is_along=*/false, {});
    } catch (const Error& error) {
      log(LogLevel::kWarning, "ensemble cannot be loaded again", {{"model", name}, {"reason", error.what()}});
    }
  }
}

std::vector<std::string> Repository::ensembles_with(const std::string& step) const {
  std::vector<std::string> found = {step};
  const std::shared_lock lock(mutex_);
  // Ensembles may run ensembles.
  for (size_t i = 0; i < found.size(); ++i) {
    for (const auto& [name, entry] : models_) {
      if (!entry.is_served() || !entry.runs(found[i])) continue;
      if (std::find(found.begin(), found.end(), name) == found.end()) found.push_back(name);
    }
  }
  found.erase(found.begin());
  return found;
}

std::vector<std::string> Repository::steps_loaded_along(const std::string& ensemble) const {
  const std::shared_lock lock(mutex_);
  std::vector<std::string> found;
  const auto model = models_.find(ensemble);
  if (model == models_.end()) return found;
  for (const EnsembleStepConfig& step : model->second.plan.layout.config.ensemble_steps) {
    const auto entry = models_.find(step.model);
    const bool is_along = entry != models_.end() && entry->second.is_loaded_along;
    if (is_along && std::find(found.begin(), found.end(), step.model) == found.end()) found.push_back(step.model);
  }
  return found;
}

Repository::Unloading Repository::withdraw_ensembles_with(const std::string& step, const std::string& reason,
                                                          bool is_withheld) {
  Unloading all{.name = step, .gone = {}, .owners = {}};
  for (const std::string& ensemble : ensembles_with(step)) {
    append(withdraw(ensemble, reason, is_withheld), all);
    const std::unique_lock lock(mutex_);
    models_[ensemble].waits_for_step = !is_withheld;
  }
  // A request that is between two steps still needs the model.
  const auto deadline = std::chrono::steady_clock::now() + kEnsembleTimeout;
  for (const auto& gone : all.gone) gone.wait_until(deadline);
  return all;
}

Repository::Unloading Repository::unload(const std::string& name, bool with_dependents) {
  wait_for_ensembles_of(name);
  {
    const std::shared_lock lock(mutex_);
    if (!models_.contains(name)) {
      fail(ErrorCode::kNotFound, "Request for unknown model: '", name, "' is not found");
    }
  }
  const std::string reason =
      with_dependents ? kUnloadedReason : concat(kUnloadedReason, " with model '", name, "', which it runs");
  Unloading unloading = withdraw_ensembles_with(name, reason, /*is_withheld=*/with_dependents);
  const std::vector<std::string> steps = with_dependents ? steps_loaded_along(name) : std::vector<std::string>();
  const Unloading own = withdraw(name, kUnloadedReason, /*is_withheld=*/true);
  append(own, unloading);
  if (steps.empty()) return unloading;
  const auto deadline = std::chrono::steady_clock::now() + kEnsembleTimeout;
  for (const auto& gone : own.gone) gone.wait_until(deadline);
  for (const std::string& step : steps) {
    // What another ensemble runs stays.
    if (ensembles_with(step).empty()) append(unload(step, true), unloading);
  }
  return unloading;
}

Repository::Unloading Repository::unload_for_client(const std::string& name, bool with_dependents) {
  if (options_.mode != ControlMode::kExplicit) {
    fail(ErrorCode::kUnavailable, "explicit model load / unload is not allowed if polling is enabled");
  }
  {
    const std::shared_lock lock(mutex_);
    if (!models_.contains(name)) return {.name = name, .gone = {}, .owners = {}};
  }
  tickets_.cancel(name);
  return unload(name, with_dependents);
}

void Repository::set_labels(const std::string& name, const std::string& text) {
  if (!options_.allows_labels) {
    fail(ErrorCode::kUnimplemented, "version labels are off: --allow-version-labels=false");
  }
  const std::map<std::string, int64_t> labels = parse_labels(text);
  const std::unique_lock lock(mutex_);
  const auto model = models_.find(name);
  if (model == models_.end()) fail(ErrorCode::kNotFound, "Request for unknown model: '", name, "' is not found");
  ModelEntry& entry = model->second;
  for (const auto& [label, version] : labels) {
    const auto found = entry.versions.find(version);
    if (version > 0 && (found == entry.versions.end() || !found->second.handle)) {
      fail(ErrorCode::kNotFound, "version label '", label, "': model '", name, "' does not serve version ", version);
    }
  }
  for (const auto& [label, version] : labels) {
    if (version > 0) {
      entry.labels[label] = version;
    } else {
      entry.labels.erase(label);
    }
  }
}

}  // namespace tensord::server
