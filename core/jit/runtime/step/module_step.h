#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/jit/runtime/module.h"
#include "core/jit/runtime/step/planned_step.h"

namespace tensord::jit {

// The planned step of a loss that runs these methods of a module that was loaded for training, and operators. What the
// methods do besides (attributes that they set, calls that are not known before they run) makes every step interpreted;
// the report says so. The module must outlive it.
std::unique_ptr<PlannedStep> make_planned_step(const Module& module, std::span<const std::string> methods,
                                               PlannedStepOptions options = {});

// For steps that call methods of modules as they like: what the recording has to know of a module before one runs.
void record_module_call(StepRecording& recording, const Module& module, const std::string& method);

}  // namespace tensord::jit
