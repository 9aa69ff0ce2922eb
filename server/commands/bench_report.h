#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "server/commands/bench_compare.h"
#include "server/commands/bench_measure.h"

namespace tensord::server {

void print_text(std::ostream& out, const BenchOptions& options, const BenchResult& result,
                const std::vector<OutputDifference>& differences);
// Prints one JSON object.
void print_json(std::ostream& out, const BenchOptions& options, const BenchResult& result,
                const std::vector<OutputDifference>& differences);
// Writes the profile in the trace-event format of Perfetto and Chrome, one slice per call. Throws Error if the file
// cannot be written.
void write_trace(const std::string& path, const BenchOptions& options, const BenchResult& result);

}  // namespace tensord::server
