#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <string_view>
#include <vector>

namespace tensord::server {

inline constexpr const char* kOpenMetricsContentType = "application/openmetrics-text; version=1.0.0; charset=utf-8";

// Whether a client that sends this Accept header would rather have the form below than Prometheus's plain text.
bool prefers_openmetrics(std::string_view accept);

// The text form of OpenMetrics 1.0. Counters whose names do not end with _total, which it does not have, are of type
// unknown, under the names that they have in the other forms.
std::string to_openmetrics(const std::vector<prometheus::MetricFamily>& families);

}  // namespace tensord::server
