#include "server/executor/model/precision_choice.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "core/base/cancellation.h"
#include "core/base/error.h"

namespace tensord::server {
namespace {

constexpr int kMaxRounds = 5;
constexpr int64_t kMaxMeasuringNs = 2'000'000'000;
constexpr double kLeastGain = 0.95;  // of the time in f32

// A loaded model with a session, and the requests that it is measured with.
class Candidate {
 public:
  Candidate(std::unique_ptr<Model> model, std::span<const WarmupRequest> requests, const Clock& clock)
      : model_(std::move(model)),
        session_(model_->make_session()),
        requests_(requests),
        clock_(clock),
        least_ns_(requests.size(), std::numeric_limits<double>::infinity()) {}

  // The outputs, those of all responses of a decoupled model.
  std::vector<InferTensor> run(size_t request) {
    check_work_cancelled();
    std::vector<const InferTensor*> inputs(model_->signature().inputs.size(), nullptr);
    const WarmupRequest& from = requests_[request];
    for (size_t i = 0; i < from.inputs.size(); ++i) inputs[from.input_indices[i]] = &from.inputs[i];
    const std::function<bool()> is_cancelled = is_work_cancelled;
    const int64_t start_ns = clock_.now_ns();
    RunResult result = session_->run(inputs, {.is_cancelled = is_cancelled});
    const auto ns = static_cast<double>(std::max<int64_t>(clock_.now_ns() - start_ns, 1));
    least_ns_[request] = std::min(least_ns_[request], ns);
    for (std::vector<InferTensor>& response : result.responses) {
      std::ranges::move(response, std::back_inserter(result.outputs));
    }
    return std::move(result.outputs);
  }
  // The runs so far were for plans and packed weights.
  void forget_times() { std::ranges::fill(least_ns_, std::numeric_limits<double>::infinity()); }
  // The geometric mean over the requests.
  double time_relative_to(const Candidate& other) const {
    double sum = 0;
    for (size_t i = 0; i < least_ns_.size(); ++i) sum += std::log(least_ns_[i] / other.least_ns_[i]);
    return std::exp(sum / static_cast<double>(least_ns_.size()));
  }
  std::unique_ptr<Model> take() {
    session_ = nullptr;
    return std::move(model_);
  }

 private:
  std::unique_ptr<Model> model_;
  std::unique_ptr<ModelSession> session_;
  std::span<const WarmupRequest> requests_;
  const Clock& clock_;
  std::vector<double> least_ns_;
};

bool is_float(const InferTensor& tensor) { return tensor.tensor.defined() && is_floating(tensor.tensor.dtype()); }

// Infinite where the two differ in anything but finite floats.
double float_difference(const Tensor& expected, const Tensor& got) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Tensor a = expected.to(DType::kFloat64).contiguous(), b = got.to(DType::kFloat64).contiguous();
  double largest = 0, difference = 0;
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double x = a.data<double>()[i], y = b.data<double>()[i];
    if (!std::isfinite(x) || !std::isfinite(y)) {
      if (x != y && !(std::isnan(x) && std::isnan(y))) return kInfinity;
      continue;
    }
    largest = std::max(largest, std::abs(x));
    difference = std::max(difference, std::abs(x - y));
  }
  return difference == 0 ? 0 : difference / largest;
}

double difference(const InferTensor& expected, const InferTensor& got) {
  const bool is_alike = expected.name == got.name && expected.datatype == got.datatype && expected.shape == got.shape &&
                        expected.strings == got.strings && expected.tensor.defined() == got.tensor.defined();
  if (!is_alike) return std::numeric_limits<double>::infinity();
  if (is_float(expected)) return float_difference(expected.tensor, got.tensor);
  if (!expected.tensor.defined()) return 0;
  const Tensor a = expected.tensor.contiguous(), b = got.tensor.contiguous();
  const bool is_equal =
      a.size_bytes() == b.size_bytes() && std::memcmp(a.raw_data(), b.raw_data(), a.size_bytes()) == 0;
  return is_equal ? 0 : std::numeric_limits<double>::infinity();
}

