// Starts and restarts a launcher's workers in agreement with the launchers of the other nodes.
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <iostream>
#include <thread>

#include "core/base/error.h"
#include "core/base/file_descriptor.h"
#include "core/distributed/gloo/gloo_backend.h"
#include "core/distributed/launch/environment.h"
#include "core/distributed/store/tcp_store.h"
#include "server/commands/launch_workers.h"

namespace tensord::server {
namespace {

using namespace std::chrono_literals;
using distributed::TcpStore;
using distributed::TcpStoreOptions;

// Polling interval of the shared store.
constexpr auto kStoreInterval = 200ms;

// Returns a port that is free now.
uint16_t free_port() {
  const FileDescriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof(address);
  if (fd.get() < 0 || bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    fail(ErrorCode::kUnavailable, "no port is free");
  }
  return ntohs(address.sin_port);
}

// Whether `host` resolves to an address of this node: only those can be bound. Waits for a name that does not resolve
// yet.
bool is_own(const std::string& host, std::chrono::seconds timeout) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (const int error = getaddrinfo(host.c_str(), "0", &hints, &list)) {
    if (std::chrono::steady_clock::now() > deadline) {
      fail(ErrorCode::kUnavailable, "the address of ", host, ": ", gai_strerror(error));
    }
    std::this_thread::sleep_for(kStoreInterval);
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  for (const addrinfo* at = list; at; at = at->ai_next) {
    const FileDescriptor fd(socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (fd.get() >= 0 && bind(fd.get(), at->ai_addr, at->ai_addrlen) == 0) return true;
  }
  return false;
}

std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return name;
}

// Receives termination signals through a signalfd.
class Signals {
 public:
  Signals() : fd_(make()) {}
  int fd() const { return fd_.get(); }
  // Returns 0 if no signal is pending.
  int next() const {
    signalfd_siginfo info;
    while (read(fd_.get(), &info, sizeof(info)) == sizeof(info)) {
      if (info.ssi_signo != SIGCHLD) return static_cast<int>(info.ssi_signo);
    }
    return 0;
  }

 private:
  static int make() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGCHLD}) sigaddset(&set, signal);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  const FileDescriptor fd_;
};

// Coordination between the launchers of all nodes; does nothing with a single node.
class Nodes {
 public:
  // A node without a rank determines its own.
  explicit Nodes(LaunchOptions& options) : options_(options) {
    if (options.nodes == 1) return;
    if (options.node_rank >= 0) {
      store_ = open_store(options.node_rank == 0);
    } else {
      options.node_rank = replace_value();
    }
  }

  // Waits until all nodes have reached this start. Ranks are numbered consecutively over the nodes.
  LaunchPlace meet(int start) {
    if (!store_) return {options_.address, options_.port > 0 ? options_.port : free_port(), 0, options_.workers};
    const auto workers_key = [&](int node) { return concat(key(start, "workers"), "/", node); };
    store_->set(workers_key(options_.node_rank), std::to_string(options_.workers));
    if (options_.node_rank == 0) {
      store_->set(key(start, "master"), concat(distributed::own_address(options_.address), " ", free_port()));
    }
    try {
      store_->barrier(key(start, "all"), options_.nodes, options_.join_timeout);
    } catch (const Error& error) {
      throw Error(error.code(), concat("not all of the ", options_.nodes, " nodes have come: ", error.what()));
    }
    const std::string text = store_->get(key(start, "master"));
    const size_t space = text.find(' ');
    LaunchPlace place{text.substr(0, space), static_cast<uint16_t>(std::stoi(text.substr(space + 1))), 0, 0};
    for (int node = 0; node < options_.nodes; ++node) {
      if (node == options_.node_rank) place.first_rank = place.world_size;
      place.world_size += std::stoi(store_->get(workers_key(node)));
    }
    return place;
  }
  // Only the first failure is kept.
  void tell_failure(int start, const std::string& text) {
    if (store_) store_->compare_set(key(start, "failed"), "", text);
  }
  void tell_done(int start) {
    if (store_) store_->add(key(start, "done"), 1);
  }
  // Returns the failure of any node.
  std::optional<std::string> failure(int start) {
    if (!store_ || std::chrono::steady_clock::now() < next_look_) return std::nullopt;
    next_look_ = std::chrono::steady_clock::now() + kStoreInterval;
    if (!store_->check(key(start, "failed"))) return std::nullopt;
    return store_->get(key(start, "failed"));
  }
  bool are_all_done(int start) { return !store_ || store_->add(key(start, "done"), 0) == options_.nodes; }
  // The store lives in node 0's launcher, which waits a little for the others to read the last state.
  void leave() {
    if (!store_) return;
    try {
      store_->barrier("leave", options_.nodes, 5s);
    } catch (const Error&) {
    }
  }

