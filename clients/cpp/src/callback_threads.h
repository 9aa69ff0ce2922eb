#pragma once

namespace tensord::client {

// Before each call that answers on gRPC's threads. gRPC joins these threads where the last channel with such calls
// goes, also when one of them lets it go at the end of a call (as of 1.51; its queue is used after it was freed). A
// channel that never goes keeps them for as long as the process.
void keep_callback_threads();

}  // namespace tensord::client
