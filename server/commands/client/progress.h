#pragma once

#include <functional>
#include <string>

#include "core/base/mutex.h"
#include "core/base/thread.h"

namespace tensord::server {

// A progress line on stderr that is redrawn in place. Prints nothing if stderr is not a terminal or `is_wanted` is
// false. clear() and the destructor erase it. Not thread-safe.
class ProgressLine {
 public:
  explicit ProgressLine(bool is_wanted);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool is_shown() const { return is_shown_; }
  // Cuts the text to the terminal's width.
  void show(const std::string& text);
  void clear();
  // Leaves the current line and continues on the next one.
  void keep();

 private:
  const bool is_shown_;
  bool has_line_ = false;
};

// Redraws a progress line ten times a second while the calling thread works. Starts after half a second, so that short
// work prints nothing.
class Ticker {
 public:
  // `text` is called on another thread with the elapsed seconds.
  Ticker(bool is_wanted, std::function<std::string(double seconds)> text);
  ~Ticker();

 private:
  void run();

  ProgressLine line_;  // used by the thread only
  const std::function<std::string(double)> text_;
  Mutex mutex_;
  CondVar changed_;
  bool is_over_ TENSORD_GUARDED_BY(mutex_) = false;
  Thread thread_;
};

// A bar ▕████▌   ▏ with `width` characters between its ends; `part` is 0 to 1.
std::string bar_text(double part, int width = 28);
// 3725 → "1:02:05"; negative → "-:--".
std::string duration_text(double seconds);
// "12.3 MiB"
std::string bytes_text(double bytes);

}  // namespace tensord::server
