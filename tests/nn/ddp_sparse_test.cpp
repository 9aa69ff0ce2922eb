// Sparse gradients of tables in data-parallel training, compared with dense ones.
#include <gmock/gmock.h>

#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "core/nn/distributed.h"
#include "core/nn/layers/layers.h"
#include "core/ops/run.h"
#include "core/ops/sparse.h"
#include "tests/distributed/ranks.h"

namespace tensord::distributed::ddp_sparse_test {
namespace {

using namespace fixtures;
using ops::call_by_name;
using ::testing::HasSubstr;

constexpr int64_t kRows = 7, kColumns = 3;

Tensor numbers(Dims sizes, double first) {
  const Tensor out = Tensor::empty(std::move(sizes), DType::kFloat32);
  fill(out, [=](int64_t i) { return first + 0.25 * static_cast<double>(i); });
  return out;
}
Tensor indices(const std::vector<int64_t>& rows) {
  const Tensor out = Tensor::empty(Dims{static_cast<int64_t>(rows.size())}, DType::kInt64);
  std::copy(rows.begin(), rows.end(), out.data<int64_t>());
  return out;
}

// A table followed by a weight.
struct Model {
  Model(ProcessGroup& group, bool is_sparse, ReducerOptions options = {}) : sparse(is_sparse) {
    table = numbers({kRows, kColumns}, -1);
    weight = numbers({kColumns, 2}, 0.5);
    for (const Tensor& tensor : {table, weight}) autograd::set_requires_grad(tensor, true);
    if (sparse) options.sparse = {"table"};
    reducer = std::make_unique<Reducer>(group, std::vector<NamedParameter>{{"table", table}, {"weight", weight}},
                                        std::vector<NamedParameter>{}, std::move(options));
  }
  void pass(const std::vector<int64_t>& rows, double factor, bool reduces = true) {
    Tensor loss;
    if (rows.empty()) {
      loss = call_by_name("aten::sum", weight);
    } else {
      const Tensor found = call_by_name("aten::embedding", table, indices(rows), -1, false, sparse);
      loss = call_by_name("aten::sum", call_by_name("aten::matmul", found, weight));
    }
    loss = call_by_name("aten::mul.Scalar", loss, factor);
    reduces ? reducer->prepare(std::vector<Tensor>{loss}) : reducer->skip();
    autograd::backward(loss);
  }
  std::vector<std::complex<double>> gradient(const Tensor& of) const {
    const Tensor found = autograd::grad(of);
    if (!ops::as_sparse(found)) return values_of(found);
    return values_of(call_by_name("aten::to_dense", found));
  }

