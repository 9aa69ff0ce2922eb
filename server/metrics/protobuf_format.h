#pragma once

#include <prometheus/metric_family.h>

#include <map>
#include <string>
#include <vector>

#include "server/metrics/duration_intervals.h"

namespace tensord::server {

// Native histograms by family name, one for each of the family's metrics, in the same order.
using NativeHistograms = std::map<std::string, std::vector<NativeCounts>>;

inline constexpr const char* kProtobufContentType =
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";

// Whether this Accept header accepts Prometheus's protobuf format. Prometheus sends it when it wants native histograms.
bool accepts_protobuf(const std::string& accept);

// The metrics in Prometheus's protobuf format: length-prefixed io.prometheus.client.MetricFamily messages. It is the
// only format with native histograms. Supports counters, gauges and histograms.
std::string to_protobuf(const std::vector<prometheus::MetricFamily>& families, const NativeHistograms& native);

}  // namespace tensord::server
