// The main function of every test program: GoogleTest's, and a watcher process that kills a test which waits forever,
// and names it. A lost wake-up thus fails within half a minute, on a busy machine too: the watcher checks that no
// thread wants a core, not how long the test takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

#include "core/base/log.h"
#include "core/base/parallel.h"

namespace {

constexpr int kPatienceS = 20;
// Less than a twentieth of a core, including the time that threads waited for one: at most polling.
constexpr uint64_t kIdleNs = 1'000'000'000;

// Shared with the watcher: the running test; empty between two.
struct Board {
  volatile uint64_t test = 0;  // incremented at each start and end
  char name[256] = {};
};

class NameTests final : public ::testing::EmptyTestEventListener {
 public:
  explicit NameTests(Board* board) : board_(board) {}
  void OnTestStart(const ::testing::TestInfo& test) override {
    const std::string name = std::string(test.test_suite_name()) + "." + test.name();
    std::strncpy(board_->name, name.c_str(), sizeof(board_->name) - 1);
    board_->test = board_->test + 1;
  }
  void OnTestEnd(const ::testing::TestInfo&) override {
    board_->test = board_->test + 1;
    std::memset(board_->name, 0, sizeof(board_->name));
    // Undo what the test has changed.
    tensord::set_log_sink(nullptr);
    tensord::set_thread_budget(thread_budget_);
  }

 private:
  Board* board_;
  const int thread_budget_ = tensord::thread_budget();
};

struct Seen {
  bool is_known = true;                       // the system reports it
  bool is_elsewhere = false;                  // a thread waits for a disk, a debugger or a child process
  std::map<std::string, uint64_t> wanted_ns;  // by thread: time on a core, or waiting for one
};

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

Seen look_at(pid_t process) {
  Seen out;
  std::error_code gone;
  const auto tasks = std::filesystem::path("/proc") / std::to_string(process) / "task";
  for (const auto& task : std::filesystem::directory_iterator(tasks, gone)) {
    uint64_t on_core = 0, waiting = 0;
    std::ifstream(task.path() / "schedstat") >> on_core >> waiting;
    out.wanted_ns[task.path().filename()] = on_core + waiting;
    const std::string stat = text_of(task.path() / "stat");
    const size_t name_end = stat.rfind(')');
    if (name_end != std::string::npos && std::strchr("DTt", stat[name_end + 2]) != nullptr) out.is_elsewhere = true;
    std::istringstream children(text_of(task.path() / "children"));
    for (pid_t child = 0; children >> child;) out.is_elsewhere |= child != getpid();
  }
  out.is_known = std::filesystem::exists(tasks.parent_path() / "schedstat", gone);
  return out;
}

// The additional time that threads ran or wanted to run.
uint64_t growth(const Seen& before, const Seen& now) {
  uint64_t out = 0;
  for (const auto& [thread, wanted_ns] : now.wanted_ns) {
    const auto found = before.wanted_ns.find(thread);
    const uint64_t base = found == before.wanted_ns.end() ? 0 : found->second;
    out += wanted_ns > base ? wanted_ns - base : 0;
  }
  return out;
}

// Ends with the watched process.
[[noreturn]] void watch(pid_t process, const Board& board) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != process) _exit(0);
  Seen before = look_at(process);
  uint64_t test = board.test;
  for (int seconds = 0;; ++seconds) {
    sleep(1);
    const Seen now = look_at(process);
    if (!now.is_known) _exit(0);
    if (board.name[0] == 0 || board.test != test || now.is_elsewhere || growth(before, now) > kIdleNs) {
      before = now;
      test = board.test;
      seconds = 0;
    } else if (seconds >= kPatienceS) {
      std::cerr << "\n[   HANGS  ] " << board.name << ": for " << kPatienceS
                << " s no thread has wanted a core; it waits for what never comes\n";
      kill(process, SIGABRT);
      _exit(1);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  setenv("TENSORD_VERIFY_PASSES", "1", 0);  // see core/jit/passes/pipeline.h
  void* shared = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared != MAP_FAILED && !::testing::GTEST_FLAG(list_tests)) {
    auto* board = new (shared) Board;
    const pid_t process = getpid();
    if (fork() == 0) watch(process, *board);
    ::testing::UnitTest::GetInstance()->listeners().Append(new NameTests(board));
  }
  return RUN_ALL_TESTS();
}
