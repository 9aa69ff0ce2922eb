// Sparse tensors as modules store them (layout, sizes, requires_grad, indices …, values, hooks) and as torch.save
// stores them (layout, parts).
#include "core/base/error.h"
#include "core/jit/archive/unpickler.h"
#include "core/ops/sparse.h"
#include "core/ops/unbox.h"

namespace tensord::jit {

using ops::SparseLayout;
using ops::Value;

namespace {

constexpr SparseLayout kLayouts[] = {SparseLayout::kCoo, SparseLayout::kCsr, SparseLayout::kCsc, SparseLayout::kBsr,
                                     SparseLayout::kBsc};

}  // namespace

// A layout becomes its number, as in code.
Value Unpickler::call_layout(const Global& callee, std::span<const Value> arguments) {
  const Value& name = argument(callee, arguments, 0);
  if (!name.is_string()) malformed("a layout has no name");
  if (name.to_string() == "torch.strided") return int64_t{0};
  for (const SparseLayout layout : kLayouts) {
    if (name.to_string() == concat("torch.", ops::name_of(layout))) return static_cast<int64_t>(layout);
  }
  malformed(concat("layout '", name.to_string(), "' is not supported"));
}

// Indices are copied, so that a later write to the file cannot move elements. Values are read-only, because all runs
// share them. A tensor with more elements than memory (expand) is rejected, because a small file could then demand any
// amount of memory.
Tensor Unpickler::sparse_part(const Value& value, bool is_copied) const {
  if (!value.is_strided()) malformed("a part of a sparse tensor is not a tensor");
  const Tensor& part = value.to_tensor();
  const auto stored = static_cast<int64_t>(part.storage()->size_bytes() / size_of(part.dtype()));
  if (part.numel() > stored) malformed("a part of a sparse tensor has more elements than memory");
  if (is_copied) return part.clone();
  const Storage& owner = part.storage();
  Storage shared = wrap_storage(
      owner->data(), owner->size_bytes(), [owner] {}, part.device(), false);
  return Tensor::from_storage(std::move(shared), part.sizes(), part.strides(), part.offset(), part.dtype());
}

Value Unpickler::make_sparse(int64_t number, const Value& sizes_of, std::span<const Value> parts, bool is_coalesced) {
  spend(16);
  try {
    const SparseLayout layout = ops::sparse_layout(number);
    const bool is_coo = layout == SparseLayout::kCoo;
    if (parts.size() != (is_coo ? 2 : 3)) malformed("a sparse tensor has the wrong number of parts");
    const Dims sizes = sizes_of.is_list() ? ops::Unbox<Dims>::get(sizes_of) : to_dims(sizes_of, "sizes");
    const Tensor values = sparse_part(parts.back(), false), indices = sparse_part(parts[parts.size() - 2], true);
    const auto out = is_coo
                         ? ops::SparseTensor::coo(sizes, indices, values, is_coalesced)
                         : ops::SparseTensor::compressed(layout, sizes, sparse_part(parts[0], true), indices, values);
    out->check_invariants();
    out->is_of_module = true;
    return box(out);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidArgument) throw;
    throw Error(ErrorCode::kDataLoss, concat(context_.source, ": ", error.what()));
  }
}

Value Unpickler::call_sparse(const Global& callee, std::span<const Value> arguments) {
  const Value& layout = argument(callee, arguments, 0);
  if (!layout.is_int()) malformed("a sparse tensor has no layout");
  if (arguments.size() > 2) {
    const bool is_coo = layout.to_int() == static_cast<int64_t>(SparseLayout::kCoo);
    const size_t count = is_coo ? 2 : 3;
    if (arguments.size() < 3 + count) malformed("a sparse tensor has too few parts");
    const Value out = make_sparse(layout.to_int(), arguments[1], arguments.subspan(3, count), false);
    record_requires_grad(ops::as_sparse(out)->values(), arguments, 2);
    return out;
  }
  const Value& given = argument(callee, arguments, 1);
  if (!given.is_tuple()) malformed("a sparse tensor has no parts");
  std::span<const Value> items = given.to_tuple()->items;
  // COO in newer versions also stores whether the tensor is coalesced.
  bool is_coalesced = false;
  if (!items.empty() && (items.back().is_bool() || items.back().is_none())) {
    is_coalesced = items.back().is_bool() && items.back().to_bool();
    items = items.first(items.size() - 1);
  }
  if (items.size() < 2) malformed("a sparse tensor has too few parts");
  return make_sparse(layout.to_int(), items.back(), items.first(items.size() - 1), is_coalesced);
}

}  // namespace tensord::jit
