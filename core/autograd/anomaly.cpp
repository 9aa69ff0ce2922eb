#include "core/autograd/anomaly.h"

#include <atomic>

#include "core/autograd/engine.h"
#include "core/autograd/node.h"
#include "core/base/execution_context.h"

namespace tensord::autograd {
namespace {

std::atomic<bool> is_enabled_{false}, checks_nan_{true};

}  // namespace

bool is_anomaly_mode() { return is_enabled_.load(std::memory_order_relaxed); }
bool would_check_nan() { return checks_nan_.load(std::memory_order_relaxed); }
bool checks_nan() { return is_anomaly_mode() && would_check_nan(); }

AnomalyModeGuard::AnomalyModeGuard(bool is_enabled, bool checks_nan)
    : was_enabled_(is_enabled_.exchange(is_enabled)), did_check_nan_(checks_nan_.exchange(checks_nan)) {}
AnomalyModeGuard::~AnomalyModeGuard() {
  is_enabled_.store(was_enabled_);
  checks_nan_.store(did_check_nan_);
}

OriginScope::OriginScope(DescribeFn describe, const void* context)
    : describe_(describe), context_(context), outer_(execution_context().origin) {
  execution_context().origin = this;
}
OriginScope::~OriginScope() { execution_context().origin = outer_; }

std::string describe_origin() {
  std::string out;
  for (const OriginScope* scope = execution_context().origin; scope; scope = scope->outer_) {
    out += (out.empty() ? "" : "\n") + scope->describe_(scope->context_);
  }
  if (const Node* node = running_node()) {
    out += (out.empty() ? "" : "\n") + std::string("in the backward of ") + node->name();
    if (!node->origin().empty()) out += ", itself made\n" + node->origin();
  }
  return out;
}

}  // namespace tensord::autograd
