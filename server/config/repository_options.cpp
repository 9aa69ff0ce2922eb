#include "server/config/repository_options.h"

#include <CLI/CLI.hpp>

#include <algorithm>

#include "core/base/error.h"

namespace tensord::server {
namespace {

std::string refuse_config_name(const std::string& name) {
  const bool is_good = !name.empty() && name.front() != '.' && std::ranges::all_of(name, [](unsigned char c) {
    return c > ' ' && c != '/' && c != '\\' && c != 127;
  });
  return is_good ? "" : "is the name of a file without its folder and ending, as h100";
}

}  // namespace

void add_repository_options(CLI::App& app, RepositoryOptions& options) {
  app.add_option("--model-repository,--model-store", options.model_repositories,
                 "Folder with <model>/<version>/model.pt; may be repeated")
      ->required();
  app.add_option(
         "--model-control-mode", options.model_control_mode,
         "How models are loaded and unloaded. none: all at startup; poll: as the folders change; explicit: by calls")
      ->check(CLI::IsMember({"none", "poll", "explicit"}))
      ->capture_default_str();
  app.add_option("--repository-poll-secs", options.poll_secs, "Seconds between scans of the folders, in mode poll")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  app.add_option("--load-model", options.load_models,
                 "Load this model at startup, and no others unless they are given too; * means all; may be repeated");
  app.add_option("--model-config-name", options.config_name,
                 "Read configs/NAME.pbtxt in a model's folder, if it exists, instead of its config.pbtxt")
      ->check(refuse_config_name, "NAME");
  app.add_flag_callback(
      "--disable-auto-complete-config", [&options] { options.completes_configs = false; },
      "Refuse models whose config.pbtxt is missing or lacks names, types or shapes of inputs and outputs, instead of "
      "reading them from the model's file");
  app.add_option_function<bool>(
      "--strict-model-config", [&options](bool is_strict) { options.completes_configs &= !is_strict; },
      "Deprecated: true means --disable-auto-complete-config");
  app.add_option("--model-load-thread-count", options.load_threads, "Models that are loaded at the same time")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--model-load-timeout-secs", options.load_timeout_secs,
                 "Cancel a load that takes longer while it runs code of the model (constants, __setstate__, the "
                 "warm-up); 0: never")
      ->check(CLI::Range(0, 86400))
      ->capture_default_str();
  app.add_option("--model-reload-nice", options.reload_nice,
                 "Nice value of the threads that reload a served model: requests go first, and if all cores are busy "
                 "the load takes longer; 0: the same as serving threads")
      ->check(CLI::Range(0, 19))
      ->capture_default_str();
  app.add_option("--load-on-demand", options.load_on_demand, "A request loads its model if necessary, in mode explicit")
      ->capture_default_str();
  app.add_option("--model-memory-limit", options.memory_limit_bytes,
                 "Maximum memory of loaded models, such as 8GB; with --load-on-demand the least recently used are "
                 "unloaded for others; 0: no limit")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
  app.add_option("--allow-version-labels", options.allow_version_labels,
                 "A request may select a version by its label, such as stable")
      ->capture_default_str();
  app.add_option("--model-override-limit", options.override_limit_bytes,
                 "Maximum size of files in use that clients sent with loads, such as 4GB")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->capture_default_str();
  app.add_option("--copy-archives", options.copy_archives,
                 "Copy an archive (a clone if the file system supports it) before it is mapped, so that writing to the "
                 "file does not affect the served model. auto: in modes poll and explicit")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->capture_default_str();
}

void validate(const RepositoryOptions& options) {
  check(!options.model_repositories.empty(), "--model-repository is required");
  const std::string& mode = options.model_control_mode;
  check(mode == "none" || mode == "poll" || mode == "explicit",
        "--model-control-mode must be none, poll or explicit, got '", mode, "'");
  const auto& named = options.load_models;
  check(named.size() <= 1 || std::find(named.begin(), named.end(), "*") == named.end(),
        "--load-model=* must be the only --load-model");
  check(options.load_models.empty() || mode != "poll", "--load-model is not for --model-control-mode=poll");
  check(!options.load_on_demand || mode == "explicit", "--load-on-demand needs --model-control-mode=explicit");
}

}  // namespace tensord::server
