#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace tensord::server {

// How inference requests are read and answered.
struct InferOptions {
  // Headers whose names match this regular expression (RE2, whole names, which are lower case) become parameters of the
  // request; empty: none do.
  std::string header_forward_pattern;
  std::string http_header_forward_pattern;  // the same of HTTP requests, whose names are as clients send them
  // Of one stream: while so many requests wait for their answers, no more are read.
  uint32_t stream_max_requests = 1024;
};

// Adds the flags to a command; the values go into `options`, which must outlive it.
void add_infer_options(CLI::App& app, InferOptions& options);

}  // namespace tensord::server
