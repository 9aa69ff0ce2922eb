#include "server/executor/model/load_options.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/jit/runtime/load_flags.h"
#include "core/tensor/device_runtime.h"
#include "server/executor/model/instance_placement.h"
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
  apply_setting("precision", [&] { jit::set_precision(out, options.precision); });
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

}  // namespace tensord::server
