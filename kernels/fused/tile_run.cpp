// Runs tile programs; see tile_program.h.
#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/parallel.h"
#include "kernels/fused/tile_program.h"

namespace tensord::kernels {

using Kind = TileInstruction::Kind;

// The position of the tile: indices of the outer dimensions, the row block and the column block.
struct TileProgram::Cursor {
  std::array<int64_t, kMaxTileDims> index{};
  int64_t row_block = 0, column_block = 0;
  std::array<int64_t, kMaxTileAddresses> offset;  // of the streams, in bytes, at the outer indices
  // For each slot: what a fixed load read last, and its size.
  struct Loaded {
    const char* from = nullptr;
    int64_t rows = 0, columns = 0;
  };
  std::array<Loaded, kMaxTileAddresses> loaded{};
};

int64_t TileProgram::tiles() const {
  int64_t count = ((rows + tile_rows - 1) / tile_rows) * ((columns + tile_columns - 1) / tile_columns);
  for (const int64_t size : outer) count *= size;
  return count;
}

namespace {

// Copies a strided block to a dense one of `to`, a compute type.
void load_block(const TileInstruction& i, const TileStream& stream, const char* from, char* out, int64_t rows,
                int64_t columns) {
  if (i.per_row) {
    columns = rows;
    rows = 1;
  }
  const int64_t size = stream.element_size;
  const int64_t row_step = i.per_row ? 0 : stream.row_step;
  const int64_t step = (i.per_row ? stream.row_step : stream.column_step) / size;
  const int64_t out_row = columns * static_cast<int64_t>(size_of(i.to));
  const bool copies = i.from == i.to && step == 1;
  for (int64_t r = 0; r < rows; ++r) {
    char* target = out + r * out_row;
    if (r > 0 && row_step == 0)
      std::memcpy(target, out, static_cast<size_t>(out_row));
    else if (copies)
      std::memcpy(target, from + r * row_step, static_cast<size_t>(out_row));
    else
      load_tile(i.from, from + r * row_step, step, i.to, target, columns);
  }
}

template <class T>
void copy_apart(const char* from, char* out, int64_t step, int64_t count) {
  const T* source = reinterpret_cast<const T*>(from);
  T* target = reinterpret_cast<T*>(out);
  for (int64_t k = 0; k < count; ++k) target[k * step] = source[k];
}

// Stores dense, converted elements to every `step`th place.
void scatter_row(int64_t element_size, const char* from, char* out, int64_t step, int64_t count) {
  switch (element_size) {
    case 1: return copy_apart<uint8_t>(from, out, step, count);
    case 2: return copy_apart<uint16_t>(from, out, step, count);
    case 4: return copy_apart<uint32_t>(from, out, step, count);
    default: return copy_apart<uint64_t>(from, out, step, count);
  }
}

void store_block(const TileInstruction& i, const TileStream& stream, const char* from, char* out, int64_t rows,
                 int64_t columns) {
  if (i.per_row) {
    columns = rows;
    rows = 1;
  }
  const int64_t row_step = i.per_row ? 0 : stream.row_step;
  const int64_t step = (i.per_row ? stream.row_step : stream.column_step) / stream.element_size;
  const int64_t from_row = columns * stream.element_size;
  for (int64_t r = 0; r < rows; ++r)
    scatter_row(stream.element_size, from + r * from_row, out + r * row_step, step, columns);
}

void convert(const TileInstruction& i, const char* from, char* out, int64_t count) {
  const bool to_compute = i.to == DType::kFloat32 || i.to == DType::kFloat64 || i.to == DType::kInt64;
  if (to_compute)
    load_tile(i.from, from, 1, i.to, out, count);
  else
    store_tile(i.from, from, i.to, out, 1, count);
}

void run_row_kernel(const TileInstruction& i, char* const* at, int64_t rows, int64_t columns) {
  const int64_t in_row = columns * static_cast<int64_t>(size_of(i.row_kernel.compute));
  const int64_t out_row = (i.row_kernel.reduces ? 1 : columns) * static_cast<int64_t>(size_of(i.row_kernel.result));
  const void* extra[2] = {i.b >= 0 ? at[i.b] : nullptr, i.c >= 0 ? at[i.c] : nullptr};
  for (int64_t r = 0; r < rows; ++r)
    i.row_kernel.run(i.row_kernel, at[i.a] + r * in_row, extra, at[i.out] + r * out_row, columns);
}

void run_by_row(const TileInstruction& i, char* const* at, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) {
    i.row(at[i.out] + r * i.steps[0], at[i.a] + r * i.steps[1], at[i.b] + r * i.steps[2], at[i.c] + r * i.steps[3],
          i.numbers, columns);
  }
}

void expand(const TileInstruction& i, const char* from, char* out, int64_t rows, int64_t columns) {
  const auto size = static_cast<int64_t>(size_of(i.to));
  for (int64_t r = 0; r < rows; ++r) load_tile(i.to, from + r * size, 0, i.to, out + r * columns * size, columns);
}

}  // namespace

