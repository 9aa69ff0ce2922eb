// The loops of the gradients of embedding_bag.
#include "kernels/embedding/embedding_bag_gradient.h"

#include <algorithm>
#include <vector>

#include "core/base/execution_context.h"
#include "core/base/parallel.h"
#include "core/ops/op.h"
#include "core/tensor/strided_copy.h"
#include "kernels/embedding/embedding_bag.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;
using MaybeTensor = std::optional<Tensor>;

// The begins of the bags and their indices, read and checked.
struct Bags {
  std::vector<int64_t> indices, offsets;
  int64_t count;
  int64_t padding;

  Bags(const Tensor& index, const Tensor& offset, int64_t count, int64_t rows, int64_t padding)
      : indices(read(index)), offsets(read(offset)), count(count), padding(padding) {
    check(static_cast<int64_t>(offsets.size()) == count || static_cast<int64_t>(offsets.size()) == count + 1,
          "embedding_bag: expected gradients of ", offsets.size(), " bags, but got ", count);
    int64_t before = 0;
    for (const int64_t o : offsets) {
      check(o >= before && o <= static_cast<int64_t>(indices.size()), "embedding_bag: a bag begins at ", o, " of ",
            indices.size(), " indices, after ", before);
      before = o;
    }
    for (const int64_t i : indices) {
      if (i < 0 || i >= rows) fail(ErrorCode::kOutOfRange, "embedding_bag: index ", i, " is out of range");
    }
  }

  int64_t end(int64_t bag) const {
    const auto next = static_cast<size_t>(bag) + 1;
    return next < offsets.size() ? offsets[next] : static_cast<int64_t>(indices.size());
  }
  bool is_padding(int64_t i) const { return indices[static_cast<size_t>(i)] == padding; }
  int64_t size(int64_t bag) const {
    int64_t rows = 0;
    for (int64_t i = offsets[static_cast<size_t>(bag)]; i < end(bag); ++i) rows += is_padding(i) ? 0 : 1;
    return rows;
  }

 private:
  static std::vector<int64_t> read(const Tensor& t) {
    const Tensor wide = t.to(Device{}).to(DType::kInt64).contiguous();
    return {wide.data<int64_t>(), wide.data<int64_t>() + wide.numel()};
  }
};

// One term of a sum: adds `factor` times the gradient of `bag` to row `row` of the table.
struct Term {
  int64_t row, bag;
  double factor;
};

std::vector<Term> terms_of(const Bags& bags, BagMode mode, bool scales, const MaybeTensor& weights, int64_t rows) {
  std::vector<double> by_row(static_cast<size_t>(rows), scales ? 0.0 : 1.0);
  if (scales) {
    for (const int64_t i : bags.indices) by_row[static_cast<size_t>(i)] += 1;
    for (double& count : by_row) count = 1 / std::max(count, 1.0);
  }
  const Tensor factors = weights ? weights->to(DType::kFloat64).contiguous() : Tensor();
  std::vector<Term> terms;
  terms.reserve(bags.indices.size());
  for (int64_t bag = 0; bag < bags.count; ++bag) {
    const double of_bag = mode == BagMode::kMean ? 1 / std::max(1.0, static_cast<double>(bags.size(bag))) : 1;
    for (int64_t i = bags.offsets[static_cast<size_t>(bag)]; i < bags.end(bag); ++i) {
      if (bags.is_padding(i)) continue;
      const int64_t row = bags.indices[static_cast<size_t>(i)];
      terms.push_back(
          {row, bag, of_bag * by_row[static_cast<size_t>(row)] * (factors ? factors.data<double>()[i] : 1)});
    }
  }
  return terms;
}

// Threads share the rows of the table, so that the sums do not depend on the number of threads.
template <class T>
void add_terms(const std::vector<Term>& terms, const Tensor& grad, const Tensor& out) {
  const int64_t rows = out.sizes()[0], width = out.sizes()[1];
  const T* from = grad.data<T>();
  T* table = out.data<T>();
  const double work = static_cast<double>(rows + static_cast<int64_t>(terms.size())) * static_cast<double>(width);
  // Each thread reads all indices, so more parts than threads would cost more.
  const ContextPart<&ExecutionContext::cancellation> whole(nullptr);
  parallel_for_cost(rows, 0.2 * work / static_cast<double>(std::max<int64_t>(rows, 1)),
                    [&](int64_t begin, int64_t end) {
                      std::fill(table + begin * width, table + end * width, T(0));
                      for (const Term& term : terms) {
                        if (term.row < begin || term.row >= end) continue;
                        const T factor = static_cast<T>(term.factor);
                        for (int64_t k = 0; k < width; ++k)
                          table[term.row * width + k] += factor * from[term.bag * width + k];
                      }
                    });
}

