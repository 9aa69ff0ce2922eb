#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "server/metrics/model_counts.h"
#include "server/metrics/protobuf_format.h"

namespace tensord::server {

// Metric families of the models' counters under tensord's names.
std::vector<prometheus::MetricFamily> model_families(const std::vector<ModelCounts>& models);

// The histograms among them, in native form.
NativeHistograms model_native_histograms(const std::vector<ModelCounts>& models);

// The same counters under Triton's names, for dashboards made for Triton.
std::vector<prometheus::MetricFamily> triton_families(const std::vector<ModelCounts>& models);

}  // namespace tensord::server
