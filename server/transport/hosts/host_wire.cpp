#include "server/transport/hosts/host_wire.h"

#include "core/base/utf8.h"

namespace tensord::server {
namespace {

namespace rpc = hosts::v1;

struct ReportWriter {
  rpc::HostReport& message;

  void operator()(std::monostate) const {}
  void operator()(const HostInfo& info) const {
    rpc::Hello& hello = *message.mutable_hello();
    hello.set_name(info.name);
    hello.set_instance(info.instance);
    hello.set_version(info.version);
    hello.set_processes(info.processes);
  }
  void operator()(const PreparedReport& report) const { message.mutable_prepared()->set_start(report.start); }
  void operator()(const StartedReport& report) const {
    rpc::Started& started = *message.mutable_started();
    started.set_start(report.start);
    started.set_rank(report.rank);
    started.set_pid(report.pid);
  }
  void operator()(const LineReport& report) const {
    rpc::Line& line = *message.mutable_line();
    line.set_start(report.start);
    line.set_rank(report.rank);
    line.set_is_event(report.is_event);
    line.set_line(report.line);
  }
  void operator()(const EndedReport& report) const {
    rpc::Ended& ended = *message.mutable_ended();
    ended.set_start(report.start);
    ended.set_rank(report.rank);
    ended.set_how(report.how);
  }
  void operator()(const FailedReport& report) const {
    rpc::Failed& failed = *message.mutable_failed();
    failed.set_start(report.start);
    failed.set_code(static_cast<int32_t>(report.code));
    failed.set_message(to_valid_utf8(report.message));
    failed.set_is_disk(report.is_disk);
  }
};

struct OrderWriter {
  rpc::HostOrder& message;

  void operator()(std::monostate) const {}
  void operator()(const WelcomeOrder&) const { message.mutable_welcome(); }
  void operator()(const PrepareOrder& order) const {
    rpc::Prepare& prepare = *message.mutable_prepare();
    prepare.set_start(order.start);
    prepare.set_timeout_seconds(order.timeout_seconds);
    for (const HostFile& file : order.files) {
      rpc::File& added = *prepare.add_files();
      added.set_path(file.path);
      added.set_is_data(file.is_data);
      added.set_size_bytes(file.size_bytes);
      added.set_sha256(file.sha256);
      added.set_is_folder(file.is_folder);
    }
  }
  void operator()(const StartOrder& order) const {
    rpc::Start& start = *message.mutable_start();
    start.set_start(order.start);
    for (const int64_t rank : order.ranks) start.add_ranks(rank);
    start.set_task(order.task);
  }
  void operator()(const StopOrder& order) const { message.mutable_stop()->set_start(order.start); }
};

PrepareOrder to_prepare(const rpc::Prepare& message) {
  PrepareOrder order{.start = message.start(), .files = {}, .timeout_seconds = message.timeout_seconds()};
  for (const rpc::File& file : message.files()) {
    order.files.push_back({file.path(), file.is_data(), file.size_bytes(), file.sha256(), file.is_folder()});
  }
  return order;
}

}  // namespace

HostReport to_report(const rpc::HostReport& message) {
  switch (message.report_case()) {
    case rpc::HostReport::kHello:
      return HostInfo{.name = message.hello().name(),
                      .instance = message.hello().instance(),
                      .version = message.hello().version(),
                      .processes = message.hello().processes(),
                      .address = {}};
    case rpc::HostReport::kPrepared: return PreparedReport{message.prepared().start()};
    case rpc::HostReport::kStarted:
      return StartedReport{message.started().start(), message.started().rank(), message.started().pid()};
    case rpc::HostReport::kLine:
      return LineReport{message.line().start(), message.line().rank(), message.line().is_event(),
                        message.line().line()};
    case rpc::HostReport::kEnded:
      return EndedReport{message.ended().start(), message.ended().rank(), message.ended().how()};
    case rpc::HostReport::kFailed:
      return FailedReport{message.failed().start(), error_code_of(message.failed().code()), message.failed().message(),
                          message.failed().is_disk()};
    case rpc::HostReport::REPORT_NOT_SET: break;
  }
  return std::monostate();
}

HostOrder to_order(const rpc::HostOrder& message) {
  switch (message.order_case()) {
    case rpc::HostOrder::kWelcome: return WelcomeOrder{};
    case rpc::HostOrder::kPrepare: return to_prepare(message.prepare());
    case rpc::HostOrder::kStart:
      return StartOrder{message.start().start(),
                        {message.start().ranks().begin(), message.start().ranks().end()},
                        message.start().task()};
    case rpc::HostOrder::kStop: return StopOrder{message.stop().start()};
    case rpc::HostOrder::ORDER_NOT_SET: break;
  }
  return std::monostate();
}

void to_message(const HostReport& report, rpc::HostReport& message) { std::visit(ReportWriter{message}, report); }
void to_message(const HostOrder& order, rpc::HostOrder& message) { std::visit(OrderWriter{message}, order); }

}  // namespace tensord::server
