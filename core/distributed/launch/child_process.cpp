#include "core/distributed/launch/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>

#include "core/base/error.h"

namespace tensord::distributed {
namespace {

struct Pipe {
  // Uses a socket where this process writes, because writing to a pipe without a reader would raise SIGPIPE.
  explicit Pipe(bool is_wanted, bool is_socket = false) {
    int ends[2] = {-1, -1};
    const auto make = [&] {
      return is_socket ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) : pipe2(ends, O_CLOEXEC);
    };
    if (is_wanted && make() != 0) fail(ErrorCode::kResourceExhausted, "a pipe: ", std::strerror(errno));
    read = std::make_unique<FileDescriptor>(ends[0]);
    write = std::make_unique<FileDescriptor>(ends[1]);
  }
  std::unique_ptr<FileDescriptor> read, write;
};

std::unique_ptr<FileDescriptor> not_blocking(std::unique_ptr<FileDescriptor> fd) {
  if (fd->get() >= 0) fcntl(fd->get(), F_SETFL, fcntl(fd->get(), F_GETFL) | O_NONBLOCK);
  return fd;
}

// This process's environment with some variables replaced.
std::vector<std::string> environment_with(const std::vector<std::string>& given) {
  std::map<std::string, std::string> all;
  const auto add = [&all](const std::string& variable) { all[variable.substr(0, variable.find('='))] = variable; };
  for (char** at = environ; *at; ++at) add(*at);
  for (const std::string& variable : given) add(variable);
  std::vector<std::string> out;
  for (auto& [name, variable] : all) out.push_back(std::move(variable));
  return out;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

constexpr int kFds = 5;

// Runs in the child between fork and exec, where nothing that takes a lock may be called. `fds` become descriptors 0 to
// 4; -1 keeps the parent's.
[[noreturn]] void become(char* const* arguments, char* const* environment, const int (&fds)[kFds], int problem,
                         pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // the parent died before PR_SET_PDEATHSIG took effect
  setpgid(0, 0);
  // Move the descriptors first, so that they do not overwrite each other.
  int moved[kFds];
  for (int i = 0; i < kFds; ++i) moved[i] = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD_CLOEXEC, 10);
  const int told = fcntl(problem, F_DUPFD_CLOEXEC, 10);
  for (int i = 0; i < kFds; ++i) {
    if (moved[i] >= 0) dup2(moved[i], i);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGCHLD, SIGXFSZ, SIGUSR1, SIGUSR2})
    ::signal(signal, SIG_DFL);
  execvpe(arguments[0], arguments, environment);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(told, &error, sizeof(error));
  _exit(127);
}

}  // namespace

void LineCutter::add(std::string_view bytes, const std::function<void(std::string_view)>& on_line) {
  rest_ += bytes;
  size_t start = 0;
  for (size_t end; (end = rest_.find('\n', start)) != std::string::npos; start = end + 1) {
    on_line(std::string_view(rest_).substr(start, end - start));
  }
  rest_.erase(0, start);
  if (rest_.size() > max_line_) finish(on_line);
}

void LineCutter::finish(const std::function<void(std::string_view)>& on_line) {
  if (!rest_.empty()) on_line(rest_);
  rest_.clear();
}

ChildProcess::ChildProcess(const Options& options) {
  check_internal(!options.arguments.empty(), "a program without a name");
  std::vector<std::string> arguments = options.arguments, environment = environment_with(options.environment);
  const std::vector<char*> argument_pointers = pointers_to(arguments), variables = pointers_to(environment);
  Pipe input(options.has_input, /*is_socket=*/true), output(true), errors(true), events(options.has_events),
      data(options.has_data, /*is_socket=*/true), problem(true);
  const FileDescriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int fds[kFds] = {options.has_input ? input.read->get() : nothing.get(), output.write->get(),
                         errors.write->get(), events.write->get(), data.read->get()};
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) become(argument_pointers.data(), variables.data(), fds, problem.write->get(), parent);
  if (pid_ < 0)
    fail(ErrorCode::kResourceExhausted, options.arguments[0], ": cannot be started: ", std::strerror(errno));
  setpgid(pid_, pid_);
  problem.write.reset();  // the child's end closes when exec succeeds
  int error = 0;
  ssize_t got;
  while ((got = read(problem.read->get(), &error, sizeof(error))) < 0 && errno == EINTR) {
  }
  input_ = std::move(input.write);
  output_ = not_blocking(std::move(output.read));
  errors_ = not_blocking(std::move(errors.read));
  events_ = not_blocking(std::move(events.read));
  data_ = std::move(data.write);
  if (got != sizeof(error)) return;
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
  fail(ErrorCode::kNotFound, options.arguments[0], ": cannot be started: ", std::strerror(error));
}

ChildProcess::~ChildProcess() {
  if (pid_ < 0 || status()) return;
  send_signal(SIGKILL);
  int ignored;
  while (waitpid(pid_, &ignored, 0) < 0 && errno == EINTR) {
  }
}

std::optional<int> ChildProcess::status() {
  int status = 0;
  if (!status_ && waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
  return status_;
}

void ChildProcess::send_signal(int signal) const {
  if (status_) return;  // the process id may have been reused
  if (kill(-pid_, signal) != 0) kill(pid_, signal);
}

bool ChildProcess::read_some(int fd, std::string& bytes) {
  char buffer[16 << 10];
  for (;;) {
    const ssize_t got = read(fd, buffer, sizeof(buffer));
    if (got > 0) {
      bytes.append(buffer, static_cast<size_t>(got));
      if (bytes.size() > (1 << 20)) return true;  // the rest is read in the next call
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    return got < 0 && errno == EAGAIN;
  }
}

bool ChildProcess::write_input(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = send(input_->get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

std::string describe_status(int status) {
  if (WIFSIGNALED(status)) return concat("signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ")");
  return concat("exit code ", WEXITSTATUS(status));
}

}  // namespace tensord::distributed
