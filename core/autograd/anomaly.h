#pragma once

#include <string>

namespace tensord::autograd {

class Node;

bool is_anomaly_mode();
bool checks_nan();
// What was chosen last, even while anomaly mode is off.
bool would_check_nan();

// Says, as long as it lives, what the calling thread is doing: "forward (model.py:12)". In anomaly
// mode nodes that are made meanwhile remember it. `describe` is called only then.
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

// The scopes of the calling thread, innermost first, a line each.
std::string describe_origin();

// The node that the calling thread runs, or null.
const Node* running_node();

}  // namespace tensord::autograd
