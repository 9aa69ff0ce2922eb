// The lifetime of a call: what keeps it alive, and that it is destroyed afterwards.
#include "server/transport/grpc/call.h"

#include <gmock/gmock.h>
#include <grpcpp/alarm.h>
#include <grpcpp/support/async_stream.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "protos/health.grpc.pb.h"
#include "server/transport/grpc/request_limits.h"

namespace tensord::server::grpc_call_test {
namespace {

namespace health = grpc::health::v1;
using Rpcs = health::Health::WithRawMethod_Watch<health::Health::Service>;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

// Records events in order.
class Events {
 public:
  void add(const std::string& event) {
    {
      const std::lock_guard lock(mutex_);
      events_.push_back(event);
    }
    changed_.notify_all();
  }
  void wait_for(const std::string& event) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return std::find(events_.begin(), events_.end(), event) != events_.end(); });
  }
  std::vector<std::string> all() const {
    const std::lock_guard lock(mutex_);
    return events_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> events_;
};

class WatchedCall;

struct Setting {
  Rpcs rpcs;
  OpenStreams streams;
  Events events;
  std::function<void(WatchedCall&)> accept;
};

// A stream that runs the test's functions.
class WatchedCall final : public GrpcCall {
 public:
  WatchedCall(const CallQueue& queue, Setting& setting)
      : GrpcCall(queue, {CallGroup::kHealth, &setting.streams, /*hears_end=*/true}), setting_(setting) {}
  ~WatchedCall() override { setting_.events.add(is_taken_ ? "gone" : "gone unused"); }

  void write() { writer_.Write(grpc::ByteBuffer(), written_.begin()); }
  // An operation that does not end until it is cancelled.
  void sleep() { alarm_.Set(queue().queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), woken_.begin()); }
  void wake() { alarm_.Cancel(); }
  void finish(const grpc::Status& status) { writer_.Finish(status, finish_tag()); }
  // An operation that is prepared, but then not started.
  void begin_nothing() {
    woken_.begin();
    woken_.call_off();
  }

 private:
  void ask(void* tag) override {
    setting_.rpcs.RequestWatch(&context(), &request_, &writer_, queue().queue, queue().queue, tag);
  }
  std::shared_ptr<GrpcCall> successor() const override { return std::make_shared<WatchedCall>(queue(), setting_); }
  void accept() override {
    is_taken_ = true;
    setting_.events.add("accepted");
    setting_.accept(*this);
  }
  void refuse(const grpc::Status& status) override {
    is_taken_ = true;
    setting_.events.add("refused");
    finish(status);
  }
  void on_over() override { setting_.events.add(context().IsCancelled() ? "cancelled" : "over"); }
  void on_finished() override { setting_.events.add("finished"); }
  void on_written(bool ok) {
    setting_.events.add(ok ? "written" : "not written");
    finish(grpc::Status::OK);
  }
  void on_woken(bool) { setting_.events.add("woken"); }

  Setting& setting_;
  bool is_taken_ = false;
  grpc::ByteBuffer request_;
  grpc::ServerAsyncWriter<grpc::ByteBuffer> writer_{&context()};
  grpc::Alarm alarm_;
  Operation<WatchedCall> written_{this, &WatchedCall::on_written};
  Operation<WatchedCall> woken_{this, &WatchedCall::on_woken};
};

class GrpcCallTest : public ::testing::Test {
 protected:
  ~GrpcCallTest() override { shut_down(); }

  void start(std::function<void(WatchedCall&)> accept) {
    setting_.accept = std::move(accept);
    grpc::ServerBuilder builder;
    builder.RegisterService(&setting_.rpcs);
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    GrpcCall::wait_for<WatchedCall>(CallQueue{queue_.get(), &live_, &access_, &limits_}, setting_);
    thread_ = std::thread([this] {
      void* tag = nullptr;
      bool ok = false;
      while (queue_->Next(&tag, &ok)) EventTag::of(tag).on_event(ok);
    });
    stub_ = health::Health::NewStub(server_->InProcessChannel({}));
  }

  // Like the daemon: all calls on the queue must end before it is shut down.
  void shut_down() {
    if (!server_) return;
    setting_.streams.cancel_all();
    server_->Shutdown(std::chrono::system_clock::now());
    for (int left = live_; left != 0; left = live_) live_.wait(left);
    queue_->Shutdown();
    thread_.join();
    server_.reset();
  }

  // The status that a client's call ends with; `between` runs once the call exists.
  grpc::Status call(const std::function<void(grpc::ClientContext&)>& between = {}) {
    grpc::ClientContext context;
    const auto reader = stub_->Watch(&context, {});
    if (between) between(context);
    health::HealthCheckResponse response;
    while (reader->Read(&response)) {
    }
    return reader->Finish();
  }

  std::vector<std::string> events() { return setting_.events.all(); }

  Setting setting_;
  std::atomic<int> live_{0};
  AccessPolicy access_;
  RequestLimits limits_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<health::Health::Stub> stub_;
  std::thread thread_;
};

