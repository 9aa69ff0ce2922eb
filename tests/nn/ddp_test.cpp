// DistributedDataParallel compared with PyTorch's: ranks as threads over the local backend and Gloo, and as processes.
#include "core/nn/distributed.h"

#include <gmock/gmock.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "core/distributed/ddp/power_sgd.h"
#include "core/distributed/store/file_store.h"
#include "core/nn/layers/layers.h"
#include "core/nn/optim/optimizer.h"
#include "core/ops/generator.h"
#include "core/ops/run.h"
#include "tests/distributed/ranks.h"
#include "tests/nn/nn_cases.h"

namespace tensord::nn::ddp_test {
namespace {

using distributed::ProcessGroup;
using distributed::fixtures::backend_names;
using distributed::fixtures::backends_of;
using distributed::fixtures::errors_of_ranks;
using distributed::fixtures::on_ranks;
using ops::Value;
using ::testing::HasSubstr;
using namespace std::chrono_literals;
using Ddp = DistributedDataParallel;

// The same module as in make_ddp_cases.py.
class Net final : public Module {
 public:
  explicit Net(bool has_norm)
      : Module("Net"),
        conv_(register_module("conv", std::make_shared<Conv2d>(2, 4, Dims{3, 3}, Conv2dOptions{.padding = {1, 1}}))),
        norm_(has_norm ? register_module("norm", std::make_shared<BatchNorm2d>(4)) : nullptr),
        head_(register_module("head", std::make_shared<Linear>(64, 3))),
        side_(register_module("side", std::make_shared<Linear>(64, 3))) {}

  bool uses_side = true;
  Tensors forward(const Tensors& inputs) override {
    Tensor h = conv_->forward(inputs.front());
    if (norm_) h = norm_->forward(h);
    h = ops::call_by_name("aten::flatten.using_ints", ops::call_by_name("aten::relu", h), 1, -1);
    const Tensor out = head_->forward(h);
    return {uses_side ? ops::call_by_name("aten::add.Tensor", out, side_->forward(h), 1) : out};
  }

 private:
  const std::shared_ptr<Conv2d> conv_;
  const std::shared_ptr<BatchNorm2d> norm_;
  const std::shared_ptr<Linear> head_, side_;
};

struct Case {
  std::string name, join, hook;
  int world, no_sync, steps;
  bool norm, unused, view, keeps, is_static;
  Value value;

