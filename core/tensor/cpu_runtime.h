#pragma once

#include "core/tensor/device_runtime.h"

namespace tensord {

// The CPU as a device: work runs when it is submitted, so streams are always empty and every event has passed.
DeviceRuntime& cpu_runtime();

}  // namespace tensord
