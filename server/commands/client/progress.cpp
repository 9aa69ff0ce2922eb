#include "server/commands/client/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <utility>

#include "core/base/mutex.h"
#include "core/base/thread.h"
#include "server/commands/client/table.h"

namespace tensord::server {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);
constexpr auto kQuiet = std::chrono::milliseconds(500);
constexpr size_t kUsualColumns = 80;

size_t terminal_columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsualColumns;
}

// Cuts to the terminal's width: a wrapped line cannot be overwritten.
std::string cut(const std::string& text, size_t columns) {
  size_t at = 0;
  for (size_t width = 0; at < text.size(); ++at) {
    if ((text[at] & 0xc0) != 0x80 && ++width > columns) break;
  }
  return text.substr(0, at);
}

}  // namespace

ProgressLine::ProgressLine(bool is_wanted) : is_shown_(is_wanted && isatty(STDERR_FILENO) != 0) {}

void ProgressLine::show(const std::string& text) {
  if (!is_shown_) return;
  // Returns to the start of the line, prints, and erases the rest of the old line.
  std::cerr << "\r" << cut(printable(text), terminal_columns() - 1) << "\x1b[K" << std::flush;
  has_line_ = true;
}

void ProgressLine::clear() {
  if (std::exchange(has_line_, false)) std::cerr << "\r\x1b[K" << std::flush;
}

void ProgressLine::keep() {
  if (std::exchange(has_line_, false)) std::cerr << std::endl;
}

Ticker::Ticker(bool is_wanted, std::function<std::string(double)> text) : line_(is_wanted), text_(std::move(text)) {
  if (line_.is_shown()) thread_ = Thread("progress", [this] { run(); });
}

Ticker::~Ticker() {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Ticker::run() {
  const auto start = std::chrono::steady_clock::now();
  MutexLock lock(mutex_);
  auto wait = kQuiet;
  while (!changed_.wait_for(lock, wait, [this]() TENSORD_REQUIRES(mutex_) { return is_over_; })) {
    line_.show(text_(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()));
    wait = kTick;
  }
  line_.clear();
}

std::string bar_text(double part, int width) {
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = std::isfinite(part) ? static_cast<int>(std::clamp(part, 0.0, 1.0) * width * 8) : 0;
  std::string out = "▕";
  for (int i = 0; i < eighths / 8; ++i) out += "█";
  out += kEighths[eighths % 8];
  const int filled = eighths / 8 + (eighths % 8 != 0);
  return out + std::string(static_cast<size_t>(width - filled), ' ') + "▏";
}

std::string duration_text(double seconds) {
  if (!(seconds >= 0) || seconds > 1e9) return "-:--";
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  char text[48];
  if (whole >= 3600) {
    std::snprintf(text, sizeof(text), "%lld:%02d:%02d", static_cast<long long>(whole / 3600),
                  static_cast<int>(whole / 60 % 60), static_cast<int>(whole % 60));
  } else {
    std::snprintf(text, sizeof(text), "%d:%02d", static_cast<int>(whole / 60), static_cast<int>(whole % 60));
  }
  return text;
}

std::string bytes_text(double bytes) {
  return bytes < 0x1p30 ? number_text(bytes / 0x1p20, 3) + " MiB" : number_text(bytes / 0x1p30, 3) + " GiB";
}

}  // namespace tensord::server
