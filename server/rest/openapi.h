#pragma once

namespace tensord::server {

// The protocol as an OpenAPI 3.0 document: openapi.json, compiled in.
extern const char* const kOpenApi;

}  // namespace tensord::server
