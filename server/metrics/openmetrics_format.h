#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <string_view>
#include <vector>

namespace tensord::server {

inline constexpr const char* kOpenMetricsContentType = "application/openmetrics-text; version=1.0.0; charset=utf-8";

// Whether this Accept header prefers OpenMetrics to Prometheus's text format.
bool prefers_openmetrics(std::string_view accept);

// The metrics in the OpenMetrics 1.0 text format. OpenMetrics requires counters to end in _total; those that do not are
// of type unknown, under the same names as in the other formats.
std::string to_openmetrics(const std::vector<prometheus::MetricFamily>& families);

}  // namespace tensord::server
