#include "server/transport/grpc_server.h"

#include <absl/synchronization/mutex.h>

#include <atomic>
#include <chrono>

#include "core/base/log.h"
#include "server/transport/calls/control_calls.h"
#include "server/transport/calls/health.h"
#include "server/transport/calls/model_config_calls.h"
#include "server/transport/calls/reflection.h"
#include "server/transport/calls/repository_calls.h"
#include "server/transport/calls/settings_calls.h"
#include "server/transport/calls/shared_memory_calls.h"
#include "server/transport/calls/statistics_calls.h"
#include "server/transport/calls/training_calls.h"
#include "server/transport/calls/unknown_calls.h"
#include "server/transport/grpc/listening.h"
#include "server/transport/grpc/queue_threads.h"
#include "server/transport/hosts/host_calls.h"
#include "server/transport/infer/infer_call.h"
#include "server/transport/infer/stream_call.h"

namespace tensord::server {
namespace {

// Number of pending ModelInfer requests on the queue, so that an arriving call never waits for one.
constexpr int kReadyInferCalls = 16;
constexpr int kReadyStreamCalls = 4;

// Threads for calls that create jobs, which load their models, or wait for a job to stop.
constexpr size_t kTrainingThreads = 8;

ConnectionCounts counts_of(const ConnectionGuard& guard) {
  ConnectionCounts counts{.open = static_cast<double>(guard.connections()),
                          .open_streams = static_cast<double>(guard.open_streams()),
                          .refused = static_cast<double>(guard.refused()),
                          .cut = {}};
  const auto cuts = guard.cuts();
  for (size_t i = 1; i < cuts.size(); ++i) {
    counts.cut[to_string(static_cast<CutReason>(i))] = static_cast<double>(cuts[i]);
  }
  return counts;
}

}  // namespace

struct GrpcServer::Impl {
  ServerState& state;
  InferenceService inference;
  HealthRpcs health;
  ReflectionServices reflection;
  grpc::AsyncGenericService unknown;
  OpenStreams streams;
  HealthWatch health_watch{[this](const std::string& service) { return health_of(state, service); }};
  TrainingRpcs training_rpcs;
  WorkThread training_threads{kTrainingThreads};
  RepositoryThreads repository_threads;
  TrainingCalls training{state, training_rpcs, streams, training_threads};
  HostRpcs host_rpcs;
  HostCalls hosts{state, host_rpcs, training_threads};
  std::atomic<int> live_calls{0};
  StartInfer start_infer = [this](auto* context, auto* request, auto* writer, auto* cq, void* tag) {
    inference.RequestModelInfer(context, request, writer, cq, cq, tag);
  };
  StreamCalls stream_calls{state, [this](auto* context, auto* stream, auto* cq, void* tag) {
                             inference.RequestModelStreamInfer(context, stream, cq, cq, tag);
                           }};
  std::unique_ptr<grpc::ServerCompletionQueue> queue;
  Listening listening;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<QueueThreads> threads;

  Impl(const Options& options, ServerState& state)
      : state(state), listening(options.network, options.address, options.port, state.metrics) {}
};

GrpcServer::GrpcServer(const Options& options, ServerState& state) : impl_(std::make_unique<Impl>(options, state)) {
  // Debian's gRPC has Abseil's deadlock detection turned on, which takes a global lock for every mutex operation: a
  // tenth of a small request's time, and a point of contention.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  grpc::ServerBuilder builder;
  impl_->listening.configure(builder);
  builder.RegisterService(&impl_->inference);
  builder.RegisterService(&impl_->health);
  builder.RegisterService(&impl_->training_rpcs);
  builder.RegisterService(&impl_->host_rpcs);
  builder.RegisterService(&impl_->reflection.v1);
  builder.RegisterService(&impl_->reflection.v1alpha);
  builder.RegisterAsyncGenericService(&impl_->unknown);
  impl_->queue = builder.AddCompletionQueue();
  try {
    impl_->server = impl_->listening.start(builder);
  } catch (...) {
    impl_->queue->Shutdown();
    const QueueThreads drain(*impl_->queue, 1);
    throw;
  }
  const CallQueue calls{impl_->queue.get(), &impl_->live_calls, &state.access, &state.limits};
  for (int i = 0; i < kReadyInferCalls; ++i) GrpcCall::wait_for<InferCall>(calls, state, impl_->start_infer);
  for (int i = 0; i < kReadyStreamCalls; ++i) impl_->stream_calls.wait(calls);
  wait_control_calls(state, impl_->inference, calls);
  wait_shared_memory_calls(state, impl_->inference, calls);
  wait_model_config_calls(state, impl_->inference, calls);
  wait_repository_calls(state, impl_->inference, impl_->repository_threads, calls);
  wait_statistics_calls(state, impl_->inference, calls);
  wait_settings_calls(state, impl_->inference, calls);
  wait_health_calls(state, impl_->health, impl_->health_watch, calls);
  wait_training_calls(impl_->training, calls);
  wait_host_calls(impl_->hosts, calls);
  wait_reflection_calls(impl_->reflection, impl_->streams, calls);
  wait_unknown_calls(impl_->unknown, calls);
  state.metrics.watch_connections([guard = impl_->listening.guard()] { return counts_of(*guard); });
  impl_->threads = std::make_unique<QueueThreads>(*impl_->queue, options.threads);
}

GrpcServer::~GrpcServer() {
  if (impl_->threads) shut_down(0);
}

int GrpcServer::port() const { return impl_->listening.port(); }

std::string GrpcServer::address() const { return impl_->listening.address(); }

void GrpcServer::shut_down(int64_t timeout_ms) {
  impl_->stream_calls.drain();
  impl_->health_watch.close();
  impl_->streams.cancel_all();
  impl_->listening.stop();
  impl_->server->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(timeout_ms));
  // Workers may still hold cancelled calls, and their responses need the queue.
  for (int left = impl_->live_calls; left != 0; left = impl_->live_calls) impl_->live_calls.wait(left);
  impl_->threads->shut_down();
  impl_->threads.reset();
}

}  // namespace tensord::server
