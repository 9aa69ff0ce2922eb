#include "server/commands/bench_compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/base/error.h"
#include "core/jit/runtime/load_flags.h"

namespace tensord::server {

namespace {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

std::string key_name(const ops::Value& key) {
  return key.is_string() ? std::string(key.to_string()) : key.is_int() ? std::to_string(key.to_int()) : "key";
}

// Flattens a result into tensors with their paths, in order.
void collect(const ops::Value& value, const std::string& name, NamedTensors& out) {
  const auto inner = [&](const std::string& key) { return name.empty() ? key : name + "." + key; };
  if (value.is_strided()) {
    out.emplace_back(name.empty() ? "0" : name, value.to_tensor());
  } else if (value.is_tuple() || value.is_list()) {
    const auto& items = value.is_tuple() ? value.to_tuple()->items : value.to_list()->items;
    for (size_t i = 0; i < items.size(); ++i) collect(items[i], inner(std::to_string(i)), out);
  } else if (value.is_dict()) {
    for (const auto& [key, item] : value.to_dict()->items()) collect(item, inner(key_name(key)), out);
  }
}

std::vector<double> numbers_of(const Tensor& tensor) {
  const Tensor dense = tensor.contiguous();
  std::vector<double> out(static_cast<size_t>(dense.numel()));
  dispatch_all(dense.dtype(), "--compare", [&]<class T>() {
    const T* data = dense.data<T>();
    for (size_t i = 0; i < out.size(); ++i) {
      if constexpr (std::is_arithmetic_v<T>) {
        out[i] = static_cast<double>(data[i]);
      } else {
        out[i] = static_cast<float>(data[i]);
      }
    }
  });
  return out;
}

// Accumulates error statistics over the elements of an output.
class Differ {
 public:
  void add(const std::vector<double>& got, const std::vector<double>& want, int64_t row_size) {
    double scale = 0;
    for (const double value : want) scale = std::max(scale, std::abs(value));
    for (size_t i = 0; i < want.size(); ++i) add_element(got[i], want[i], scale * 1e-3);
    if (row_size < 2) return;
    const auto size = static_cast<std::ptrdiff_t>(row_size);
    for (auto row = want.begin(), other = got.begin(); row != want.end(); row += size, other += size) {
      ++rows_;
      agreeing_ += std::max_element(row, row + size) - row == std::max_element(other, other + size) - other;
    }
  }

  OutputDifference result(const std::string& name) const {
    OutputDifference out;
    out.name = name;
    out.elements = count_;
    out.max_abs = max_abs_;
    out.max_relative = max_relative_;
    out.mean_abs = count_ > 0 ? sum_abs_ / static_cast<double>(count_) : 0;
    const double norms = std::sqrt(got_squared_) * std::sqrt(want_squared_);
    out.cosine = norms > 0 ? product_ / norms : got_squared_ == want_squared_ ? 1 : 0;
    if (rows_ > 0) out.top1_agreement = static_cast<double>(agreeing_) / static_cast<double>(rows_);
    return out;
  }

 private:
  void add_element(double got, double want, double min) {
    ++count_;
    if (!std::isfinite(want) && (got == want || (std::isnan(got) && std::isnan(want)))) return;
    const double difference = std::isnan(got - want) ? std::numeric_limits<double>::infinity() : std::abs(got - want);
    max_abs_ = std::max(max_abs_, difference);
    sum_abs_ += difference;
    if (std::abs(want) > 0 && std::abs(want) >= min) {
      max_relative_ = std::max(max_relative_, difference / std::abs(want));
    }
    product_ += got * want;
    got_squared_ += got * got;
    want_squared_ += want * want;
  }

  int64_t count_ = 0, rows_ = 0, agreeing_ = 0;
  double max_abs_ = 0, max_relative_ = 0, sum_abs_ = 0;
  double product_ = 0, got_squared_ = 0, want_squared_ = 0;
};

// The results of all argument sets, run in order, because a model may keep state.
std::vector<NamedTensors> results_in(const BenchOptions& options, const std::string& precision) {
  BenchOptions other = options;
  other.model.precision = precision;
  const std::shared_ptr<jit::Module> module = load_model(other.model, load_options(other.model));
  const jit::Method& method = module->method(other.method);
  const std::unique_ptr<jit::Frame> frame = jit::make_frame();
  std::vector<NamedTensors> out;
  for (const std::vector<ops::Value>& arguments : make_arguments(other, *module, method)) {
    const Device device = parse_device(other.model.device);
    collect(at_home(method.run(*frame, arguments), device), "", out.emplace_back());
  }
  return out;
}

}  // namespace

std::vector<OutputDifference> compare_precisions(const BenchOptions& options) {
  const std::vector<NamedTensors> got = results_in(options, options.model.precision);
  const std::vector<NamedTensors> want = results_in(options, options.compare);
  std::vector<std::string> order;
  std::map<std::string, Differ> differs;
  for (size_t set = 0; set < want.size(); ++set) {
    check(got[set].size() == want[set].size(), "--compare: ", got[set].size(), " tensors in the result but ",
          want[set].size(), " in the reference");
    for (size_t i = 0; i < want[set].size(); ++i) {
      const auto& [name, reference] = want[set][i];
      const Tensor& tensor = got[set][i].second;
      check(tensor.sizes() == reference.sizes(), "--compare: output ", name, " has another shape than the reference");
      if (differs.count(name) == 0) order.push_back(name);
      differs[name].add(numbers_of(tensor), numbers_of(reference), reference.ndim() > 0 ? reference.sizes().back() : 0);
    }
  }
  std::vector<OutputDifference> out;
  for (const std::string& name : order) out.push_back(differs[name].result(name));
  return out;
}

}  // namespace tensord::server
