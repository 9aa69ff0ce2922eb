#include "server/executor/model/generation_options.h"

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

struct Rule {
  ModelParameter about;
  void (*read)(const std::string& key, const std::string& value, GenerationOptions& out);
};

constexpr Rule kRules[] = {
    {{"generation_input",
      "with iterative_sequence: the input that gets generation_output of the previous step instead of the request's (a "
      "decoder's tokens); without it every step gets the request's inputs"},
     [](const auto&, const auto& value, auto& out) { out.feedback_input = value; }},
    {{"generation_output", "the output that is fed back; the response has the outputs of all steps in one row"},
     [](const auto&, const auto& value, auto& out) { out.feedback_output = value; }},
    {{"generation_end_output", "an output that is nonzero for rows that are complete"},
     [](const auto&, const auto& value, auto& out) { out.end_output = value; }},
    {{"generation_end_token", "a value of generation_output that completes a row"},
     [](const auto& key, const auto& value, auto& out) { out.end_token = parse_number(key, value, INT64_MIN); }},
    {{"generation_max_steps",
      "maximum of steps of a request; default 256; the request's parameter max_tokens may lower it"},
     [](const auto& key, const auto& value, auto& out) { out.max_steps = parse_number(key, value, 1); }},
    {{"generation_length_input",
      "an INT64 input of shape [rows, 1] that gets the number of used positions of a row, including this step's; with "
      "it rows of different lengths share a batch, padded with zeros at the front"},
     [](const auto&, const auto& value, auto& out) { out.length_input = value; }},
};

void read(const std::string& key, const std::string& value, GenerationOptions& out) {
  check(!value.empty(), "parameter ", key, " is empty");
  for (const Rule& rule : kRules) {
    if (rule.about.key == key) return rule.read(key, value, out);
  }
  fail(ErrorCode::kInvalidArgument, "parameter ", key, " is not known");
}

}  // namespace

GenerationOptions generation_options(const ModelConfig& config) {
  GenerationOptions out;
  const bool is_iterative = config.sequence_batching && config.sequence_batching->is_iterative;
  for (const auto& [key, value] : config.parameters) {
    if (key.rfind(kPrefix, 0) != 0) continue;
    check(is_iterative, "parameter ", key, " needs sequence_batching.iterative_sequence");
    read(key, value, out);
  }
  check(out.feedback_input.empty() == out.feedback_output.empty(),
        "parameters generation_input and generation_output need each other");
  check(!out.end_token || !out.feedback_output.empty(), "parameter generation_end_token needs generation_output");
  check(out.length_input.empty() || !out.feedback_input.empty(),
        "parameter generation_length_input needs generation_input");
  return out;
}

std::vector<ModelParameter> generation_parameters() {
  std::vector<ModelParameter> out;
  for (const Rule& rule : kRules) out.push_back(rule.about);
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
