#pragma once

namespace tensord::server {

// Lets other threads of the machine go before the calling thread, and those that it starts from now on: this nice
// value (19 is the largest), and no claim on a core when it wakes up. 0 changes nothing. Cannot be taken back.
void take_low_priority(int nice);

}  // namespace tensord::server