// For maxima, each element came from one row. Empty bags came from none.
template <class T>
void add_maxima(const Bags& bags, const Tensor& from_rows, const Tensor& grad, const Tensor& out) {
  const int64_t rows = out.sizes()[0], width = out.sizes()[1];
  const Tensor from = from_rows.to(DType::kInt64).contiguous();
  T* table = out.data<T>();
  std::fill_n(table, out.numel(), T(0));
  for (int64_t bag = 0; bag < bags.count; ++bag) {
    if (bags.size(bag) == 0) continue;
    for (int64_t k = bag * width; k < (bag + 1) * width; ++k) {
      const int64_t row = from.data<int64_t>()[k];
      if (row < 0 || row >= rows) fail(ErrorCode::kOutOfRange, "embedding_bag: index ", row, " is out of range");
      table[row * width + k % width] += grad.data<T>()[k];
    }
  }
}

void table_kernel(const KernelContext&, const Tensor& grad, const Tensor& indices, const Tensor& offsets, const Tensor&,
                  const Tensor&, const Tensor& maxima, int64_t rows, bool scales, int64_t mode, bool,
                  const MaybeTensor& weights, int64_t padding, Tensor& out) {
  const Bags bags(indices, offsets, grad.sizes()[0], rows, padding);
  const DType dtype = grad.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const Tensor dense = grad.to(dtype).contiguous();
  const bool fits = out.dtype() == dtype && out.is_contiguous();
  const Tensor table = fits ? out : Tensor::empty(out.sizes(), dtype);
  const auto run = [&]<class T>() {
    if (static_cast<BagMode>(mode) == BagMode::kMax) return add_maxima<T>(bags, maxima, dense, table);
    add_terms<T>(terms_of(bags, static_cast<BagMode>(mode), scales, weights, rows), dense, table);
  };
  dtype == DType::kFloat64 ? run.template operator()<double>() : run.template operator()<float>();
  if (!fits) strided_copy(out, table.to(out.dtype()));
}

// For each index, its row of the table times the gradient of its bag.
void weights_kernel(const KernelContext&, const Tensor& grad, const Tensor& table, const Tensor& indices,
                    const Tensor& offsets, const Tensor&, int64_t, int64_t padding, Tensor& out) {
  const Bags bags(indices, offsets, grad.sizes()[0], table.sizes()[0], padding);
  const Tensor g = grad.to(DType::kFloat64).contiguous(), rows = table.to(DType::kFloat64).contiguous();
  const Tensor sums = Tensor::empty(out.sizes(), DType::kFloat64);
  std::fill_n(sums.data<double>(), sums.numel(), 0.0);
  const int64_t width = grad.sizes()[1];
  for (int64_t bag = 0; bag < bags.count; ++bag) {
    for (int64_t i = bags.offsets[static_cast<size_t>(bag)]; i < bags.end(bag); ++i) {
      if (bags.is_padding(i)) continue;
      const double* row = rows.data<double>() + bags.indices[static_cast<size_t>(i)] * width;
      double sum = 0;
      for (int64_t k = 0; k < width; ++k) sum += row[k] * g.data<double>()[bag * width + k];
      sums.data<double>()[i] = sum;
    }
  }
  strided_copy(out, sums.to(out.dtype()));
}

IMPL("aten::_embedding_bag_backward", kCPU, table_kernel);
IMPL("aten::_embedding_bag_per_sample_weights_backward", kCPU, weights_kernel);

}  // namespace

BagsOfIndices bags_of_indices(const Tensor& indices, const Tensor& offsets, int64_t bag_count, int64_t rows,
                              int64_t padding) {
  const Bags bags(indices, offsets, bag_count, rows, padding);
  const int64_t count = indices.numel();
  const Tensor bag_of = Tensor::empty(Dims{count}, DType::kInt64),
               factors = Tensor::empty(Dims{count, 1}, DType::kFloat64);
  check(bags.offsets.empty() ? count == 0 : bags.offsets.front() == 0, "embedding_bag: offsets[0] has to be 0");
  for (int64_t bag = 0; bag < bags.count; ++bag) {
    const double size = static_cast<double>(std::max<int64_t>(bags.size(bag), 1));
    for (int64_t i = bags.offsets[static_cast<size_t>(bag)]; i < bags.end(bag); ++i) {
      bag_of.data<int64_t>()[i] = bag;
      factors.data<double>()[i] = size;
    }
  }
  return {bag_of.to(indices.device()), factors.to(indices.device())};
}

}  // namespace tensord::kernels
