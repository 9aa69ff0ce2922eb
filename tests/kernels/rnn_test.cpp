// Recurrent layers prepared for shapes: the same bits as the plain kernels, whatever the number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "tests/kernels/prepared_fixture.h"

// Counts the calling thread's heap allocations. The sanitizers have a malloc of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TENSORD_COUNTS_MALLOC 1
namespace {
thread_local int64_t heap_calls = 0;
}
extern "C" {
void* __libc_malloc(size_t);
void* malloc(size_t size) { return ++heap_calls, __libc_malloc(size); }
}
#endif

namespace tensord::rnn_test {
namespace {

using fixtures::pick;
using fixtures::PreparedRunner;
using fixtures::random_tensor;
using ops::Value;

Tensor small(const Dims& sizes, DType dtype) {
  return ops::call_by_name("aten::mul.Scalar", random_tensor(sizes, dtype), 0.1);
}

struct Layer {
  std::string name;  // lstm, gru, rnn_tanh, rnn_relu
  int64_t steps, batch, inputs, hidden;
  int64_t layers = 1;
  bool bidirectional = false, has_biases = true, batch_first = false;
  int64_t projection = 0;
  std::vector<int64_t> packed = {};
  DType dtype = DType::kFloat32;

  int64_t gates() const { return name == "lstm" ? 4 : name == "gru" ? 3 : 1; }
  int64_t state() const { return projection ? projection : hidden; }
  int64_t directions() const { return bidirectional ? 2 : 1; }
  std::string op() const { return "aten::" + name + (packed.empty() ? ".input" : ".data"); }

  std::vector<Tensor> parameters() const {
    std::vector<Tensor> out;
    for (int64_t i = 0; i < layers * directions(); ++i) {
      const int64_t width = i < directions() ? inputs : state() * directions(), rows = gates() * hidden;
      out.push_back(small({rows, width}, dtype));
      out.push_back(small({rows, state()}, dtype));
      for (int bias = 0; has_biases && bias < 2; ++bias) out.push_back(small({rows}, dtype));
      if (projection) out.push_back(small({projection, hidden}, dtype));
    }
    return out;
  }