// The name of a float output that has no number but zeros: any precision would pass with it.
std::optional<std::string> find_silent_output(Candidate& f32, size_t requests) {
  for (size_t i = 0; i < requests; ++i) {
    for (const InferTensor& output : f32.run(i)) {
      if (!is_float(output)) continue;
      const Tensor numbers = output.tensor.to(DType::kFloat64).contiguous();
      if (std::all_of(numbers.data<double>(), numbers.data<double>() + numbers.numel(),
                      [](double x) { return x == 0; }))
        return output.name;
    }
  }
  return std::nullopt;
}

double worst_difference(Candidate& expected, Candidate& got, size_t requests) {
  double worst = 0;
  for (size_t i = 0; i < requests; ++i) {
    const std::vector<InferTensor> a = expected.run(i), b = got.run(i);
    if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
    for (size_t output = 0; output < a.size(); ++output) worst = std::max(worst, difference(a[output], b[output]));
  }
  return worst;
}

// In turns, so that what else the machine does touches both alike.
void measure(Candidate& a, Candidate& b, size_t requests, const Clock& clock) {
  a.forget_times();
  b.forget_times();
  const int64_t start_ns = clock.now_ns();
  for (int round = 0; round < kMaxRounds; ++round) {
    for (size_t i = 0; i < requests; ++i) {
      a.run(i);
      b.run(i);
    }
    if (clock.now_ns() - start_ns > kMaxMeasuringNs) return;
  }
}

std::string percent(double share) {
  const double rounded = std::round(share * 1000) / 10;
  return concat(rounded, " %");
}

std::unique_ptr<Model> as_chosen(std::unique_ptr<Model> model, std::string precision, std::string reason) {
  model->set_precision({std::move(precision), std::move(reason)});
  return model;
}

std::unique_ptr<Model> fastest_of(Candidate& f32, std::span<const WarmupRequest> requests, const LoadInPrecision& load,
                                  const PrecisionLimits& limits) {
  std::optional<Candidate> best;
  double best_time = kLeastGain;
  std::string best_name = "f32", reason;
  if (const std::optional<std::string> output = find_silent_output(f32, requests.size()))
    return as_chosen(f32.take(), "f32", concat("a warm-up request has nothing but zeros in output '", *output, "'"));
  for (const char* const precision : {"bf16", "int8"}) {
    Candidate other(load(precision), requests, limits.clock);
    const double error = worst_difference(f32, other, requests.size());
    reason += concat(reason.empty() ? "" : "; ", precision);
    if (!(error <= limits.tolerance)) {
      reason += concat(" differs by more than ", percent(limits.tolerance));
      if (std::isfinite(error)) reason += concat(" (", percent(error), ")");
      continue;
    }
    measure(f32, other, requests.size(), limits.clock);
    const double time = other.time_relative_to(f32);
    reason += concat(" takes ", percent(time), " of the time of f32 and differs by ", percent(error));
    if (time >= best_time) continue;
    best.emplace(std::move(other));
    best_time = time;
    best_name = precision;
  }
  return as_chosen(best ? best->take() : f32.take(), best_name, reason);
}

}  // namespace

std::unique_ptr<Model> load_in_fastest_precision(const LoadInPrecision& load, const MakeRequests& make_requests,
                                                 const PrecisionLimits& limits) {
  std::unique_ptr<Model> model = load("f32");
  if (model->signature().is_on_device()) return as_chosen(std::move(model), "f32", "the model runs on a GPU");
  if (model->signature().keeps_state) return as_chosen(std::move(model), "f32", "the model keeps state");
  std::vector<WarmupRequest> requests = make_requests(model->signature());
  if (requests.empty())
    return as_chosen(std::move(model), "f32", "there are no warm-up requests, and no complete shapes to make them of");
  // With zeros, weights make no difference.
  for (WarmupRequest& request : requests) {
    const bool is_configured = request.is_configured;
    request = with_random_data(std::move(request), /*only_zeros=*/is_configured);
  }
  Candidate f32(std::move(model), requests, limits.clock);
  try {
    return fastest_of(f32, requests, load, limits);
  } catch (const Error& error) {
    check_work_cancelled();  // the load timed out or was cancelled
    return as_chosen(f32.take(), "f32", concat("not measured: ", error.what()));
  }
}

}  // namespace tensord::server
