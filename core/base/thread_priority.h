#pragma once

#include <functional>

namespace tensord {

// Lets other threads of the machine go before the calling thread, and those that it starts from now on: this nice
// value (19 is the largest), and no claim on a core when it wakes up. 0 changes nothing. Cannot be taken back.
void take_low_priority(int nice);

// Runs `fn` on a thread of its own with that nice value, and returns or throws as it does. What is local to threads, as
// the owner of memory and the thread budget, begins anew there.
void run_with_nice(int nice, const std::function<void()>& fn);

}  // namespace tensord
