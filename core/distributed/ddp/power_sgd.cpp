#include "core/distributed/ddp/power_sgd.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/error.h"
#include "core/ops/run.h"
#include "ops/linear.h"
#include "ops/pointwise.h"
#include "ops/random.h"
#include "ops/view.h"

namespace tensord::distributed {
namespace {

using ops::Value;

// A part of a bucket that is sent as two low-rank factors.
struct Matrix {
  Tensor view;  // [n, m], row-major
  Tensor p, q;  // [n, rank], [m, rank]
};

int64_t columns_of(int64_t n, int64_t m, int64_t rank) { return std::min({n, m, rank}); }

Tensor zeros_like(const Tensor& tensor) {
  const Tensor out = Tensor::empty(tensor.sizes(), tensor.dtype());
  std::memset(out.raw_data(), 0, out.size_bytes());
  return out;
}

// Applies Gram-Schmidt twice, in float64, because only the span of the columns matters. A column that depends linearly
// on earlier ones becomes zero.
void orthonormalize(const Tensor& matrix) {
  const Tensor wide = matrix.to(DType::kFloat64).contiguous();
  const int64_t rows = wide.size(0), columns = wide.size(1);
  double* const data = wide.data<double>();
  const auto dot = [&](int64_t a, int64_t b) {
    double sum = 0;
    for (int64_t i = 0; i < rows; ++i) sum += data[i * columns + a] * data[i * columns + b];
    return sum;
  };
  const auto scale = [&](int64_t column, double by) {
    for (int64_t i = 0; i < rows; ++i) data[i * columns + column] *= by;
  };
  for (int64_t c = 0; c < columns; ++c) {
    const double before = std::sqrt(dot(c, c));
    if (before > 0) scale(c, 1 / before);
    for (int round = 0; round < 2; ++round) {
      for (int64_t other = 0; other < c; ++other) {
        const double along = dot(c, other);
        for (int64_t i = 0; i < rows; ++i) data[i * columns + c] -= along * data[i * columns + other];
      }
    }
    const double norm = std::sqrt(dot(c, c));
    // A remainder below the rounding error of the original column is noise.
    const bool is_lost = norm < 1e-7 && c > 0;
    scale(c, norm > 0 && !is_lost ? 1 / norm : 0);
  }
  matrix.copy_from(wide);
}

// Several tensors in one message.
struct Message {
  Tensor flat;
  std::vector<Tensor> parts;

