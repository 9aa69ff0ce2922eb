#include "core/jit/runtime/step/planned_step.h"

#include <nanobind/stl/string.h>

#include "python/binding/interrupt.h"
#include "python/binding/python.h"
#include "core/base/error.h"

// Planned training steps. _planned_step.py finds the objects that a step depends on.
namespace tensord::python {
namespace {

std::vector<Tensor> read_tensors(nb::handle given) {
  std::vector<Tensor> out;
  for (nb::handle item : given) out.push_back(tensor_in(item.ptr()));
  return out;
}

class PythonStep {
 public:
  PythonStep(nb::handle tensors, bool keeps_bits) : step_(read_tensors(tensors), {}, options(keeps_bits)) {}

  // `loss` takes no arguments. A non-empty `unsupported_reason` says why this run must be interpreted.
  nb::object run(nb::handle batch, nb::object loss, std::string unsupported_reason) {
    if (is_running_) fail(ErrorCode::kFailedPrecondition, "plan_step: the step is running, in this thread or another");
    const std::vector<Tensor> tensors = read_tensors(batch);
    unsupported_reason_ = std::move(unsupported_reason);
    const Held held(std::move(loss));
    is_running_ = true;
    struct Ended {
      bool& is_running;
      ~Ended() { is_running = false; }
    } const ended{is_running_};
    return wrap(interruptible([&] {
      const std::function<bool()> asks = is_interrupted;
      return step_.run(
          tensors, [&] { return call(held); }, {}, &asks);
    }));
  }
  const jit::PlannedStepReport& report() const { return step_.report(); }

 private:
  jit::PlannedStepOptions options(bool keeps_bits) const {
    jit::PlannedStepOptions out;
    out.keeps_bits = keeps_bits;
    out.find_unsupported_reason = [this] { return unsupported_reason_; };
    out.takes_constants = false;
    return out;
  }
  static Tensor call(const Held& loss) {
    const nb::gil_scoped_acquire gil;
    const nb::object result = loss.get()();
    if (!is_tensor(result.ptr())) {
      PyErr_Format(PyExc_TypeError, "plan_step: the function must give the loss, a tensor, not %s",
                   class_of(result.ptr()).c_str());
      throw nb::python_error();
    }
    return tensor_in(result.ptr());
  }

  std::string unsupported_reason_;
  jit::PlannedStep step_;
  bool is_running_ = false;
};

nb::dict report_of(const PythonStep& self) {
  const jit::PlannedStepReport& report = self.report();
  nb::dict out;
  out["planned"] = report.planned;
  out["interpreted"] = report.interpreted;
  out["checked"] = report.checked;
  out["identical"] = report.identical;
  out["is_planned"] = report.is_planned;
  out["reason"] = report.reason;
  out["is_fused"] = report.is_fused;
  out["calls"] = report.calls;
  out["arena_bytes"] = report.arena_bytes;
  out["error"] = report.error;
  return out;
}

}  // namespace

void bind_planned_step(nb::module_& module) {
  auto type = nb::class_<PythonStep>(module, "_PlannedStep");
  type.def(nb::init<nb::handle, bool>(), nb::arg("tensors"), nb::arg("keeps_bits"));
  type.def("run", &PythonStep::run, nb::arg("batch"), nb::arg("loss"), nb::arg("unsupported_reason"));
  type.def_prop_ro("interpreted", [](const PythonStep& self) { return self.report().interpreted; });
  type.def_prop_ro("report", report_of);
}

}  // namespace tensord::python
