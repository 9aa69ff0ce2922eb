#include "server/metrics/training_collector.h"

#include "core/base/mutex.h"
#include "server/metrics/metric_families.h"

namespace tensord::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

struct TrainingSeries {
  const char* name;
  const char* help;
  double TrainingSample::*value;
  MetricType type = MetricType::Gauge;
};

constexpr TrainingSeries kTrainingSeries[] = {
    {"tensord_training_steps_total", "Updates of the weights", &TrainingSample::step, MetricType::Counter},
    {"tensord_training_planned_steps_total",
     "Steps that were planned, not interpreted, since the job was started or went on", &TrainingSample::planned_steps,
     MetricType::Counter},
    {"tensord_training_samples_total", "Samples trained on", &TrainingSample::samples, MetricType::Counter},
    {"tensord_training_wanted_steps", "Steps the job is to make; 0 when not known", &TrainingSample::total_steps},
    {"tensord_training_epoch", "Passes over the data", &TrainingSample::epoch},
    {"tensord_training_loss", "Mean loss of the last steps", &TrainingSample::loss},
    {"tensord_training_learning_rate", "Learning rate of the first group", &TrainingSample::learning_rate},
    {"tensord_training_gradient_norm", "Norm of all gradients, before clipping", &TrainingSample::gradient_norm},
    {"tensord_training_samples_per_second", "Speed now", &TrainingSample::samples_per_second},
    {"tensord_training_seconds_left", "Time the job still takes; below 0 when not known",
     &TrainingSample::seconds_left},
    {"tensord_training_memory_bytes", "Bytes of the job's tensors", &TrainingSample::memory_bytes},
    {"tensord_training_checkpoint_step", "Step of the newest checkpoint", &TrainingSample::checkpoint_step},
    {"tensord_training_restarts_total", "Starts of all ranks after one of them was lost", &TrainingSample::restarts,
     MetricType::Counter},
};
constexpr const char* kStates[] = {"QUEUED", "RUNNING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED"};

ClientMetric& sample_metric(MetricFamily& to, const TrainingSample& sample, double value) {
  ClientMetric& metric = to.metric.emplace_back();
  metric.label = {{"job_id", sample.job}, {"model", sample.model}};
  (to.type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  return metric;
}

}  // namespace

void TrainingCollector::watch(std::function<std::vector<TrainingSample>()> samples) {
  const MutexLock lock(mutex_);
  samples_ = std::move(samples);
}

std::vector<MetricFamily> TrainingCollector::Collect() const {
  std::vector<TrainingSample> samples;
  {
    const MutexLock lock(mutex_);
    if (!samples_) return {};
    samples = samples_();
  }
  std::vector<MetricFamily> families;
  for (const TrainingSeries& series : kTrainingSeries) {
    MetricFamily& of_series = families.emplace_back(make_family(series.name, series.help, series.type));
    for (const TrainingSample& sample : samples) sample_metric(of_series, sample, sample.*series.value);
  }
  MetricFamily states =
      make_family("tensord_training_job_state", "1 for the state that a job is in", MetricType::Gauge);
  MetricFamily metrics = make_family("tensord_training_metric", "Metrics of the last evaluation", MetricType::Gauge);
  for (const TrainingSample& sample : samples) {
    for (const char* state : kStates) {
      sample_metric(states, sample, sample.state == state ? 1 : 0).label.push_back({"state", state});
    }
    for (const auto& [name, value] : sample.metrics)
      sample_metric(metrics, sample, value).label.push_back({"metric", name});
  }
  families.push_back(std::move(states));
  families.push_back(std::move(metrics));
  MetricFamily steps =
      make_family("tensord_training_rank_step", "Steps of a rank of a job with several", MetricType::Gauge);
  MetricFamily waits =
      make_family("tensord_training_rank_communication_seconds_total",
                  "Time in which a rank only waited for others, since it was started", MetricType::Counter);
  for (const TrainingSample& sample : samples) {
    for (const TrainingSample::Rank& rank : sample.ranks) {
      const auto labeled = [&rank](ClientMetric& metric) {
        metric.label.push_back({"rank", std::to_string(rank.rank)});
        metric.label.push_back({"host", rank.host});
      };
      labeled(sample_metric(steps, sample, rank.step));
      labeled(sample_metric(waits, sample, rank.communication_seconds));
    }
  }
  families.push_back(std::move(steps));
  families.push_back(std::move(waits));
  return families;
}

}  // namespace tensord::server
