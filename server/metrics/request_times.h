#pragma once

#include <cstdint>

namespace tensord::server {

// When a request entered each phase, in nanoseconds of Clock::system(); 0 means not reached.
struct RequestTimes {
  int64_t arrived_ns = 0;               // its bytes were received
  int64_t queue_start_ns = 0;           // decoded and passed to its model
  int64_t compute_start_ns = 0;         // taken by a worker
  int64_t compute_input_end_ns = 0;     // the model's inputs were gathered
  int64_t compute_output_start_ns = 0;  // the model's run ended
  int64_t compute_end_ns = 0;           // its outputs were split
};

}  // namespace tensord::server
