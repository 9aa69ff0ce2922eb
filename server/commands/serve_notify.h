#pragma once

#include <string_view>

namespace tensord::server {

// What systemd's Type=notify wants to know of a service.
inline constexpr std::string_view kServiceReady = "READY=1";
inline constexpr std::string_view kServiceReloading = "RELOADING=1";  // until it is ready again
inline constexpr std::string_view kServiceStopping = "STOPPING=1";

// Tells the service manager that started this process, if one asked for it ($NOTIFY_SOCKET). Never fails: the daemon
// serves without a listener as well.
void notify_service_manager(std::string_view state);

}  // namespace tensord::server
