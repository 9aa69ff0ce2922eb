#include "core/nn/optim/line_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tensord::nn {
namespace {

constexpr double kDecrease = 1e-4, kCurvature = 0.9;
constexpr int kMaxIterations = 25;

// The minimizer in [low, high] of the cubic through two values and slopes.
double cubic_minimum(const LinePoint& a, const LinePoint& b, double low, double high) {
  const double d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.t - b.t);
  const double square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const double d2 = std::sqrt(square);
  const double at = a.t <= b.t ? b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
                               : a.t - (a.t - b.t) * ((a.slope + d2 - d1) / (a.slope - b.slope + 2 * d2));
  return std::min(std::max(at, low), high);
}

class Search {
 public:
  Search(const std::function<LinePoint(double)>& evaluate, const LinePoint& start, double length, double tolerance)
      : evaluate_(evaluate), start_(start), length_(length), tolerance_(tolerance) {}

  LineSearchResult run(double t) {
    bracket(t);
    while (!is_done_ && iterations_ < kMaxIterations) {
      if (std::abs(high_.t - low_.t) * length_ < tolerance_) break;
      narrow();
    }
    return {low_, evaluations_};
  }

 private:
  LinePoint at(double t) {
    ++evaluations_;
    return evaluate_(t);
  }
  bool decreases_enough(const LinePoint& p) const { return !(p.value > start_.value + kDecrease * p.t * start_.slope); }
  bool is_flat_enough(const LinePoint& p) const { return std::abs(p.slope) <= -kCurvature * start_.slope; }
  void set_bracket(const LinePoint& a, const LinePoint& b) {
    low_ = a, high_ = b;
    if (!(low_.value <= high_.value)) std::swap(low_, high_);
  }

  // Extends the step until two points bracket a minimum, or a point satisfies the conditions.
  void bracket(double t) {
    LinePoint before = start_, now = at(t);
    for (; iterations_ < kMaxIterations; ++iterations_) {
      if (!decreases_enough(now) || (iterations_ > 1 && now.value >= before.value)) return set_bracket(before, now);
      if (is_flat_enough(now)) {
        low_ = high_ = now;
        is_done_ = true;
        return;
      }
      if (now.slope >= 0) return set_bracket(before, now);
      const double next = cubic_minimum(before, now, now.t + 0.01 * (now.t - before.t), now.t * 10);
      before = std::exchange(now, at(next));
    }
    set_bracket(start_, now);
  }

  // Replaces an end of the bracket by a point inside it.
  void narrow() {
    const double min = std::min(low_.t, high_.t), max = std::max(low_.t, high_.t);
    double t = cubic_minimum(low_, high_, min, max);
    // If the point is close to an end twice in a row, or on it, move it inside by a tenth of the bracket.
    const double margin = 0.1 * (max - min);
    const bool is_close = std::min(max - t, t - min) < margin;
    if (is_close && (was_close_ || t >= max || t <= min)) {
      t = std::abs(t - max) < std::abs(t - min) ? max - margin : min + margin;
      was_close_ = false;
    } else {
      was_close_ = is_close;
    }
    const LinePoint now = at(t);
    ++iterations_;
    if (!decreases_enough(now) || now.value >= low_.value) {
      high_ = now;
      if (!(low_.value <= high_.value)) std::swap(low_, high_);
      return;
    }
    if (is_flat_enough(now))
      is_done_ = true;
    else if (now.slope * (high_.t - low_.t) >= 0)
      high_ = low_;
    low_ = now;
  }

  const std::function<LinePoint(double)>& evaluate_;
  const LinePoint& start_;
  const double length_, tolerance_;
  LinePoint low_, high_;  // ends of the bracket, ordered by value
  bool is_done_ = false, was_close_ = false;
  int iterations_ = 0;
  int64_t evaluations_ = 0;
};

}  // namespace

LineSearchResult strong_wolfe(const std::function<LinePoint(double t)>& evaluate, const LinePoint& start, double t,
                              double length, double tolerance_change) {
  return Search(evaluate, start, length, tolerance_change).run(t);
}

}  // namespace tensord::nn
