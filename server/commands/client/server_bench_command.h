#pragma once

#include <functional>
#include <optional>

namespace CLI {
class App;
}

namespace tensord::server {

struct BenchOptions;

// Adds to `tensord bench` the flags for a model of a running server. What it gives back does nothing unless --address
// was given; else it measures, prints, and gives the exit code. `options` are those that both kinds of measurement
// have, and must outlive it.
std::function<std::optional<int>()> add_server_bench(CLI::App& command, const BenchOptions& options);

}  // namespace tensord::server
