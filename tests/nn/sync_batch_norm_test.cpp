// Batch norm over all ranks compared with batch norm in one process that has all rows.
#include "core/nn/layers/sync_batch_norm.h"

#include <gmock/gmock.h>

#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "core/nn/init.h"
#include "core/ops/generator.h"
#include "core/ops/run.h"
#include "tests/distributed/ranks.h"

namespace tensord::nn::sync_batch_norm_test {
namespace {

using distributed::ProcessGroup;
using distributed::fixtures::backend_names;
using distributed::fixtures::backends_of;
using distributed::fixtures::errors_of_ranks;
using distributed::fixtures::on_ranks;
using ops::call_by_name;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

Tensor normals(Dims sizes, DType dtype, uint64_t seed, double mean = 0, double deviation = 1) {
  ops::Generator generator(seed);
  const ops::GeneratorGuard guard(generator);
  const Tensor tensor = Tensor::empty(std::move(sizes), DType::kFloat64);
  init::normal_(tensor, mean, deviation);
  return tensor.to(dtype);
}
Tensor leaf(const Tensor& tensor) {
  const Tensor out = tensor.clone();
  autograd::set_requires_grad(out);
  return out;
}
double largest(const Tensor& a, const Tensor& b) {
  const Tensor difference = call_by_name("aten::sub.Tensor", autograd::detach(a).to(DType::kFloat64),
                                         autograd::detach(b).to(DType::kFloat64), 1);
  return difference.numel() == 0 ? 0 : call_by_name("aten::max", call_by_name("aten::abs", difference)).item_double();
}

// The output of batch norm, and the gradients of its weighted sum.
struct Result {
  Tensor output, dx, dweight, dbias, running_mean, running_var;
};

struct Case {
  std::vector<int64_t> rows;  // of each rank
  Dims inner;                 // the dimensions after the channels
  DType dtype = DType::kFloat32;
  bool is_affine = true, is_last = false, tracks = true;
};
constexpr int64_t kChannels = 5;

Result run(const Case& c, ProcessGroup* group, const Tensor& x, const Tensor& g) {
  const DType parameters = c.dtype == DType::kFloat64 ? c.dtype : DType::kFloat32;
  const auto vector = [&](uint64_t seed, double mean) { return normals({kChannels}, parameters, seed, mean, 0.3); };
  const Tensor input = leaf(x), weight = leaf(vector(1, 1)), bias = leaf(vector(2, 0));
  Result out{
      .output = {}, .dx = {}, .dweight = {}, .dbias = {}, .running_mean = vector(3, 0), .running_var = vector(4, 2)};
  const auto maybe = [](bool is_there, const Tensor& t) { return is_there ? std::optional(t) : std::nullopt; };
  const auto w = maybe(c.is_affine, weight), b = maybe(c.is_affine, bias), mean = maybe(c.tracks, out.running_mean),
             var = maybe(c.tracks, out.running_var);
  out.output = group != nullptr ? sync_batch_norm(*group, input, w, b, mean, var, 0.1, 1e-5)
                                : call_by_name("aten::batch_norm", input, w, b, mean, var, true, 0.1, 1e-5, false);
  autograd::backward(call_by_name("aten::sum", call_by_name("aten::mul.Tensor", out.output, g)));
  out.dx = autograd::grad(input), out.dweight = autograd::grad(weight), out.dbias = autograd::grad(bias);
  return out;
}

Dims shape_of(const Case& c, int64_t rows) {
  Dims sizes{rows, kChannels};
  for (const int64_t size : c.inner) sizes.push_back(size);
  return sizes;
}

void expect_as_one_process(const Case& c, const std::string& engine, double max) {
  int64_t all_rows = 0;
  for (const int64_t rows : c.rows) all_rows += rows;
  const Tensor x = normals(shape_of(c, all_rows), c.dtype, 7, 3, 2), g = normals(shape_of(c, all_rows), c.dtype, 8);
  const Result whole = run(c, nullptr, x, g);
  on_ranks(static_cast<int>(c.rows.size()), backends_of(engine), [&](ProcessGroup& group) {
    int64_t first = 0;
    for (int rank = 0; rank < group.rank(); ++rank) first += c.rows[static_cast<size_t>(rank)];
    const int64_t count = c.rows[static_cast<size_t>(group.rank())];
    const auto own = [&](const Tensor& of) {
      return call_by_name("aten::slice.Tensor", of, 0, first, first + count, 1);
    };
    Tensor x_own = own(x), g_own = own(g);
    if (c.is_last) {
      x_own = call_by_name("aten::contiguous", x_own, 2), g_own = call_by_name("aten::contiguous", g_own, 2);
    }
    const Result result = run(c, &group, x_own, g_own);
    EXPECT_EQ(result.output.dtype(), c.dtype);
    EXPECT_LT(largest(result.output, own(whole.output)), max);
    EXPECT_LT(largest(result.dx, own(whole.dx)), max);
    EXPECT_LT(largest(result.running_mean, whole.running_mean), max);
    EXPECT_LT(largest(result.running_var, whole.running_var), max);
    // All ranks have bitwise the same running statistics.
    const Tensor first_mean = result.running_mean.clone();
    group.broadcast(first_mean, 0)->wait();
    EXPECT_EQ(largest(first_mean, result.running_mean), 0);
    if (!c.is_affine) return;
    const Tensor dweight = result.dweight.clone(), dbias = result.dbias.clone();
    group.all_reduce(dweight)->wait(), group.all_reduce(dbias)->wait();
    EXPECT_LT(largest(dweight, whole.dweight), 10 * max);
    EXPECT_LT(largest(dbias, whole.dbias), 10 * max);
  });
}

TEST(SyncBatchNorm, IsThatOfOneProcessWithAllRows) {
  const Case cases[] = {
      {.rows = {4, 4}, .inner = {3, 6}},
      {.rows = {7, 2, 5}, .inner = {3, 6}},
      {.rows = {3, 0, 1}, .inner = {3, 6}},  // a rank without rows, and one with a single row
      {.rows = {1, 1}, .inner = {}},
      {.rows = {5, 3}, .inner = {4}},
      {.rows = {2, 3}, .inner = {2, 3, 2}},
      {.rows = {5, 3}, .inner = {4, 4}, .is_last = true},
      {.rows = {5, 3}, .inner = {4, 4}, .is_affine = false},
      {.rows = {5, 3}, .inner = {4, 4}, .tracks = false},
      {.rows = {6}, .inner = {4, 4}},
  };
  for (const std::string& engine : backend_names()) {
    for (const Case& c : cases) {
      SCOPED_TRACE(engine + ::testing::PrintToString(c.rows) + to_string(c.inner));
      expect_as_one_process(c, engine, 2e-5);
    }
  }
}

TEST(SyncBatchNorm, OfOtherDtypes) {
  expect_as_one_process({.rows = {4, 6, 3}, .inner = {3, 6}, .dtype = DType::kFloat64}, "local", 1e-12);
  expect_as_one_process({.rows = {4, 6}, .inner = {3, 6}, .dtype = DType::kBFloat16}, "local", 0.06);
  expect_as_one_process({.rows = {4, 6}, .inner = {3, 6}, .dtype = DType::kFloat16}, "local", 0.01);
}

TEST(SyncBatchNorm, OneValueOfAllRanksIsRefusedByAll) {
  const auto errors = errors_of_ranks(2, backends_of("local"), {.timeout = 20s}, [](ProcessGroup& group) {
    run({.rows = {1, 0}, .inner = {}}, &group, normals(Dims{group.rank() == 0 ? 1 : 0, kChannels}, DType::kFloat32, 1),
        normals(Dims{group.rank() == 0 ? 1 : 0, kChannels}, DType::kFloat32, 2));
  });
  for (const std::string& error : errors) EXPECT_THAT(error, HasSubstr("Expected more than 1 value per channel"));
}

TEST(SyncBatchNorm, ASecondDerivativeIsRefused) {
  const auto errors = errors_of_ranks(1, backends_of("local"), {.timeout = 20s}, [](ProcessGroup& group) {
    const Tensor x = leaf(normals({4, kChannels}, DType::kFloat32, 1));
    const Tensor y = sync_batch_norm(group, x, {}, {}, {}, {}, 0.1, 1e-5);
    autograd::backward(call_by_name("aten::sum", call_by_name("aten::mul.Tensor", y, y)), {}, {.create_graph = true});
    autograd::backward(call_by_name("aten::sum", autograd::grad(x)));
  });
  EXPECT_NE(errors.front(), "");
}

TEST(SyncBatchNorm, TheLayerIsInEvaluationWhatItLearned) {
  on_ranks(2, backends_of("local"), [](ProcessGroup& group) {
    SyncBatchNorm layer(kChannels, group);
    const Tensor x = normals({4, kChannels, 3}, DType::kFloat32, static_cast<uint64_t>(group.rank()), 2);
    layer.forward(x);
    EXPECT_EQ(layer.num_batches_tracked.item_int(), 1);
    layer.eval();
    const Tensor expected = call_by_name("aten::batch_norm", x, layer.weight, layer.bias, layer.running_mean,
                                         layer.running_var, false, 0.1, 1e-5, false);
    // With a single rank nothing is exchanged.
    if (group.rank() == 0) {
      EXPECT_EQ(largest(layer.forward(x), expected), 0);
    }
    EXPECT_GT(largest(layer.running_mean, Tensor::scalar(0.0f)), 0.01);
  });
}

}  // namespace
}  // namespace tensord::nn::sync_batch_norm_test