  explicit Case(const Value& of) : value(of) {
    name = item(of, "name").to_string();
    join = item(of, "join").to_string();
    hook = item(of, "hook").to_string();
    world = static_cast<int>(item(of, "world").to_int());
    no_sync = static_cast<int>(item(of, "no_sync").to_int());
    norm = item(of, "norm").to_bool();
    unused = item(of, "unused").to_bool();
    view = item(of, "view").to_bool();
    keeps = item(of, "keeps").to_bool();
    is_static = item(of, "static").to_bool();
    steps = static_cast<int>(item(of, "x").to_tensor().size(0));
  }
  bool uses_side(int step, int rank) const { return !unused || (step + rank) % 4 == 1; }
  int steps_of(int rank) const { return join.empty() ? steps : steps - 2 * rank; }
  Tensor input(const char* of, int step, int rank) const {
    return ops::call_by_name("aten::select.int",
                             ops::call_by_name("aten::select.int", item(value, of).to_tensor(), 0, step), 0, rank);
  }
};

std::vector<Case> ddp_cases() {
  std::vector<Case> cases;
  const Value all = load_cases("ddp");
  for (const Value& each : items(all, "ddp")) cases.emplace_back(each);
  check(cases.size() > 10, "where are the cases of make_ddp_cases.py?");
  return cases;
}

struct Trained {
  std::vector<double> losses;
  Tensors end;
};

Trained train(ProcessGroup& group, const Case& c) {
  ops::Generator generator(static_cast<uint64_t>(group.rank()));
  const ops::GeneratorGuard guard(generator);
  const auto net = std::make_shared<Net>(c.norm);
  if (group.rank() == 0) {  // the others receive it
    const StateDict state = net->state_dict();
    const auto& start = items(c.value, "start");
    check(state.size() == start.size(), "the state of ", c.name);
    for (size_t i = 0; i < start.size(); ++i) autograd::detach(state[i].tensor).copy_from(start[i].to_tensor());
  }
  DistributedOptions options;
  options.reducer.find_unused_parameters = c.unused;
  options.reducer.gradient_as_bucket_view = c.view;
  options.reducer.static_graph = c.is_static;
  if (c.hook == "fp16") options.reducer.hook = distributed::fp16_compress_hook();
  std::optional<distributed::PowerSgd> power_sgd;
  if (c.hook.starts_with("powersgd")) {
    power_sgd.emplace(distributed::PowerSgdOptions{.rank = c.hook.back() - '0', .start_step = 2});
    options.reducer.hook = power_sgd->hook();
  }
  Ddp ddp(net, group, options);
  SGD optimizer(ddp.parameters(), {.lr = 0.05, .momentum = 0.9});
  std::optional<Ddp::Join> join;
  if (!c.join.empty()) join.emplace(ddp, Ddp::Join::Options{.divides_by_all = c.join == "all"});
  Trained trained;
  for (int step = 0; step < c.steps_of(group.rank()); ++step) {
    const bool syncs = step % c.no_sync == c.no_sync - 1;
    {
      std::optional<Ddp::NoSync> no_sync;
      if (!syncs) no_sync.emplace(ddp);
      net->uses_side = c.uses_side(step, group.rank());
      const Tensor loss =
          ops::call_by_name("aten::mse_loss", ddp(c.input("x", step, group.rank())), c.input("y", step, group.rank()));
      autograd::backward(loss);
      trained.losses.push_back(loss.item_double());
    }
    if (!syncs) continue;
    optimizer.step();
    optimizer.zero_grad(!c.keeps);
  }
  if (join) join->finish();
  for (const auto& [name, tensor] : net->state_dict()) trained.end.push_back(autograd::detach(tensor).clone());
  return trained;
}

std::vector<Trained> train_on_threads(const Case& c, const std::string& engine) {
  std::vector<Trained> ranks(static_cast<size_t>(c.world));
  on_ranks(c.world, backends_of(engine),
           [&](ProcessGroup& group) { ranks[static_cast<size_t>(group.rank())] = train(group, c); });
  return ranks;
}

void expect_same_as_pytorch(const Case& c, const std::vector<Trained>& ranks) {
  const double max = c.hook == "fp16" ? 2e-3 : 2e-5;  // the sums of products equal PyTorch's only up to rounding
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto& losses = get_items(items(c.value, "losses")[rank], "losses");
    ASSERT_EQ(ranks[rank].losses.size(), losses.size()) << c.name;
    for (size_t i = 0; i < losses.size(); ++i) {
      EXPECT_NEAR(ranks[rank].losses[i], losses[i].to_float(), max) << c.name << " rank " << rank << " step " << i;
    }
    const Tensors end = tensors(items(c.value, "end")[rank]);
    ASSERT_EQ(ranks[rank].end.size(), end.size()) << c.name;
    for (size_t i = 0; i < end.size(); ++i) {
      EXPECT_LT(difference(ranks[rank].end[i], end[i]), max) << c.name << " rank " << rank << " tensor " << i;
    }
  }
}

void expect_same_bits(const Case& c, const std::vector<Trained>& a, const std::vector<Trained>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t rank = 0; rank < a.size(); ++rank) {
    EXPECT_EQ(a[rank].losses, b[rank].losses) << c.name << " rank " << rank;
    ASSERT_EQ(a[rank].end.size(), b[rank].end.size());
    for (size_t i = 0; i < a[rank].end.size(); ++i) {
      EXPECT_EQ(difference(a[rank].end[i], b[rank].end[i]), 0) << c.name << " rank " << rank << " tensor " << i;
    }
  }
}

TEST(DistributedDataParallel, TrainsAsPyTorchs) {
  for (const std::string& engine : backend_names()) {
    for (const Case& c : ddp_cases()) {
      SCOPED_TRACE(engine);
      expect_same_as_pytorch(c, train_on_threads(c, engine));
    }
  }
}

TEST(DistributedDataParallel, GivesTheSameBitsEachTime) {
  for (const std::string& engine : backend_names()) {
    for (const Case& c : ddp_cases()) {
      if (c.name != "plain_of_three" && c.name != "views" && c.name != "join") continue;
      expect_same_bits(c, train_on_threads(c, engine), train_on_threads(c, engine));
    }
  }
}

// --- ranks as processes

// A rank of the test below: this program again, running only this test.
TEST(DistributedDataParallel, DISABLED_AsRank) {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    check(value != nullptr, name, " is not set");
    return std::string(value);
  };
  const std::string folder = variable("TENSORD_DDP_FOLDER");
  const int rank = std::stoi(variable("RANK"));
  const Case c(items(load_cases("ddp"), "ddp")[std::stoul(variable("TENSORD_DDP_CASE"))]);
  const auto store = std::make_shared<distributed::FileStore>(folder + "/store", 20s);
  ProcessGroup group(store, "ddp", rank, c.world, backends_of("gloo"), {.timeout = 20s, .secret = "secret"});
  const Trained trained = train(group, c);
  group.close();
  std::ofstream out(folder + "/" + std::to_string(rank), std::ios::binary);
  const auto write = [&](const void* data, size_t size) {
    out.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  };
  write(trained.losses.data(), trained.losses.size() * sizeof(double));
  for (const Tensor& tensor : trained.end) write(tensor.contiguous().raw_data(), tensor.size_bytes());
}

