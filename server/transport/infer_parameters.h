#pragma once

#include "server/transport/infer_message.h"

namespace tensord::server {

// What the reserved parameters of a request ask for.
struct RequestParameters {
  int64_t timeout_us = 0;  // of waiting in the queue; 0: none
};

// Checks parameters of the request, its inputs and its requested outputs by the protocol's
// rules. Unreserved ones are accepted and not used. Throws Error: kInvalidArgument (wrong
// type, reserved name), kUnimplemented (shared memory, classification).
RequestParameters check_parameters(const InferMessage& message);

}  // namespace tensord::server
