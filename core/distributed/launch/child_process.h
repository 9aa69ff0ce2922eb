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

// Cuts what comes in pieces into lines; what is too long for one comes as several.
class LineCutter {
 public:
  static constexpr size_t kMaxLine = 64 << 10;
  explicit LineCutter(size_t max_line = kMaxLine) : max_line_(max_line) {}
  void add(std::string_view bytes, const std::function<void(std::string_view line)>& on_line);
  // What is left without an end of line.
  void finish(const std::function<void(std::string_view line)>& on_line);

 private:
  const size_t max_line_;
  std::string rest_;
};

// A program that runs as a child, and dies with the thread that started it: the kernel kills it when that thread ends,
// however that happens. Its output comes through pipes. Not thread-safe.
class ChildProcess {
 public:
  struct Options {
    std::vector<std::string> arguments;    // the program first: a path, or a name that PATH has
    std::vector<std::string> environment;  // "NAME=value", over those of this process
    bool has_input = false;                // a socket to its standard input; else there is nothing to read
    bool has_events = false;               // a pipe that it writes to as file descriptor 3
    bool has_data = false;                 // a socket that it reads from as file descriptor 4
  };
  // Throws Error{kNotFound} where the program cannot be run.
  explicit ChildProcess(const Options& options);
  // Kills it, if it runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  // Once it has ended: what waitpid says. Does not block.
  std::optional<int> status();
  // To it and to what it started, as far as that did not leave its process group.
  void send_signal(int signal) const;

  // Ends of the pipes, which do not block; -1: closed, or not asked for.
  int output() const { return output_->get(); }
  int errors() const { return errors_->get(); }
  int events() const { return events_->get(); }
  // Reads what is there. False once the pipe has ended.
  static bool read_some(int fd, std::string& bytes);
  // Writes to its standard input. False where it does not read any more.
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
