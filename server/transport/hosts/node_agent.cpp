#include "server/transport/hosts/node_agent.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <set>
#include <thread>

#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/read_whole_file.h"
#include "core/base/thread.h"
#include "core/distributed/hmac.h"
#include "protos/hosts.grpc.pb.h"
#include "server/transport/hosts/host_wire.h"
#include "server/transport/hosts/send_queue.h"

namespace tensord::server {
namespace {

namespace rpc = hosts::v1;
namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kNodeAgentPingInterval = 500ms;
constexpr auto kLookInterval = 200ms;
constexpr auto kFetchTimeout = 60s;  // per piece
constexpr std::chrono::milliseconds kFirstRest = 500ms, kLongestRest = 5s;
constexpr int kMaxOrderBytes = 64 << 20;
constexpr uint64_t kMaxPemBytes = 1 << 20;

std::string read_text(const std::string& flag, const std::string& path) {
  if (path.empty()) return {};
  const std::optional<std::string> text = read_whole_file(path);
  if (!text) fail(ErrorCode::kNotFound, flag, ": ", path, " cannot be read");
  check(text->size() <= kMaxPemBytes, flag, ": ", path, " is larger than ", kMaxPemBytes, " bytes");
  return *text;
}

std::string trimmed(std::string text) {
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  text.erase(0, text.find_first_not_of(" \t\r\n"));
  return text;
}

std::shared_ptr<grpc::Channel> make_channel(const JoinOptions& join) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxOrderBytes);
  // Own channel pool, and short reconnection backoff: a coordinator comes back soon.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5000);
  if (!join.wants_tls()) {
    return grpc::CreateCustomChannel(join.address, grpc::InsecureChannelCredentials(), arguments);
  }
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = read_text("--join-root-cert", join.root_cert);
  tls.pem_cert_chain = read_text("--join-cert", join.cert);
  tls.pem_private_key = read_text("--join-key", join.key);
  if (!join.server_name.empty()) arguments.SetSslTargetNameOverride(join.server_name);
  return grpc::CreateCustomChannel(join.address, grpc::SslCredentials(tls), arguments);
}

std::string random_name() { return distributed::hex_of(distributed::random_bytes(16)); }

}  // namespace

struct NodeAgent::Impl {
  explicit Impl(Options given)
      : options(std::move(given)),
        token(trimmed(read_text("--join-token-file", options.join.token_file))),
        instance(random_name()),
        cache(fs::path(options.training_folder) / "host-cache", options.join.cache_bytes),
        channel(make_channel(options.join)),
        stub(rpc::HostService::NewStub(channel)),
        thread("join", [this] { work(); }) {}

  void stop() {
    {
      const MutexLock lock(mutex);
      is_stopped = true;
      for (grpc::ClientContext* call : open) call->TryCancel();
    }
    changed.notify_all();
    if (thread.joinable()) thread.join();
  }

  void work() {
    std::chrono::milliseconds rest = kFirstRest;
    std::string told;
    for (;;) {
      bool was_joined = false;
      std::string reason;
      run_logged("join", [&] { reason = session(was_joined); });
      if (was_joined) rest = kFirstRest;
      MutexLock lock(mutex);
      if (is_stopped) return;
      if (was_joined || reason != told) {
        log(LogLevel::kWarning, was_joined ? "the joined daemon was lost" : "cannot join",
            {{"address", options.join.address}, {"reason", reason}});
        told = reason;
      }
      changed.wait_for(lock, rest, [this]() TENSORD_REQUIRES(mutex) { return is_stopped; });
      if (is_stopped) return;
      rest = std::min(2 * rest, kLongestRest);
    }
  }

  void authorize(grpc::ClientContext& call) const {
    if (!token.empty()) call.AddMetadata("authorization", "Bearer " + token);
  }

  // An open call, which stop() cancels.
  struct OpenCall {
    explicit OpenCall(Impl& impl) : impl(impl) {
      impl.authorize(context);
      const MutexLock lock(impl.mutex);
      if (impl.is_stopped) context.TryCancel();
      impl.open.insert(&context);
    }
    ~OpenCall() {
      const MutexLock lock(impl.mutex);
      impl.open.erase(&context);
    }
    Impl& impl;
    grpc::ClientContext context;
  };

