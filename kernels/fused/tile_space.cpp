#include "kernels/fused/tile_space.h"

#include <algorithm>

namespace tensord::kernels {

using Step = TileBuilder::Step;

bool broadcasts_to(const Dims& sizes, const Dims& to) {
  if (sizes.size() > to.size()) return false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int64_t size = sizes[sizes.size() - 1 - i];
    if (size != 1 && size != to[to.size() - 1 - i]) return false;
  }
  return true;
}

std::vector<int> TileSpaces::operands_of(const Step& step) const {
  if (step.is_row_kernel) return {step.input};
  std::vector<int> out;
  for (size_t k = 0; k < step.call.count; ++k) {
    if (step.operands[k].value >= 0 && !is_number(step.operands[k].value)) out.push_back(step.operands[k].value);
  }
  return out;
}

bool TileSpaces::find() {
  if (!find_sizes()) return false;
  for (size_t v = 0; v < values_.size(); ++v) {
    if (values_[v].step < 0) continue;
    const Step& step = step_of(static_cast<int>(v));
    if (!(step.is_row_kernel ? find_row_space(v, step) : find_formula_space(v, step))) return false;
  }
  return check_outputs();
}

bool TileSpaces::find_sizes() {
  if (outputs_.empty()) return false;
  for (const Step& step : steps_) {
    if (!step.is_row_kernel) continue;
    if (has_rows_ && !(tensor(step.input).sizes() == sizes_)) return false;
    has_rows_ = true;
    sizes_ = tensor(step.input).sizes();
  }
  if (!has_rows_) sizes_ = tensor(outputs_[0]).sizes();
  if (checked_numel(sizes_) == 0) return false;
  row_sizes_ = dropped_sizes_ = sizes_;
  if (!has_rows_) return true;
  row_sizes_.back() = 1;
  dropped_sizes_.erase(dropped_sizes_.size() - 1);
  return true;
}

bool TileSpaces::find_row_space(size_t v, const Step& step) {
  if (is_computed(step.input) && space(step.input) != Space::kFull) return false;
  const Dims& result = values_[v].tensor.sizes();
  if (step.row_kernel.reduces) {
    const bool keeps = result.size() == sizes_.size();
    spaces_[v] = keeps ? Space::kRow : Space::kDropped;
  }
  return result == sizes(spaces_[v]);
}

bool TileSpaces::find_formula_space(size_t v, const Step& step) {
  const Dims& result = values_[v].tensor.sizes();
  bool full = false, row = false, dropped = false;
  for (const int operand : operands_of(step)) {
    if (!is_computed(operand)) continue;
    full = full || space(operand) == Space::kFull;
    row = row || space(operand) == Space::kRow;
    dropped = dropped || space(operand) == Space::kDropped;
  }
  // Rows that lack the last dimension would be aligned with other dimensions.
  if (dropped && (full || row)) return false;
  if (dropped) {
    if (!(result == dropped_sizes_)) return false;
    spaces_[v] = Space::kDropped;
  } else if (row && !full && result == row_sizes_) {
    spaces_[v] = Space::kRow;
  }
  const Dims& to = sizes(spaces_[v]);
  if (!broadcasts_to(result, to)) return false;
  for (const int operand : operands_of(step)) {
    if (!broadcasts_to(tensor(operand).sizes(), to)) return false;
  }
  return true;
}

bool TileSpaces::check_outputs() const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const int value = outputs_[i];
    if (!is_computed(value)) return false;
    const auto before = outputs_.first(i);
    if (std::find(before.begin(), before.end(), value) != before.end()) return false;
    if (metas_[i].dtype() != tensor(value).dtype()) return false;
    if (!(tensor(value).sizes() == sizes(space(value)))) return false;
    if (metas_[i].sizes() == tensor(value).sizes()) continue;
    // Rows made of several dimensions.
    if (metas_[i].numel() != tensor(value).numel() || !metas_[i].is_contiguous()) return false;
  }
  return true;
}

}  // namespace tensord::kernels
