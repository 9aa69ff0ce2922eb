#pragma once

#include <memory>

#include "core/tensor/cuda/error_word.h"
#include "core/tensor/device_runtime.h"

namespace tensord::cuda {

// Makes the devices of CUDA known as a DeviceRuntime; call before threads start. Opens nothing.
void register_cuda_runtime();

// The lower the number the sooner its work is done beside that of other streams; 0 as a rule. What the device does not
// have becomes the nearest that it has.
std::unique_ptr<DeviceStream> make_stream(int index, int priority);

// Where kernels of this stream of CUDA note what they find wrong: its synchronize() throws it.
ErrorWord* error_word_of(DeviceStream& stream);

}  // namespace tensord::cuda
