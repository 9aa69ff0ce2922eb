// Parses the `parameters` of config.pbtxt that apply to every model.
#include <algorithm>
#include <charconv>
#include <sstream>

#include "core/base/ascii.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "server/config/pbtxt/model_config_reader.h"
#include "server/config/pbtxt/model_config_text.h"

namespace tensord::server {
namespace {

constexpr int kMaxPlans = 65536;
constexpr int kMaxThreads = 1024;
constexpr size_t kMaxBuckets = 1024;

// Parameters of Triton's PyTorch backend that have no meaning in tensord.
constexpr const char* kUnusedParameters[] = {
    "DISABLE_CUDNN",         "ENABLE_CACHE_CLEANING", "ENABLE_JIT_EXECUTOR",
    "ENABLE_JIT_PROFILING",  "ENABLE_NVFUSER",        "ENABLE_TENSOR_FUSER",
    "ENABLE_WEIGHT_SHARING", "INTER_OP_THREAD_COUNT", "FORCE_CPU_ONLY_INPUT_TENSORS"};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) {
    const size_t begin = part.find_first_not_of(' ');
    if (begin != std::string::npos) parts.push_back(part.substr(begin, part.find_last_not_of(' ') - begin + 1));
  }
  return parts;
}

template <class Number>
bool is_number(const std::string& text, Number& number) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end;
}

class ParameterReader {
 public:
  struct Rule {
    ModelParameter about;
    void (ParameterReader::*read)(const std::string& key, const std::string& value) const;
  };
  static const std::vector<Rule>& rules();

  ParameterReader(const std::string& origin, ModelConfig& out) : origin_(origin), out_(out) {}

  void read(const std::string& key, const std::string& value) const {
    for (const Rule& rule : rules()) {
      if (rule.about.key == key) return (this->*rule.read)(key, value);
    }
    if (std::find(std::begin(kUnusedParameters), std::end(kUnusedParameters), key) != std::end(kUnusedParameters)) {
      log(LogLevel::kInfo, "config parameter not used", {{"file", origin_}, {"parameter", key}});
    }
  }

 private:
  void read_precision(const std::string& key, const std::string& value) const {
    out_.engine.precision = one_of(key, value, {"f32", "tf32", "bf16", "int8", kAutoPrecision});
  }

  void read_tolerance(const std::string& key, const std::string& value) const {
    double tolerance = 0;
    check(is_number(value, tolerance) && tolerance > 0 && tolerance <= 1, origin_, ": parameters '", key,
          "' must be above 0, up to 1, got '", value, "'");
    out_.engine.precision_tolerance = tolerance;
  }

  void read_plans(const std::string& key, const std::string& value) const {
    out_.engine.plan_cache_size = number(key, value, kMaxPlans);
  }

  void read_threads(const std::string& key, const std::string& value) const {
    out_.threads = number(key, value, kMaxThreads);
  }

  void read_seed(const std::string& key, const std::string& value) const {
    uint64_t seed = 0;
    check(is_number(value, seed), origin_, ": parameters '", key, "' must be a number of 64 bits, got '", value, "'");
    out_.seed = seed;
  }

  void read_disabled(const std::string& /*key*/, const std::string& value) const {
    out_.engine.disabled_passes = split(value);
  }

  void read_limits(const std::string& /*key*/, const std::string& value) const {
    out_.engine.pass_limits = split(value);
  }

  void read_optimized(const std::string& key, const std::string& value) const {
    out_.engine.optimize = one_of(key, value, {"true", "false"}) == "false";
  }

  void read_warmup(const std::string& /*key*/, const std::string& value) const {
    for (const std::string& file : split(value)) {
      out_.warmups.emplace_back();
      out_.warmups.back().name = file;
      out_.warmups.back().recorded_file = file;
    }
  }

  void read_padding(const std::string& key, const std::string& value) const {
    check(is_number(value, out_.ragged.padding_value), origin_, ": parameters '", key, "' must be a number, got '",
          value, "'");
  }

