#include "server/training/class_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/error.h"

namespace tensord::server {
namespace {

constexpr size_t kMaxScores = size_t{1} << 26;  // 512 MB
constexpr const char* kClassMetrics[] = {"f1", "precision", "recall", "auc"};

double share(double part, double whole) { return whole == 0 ? 0 : part / whole; }

void take_softmax(std::vector<double>& scores) {
  const double largest = *std::ranges::max_element(scores);
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - largest);
  for (double& score : scores) score /= sum;
}

}  // namespace

bool ClassMetrics::is_one(const std::string& metric) {
  return std::ranges::find(kClassMetrics, metric) != std::end(kClassMetrics);
}

void ClassMetrics::add(const Tensor& output, const Tensor& label, bool keeps_scores) {
  const Tensor scores = output.to(DType::kFloat64).contiguous();
  const double* score = scores.data<double>();
  const bool is_binary = output.ndim() < 2 || (output.ndim() == 2 && output.size(1) == 1);
  const int64_t classes = is_binary ? 1 : output.size(1), rows = output.ndim() == 0 ? 1 : output.size(0);
  const int64_t places = scores.numel() / std::max<int64_t>(rows * classes, 1);
  check(label.numel() == rows * places, "the output has shape ", output.sizes(), ", the label ", label.sizes(),
        ": they cannot be compared");
  check(counts_.empty() || std::ssize(counts_) == std::max<int64_t>(classes, 2), "the output has ", classes,
        " classes, and had ", counts_.size());
  counts_.resize(static_cast<size_t>(std::max<int64_t>(classes, 2)));
  const Tensor labels = (is_binary ? label.to(DType::kFloat64) : label.to(DType::kInt64)).contiguous();
  std::vector<double> of_row(static_cast<size_t>(classes));
  for (int64_t i = 0; i < rows * places; ++i) {
    const int64_t row = i / std::max<int64_t>(places, 1), place = i % std::max<int64_t>(places, 1);
    for (int64_t c = 0; c < classes; ++c) of_row[static_cast<size_t>(c)] = score[(row * classes + c) * places + place];
    const int64_t wanted = is_binary ? labels.data<double>()[i] > 0.5 : labels.data<int64_t>()[i];
    if (!is_binary && wanted == loss_.ignore_index.value_or(-100)) continue;
    add_row(of_row, wanted, keeps_scores);
  }
}

void ClassMetrics::add_row(const std::vector<double>& scores, int64_t label, bool keeps_scores) {
  const bool is_nan = std::ranges::any_of(scores, [](double score) { return std::isnan(score); });
  has_nan_ |= is_nan;
  const bool is_binary = scores.size() == 1;
  const double limit = loss_.builtin == "bce" ? 0.5 : 0.0;
  const int64_t found = is_nan ? -1 : is_binary ? scores[0] > limit : std::ranges::max_element(scores) - scores.begin();
  const bool is_known = label >= 0 && label < std::ssize(counts_);
  if (found == label) {
    ++counts_[static_cast<size_t>(label)].hits;
  } else {
    if (found >= 0) ++counts_[static_cast<size_t>(found)].false_alarms;
    if (is_known) ++counts_[static_cast<size_t>(label)].misses;
  }
  if (!keeps_scores) return;
  if (scores_.size() + scores.size() > kMaxScores) {
    fail(ErrorCode::kResourceExhausted, "auc keeps all scores of an evaluation, at most ", kMaxScores,
         ": leave it out, or evaluate on fewer rows");
  }
  labels_.push_back(label);
  if (scores.size() <= 2) {
    scores_per_row_ = 1;
    scores_.push_back(is_binary ? scores[0] : scores[1] - scores[0]);
    return;
  }
  scores_per_row_ = std::ssize(scores);
  std::vector<double> kept = scores;
  // Scores of different rows can be compared as probabilities only.
  if (loss_.builtin == "cross_entropy" || loss_.builtin == "nll") take_softmax(kept);
  scores_.insert(scores_.end(), kept.begin(), kept.end());
}

// By ranks: the share of pairs of a row of the class and another one in which the first has the higher score; equal
// ones count half.
double ClassMetrics::auc_of(int64_t klass) const {
  const int64_t column = scores_per_row_ == 1 ? 0 : klass;
  const auto score = [&](size_t row) {
    return scores_[row * static_cast<size_t>(scores_per_row_) + static_cast<size_t>(column)];
  };
  std::vector<size_t> order(labels_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, [&](size_t a, size_t b) { return score(a) < score(b); });
  double ranks = 0, own = 0;
  for (size_t first = 0, end = 0; first < order.size(); first = end) {
    while (end < order.size() && score(order[end]) == score(order[first])) ++end;
    const double rank = (static_cast<double>(first) + 1 + static_cast<double>(end)) / 2;
    for (size_t i = first; i < end; ++i) {
      if (labels_[order[i]] != klass) continue;
      ranks += rank;
      ++own;
    }
  }
  const double others = static_cast<double>(order.size()) - own;
  return (ranks - own * (own + 1) / 2) / (own * others);  // NaN if one side is empty
}

double ClassMetrics::value(const std::string& metric) const {
  const bool is_binary = counts_.size() == 2;
  if (metric == "auc") {
    if (has_nan_ || labels_.empty()) return std::numeric_limits<double>::quiet_NaN();
    if (is_binary) return auc_of(1);
    double sum = 0;
    for (int64_t c = 0; c < std::ssize(counts_); ++c) sum += auc_of(c);
    return sum / static_cast<double>(counts_.size());
  }
  double sum = 0, classes = 0;
  for (size_t c = is_binary ? 1 : 0; c < counts_.size(); ++c) {
    const auto [hits, false_alarms, misses] = counts_[c];
    if (!is_binary && hits + false_alarms + misses == 0) continue;  // a class that does not occur
    sum += metric == "precision" ? share(hits, hits + false_alarms)
           : metric == "recall"  ? share(hits, hits + misses)
                                 : share(2 * hits, 2 * hits + false_alarms + misses);
    ++classes;
  }
  return sum / classes;
}

}  // namespace tensord::server
