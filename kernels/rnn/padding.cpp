// Packed sequences of different lengths: the rows of one time step after another, longest sequence first. The number of
// rows of each step is in host memory, as in PyTorch.
#include <algorithm>

#include "core/base/error.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "core/tensor/device_copy.h"
#include "kernels/base/numbers.h"
#include "kernels/view/view.h"
#include "ops/rnn.h"

namespace tensord::kernels {
namespace {

using ops::Scalar;

void need_data(const Tensor& x, const char* op) {
  if (x.is_meta()) fail(ErrorCode::kUnimplemented, op, ": the result's shape depends on the tensor's data");
}

// Copies the first counts[i] rows of each step of `padded`, [steps, batch, …], to or from the rows of
// `packed`. Both hold the same dtype.
template <class Copy>
void for_each_step(const Tensor& padded, const Tensor& packed, const std::vector<int64_t>& counts, Copy&& copy) {
  int64_t row = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const Tensor step = select(padded, 0, static_cast<int64_t>(i));
    copy(narrow(step, 0, 0, counts[i]), narrow(packed, 0, row, counts[i]));
    row += counts[i];
  }
}

// For each step, how many sequences reach beyond it.
std::vector<int64_t> counts_of(const std::vector<int64_t>& lengths) {
  std::vector<int64_t> counts;
  size_t count = lengths.size();
  for (int64_t step = 0; step < lengths[0]; ++step) {
    while (lengths[count - 1] <= step) --count;
    counts.push_back(static_cast<int64_t>(count));
  }
  return counts;
}

std::tuple<Tensor, Tensor> pack(const Tensor& input, const Tensor& lengths, bool batch_first) {
  check(input.numel() > 0, "Cannot pack empty tensors.");
  check(input.ndim() >= 2, "input of pack_padded_sequence must have a time and a batch dimension");
  check(lengths.dtype() == DType::kInt64 && lengths.ndim() == 1,
        "lengths of pack_padded_sequence must be a list of int64");
  const Tensor padded = batch_first ? transpose(input, 0, 1) : input;
  const int64_t batch = padded.sizes()[1];
  check(lengths.numel() == batch, "Expected `len(lengths)` to be equal to batch_size, but got ", lengths.numel(),
        " (batch_size=", batch, ")");
  need_data(lengths, "pack_padded_sequence");
  const std::vector<int64_t> length = integers_of(lengths);
  int64_t rows = 0;
  for (int64_t i = 0; i < batch; ++i) {
    check(length[i] > 0,
          "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0");
    check(i == 0 || length[i] <= length[i - 1],
          "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
          "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do "
          "not need ONNX exportability.");
    check(length[i] <= padded.sizes()[0], "pack_padded_sequence: a length of ", length[i], " for sequences padded to ",
          padded.sizes()[0]);
    rows += length[i];
  }
  const std::vector<int64_t> counts = counts_of(length);
  Dims sizes = padded.sizes();
  sizes.erase(0);
  sizes[0] = rows;
  if (input.is_meta()) return {Tensor::meta(sizes, input.dtype(), input.device()), vector_of(counts)};
  const Tensor packed = Tensor::empty(sizes, input.dtype(), input.device());
  for_each_step(padded, packed, counts, [](const Tensor& from, const Tensor& to) { copy_elements(to, from); });
  return {packed, vector_of(counts)};
}

std::tuple<Tensor, Tensor> pad(const Tensor& data, const Tensor& batch_sizes, bool batch_first, const Scalar& padding,
                               int64_t total_length) {
  check(data.ndim() >= 1 && batch_sizes.ndim() == 1 && batch_sizes.dtype() == DType::kInt64 && batch_sizes.numel() > 0,
        "pad_packed_sequence expects rows and a list of int64");
  need_data(batch_sizes, "pad_packed_sequence");
  need_data(data, "pad_packed_sequence");
  const std::vector<int64_t> counts = integers_of(batch_sizes);
  const auto longest = static_cast<int64_t>(counts.size());
  int64_t rows = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    check(counts[i] > 0 && counts[i] <= counts[i == 0 ? 0 : i - 1] && counts[i] <= data.sizes()[0] - rows,
          "batch_sizes of packed data must never grow and add up to its ", data.sizes()[0], " rows");
    rows += counts[i];
  }
  check(total_length <= 0 || total_length >= longest,
        "Expected total_length to be at least the length of the longest sequence in input, but got total_length=",
        total_length, " and max sequence length being ", longest);
  Dims sizes = data.sizes();
  sizes[0] = counts[0];
  sizes.insert(0, total_length > 0 ? total_length : longest);
  const Tensor padded = Tensor::empty(sizes, data.dtype(), data.device());
  padded.copy_from(padding.is_float() ? Tensor::scalar(padding.to_double()) : Tensor::scalar(padding.to_int()));
  for_each_step(padded, data, counts, [](const Tensor& to, const Tensor& from) { copy_elements(to, from); });
  std::vector<int64_t> lengths(static_cast<size_t>(counts[0]));
  for (size_t i = 0; i < counts.size(); ++i) std::fill_n(lengths.begin(), counts[i], static_cast<int64_t>(i) + 1);
  return {batch_first ? transpose(padded, 0, 1) : padded, vector_of(lengths)};
}

// Each operator is the gradient of the other.
std::vector<Tensor> gradient_of_pack(const ops::GradArgs& args) {
  const auto& in = args.inputs;
  if (!args.needs(0)) return std::vector<Tensor>(3);
  const bool batch_first = in[2].to_bool();
  const int64_t length = in[0].to_tensor().sizes()[batch_first ? 1 : 0];
  return {std::get<0>(ops::_pad_packed_sequence(args.grad_outputs[0], args.outputs[1].to_tensor(), batch_first,
                                                Scalar(0.0), length)),
          Tensor(), Tensor()};
}
std::vector<Tensor> gradient_of_pad(const ops::GradArgs& args) {
  const auto& in = args.inputs;
  if (!args.needs(0)) return std::vector<Tensor>(5);
  return {std::get<0>(ops::_pack_padded_sequence(args.grad_outputs[0], args.outputs[1].to_tensor(), in[2].to_bool())),
          Tensor(), Tensor(), Tensor(), Tensor()};
}

OP("aten::_pack_padded_sequence")
    .impl(pack)
    .gradient(gradient_of_pack)
    .saves("result1")
    .dynamic_shape()
    .kind(ops::OpKind::kComposite);
OP("aten::_pad_packed_sequence")
    .impl(pad)
    .gradient(gradient_of_pad)
    .saves("result1")
    .dynamic_shape()
    .kind(ops::OpKind::kComposite);

}  // namespace
}  // namespace tensord::kernels
