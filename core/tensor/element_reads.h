#pragma once

#include <cstdint>

namespace tensord {

// How often the calling thread has read a tensor's element as a number (Tensor::item_*): who records what a function
// does sees by it that what the function does next may depend on that number.
uint64_t element_reads();

}  // namespace tensord
