#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "server/metrics/model_counts.h"
#include "server/metrics/protobuf_format.h"

namespace tensord::server {

// The families of what was counted of models, under tensord's names.
std::vector<prometheus::MetricFamily> model_families(const std::vector<ModelCounts>& models);

// The histograms among them in their native form.
NativeHistograms model_native_histograms(const std::vector<ModelCounts>& models);

// The same under the names that Triton uses, for dashboards made for it.
std::vector<prometheus::MetricFamily> triton_families(const std::vector<ModelCounts>& models);

}  // namespace tensord::server
