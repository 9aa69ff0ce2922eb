#include "clients/engine/binding/interrupt.h"

#include <chrono>
#include <thread>

namespace tensord::python {
namespace {

const std::thread::id main_thread = std::this_thread::get_id();

}  // namespace

bool is_interrupted() {
  using Clock = std::chrono::steady_clock;
  static Clock::time_point last_look;
  if (std::this_thread::get_id() != main_thread) return false;
  const auto now = Clock::now();
  if (now - last_look < std::chrono::milliseconds(20)) return false;
  last_look = now;
  const nb::gil_scoped_acquire gil;
  // The error stays set, and is what the caller sees (set_error).
  return PyErr_Occurred() || PyErr_CheckSignals() != 0;
}

InterruptScope::InterruptScope() { scope_.emplace(is_interrupted); }

}  // namespace tensord::python
