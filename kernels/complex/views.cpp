// Complex tensors as pairs of real numbers, conjugates, and tensors made of real and imaginary parts.
#include "core/ops/attributes/written.h"
#include "core/ops/complex.h"
#include "kernels/complex/elementwise.h"
#include "kernels/complex/parts.h"
#include "kernels/expr/compose.h"
#include "ops/complex.h"
#include "ops/pointwise.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using complex_loops::map_one;
using compose::Expr;
using gradient::of_first;
using ops::GradArgs;
using ops::OpKind;
using ops::WritesInto;

// --- views

OP("aten::view_as_real")
    .impl(as_real_pairs)
    .gradient(of_first([](const GradArgs&, const Tensor& g) { return ops::view_as_complex(ops::contiguous(g)); }))
    .saves("");
OP("aten::view_as_complex")
    .impl(as_complex)
    .gradient(of_first([](const GradArgs&, const Tensor& g) { return ops::view_as_real(g); }))
    .saves("");

Tensor real_part(const Tensor& x) { return ops::select(ops::view_as_real(x), -1, 0); }
IMPL("aten::real", ops::kComplexComposite, real_part);
OP("aten::imag")
    .impl([](const Tensor& x) -> Tensor {
      check(is_complex(x.dtype()), "imag is not implemented for tensors with non-complex dtypes.");
      return ops::select(ops::view_as_real(x), -1, 1);
    })
    .composite();

// --- conjugates, computed into new memory. PyTorch returns a view that is conjugated on reading.

OP("tensord::conj")
    .impl([](const Tensor& x) { return x; })
    .gradient(of_first([](const GradArgs&, const Tensor& g) { return g; }))
    .saves("");
IMPL("tensord::conj", ops::kComplexCPU, map_one<ComplexFormula::conj>).gradient([](const GradArgs& args) {
  return std::vector<Tensor>{ops::tensord_conj(args.grad_outputs[0])};
});
IMPL("tensord::conj", (ops::DispatchKey{Functionality::kComplex, kCUDA}), [](const Tensor& x) {
  const Tensor out = ops::clone(x);
  if (out.is_meta()) return out;
  const Tensor imaginary = ops::select(as_real_pairs(out), -1, 1);
  imaginary.copy_from(ops::neg(imaginary));
  return out;
});
Tensor resolved_conj(const Tensor& x) { return ops::tensord_conj(x); }
IMPL("aten::conj aten::conj_physical", ops::kComplexComposite, resolved_conj);
IMPL("aten::resolve_conj aten::resolve_neg aten::lift_fresh", ops::kComplexComposite,
     [](const Tensor& x) { return x; });
IMPL("aten::mH", ops::kComplexComposite, [](const Tensor& x) { return resolved_conj(ops::mT(x)); });
IMPL("aten::matrix_H", ops::kComplexComposite, [](const Tensor& x) {
  check(x.ndim() == 2, "tensor.H is only supported on matrices (2-D tensors). Got ", x.ndim(), "-D tensor.");
  return resolved_conj(ops::t(x));
});

// --- tensors made of parts

void check_parts(const char* op, const Tensor& a, const Tensor& b) {
  const auto is_wide = [](const Tensor& x) { return x.dtype() == DType::kFloat32 || x.dtype() == DType::kFloat64; };
  check(is_wide(a) && is_wide(b), "Expected both inputs to be Half, Float or Double tensors but got ",
        name_of(a.dtype()), " and ", name_of(b.dtype()));
  check(a.dtype() == b.dtype(), op, ": Expected object of scalar type ", name_of(a.dtype()), " but got scalar type ",
        name_of(b.dtype()), " for second argument");
}
// Broadcasts both parts.
std::pair<Tensor, Tensor> together(const Tensor& a, const Tensor& b) {
  const Dims sizes = broadcast_sizes(a.sizes(), b.sizes());
  return {ops::expand(a, sizes), ops::expand(b, sizes)};
}
OP("aten::complex")
    .impl([](const Tensor& a, const Tensor& b) {
      check_parts("complex", a, b);
      const auto [re, im] = together(a, b);
      return complex_parts::combine(re, im);
    })
    .gradient([](const GradArgs& args) {
      const Tensor& g = args.grad_outputs[0];
      std::vector<Tensor> out(2);
      if (args.needs(0)) out[0] = gradient::fit_gradient(ops::real(g), args.inputs[0].to_tensor());
      if (args.needs(1)) out[1] = gradient::fit_gradient(ops::imag(g), args.inputs[1].to_tensor());
      return out;
    })
    .saves("")
    .kind(OpKind::kComposite)
    .set<WritesInto>(WritesInto::kSameDType, WritesInto::kSharesWhole);
IMPL("aten::complex", ops::kComplexCPU, ops::kSameAsDense).linear();
OP("aten::polar")
    .impl([](const Tensor& size, const Tensor& angle) {
      check_parts("polar", size, angle);
      return ops::complex((Expr(size) * gradient::cos(angle)).tensor(), (Expr(size) * gradient::sin(angle)).tensor());
    })
    .composite()
    .set<WritesInto>(WritesInto::kSameDType, WritesInto::kSharesWhole);

}  // namespace
}  // namespace tensord::kernels
