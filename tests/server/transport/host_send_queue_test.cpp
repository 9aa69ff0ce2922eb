#include "server/transport/hosts/send_queue.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "core/base/thread.h"
#include "server/transport/hosts/host_wire.h"

namespace tensord::server::host_send_queue_test {
namespace {

using namespace std::chrono_literals;

PreparedReport sized(size_t bytes) { return {std::string(bytes, 's')}; }

TEST(HostSendQueue, SaysThingsInTheirOrderThenNothing) {
  HostSendQueue send_queue;
  EXPECT_TRUE(send_queue.push(PreparedReport{"first"}));
  EXPECT_TRUE(send_queue.push(PreparedReport{"second"}));
  EXPECT_EQ(send_queue.pop(1h)->prepared().start(), "first");
  EXPECT_EQ(send_queue.pop(1h)->prepared().start(), "second");
  const auto nothing = send_queue.pop(1ms);
  ASSERT_TRUE(nothing);
  EXPECT_EQ(nothing->ByteSizeLong(), 0u);
}

TEST(HostSendQueue, WhatWaitsIsBounded) {
  HostSendQueue send_queue;
  EXPECT_FALSE(send_queue.push(sized(HostSendQueue::kMaxBytes)));  // with its header it exceeds the limit
  EXPECT_TRUE(send_queue.push(sized(HostSendQueue::kMaxBytes / 2)));
  EXPECT_FALSE(send_queue.push(sized(HostSendQueue::kMaxBytes / 2)));
  EXPECT_TRUE(send_queue.push(sized(HostSendQueue::kMaxBytes / 2 - 64)));
  EXPECT_FALSE(send_queue.push(sized(64)));
  EXPECT_EQ(send_queue.pop(1h)->prepared().start().size(), HostSendQueue::kMaxBytes / 2);
  EXPECT_TRUE(send_queue.push(sized(64)));  // there is room again
}

TEST(HostSendQueue, AllOfItsRoomIsUsed) {
  hosts::v1::HostReport message;
  to_message(sized(HostSendQueue::kMaxBytes - 1000), message);
  const size_t head = message.ByteSizeLong() - (HostSendQueue::kMaxBytes - 1000);
  HostSendQueue full, one_more;
  EXPECT_TRUE(full.push(sized(HostSendQueue::kMaxBytes - head)));
  EXPECT_FALSE(one_more.push(sized(HostSendQueue::kMaxBytes - head + 1)));
}

TEST(HostSendQueue, AMessageWakesWhoWaits) {
  HostSendQueue send_queue;
  Thread writer("write", [&] { send_queue.push(PreparedReport{"s"}); });
  EXPECT_EQ(send_queue.pop(1h)->prepared().start(), "s");
  writer.join();
}

TEST(HostSendQueue, ItsEndWakesWhoWaits) {
  HostSendQueue send_queue;
  Thread closer("close", [&] { send_queue.close(); });
  EXPECT_FALSE(send_queue.pop(1h));
  closer.join();
  EXPECT_FALSE(send_queue.pop(1h));
}

}  // namespace
}  // namespace tensord::server::host_send_queue_test