TEST_F(GrpcCallTest, GoesWhenItHasFinishedAndIsOver) {
  start([](WatchedCall& call) { call.write(); });
  EXPECT_TRUE(call().ok());
  setting_.events.wait_for("gone");
  const auto seen = events();
  EXPECT_THAT(seen, Contains("written").Times(1));
  EXPECT_THAT(seen, Contains("finished").Times(1));
  EXPECT_THAT(seen, Contains("over").Times(1));
  EXPECT_EQ(seen.back(), "gone");
  // The next call is waiting; this one counts until it is completely destroyed.
  while (live_ != 1) std::this_thread::yield();
}

TEST_F(GrpcCallTest, WaitsForNobodyAtShutdown) {
  start([](WatchedCall&) { FAIL() << "no client came"; });
  EXPECT_EQ(live_, 1);
  shut_down();
  EXPECT_EQ(live_, 0);
  EXPECT_THAT(events(), ElementsAre("gone unused"));
}

TEST_F(GrpcCallTest, CancelledBeforeItFinishes) {
  WatchedCall* there = nullptr;
  start([&](WatchedCall& call) {
    there = &call;
    setting_.events.add("there");
  });
  const grpc::Status status = call([&](grpc::ClientContext& context) {
    setting_.events.wait_for("there");
    context.TryCancel();
    setting_.events.wait_for("cancelled");
    EXPECT_THAT(events(), Not(Contains("gone"))) << "its Finish is to come";
    there->finish(grpc::Status::CANCELLED);
  });
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
  setting_.events.wait_for("gone");
}

TEST_F(GrpcCallTest, StaysWhileAnEventIsOutstanding) {
  WatchedCall* there = nullptr;
  start([&](WatchedCall& call) {
    there = &call;
    call.sleep();
    call.write();
  });
  EXPECT_TRUE(call().ok());
  setting_.events.wait_for("finished");
  setting_.events.wait_for("over");
  EXPECT_THAT(events(), Not(Contains("gone")));
  there->wake();
  setting_.events.wait_for("gone");
  const auto seen = events();
  EXPECT_EQ(seen[seen.size() - 2], "woken");
}

TEST_F(GrpcCallTest, StaysWhileSomebodyWorksForIt) {
  std::shared_ptr<GrpcCall> held;
  start([&](WatchedCall& call) {
    held = call.shared_from_this();
    call.write();
  });
  EXPECT_TRUE(call().ok());
  setting_.events.wait_for("finished");
  setting_.events.wait_for("over");
  EXPECT_THAT(events(), Not(Contains("gone")));
  held.reset();
  setting_.events.wait_for("gone");
}

TEST_F(GrpcCallTest, WhoComesTooLateFindsNothing) {
  std::weak_ptr<GrpcCall> known;
  start([&](WatchedCall& call) {
    known = call.weak_from_this();
    call.write();
  });
  EXPECT_TRUE(call().ok());
  setting_.events.wait_for("gone");
  EXPECT_EQ(known.lock(), nullptr);
}

TEST_F(GrpcCallTest, AnOperationThatIsCalledOffHoldsNothing) {
  start([](WatchedCall& call) {
    call.begin_nothing();
    call.write();
  });
  EXPECT_TRUE(call().ok());
  setting_.events.wait_for("gone");
  EXPECT_THAT(events(), Not(Contains("woken")));
}

TEST_F(GrpcCallTest, ShutdownEndsStreamsAndTakesNoNewOnes) {
  start([](WatchedCall&) { FAIL() << "it is to be refused"; });
  setting_.streams.cancel_all();
  const grpc::Status status = call();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), kServerShutsDown);
  setting_.events.wait_for("gone");
  EXPECT_THAT(events(), Contains("refused"));
  EXPECT_THAT(events(), Not(Contains("accepted")));
}

TEST_F(GrpcCallTest, ShutdownWaitsForWhatIsUnderWay) {
  WatchedCall* there = nullptr;
  start([&](WatchedCall& call) {
    there = &call;
    call.sleep();
    setting_.events.add("there");
  });
  std::thread client([&] { call(); });
  setting_.events.wait_for("there");
  std::thread ending([&] { shut_down(); });
  setting_.events.wait_for("cancelled");
  EXPECT_THAT(events(), Not(Contains("gone")));
  there->finish(grpc::Status::CANCELLED);
  setting_.events.wait_for("finished");
  EXPECT_THAT(events(), Not(Contains("gone")));
  there->wake();
  ending.join();
  client.join();
  EXPECT_EQ(live_, 0);
  EXPECT_THAT(events(), Contains("gone"));
}

TEST_F(GrpcCallTest, WhatMayNotIsRefused) {
  access_ = AccessPolicy({{CallGroup::kHealth, {"key", "secret"}}});
  start([](WatchedCall&) { FAIL() << "it has no key"; });
  EXPECT_FALSE(call().ok());
  setting_.events.wait_for("gone");
  EXPECT_THAT(events(), Contains("refused"));
}

}  // namespace
}  // namespace tensord::server::grpc_call_test
