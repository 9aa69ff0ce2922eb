#pragma once

#include <cstdint>

namespace tensord::server {

// Times at which a request entered its phases, in nanoseconds of Clock::system(); 0: not reached.
struct RequestTimes {
  int64_t arrived_ns = 0;               // its bytes were received
  int64_t queue_start_ns = 0;           // decoded and passed to its model
  int64_t compute_start_ns = 0;         // taken by a worker
  int64_t compute_input_end_ns = 0;     // the model's inputs are gathered
  int64_t compute_output_start_ns = 0;  // the model has run
  int64_t compute_end_ns = 0;           // its outputs are split
};

}  // namespace tensord::server
