#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "server/commands/bench_compare.h"
#include "server/commands/bench_measure.h"

namespace tensord::server {

void print_text(std::ostream& out, const BenchOptions& options, const BenchResult& result,
                const std::vector<OutputDifference>& differences);
// One JSON object.
void print_json(std::ostream& out, const BenchOptions& options, const BenchResult& result,
                const std::vector<OutputDifference>& differences);
// The profile's events in the trace-event format, which Perfetto and Chrome open: a slice a call.
// Throws Error when the file cannot be written.
void write_trace(const std::string& path, const BenchOptions& options, const BenchResult& result);

}  // namespace tensord::server
