#pragma once

namespace tensord::server {

// Lets every other thread of the machine go before the calling thread, and those that it starts from now on: the
// largest nice value, and no claim on a core when it wakes up. Cannot be taken back.
void take_low_priority();

}  // namespace tensord::server