 private:
  std::unique_ptr<TcpStore> open_store(bool is_server) const {
    return std::make_unique<TcpStore>(TcpStoreOptions{.host = options_.address,
                                                      .port = options_.port,
                                                      .is_server = is_server,
                                                      .timeout = options_.join_timeout,
                                                      .token = options_.secret,
                                                      .listen_host = distributed::listen_host_for(options_.address)});
  }

  // The node with the rendezvous host is node 0; the others are numbered as they arrive.
  int replace_value() {
    if (is_own(options_.address, options_.join_timeout)) {
      try {
        store_ = open_store(true);
        return 0;
      } catch (const Error& error) {
        // Another launcher on this node has bound the port already.
        if (error.code() != ErrorCode::kUnavailable) throw;
      }
    }
    store_ = open_store(false);
    const auto place = static_cast<int>(store_->add("nodes", 1));
    check(place < options_.nodes, "--nnodes: ", options_.nodes, " nodes have already joined");
    return place;
  }

  static std::string key(int start, const char* what) { return concat("start_", start, "/", what); }
  const LaunchOptions& options_;
  std::unique_ptr<distributed::Store> store_;
  std::chrono::steady_clock::time_point next_look_{};
};

std::string text_of(const WorkerFailure& failure) {
  std::string text =
      concat("rank ", failure.rank, " (host ", host_name(), ", pid ", failure.pid, ") failed first: ", failure.reason);
  if (!failure.last_lines.empty()) text += "; its last lines:";
  for (const std::string& line : failure.last_lines) text += "\n  " + line;
  return text;
}

enum class End { kDone, kFailed, kSignalled };

End run_once(const LaunchOptions& options, const Signals& signals, Nodes& nodes, int start, std::string& failure) {
  Workers workers(options, start, nodes.meet(start));
  bool has_told = false;
  for (;;) {
    workers.watch(options.monitor_interval, signals.fd());
    if (const int signal = signals.next()) {
      workers.stop(signal);
      failure = concat("ended by signal ", signal, " (", strsignal(signal), ")");
      nodes.tell_failure(start, concat("node ", options.node_rank, " was ", failure));
      return End::kSignalled;
    }
    if (workers.failure()) {
      failure = text_of(*workers.failure());
      nodes.tell_failure(start, failure);
      workers.stop(SIGTERM);
      return End::kFailed;
    }
    if (const auto elsewhere = nodes.failure(start)) {
      failure = *elsewhere;
      workers.stop(SIGTERM);
      return End::kFailed;
    }
    if (!workers.all_ended()) continue;
    if (!has_told) nodes.tell_done(start);
    has_told = true;
    if (nodes.are_all_done(start)) return End::kDone;
    std::this_thread::sleep_for(kStoreInterval);
  }
}

}  // namespace

int launch(LaunchOptions options) {
  // A closed output pipe must not end the workers.
  for (const int number : {SIGPIPE, SIGUSR1, SIGUSR2}) signal(number, SIG_IGN);
  const Signals signals;
  Nodes nodes(options);
  for (int start = 0;; ++start) {
    std::string failure;
    const End end = run_once(options, signals, nodes, start, failure);
    if (end == End::kDone) {
      nodes.leave();
      return 0;
    }
    std::cerr << "tensord launch: " << failure << std::endl;
    if (end == End::kSignalled || start >= options.max_restarts) {
      nodes.leave();
      return 1;
    }
    std::cerr << "tensord launch: all workers start again, restart " << start + 1 << " of " << options.max_restarts
              << std::endl;
  }
}

}  // namespace tensord::server
