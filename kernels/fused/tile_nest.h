#pragma once

#include <map>
#include <utility>
#include <vector>

#include "kernels/fused/tile_space.h"

namespace tensord::kernels {

// The memory that a tile program iterates over, and the loops.
class TileNest {
 public:
  using Space = TileSpaces::Space;
  TileNest(const TileSpaces& spaces, TileProgram& program) : spaces_(spaces), program_(program) {}

  // All streams of the calls, then the loops with tiles of about `elements`. False when there are
  // more streams or dimensions than a program may have.
  bool make(int64_t elements);

  // REQUIRES: the calls use the value so. Rows and dropped rows are one.
  int input(int value, Space space) const { return stream_of_.at({value, space == Space::kFull ? 0 : 1}); }
  // Of a dense row that every row uses as a whole.
  int extra(int value) const { return stream_of_.at({value, 2}); }
  // -1: no output.
  int output(int value) const;
  // Whether the elements of each tile follow one another.
  bool is_dense(int stream, Space space) const;
  // By which dimensions the stream moves; equal for streams that touch the same places.
  const Dims& strides(int stream) const { return strides_[static_cast<size_t>(stream)]; }

 private:
  int add(const Tensor& memory, Space space, TileStream stream);
  void add_input(int value, Space space, int use);
  void order_loops();
  void push_loop(size_t dim, bool may_merge);
  void cut(int64_t elements);

  const TileSpaces& spaces_;
  TileProgram& program_;
  std::vector<Dims> strides_;  // of the iteration space's dimensions, in elements
  std::vector<int> outputs_;
  std::map<std::pair<int, int>, int> stream_of_;  // (value, kind of use)
  std::vector<int64_t> loop_sizes_;
  std::vector<std::vector<int64_t>> loop_strides_;
};

}  // namespace tensord::kernels
