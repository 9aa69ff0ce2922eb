#pragma once

#include <string>

namespace tensord::autograd {

class Node;

bool is_anomaly_mode();
bool checks_nan();
// The last setting, even while anomaly mode is off.
bool would_check_nan();

// Describes what the calling thread is doing, such as "forward (model.py:12)", for its lifetime. In anomaly mode, nodes
// made in the meantime store the description; `describe` is called only then.
class OriginScope {
 public:
  using DescribeFn = std::string (*)(const void* context);
  OriginScope(DescribeFn describe, const void* context);
  ~OriginScope();
  OriginScope(const OriginScope&) = delete;
  OriginScope& operator=(const OriginScope&) = delete;

 private:
  friend std::string describe_origin();
  DescribeFn describe_;
  const void* context_;
  const OriginScope* outer_;
};

// The calling thread's scopes, innermost first, one line each.
std::string describe_origin();

// The node that the calling thread is running, or null.
const Node* running_node();

}  // namespace tensord::autograd
