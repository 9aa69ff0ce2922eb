#pragma once

namespace tensord::client {

// Call before each asynchronous call. gRPC joins its callback threads when the last channel that uses them is
// destroyed, even if one of those threads does so at the end of a call (as of 1.51, which then uses a freed queue). A
// channel that is never destroyed keeps the threads for the process's lifetime.
void keep_callback_threads();

}  // namespace tensord::client
