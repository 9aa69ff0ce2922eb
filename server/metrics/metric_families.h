#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <utility>
#include <vector>

namespace tensord::server {

// Helpers that build prometheus-cpp's plain structs for collectors.
inline prometheus::MetricFamily make_family(const char* name, const char* help, prometheus::MetricType type) {
  prometheus::MetricFamily out;
  out.name = name;
  out.help = help;
  out.type = type;
  return out;
}

// Adds a sample to a family of counters or gauges.
inline prometheus::ClientMetric& add_sample(prometheus::MetricFamily& to,
                                            std::vector<prometheus::ClientMetric::Label> labels, double value) {
  prometheus::ClientMetric& metric = to.metric.emplace_back();
  metric.label = std::move(labels);
  (to.type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  return metric;
}

}  // namespace tensord::server