  explicit Message(DType dtype, const std::vector<Dims>& sizes) {
    int64_t count = 0;
    for (const Dims& of : sizes) count += checked_numel(of);
    flat = Tensor::empty(Dims{count}, dtype);
    int64_t at = 0;
    for (const Dims& of : sizes) {
      parts.push_back(flat.as_view(of, contiguous_strides(of), at));
      at += parts.back().numel();
    }
  }
};

void divide(const Tensor& flat, int size) {
  scale_elements(flat.dtype(), flat.raw_data(), static_cast<size_t>(flat.numel()), 1.0 / size);
}

// numpy's RandomState(seed).randint(10^9), from which PyTorch seeds each draw.
uint64_t next_seed(ops::Generator& seeds) {
  for (;;) {
    const uint32_t bits = seeds.bits32() & ((1u << 30) - 1);
    if (bits < 1'000'000'000) return bits;
  }
}

}  // namespace

struct PowerSgd::Pass {
  GradBucket bucket;
  Tensor before;  // the bucket plus the error of the previous pass; the result is compared with it
  std::vector<Matrix> matrices;
  std::vector<Tensor> plain;
  std::optional<Message> vectors, ps, qs;
  WorkPtr vectors_work, ps_work;
};

PowerSgd::PowerSgd(PowerSgdOptions options) : options_(options), seeds_(options.seed) {
  check(options.rank >= 1, "PowerSGD: rank must be at least 1, got ", options.rank);
  check(options.min_compression_rate > 0, "PowerSGD: min_compression_rate must be above 0");
  check(
      options.start_step > 1 || !(options.has_error_feedback || options.has_warm_start),
      "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD can only "
      "be applied after the first two iterations in DDP.");
}

CommHook PowerSgd::hook() {
  return [this](ProcessGroup& group, const GradBucket& bucket) { return start(group, bucket); };
}

// Initializes Q, orthonormal: the columns of the previous pass (warm start), or random ones.
void PowerSgd::begin_columns(Memory& memory, const Pass& pass) {
  bool is_known = options_.has_warm_start && memory.columns.size() == pass.matrices.size();
  for (size_t i = 0; is_known && i < pass.matrices.size(); ++i) {
    is_known = memory.columns[i].sizes() == pass.matrices[i].q.sizes();
  }
  ops::Generator generator(0);
  if (!is_known) generator.set_seed(next_seed(seeds_));
  const ops::GeneratorGuard guard(generator);
  for (size_t i = 0; i < pass.matrices.size(); ++i) {
    const Tensor& q = pass.matrices[i].q;
    if (is_known) {
      q.copy_from(memory.columns[i]);
    } else {
      q.copy_from(ops::normal_(zeros_like(q), 0.0, 1.0));
    }
    orthonormalize(q);
  }
}

std::function<void()> PowerSgd::start(ProcessGroup& group, const GradBucket& bucket) {
  if (!bucket.flat.device().is_host()) {
    fail(ErrorCode::kUnimplemented, "PowerSGD: gradients are on ", to_string(bucket.flat.device()),
         ", expected memory of the CPU");
  }
  if (step_ < options_.start_step) {
    if (bucket.is_last) ++step_;
    divide(bucket.flat, group.size());
    return [work = group.all_reduce(bucket.flat)] { work->wait(); };
  }
  check(is_floating(bucket.flat.dtype()), "PowerSGD: gradients of ", name_of(bucket.flat.dtype()));
  const auto pass = std::make_shared<Pass>();
  pass->bucket = bucket;
  Memory& memory = memories_[bucket.index];
  if (options_.has_error_feedback) {
    if (memory.error.defined() && memory.error.numel() == bucket.flat.numel()) {
      ops::add_(bucket.flat, memory.error);
    }
    pass->before = bucket.flat.clone();
  }
  std::vector<Dims> plain_sizes, p_sizes, q_sizes;
  for (const Tensor& view : bucket.views) {
    const int64_t n = view.ndim() > 0 ? view.size(0) : 1, m = n > 0 ? view.numel() / n : 0;
    const int64_t rank = columns_of(n, m, options_.rank);
    const bool shrinks =
        static_cast<double>((n + m) * rank) * options_.min_compression_rate < static_cast<double>(n * m);
    if (!shrinks) {
      pass->plain.push_back(view);
      plain_sizes.push_back(view.sizes());
      continue;
    }
    pass->matrices.push_back({view, {}, {}});
    p_sizes.push_back({n, rank});
    q_sizes.push_back({m, rank});
  }
  const DType dtype = bucket.flat.dtype();
  pass->vectors.emplace(dtype, plain_sizes), pass->ps.emplace(dtype, p_sizes), pass->qs.emplace(dtype, q_sizes);
  for (size_t i = 0; i < pass->plain.size(); ++i) pass->vectors->parts[i].copy_from(pass->plain[i]);
  for (size_t i = 0; i < pass->matrices.size(); ++i) {
    pass->matrices[i].p = pass->ps->parts[i], pass->matrices[i].q = pass->qs->parts[i];
  }
  begin_columns(memory, *pass);
  for (const Matrix& matrix : pass->matrices) {
    const Tensor rows = ops::reshape(matrix.view, Dims{matrix.p.size(0), matrix.q.size(0)});
    matrix.p.copy_from(ops::mm(rows, matrix.q));
  }
  pass->vectors_work = group.all_reduce(pass->vectors->flat);
  pass->ps_work = group.all_reduce(pass->ps->flat);
  return [this, &group, pass] { finish(group, *pass); };
}

void PowerSgd::finish(ProcessGroup& group, Pass& pass) {
  pass.vectors_work->wait();
  divide(pass.vectors->flat, group.size());
  for (size_t i = 0; i < pass.plain.size(); ++i) pass.plain[i].copy_from(pass.vectors->parts[i]);
  pass.ps_work->wait();
  for (const Matrix& matrix : pass.matrices) {
    orthonormalize(matrix.p);
    const Tensor rows = ops::reshape(matrix.view, Dims{matrix.p.size(0), matrix.q.size(0)});
    matrix.q.copy_from(ops::mm(ops::t(rows), matrix.p));
  }
  group.all_reduce(pass.qs->flat)->wait();
  divide(pass.qs->flat, group.size());
  Memory& memory = memories_[pass.bucket.index];
  memory.columns.clear();
  for (const Matrix& matrix : pass.matrices) {
    const Tensor product = ops::mm(matrix.p, ops::t(matrix.q));
    matrix.view.copy_from(ops::reshape(product, matrix.view.sizes()));
    memory.columns.push_back(matrix.q.clone());
  }
  if (options_.has_error_feedback) {
    memory.error = ops::sub(pass.before, pass.bucket.flat);
  }
  if (pass.bucket.is_last) ++step_;
}

Value PowerSgd::state_dict() const {
  const auto dict = make_intrusive<ops::DictObject>(ops::string_type(), ops::any_type());
  const auto by_bucket = make_intrusive<ops::DictObject>(ops::int_type(), ops::any_type());
  const std::vector<uint8_t> bytes = seeds_.state();
  const Tensor seeds = Tensor::empty(Dims{static_cast<int64_t>(bytes.size())}, DType::kUInt8);
  std::copy(bytes.begin(), bytes.end(), seeds.data<uint8_t>());
  for (const auto& [bucket, memory] : memories_) {
    const auto of = make_intrusive<ops::DictObject>(ops::string_type(), ops::any_type());
    of->set(Value("error"), memory.error.defined() ? Value(memory.error) : Value());
    of->set(Value("columns"), ops::make_tensor_list(memory.columns));
    by_bucket->set(Value(static_cast<int64_t>(bucket)), Value(of));
  }
  dict->set(Value("step"), step_);
  dict->set(Value("seeds"), seeds);
  dict->set(Value("buckets"), Value(by_bucket));
  return Value(dict);
}

void PowerSgd::load_state_dict(const Value& state, bool with_error) {
  const auto at = [](const Value& of, const char* key) -> const Value& {
    const ops::Dict& dict = of.to_dict();
    const std::ptrdiff_t index = dict->find(Value(key));
    if (index < 0) fail(ErrorCode::kDataLoss, "the state of PowerSGD has no '", key, "'");
    return dict->items()[static_cast<size_t>(index)].second;
  };
  const Tensor seeds = at(state, "seeds").to_tensor().contiguous();
  check(seeds.dtype() == DType::kUInt8, "the state of PowerSGD: the seeds are not bytes");
  std::map<size_t, Memory> memories;
  for (const auto& [bucket, of] : at(state, "buckets").to_dict()->items()) {
    Memory& memory = memories[static_cast<size_t>(bucket.to_int())];
    const Value& error = at(of, "error");
    if (with_error && !error.is_none()) memory.error = error.to_tensor();
    for (const Value& columns : at(of, "columns").to_list()->items) memory.columns.push_back(columns.to_tensor());
  }
  seeds_.set_state({seeds.data<uint8_t>(), static_cast<size_t>(seeds.numel())});
  step_ = at(state, "step").to_int();
  memories_ = std::move(memories);
}

}  // namespace tensord::distributed
