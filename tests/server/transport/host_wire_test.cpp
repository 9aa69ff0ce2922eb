// Messages between daemons that train together: converted and parsed back.
#include "server/transport/hosts/host_wire.h"

#include <gtest/gtest.h>

#include "server/transport/hosts/peer_host.h"

namespace tensord::server::host_wire_test {
namespace {

namespace rpc = hosts::v1;

// Serialized and parsed, as on the network.
template <class T>
T sent(const T& given);
template <>
HostReport sent(const HostReport& given) {
  rpc::HostReport message, read;
  to_message(given, message);
  EXPECT_TRUE(read.ParseFromString(message.SerializeAsString()));
  return to_report(read);
}
template <>
HostOrder sent(const HostOrder& given) {
  rpc::HostOrder message, read;
  to_message(given, message);
  EXPECT_TRUE(read.ParseFromString(message.SerializeAsString()));
  return to_order(read);
}

TEST(HostWire, ReportsComeBackAsTheyWere) {
  const auto hello = std::get<HostInfo>(sent<HostReport>(HostInfo{
      .name = "b", .instance = "0123456789abcdef", .version = "0.1.0", .processes = 8, .address = "10.0.0.1"}));
  EXPECT_EQ(hello.name, "b");
  EXPECT_EQ(hello.instance, "0123456789abcdef");
  EXPECT_EQ(hello.version, "0.1.0");
  EXPECT_EQ(hello.processes, 8);
  EXPECT_EQ(hello.address, "");  // the coordinator uses the address that it sees, not the one in the message
  EXPECT_EQ(std::get<PreparedReport>(sent<HostReport>(PreparedReport{"s"})).start, "s");
  const auto started = std::get<StartedReport>(sent<HostReport>(StartedReport{"s", 3, 1234}));
  EXPECT_EQ(started.start, "s");
  EXPECT_EQ(started.rank, 3);
  EXPECT_EQ(started.pid, 1234);
  const auto line = std::get<LineReport>(sent<HostReport>(LineReport{"s", 2, true, std::string("a\0\xff", 3)}));
  EXPECT_EQ(line.start, "s");
  EXPECT_EQ(line.rank, 2);
  EXPECT_TRUE(line.is_event);
  EXPECT_EQ(line.line, std::string("a\0\xff", 3));
  const auto ended = std::get<EndedReport>(sent<HostReport>(EndedReport{"s", 1, "exit code 3"}));
  EXPECT_EQ(ended.start, "s");
  EXPECT_EQ(ended.rank, 1);
  EXPECT_EQ(ended.how, "exit code 3");
  const auto failed = std::get<FailedReport>(sent<HostReport>(FailedReport{"s", ErrorCode::kNotFound, "no such file"}));
  EXPECT_FALSE(failed.is_disk);
  EXPECT_TRUE(std::get<FailedReport>(sent<HostReport>(FailedReport{"s", ErrorCode::kUnavailable, "", true})).is_disk);
  EXPECT_EQ(failed.start, "s");
  EXPECT_EQ(failed.code, ErrorCode::kNotFound);
  EXPECT_EQ(failed.message, "no such file");
  EXPECT_TRUE(std::holds_alternative<std::monostate>(sent<HostReport>(std::monostate())));
}

TEST(HostWire, WhereAHostIs) {
  EXPECT_EQ(host_of_peer("ipv4:10.0.0.7:51234"), "10.0.0.7");
  EXPECT_EQ(host_of_peer("ipv6:%5Bfe80::1%5D:51234"), "fe80::1");
  EXPECT_EQ(host_of_peer("ipv6:[::1]:51234"), "::1");
  EXPECT_EQ(host_of_peer("unix:/run/grpc"), "127.0.0.1");
  EXPECT_EQ(host_of_peer("unix:"), "127.0.0.1");
  EXPECT_EQ(host_of_peer("host"), "host");
}

TEST(HostWire, OrdersComeBackAsTheyWere) {
  EXPECT_TRUE(std::holds_alternative<WelcomeOrder>(sent<HostOrder>(WelcomeOrder{})));
  const auto prepare = std::get<PrepareOrder>(sent<HostOrder>(PrepareOrder{
      "s", {{"model.pt", false, 17, std::string(64, 'a')}, {"x/y", true, 0, std::string(64, 'b'), true}}, 60}));
  EXPECT_EQ(prepare.start, "s");
  EXPECT_EQ(prepare.timeout_seconds, 60);
  ASSERT_EQ(prepare.files.size(), 2u);
  EXPECT_EQ(prepare.files[0].path, "model.pt");
  EXPECT_FALSE(prepare.files[0].is_data);
  EXPECT_EQ(prepare.files[0].size_bytes, 17u);
  EXPECT_EQ(prepare.files[0].sha256, std::string(64, 'a'));
  EXPECT_FALSE(prepare.files[0].is_folder);
  EXPECT_TRUE(prepare.files[1].is_data);
  EXPECT_TRUE(prepare.files[1].is_folder);
  const auto start = std::get<StartOrder>(sent<HostOrder>(StartOrder{"s", {2, 3}, "{\"task\": 1}"}));
  EXPECT_EQ(start.start, "s");
  EXPECT_EQ(start.ranks, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(start.task, "{\"task\": 1}");
  EXPECT_EQ(std::get<StopOrder>(sent<HostOrder>(StopOrder{"s"})).start, "s");
  EXPECT_TRUE(std::holds_alternative<std::monostate>(sent<HostOrder>(std::monostate())));
}

TEST(HostWire, CodesAndTextsOfStrangersAreMadeGood) {
  rpc::HostReport message;
  message.mutable_failed()->set_code(-7);
  EXPECT_EQ(std::get<FailedReport>(to_report(message)).code, ErrorCode::kInternal);
  message.mutable_failed()->set_code(100000);
  EXPECT_EQ(std::get<FailedReport>(to_report(message)).code, ErrorCode::kInternal);
  // Strings must be valid UTF-8, or protobuf does not send them.
  rpc::HostReport written;
  to_message(FailedReport{"s", ErrorCode::kInternal, "\xff\xfe"}, written);
  EXPECT_EQ(std::get<FailedReport>(sent<HostReport>(to_report(written))).message, written.failed().message());
  EXPECT_NE(written.failed().message(), "\xff\xfe");
}

}  // namespace
}  // namespace tensord::server::host_wire_test
