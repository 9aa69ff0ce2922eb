#pragma once

#include <functional>
#include <optional>

namespace CLI {
class App;
}

namespace tensord::server {

struct BenchOptions;

// Adds the flags of `tensord bench` for models on a running server. The returned function returns nullopt unless
// --address was given; otherwise it measures, prints and returns the exit code. `options` are shared by both kinds of
// measurement and must outlive the function.
std::function<std::optional<int>()> add_server_bench(CLI::App& command, const BenchOptions& options);

}  // namespace tensord::server
