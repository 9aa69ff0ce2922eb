// Packs the weights of recurrent layers into panels; see kernels.h.
#include "core/base/parallel.h"
#include "kernels/rnn/sequence.h"

namespace tensord::kernels {
namespace {

int64_t panels_for(int64_t units, int64_t units_in_panel) { return (units + units_in_panel - 1) / units_in_panel; }

// The source of column c of panel p: rows [first, first + count) of the matrix.
struct Source {
  int64_t first, count;
};

Source source_of(int64_t panel, int64_t column, int64_t columns, int64_t units, bool by_gate, int64_t lanes) {
  const int64_t unit = by_gate ? panel * lanes : (panel * columns + column) * lanes;
  const int64_t first = by_gate ? column * units + unit : unit;
  return {first, std::clamp<int64_t>(units - unit, 0, lanes)};
}

// The rows of `matrix`, [gates * units, inputs], as panels, which have `columns` vectors for each input.
template <class T>
void pack_matrix(const Tensor& matrix, int64_t columns, int64_t units, bool by_gate, int64_t panels, T* packed) {
  const Tensor dense = matrix.contiguous();
  const T* from = dense.data<T>();
  const int64_t inputs = dense.sizes()[1], lanes = rnn_kernels<T>().lanes;
  parallel_for_cost(panels, static_cast<double>(inputs * columns * lanes), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      for (int64_t c = 0; c < columns; ++c) {
        const Source source = source_of(p, c, columns, units, by_gate, lanes);
        for (int64_t k = 0; k < inputs; ++k) {
          T* to = packed + ((p * inputs + k) * columns + c) * lanes;
          for (int64_t u = 0; u < lanes; ++u) to[u] = u < source.count ? from[(source.first + u) * inputs + k] : T(0);
        }
      }
    }
  });
}

// Adds a vector of biases, except for the columns from `end_column` on.
template <class T>
void add_bias(const Tensor& bias, int64_t columns, int64_t end_column, int64_t units, bool by_gate, int64_t panels,
              T* packed) {
  if (!bias) return;
  const Tensor dense = bias.contiguous();
  const int64_t lanes = rnn_kernels<T>().lanes;
  for (int64_t p = 0; p < panels; ++p) {
    for (int64_t c = 0; c < end_column; ++c) {
      const Source source = source_of(p, c, columns, units, by_gate, lanes);
      for (int64_t u = 0; u < source.count; ++u)
        packed[(p * columns + c) * lanes + u] += dense.data<T>()[source.first + u];
    }
  }
}

}  // namespace

template <class T>
RnnWeights<T>::RnnWeights(RnnKind kind, const RnnParameters& parameters)
    : inputs(parameters.input.sizes()[1]),
      hidden(parameters.input.sizes()[0] / rnn_gates(kind)),
      state(parameters.recurrent.sizes()[1]) {
  const int64_t columns = rnn_columns(kind), lanes = rnn_kernels<T>().lanes;
  const bool by_gate = rnn_gates(kind) > 1, has_projection = parameters.projection.defined();
  const int64_t units = by_gate ? lanes : columns * lanes;
  panels = panels_for(hidden, units);
  padded_hidden = panels * units;
  if (has_projection) projection_panels = panels_for(state, kPlainColumns * lanes);
  padded_state = has_projection ? projection_panels * kPlainColumns * lanes : padded_hidden;
  const int64_t width = panels * columns * lanes;
  memory_ = Tensor::empty(
      Dims{width * (inputs + state + 1) + padded_hidden + projection_panels * kPlainColumns * lanes * hidden},
      dtype_of<T>);
  T* at = memory_.data<T>();
  const auto take = [&at](int64_t count) { return std::exchange(at, at + count); };

  T* packed = take(width * inputs);
  pack_matrix(parameters.input, columns, hidden, by_gate, panels, packed);
  input = packed;
  packed = take(width * state);
  pack_matrix(parameters.recurrent, columns, hidden, by_gate, panels, packed);
  recurrent = packed;
  packed = take(width);
  std::fill_n(packed, width, T(0));
  const bool is_gru = kind == RnnKind::kGru;
  add_bias(parameters.input_bias, columns, columns, hidden, by_gate, panels, packed);
  add_bias(parameters.recurrent_bias, columns, is_gru ? 2 : columns, hidden, by_gate, panels, packed);
  bias = packed;
  if (is_gru) {
    packed = take(padded_hidden);
    std::fill_n(packed, padded_hidden, T(0));
    if (parameters.recurrent_bias) {
      const Tensor dense = parameters.recurrent_bias.contiguous();
      std::copy_n(dense.data<T>() + 2 * hidden, hidden, packed);
    }
    new_bias = packed;
  }
  if (has_projection) {
    packed = take(projection_panels * kPlainColumns * lanes * hidden);
    pack_matrix(parameters.projection, kPlainColumns, state, false, projection_panels, packed);
    projection = packed;
  }
}

template struct RnnWeights<float>;
template struct RnnWeights<double>;

}  // namespace tensord::kernels
