#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/file_descriptor.h"

namespace tensord::distributed {

// Splits a stream of chunks into lines. A line that is too long is passed on in several parts.
class LineCutter {
 public:
  static constexpr size_t kMaxLine = 64 << 10;
  explicit LineCutter(size_t max_line = kMaxLine) : max_line_(max_line) {}
  void add(std::string_view bytes, const std::function<void(std::string_view line)>& on_line);
  // Passes on what is left without a newline.
  void finish(const std::function<void(std::string_view line)>& on_line);

 private:
  const size_t max_line_;
  std::string rest_;
};

// A program that runs as a child and dies with the thread that started it: the kernel kills it when that thread ends,
// for whatever reason. Its output arrives through pipes. Not thread-safe.
class ChildProcess {
 public:
  struct Options {
    std::vector<std::string> arguments;    // the program first: a path, or a name that is looked up in PATH
    std::vector<std::string> environment;  // "NAME=value", over those of this process
    bool has_input = false;                // a socket to its standard input; otherwise the input is empty
    bool has_events = false;               // a pipe that it writes to as file descriptor 3
    bool has_data = false;                 // a socket that it reads from as file descriptor 4
  };
  // Throws Error{kNotFound} if the program cannot be run.
  explicit ChildProcess(const Options& options);
  // Kills the program if it still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  // Once the program has ended: its status as from waitpid. Does not block.
  std::optional<int> status();
  // Signals the program and its descendants in the same process group.
  void send_signal(int signal) const;

  // Non-blocking ends of the pipes; -1: closed, or not requested.
  int output() const { return output_->get(); }
  int errors() const { return errors_->get(); }
  int events() const { return events_->get(); }
  // Reads what is available. Returns false at the end of the pipe.
  static bool read_some(int fd, std::string& bytes);
  // Writes to the program's standard input. Returns false if the program no longer reads it.
  bool write_input(std::string_view bytes);
  // This side of the socket, which blocks.
  int data() const { return data_->get(); }

 private:
  pid_t pid_ = -1;
  std::optional<int> status_;
  std::unique_ptr<FileDescriptor> input_, output_, errors_, events_, data_;
};

// "exit code 3", "signal 9 (Killed)".
std::string describe_status(int status);

}  // namespace tensord::distributed
