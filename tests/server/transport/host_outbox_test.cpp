#include "server/transport/hosts/outbox.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "core/base/thread.h"
#include "server/transport/hosts/host_wire.h"

namespace tensord::server::host_outbox_test {
namespace {

using namespace std::chrono_literals;

PreparedReport sized(size_t bytes) { return {std::string(bytes, 's')}; }

TEST(HostOutbox, SaysThingsInTheirOrderThenNothing) {
  HostOutbox outbox;
  EXPECT_TRUE(outbox.push(PreparedReport{"first"}));
  EXPECT_TRUE(outbox.push(PreparedReport{"second"}));
  EXPECT_EQ(outbox.pop(1h)->prepared().start(), "first");
  EXPECT_EQ(outbox.pop(1h)->prepared().start(), "second");
  const auto nothing = outbox.pop(1ms);
  ASSERT_TRUE(nothing);
  EXPECT_EQ(nothing->ByteSizeLong(), 0u);
}

TEST(HostOutbox, WhatWaitsIsBounded) {
  HostOutbox outbox;
  EXPECT_FALSE(outbox.push(sized(HostOutbox::kMaxBytes)));  // with its head it is more
  EXPECT_TRUE(outbox.push(sized(HostOutbox::kMaxBytes / 2)));
  EXPECT_FALSE(outbox.push(sized(HostOutbox::kMaxBytes / 2)));
  EXPECT_TRUE(outbox.push(sized(HostOutbox::kMaxBytes / 2 - 64)));
  EXPECT_FALSE(outbox.push(sized(64)));
  EXPECT_EQ(outbox.pop(1h)->prepared().start().size(), HostOutbox::kMaxBytes / 2);
  EXPECT_TRUE(outbox.push(sized(64)));  // there is room again
}

TEST(HostOutbox, AllOfItsRoomIsUsed) {
  hosts::v1::HostReport message;
  to_message(sized(HostOutbox::kMaxBytes - 1000), message);
  const size_t head = message.ByteSizeLong() - (HostOutbox::kMaxBytes - 1000);
  HostOutbox full, one_more;
  EXPECT_TRUE(full.push(sized(HostOutbox::kMaxBytes - head)));
  EXPECT_FALSE(one_more.push(sized(HostOutbox::kMaxBytes - head + 1)));
}

TEST(HostOutbox, AMessageWakesWhoWaits) {
  HostOutbox outbox;
  Thread writer("write", [&] { outbox.push(PreparedReport{"s"}); });
  EXPECT_EQ(outbox.pop(1h)->prepared().start(), "s");
  writer.join();
}

TEST(HostOutbox, ItsEndWakesWhoWaits) {
  HostOutbox outbox;
  Thread closer("close", [&] { outbox.close(); });
  EXPECT_FALSE(outbox.pop(1h));
  closer.join();
  EXPECT_FALSE(outbox.pop(1h));
}

}  // namespace
}  // namespace tensord::server::host_outbox_test
