#pragma once

#include <functional>
#include <string>

#include "core/base/mutex.h"
#include "core/base/thread.h"

namespace tensord::server {

// A line on stderr that is drawn again and again while something goes on; nothing at all where stderr is no terminal,
// or `is_wanted` is false. Gone with clear() and at the end. Not thread-safe.
class ProgressLine {
 public:
  explicit ProgressLine(bool is_wanted);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool is_shown() const { return is_shown_; }
  // Cut off where the terminal ends.
  void show(const std::string& text);
  void clear();
  // Leaves what stands there, and goes to the next line.
  void keep();

 private:
  const bool is_shown_;
  bool has_line_ = false;
};

// Shows a text that changes with time, ten times a second, beside what takes long in the calling thread. Begins after
// half a second, so that what is quick shows nothing.
class Ticker {
 public:
  // `text` gets the seconds that have passed, and is called on another thread.
  Ticker(bool is_wanted, std::function<std::string(double seconds)> text);
  ~Ticker();

 private:
  void run();

  ProgressLine line_;  // of the thread
  const std::function<std::string(double)> text_;
  Mutex mutex_;
  CondVar changed_;
  bool is_over_ TENSORD_GUARDED_BY(mutex_) = false;
  Thread thread_;
};

// ▕████▌   ▏, of `width` characters between the ends, filled from 0 to 1.
std::string bar_text(double part, int width = 28);
// 3725 → "1:02:05"; below 0: "-:--".
std::string duration_text(double seconds);
// "12.3 MiB"
std::string bytes_text(double bytes);

}  // namespace tensord::server
