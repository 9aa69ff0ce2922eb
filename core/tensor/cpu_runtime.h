#pragma once

#include "core/tensor/device_runtime.h"

namespace tensord {

// The processor as a device: work is done when it is asked for, so streams are empty and events have passed.
DeviceRuntime& cpu_runtime();

}  // namespace tensord
