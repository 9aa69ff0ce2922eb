#include "server/metrics/protobuf_format.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "core/base/error.h"

namespace tensord::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// Writes the fields of one protobuf message. These messages are few, flat and never read back.
class MessageWriter {
 public:
  void add_varint(int field, uint64_t value) {
    varint(static_cast<uint64_t>(field) << 3);
    varint(value);
  }
  void add_signed(int field, int64_t value) { add_varint(field, zigzag(value)); }
  void add_double(int field, double value) {
    varint(static_cast<uint64_t>(field) << 3 | 1);
    const auto bits = std::bit_cast<uint64_t>(value);
    for (int i = 0; i < 8; ++i) out_ += static_cast<char>(bits >> (8 * i) & 0xff);
  }
  void add_bytes(int field, std::string_view value) {
    varint(static_cast<uint64_t>(field) << 3 | 2);
    varint(value.size());
    out_ += value;
  }
  void add_packed(int field, const std::vector<int64_t>& values) {
    MessageWriter packed;
    for (const int64_t value : values) packed.varint(zigzag(value));
    add_bytes(field, packed.out_);
  }
  void add_message(int field, const MessageWriter& message) { add_bytes(field, message.out_); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }
  const std::string& text() const { return out_; }

 private:
  static uint64_t zigzag(int64_t value) {
    return static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
  }
  std::string out_;
};

// Writes the fields that make a Histogram of io.prometheus.client native: spans of non-empty buckets, and the
// difference of each bucket's count to the previous one's.
void add_native(MessageWriter& to, const NativeCounts& native) {
  to.add_signed(5, kNativeSchema);
  to.add_double(6, std::exp2(static_cast<double>(kFirstNativeIndex - 1) / (1 << kNativeSchema)));
  to.add_varint(7, native.zero_count);
  std::vector<int64_t> deltas;
  int64_t previous = 0;
  int next_index = 0;  // the bucket after the previous span
  for (size_t i = 0; i < native.buckets.size();) {
    if (native.buckets[i] == 0) {
      ++i;
      continue;
    }
    const int index = kFirstNativeIndex + static_cast<int>(i);
    uint64_t length = 0;
    for (; i < native.buckets.size() && native.buckets[i] != 0; ++i, ++length) {
      const auto count = static_cast<int64_t>(native.buckets[i]);
      deltas.push_back(count - previous);
      previous = count;
    }
    MessageWriter span;
    span.add_signed(1, index - next_index);
    span.add_varint(2, length);
    to.add_message(12, span);
    next_index = index + static_cast<int>(length);
  }
  if (!deltas.empty()) to.add_packed(13, deltas);
}

MessageWriter histogram_message(const ClientMetric::Histogram& histogram, const NativeCounts* native) {
  MessageWriter out;
  out.add_varint(1, histogram.sample_count);
  out.add_double(2, histogram.sample_sum);
  for (const auto& bucket : histogram.bucket) {
    MessageWriter message;
    message.add_varint(1, bucket.cumulative_count);
    message.add_double(2, bucket.upper_bound);
    out.add_message(3, message);
  }
  if (native) add_native(out, *native);
  return out;
}

int type_number(MetricType type) {
  switch (type) {
    case MetricType::Counter: return 0;
    case MetricType::Gauge: return 1;
    case MetricType::Histogram: return 4;
    default: fail(ErrorCode::kInternal, "metrics of this type have no protobuf form here");
  }
}

MessageWriter metric_message(const ClientMetric& metric, MetricType type, const NativeCounts* native) {
  MessageWriter out;
  for (const auto& label : metric.label) {
    MessageWriter pair;
    pair.add_bytes(1, label.name);
    pair.add_bytes(2, label.value);
    out.add_message(1, pair);
  }
  MessageWriter value;
  if (type == MetricType::Histogram) {
    out.add_message(7, histogram_message(metric.histogram, native));
  } else if (type == MetricType::Gauge) {
    value.add_double(1, metric.gauge.value);
    out.add_message(2, value);
  } else {
    value.add_double(1, metric.counter.value);
    out.add_message(3, value);
  }
  return out;
}

}  // namespace

bool accepts_protobuf(const std::string& accept) {
  return accept.find("application/vnd.google.protobuf") != std::string::npos &&
         accept.find("io.prometheus.client.MetricFamily") != std::string::npos &&
         accept.find("encoding=delimited") != std::string::npos;
}

std::string to_protobuf(const std::vector<MetricFamily>& families, const NativeHistograms& native) {
  MessageWriter out;
  std::string text;
  for (const MetricFamily& family : families) {
    const auto found = native.find(family.name);
    MessageWriter message;
    message.add_bytes(1, family.name);
    message.add_bytes(2, family.help);
    message.add_varint(3, static_cast<uint64_t>(type_number(family.type)));
    for (size_t i = 0; i < family.metric.size(); ++i) {
      const NativeCounts* of_metric = found != native.end() && i < found->second.size() ? &found->second[i] : nullptr;
      message.add_message(4, metric_message(family.metric[i], family.type, of_metric));
    }
    out.varint(message.text().size());
    text += out.text() + message.text();
    out = {};
  }
  return text;
}

}  // namespace tensord::server
