#include "core/jit/runtime/frame.h"

#include "core/jit/runtime/specializations.h"

namespace tensord::jit {

Frame::Frame() : recent_(std::make_unique<std::vector<RecentProgram>>()) {}
Frame::~Frame() = default;

void Frame::recycle(ops::Value result) {
  if (!result.is_tuple()) return;
  ops::Tuple tuple = result.to_tuple();
  result = {};
  if (tuple->use_count() != 1) return;
  tuple->items.clear();
  spare_tuple_ = std::move(tuple);
}

ops::Value Frame::make_tuple(std::span<const ops::Value> items, const ops::TypePtr& type) {
  if (!spare_tuple_) return make_intrusive<ops::TupleObject>(std::vector<ops::Value>(items.begin(), items.end()), type);
  ops::Tuple tuple = std::move(spare_tuple_);
  tuple->items.assign(items.begin(), items.end());
  tuple->type = type;
  return tuple;
}

std::vector<RecentProgram>& Frame::recent_programs() { return *recent_; }

}  // namespace tensord::jit