  // Runs one stream from start to end and returns why it ended.
  std::string session(bool& was_joined) {
    OpenCall opened(*this);
    grpc::ClientContext& call = opened.context;
    const auto stream = stub->Join(&call);
    HostSendQueue send_queue;
    send_queue.push(HostInfo{.name = options.ranks.host,
                             .instance = instance,
                             .version = options.version,
                             .processes = options.ranks.processes,
                             .address = {}});
    std::string reason;
    {
      HostedRanks ranks(
          options.ranks, cache,
          [&](const HostReport& report) {
            if (!send_queue.push(report)) call.TryCancel();
          },
          [&](const HostFile& file, const FileCache::Take& take) { fetch(file, take); });
      std::atomic<int64_t> heard{now_ns()};
      std::atomic<bool> is_over{false};
      Thread writer("join-write", [&] {
        // A failed write ends the read loop, which closes send_queue.
        while (const auto message = send_queue.pop(kNodeAgentPingInterval)) stream->Write(*message);
      });
      Thread watch("join-watch", [&] { watch_silence(call, ranks, heard, is_over, reason); });
      const std::string broken = read_orders(*stream, ranks, heard, was_joined);
      if (!broken.empty()) call.TryCancel();
      cancel_fetches(call);
      is_over = true;
      send_queue.close();
      writer.join();
      watch.join();
      if (reason.empty()) reason = broken;
    }
    const grpc::Status status = stream->Finish();
    if (!reason.empty()) return reason;
    return status.error_message().empty() ? "the stream has ended" : status.error_message();
  }

  void cancel_fetches(const grpc::ClientContext& but) {
    const MutexLock lock(mutex);
    for (grpc::ClientContext* call : open) {
      if (call != &but) call->TryCancel();
    }
  }

  static int64_t now_ns() { return Clock::now().time_since_epoch().count(); }

  // Returns what was wrong with an order.
  std::string read_orders(grpc::ClientReaderWriter<rpc::HostReport, rpc::HostOrder>& stream, HostedRanks& ranks,
                          std::atomic<int64_t>& heard, bool& was_joined) {
    rpc::HostOrder message;
    while (stream.Read(&message)) {
      heard = now_ns();
      try {
        const HostOrder order = to_order(message);
        if (std::holds_alternative<WelcomeOrder>(order) && !was_joined) {
          was_joined = true;
          log(LogLevel::kInfo, "joined", {{"address", options.join.address}, {"host", options.ranks.host}});
        }
        ranks.take(order);
      } catch (const std::exception& error) {
        return error.what();
      }
    }
    return {};
  }

  static void watch_silence(grpc::ClientContext& call, const HostedRanks& ranks, const std::atomic<int64_t>& heard,
                            const std::atomic<bool>& is_over, std::string& reason) {
    while (!is_over) {
      const std::chrono::nanoseconds silence(now_ns() - heard);
      if (silence > ranks.silence_limit()) {
        reason = concat("it has said nothing for ", silence / 1s, " seconds");
        call.TryCancel();
        return;
      }
      std::this_thread::sleep_for(kLookInterval);
    }
  }

  void fetch(const HostFile& file, const FileCache::Take& take) {
    for (uint64_t offset = 0; offset < file.size_bytes;) {
      OpenCall opened(*this);
      grpc::ClientContext& call = opened.context;
      call.set_deadline(std::chrono::system_clock::now() + kFetchTimeout);
      rpc::FetchFileRequest request;
      request.set_sha256(file.sha256);
      request.set_offset(offset);
      rpc::FetchFileResponse response;
      const grpc::Status status = stub->FetchFile(&call, request, &response);
      if (!status.ok()) {
        fail(ErrorCode::kUnavailable, "'", file.path, "' cannot be fetched: ", status.error_message());
      }
      if (response.data().empty()) return;
      take(response.data());
      offset += response.data().size();
    }
  }

  const Options options;
  const std::string token, instance;
  FileCache cache;
  const std::shared_ptr<grpc::Channel> channel;
  const std::unique_ptr<rpc::HostService::Stub> stub;
  Mutex mutex;
  CondVar changed;
  bool is_stopped TENSORD_GUARDED_BY(mutex) = false;
  std::set<grpc::ClientContext*> open TENSORD_GUARDED_BY(mutex);
  Thread thread;  // declared last: it uses the other members
};

NodeAgent::NodeAgent(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
NodeAgent::~NodeAgent() { stop(); }
void NodeAgent::stop() { impl_->stop(); }

}  // namespace tensord::server
