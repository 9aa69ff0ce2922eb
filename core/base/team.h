#pragma once

namespace tensord {

// The largest team for parallel work that the calling thread is known to be able to start, itself included; it never
// started a larger one.
int largest_team();

}  // namespace tensord
