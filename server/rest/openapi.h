#pragma once

namespace tensord::server {

// openapi.json, compiled in: the REST protocol as an OpenAPI 3.0 document.
extern const char* const kOpenApi;

}  // namespace tensord::server
