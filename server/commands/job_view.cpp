#include "server/commands/job_view.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "server/training/job_json.h"

namespace tensord::server {
namespace {

constexpr int kBarWidth = 28;
constexpr int kPlotWidth = 64;
constexpr int kPlotHeight = 10;

std::string number(double value, int digits = 4) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.*g", digits, value);
  return text;
}

std::string bar(double part) {
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = static_cast<int>(std::clamp(part, 0.0, 1.0) * kBarWidth * 8);
  std::string out;
  for (int i = 0; i < eighths / 8; ++i) out += "█";
  out += kEighths[eighths % 8];
  const int filled = eighths / 8 + (eighths % 8 != 0);
  return out + std::string(static_cast<size_t>(kBarWidth - filled), ' ');
}

std::string bytes_text(uint64_t bytes) {
  return bytes < (uint64_t{1} << 30) ? number(static_cast<double>(bytes) / (1 << 20), 3) + " MiB"
                                     : number(static_cast<double>(bytes) / (1 << 30), 3) + " GiB";
}

std::string steps_text(const JobProgress& progress) {
  return progress.total_steps > 0 ? concat(progress.step, "/", progress.total_steps) : concat(progress.step);
}

std::string metrics_text(const JobProgress& progress) {
  std::string out = progress.metrics.empty() ? "" : "  evaluated:";
  for (const auto& [name, value] : progress.metrics) out += concat(" ", name, " ", number(value));
  return out;
}

std::string line_text(const JobStatus& status) {
  const JobProgress& progress = status.progress;
  const double part =
      progress.total_steps > 0 ? static_cast<double>(progress.step) / static_cast<double>(progress.total_steps) : 0;
  std::string out = progress.total_steps > 0 ? concat("▕", bar(part), "▏ ") : std::string();
  out += concat(steps_text(progress), "  loss ", number(progress.loss), "  lr ", number(progress.learning_rate, 3),
                "  ", number(progress.samples_per_second, 3), "/s");
  if (progress.total_steps > 0) out += "  " + duration_text(progress.seconds_left) + " left";
  out += metrics_text(progress);
  if (status.state != JobState::kRunning) out += concat("  ", to_string(status.state));
  return out;
}

}  // namespace

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

std::string job_line(const JobStatus& status) {
  return concat(status.id, "  ", to_string(status.state), "  step ", steps_text(status.progress), "  loss ",
                number(status.progress.loss), metrics_text(status.progress),
                status.published_version > 0 ? concat("  published ", status.published_version) : std::string(),
                status.message.empty() ? std::string() : "  (" + status.message + ")");
}

std::string job_report(const JobStatus& status) {
  const JobProgress& progress = status.progress;
  std::string out = concat("job         ", status.id, "\nstate       ", to_string(status.state), "\n");
  if (!status.message.empty()) out += concat("message     ", status.message, "\n");
  out += concat("model       ", status.spec.model.name.empty() ? status.spec.model.upload_id : status.spec.model.name,
                status.base_version > 0 ? concat(" version ", status.base_version) : std::string(), "\n");
  out += concat("step        ", steps_text(progress), ", epoch ", number(progress.epoch), "\n");
  out += concat("loss        ", number(progress.loss), metrics_text(progress), "\n");
  out +=
      concat("rate        ", number(progress.learning_rate), ", gradient norm ", number(progress.gradient_norm), "\n");
  out += concat("speed       ", number(progress.samples_per_second), " samples/s, ",
                duration_text(progress.seconds_left), " left\n");
  out += concat("memory      ", bytes_text(progress.memory_bytes), ", at most ", bytes_text(progress.peak_memory_bytes),
                "\n");
  if (progress.checkpoint_step > 0) out += concat("checkpoint  step ", progress.checkpoint_step, "\n");
  if (status.published_version > 0) out += concat("published   version ", status.published_version, "\n");
  return out;
}

std::string plot(const std::vector<double>& values, int width, int height) {
  std::vector<double> columns;
  const size_t count = std::min(values.size(), static_cast<size_t>(width));
  for (size_t i = 0; i < count; ++i) {
    // The mean of the values that fall into the column.
    const size_t first = i * values.size() / count, last = std::max(first + 1, (i + 1) * values.size() / count);
    double sum = 0;
    for (size_t j = first; j < last; ++j) sum += values[j];
    columns.push_back(sum / static_cast<double>(last - first));
  }
  std::erase_if(columns, [](double value) { return !std::isfinite(value); });
  if (columns.empty()) return {};
  const auto [low, high] = std::minmax_element(columns.begin(), columns.end());
  const double range = *high > *low ? *high - *low : 1;
  static constexpr const char* kLevels[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string out;
  for (int row = height - 1; row >= 0; --row) {
    char label[16];
    std::snprintf(label, sizeof(label), "%9.4g ", row == 0 ? *low : *high);
    out += row == height - 1 || row == 0 ? std::string(label) : std::string(10, ' ');
    out += "│";
    for (const double value : columns) {
      const double filled = (value - *low) / range * height - row;
      out += kLevels[std::clamp(static_cast<int>(std::lround(filled * 8)), row == 0 ? 1 : 0, 8)];
    }
    out += "\n";
  }
  return out;
}

JobView::JobView(bool json) : json_(json), is_terminal_(!json && isatty(STDOUT_FILENO) != 0) {}

void JobView::show(const JobStatus& status, const std::vector<CurvePoint>& points) {
  status_ = status;
  for (const CurvePoint& point : points) {
    if (!points_.empty() && points_.back().step == point.step) points_.pop_back();
    points_.push_back(point);
  }
  if (json_) {
    nlohmann::json line{{"job", to_json(status)}, {"points", nlohmann::json::array()}};
    for (const CurvePoint& point : points) line["points"].push_back(to_json(point));
    std::cout << line.dump() << std::endl;
  } else if (is_terminal_) {
    draw_line();
  }
}

void JobView::draw_line() {
  // Back to the start, the new text, and away with what is left of the old.
  std::cout << "\r" << line_text(status_) << "\x1b[K" << std::flush;
  has_line_ = true;
}

void JobView::finish() {
  if (json_) return;
  if (has_line_) std::cout << "\n";
  std::vector<double> losses;
  for (const CurvePoint& point : points_) losses.push_back(point.loss);
  if (losses.size() > 1) std::cout << "loss\n" << plot(losses, kPlotWidth, kPlotHeight);
  std::cout << job_report(status_) << std::flush;
}

}  // namespace tensord::server