void TileProgram::run_tile(char* const* at, Cursor& cursor, int64_t rows, int64_t columns) const {
  for (const TileInstruction& i : instructions) {
    const int64_t count = i.per_row ? rows : rows * columns;
    switch (i.kind) {
      case Kind::kFormula:
        if (i.by_row)
          run_by_row(i, at, rows, columns);
        else
          i.row(at[i.out], at[i.a], at[i.b], at[i.c], i.numbers, count);
        break;
      case Kind::kRow: run_row_kernel(i, at, rows, columns); break;
      case Kind::kLoad: {
        Cursor::Loaded& loaded = cursor.loaded[static_cast<size_t>(i.out)];
        if (i.is_fixed && loaded.from == at[i.a] && loaded.rows >= rows && loaded.columns == columns) break;
        load_block(i, streams[static_cast<size_t>(i.a)], at[i.a], at[i.out], rows, columns);
        loaded = {at[i.a], rows, columns};
        break;
      }
      case Kind::kStore: store_block(i, streams[static_cast<size_t>(i.out)], at[i.a], at[i.out], rows, columns); break;
      case Kind::kConvert: convert(i, at[i.a], at[i.out], count); break;
      case Kind::kExpand: expand(i, at[i.a], at[i.out], rows, columns); break;
    }
  }
}

void TileProgram::run_part(const ops::PreparedRun& memory, int part) const {
  const int64_t count = tiles(), begin = count * part / parts, end = count * (part + 1) / parts;
  const int64_t row_blocks = (rows + tile_rows - 1) / tile_rows;
  const int64_t column_blocks = (columns + tile_columns - 1) / tile_columns;
  Cursor cursor;
  char* at[kMaxTileAddresses];
  const char* base[kMaxTileAddresses];
  char* scratch = static_cast<char*>(memory.scratch) + static_cast<size_t>(part) * part_bytes;
  for (size_t s = 0; s < slots.size(); ++s) at[streams.size() + s] = scratch + slots[s];
  // No instruction writes it.
  for (size_t c = 0; c < constants.size(); ++c)
    at[streams.size() + slots.size() + c] = reinterpret_cast<char*>(const_cast<double*>(constants[c].data()));
  cursor.column_block = begin % column_blocks;
  cursor.row_block = begin / column_blocks % row_blocks;
  int64_t rest = begin / column_blocks / row_blocks;
  for (size_t d = outer.size(); d-- > 0;) {
    cursor.index[d] = rest % outer[d];
    rest /= outer[d];
  }
  for (size_t s = 0; s < streams.size(); ++s) {
    const TileStream& stream = streams[s];
    base[s] = static_cast<const char*>(stream.input >= 0    ? memory.inputs[stream.input]
                                       : stream.output >= 0 ? memory.outputs[stream.output]
                                                            : stream.data);
    cursor.offset[s] = 0;
    for (size_t d = 0; d < outer.size(); ++d) cursor.offset[s] += cursor.index[d] * stream.strides[d];
  }
  for (int64_t tile = begin; tile < end; ++tile) {
    const int64_t row = cursor.row_block * tile_rows, column = cursor.column_block * tile_columns;
    for (size_t s = 0; s < streams.size(); ++s) {
      at[s] =
          const_cast<char*>(base[s]) + cursor.offset[s] + row * streams[s].row_step + column * streams[s].column_step;
    }
    run_tile(at, cursor, std::min(tile_rows, rows - row), std::min(tile_columns, columns - column));
    if (++cursor.column_block < column_blocks) continue;
    cursor.column_block = 0;
    if (++cursor.row_block < row_blocks) continue;
    cursor.row_block = 0;
    for (size_t d = outer.size(); d-- > 0;) {
      const bool wraps = ++cursor.index[d] == outer[d];
      for (size_t s = 0; s < streams.size(); ++s)
        cursor.offset[s] += wraps ? -(outer[d] - 1) * streams[s].strides[d] : streams[s].strides[d];
      if (!wraps) break;
      cursor.index[d] = 0;
    }
  }
}

void TileProgram::run(const ops::KernelContext&, const ops::PreparedRun& memory) const {
  if (parts == 1) return run_part(memory, 0);
  parallel_run(parts, [&](int part) { run_part(memory, part); });
}

}  // namespace tensord::kernels
