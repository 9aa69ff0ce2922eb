#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/jit/runtime/module.h"
#include "core/jit/runtime/step/planned_step.h"

namespace tensord::jit {

// The planned step of a loss that runs these methods of a module loaded for training, and operators. If the methods
// have other effects (attributes that they set, calls resolved at run time), every step is interpreted, with the reason
// in the report. The module must outlive the step.
std::unique_ptr<PlannedStep> make_planned_step(const Module& module, std::span<const std::string> methods,
                                               PlannedStepOptions options = {});

// For steps that call methods of arbitrary modules: tells the recording what it must know about a module before one of
// its methods runs.
void record_module_call(StepRecording& recording, const Module& module, const std::string& method);

}  // namespace tensord::jit
