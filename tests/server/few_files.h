#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

namespace tensord::fixtures {

// While it exists, the process can open only this many more files. REQUIRES: no other thread opens files meanwhile.
class FewFiles {
 public:
  explicit FewFiles(size_t left) {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit small = before_;
    small.rlim_cur = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      small.rlim_cur = std::max<rlim_t>(small.rlim_cur, std::stoul(entry.path().filename().string()) + 1 + left);
    }
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &small), 0);
    for (int file; (file = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) held_.push_back(file);
    for (size_t i = 0; i < left && !held_.empty(); ++i, held_.pop_back()) close(held_.back());
  }
  ~FewFiles() {
    for (const int file : held_) close(file);
    setrlimit(RLIMIT_NOFILE, &before_);
  }
  FewFiles(const FewFiles&) = delete;
  FewFiles& operator=(const FewFiles&) = delete;

 private:
  rlimit before_{};
  std::vector<int> held_;
};

}  // namespace tensord::fixtures
