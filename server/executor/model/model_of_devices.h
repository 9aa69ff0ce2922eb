#pragma once

#include <memory>
#include <vector>

#include "server/executor/model/model.h"

namespace tensord::server {

// One model with an instance on each of these devices; `models` contains it once for each distinct device. Throws
// Error{kInvalidArgument} for a model that keeps state and has several devices.
std::unique_ptr<Model> make_model_of_devices(std::vector<std::unique_ptr<const Model>> models,
                                             std::vector<Device> instances);

}  // namespace tensord::server
