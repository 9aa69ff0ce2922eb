#pragma once

#include <prometheus/metric_family.h>

#include <map>
#include <string>
#include <vector>

#include "server/metrics/duration_intervals.h"

namespace tensord::server {

// Native histograms of some families, by the family's name: one for each of its metrics, in their order.
using NativeHistograms = std::map<std::string, std::vector<NativeCounts>>;

inline constexpr const char* kProtobufContentType =
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";

// Whether a client that sends this Accept header reads the form below. Prometheus does when it wants native histograms.
bool accepts_protobuf(const std::string& accept);

// Prometheus's protobuf form: each family as a message of io.prometheus.client.MetricFamily after its length. The only
// form that has native histograms. Counters, gauges and histograms only.
std::string to_protobuf(const std::vector<prometheus::MetricFamily>& families, const NativeHistograms& native);

}  // namespace tensord::server