  void read_buckets(const std::string& key, const std::string& value) const {
    const std::vector<std::string> parts = split(value);
    check(!parts.empty() && parts.size() <= kMaxBuckets, origin_, ": parameters '", key, "' must have 1 to ",
          kMaxBuckets, " sizes, got ", parts.size());
    for (const std::string& part : parts) {
      int64_t size = 0;
      check(is_number(part, size) && size > 0, origin_, ": parameters '", key, "' must be positive sizes, got '", part,
            "'");
      out_.ragged.buckets.push_back(size);
    }
    std::sort(out_.ragged.buckets.begin(), out_.ragged.buckets.end());
  }

  // A numeric label would be ambiguous with a version.
  void read_labels(const std::string& key, const std::string& value) const {
    for (const std::string& part : split(value)) {
      const size_t mark = part.find('=');
      const std::string label = part.substr(0, mark);
      const std::string version = mark == std::string::npos ? "" : part.substr(mark + 1);
      int64_t number = 0;
      check(!label.empty() && !is_ascii_digit(label[0]) && is_number(version, number) && number > 0, origin_,
            ": parameters '", key, "' must be as \"stable=2,canary=3\", got '", part, "'");
      check(out_.version_labels.emplace(label, version).second, origin_, ": parameters '", key, "' has label '", label,
            "' twice");
    }
  }

  std::string one_of(const std::string& key, const std::string& value, std::vector<std::string> choices) const {
    std::string list;
    for (size_t i = 0; i < choices.size(); ++i) {
      if (choices[i] == value) return value;
      list += concat(i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ", choices[i]);
    }
    fail(ErrorCode::kInvalidArgument, origin_, ": parameters '", key, "' must be ", list, ", got '", value, "'");
  }

  int number(const std::string& key, const std::string& value, int max) const {
    int number = -1;
    check(is_number(value, number) && number >= 0 && number <= max, origin_, ": parameters '", key, "' must be 0 to ",
          max, ", got '", value, "'");
    return number;
  }

  const std::string& origin_;
  ModelConfig& out_;
};

const std::vector<ParameterReader::Rule>& ParameterReader::rules() {
  static const std::vector<Rule> rules{
      {{"precision",
        "f32, bf16, int8 or auto: type of the weights in large matrix products; tf32: f32, rounded to TF32 on a GPU",
        "--precision"},
       &ParameterReader::read_precision},
      {{"precision_tolerance",
        "the largest difference from f32 that auto takes, of an output's largest value; default 0.02"},
       &ParameterReader::read_tolerance},
      {{"plan_cache_size", "input shapes whose plans are kept; 0: interpret every run", "--plan-cache-size"},
       &ParameterReader::read_plans},
      {{"INTRA_OP_THREAD_COUNT", "threads of a worker; 0 divides the cores by the workers", "--threads"},
       &ParameterReader::read_threads},
      {{"seed", "random seed of each version, as for torch.manual_seed; default: random"}, &ParameterReader::read_seed},
      {{"jit_disable", "optimizer passes to disable, separated by commas", "--jit-disable"},
       &ParameterReader::read_disabled},
      {{"jit_limit", "PASS:N: at most N changes by this pass; several separated by commas", "--jit-limit"},
       &ParameterReader::read_limits},
      {{"DISABLE_OPTIMIZED_EXECUTION", "true runs no pass of the optimizer"}, &ParameterReader::read_optimized},
      {{"warmup_requests", "files of captured requests in the model's folder warmup, run before the model is ready"},
       &ParameterReader::read_warmup},
      {{"version_labels", "labels by which requests may select versions: stable=2,canary=3"},
       &ParameterReader::read_labels},
      {{"ragged_padding", "padding value of inputs with allow_ragged_batch; default 0"},
       &ParameterReader::read_padding},
      {{"ragged_buckets", "sizes to which they are padded, such as 64,128,256; default: the largest in the batch"},
       &ParameterReader::read_buckets},
  };
  return rules;
}

}  // namespace

std::vector<ModelParameter> model_parameters() {
  std::vector<ModelParameter> out;
  for (const auto& rule : ParameterReader::rules()) out.push_back(rule.about);
  return out;
}

void read_parameters(const std::string& origin, ModelConfig& out) {
  const ParameterReader reader(origin, out);
  for (const auto& [name, value] : out.parameters) reader.read(name, value);
}

}  // namespace tensord::server