std::string run_processes(size_t number, const Case& c) {
  const auto folder = std::filesystem::temp_directory_path() / concat("tensord_ddp_", getpid(), "_", c.name);
  std::filesystem::create_directories(folder);
  std::vector<pid_t> children;
  for (int rank = 0; rank < c.world; ++rank) {
    std::vector<std::string> variables{concat("RANK=", rank), concat("TENSORD_DDP_CASE=", number),
                                       "TENSORD_DDP_FOLDER=" + folder.string()};
    std::vector<char*> environment;
    for (std::string& variable : variables) environment.push_back(variable.data());
    for (char** at = environ; *at; ++at) environment.push_back(*at);
    environment.push_back(nullptr);
    std::string filter = "--gtest_filter=*.DISABLED_AsRank", also = "--gtest_also_run_disabled_tests",
                program = "/proc/self/exe";
    char* const arguments[] = {program.data(), filter.data(), also.data(), nullptr};
    EXPECT_EQ(posix_spawn(&children.emplace_back(), program.c_str(), nullptr, nullptr, arguments, environment.data()),
              0);
  }
  std::string bytes;
  for (int rank = 0; rank < c.world; ++rank) {
    int status = 0;
    waitpid(children[static_cast<size_t>(rank)], &status, 0);
    EXPECT_EQ(status, 0) << c.name << " rank " << rank;
    std::ifstream in(folder / std::to_string(rank), std::ios::binary);
    bytes.append(std::istreambuf_iterator<char>(in), {});
  }
  std::filesystem::remove_all(folder);
  return bytes;
}

TEST(DistributedDataParallel, ProcessesAndThreadsOverGlooGiveTheSameBits) {
  if (!distributed::has_gloo()) GTEST_SKIP() << "this build has no Gloo";
  const std::vector<Case> cases = ddp_cases();
  for (size_t number = 0; number < cases.size(); ++number) {
    const Case& c = cases[number];
    if (c.name != "plain_of_three" && c.name != "norm") continue;
    std::string expected;
    for (const Trained& rank : train_on_threads(c, "gloo")) {
      expected.append(reinterpret_cast<const char*>(rank.losses.data()), rank.losses.size() * sizeof(double));
      for (const Tensor& tensor : rank.end) {
        expected.append(static_cast<const char*>(tensor.contiguous().raw_data()), tensor.size_bytes());
      }
    }
    EXPECT_FALSE(expected.empty());
    EXPECT_EQ(run_processes(number, c), expected) << c.name;
  }
}

// --- buckets

Tensor floats(Dims sizes, float value) {
  const Tensor tensor = Tensor::empty(std::move(sizes), DType::kFloat32);
  std::fill_n(tensor.data<float>(), tensor.numel(), value);
  return tensor;
}

TEST(Buckets, AreOfPyTorchsSizes) {
  // 40 Linears of 512 × 512, whose gradients arrive in reverse order; as measured with PyTorch.
  Tensors parameters;
  std::vector<size_t> order;
  for (int i = 0; i < 40; ++i) {
    parameters.push_back(Tensor::meta(Dims{512, 512}, DType::kFloat32));
    parameters.push_back(Tensor::meta(Dims{512}, DType::kFloat32));
  }
  for (size_t i = parameters.size(); i-- > 0;) order.push_back(i);
  std::vector<size_t> sizes;
  const size_t limits[] = {size_t{1} << 20, size_t{25} << 20};
  for (const auto& indices : distributed::plan_buckets(parameters, order, limits)) {
    size_t size = 0;
    for (const size_t index : indices) size += parameters[index].size_bytes();
    sizes.push_back(size);
  }
  EXPECT_EQ(sizes, (std::vector<size_t>{1'050'624, 26'265'600, 14'708'736}));
}

Tensor sum(const Tensor& tensor) { return ops::call_by_name("aten::sum", tensor); }

