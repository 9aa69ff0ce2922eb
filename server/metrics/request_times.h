#pragma once

#include <cstdint>

namespace tensord::server {

// When a request passed from one phase to the next, in nanoseconds of Clock::system(); 0: it did not come that far.
struct RequestTimes {
  int64_t arrived_ns = 0;               // its bytes were there
  int64_t queue_start_ns = 0;           // decoded, and given to its model
  int64_t compute_start_ns = 0;         // a worker took it
  int64_t compute_input_end_ns = 0;     // the model's inputs are gathered
  int64_t compute_output_start_ns = 0;  // the model has run
  int64_t compute_end_ns = 0;           // its outputs are taken apart
};

}  // namespace tensord::server
