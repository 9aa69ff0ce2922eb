#pragma once

#include "protos/hosts.pb.h"
#include "server/training/hosts/host_messages.h"

namespace tensord::server {

// Converts between messages of protos/hosts.proto and the structs of server/training/hosts.
HostReport to_report(const hosts::v1::HostReport& message);
void to_message(const HostReport& report, hosts::v1::HostReport& message);
HostOrder to_order(const hosts::v1::HostOrder& message);
void to_message(const HostOrder& order, hosts::v1::HostOrder& message);

}  // namespace tensord::server
