#pragma once

#include <functional>

namespace tensord {

// Lowers the priority of the calling thread and of the threads that it starts from now on. They get this nice value (19
// is the largest) or their own if that is larger, do not preempt others on wake-up, and get short time slices where the
// system supports them (Linux 6.12 or later). 0 changes nothing. Irreversible.
void take_low_priority(int nice);

// For long work: call it between pieces of at most about 100 microseconds. If the calling thread has low priority and
// short time slices, threads that wait for its core run first. Without it, a thread that wakes up waits for the end of
// a slice, and of a copy inside the kernel, whatever the priority of the running thread is. Elsewhere it does nothing.
void let_others_run();

// Runs `fn` on a new thread with that nice value, and returns or throws as `fn` does. Thread-local settings, such as
// the memory owner and the thread budget, have their defaults there.
void run_with_nice(int nice, const std::function<void()>& fn);

}  // namespace tensord
