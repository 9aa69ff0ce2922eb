#include "python/binding/convert.h"
#include "python/binding/interrupt.h"
#include "python/binding/memory.h"
#include "python/binding/operator.h"
#include "python/binding/run_op.h"
#include "python/binding/tensor_slots.h"
#include "python/binding/trace.h"

// x[…] and x[…] = value. Integers, slices, None and … make a view; tensors, lists and masks then index it (aten::index,
// aten::index_put_). As in PyTorch, except that a mask of several dimensions may stand next to any other index, as in
// NumPy.
namespace tensord::python {
namespace {

using ops::get_op;

Tensor select(const Tensor& x, int64_t dim, int64_t index) {
  static const ops::Op& op = get_op("aten::select.int");
  const int64_t size = x.sizes()[static_cast<size_t>(dim)];
  if (index < -size || index >= size) {
    fail(ErrorCode::kOutOfRange, "index ", index, " is out of bounds for dimension ", dim, " with size ", size);
  }
  return run_op(op, {x, dim, index});
}

Tensor slice(const Tensor& x, int64_t dim, PyObject* range) {
  static const ops::Op& op = get_op("aten::slice.Tensor");
  Py_ssize_t start, stop, step;
  if (PySlice_Unpack(range, &start, &stop, &step) != 0) throw nb::python_error();
  check(step > 0, "index: the step of a slice must be greater than zero");
  const int64_t size = x.sizes()[static_cast<size_t>(dim)];
  if (start == 0 && stop >= size && step == 1) return x;
  return run_op(op, {x, dim, static_cast<int64_t>(start), static_cast<int64_t>(stop), static_cast<int64_t>(step)});
}

Tensor unsqueeze(const Tensor& x, int64_t dim) {
  static const ops::Op& op = get_op("aten::unsqueeze");
  return run_op(op, {x, dim});
}

Tensor alias(const Tensor& x) {
  static const ops::Op& op = get_op("aten::alias");
  return run_op(op, {x});
}

bool is_mask(const Tensor& tensor) { return tensor.dtype() == DType::kBool || tensor.dtype() == DType::kUInt8; }

struct Indexed {
  Tensor view;
  std::vector<Value> indices;  // by dimension of the view; empty: the view is the result
  bool is_masked = true;       // whether only masks chose the elements
};

class Indexer {
 public:
  explicit Indexer(const Tensor& x) : whole_(x), view_(x) {}

  Indexed run(PyObject* index) {
    if (PyTuple_Check(index)) {
      for (size_t i = 0; i < tuple_size(index); ++i) items_.push_back(tuple_item(index, i));
    } else {
      items_.push_back(index);
    }
    count_dims();
    for (PyObject* item : items_) apply(item);
    return {view_, std::move(indices_), is_masked_};
  }

 private:
  void count_dims() {
    int64_t named = 0;
    bool has_ellipsis = false;
    for (PyObject*& item : items_) {
      if (item == Py_Ellipsis) {
        if (has_ellipsis) fail(ErrorCode::kOutOfRange, "index: an index can only have a single ellipsis ('...')");
        has_ellipsis = true;
      } else if (item != Py_None && !PyBool_Check(item)) {
        if (PyLong_Check(item) || PySlice_Check(item)) {
          ++named;
        } else {
          item = as_tensor(item);
          const Tensor& tensor = tensor_in(item);
          named += is_mask(tensor) ? tensor.ndim() : 1;
        }
      }
    }
    if (named > whole_.ndim()) {
      fail(ErrorCode::kOutOfRange, "index: too many indices for tensor of dimension ", whole_.ndim());
    }
    skipped_ = whole_.ndim() - named;
  }