// Leaves of ones, and a reducer for them.
struct Leaves {
  Leaves(ProcessGroup& group, distributed::ReducerOptions options) {
    for (const int64_t size : {3, 2, 4}) {
      tensors.push_back(floats({size}, 1));
      autograd::set_requires_grad(tensors.back());
    }
    reducer.emplace(group,
                    std::vector<distributed::NamedParameter>{{"a", tensors[0]}, {"b", tensors[1]}, {"c", tensors[2]}},
                    std::vector<distributed::NamedParameter>(), std::move(options));
  }
  // Runs a pass for each leaf, in this order.
  void backward(std::initializer_list<size_t> order) const {
    for (const size_t index : order) autograd::backward(sum(tensors[index]));
  }
  float gradient(size_t index) const { return autograd::grad(tensors[index]).data<float>()[0]; }

  Tensors tensors;
  std::optional<distributed::Reducer> reducer;
};

TEST(Buckets, AreMadeAnewInTheOrderOfRank0sGradients) {
  for (const bool views : {false, true}) {
    on_ranks(2, backends_of("local"), [&](ProcessGroup& group) {
      Leaves leaves(group, {.bucket_cap_bytes = 16, .gradient_as_bucket_view = views});
      EXPECT_EQ(leaves.reducer->buckets(), (distributed::BucketPlan{{0, 1, 2}}));
      for (int pass = 1; pass <= 3; ++pass) {
        leaves.reducer->prepare();
        group.rank() == 0 ? leaves.backward({1, 2, 0}) : leaves.backward({2, 0, 1});
        EXPECT_EQ(leaves.reducer->buckets(), (distributed::BucketPlan{{1, 2}, {0}}));
        for (size_t i = 0; i < 3; ++i) EXPECT_EQ(leaves.gradient(i), static_cast<float>(pass));
      }
    });
  }
}

TEST(Reducer, MultipliesByOneThrough) {
  // As in PyTorch the factor 1/W is applied before the sum, so that 3e38 on two ranks stays finite, and 0.3 on one of
  // three ranks is not exactly 0.1.
  on_ranks(2, backends_of("local"), [](ProcessGroup& group) {
    Leaves leaves(group, {});
    leaves.reducer->prepare();
    for (const Tensor& tensor : leaves.tensors)
      autograd::backward(sum(ops::call_by_name("aten::mul.Scalar", tensor, 3e38)));
    EXPECT_EQ(leaves.gradient(0), 3e38f);
  });
  on_ranks(3, backends_of("local"), [](ProcessGroup& group) {
    Leaves leaves(group, {});
    leaves.reducer->prepare();
    const double factor = group.rank() == 1 ? 0.3 : 0;
    for (const Tensor& tensor : leaves.tensors) {
      autograd::backward(sum(ops::call_by_name("aten::mul.Scalar", tensor, factor)));
    }
    EXPECT_EQ(leaves.gradient(0), 0.3f * (1.0f / 3.0f));
  });
}

TEST(Reducer, HooksOfSeveralThreadsSendInOneOrder) {
  on_ranks(2, backends_of("local"), [](ProcessGroup& group) {
    Leaves leaves(group, {.bucket_cap_bytes = 4});
    for (int pass = 0; pass < 20; ++pass) {
      for (const Tensor& tensor : leaves.tensors) autograd::set_grad(tensor, Tensor());
      Tensor total = sum(leaves.tensors[0]);
      for (const size_t index : {1, 2})
        total = ops::call_by_name("aten::add.Tensor", total, sum(leaves.tensors[index]), 1);
      leaves.reducer->prepare();
      autograd::backward(total, {}, {.threads = 3});
      for (size_t i = 0; i < 3; ++i) ASSERT_EQ(leaves.gradient(i), 1);
    }
    EXPECT_EQ(leaves.reducer->buckets().size(), 3u);
  });
}

TEST(Reducer, Bf16HookRoundsWhatTravels) {
  on_ranks(2, backends_of("local"), [](ProcessGroup& group) {
    Leaves leaves(group, {.hook = distributed::bf16_compress_hook()});
    leaves.reducer->prepare();
    for (const Tensor& tensor : leaves.tensors) {
      autograd::backward(sum(ops::call_by_name("aten::mul.Scalar", tensor, 1.001 + group.rank())));
    }
    // 1.001 and 2.001 are 1 and 2 in bfloat16.
    EXPECT_EQ(leaves.gradient(0), 1.5f);
  });
}