  std::vector<Value> arguments(const std::vector<Tensor>& parameters) const {
    const int64_t states = layers * directions();
    std::vector<Value> v;
    if (packed.empty()) {
      v.push_back(batch_first ? random_tensor({batch, steps, inputs}, dtype)
                              : random_tensor({steps, batch, inputs}, dtype));
    } else {
      const Tensor sizes = Tensor::empty(Dims{static_cast<int64_t>(packed.size())}, DType::kInt64);
      std::copy(packed.begin(), packed.end(), sizes.data<int64_t>());
      v.push_back(random_tensor({std::accumulate(packed.begin(), packed.end(), int64_t{0}), inputs}, dtype));
      v.push_back(sizes);
    }
    const Tensor h = random_tensor({states, batch, state()}, dtype);
    if (name == "lstm")
      v.push_back(ops::make_tensor_list({h, random_tensor({states, batch, hidden}, dtype)}));
    else
      v.push_back(h);
    v.push_back(ops::make_tensor_list(parameters));
    for (const Value& value : {Value(has_biases), Value(layers), Value(0.0), Value(false), Value(bidirectional)})
      v.push_back(value);
    if (packed.empty()) v.push_back(batch_first);
    return v;
  }
};

std::vector<Tensor> run_plain(const ops::Op& op, const std::vector<Value>& arguments) {
  std::vector<Tensor> out;
  for (const Value& value : ops::run(op, arguments)) out.push_back(value.to_tensor());
  return out;
}

void expect_same(const std::vector<Tensor>& got, const std::vector<Tensor>& expected, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_TRUE(fixtures::same_bits(got[i], expected[i])) << what << ", result " << i;
}

void check_layer(const Layer& layer) {
  const ops::Op& op = ops::get_op(layer.op());
  const std::vector<Tensor> parameters = layer.parameters();
  const std::vector<Value> arguments = layer.arguments(parameters);
  set_thread_budget(1);
  const std::vector<Tensor> expected = run_plain(op, arguments);
  for (int threads = 1; threads <= 3; ++threads) {
    const std::string what = concat(layer.op(), " hidden ", layer.hidden, " batch ", layer.batch, " on ", threads);
    PreparedRunner runner(op, arguments, parameters, threads);
    ASSERT_NE(runner.prepared(), nullptr) << what;
    expect_same(runner.run(), expected, what);
    expect_same(runner.run(), expected, what);
    set_thread_budget(threads);
    expect_same(run_plain(op, arguments), expected, what + ", plain");
    // Fewer threads at run time than it was split for.
    PreparedRunner wide(op, arguments, parameters, 4);
    expect_same(wide.run(), expected, what + ", cut for 4");
  }
  set_thread_budget(1);
}

TEST(Rnn, PreparedLikePlain) {
  for (const char* name : {"lstm", "gru", "rnn_tanh", "rnn_relu"}) {
    check_layer({name, 5, 3, 7, 10});
    check_layer({name, 6, 1, 20, 200, 2});
    check_layer({name, 6, 1, 20, 160, 2, true});
    check_layer({name, 9, 37, 20, 40, 2, true, false, true});
    check_layer({name, 1, 1, 1, 1});
    check_layer({name, 8, 0, 3, 4});
    check_layer({name, 4, 5, 9, 150, 2, true, true, false, 0, {5, 5, 3, 1}});
    check_layer({name, 3, 40, 9, 50, 1, false, true, false, 0, {40, 33, 2}});
    check_layer({name, 4, 2, 5, 18, 3, true, true, true, 0, {}, DType::kFloat64});
  }
  check_layer({"lstm", 6, 2, 20, 180, 2, true, true, false, 65});
  check_layer({"lstm", 6, 1, 20, 256, 3, false, false, true, 30});
  check_layer({"lstm", 3, 9, 20, 130, 2, true, true, false, 70, {9, 4, 1}});
}

// Long enough for several chunks of gates.
TEST(Rnn, ManySteps) {
  check_layer({"lstm", 150, 1, 3, 512});
  check_layer({"gru", 90, 20, 3, 100, 1, true});
}

// Rows do not depend on the other rows in the batch, nor on their number.
TEST(Rnn, RowsAreIndependent) {
  for (const char* name : {"lstm", "gru"}) {
    const Layer layer{name, 5, 11, 7, 45, 2, true};
    const ops::Op& op = ops::get_op(layer.op());
    std::vector<Value> arguments = layer.arguments(layer.parameters());
    const Tensor all = run_plain(op, arguments)[0];
    const auto narrow = [](const Tensor& x, int64_t row) { return ops::call_by_name("aten::narrow", x, 1, row, 1); };
    for (const int64_t row : {0, 6, 10}) {
      std::vector<Value> one = arguments;
      one[0] = narrow(arguments[0].to_tensor(), row);
      if (one[1].is_tensor()) {
        one[1] = narrow(arguments[1].to_tensor(), row);
      } else {
        const auto& states = arguments[1].to_list()->items;
        one[1] = ops::make_tensor_list({narrow(states[0].to_tensor(), row), narrow(states[1].to_tensor(), row)});
      }
      EXPECT_TRUE(fixtures::same_bits(run_plain(op, one)[0], narrow(all, row))) << name << " row " << row;
    }
  }
}

TEST(Rnn, RefusesWrongBatchSizes) {
  for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{
           {3, 4, 1}, {3, 3, 1}, {3, 0, 5}, {2, 3, 3}, {4, 2, 2}, {3, 6, -1}, {3, 2, 2}}) {
    Layer layer{"lstm", 3, 3, 4, 5};
    layer.packed = {3, 3, 2};
    const std::vector<Tensor> parameters = layer.parameters();
    const std::vector<Value> arguments = layer.arguments(parameters);
    PreparedRunner runner(ops::get_op(layer.op()), arguments, parameters, 2);
    std::copy(sizes.begin(), sizes.end(), arguments[1].to_tensor().data<int64_t>());
    EXPECT_THROW(runner.run(), Error);
    EXPECT_THROW(run_plain(ops::get_op(layer.op()), arguments), Error);
  }
}

TEST(Rnn, PreparedCells) {
  for (const char* name : {"aten::lstm_cell", "aten::gru_cell", "aten::rnn_tanh_cell", "aten::rnn_relu_cell"}) {
    const ops::Op& op = ops::get_op(name);
    const bool is_lstm = std::string(name) == "aten::lstm_cell";
    const int64_t gates = is_lstm ? 4 : std::string(name) == "aten::gru_cell" ? 3 : 1;
    for (const int64_t batch : {1, 3, 9}) {
      const Tensor h = random_tensor({batch, 50}), w_ih = small({gates * 50, 20}, DType::kFloat32);
      const Tensor w_hh = small({gates * 50, 50}, DType::kFloat32), bias = small({gates * 50}, DType::kFloat32);
      const Value states = is_lstm ? Value(ops::make_tensor_list({h, random_tensor({batch, 50})})) : Value(h);
      const std::vector<Value> arguments{random_tensor({batch, 20}), states, w_ih, w_hh, bias, Value()};
      const std::vector<Tensor> expected = run_plain(op, arguments);
      for (const std::vector<Tensor>& constants : {std::vector<Tensor>{w_ih, w_hh, bias}, std::vector<Tensor>{w_hh}}) {
        PreparedRunner runner(op, arguments, constants, 2);
        ASSERT_NE(runner.prepared(), nullptr);
        expect_same(runner.run(), expected, name);
      }
    }
  }
}

TEST(Embedding, PreparedLikePlain) {
  const Tensor table = random_tensor({50, 24});
  const Tensor indices = Tensor::empty(Dims{40}, DType::kInt64), offsets = Tensor::empty(Dims{8}, DType::kInt64);
  for (int64_t i = 0; i < 40; ++i) indices.data<int64_t>()[i] = pick(0, 49);
  for (int64_t i = 0; i < 8; ++i) offsets.data<int64_t>()[i] = 5 * i;
  for (const std::vector<Tensor>& constants : {std::vector<Tensor>{table}, std::vector<Tensor>{}}) {
    const ops::Op& op = ops::get_op("aten::embedding");
    const std::vector<Value> arguments = ops::bind(op, {table, indices});
    expect_same(PreparedRunner(op, arguments, constants, 2).run(), run_plain(op, arguments), "embedding");
    for (int64_t mode = 0; mode < 3; ++mode) {
      const ops::Op& bag = ops::get_op("aten::embedding_bag.padding_idx");
      for (const Value& padding : {Value(), Value(3)}) {
        const std::vector<Value> v{table, indices, offsets, false, mode, false, Value(), false, padding};
        expect_same(PreparedRunner(bag, v, constants, 2).run(), run_plain(bag, v), "embedding_bag");
      }
    }
  }
  indices.data<int64_t>()[39] = 50;
  const ops::Op& op = ops::get_op("aten::embedding");
  EXPECT_THROW(PreparedRunner(op, ops::bind(op, {table, indices}), {table}, 2).run(), Error);
}

#ifdef TENSORD_COUNTS_MALLOC
TEST(Rnn, RunsWithoutHeap) {
  const Layer layer{"lstm", 6, 2, 20, 180, 2, true};
  const ops::Op& op = ops::get_op(layer.op());
  std::vector<Value> arguments = layer.arguments(layer.parameters());
  const Tensor x = arguments[0].to_tensor(), h = arguments[1].to_list()->items[0].to_tensor(),
               c = arguments[1].to_list()->items[1].to_tensor();
  const std::vector<Tensor> outputs = run_plain(op, arguments);
  arguments[0] = fixtures::meta_of(x);
  arguments[1] = ops::make_tensor_list({fixtures::meta_of(h), fixtures::meta_of(c)});
  const std::vector<Tensor> metas{fixtures::meta_of(outputs[0]), fixtures::meta_of(outputs[1]),
                                  fixtures::meta_of(outputs[2])};
  ops::PackStore packs;
  ops::PrepareArgs args{op, arguments, metas, 2};
  args.packs = &packs;
  const auto prepared = op.prepare[static_cast<size_t>(DeviceKind::kCPU)](args);
  const Tensor scratch = Tensor::empty(Dims{static_cast<int64_t>(prepared->scratch_bytes)}, DType::kUInt8);
  const void* const in[] = {x.raw_data(), h.raw_data(), c.raw_data()};
  void* const out[] = {outputs[0].raw_data(), outputs[1].raw_data(), outputs[2].raw_data()};
  set_thread_budget(2);
  prepared->run(ops::KernelContext(), {in, out, scratch.raw_data()});
  const int64_t before = heap_calls;
  for (int i = 0; i < 10; ++i) prepared->run(ops::KernelContext(), {in, out, scratch.raw_data()});
  EXPECT_EQ(heap_calls, before);
  set_thread_budget(1);
}
#endif

// For every hidden unit, in vectors and in the remainder, on every instruction set.
TEST(Rnn, NotANumberStays) {
  for (const char* name : {"lstm", "gru", "rnn_tanh"}) {
    const Layer layer{name, 2, 3, 4, 19};
    const std::vector<Tensor> parameters = layer.parameters();
    const std::vector<Value> arguments = layer.arguments(parameters);
    arguments[0].to_tensor().data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
    const Tensor out = run_plain(ops::get_op(layer.op()), arguments)[0].contiguous();
    for (int64_t i = 0; i < out.numel(); ++i)
      ASSERT_EQ(std::isnan(out.data<float>()[i]), i / 19 % 3 == 0) << name << ", element " << i;
  }
}

}  // namespace
}  // namespace tensord::rnn_test
