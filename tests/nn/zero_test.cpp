// ZeRO-1: the same bits as without it, with a share of the state.
#include "core/nn/optim/zero.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>

#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "core/distributed/value_bytes.h"
#include "core/nn/state.h"
#include "core/ops/run.h"
#include "tests/distributed/ranks.h"

namespace tensord::nn::zero_test {
namespace {

using distributed::ProcessGroup;
using distributed::fixtures::backend_names;
using distributed::fixtures::backends_of;
using distributed::fixtures::on_ranks;
using ::testing::HasSubstr;

const std::vector<int64_t> kSizes{10, 3, 7, 7, 1, 5};

std::vector<Tensor> make_params() {
  std::vector<Tensor> params;
  for (const int64_t size : kSizes) {
    params.push_back(Tensor::empty(Dims{size}, DType::kFloat32));
    for (int64_t i = 0; i < size; ++i) params.back().data<float>()[i] = 0.1f * static_cast<float>(i + size);
    autograd::set_requires_grad(params.back());
  }
  return params;
}

// The same on all ranks, and different in each step; the fifth parameter has none in the first step.
void set_gradients(const std::vector<Tensor>& params, int step) {
  for (size_t p = 0; p < params.size(); ++p) {
    if (step == 0 && p == 4) continue;
    const Tensor gradient = Tensor::empty(params[p].sizes(), DType::kFloat32);
    for (int64_t i = 0; i < gradient.numel(); ++i) {
      gradient.data<float>()[i] = 0.01f * static_cast<float>((step * 7 + static_cast<int>(p) + i) % 11 - 5);
    }
    autograd::set_grad(params[p], gradient);
  }
}

std::unique_ptr<Optimizer> make(const std::string& kind, const std::vector<Tensor>& params) {
  Options options, slower;
  options.set("lr", 0.05);
  slower.set("lr", 0.02);
  if (kind == "sgd") options.set("momentum", 0.9);
  std::vector<ParamGroup> groups(2);
  groups[0] = {.params = {params.begin(), params.begin() + 4}, .options = slower};
  groups[1] = {.params = {params.begin() + 4, params.end()}, .options = {}};
  return make_optimizer(kind, std::move(groups), options);
}

std::string text_of(const std::vector<Tensor>& params) {
  std::string text;
  for (const Tensor& param : params) text.append(static_cast<const char*>(param.raw_data()), param.size_bytes());
  return text;
}

struct Trained {
  std::string params, state;
};
Trained train_alone(const std::string& kind, int steps) {
  const std::vector<Tensor> params = make_params();
  const auto optimizer = make(kind, params);
  for (int step = 0; step < steps; ++step) {
    set_gradients(params, step);
    optimizer->step();
  }
  return {text_of(params), distributed::bytes_of_value(optimizer->state_dict())};
}

size_t states_of(const Optimizer& optimizer) {
  return as_dict(get_item(as_dict(optimizer.state_dict(), "state"), "state"), "state").items().size();
}

// Sorts the states in the order of the parameters.
ops::Value sorted(const ops::Value& state) {
  const ops::Dict& states = get_item(as_dict(state, "state"), "state").to_dict();
  auto items = states->items();
  std::sort(items.begin(), items.end(),
            [](const auto& a, const auto& b) { return a.first.to_int() < b.first.to_int(); });
  states->clear();
  for (const auto& [key, value] : items) states->set(key, value);
  return state;
}

TEST(ZeroRedundancy, SharesAreAsPyTorchs) {
  on_ranks(2, backends_of("local"), [](ProcessGroup& group) {
    const std::vector<Tensor> params = make_params();
    SGD optimizer(params, {.lr = 0.1});
    // As measured with PyTorch: 10, 5 and 1 on rank 0, 7, 7 and 3 on rank 1.
    EXPECT_EQ(ZeroRedundancy(optimizer, group).owners(), (std::vector<int>{0, 1, 1, 1, 0, 0}));
  });
}

TEST(ZeroRedundancy, GivesTheSameBits) {
  for (const std::string& engine : backend_names()) {
    for (const std::string kind : {"sgd", "adam", "adamw", "rmsprop", "adagrad"}) {
      for (const int world : {1, 2, 3}) {
        const Trained alone = train_alone(kind, 6);
        on_ranks(world, backends_of(engine), [&](ProcessGroup& group) {
          const std::vector<Tensor> params = make_params();
          const auto optimizer = make(kind, params);
          ZeroRedundancy zero(*optimizer, group);
          for (int step = 0; step < 6; ++step) {
            set_gradients(params, step);
            zero.step();
          }
          EXPECT_TRUE(text_of(params) == alone.params) << kind << " of " << world;
          const auto own = std::count(zero.owners().begin(), zero.owners().end(), group.rank());
          EXPECT_EQ(states_of(*optimizer), static_cast<size_t>(own)) << kind;
          const ops::Value state = zero.gather_state();
          EXPECT_EQ(state.is_none(), group.rank() != 0);
          if (group.rank() == 0) {
            EXPECT_TRUE(distributed::bytes_of_value(sorted(state)) == alone.state) << kind;
          }
        });
      }
    }
  }
}

TEST(ZeroRedundancy, GoesOnWithAnotherNumberOfRanks) {
  for (const std::string kind : {"adamw", "sgd"}) {
    const Trained whole = train_alone(kind, 9);
    std::string state, params_then;
    for (const int world : {2, 3, 1}) {
      const bool is_first = state.empty();
      const int first = is_first ? 0 : world == 3 ? 3 : 6;
      std::string next_state, next_params;
      on_ranks(world, backends_of("local"), [&](ProcessGroup& group) {
        const std::vector<Tensor> params = make_params();
        const auto optimizer = make(kind, params);
        ZeroRedundancy zero(*optimizer, group);
        if (!is_first) {
          size_t at = 0;
          for (const Tensor& param : params) {
            std::memcpy(param.raw_data(), params_then.data() + at, param.size_bytes());
            at += param.size_bytes();
          }
          optimizer->load_state_dict(distributed::value_of_bytes(state));
          const auto own = std::count(zero.owners().begin(), zero.owners().end(), group.rank());
          EXPECT_EQ(states_of(*optimizer), static_cast<size_t>(own));
        }
        for (int step = first; step < first + 3; ++step) {
          set_gradients(params, step);
          zero.step();
        }
        const ops::Value gathered = zero.gather_state();
        if (group.rank() != 0) return;
        next_state = distributed::bytes_of_value(gathered);
        next_params = text_of(params);
      });
      state = next_state, params_then = next_params;
    }
    EXPECT_TRUE(params_then == whole.params) << kind;
  }
}

TEST(ZeroRedundancy, LbfgsIsRefused) {
  on_ranks(1, backends_of("local"), [](ProcessGroup& group) {
    LBFGS optimizer(make_params());
    EXPECT_THROW(ZeroRedundancy(optimizer, group), Error);
  });
}

// --- serialized values

TEST(ValueBytes, ComeBackAsTheyWere) {
  const auto dict = make_intrusive<ops::DictObject>(ops::string_type(), ops::any_type());
  dict->set("none", {});
  dict->set("numbers", ops::make_tuple({true, int64_t{-3}, 2.5}));
  dict->set("text", std::string("a\0b", 3));
  const Tensor tensor = Tensor::empty(Dims{2, 0, 3}, DType::kBFloat16), scalar = Tensor::scalar<int64_t>(7);
  dict->set("tensors", ops::make_tensor_list({tensor, scalar}));
  const std::string bytes = distributed::bytes_of_value(ops::Value(dict));
  const ops::Value back = distributed::value_of_bytes(bytes);
  EXPECT_EQ(distributed::bytes_of_value(back), bytes);
  const ops::DictObject& got = as_dict(back, "dict");
  EXPECT_TRUE(get_item(got, "none").is_none());
  EXPECT_EQ(get_item(got, "text").to_string(), std::string("a\0b", 3));
  EXPECT_EQ(get_item(got, "tensors").to_list()->items[0].to_tensor().sizes(), (Dims{2, 0, 3}));
  EXPECT_EQ(get_item(got, "tensors").to_list()->items[1].to_tensor().item_int(), 7);
}

TEST(ValueBytes, WhatIsNoneIsRefused) {
  const auto dict = make_intrusive<ops::DictObject>(ops::int_type(), ops::any_type());
  dict->set(int64_t{1}, ops::make_tensor_list({Tensor::scalar(2.0f)}));
  const std::string bytes = distributed::bytes_of_value(ops::Value(dict));
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(distributed::value_of_bytes(bytes.substr(0, size)), Error) << size;
  }
  EXPECT_THROW(distributed::value_of_bytes(bytes + "x"), Error);
  // Any byte may be changed: the result is an error or a value.
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const int other : {0, 1, 5, 8, 127, 255}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(other);
      try {
        distributed::value_of_bytes(changed);
      } catch (const Error&) {
      }
    }
  }
  EXPECT_THROW(distributed::value_of_bytes(std::string(1000, '\6')), Error);
}

}  // namespace
}  // namespace tensord::nn::zero_test
