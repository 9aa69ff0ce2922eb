// Ranks that are processes, each on an emulated device of its own, over NCCL's functions there
// (tests/cuda/emulated/nccl.cpp).
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "core/distributed/nccl/nccl_backend.h"
#include "core/distributed/store/file_store.h"
#include "core/nn/distributed.h"
#include "core/nn/layers/layers.h"
#include "core/nn/optim/optimizer.h"
#include "core/ops/generator.h"
#include "tests/device/cuda_fixture.h"
#include "tests/distributed/ranks.h"

namespace tensord::cuda_ranks_test {
namespace {

using namespace distributed;
using namespace std::chrono_literals;
using fixtures::fill;
using fixtures::values_of;

Tensor numbers(Dims sizes, double first, DType dtype = DType::kFloat32) {
  const Tensor out = Tensor::empty(std::move(sizes), DType::kFloat64);
  fill(out, [=](int64_t i) { return first + static_cast<double>(i % 11); });
  return out.to(dtype);
}

std::string text_of(const Tensor& tensor) {
  std::ostringstream out;
  for (const auto& value : values_of(tensor.to(Device{}))) out << value.real() << ' ';
  return out.str();
}

// What a rank does, by name; its result or error is what the parent gets.
std::string collectives(ProcessGroup& group) {
  const Device device = group.device();
  const int rank = group.rank(), size = group.size();
  std::string text;
  const auto add = [&](const Tensor& tensor) { text += text_of(tensor) + "| "; };
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kInt64, DType::kUInt8}) {
    const Tensor x = numbers({3}, rank, dtype).to(device);
    group.all_reduce(x)->wait();
    add(x);
  }
  // More than a channel holds, and what is made just before it.
  const Tensor large =
      ops::call_by_name("aten::add.Tensor", numbers({70'000}, 0).to(device), Tensor::scalar(1.0f + rank).to(device));
  group.all_reduce(large, kMax)->wait();
  add(large.as_view({2}, {1}, 69'998));
  const Tensor half = numbers({2}, rank).to(device);
  group.all_reduce(half, premul_sum(0.5))->wait();
  add(half);
  const Tensor sent = numbers({2}, 10 * rank).to(device);
  group.broadcast(sent, size - 1)->wait();
  add(sent);
  const Tensor all = Tensor::empty(Dims{2 * size}, DType::kFloat32, device);
  group.all_gather_into_tensor(all, numbers({2}, rank).to(device))->wait();
  add(all);
  const Tensor own = Tensor::empty(Dims{1}, DType::kFloat32, device);
  group.reduce_scatter_tensor(own, numbers({size}, rank).to(device))->wait();
  add(own);
  const Tensor turned = Tensor::empty(Dims{size}, DType::kFloat32, device);
  group.all_to_all_single(turned, numbers({size}, 100 * rank).to(device))->wait();
  add(turned);
  const Tensor got = Tensor::empty(Dims{1}, DType::kFloat32, device);
  for (const auto& work :
       group.start_messages({{ProcessGroup::Message::Way::kSend, numbers({1}, rank).to(device), (rank + 1) % size},
                             {ProcessGroup::Message::Way::kRecv, got, (rank + size - 1) % size}})) {
    work->wait();
  }
  add(got);
  group.barrier()->wait();
  return text;
}

// The parameters after some steps.
std::string training(ProcessGroup& group) {
  ops::Generator generator(3 + static_cast<uint64_t>(group.rank()));  // rank 0's are used
  const ops::GeneratorGuard guard(generator);
  const auto net = nn::sequential(std::make_shared<nn::Linear>(4, 8), std::make_shared<nn::GELU>(),
                                  std::make_shared<nn::Linear>(8, 2));
  net->to(group.device());
  nn::DistributedDataParallel ddp(net, group, {});
  nn::SGD optimizer(net->parameters(), {.lr = 0.01});
  for (int step = 0; step < 4; ++step) {
    optimizer.zero_grad();
    const Tensor x = numbers({3, 4}, 0.1 * group.rank() + 0.2 * step).to(group.device());
    autograd::backward(ops::call_by_name("aten::mse_loss", ddp(x), numbers({3, 2}, -1).to(group.device())));
    optimizer.step();
  }
  std::string text;
  for (const Tensor& parameter : net->parameters()) text += text_of(autograd::detach(parameter));
  return text;
}

// Until somebody ends it. The last rank is killed, or stands still, after some of them.
std::string endless(ProcessGroup& group, bool is_killed) {
  const Tensor x = numbers({1000}, 1).to(group.device());
  for (int i = 0;; ++i) {
    const bool is_due = i == 20 && group.rank() == group.size() - 1;
    if (is_due && is_killed) raise(SIGKILL);
    for (int tenths = 0; is_due && tenths < 600 && !group.failure(); ++tenths) std::this_thread::sleep_for(100ms);
    group.all_reduce(x, kMax)->wait();
    synchronize(group.device());
  }
}

std::string run_rank(const std::string& what, const std::string& folder, int rank, int size) {
  try {
    const auto store = std::make_shared<FileStore>(folder + "/store", 20s);
    // `same`: two ranks on one device.
    ProcessGroup group(store, "test", rank, size, nccl_backends({.device = what == "same" ? 0 : rank, .library = {}}),
                       {.timeout = what == "hung" ? 12s : 60s});
    const bool is_endless = what == "killed" || what == "hung";
    const std::string text = what == "training" ? training(group)
                             : is_endless       ? endless(group, what == "killed")
                                                : collectives(group);
    group.close();
    return text;
  } catch (const std::exception& error) {
    return concat("error: ", error.what());
  }
}

// A rank's process, which the other tests start.
TEST(CudaRank, Runs) {
  const char* const given = std::getenv("TENSORD_TEST_RANK");
  if (!given) GTEST_SKIP() << "no rank";
  std::istringstream in(given);
  std::string what, folder;
  int rank = 0, size = 0;
  in >> what >> folder >> rank >> size;
  const std::string text = run_rank(what, folder, rank, size);
  std::ofstream(concat(folder, "/", rank)) << text;
}

class CudaRanks : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const library = std::getenv("TENSORD_CUDA");
    if (!library || !*library) GTEST_SKIP() << "these need the emulated devices";
    char name[] = "/tmp/tensord_ranks_XXXXXX";
    folder_ = mkdtemp(name);
  }
  void TearDown() override {
    if (!folder_.empty()) static_cast<void>(std::system(("rm -rf " + folder_).c_str()));
  }

  // What each rank says, "" of one that was killed.
  std::vector<std::string> run(const std::string& what, int size) {
    std::vector<pid_t> children;
    for (int rank = 0; rank < size; ++rank) children.push_back(start(what, rank, size));
    std::vector<std::string> texts;
    for (int rank = 0; rank < size; ++rank) {
      waitpid(children[static_cast<size_t>(rank)], nullptr, 0);
      std::ifstream in(concat(folder_, "/", rank));
      texts.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
    return texts;
  }

 private:
  pid_t start(const std::string& what, int rank, int size) {
    const pid_t child = fork();
    if (child != 0) return child;
    setenv("TENSORD_TEST_RANK", concat(what, " ", folder_, " ", rank, " ", size).c_str(), 1);
    setenv("TENSORD_NCCL", std::getenv("TENSORD_CUDA"), 1);
    setenv("TENSORD_CUDA_DEVICES", std::to_string(size).c_str(), 1);
    alarm(120);
    execl("/proc/self/exe", "device_test", "--gtest_filter=CudaRank.Runs", "--gtest_brief=1", nullptr);
    _exit(127);
  }

  std::string folder_;
};

TEST_F(CudaRanks, MoveAndReduce) {
  const std::vector<std::string> texts = run("collectives", 3);
  const std::string same = "3 6 9 | 3 6 9 | 3 6 9 | 3 6 9 | 8 9 | 1.5 3 | 20 21 | 0 1 1 2 2 3 | ";
  EXPECT_EQ(texts[0], same + "3 | 0 100 200 | 2 | ");
  EXPECT_EQ(texts[1], same + "6 | 1 101 201 | 0 | ");
  EXPECT_EQ(texts[2], same + "9 | 2 102 202 | 1 | ");
}

TEST_F(CudaRanks, TrainAsOnTheHost) {
  const std::vector<std::string> texts = run("training", 2);
  EXPECT_EQ(texts[0], texts[1]);
  std::vector<std::string> expected(2);
  fixtures::on_ranks(2, local_backends(),
                     [&](ProcessGroup& group) { expected[static_cast<size_t>(group.rank())] = training(group); });
  std::istringstream got(texts[0]), wanted(expected[0]);
  int count = 0;
  for (double a = 0, b = 0; wanted >> b; ++count) {
    ASSERT_TRUE(got >> a) << texts[0];
    EXPECT_NEAR(a, b, 1e-4 * std::max(1.0, std::abs(b))) << count;
  }
  EXPECT_EQ(count, 4 * 8 + 8 + 8 * 2 + 2);
}

TEST_F(CudaRanks, OneThatIsKilledEndsTheGroup) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::string> texts = run("killed", 3);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);  // of 60
  EXPECT_EQ(texts[2], "");
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_THAT(texts[0], ::testing::HasSubstr("all_reduce number "));
  EXPECT_THAT(texts[0], ::testing::HasSubstr("connection closed by rank 2"));
}

TEST_F(CudaRanks, OneThatStandsStillEndsTheGroup) {
  for (const std::string& text : run("hung", 3)) {
    EXPECT_THAT(text,
                ::testing::HasSubstr(
                    "all_reduce number 21, float32[1000], max: timed out waiting for other ranks; not there: rank 2"));
  }
}

TEST_F(CudaRanks, TwoOnOneDeviceAreRefused) {
  for (const std::string& text : run("same", 2)) EXPECT_THAT(text, ::testing::HasSubstr("Duplicate GPU detected"));
}

}  // namespace
}  // namespace tensord::cuda_ranks_test
