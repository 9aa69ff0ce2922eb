#include <nanobind/stl/string.h>

#include "python/binding/python.h"
#include "core/autograd/function.h"

// autograd.Function written in Python. Python defines the class with forward and backward; this file has the call and
// ctx.
namespace tensord::python {
namespace {

using autograd::FunctionCall;
using autograd::FunctionContext;

constexpr const char* kPart = "python";

// The ctx of forward and backward. It points into the graph only while one of them runs.
struct Context {
  FunctionContext* context = nullptr;
  FunctionContext& get() const {
    if (!context) fail(ErrorCode::kFailedPrecondition, "ctx can be used only while forward or backward run");
    return *context;
  }
};

class ContextScope {
 public:
  ContextScope(nb::handle object, FunctionContext& context) : python_(nb::cast<Context&>(object)), before_(python_.context) {
    python_.context = &context;
  }
  ~ContextScope() { python_.context = before_; }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  Context& python_;
  FunctionContext* before_;
};

std::vector<Tensor> tensors_of(const nb::args& given, const char* what) {
  std::vector<Tensor> out;
  for (nb::handle item : given) {
    if (item.is_none()) {
      out.emplace_back();
    } else if (is_tensor(item.ptr())) {
      out.push_back(tensor_in(item.ptr()));
    } else {
      throw nb::type_error((std::string(what) + ": expected tensors").c_str());
    }
  }
  return out;
}

std::vector<Tensor> run_backward(FunctionContext& context, std::vector<Tensor> gradients) {
  const nb::gil_scoped_acquire gil;
  const auto* held = static_cast<HeldObject*>(context.data.at(kPart).to_opaque().get());
  const nb::handle pair = held->held.get();
  const nb::object function = pair[0], ctx = pair[1];
  const ContextScope scope(ctx, context);
  nb::list arguments;
  arguments.append(ctx);
  for (const Tensor& gradient : gradients) arguments.append(wrap(gradient));
  const nb::object tuple = nb::steal(PyList_AsTuple(arguments.ptr()));
  const nb::object result = nb::steal(PyObject_CallObject(nb::object(function.attr("backward")).ptr(), tuple.ptr()));
  if (!result.is_valid()) throw nb::python_error();
  if (PyTuple_Check(result.ptr()) || PyList_Check(result.ptr())) {
    return tensors_of(nb::args(nb::steal<nb::args>(PySequence_Tuple(result.ptr()))), "backward");
  }
  return tensors_of(nb::steal<nb::args>(PyTuple_Pack(1, result.ptr())), "backward");
}

// Adds the autograd history to the tensors among the results; other results stay as they are.
nb::object finish(FunctionCall& call, const nb::object& result) {
  const bool is_tuple = PyTuple_Check(result.ptr());
  std::vector<Tensor> tensors;
  nb::list items;
  if (is_tuple) {
    for (nb::handle item : result) items.append(item);
  } else {
    items.append(result);
  }
  for (nb::handle item : items) {
    if (is_tensor(item.ptr())) tensors.push_back(tensor_in(item.ptr()));
  }
  const std::vector<Tensor> before = tensors;
  call.finish(tensors);
  nb::list out;
  size_t next = 0;
  for (nb::handle item : items) {
    if (!is_tensor(item.ptr())) {
      out.append(item);
      continue;
    }
    const bool is_same = tensors[next].is_same(before[next]);
    out.append(is_same ? nb::borrow(item) : wrap(tensors[next]));
    ++next;
  }
  return is_tuple ? nb::steal(PyList_AsTuple(out.ptr())) : nb::object(out[0]);
}

nb::object apply(nb::handle function, nb::handle ctx, const nb::args& arguments) {
  const bool is_once = nb::cast<bool>(nb::getattr(function.attr("backward"), "_is_once_differentiable", nb::bool_(false)));
  FunctionCall call(nb::cast<std::string>(function.attr("__name__")), run_backward, is_once);
  for (nb::handle argument : arguments) {
    is_tensor(argument.ptr()) ? call.add_argument(tensor_in(argument.ptr())) : call.add_other();
  }
  call.context().data[kPart] = Value(IntrusivePtr<ops::OpaqueObject>(
      make_intrusive<HeldObject>(Held(nb::make_tuple(nb::borrow(function), nb::borrow(ctx))))));
  const ContextScope scope(ctx, call.context());
  const nb::object result = [&] {
    const NoGradGuard guard;
    return nb::object(function.attr("forward")(ctx, *arguments));
  }();
  return finish(call, result);
}

}  // namespace

void bind_function_class(nb::module_& module) {
  auto context = nb::class_<Context>(module, "_FunctionContext", nb::dynamic_attr());
  context.def(nb::init<>());
  context.def("save_for_backward", [](Context& self, const nb::args& tensors) {
    self.get().save_for_backward(tensors_of(tensors, "save_for_backward"));
  });
  context.def("mark_dirty",
              [](Context& self, const nb::args& tensors) { self.get().mark_dirty(tensors_of(tensors, "mark_dirty")); });
  context.def("mark_non_differentiable", [](Context& self, const nb::args& tensors) {
    self.get().mark_non_differentiable(tensors_of(tensors, "mark_non_differentiable"));
  });
  context.def("set_materialize_grads", [](Context& self, bool value) { self.get().set_materialize_grads(value); },
              nb::arg("value"));
  // A checkpoint computes them again, perhaps on a thread that waits for the GIL while it has the checkpoint's lock.
  context.def_prop_ro("saved_tensors", [](const Context& self) {
    const FunctionContext& own = self.get();
    return wrap(without_gil([&] { return own.saved(); }));
  });
  context.def("_needs_input_grad", [](const Context& self, size_t argument) { return self.get().needs_input_grad(argument); });
  module.def("_apply_function", [](nb::handle function, nb::handle ctx, const nb::args& arguments) {
    return apply(function, ctx, arguments);
  });
}

}  // namespace tensord::python
