#include "server/metrics/openmetrics_format.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

namespace tensord::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

constexpr std::string_view kTotal = "_total";

std::string_view without_spaces(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// The largest q-value that the header gives the type; 0 if it does not list it.
double accepted(std::string_view accept, std::string_view type) {
  double best = 0;
  while (!accept.empty()) {
    const size_t comma = accept.find(',');
    std::string_view part = without_spaces(accept.substr(0, comma));
    accept.remove_prefix(comma == std::string_view::npos ? accept.size() : comma + 1);
    if (without_spaces(part.substr(0, part.find(';'))) != type) continue;
    double quality = 1;
    const size_t mark = part.find("q=");
    if (mark != std::string_view::npos) std::from_chars(part.data() + mark + 2, part.data() + part.size(), quality);
    best = std::max(best, quality);
  }
  return best;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Inf" : "+Inf";
  // Formats as Prometheus's text format does, because the value also appears in labels.
  char text[40];
  const int size = std::snprintf(text, sizeof(text), "%.*g", std::numeric_limits<double>::max_digits10 - 1, value);
  return {text, static_cast<size_t>(size)};
}

// Writes the samples of one family.
class FamilyText {
 public:
  FamilyText(const MetricFamily& family, std::string& out) : family_(family), out_(out) {}

  void write() {
    const bool is_total = family_.name.ends_with(kTotal);
    const bool is_counter = family_.type == MetricType::Counter && is_total;
    const std::string name = is_counter ? family_.name.substr(0, family_.name.size() - kTotal.size()) : family_.name;
    out_ += "# TYPE " + name + " " + type_name(is_counter) + "\n";
    if (!family_.help.empty()) out_ += "# HELP " + name + " " + escaped(family_.help) + "\n";
    for (const ClientMetric& metric : family_.metric) write_metric(metric);
  }

 private:
  const char* type_name(bool is_counter) const {
    switch (family_.type) {
      case MetricType::Counter: return is_counter ? "counter" : "unknown";
      case MetricType::Gauge: return "gauge";
      case MetricType::Histogram: return "histogram";
      case MetricType::Summary: return "summary";
      default: return "unknown";
    }
  }

  void sample(const char* suffix, const ClientMetric& metric, double value, const char* label = nullptr,
              double bound = 0) {
    std::string labels;
    const auto add = [&](std::string_view name, std::string_view text) {
      labels += (labels.empty() ? "" : ",");
      (labels += name) += "=\"" + escaped(text) + "\"";
    };
    for (const auto& each : metric.label) add(each.name, each.value);
    if (label) add(label, number_text(bound));
    out_ += family_.name + suffix + (labels.empty() ? "" : "{" + labels + "}") + " " + number_text(value) + "\n";
  }

  void write_metric(const ClientMetric& metric) {
    switch (family_.type) {
      case MetricType::Counter: return sample("", metric, metric.counter.value);
      case MetricType::Gauge: return sample("", metric, metric.gauge.value);
      case MetricType::Histogram: {
        const auto& histogram = metric.histogram;
        bool has_last = false;
        for (const auto& bucket : histogram.bucket) {
          has_last = has_last || std::isinf(bucket.upper_bound);
          sample("_bucket", metric, static_cast<double>(bucket.cumulative_count), "le", bucket.upper_bound);
        }
        const auto count = static_cast<double>(histogram.sample_count);
        if (!has_last) sample("_bucket", metric, count, "le", std::numeric_limits<double>::infinity());
        sample("_count", metric, count);
        return sample("_sum", metric, histogram.sample_sum);
      }
      case MetricType::Summary:
        for (const auto& quantile : metric.summary.quantile) {
          sample("", metric, quantile.value, "quantile", quantile.quantile);
        }
        sample("_count", metric, static_cast<double>(metric.summary.sample_count));
        return sample("_sum", metric, metric.summary.sample_sum);
      default: return sample("", metric, metric.untyped.value);
    }
  }

  const MetricFamily& family_;
  std::string& out_;
};

}  // namespace

bool prefers_openmetrics(std::string_view accept) {
  const double wanted = accepted(accept, "application/openmetrics-text");
  return wanted > 0 && wanted >= accepted(accept, "text/plain");
}

std::string to_openmetrics(const std::vector<MetricFamily>& families) {
  std::string out;
  for (const MetricFamily& family : families) FamilyText(family, out).write();
  return out + "# EOF\n";
}

}  // namespace tensord::server
