#include "server/commands/client/job_view.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "server/commands/client/json_line.h"
#include "server/commands/client/table.h"
#include "server/training/jobs/job_json.h"
#include "server/training/jobs/job_origin.h"
#include "server/transport/calls/training_messages.h"

namespace tensord::server {
namespace {

constexpr int kPlotWidth = 64;
constexpr int kPlotHeight = 10;

std::string steps_text(const JobProgress& progress) {
  return progress.total_steps > 0 ? concat(progress.step, "/", progress.total_steps) : concat(progress.step);
}

std::string text_of(const std::map<std::string, double>& metrics) {
  std::string out;
  for (const auto& [name, value] : metrics) out += concat(out.empty() ? "" : " ", name, " ", number_text(value));
  return out;
}

std::string metrics_text(const JobProgress& progress) {
  return progress.metrics.empty() ? "" : "  evaluated: " + text_of(progress.metrics);
}

std::string best_text(const JobProgress& progress) {
  return concat("step ", progress.best_step, ": ",
                progress.best_metrics.empty() ? number_text(progress.best_metric) : text_of(progress.best_metrics));
}

std::string line_text(const JobStatus& status) {
  const JobProgress& progress = status.progress;
  const double part =
      progress.total_steps > 0 ? static_cast<double>(progress.step) / static_cast<double>(progress.total_steps) : 0;
  std::string out = progress.total_steps > 0 ? bar_text(part) + " " : std::string();
  out += concat(steps_text(progress), "  loss ", number_text(progress.loss), "  lr ",
                number_text(progress.learning_rate, 3), "  ", number_text(progress.samples_per_second, 3), "/s");
  if (progress.total_steps > 0) out += "  " + duration_text(progress.seconds_left) + " left";
  out += metrics_text(progress);
  if (status.state != JobState::kRunning) out += concat("  ", to_string(status.state));
  return out;
}

}  // namespace

std::string job_line(const JobStatus& status) {
  return printable_lines(
      concat(status.id, "  ", to_string(status.state), "  step ", steps_text(status.progress), "  loss ",
             number_text(status.progress.loss), metrics_text(status.progress),
             status.published_version > 0 ? concat("  published ", status.published_version) : std::string(),
             status.message.empty() ? std::string() : "  (" + status.message + ")"));
}

std::string job_report(const JobStatus& status) {
  const JobProgress& progress = status.progress;
  std::string out = concat("job         ", status.id, "\nstate       ", to_string(status.state), "\n");
  if (!status.message.empty()) out += concat("message     ", status.message, "\n");
  out += concat("model       ", status.spec.model.name.empty() ? status.spec.model.upload_id : status.spec.model.name,
                status.base_version > 0 ? concat(" version ", status.base_version) : std::string(), "\n");
  if (!status.spec.tags.empty()) {
    std::string tags;
    for (const auto& [name, value] : status.spec.tags) tags += concat(tags.empty() ? "" : ", ", name, "=", value);
    out += concat("tags        ", tags, "\n");
  }
  out += concat("step        ", steps_text(progress), ", epoch ", number_text(progress.epoch), "\n");
  out += concat("loss        ", number_text(progress.loss), metrics_text(progress), "\n");
  out += concat("rate        ", number_text(progress.learning_rate), ", gradient norm ",
                number_text(progress.gradient_norm), "\n");
  out += concat("speed       ", number_text(progress.samples_per_second), " samples/s, ",
                duration_text(progress.seconds_left), " left\n");
  out += concat("memory      ", bytes_text(static_cast<double>(progress.memory_bytes)), ", at most ",
                bytes_text(static_cast<double>(progress.peak_memory_bytes)), "\n");
  for (const RankProgress& rank : progress.ranks) {
    out += concat("rank ", rank.rank, rank.rank < 10 ? "      " : "     ", rank.host, rank.host.empty() ? "" : ", ",
                  "pid ", rank.pid, ", step ", rank.step, ", ", number_text(rank.communication_seconds, 3),
                  " s waited for others\n");
  }
  if (progress.loss_scale > 0)
    out += concat("loss scale  ", progress.loss_scale, ", ", progress.skipped_steps, " steps skipped\n");
  if (progress.restarts > 0) out += concat("restarts    ", progress.restarts, " of all ranks\n");
  if (progress.checkpoint_step > 0) out += concat("checkpoint  step ", progress.checkpoint_step, "\n");
  if (progress.best_step > 0) out += concat("best        ", best_text(progress), "\n");
  if (status.published_version > 0) {
    out += concat("published   version ", status.published_version, ", the weights of step ", published_step(status),
                  "\n");
  }
  return printable_lines(out);
}

std::string plot(const std::vector<double>& values, int width, int height) {
  std::vector<double> columns;
  const size_t count = std::min(values.size(), static_cast<size_t>(width));
  for (size_t i = 0; i < count; ++i) {
    // Mean of the values that fall into this column.
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

JobStatus watch_job(client::TrainingClient& training, const std::string& id, bool json,
                    const client::CallOptions& options) {
  JobView view(json);
  const auto show = [&](const auto& job, const auto& added) {
    std::vector<CurvePoint> points;
    for (const auto& point : added) points.push_back(to_curve_point(point));
    view.show(to_job_status(job), points);
    return true;
  };
  training.watch(id, show, /*after_step=*/0, options);
  view.finish();
  return view.status();
}

void print_jobs(std::ostream& out, const std::vector<JobStatus>& jobs) {
  Table table({"ID", "NAME", "MODEL", "STATE", "STEP", "LOSS", "EVALUATED", "PUBLISHED", "MESSAGE"});
  for (const JobStatus& job : jobs) {
    table.add({job.id, job.spec.name, job.spec.model.name, to_string(job.state), steps_text(job.progress),
               number_text(job.progress.loss), text_of(job.progress.metrics),
               job.published_version > 0 ? concat(job.published_version) : std::string(), job.message});
  }
  table.print(out);
}

JobView::JobView(bool json) : json_(json), line_(!json) {}

void JobView::show(const JobStatus& status, const std::vector<CurvePoint>& points) {
  status_ = status;
  for (const CurvePoint& point : points) {
    if (!points_.empty() && points_.back().step == point.step) points_.pop_back();
    points_.push_back(point);
  }
  if (json_) {
    nlohmann::json line{{"job", to_json(status)}, {"points", nlohmann::json::array()}};
    for (const CurvePoint& point : points) line["points"].push_back(to_json(point));
    print_json_line(line);
  } else {
    line_.show(line_text(status_));
  }
}

void JobView::finish() {
  if (json_) return;
  line_.keep();
  std::vector<double> losses;
  for (const CurvePoint& point : points_) losses.push_back(point.loss);
  if (losses.size() > 1) std::cout << "loss\n" << plot(losses, kPlotWidth, kPlotHeight);
  std::cout << job_report(status_) << std::flush;
}

}  // namespace tensord::server
