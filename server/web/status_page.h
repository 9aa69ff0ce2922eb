#pragma once

namespace tensord::server {

// status_page.html; one page without anything from outside.
extern const char* const kStatusPage;

}  // namespace tensord::server
