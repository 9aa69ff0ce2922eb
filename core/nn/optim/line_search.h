#pragma once

#include <functional>

#include "core/tensor/tensor.h"

namespace tensord::nn {

// A point on a line: the step, the value there, its gradient, and the slope along the line.
struct LinePoint {
  double t = 0;
  double value = 0;
  Tensor gradient;
  double slope = 0;
};
struct LineSearchResult {
  LinePoint point;
  int64_t evaluations = 0;
};

// Searches along a line for a point that satisfies the strong Wolfe conditions: brackets a minimum, then narrows the
// bracket by cubic interpolation (Nocedal and Wright, "Numerical Optimization", section 3.5). `start` is the point at t
// = 0, `t` the first step, `length` the largest element of the direction. Evaluates at most 26 times.
LineSearchResult strong_wolfe(const std::function<LinePoint(double t)>& evaluate, const LinePoint& start, double t,
                              double length, double tolerance_change = 1e-9);

}  // namespace tensord::nn