  // Converts a list, an array or an integer-like object to a tensor and keeps it until the end.
  PyObject* as_tensor(PyObject* item) {
    Tensor made;
    static const ops::Op& to = get_op("aten::to.dtype");
    if (is_tensor(item)) {
      if (tensor_in(item).dtype() != DType::kInt32) return item;
      kept_.push_back(wrap(run_op(to, {tensor_in(item), DType::kInt64, false, false, Value()})));
      return kept_.back().ptr();
    }
    if (is_index(item)) {
      made = Tensor::scalar(read_int(item));
    } else if (PyList_Check(item) || PyTuple_Check(item) || has_buffer(item)) {
      made = make_tensor(nb::handle(item), std::nullopt);
      if (made.numel() == 0 && is_floating(made.dtype())) made = run_op(to, {made, DType::kInt64, false, false, Value()});
    } else {
      PyErr_Format(PyExc_TypeError, "index: only integers, slices, None, ..., lists, arrays and tensors are indices, not %s",
                   class_of(item).c_str());
      throw nb::python_error();
    }
    kept_.push_back(wrap(made));
    return kept_.back().ptr();
  }

  void apply(PyObject* item) {
    if (item == Py_Ellipsis) {
      dim_ += skipped_;
    } else if (item == Py_None) {
      view_ = unsqueeze(view_, dim_++);
    } else if (PyBool_Check(item)) {
      add_bool(item == Py_True);
    } else if (PyLong_Check(item)) {
      view_ = select(view_, dim_, read_int(item));
    } else if (PySlice_Check(item)) {
      view_ = slice(view_, dim_++, item);
    } else {
      add_tensor(tensor_in(item));
    }
  }

  void add_bool(bool value) {
    view_ = unsqueeze(view_, dim_);
    Tensor index = Tensor::empty(Dims{value ? 1 : 0}, DType::kInt64);
    if (value) *index.data<int64_t>() = 0;
    is_masked_ &= items_.size() == 1;
    add_index(index);
  }

  void add_tensor(const Tensor& tensor) {
    if (tensor.ndim() == 0 && tensor.dtype() == DType::kBool) {
      record_values_read();
      return add_bool(tensor.item_bool());
    }
    if (tensor.ndim() == 0 && is_integral(tensor.dtype(), false) && tensor.dtype() != DType::kUInt8) {
      record_values_read();
      view_ = select(view_, dim_, tensor.item_int());
      return;
    }
    is_masked_ &= is_mask(tensor);
    if (!is_mask(tensor) || tensor.ndim() <= 1 || items_.size() == 1) {
      if (items_.size() == 1 && is_mask(tensor)) check_mask(tensor);
      return add_index(tensor);
    }
    check_mask(tensor);
    static const ops::Op& positions = get_op("aten::nonzero_numpy");
    std::vector<Value> found;
    const Value argument(tensor);
    ops::run(positions, std::span(&argument, 1), found);
    for (const Value& one : found.front().to_list()->items) add_index(one.to_tensor());
  }

  void check_mask(const Tensor& mask) const {
    for (int64_t i = 0; i < mask.ndim(); ++i) {
      const size_t at = static_cast<size_t>(dim_ + i);
      if (at >= view_.sizes().size() || mask.sizes()[static_cast<size_t>(i)] != view_.sizes()[at]) {
        fail(ErrorCode::kOutOfRange, "index: the shape of the mask ", to_string(mask.sizes()), " at index ", i,
             " does not match the shape of the indexed tensor ", to_string(view_.sizes()), " at index ", at);
      }
    }
  }

  void add_index(const Tensor& index) {
    indices_.resize(static_cast<size_t>(dim_));
    indices_.emplace_back(index);
    ++dim_;
  }

