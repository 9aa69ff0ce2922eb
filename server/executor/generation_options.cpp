#include "server/executor/generation_options.h"

#include <charconv>

#include "core/base/error.h"

namespace tensord::server {
namespace {

constexpr const char* kPrefix = "generation_";

int64_t parse_number(const std::string& key, const std::string& text, int64_t smallest) {
  int64_t out = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, out);
  check(error == std::errc() && at == end && out >= smallest, "parameter ", key, " must be a whole number of at least ",
        smallest, ", got '", text, "'");
  return out;
}

void apply(const std::string& key, const std::string& value, GenerationOptions& out) {
  check(!value.empty(), "parameter ", key, " is empty");
  if (key == "generation_input") {
    out.feedback_input = value;
  } else if (key == "generation_output") {
    out.feedback_output = value;
  } else if (key == "generation_end_output") {
    out.end_output = value;
  } else if (key == "generation_end_token") {
    out.end_token = parse_number(key, value, INT64_MIN);
  } else if (key == "generation_max_steps") {
    out.max_steps = parse_number(key, value, 1);
  } else if (key == "generation_length_input") {
    out.length_input = value;
  } else {
    fail(ErrorCode::kInvalidArgument, "parameter ", key, " is not known");
  }
}

}  // namespace

GenerationOptions generation_options(const ModelConfig& config) {
  GenerationOptions out;
  const bool is_iterative = config.sequence_batching && config.sequence_batching->is_iterative;
  for (const auto& [key, value] : config.parameters) {
    if (key.rfind(kPrefix, 0) != 0) continue;
    check(is_iterative, "parameter ", key, " needs sequence_batching.iterative_sequence");
    apply(key, value, out);
  }
  check(out.feedback_input.empty() == out.feedback_output.empty(),
        "parameters generation_input and generation_output need each other");
  check(!out.end_token || !out.feedback_output.empty(), "parameter generation_end_token needs generation_output");
  check(out.length_input.empty() || !out.feedback_input.empty(),
        "parameter generation_length_input needs generation_input");
  return out;
}

std::string unused_settings(const SequenceBatchingConfig& config) {
  const SequenceBatchingConfig defaults;
  std::string names;
  const auto add = [&](bool is_set, const char* name) {
    if (is_set) names += concat(names.empty() ? "" : ", ", name);
  };
  add(config.max_sequence_idle_us != defaults.max_sequence_idle_us, "max_sequence_idle_microseconds");
  add(config.direct_max_queue_delay_us != 0, "direct.max_queue_delay_microseconds");
  add(config.direct_minimum_slot_utilization != 0, "direct.minimum_slot_utilization");
  add(!config.oldest_preferred_batch_sizes.empty(), "oldest.preferred_batch_size");
  add(config.oldest_max_queue_delay_us != 0, "oldest.max_queue_delay_microseconds");
  add(config.oldest_preserves_ordering, "oldest.preserve_ordering");
  return names;
}

}  // namespace tensord::server
