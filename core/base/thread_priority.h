#pragma once

#include <functional>

namespace tensord {

// Lets other threads of the machine go before the calling thread, and those that it starts from now on: this nice
// value (19 is the largest) or its own if that is larger, no claim on a core when it wakes up, and short turns where
// the system has them (Linux from 6.12 on). 0 changes nothing. Cannot be taken back.
void take_low_priority(int nice);

// For long work, between pieces of at most some 100 microseconds: where the calling thread has low priority and short
// turns, threads that wait for its core go first. A thread that wakes up otherwise waits for the end of a turn, and of
// a copy inside the kernel, whatever the priority of the one that runs. Elsewhere it does nothing.
void let_others_run();

// Runs `fn` on a thread of its own with that nice value, and returns or throws as it does. What is local to threads, as
// the owner of memory and the thread budget, begins anew there.
void run_with_nice(int nice, const std::function<void()>& fn);

}  // namespace tensord
