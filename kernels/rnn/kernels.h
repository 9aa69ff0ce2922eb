#pragma once

#include <algorithm>
#include <cstdint>

// The loops of recurrent layers (rnn_cpu.cpp) over packed weights, and what they are told.
//
// A panel holds the weights of `units` hidden units, the columns of all gates side by side: for
// each k, kColumns vectors. So a sum over k ends with all gates of some units in registers, where
// the state is updated at once.
namespace tensord::kernels {

enum class RnnKind : uint8_t { kLstm, kGru, kTanh, kRelu };

// Vectors side by side in a panel: one per gate, or two of different units.
inline constexpr int kPlainColumns = 2;
inline int rnn_columns(RnnKind kind) { return kind == RnnKind::kLstm ? 4 : kind == RnnKind::kGru ? 3 : kPlainColumns; }
inline int rnn_gates(RnnKind kind) { return kind == RnnKind::kLstm ? 4 : kind == RnnKind::kGru ? 3 : 1; }

// The rows that take part in each time step, from `first_row` on at most `batch`; `sizes` are those of
// packed data, one per step and never growing, or null when all steps have all rows.
struct RnnSteps {
  int64_t count = 0, batch = 0;
  const int64_t* sizes = nullptr;
  const int64_t* first = nullptr;  // of packed data: the row where each step starts

  int64_t rows(int64_t step) const { return sizes ? sizes[step] : batch; }
};

// Rows of time steps: padded, at step and row strides, or packed one step after the other.
template <class T>
struct RnnRows {
  T* data = nullptr;
  int64_t step_stride = 0, row_stride = 0;  // in elements

  T* at(const RnnSteps& steps, int64_t step, int64_t row) const {
    return data + (steps.first ? steps.first[step] * row_stride : step * step_stride) + row * row_stride;
  }
};

// A part of the work of one layer and direction: rows and panels.
struct RnnPart {
  int64_t first_row, end_row;
  int64_t first_panel, end_panel;

  int64_t end(const RnnSteps& steps, int64_t step) const { return std::min(end_row, steps.rows(step)); }
};

// What of the input goes into the gates, for some time steps: gates[r] = bias + x[r] @ weights.
template <class T>
struct RnnInputArgs {
  RnnSteps steps;
  RnnPart part;
  int64_t begin, end;  // steps in the order of work
  bool is_reverse;     // the order of work is the last step first
  RnnRows<const T> x;
  const T *weights, *bias;
  int64_t inputs;
  T* gates;  // a row for each row of the part, in the order of work
  int64_t gates_stride;
};

// One time step of some rows and panels.
template <class T>
struct RnnStepArgs {
  RnnPart part;
  const T* gates;  // of the part's first row
  int64_t gates_stride;
  const T *weights, *bias;  // bias: of the GRU's new gate, else null
  int64_t inputs;           // length of a row of the previous state
  const T* previous;
  T *next, *cell;  // cell: LSTM only
  int64_t previous_stride, next_stride, cell_stride;
  T* out;  // or null; `units` long
  int64_t out_stride, units;
  bool from_last;  // the last panel first, as the caches hold it still from the step before
};

// One row of a single cell, whose products come as rows of all gates, one gate after the other.
template <class T>
struct RnnCellArgs {
  const T *input, *recurrent;            // products with the input and the previous state
  const T *input_bias, *recurrent_bias;  // or null
  const T *previous, *previous_cell;     // previous_cell: LSTM only
  T *next, *cell;
  int64_t units;
};

template <class T>
struct RnnKernels {
  int64_t lanes;  // units in a panel, for each column of plain ones
  void (*input)(int columns, const RnnInputArgs<T>&);
  void (*step)(RnnKind kind, const RnnStepArgs<T>&);
  // next[r] = previous[r] @ weights, without gates: the LSTM's projection.
  void (*project)(const RnnStepArgs<T>&);
  void (*cell)(RnnKind kind, const RnnCellArgs<T>&);
};

// For the instruction set of this processor.
template <class T>
const RnnKernels<T>& rnn_kernels();

}  // namespace tensord::kernels
