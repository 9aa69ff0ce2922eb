#pragma once

namespace tensord::server {

// status_page.html, compiled in. It loads nothing from other origins.
extern const char* const kStatusPage;

}  // namespace tensord::server