  const Tensor& whole_;
  Tensor view_;
  std::vector<PyObject*> items_;
  std::vector<nb::object> kept_;
  std::vector<Value> indices_;
  int64_t dim_ = 0, skipped_ = 0;
  bool is_masked_ = true;
};

Value index_list(std::vector<Value> indices) {
  static const ops::TypePtr element = ops::optional_type(ops::tensor_type());
  return ops::make_list(element, std::move(indices));
}

PyObject* get_item(PyObject* self, PyObject* index) {
  try {
    static const ops::Op& op = get_op("aten::index.Tensor");
    const Tensor& x = tensor_in(self);
    Indexed found = Indexer(x).run(index);
    if (!found.indices.empty()) {
      const Value list = index_list(std::move(found.indices));
      return wrap(interruptible([&] { return run_op(op, {found.view, list}); })).release().ptr();
    }
    if (found.view.is_same(x)) found.view = alias(x);
    return wrap(std::move(found.view)).release().ptr();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

// Removes leading dimensions of size 1, which assignment ignores.
Tensor without_leading_ones(const Tensor& value, int64_t max_dims) {
  static const ops::Op& reshape = get_op("aten::reshape");
  size_t first = 0;
  while (value.ndim() - static_cast<int64_t>(first) > max_dims && value.sizes()[first] == 1) ++first;
  if (first == 0) return value;
  return run_op(reshape, {value, ops::make_int_list(value.sizes().span().subspan(first))});
}

Tensor value_tensor(const Tensor& x, PyObject* value) {
  if (is_tensor(value)) return tensor_in(value);
  return make_tensor(nb::handle(value), x.dtype());
}

void assign(const Tensor& x, PyObject* index, PyObject* value) {
  static const ops::Op& copy = get_op("aten::copy_");
  static const ops::Op& put = get_op("aten::index_put_");
  static const ops::Op& select_all = get_op("aten::index.Tensor");
  Indexed found = Indexer(x).run(index);
  const Tensor values = value_tensor(x, value);
  if (found.indices.empty()) {
    interruptible([&] { run_op(copy, {found.view, without_leading_ones(values, found.view.ndim()), false}); });
    return;
  }
  // A single value that masks assign is converted to the tensor's dtype, as in masked_fill; other values must have it.
  const bool takes_dtype = found.is_masked && values.numel() == 1 && values.dtype() != x.dtype();
  const Value list = index_list(std::move(found.indices));
  interruptible([&] {
    static const ops::Op& to = get_op("aten::to.dtype");
    Tensor fitting = takes_dtype ? run_op(to, {values, x.dtype(), false, false, Value()}) : values;
    if (values.ndim() > 0 && values.sizes()[0] == 1) {
      const int64_t max_dims = [&] {
        const NoGradGuard guard;
        return run_op(select_all, {found.view, list}).ndim();
      }();
      fitting = without_leading_ones(fitting, max_dims);
    }
    run_op(put, {found.view, list, fitting, false});
  });
}

int set_item(PyObject* self, PyObject* index, PyObject* value) {
  try {
    if (!value) {
      PyErr_SetString(PyExc_TypeError, "elements of a tensor cannot be deleted");
      return -1;
    }
    assign(tensor_in(self), index, value);
    return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

Py_ssize_t length(PyObject* self) {
  const Tensor& x = tensor_in(self);
  if (x.ndim() == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
  }
  record_sizes_read(x);
  return static_cast<Py_ssize_t>(x.sizes()[0]);
}

PyObject* iterate(PyObject* self) {
  static const Operator* unbind = find_operator("aten::unbind");
  if (tensor_in(self).ndim() == 0) {
    PyErr_SetString(PyExc_TypeError, "iteration over a 0-d tensor");
    return nullptr;
  }
  const nb::object items = nb::steal(call_operator(*unbind, &self, 1));
  return items.is_valid() ? PyObject_GetIter(items.ptr()) : nullptr;
}

int contains(PyObject* self, PyObject* item) {
  static const Operator* equal = find_operator("aten::eq");
  static const Operator* any = find_operator("aten::any");
  PyObject* pair[] = {self, item};
  const nb::object same = nb::steal(call_operator(*equal, pair, 2));
  if (!same.is_valid()) return -1;
  PyObject* one = same.ptr();
  const nb::object found = nb::steal(call_operator(*any, &one, 1));
  return found.is_valid() ? PyObject_IsTrue(found.ptr()) : -1;
}

template <class F>
void* slot(F function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

void add_index_slots(std::vector<PyType_Slot>& slots) {
  const PyType_Slot found[] = {{Py_mp_subscript, slot(get_item)}, {Py_mp_ass_subscript, slot(set_item)},
                               {Py_mp_length, slot(length)},      {Py_tp_iter, slot(iterate)},
                               {Py_sq_contains, slot(contains)}};
  slots.insert(slots.end(), std::begin(found), std::end(found));
}

}  // namespace tensord::python