  const bool sparse;
  Tensor table, weight;
  std::unique_ptr<Reducer> reducer;
};

// Runs the same passes with sparse and with dense gradients of the table.
void expect_same(int size, const std::function<void(Model&, int rank)>& passes, const ReducerOptions& options = {}) {
  on_ranks(size, backends_of("local"), [&](ProcessGroup& group) {
    Model sparse(group, true, options), dense(group, false, options);
    passes(sparse, group.rank());
    passes(dense, group.rank());
    EXPECT_TRUE(ops::as_sparse(autograd::grad(sparse.table)));
    EXPECT_FALSE(ops::as_sparse(autograd::grad(dense.table)));
    EXPECT_EQ(sparse.gradient(sparse.table), dense.gradient(dense.table));
    EXPECT_EQ(sparse.gradient(sparse.weight), dense.gradient(dense.weight));
  });
}

TEST(SparseGradients, AreTheMeanOfAllRanks) {
  for (const int size : {1, 2, 3}) {
    expect_same(size, [](Model& model, int rank) {
      for (int step = 0; step < 3; ++step) {
        for (const Tensor& tensor : {model.table, model.weight}) autograd::set_grad(tensor, {});
        // Different rows, of different counts: some twice, some on several ranks.
        std::vector<int64_t> rows{rank, 4, 4};
        if (rank == 1) rows.push_back(6);
        model.pass(rows, 1 + rank + step);
      }
    });
  }
}

TEST(SparseGradients, AreOfTheRowsThatSomeRankHas) {
  on_ranks(2, backends_of("local"), [](ProcessGroup& group) {
    Model model(group, true);
    model.pass({group.rank(), 5}, 1);
    const ops::SparsePtr gradient = ops::as_sparse(autograd::grad(model.table));
    ASSERT_TRUE(gradient);
    EXPECT_TRUE(gradient->is_coalesced());
    const auto rows = values_of(gradient->indices());
    EXPECT_EQ(rows, (std::vector<std::complex<double>>{0, 1, 5}));
  });
}

TEST(SparseGradients, AddUpOverPassesThatDoNotReduce) {
  expect_same(2, [](Model& model, int rank) {
    model.pass({1, rank}, 1, false);
    model.pass({2}, 2);
  });
}

TEST(SparseGradients, OfARankThatDoesNotUseTheTable) {
  expect_same(2,
              [](Model& model, int rank) {
                model.pass(rank == 0 ? std::vector<int64_t>{} : std::vector<int64_t>{3, 3}, 1);
              },
              {.find_unused_parameters = true});
}

TEST(SparseGradients, OfARankThatHasNoMoreInputs) {
  on_ranks(2, backends_of("local"), [](ProcessGroup& group) {
    Model model(group, true);
    model.pass({2}, 1);
    for (const Tensor& tensor : {model.table, model.weight}) autograd::set_grad(tensor, {});
    group.rank() == 0 ? model.pass({3}, 2) : model.reducer->shadow_pass(0, true);
    const ops::SparsePtr gradient = ops::as_sparse(autograd::grad(model.table));
    ASSERT_TRUE(gradient);
    EXPECT_EQ(gradient->nnz(), 1);
    EXPECT_EQ(gradient->indices().item_int(), 3);
  });
}

TEST(SparseGradients, OfAModulesTablesAreKnown) {
  on_ranks(2, backends_of("local"), [](ProcessGroup& group) {
    const auto words = std::make_shared<nn::Embedding>(kRows, kColumns, -1, true);
    nn::DistributedDataParallel ddp(nn::sequential(words, std::make_shared<nn::Linear>(kColumns, 1)), group);
    autograd::backward(call_by_name("aten::sum", ddp(indices({group.rank(), 5}))));
    const ops::SparsePtr gradient = ops::as_sparse(autograd::grad(words->weight));
    ASSERT_TRUE(gradient);
    EXPECT_EQ(gradient->nnz(), 3);
  });
}

TEST(SparseGradients, ThatWereNotSaidToBeSuchAreNamed) {
  for (const bool is_said : {false, true}) {
    const auto errors = errors_of_ranks(2, backends_of("local"), {.timeout = 20s}, [&](ProcessGroup& group) {
      const Tensor table = numbers({kRows, kColumns}, 0);
      autograd::set_requires_grad(table, true);
      ReducerOptions options;
      if (is_said) options.sparse = {"table"};
      Reducer reducer(group, {{"table", table}}, {}, options);
      const Tensor loss =
          call_by_name("aten::sum", call_by_name("aten::embedding", table, indices({1}), -1, false, !is_said));
      reducer.prepare(std::vector<Tensor>{loss});
      autograd::backward(loss);
    });
    for (const std::string& error : errors) {
      EXPECT_THAT(error, HasSubstr(is_said ? "the gradient of table is dense, but it was said to be sparse"
                                           : "does not take a sparse gradient of table, which is not among"));
    }
  }
  const auto errors = errors_of_ranks(2, backends_of("local"), {.timeout = 20s}, [](ProcessGroup& group) {
    const Tensor table = numbers({kRows, kColumns}, 0);
    autograd::set_requires_grad(table, true);
    Reducer(group, {{"table", table}}, {}, {.sparse = {"tables"}});
  });
  for (const std::string& error : errors) EXPECT_THAT(error, HasSubstr("there is no parameter tables"));
}

}  // namespace
}  // namespace tensord::distributed::ddp_sparse_test
