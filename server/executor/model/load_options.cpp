#include "server/executor/model/load_options.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/jit/runtime/load_flags.h"
#include "core/tensor/device_runtime.h"
#include "server/executor/model/instance_placement.h"
#include "server/executor/model/model_of_devices.h"
#include "server/executor/model/precision_choice.h"
#include "server/executor/model/torchscript_model.h"

namespace tensord::server {
namespace {

// Runs `fn` and puts the setting's name in front of its errors.
template <class Fn>
void apply_setting(const char* setting, Fn&& fn) {
  try {
    fn();
  } catch (const Error& error) {
    throw Error(error.code(), concat(setting, ": ", error.what()));
  }
}

std::unique_ptr<Model> load_in_places(const ModelFiles& files, const ModelConfig& config, const EngineOptions& engine) {
  jit::LoadOptions options = to_load_options(engine);
  options.weights = files.weights;
  options.copies_files = files.are_copied;
  std::vector<Device> instances = place_instances(config, options.device);
  const std::vector<Device> places = instances.empty() ? std::vector<Device>{options.device} : instances;
  for (const Device device : places) check_load_limits(engine.gpu_limits, device);
  if (instances.empty()) return make_torchscript_model(files.model, config, options);
  std::vector<std::unique_ptr<const Model>> models;
  for (const Device device : instances) {
    const bool is_loaded = std::ranges::any_of(models, [&](const auto& m) { return m->signature().device == device; });
    if (is_loaded) continue;
    options.device = device;
    models.push_back(make_torchscript_model(files.model, config, options));
    if (!models.front()->signature().keeps_state || names_gpus(config)) continue;
    keep_first_device(instances);  // a model that keeps state runs on one device
    break;
  }
  return make_model_of_devices(std::move(models), std::move(instances));
}

}  // namespace

EngineOptions with_room_for_batches(const EngineOptions& defaults, const ModelConfig& config) {
  constexpr int64_t kMaxPlans = 1024;
  EngineOptions out = defaults.with(config.engine);
  if (config.engine.plan_cache_size || out.plan_cache_size == 0) return out;
  const int64_t wanted = std::min<int64_t>(2 * config.max_batch_size, kMaxPlans);
  out.plan_cache_size = std::max(out.plan_cache_size, static_cast<int>(wanted));
  return out;
}

jit::LoadOptions to_load_options(const EngineOptions& options) {
  jit::LoadOptions out;
  out.optimize = options.optimize;
  apply_setting("--device", [&] {
    out.device = parse_device(options.device);
    device_runtime(out.device);
  });
  // Until `auto` has chosen.
  const std::string precision = options.precision == kAutoPrecision ? "f32" : options.precision;
  apply_setting("precision", [&] { jit::set_precision(out, precision); });
  out.plan.is_enabled = options.plan_cache_size > 0;
  out.plan.cache_size = static_cast<size_t>(std::max(options.plan_cache_size, 1));
  apply_setting("jit_disable", [&] {
    for (const std::string& pass : options.disabled_passes) jit::disable_pass(out, pass);
  });
  apply_setting("jit_limit", [&] {
    for (const std::string& limit : options.pass_limits) jit::limit_pass(out, limit);
  });
  return out;
}

void check_engine_options(const EngineOptions& options) {
  to_load_options(options);
  check_load_limits(options.gpu_limits, Device{});
}

std::unique_ptr<const Model> load_torchscript_model(const ModelFiles& files, const ModelConfig& config,
                                                    const EngineOptions& defaults) {
  const EngineOptions engine = with_room_for_batches(defaults, config);
  if (engine.precision != kAutoPrecision) return load_in_places(files, config, engine);
  const auto load = [&](const std::string& precision) {
    EngineOptions own = engine;
    own.precision = precision;
    return load_in_places(files, config, own);
  };
  const auto make_requests = [&](const Signature& signature) { return make_warmup(signature, config, files.model); };
  return load_in_fastest_precision(load, make_requests, {.tolerance = engine.precision_tolerance});
}

}  // namespace tensord::server
