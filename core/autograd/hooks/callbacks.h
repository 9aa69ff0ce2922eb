#pragma once

#include <functional>

namespace tensord::autograd {

// For hooks and nodes while they run: `callback` is called once when the backward pass that runs has ended well, on the
// thread that started it, after all that it gave is in its place; in the order in which they came. A pass that fails
// calls none. Throws Error{kFailedPrecondition} outside of a pass. Thread-safe.
void queue_callback(std::function<void()> callback);

}  // namespace tensord::autograd
