#pragma once

#include <string_view>

namespace tensord::server {

// States of systemd's Type=notify protocol.
inline constexpr std::string_view kServiceReady = "READY=1";
inline constexpr std::string_view kServiceReloading = "RELOADING=1";  // until the next READY=1
inline constexpr std::string_view kServiceStopping = "STOPPING=1";

// Notifies the service manager if $NOTIFY_SOCKET is set. Never fails, because the daemon works without one.
void notify_service_manager(std::string_view state);

}  // namespace tensord::server
