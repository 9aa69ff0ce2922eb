#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tensord::server {

// The precision that is chosen by measuring, see load_in_fastest_precision.
inline constexpr const char* kAutoPrecision = "auto";

// How one model is compiled and run: the `parameters` of its config.pbtxt.
struct EngineOverrides {
  std::optional<std::string> precision;                     // precision: f32, tf32, bf16, int8, auto
  std::optional<double> precision_tolerance;                // precision_tolerance, of auto
  std::optional<int> plan_cache_size;                       // plan_cache_size; 0 turns plans off
  std::optional<std::vector<std::string>> disabled_passes;  // jit_disable
  std::optional<std::vector<std::string>> pass_limits;      // jit_limit: "PASS:N"
  std::optional<bool> optimize;                             // DISABLE_OPTIMIZED_EXECUTION, as Triton spells it
};

// How models are compiled and run unless their config.pbtxt overrides it: flags of `serve`.
struct EngineOptions {
  std::string precision = "f32";
  double precision_tolerance = 0.02;              // of outputs, relative to their largest value; for auto
  int plan_cache_size = 64;                       // input signatures with a plan, per method; 0 turns plans off
  std::vector<std::string> disabled_passes = {};  // --jit-disable
  std::vector<std::string> pass_limits = {};      // --jit-limit PASS:N
  bool optimize = true;
  std::string device = "cpu";                // of models without instance_group
  std::vector<std::string> gpu_limits = {};  // --model-load-gpu-limit GPU:SHARE

  EngineOptions with(const EngineOverrides& overrides) const {
    EngineOptions out = *this;
    if (overrides.precision) out.precision = *overrides.precision;
    if (overrides.precision_tolerance) out.precision_tolerance = *overrides.precision_tolerance;
    if (overrides.plan_cache_size) out.plan_cache_size = *overrides.plan_cache_size;
    if (overrides.disabled_passes) out.disabled_passes = *overrides.disabled_passes;
    if (overrides.pass_limits) out.pass_limits = *overrides.pass_limits;
    if (overrides.optimize) out.optimize = *overrides.optimize;
    return out;
  }
};

}  // namespace tensord::server
