// Transforms on a CUDA device by cuFFT, which takes up to three dimensions at a time. Those that are transformed are
// put last, in dense memory.
#include <algorithm>

#include "core/tensor/complex.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/workspace.h"
#include "kernels/fft/transform.h"
#include "ops/complex.h"
#include "ops/pointwise.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

// The dimensions in the order of `order`, which puts `dims` last.
struct Moved {
  Moved(int64_t ndim, const Dims& dims) {
    for (int64_t d = 0; d < ndim; ++d) {
      if (std::ranges::find(dims, d) == dims.end()) order.push_back(d);
    }
    for (const int64_t d : dims) order.push_back(d);
  }
  bool is_same() const { return std::ranges::is_sorted(order); }
  Tensor there(const Tensor& x) const {
    Dims sizes = x.sizes(), strides = x.strides();
    for (size_t i = 0; i < order.size(); ++i) {
      sizes[i] = x.size(order[i]);
      strides[i] = x.stride(order[i]);
    }
    return x.as_view(sizes, strides, x.offset());
  }
  Tensor back(const Tensor& x) const {
    Dims sizes = x.sizes(), strides = x.strides();
    for (size_t i = 0; i < order.size(); ++i) {
      sizes[static_cast<size_t>(order[i])] = x.sizes()[i];
      strides[static_cast<size_t>(order[i])] = x.strides()[i];
    }
    return x.as_view(sizes, strides, x.offset());
  }
  Dims order;
};

// cuFFT reads real numbers in pairs too.
bool is_usable(const Tensor& x) {
  const size_t pair = size_of(complex_dtype(real_dtype(x.dtype())));
  return x.is_contiguous() && reinterpret_cast<uintptr_t>(x.raw_data()) % pair == 0;
}

// `from` and `to` are dense; the last `rank` dimensions are transformed.
void queue_fft(FourierKind kind, const Tensor& from, const Tensor& to, size_t rank, bool forward) {
  const Tensor& full = kind == FourierKind::kComplexToReal ? to : from;
  FftJob job;
  job.is_double = real_dtype(full.dtype()) == DType::kFloat64;
  job.is_forward = forward;
  job.has_real_input = kind == FourierKind::kRealToComplex;
  job.has_real_output = kind == FourierKind::kComplexToReal;
  job.rank = static_cast<int>(rank);
  job.batches = full.numel();
  const auto sizes = full.sizes().span().last(rank);
  for (size_t d = 0; d < rank; ++d) {
    job.sizes[d] = sizes[d];
    job.batches /= sizes[d];
  }
  job.in = from.raw_data(), job.out = to.raw_data();
  const ops::KernelContext context(full.device());
  const cuda::DeviceScope scope(full.device().index);
  cuda::check_cuda(library_table().plan_fft(job), "a Fourier transform");
  const Workspace workspace(job.workspace_bytes, full.device());
  job.workspace = workspace.at();
  cuda::check_cuda(library_table().fft(job, static_cast<cuda::StreamHandle>(context.stream->handle())),
                   "a Fourier transform");
}

// Half a spectrum has no imaginary parts where an element is its own opposite. The processor's transform does not read
// them; cuFFT's may.
void clear_own_opposites(const Tensor& half, int64_t n) {
  const Tensor imaginary = ops::select(ops::view_as_real(half), -1, 1);
  ops::zero_(ops::select(imaginary, -1, 0));
  if (n % 2 == 0) ops::zero_(ops::select(imaginary, -1, n / 2));
}

// Transforms `dims` of x: into `out` if it lies as the library writes it, else into other memory. Returns where.
Tensor transformed(FourierKind kind, const Tensor& x, const Tensor& out, const Dims& dims, bool forward) {
  const Moved moved(x.ndim(), dims);
  const Tensor to_like = moved.there(out);
  const Tensor to =
      moved.is_same() && is_usable(out) ? out : Tensor::empty(to_like.sizes(), to_like.dtype(), to_like.device());
  Tensor from = moved.there(x);
  if (kind == FourierKind::kComplexToReal) {
    from = Tensor::empty(from.sizes(), from.dtype(), from.device());  // the library writes there
    from.copy_from(moved.there(x));
    clear_own_opposites(from, to.sizes().back());
  } else if (!is_usable(from)) {
    from = kind == FourierKind::kComplex ? to : Tensor::empty(from.sizes(), from.dtype(), from.device());
    from.copy_from(moved.there(x));
  }
  queue_fft(kind, from, to, dims.size(), forward);
  return moved.is_same() ? to : moved.back(to);
}

void transform_on_host(FourierKind kind, const Tensor& in, const Tensor& out, const Dims& dims, bool forward,
                       double scale) {
  const Tensor from = in.to(Device{}), to = Tensor::empty(out.sizes(), out.dtype());
  if (kind == FourierKind::kComplex)
    fourier_passes(from, to, dims, forward, scale);
  else
    fourier_pass(kind, from, to, dims[0], forward, scale);
  out.copy_from(to);
}

}  // namespace

void fourier_cuda(FourierKind kind, const Tensor& in, const Tensor& out, const Dims& given, bool forward,
                  double scale) {
  if (*library_table().why_no_fft() != '\0') return transform_on_host(kind, in, out, given, forward, scale);
  const Tensor& full = kind == FourierKind::kComplexToReal ? out : in;
  Dims dims;  // those of one element stay as they are
  for (const int64_t dim : given) {
    if (full.size(dim) != 1) dims.push_back(wrap_dim(dim, full.ndim()));
  }
  Tensor x = in;
  while (!dims.empty()) {
    Dims group;
    while (!dims.empty() && group.size() < kMaxFftRank && std::ranges::find(group, dims.back()) == group.end()) {
      group.push_back(dims.back());
      dims = Dims(dims.span().first(dims.size() - 1));
    }
    std::ranges::sort(group);
    x = transformed(kind, x, out, group, forward);
  }
  if (!x.is_same(out)) out.copy_from(x);
  if (scale != 1) ops::mul_(out, ops::Scalar(scale));
}

}  // namespace tensord::kernels
