#include "kernels/fused/tile_nest.h"

#include <algorithm>

namespace tensord::kernels {

using Step = TileBuilder::Step;

bool TileNest::make(int64_t elements) {
  // Outputs come first, those of all elements before the others: their memory order decides the order of the loops.
  outputs_.resize(spaces_.outputs().size());
  for (const bool full : {true, false}) {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Space space = spaces_.space(spaces_.outputs()[i]);
      if ((space == Space::kFull) != full) continue;
      TileStream stream;
      stream.output = static_cast<int>(i);
      outputs_[i] = add(spaces_.output_meta(i), space, std::move(stream));
    }
  }
  for (size_t v = 0; v < spaces_.values().size(); ++v) {
    const int value = static_cast<int>(v);
    if (!spaces_.is_computed(value)) continue;
    const Step& step = spaces_.step_of(value);
    const bool full = step.is_row_kernel || spaces_.space(value) == Space::kFull;
    for (const int operand : spaces_.operands_of(step)) {
      if (!spaces_.is_computed(operand)) add_input(operand, full ? Space::kFull : spaces_.space(value), full ? 0 : 1);
    }
    for (const int extra : step.extra) {
      if (extra >= 0) add_input(extra, Space::kFull, 2);
    }
  }
  if (strides_.size() > kMaxTileAddresses) return false;
  order_loops();
  if (loop_sizes_.size() > kMaxTileDims) return false;
  cut(elements);
  return true;
}

int TileNest::output(int value) const {
  const auto outputs = spaces_.outputs();
  const auto it = std::find(outputs.begin(), outputs.end(), value);
  return it == outputs.end() ? -1 : outputs_[static_cast<size_t>(it - outputs.begin())];
}

int TileNest::add(const Tensor& memory, Space space, TileStream stream) {
  const Dims& sizes = spaces_.sizes(space);
  // A value of other sizes is a dense tensor whose dimensions were joined to rows.
  Dims strides = broadcasts_to(memory.sizes(), sizes) ? broadcast_strides(memory.sizes(), memory.strides(), sizes)
                                                      : contiguous_strides(sizes);
  if (space == Space::kRow) strides.back() = 0;
  if (space == Space::kDropped) strides.push_back(0);
  stream.element_size = static_cast<int64_t>(size_of(memory.dtype()));
  program_.streams.push_back(std::move(stream));
  strides_.push_back(std::move(strides));
  return static_cast<int>(strides_.size()) - 1;
}

void TileNest::add_input(int value, Space space, int use) {
  const auto [it, is_new] = stream_of_.try_emplace({value, use}, 0);
  if (!is_new) return;
  const Tensor& tensor = spaces_.tensor(value);
  TileStream stream;
  stream.input = spaces_.value(value).input;
  if (stream.input < 0) {
    stream.data = tensor.raw_data();
    program_.kept.push_back(tensor);
  }
  if (use == 2) {
    // Does not move.
    stream.element_size = static_cast<int64_t>(size_of(tensor.dtype()));
    program_.streams.push_back(std::move(stream));
    strides_.push_back(Dims(spaces_.sizes().size(), 0));
    it->second = static_cast<int>(strides_.size()) - 1;
  } else {
    it->second = add(tensor, space, std::move(stream));
  }
}

// From the outermost in. Neighboring dimensions that every stream walks without a gap are merged, but never with that
// of the rows.
void TileNest::order_loops() {
  const Dims& sizes = spaces_.sizes();
  std::vector<size_t> order;
  const size_t loops = sizes.size() - (spaces_.has_rows() ? 1 : 0);
  for (size_t d = 0; d < loops; ++d) {
    if (sizes[d] != 1) order.push_back(d);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    for (const Dims& s : strides_) {
      if (s[a] != 0 && s[b] != 0 && s[a] != s[b]) return s[a] > s[b];
    }
    return false;
  });
  loop_strides_.resize(strides_.size());
  for (const size_t d : order) push_loop(d, true);
  if (spaces_.has_rows()) push_loop(sizes.size() - 1, false);
}

void TileNest::push_loop(size_t dim, bool may_merge) {
  const int64_t size = spaces_.sizes()[dim];
  bool merges = may_merge && !loop_sizes_.empty();
  for (size_t s = 0; s < strides_.size() && merges; ++s) merges = loop_strides_[s].back() == strides_[s][dim] * size;
  if (merges)
    loop_sizes_.back() *= size;
  else
    loop_sizes_.push_back(size);
  for (size_t s = 0; s < strides_.size(); ++s) {
    if (merges)
      loop_strides_[s].back() = strides_[s][dim];
    else
      loop_strides_[s].push_back(strides_[s][dim]);
  }
}

void TileNest::cut(int64_t elements) {
  TileProgram& p = program_;
  const size_t n = loop_sizes_.size();
  p.columns = n > 0 ? loop_sizes_[n - 1] : 1;
  p.rows = n > 1 ? loop_sizes_[n - 2] : 1;
  for (size_t d = 0; d + 2 < n; ++d) p.outer.push_back(loop_sizes_[d]);
  if (spaces_.has_rows() || p.columns <= elements) {
    p.tile_columns = p.columns;
    p.tile_rows = std::clamp<int64_t>(elements / p.columns, 1, p.rows);
  } else {
    const int64_t blocks = (p.columns + elements - 1) / elements;
    p.tile_columns = ((p.columns + blocks - 1) / blocks + 63) / 64 * 64;
    p.tile_rows = 1;
  }
  for (size_t s = 0; s < strides_.size(); ++s) {
    TileStream& stream = p.streams[s];
    const auto& strides = loop_strides_[s];
    for (size_t d = 0; d + 2 < n; ++d) stream.strides.push_back(strides[d] * stream.element_size);
    stream.row_step = n > 1 ? strides[n - 2] * stream.element_size : 0;
    stream.column_step = n > 0 ? strides[n - 1] * stream.element_size : stream.element_size;
  }
}

bool TileNest::is_dense(int stream, Space space) const {
  const TileStream& s = program_.streams[static_cast<size_t>(stream)];
  const bool rows_follow = program_.tile_rows == 1 || s.row_step == program_.tile_columns * s.element_size;
  if (space == Space::kFull && program_.columns > 1) return s.column_step == s.element_size && rows_follow;
  return program_.tile_rows == 1 || s.row_step == s.element_size;
}

}  // namespace tensord::kernels