TEST(StaticGraph, UsesAreThoseOfTheFirstPass) {
  for (const bool views : {false, true}) {
    on_ranks(2, backends_of("local"), [&](ProcessGroup& group) {
      Leaves leaves(group, {.bucket_cap_bytes = 4, .static_graph = true, .gradient_as_bucket_view = views});
      for (int pass = 0; pass < 3; ++pass) {
        for (const Tensor& tensor : leaves.tensors) autograd::set_grad(tensor, Tensor());
        leaves.reducer->prepare();
        // Both ranks use the first, only rank 1 uses the second, nobody the third.
        Tensor total = sum(leaves.tensors[0]);
        if (group.rank() == 1) total = ops::call_by_name("aten::add.Tensor", total, sum(leaves.tensors[1]), 1);
        autograd::backward(total);
        EXPECT_EQ(leaves.gradient(0), 1);
        EXPECT_EQ(leaves.gradient(1), 0.5f);
        EXPECT_FALSE(autograd::grad(leaves.tensors[2]).defined());
      }
      EXPECT_EQ(leaves.reducer->buckets().size(), 3u);
    });
  }
}

// --- refused calls

std::vector<std::string> errors_of(int size, const std::function<void(ProcessGroup&)>& fn) {
  return errors_of_ranks(size, backends_of("local"), {.timeout = 20s}, fn);
}

TEST(Errors, ModulesThatDifferAreOneErrorOfAllRanks) {
  const auto errors =
      errors_of(3, [](ProcessGroup& group) { Ddp ddp(std::make_shared<Linear>(group.rank() == 2 ? 5 : 4, 3), group); });
  for (const std::string& error : errors) {
    EXPECT_THAT(error, HasSubstr("weight float32[3, 4]"));
    EXPECT_THAT(error, HasSubstr("weight float32[3, 5]"));
    EXPECT_THAT(error, HasSubstr("on rank 2"));
    EXPECT_EQ(error, errors.front());
  }
}

TEST(Errors, AParameterThatIsNotUsedIsNamed) {
  const auto errors = errors_of(2, [](ProcessGroup& group) {
    const auto net = std::make_shared<Net>(false);
    Ddp ddp(net, group);
    net->uses_side = false;
    for (int step = 0; step < 2; ++step) {
      autograd::backward(sum(ddp(floats({1, 2, 4, 4}, 1))));
    }
  });
  for (const std::string& error : errors) {
    EXPECT_THAT(error, HasSubstr("Expected to have finished reduction in the prior iteration"));
    EXPECT_THAT(error, HasSubstr("4 (side.weight), 5 (side.bias)"));
  }
}

TEST(Errors, AStaticGraphThatChanges) {
  for (const bool grows : {false, true}) {
    const auto errors = errors_of(2, [grows](ProcessGroup& group) {
      const auto net = std::make_shared<Net>(false);
      DistributedOptions options;
      options.reducer.static_graph = true;
      Ddp ddp(net, group, options);
      for (int step = 0; step < 3; ++step) {
        net->uses_side = (step == 1) == grows;
        autograd::backward(sum(ddp(floats({1, 2, 4, 4}, 1))));
      }
    });
    for (const std::string& error : errors) {
      EXPECT_THAT(error, HasSubstr("Your training graph has changed in this iteration: side."));
      EXPECT_THAT(error, HasSubstr(grows ? "has more gradients" : "has fewer gradients"));
    }
  }
}

TEST(Errors, TwoPassesOfOneForward) {
  const auto errors = errors_of(1, [](ProcessGroup& group) {
    Ddp ddp(std::make_shared<Linear>(2, 2), group);
    const Tensor total = sum(ddp(floats({1, 2}, 1)));
    autograd::backward(total, {}, {.retain_graph = true});
    autograd::backward(total);
  });
  EXPECT_THAT(errors.front(), HasSubstr("Expected to mark a variable ready only once"));
}

TEST(Errors, AParameterThatIsFreedLater) {
  const auto errors = errors_of(1, [](ProcessGroup& group) {
    const auto linear = std::make_shared<Linear>(2, 2);
    autograd::set_requires_grad(linear->bias, false);
    Ddp ddp(linear, group);
    ddp(floats({1, 2}, 1));
    autograd::set_requires_grad(linear->bias, true);
    ddp(floats({1, 2}, 1));
  });
  EXPECT_THAT(errors.front(), HasSubstr("bias required no gradient when the module was wrapped"));
}

TEST(Errors, JoinThatThrowsNamesWhoEnded) {
  const auto errors = errors_of(2, [](ProcessGroup& group) {
    Ddp ddp(std::make_shared<Linear>(2, 2), group);
    Ddp::Join join(ddp, {.throws_on_early_end = true});
    for (int step = 0; step < 1 + group.rank(); ++step) autograd::backward(sum(ddp(floats({1, 2}, 1))));
    join.finish();
  });
  EXPECT_EQ(errors[0], "Rank 0 exhausted all inputs.");
  EXPECT_THAT(errors[1], HasSubstr("Detected at least one rank that exhausted inputs"));
}

}  // namespace
}  // namespace tensord::nn::ddp_test
