// Ranks as processes, over Gloo and a TCP store: killed, frozen, and without the store.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "core/distributed/store/tcp_store.h"
#include "tests/distributed/ranks.h"

namespace tensord::distributed::processes_test {
namespace {

using namespace fixtures;
using Clock = std::chrono::steady_clock;

// Child processes, one for each rank, that report their errors through pipes.
class Processes {
 public:
  Processes(int size, GroupOptions options, const std::function<void(ProcessGroup&)>& fn) {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    EXPECT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(listener, 64), 0);
    EXPECT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length), 0);
    const uint16_t port = ntohs(address.sin_port);
    // Before this process starts threads.
    for (int rank = 0; rank < size; ++rank) {
      int ends[2];
      EXPECT_EQ(pipe(ends), 0);
      const pid_t child = fork();
      if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        close(listener);
        run_rank(rank, size, port, options, fn, ends[1]);
        _exit(0);
      }
      close(ends[1]);
      children_.push_back(child);
      pipes_.push_back(ends[0]);
    }
    store_ = std::make_unique<TcpStore>(TcpStoreOptions{.is_server = true, .listen_fd = listener});
  }
  ~Processes() {
    for (const pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
    for (const int fd : pipes_) close(fd);
  }

  pid_t child(int rank) const { return children_[static_cast<size_t>(rank)]; }
  Store& store() { return *store_; }
  void end_store() { store_.reset(); }
  // The error of a rank; returns when its process has ended.
  std::string text(int rank) {
    std::string text;
    char buffer[4096];
    for (ssize_t got; (got = read(pipes_[static_cast<size_t>(rank)], buffer, sizeof(buffer))) > 0;) {
      text.append(buffer, static_cast<size_t>(got));
    }
    return text;
  }

 private:
  static void run_rank(int rank, int size, uint16_t port, GroupOptions options,
                       const std::function<void(ProcessGroup&)>& fn, int fd) {
    std::string text;
    try {
      const auto store = std::make_shared<TcpStore>(TcpStoreOptions{.port = port, .timeout = 20s});
      ProcessGroup group(store, "test", rank, size, gloo_backends(), options);
      group.barrier()->wait();
      store->add("ready", 1);
      fn(group);
      group.close();
      text = "ended well";
    } catch (const std::exception& error) {
      text = error.what();
    }
    EXPECT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  std::vector<pid_t> children_;
  std::vector<int> pipes_;
  std::unique_ptr<TcpStore> store_;
};

void reduce_for_ever(ProcessGroup& group) {
  const Tensor tensor = Tensor::empty(Dims{100'000}, DType::kFloat32);
  fill(tensor, [](int64_t) { return 0.0; });
  for (;;) group.all_reduce(tensor)->wait();
}

void wait_until_ready(Processes& processes, int size) {
  while (processes.store().add("ready", 0) < size) std::this_thread::sleep_for(5ms);
  std::this_thread::sleep_for(50ms);
}

class Ranks : public ::testing::Test {
 protected:
  void SetUp() override {
    // Checked in a child: the test's process forks later, and must have no threads.
    const pid_t child = fork();
    if (child == 0) _exit(has_gloo() ? 0 : 1);
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) GTEST_SKIP() << "this build has no Gloo";
  }
};

TEST_F(Ranks, ComputeTheSame) {
  Processes processes(4, {.timeout = 600s, .secret = "secret"}, [](ProcessGroup& group) {
    const Tensor tensor = Tensor::empty(Dims{1000}, DType::kFloat32);
    fill(tensor, [&](int64_t i) { return static_cast<double>(i * (group.rank() + 1)); });
    group.all_reduce(tensor)->wait();
    for (int64_t i = 0; i < 1000; ++i) {
      if (tensor.data<float>()[i] != static_cast<float>(10 * i)) throw Error(ErrorCode::kInternal, "a wrong sum");
    }
  });
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(processes.text(rank), "ended well") << rank;
}

TEST_F(Ranks, AKilledOneEndsAllAtOnce) {
  for (const int killed : {0, 3}) {
    Processes processes(4, {.timeout = 600s}, reduce_for_ever);
    wait_until_ready(processes, 4);
    const auto start = Clock::now();
    kill(processes.child(killed), SIGKILL);
    std::string first;
    for (int rank = 0; rank < 4; ++rank) {
      if (rank == killed) continue;
      const std::string text = processes.text(rank);
      EXPECT_NE(text.find("all_reduce number"), std::string::npos) << "rank " << rank << ": " << text;
      if (first.empty()) first = text;
      EXPECT_EQ(text, first);
    }
    // All of them, whether they communicate with the dead one or not.
    EXPECT_LT(Clock::now() - start, 300s);
  }
}

TEST_F(Ranks, AFrozenOneIsADeadlineOfAll) {
  Processes processes(3, {.timeout = 2s}, reduce_for_ever);
  wait_until_ready(processes, 3);
  const auto start = Clock::now();
  kill(processes.child(1), SIGSTOP);
  for (const int rank : {0, 2}) {
    const std::string text = processes.text(rank);
    EXPECT_NE(text.find("all_reduce number"), std::string::npos) << text;
    EXPECT_NE(text.find("imed out"), std::string::npos) << text;
  }
  EXPECT_LT(Clock::now() - start, 300s);
}

TEST_F(Ranks, WithoutTheStoreTheGroupEnds) {
  Processes processes(3, {.timeout = 600s}, reduce_for_ever);
  wait_until_ready(processes, 3);
  const auto start = Clock::now();
  processes.end_store();
  for (int rank = 0; rank < 3; ++rank) EXPECT_NE(processes.text(rank), "ended well");
  EXPECT_LT(Clock::now() - start, 300s);
}

TEST_F(Ranks, TheNextGenerationGoesOnAfterADeath) {
  for (int generation = 0; generation < 3; ++generation) {
    Processes processes(2, {.timeout = 30s}, [&](ProcessGroup& group) {
      if (generation < 2 && group.rank() == 1) raise(SIGKILL);
      group.barrier()->wait();
    });
    EXPECT_EQ(processes.text(0) == "ended well", generation == 2);
  }
}

}  // namespace
}  // namespace tensord::distributed::processes_test
