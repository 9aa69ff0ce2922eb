// Runs one elementwise formula on the CPU: walks the broadcast loop nest and passes dense tiles of the compute type to
// the formula's row function. Dense operands of the compute type are used in place.
#include <algorithm>
#include <cstring>

#include "core/tensor/loops.h"
#include "kernels/pointwise/pointwise.h"

namespace tensord::kernels {
namespace {

constexpr int64_t kGrain = 8192;

}  // namespace

const FormulaRows& formula_rows(Formula formula) {
  static const auto* table = [] {
    auto* rows = new std::array<FormulaRows, kFormulas>();
    fill_arith_rows(rows->data());
    fill_math_rows(rows->data());
    fill_activation_rows(rows->data());
    fill_special_rows(rows->data());
    return rows;
  }();
  return (*table)[static_cast<size_t>(formula)];
}

DType row_dtype(DType dtype) {
  if (dtype == DType::kFloat64) return DType::kFloat64;
  return is_floating(dtype) ? DType::kFloat32 : DType::kInt64;
}

namespace {

union Cell {
  float f32;
  double f64;
  int64_t i64;
};

Cell cell_of(const ops::Scalar& number, DType loop) {
  Cell cell;
  if (loop == DType::kFloat32)
    cell.f32 = static_cast<float>(number.to_double());
  else if (loop == DType::kFloat64)
    cell.f64 = number.to_double();
  else
    cell.i64 = number.to_int();
  return cell;
}

// One input of the loop.
struct Input {
  const char* data;
  DType dtype;
  int64_t element_size;
};

struct Job {
  RowFn row;
  const Numbers* numbers;
  DType loop, result;  // for the result: what the row function writes
  char* out;
  DType out_dtype;
  std::array<Input, 3> inputs;
  size_t input_count;
};

void run_row(const Job& job, const std::array<int64_t, 4>& offset, int64_t count, const std::array<int64_t, 4>& step) {
  alignas(64) char tiles[4][kTile * 8];
  const auto out_size = static_cast<int64_t>(size_of(job.out_dtype));
  const bool out_direct = job.out_dtype == job.result && step[0] == 1;
  bool direct[3], is_constant[3];
  bool tiled = !out_direct;
  for (size_t k = 0; k < job.input_count; ++k) {
    is_constant[k] = step[k + 1] == 0;
    direct[k] = !is_constant[k] && job.inputs[k].dtype == job.loop && step[k + 1] == 1;
    tiled = tiled || !direct[k];
    if (is_constant[k]) {
      const char* source = job.inputs[k].data + offset[k + 1] * job.inputs[k].element_size;
      load_tile(job.inputs[k].dtype, source, 0, job.loop, tiles[k], std::min(count, kTile));
    }
  }
  for (int64_t begin = 0; begin < count;) {
    const int64_t n = tiled ? std::min(kTile, count - begin) : count;
    const void* sources[3] = {};
    for (size_t k = 0; k < job.input_count; ++k) {
      const Input& input = job.inputs[k];
      const char* source = input.data + (offset[k + 1] + begin * step[k + 1]) * input.element_size;
      sources[k] = direct[k] ? source : tiles[k];
      if (!direct[k] && !is_constant[k]) load_tile(input.dtype, source, step[k + 1], job.loop, tiles[k], n);
    }
    for (size_t k = job.input_count; k < 3; ++k) sources[k] = sources[0];  // not used, but must be readable
    char* target = job.out + (offset[0] + begin * step[0]) * out_size;
    job.row(out_direct ? target : tiles[3], sources[0], sources[1], sources[2], *job.numbers, n);
    if (!out_direct) store_tile(job.result, tiles[3], job.out_dtype, target, step[0], n);
    begin += n;
  }
}

template <class T>
void fill_row(T* x, int64_t step, const uint8_t* mask, int64_t mask_step, int64_t count, T value) {
  if (mask_step == 0 && *mask == 0) return;
  for (int64_t i = 0; i < count; ++i) {
    // Most masks select few elements.
    if (mask_step == 1 && i % 8 == 0) {
      uint64_t eight = 0;
      for (; i + 8 <= count && (std::memcpy(&eight, mask + i, 8), eight == 0); i += 8) {
      }
      if (i == count) return;
    }
    if (mask[i * mask_step] != 0) x[i * step] = value;
  }
}

// When the result is the first operand itself, elements outside of the mask are not touched.
void fill_named(const PointwiseCall& call, Tensor& out) {
  const Tensor one = Tensor::empty(Dims{1}, out.dtype()), yes = Tensor::empty(Dims{1}, DType::kBool);
  std::memset(one.raw_data(), 0, one.size_bytes());
  *yes.data<bool>() = true;
  const Operand value = call.tensor(2) ? Operand(*call.tensor(2)) : call.operands[2];
  Tensor filled = Tensor::empty(Dims{1}, out.dtype());
  run_pointwise_cpu({call.formula, call.compute, std::array{Operand(one), Operand(yes), value}, call.numbers}, filled);
  const Tensor& mask = *call.tensor(1);
  const auto* named = static_cast<const uint8_t*>(mask.raw_data());
  const LoopNest<2> nest(out.sizes(), {out.strides(), broadcast_strides(mask.sizes(), mask.strides(), out.sizes())});
  const auto fill = [&]<class T>(T* x) {
    nest.parallel_rows(kGrain, [&](const std::array<int64_t, 2>& offset, int64_t count,
                                   const std::array<int64_t, 2>& step) {
      fill_row(x + offset[0], step[0], named + offset[1], step[1], count, *static_cast<const T*>(filled.raw_data()));
    });
  };
  switch (size_of(out.dtype())) {
    case 1: return fill(static_cast<uint8_t*>(out.raw_data()));
    case 2: return fill(static_cast<uint16_t*>(out.raw_data()));
    case 4: return fill(static_cast<uint32_t*>(out.raw_data()));
    default: return fill(static_cast<uint64_t*>(out.raw_data()));
  }
}

bool writes_named_only(const PointwiseCall& call, const Tensor& out) {
  if (call.formula != Formula::masked_fill || !call.tensor(0) || !call.tensor(1)) return false;
  const Tensor &x = *call.tensor(0), &mask = *call.tensor(1);
  const bool is_in_place = x.raw_data() == out.raw_data() && x.dtype() == out.dtype() && x.sizes() == out.sizes() &&
                           x.strides() == out.strides();
  return is_in_place && (mask.dtype() == DType::kBool || mask.dtype() == DType::kUInt8) && size_of(out.dtype()) <= 8;
}

}  // namespace

void run_pointwise_cpu(const PointwiseCall& call, Tensor& out) {
  if (out.numel() == 0) return;
  if (writes_named_only(call, out)) return fill_named(call, out);
  const DType loop = row_dtype(call.compute);
  const FormulaRows& rows = formula_rows(call.formula);
  Job job;
  job.row = loop == DType::kFloat32 ? rows.f32 : loop == DType::kFloat64 ? rows.f64 : rows.i64;
  check(job.row != nullptr, "elementwise operator is not defined for ", name_of(call.compute));
  job.numbers = &call.numbers;
  job.loop = loop;
  job.result = rows.writes_bool ? DType::kBool : loop;
  job.out = static_cast<char*>(out.raw_data());
  job.out_dtype = out.dtype();
  std::array<Cell, 3> cells;
  std::array<Tensor, 3> converted;
  job.input_count = call.count;
  std::array<const Tensor*, 3> tensors{};
  bool is_one_row = out.numel() <= kGrain && out.is_contiguous();
  std::array<int64_t, 4> step{1, 0, 0, 0};
  for (size_t k = 0; k < call.count; ++k) {
    if (const Tensor* given = call.tensor(k)) {
      // A 0-d operand may have a wider dtype than the result, and is rounded to the result's first.
      const bool narrows = given->ndim() == 0 && given->dtype() != call.compute && loop != call.compute;
      if (narrows) converted[k] = given->to(call.compute);
      const Tensor& tensor = narrows ? converted[k] : *given;
      job.inputs[k] = {static_cast<const char*>(tensor.raw_data()), tensor.dtype(),
                       static_cast<int64_t>(size_of(tensor.dtype()))};
      tensors[k] = &tensor;
      step[k + 1] = tensor.ndim() == 0 ? 0 : 1;
      is_one_row = is_one_row && (tensor.ndim() == 0 || (tensor.sizes() == out.sizes() && tensor.is_contiguous()));
    } else {
      cells[k] = cell_of(call.operands[k].number, loop);
      job.inputs[k] = {reinterpret_cast<const char*>(&cells[k]), loop, 8};
    }
  }
  // All operands are contiguous: the common case, in which small tensors need no loop nest.
  if (is_one_row) return run_row(job, {}, out.numel(), step);
  std::array<Dims, 4> strides;
  strides[0] = out.strides();
  for (size_t k = 0; k < 3; ++k) {
    strides[k + 1] = tensors[k] ? broadcast_strides(tensors[k]->sizes(), tensors[k]->strides(), out.sizes())
                                : Dims(out.sizes().size(), 0);
  }
  const LoopNest<4> nest(out.sizes(), strides);
  nest.parallel_rows(kGrain, [&](const std::array<int64_t, 4>& offset, int64_t count,
                                 const std::array<int64_t, 4>& steps) { run_row(job, offset, count, steps); });
}

}  // namespace tensord::kernels
