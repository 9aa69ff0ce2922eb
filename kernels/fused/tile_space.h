#pragma once

#include <span>
#include <vector>

#include "kernels/fused/tile_program.h"

namespace tensord::kernels {

// Where the values of a tile program live: which have all elements of the iteration space, and
// which have one for each row of the last dimension, because they come from a reduction.
class TileSpaces {
 public:
  // One for each row: the last dimension has size 1, or (kDropped) is not there.
  enum class Space : uint8_t { kFull, kRow, kDropped };

  TileSpaces(const std::vector<TileBuilder::Value>& values, const std::vector<TileBuilder::Step>& steps,
             std::span<const int> outputs, std::span<const Tensor> metas)
      : values_(values), steps_(steps), outputs_(outputs), metas_(metas), spaces_(values.size(), Space::kFull) {}
  // False when the calls do not fit one space.
  bool find();

  const std::vector<TileBuilder::Value>& values() const { return values_; }
  const TileBuilder::Value& value(int v) const { return values_[static_cast<size_t>(v)]; }
  const Tensor& tensor(int v) const { return value(v).tensor; }
  bool is_computed(int v) const { return value(v).step >= 0; }
  // A constant of one element.
  bool is_number(int v) const { return !is_computed(v) && !tensor(v).is_meta() && tensor(v).numel() == 1; }
  const TileBuilder::Step& step_of(int v) const { return steps_[static_cast<size_t>(value(v).step)]; }
  std::span<const int> outputs() const { return outputs_; }
  const Tensor& output_meta(size_t i) const { return metas_[i]; }

  Space space(int v) const { return spaces_[static_cast<size_t>(v)]; }
  const Dims& sizes() const { return sizes_; }
  const Dims& sizes(Space space) const {
    return space == Space::kFull ? sizes_ : space == Space::kRow ? row_sizes_ : dropped_sizes_;
  }
  // Whether a call along the last dimension keeps that from being cut.
  bool has_rows() const { return has_rows_; }
  // The operands of a step that have elements; weights of a normalization are not among them.
  std::vector<int> operands_of(const TileBuilder::Step& step) const;

 private:
  bool find_sizes();
  bool find_row_space(size_t v, const TileBuilder::Step& step);
  bool find_formula_space(size_t v, const TileBuilder::Step& step);
  bool check_outputs() const;

  const std::vector<TileBuilder::Value>& values_;
  const std::vector<TileBuilder::Step>& steps_;
  std::span<const int> outputs_;
  std::span<const Tensor> metas_;
  bool has_rows_ = false;
  Dims sizes_, row_sizes_, dropped_sizes_;
  std::vector<Space> spaces_;
};

// Whether `sizes` broadcast to `to`.
bool broadcasts_to(const Dims& sizes, const Dims& to);

}  // namespace tensord::kernels
