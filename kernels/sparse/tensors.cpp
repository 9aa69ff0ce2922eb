// Creates sparse tensors, queries them, and returns their parts.
#include <deque>

#include "core/autograd/variable.h"
#include "core/ops/complex.h"
#include "kernels/expr/compose.h"
#include "kernels/sparse/sparse.h"
#include "ops/view.h"

namespace tensord::kernels {

using ops::Value;

const SparseTensor& sparse_of(const Value& value) {
  const SparseTensor* found = ops::as_sparse(value);
  check(found != nullptr, "expected a sparse tensor, but got ",
        value.is_tensor() ? describe(value.to_tensor()) : std::string(value.tag_name()));
  return *found;
}

const SparseTensor& coo_of(const Value& value) {
  const SparseTensor& x = sparse_of(value);
  check(x.is_coo(), "expected a sparse tensor of layout sparse_coo, but got ", x.describe());
  return x;
}

SparsePtr checked(SparseLayout layout, const Dims& sizes, const Tensor& compressed, const Tensor& indices,
                  const Tensor& values, bool is_coalesced) {
  check(indices.ndim() > 0 && !indices.is_meta(), "expected indices, but got ", describe(indices));
  // Copies the parts, so that writing to them does not change the tensor.
  const Tensor own = ops::clone(values);
  const SparsePtr out = layout == SparseLayout::kCoo
                            ? SparseTensor::coo(sizes, indices.clone(), own, is_coalesced)
                            : SparseTensor::compressed(layout, sizes, compressed.clone(), indices.clone(), own);
  out->check_invariants();
  return out;
}

Value with_values(const SparseTensor& x, Tensor values) { return box(x.with(std::move(values))); }

Tensor on_device(const Tensor& values, const Value& device) {
  if (device.is_none() || device.to_device() == values.device()) return values;
  return ops::to(values, device.to_device(), values.dtype());
}

namespace {

// --- new tensors. Compressed layouts are the CPU's; no pinned memory.

Tensor converted(const Tensor& values, const Value& dtype) {
  return dtype.is_none() ? values : compose::to(values, dtype.to_dtype());
}

// The smallest sizes that contain all indices.
Dims sizes_for(const Tensor& indices, const Tensor& values) {
  check(indices.dtype() == DType::kInt64 && indices.ndim() == 2 && values.ndim() > 0,
        "expected indices int64 of sparse_dim x nnz and values, but got ", describe(indices), " and ",
        describe(values));
  Dims sizes;
  for (int64_t d = 0; d < indices.sizes()[0]; ++d) {
    const int64_t max = largest_index(ops::select(indices, 0, d));
    check(max < INT64_MAX, "an index is too large");
    sizes.push_back(max + 1);
  }
  for (int64_t d = 1; d < values.ndim(); ++d) sizes.push_back(values.sizes()[static_cast<size_t>(d)]);
  return sizes;
}

Value make_coo(const Tensor& indices, const Tensor& values, const Dims& sizes, const Value& is_coalesced) {
  return box(checked(SparseLayout::kCoo, sizes, Tensor(), indices.to(Device{}), values,
                     !is_coalesced.is_none() && is_coalesced.to_bool()));
}

// A single value without dimensions stands for a vector of one.
Tensor as_values(const Tensor& values) { return values.ndim() == 0 ? ops::unsqueeze(values, 0) : values; }

#define OPTIONS "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"

OP("aten::sparse_coo_tensor.indices")
    .impl([](Arguments v) {
      const Tensor values = on_device(converted(as_values(v[1].to_tensor()), v[2]), v[4]);
      const Tensor indices = v[0].to_tensor().to(Device{});
      return make_coo(indices, values, sizes_for(indices, values), v[6]);
    })
    .composite()
    .dynamic_shape();
OP("aten::sparse_coo_tensor.indices_size")
    .impl([](Arguments v) {
      return make_coo(v[0].to_tensor(), on_device(converted(as_values(v[1].to_tensor()), v[3]), v[5]),
                      ops::Unbox<Dims>::get(v[2]), v[7]);
    })
    .composite()
    .dynamic_shape();
OP("aten::_sparse_coo_tensor_unsafe")
    .impl([](Arguments v) {
      return make_coo(v[0].to_tensor(), on_device(converted(v[1].to_tensor(), v[3]), v[5]), ops::Unbox<Dims>::get(v[2]),
                      v[7]);
    })
    .composite()
    .dynamic_shape();
OP("aten::sparse_coo_tensor.size")
    .impl([](Arguments v) {
      const Device device = v[3].is_none() ? Device{} : v[3].to_device();
      const Dims sizes = ops::Unbox<Dims>::get(v[0]);
      const DType dtype = v[1].is_none() ? DType::kFloat32 : v[1].to_dtype();
      return box(checked(SparseLayout::kCoo, sizes, Tensor(),
                         Tensor::empty(Dims{static_cast<int64_t>(sizes.size()), 0}, DType::kInt64),
                         Tensor::empty(Dims{0}, dtype, device), true));
    })
    .composite()
    .dynamic_shape();

Value make_compressed(SparseLayout layout, Arguments v, const Dims& sizes, size_t options) {
  check_host(v[options + 2]);
  return box(checked(layout, sizes, v[0].to_tensor(), v[1].to_tensor(), converted(v[2].to_tensor(), v[options]), true));
}

// As many columns as the plain indices need, and as many rows as the compressed ones have.
Dims sizes_for_compressed(SparseLayout layout, Arguments v) {
  const Tensor compressed = v[0].to_tensor(), plain = v[1].to_tensor().to(DType::kInt64), values = v[2].to_tensor();
  const int64_t batch = compressed.ndim() - 1, blocked = ops::is_blocked(layout) ? 2 : 0;
  check(
      batch >= 0 && compressed.sizes().back() > 0 && plain.ndim() == batch + 1 && values.ndim() >= batch + 1 + blocked,
      "expected compressed indices, plain indices and values, but got ", describe(compressed), ", ", describe(plain),
      " and ", describe(values));
  Dims sizes;
  for (int64_t d = 0; d < batch; ++d) sizes.push_back(compressed.sizes()[static_cast<size_t>(d)]);
  int64_t lines = compressed.sizes().back() - 1;
  int64_t across = largest_index(plain);
  check(across < INT64_MAX, "an index is too large");
  ++across;
  if (!ops::compresses_rows(layout)) std::swap(lines, across);
  const auto at = static_cast<size_t>(batch) + 1;
  check(!blocked || (!__builtin_mul_overflow(lines, values.sizes()[at], &lines) &&
                     !__builtin_mul_overflow(across, values.sizes()[at + 1], &across)),
        "a block's index is too large");
  sizes.push_back(lines);
  sizes.push_back(across);
  for (int64_t d = batch + 1 + blocked; d < values.ndim(); ++d) sizes.push_back(values.sizes()[static_cast<size_t>(d)]);
  return sizes;
}

ops::ReturnFn of_layout(SparseLayout layout, bool has_sizes) {
  return [=](Arguments v, Results& returns) {
    returns.push_back(make_compressed(
        layout, v, has_sizes ? ops::Unbox<Dims>::get(v[3]) : sizes_for_compressed(layout, v), has_sizes ? 4 : 3));
  };
}

struct Factory {
  const char *name, *parts;
  SparseLayout layout;
};
constexpr Factory kFactories[] = {
    {"csr", "crow_col_value", SparseLayout::kCsr},
    {"csc", "ccol_row_value", SparseLayout::kCsc},
    {"bsr", "crow_col_value", SparseLayout::kBsr},
    {"bsc", "ccol_row_value", SparseLayout::kBsc},
};

[[maybe_unused]] const bool has_factories = [] {
  for (const Factory& f : kFactories) {
    const std::string start = concat("aten::sparse_", f.name, "_tensor.", f.parts);
    add_factory(start, of_layout(f.layout, false));
    add_factory(concat(start, "_size"), of_layout(f.layout, true));
    add_factory(concat("aten::_sparse_", f.name, "_tensor_unsafe"), of_layout(f.layout, true));
  }
  return true;
}();

// The layout is an argument.
OP("aten::sparse_compressed_tensor.comp_plain_value_size")
    .impl([](Arguments v) {
      const SparseLayout layout = ops::sparse_layout(v[5].is_none() ? 0 : v[5].to_int());
      check(layout != SparseLayout::kCoo, "expected a compressed layout, but got sparse_coo");
      return make_compressed(layout, v, ops::Unbox<Dims>::get(v[3]), 4);
    })
    .composite()
    .dynamic_shape();
OP("aten::sparse_compressed_tensor.comp_plain_value")
    .impl([](Arguments v) {
      const SparseLayout layout = ops::sparse_layout(v[4].is_none() ? 0 : v[4].to_int());
      check(layout != SparseLayout::kCoo, "expected a compressed layout, but got sparse_coo");
      return make_compressed(layout, v, sizes_for_compressed(layout, v), 3);
    })
    .composite()
    .dynamic_shape();

IMPL(
    "aten::sparse_coo_tensor.indices aten::sparse_coo_tensor.indices_size aten::_sparse_coo_tensor_unsafe "
    "aten::sparse_compressed_tensor.comp_plain_value_size aten::sparse_compressed_tensor.comp_plain_value",
    ops::kComplexCPU, ops::kSameAsDense);

// --- queries

// A variant that returns one value.
#define GIVES(NAMES, EXPRESSION)                                    \
  IMPL(NAMES, kSparseComposite, [](Arguments v, Results& returns) { \
    [[maybe_unused]] const SparseTensor& x = sparse_of(v[0]);       \
    returns.emplace_back(EXPRESSION);                               \
  })

int64_t numel_of(const SparseTensor& x) {
  int64_t out = 1;
  for (const int64_t size : x.sizes()) out *= size;
  return out;
}

GIVES("prim::layout", static_cast<int64_t>(x.sparse_layout()));
GIVES("prim::is_sparse", x.is_coo());
GIVES("prim::is_sparse_csr", x.sparse_layout() == SparseLayout::kCsr);
GIVES("prim::dtype", static_cast<int64_t>(x.dtype()));
GIVES("prim::device", x.values().device());
GIVES("prim::is_cpu", x.device.is_host());
GIVES("prim::is_cuda", x.device.kind == kCUDA);
GIVES("prim::is_nested prim::is_mkldnn prim::is_quantized prim::is_meta prim::is_xpu prim::is_mps", false);
GIVES("prim::shape aten::size", ops::make_int_list(x.sizes()));
GIVES("aten::size.int", x.sizes()[axis_of(v[1].to_int(), x.ndim())]);
GIVES("aten::dim", x.ndim());
GIVES("aten::numel", numel_of(x));
GIVES("prim::itemsize", static_cast<int64_t>(size_of(x.dtype())));
GIVES("aten::is_floating_point", is_floating(x.dtype()));
GIVES("aten::is_complex", is_complex(x.dtype()));
GIVES("prim::requires_grad", autograd::requires_grad(x.values()));
IMPL("aten::len.Tensor", kSparseComposite, [](Arguments v, Results& returns) {
  const SparseTensor& x = sparse_of(v[0]);
  check(x.ndim() > 0, "len() of a 0-d tensor");
  returns.emplace_back(x.sizes()[0]);
});
IMPL("aten::is_same_size", kSparseComposite,
     [](Arguments v, Results& returns) { returns.emplace_back(sizes_of(v[0]) == sizes_of(v[1])); });

SPARSE_OP("aten::sparse_dim",
          [](Arguments v, Results& returns) { returns.emplace_back(sparse_of(v[0]).sparse_dim()); });
SPARSE_OP("aten::dense_dim", [](Arguments v, Results& returns) { returns.emplace_back(sparse_of(v[0]).dense_dim()); });
SPARSE_OP("aten::_dimI", [](Arguments v, Results& returns) { returns.emplace_back(coo_of(v[0]).sparse_dim()); });
SPARSE_OP("aten::_dimV", [](Arguments v, Results& returns) { returns.emplace_back(coo_of(v[0]).dense_dim()); });
SPARSE_OP("aten::_nnz", [](Arguments v, Results& returns) { returns.emplace_back(sparse_of(v[0]).nnz()); });
SPARSE_OP("aten::is_coalesced",
          [](Arguments v, Results& returns) { returns.emplace_back(coo_of(v[0]).is_coalesced()); });
SPARSE_OP("aten::coalesce", [](Arguments v, Results& returns) {
  const SparseTensor& x = coo_of(v[0]);
  returns.push_back(x.is_coalesced() ? v[0] : box(coalesced(x)));
});
SPARSE_OP("aten::_coalesce", [](Arguments v, Results& returns) { returns.push_back(box(coalesced(coo_of(v[0])))); });

// --- parts. Indices are copies, on the device of the values: writing to them must not move elements out of range.

Tensor copied_indices(const SparseTensor& x) {
  return x.device.is_host() ? x.indices().clone() : x.indices().to(x.device);
}

const SparseTensor& coalesced_of(const Value& value) {
  const SparseTensor& x = coo_of(value);
  check(x.is_coalesced(), "Cannot get indices or values on an uncoalesced tensor, please call .coalesce() first");
  return x;
}

SPARSE_OP("aten::_indices", [](Arguments v, Results& returns) { returns.emplace_back(copied_indices(coo_of(v[0]))); });
SPARSE_OP("aten::_values",
          [](Arguments v, Results& returns) { returns.emplace_back(ops::detach(coo_of(v[0]).values())); });
SPARSE_OP("aten::indices",
          [](Arguments v, Results& returns) { returns.emplace_back(copied_indices(coalesced_of(v[0]))); });

const Tensor& values_of(const Value& value) {
  return sparse_of(value).is_coo() ? coalesced_of(value).values() : sparse_of(value).values();
}
SPARSE_OP("aten::values", [](Arguments v, Results& returns) { returns.emplace_back(ops::alias(values_of(v[0]))); });

// Which of the two a compressed tensor has.
const SparseTensor& compressed_of(const Value& value, bool by_rows) {
  const SparseTensor& x = sparse_of(value);
  check(!x.is_coo() && ops::compresses_rows(x.sparse_layout()) == by_rows, "expected a tensor that compresses ",
        by_rows ? "rows" : "columns", ", but got ", x.describe());
  return x;
}
SPARSE_CPU_OP("aten::crow_indices", [](Arguments v, Results& returns) {
  returns.emplace_back(compressed_of(v[0], true).compressed_indices().clone());
});
SPARSE_CPU_OP("aten::col_indices",
              [](Arguments v, Results& returns) { returns.emplace_back(compressed_of(v[0], true).indices().clone()); });
SPARSE_CPU_OP("aten::ccol_indices", [](Arguments v, Results& returns) {
  returns.emplace_back(compressed_of(v[0], false).compressed_indices().clone());
});
SPARSE_CPU_OP("aten::row_indices", [](Arguments v, Results& returns) {
  returns.emplace_back(compressed_of(v[0], false).indices().clone());
});

// --- gradients: those of the values

IMPL("aten::requires_grad_", kSparseComposite, [](Arguments v, Results& returns) {
  autograd::set_requires_grad(sparse_of(v[0]).values(), v[1].to_bool());
  returns.push_back(v[0]);
});
IMPL("prim::grad", kSparseComposite, [](Arguments v, Results& returns) {
  const SparseTensor& x = sparse_of(v[0]);
  const Tensor grad = autograd::grad(x.values());
  returns.push_back(grad.defined() ? with_values(x, grad) : Value());
});
IMPL("aten::detach prim::data", kSparseComposite, [](Arguments v, Results& returns) {
  const SparseTensor& x = sparse_of(v[0]);
  returns.push_back(with_values(x, ops::detach(x.values())));
});

}  // namespace

// Values of any dtype; operators handle them.
void add_factory(const std::string& name, const ops::ReturnFn& function) {
  static std::deque<ops::ReturnFn> functions;  // of operators, which live on
  const ops::ReturnFn* const own = &functions.emplace_back(function);
  const ops::ImplBuilder complex(name, ops::kComplexCPU, ops::kSameAsDense);
  ops::OpBuilder(name, __FILE__, __LINE__)
      .impl([own](Arguments v) {
        Results returns;
        (*own)(v, returns);
        return returns.front();
      })
      .composite()
      .dynamic_shape();
}

}  // namespace tensord::kernels
