// Conversions as operators: between layouts, to dense tensors and back, to other dtypes.
#include "kernels/expr/compose.h"
#include "kernels/sparse/sparse.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::Value;

// --- from dense tensors, and between layouts

constexpr SparseLayout kCompressed[] = {SparseLayout::kCsr, SparseLayout::kCsc, SparseLayout::kBsr, SparseLayout::kBsc};

Dims block_for(SparseLayout layout, const Value& given) {
  if (!ops::is_blocked(layout)) return Dims{1, 1};
  check(!given.is_none(), "to ", name_of(layout), " needs a blocksize");
  Dims block = ops::Unbox<Dims>::get(given);
  if (block.size() == 1) block.push_back(block[0]);
  check(block.size() == 2 && block[0] > 0 && block[1] > 0, "blocksize must be two positive numbers, but got ", block);
  return block;
}

// The last `dense_dim` dimensions of a dense tensor stay dense.
Value dense_to(const Tensor& x, SparseLayout layout, const Value& blocksize, const Value& dense_dim) {
  const int64_t dense = dense_dim.is_none() ? 0 : dense_dim.to_int();
  check(dense >= 0 && dense <= x.ndim(), "dense_dim ", dense, " of a tensor of ", x.ndim(), " dimensions");
  const SparsePtr coo = to_sparse(x, x.ndim() - dense);
  return box(layout == SparseLayout::kCoo ? coo : to_compressed(*coo, layout, block_for(layout, blocksize)));
}

Value sparse_to(const Value& given, SparseLayout layout, const Value& blocksize) {
  const SparseTensor& x = sparse_of(given);
  const bool is_same = x.sparse_layout() == layout &&
                       (!ops::is_blocked(layout) || blocksize.is_none() || x.block() == block_for(layout, blocksize));
  // Always returns new memory, which the compiler assumes.
  if (is_same) return with_values(x, ops::clone(x.values()));
  const SparsePtr coo = to_coo(x);
  if (layout == SparseLayout::kCoo) return with_values(*coo, ops::clone(coo->values()));
  const DType dtype = x.is_coo() ? DType::kInt64 : x.indices().dtype();
  return box(to_compressed(*coo, layout, block_for(layout, blocksize), dtype));
}

Value to(const Value& x, SparseLayout layout, const Value& blocksize, const Value& dense_dim) {
  if (x.is_strided()) return dense_to(x.to_tensor(), layout, blocksize, dense_dim);
  check(dense_dim.is_none() || dense_dim.to_int() == sparse_of(x).dense_dim(), "changing the dense dimensions of ",
        sparse_of(x).describe(), " is not supported");
  return sparse_to(x, layout, blocksize);
}

// One function serves dense and sparse tensors.
template <class F>
void add_conversion(const std::string& name, const F& function) {
  add_factory(name, function);
  const ops::ImplBuilder added(name, kSparseComposite, function);
}

[[maybe_unused]] const bool has_conversions = [] {
  for (const SparseLayout layout : kCompressed) {
    const bool blocked = ops::is_blocked(layout);
    const auto function = [=](Arguments v, Results& returns) {
      returns.push_back(blocked ? to(v[0], layout, v[1], v[2]) : to(v[0], layout, Value(), v[1]));
    };
    for (const char* start : {"aten::to_", "aten::_to_"}) add_conversion(concat(start, name_of(layout)), function);
  }
  for (const char* name : {"aten::to_sparse", "aten::_to_sparse"}) {
    add_conversion(concat(name, ".sparse_dim"), [](Arguments v, Results& returns) {
      if (v[0].is_strided()) return returns.push_back(box(to_sparse(v[0].to_tensor(), v[1].to_int())));
      check(v[1].to_int() == sparse_of(v[0]).sparse_dim() + sparse_of(v[0]).batch_dim(),
            "changing the sparse dimensions of ", sparse_of(v[0]).describe(), " is not supported");
      returns.push_back(sparse_to(v[0], SparseLayout::kCoo, Value()));
    });
    add_conversion(name, [](Arguments v, Results& returns) {
      returns.push_back(to(v[0], v[1].is_none() ? SparseLayout::kCoo : ops::sparse_layout(v[1].to_int()), v[2], v[3]));
    });
  }
  const auto dense = [](Arguments v, Results& returns) {
    const Tensor x = v[0].is_strided() ? ops::clone(v[0].to_tensor()) : to_dense(sparse_of(v[0]));
    returns.emplace_back(v[1].is_none() ? x : compose::to(x, v[1].to_dtype()));
  };
  add_conversion("aten::to_dense", dense);
  add_conversion("aten::_to_dense", dense);
  return true;
}();

// --- dtypes and devices: those of the values.

Value converted_value(const Value& given, const Value& dtype, const Value& device, bool copy) {
  const SparseTensor& x = sparse_of(given);
  const Tensor values = on_device(dtype.is_none() ? x.values() : compose::to(x.values(), dtype.to_dtype()), device);
  if (!values.is_same(x.values())) return with_values(x, values);
  return copy ? with_values(x, ops::clone(x.values())) : given;
}
Value as_dtype(const Value& given, const Value& dtype, bool copy) {
  return converted_value(given, dtype, Value(), copy);
}

IMPL("aten::to.dtype", kSparseComposite,
     [](Arguments v, Results& returns) { returns.push_back(as_dtype(v[0], v[1], v[3].to_bool())); });
IMPL("aten::to.prim_dtype", kSparseComposite,
     [](Arguments v, Results& returns) { returns.push_back(as_dtype(v[0], v[1], v[3].to_bool())); });
IMPL("aten::to.device", kSparseComposite,
     [](Arguments v, Results& returns) { returns.push_back(converted_value(v[0], v[2], v[1], v[4].to_bool())); });
IMPL("aten::to.prim_Device", kSparseComposite,
     [](Arguments v, Results& returns) { returns.push_back(converted_value(v[0], v[2], v[1], v[4].to_bool())); });
IMPL("aten::to.dtype_layout", kSparseComposite, [](Arguments v, Results& returns) {
  check(v[2].is_none() || v[2].to_int() == static_cast<int64_t>(sparse_of(v[0]).sparse_layout()),
        "to(options) doesn't support converting to a different layout");
  returns.push_back(converted_value(v[0], v[1], v[3], v[6].to_bool()));
});
IMPL("aten::to.other aten::type_as", kSparseComposite, [](Arguments v, Results& returns) {
  const TensorImpl& like = *v[1].to_tensor().impl();
  if (v[0].is_strided()) {
    returns.emplace_back(on_device(compose::to(v[0].to_tensor(), like.dtype), like.device));
  } else {
    returns.push_back(converted_value(v[0], Value(like.dtype), like.device, v.size() > 3 && v[3].to_bool()));
  }
});
IMPL("aten::clone", kSparseComposite, [](Arguments v, Results& returns) {
  returns.push_back(with_values(sparse_of(v[0]), ops::clone(sparse_of(v[0]).values())));
});
IMPL("aten::cpu", kSparseComposite,
     [](Arguments v, Results& returns) { returns.push_back(converted_value(v[0], Value(), Device{}, false)); });

}  // namespace
}  // namespace tensord::kernels
