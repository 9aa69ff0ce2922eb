#include "server/commands/bench_report.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "core/base/error.h"

namespace tensord::server {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownOps = 15;

// Means over the profiled runs.
struct Totals {
  double ms = 0, flops = 0, bytes = 0;
};

struct OpRow {
  std::string name;
  double calls = 0, ms = 0, share = 0, gflops = 0, gbs = 0;
};

Totals totals_of(const BenchResult& result) {
  Totals totals;
  for (const auto& [name, entry] : result.profile.entries) {
    totals.ms += static_cast<double>(entry.time_ns) / 1e6;
    totals.flops += entry.flops;
    totals.bytes += entry.bytes;
  }
  const double runs = std::max<double>(static_cast<double>(result.profiled_runs), 1);
  return {totals.ms / runs, totals.flops / runs, totals.bytes / runs};
}

// Sorted by time, slowest first.
std::vector<OpRow> op_rows(const BenchResult& result) {
  const double runs = std::max<double>(static_cast<double>(result.profiled_runs), 1);
  const double total_ms = totals_of(result).ms;
  std::vector<OpRow> rows;
  for (const auto& [name, entry] : result.profile.entries) {
    const auto ns = static_cast<double>(std::max<int64_t>(entry.time_ns, 1));
    rows.push_back({name, static_cast<double>(entry.calls) / runs, ns / 1e6 / runs, ns / 1e6 / runs / total_ms,
                    entry.flops / ns, entry.bytes / ns});
  }
  std::sort(rows.begin(), rows.end(), [](const OpRow& a, const OpRow& b) { return a.ms > b.ms; });
  return rows;
}

// The typical time of a run: the median over the cycles of each cycle's mean.
double run_seconds(const BenchResult& result) { return percentile(result.cycles_ms, 0.5) / 1e3; }

Json difference_json(const OutputDifference& difference) {
  Json out = {{"output", difference.name},
              {"elements", difference.elements},
              {"max_abs", difference.max_abs},
              {"max_relative", difference.max_relative},
              {"mean_abs", difference.mean_abs},
              {"cosine", difference.cosine},
              {"top1_agreement", difference.top1_agreement}};
  if (difference.top1_agreement < 0) out["top1_agreement"] = nullptr;
  return out;
}

Json latency_json(const BenchOptions& options, const BenchResult& result) {
  Json json = {{"model", options.model.model},
               {"method", options.method},
               {"threads", result.threads},
               {"precision", options.model.precision},
               {"load_ms", result.load_ms},
               {"first_ms", result.first_ms},
               {"runs", result.latencies_ms.size()},
               {"median_ms", percentile(result.latencies_ms, 0.5)},
               {"p90_ms", percentile(result.latencies_ms, 0.9)},
               {"p99_ms", percentile(result.latencies_ms, 0.99)},
               {"min_ms", result.latencies_ms.front()},
               {"cycle_ms", percentile(result.cycles_ms, 0.5)},
               {"best_cycle_ms", result.cycles_ms.front()},
               {"cycle_cpu_ms", percentile(result.cycles_cpu_ms, 0.5)},
               {"best_cycle_cpu_ms", result.cycles_cpu_ms.front()},
               {"runs_per_second", result.runs_per_second()}};
  if (options.batch > 0) json["items_per_second"] = result.runs_per_second() * static_cast<double>(options.batch);
  json["arena_bytes"] = result.arena_bytes;
  json["packed_bytes"] = result.packed_bytes;
  json["live_bytes"] = result.memory.live_bytes;
  json["peak_live_bytes"] = result.memory.peak_live_bytes;
  json["reserved_bytes"] = result.memory.reserved_bytes;
  json["programs"] = result.plans.programs;
  json["program_build_ms"] = static_cast<double>(result.plans.build_ns) / 1e6;
  return json;
}

void add_speed(Json& json, const BenchResult& result) {
  const Totals totals = totals_of(result);
  const double gflops = totals.flops / run_seconds(result) / 1e9, gbs = totals.bytes / run_seconds(result) / 1e9;
  json["flops"] = totals.flops;
  json["gflops"] = gflops;
  json["peak_gflops"] = result.peak.gflops;
  json["peak_unit"] = result.peak.unit;
  json["peak_share"] = gflops / result.peak.gflops;
  json["bytes"] = totals.bytes;
  json["gbs"] = gbs;
  json["peak_read_gbs"] = result.peak.read_gbs;
  json["bandwidth_share"] = gbs / result.peak.read_gbs;
  json["ops"] = Json::array();
  for (const OpRow& row : op_rows(result)) {
    json["ops"].push_back({{"name", row.name},
                           {"calls", row.calls},
                           {"ms", row.ms},
                           {"share", row.share},
                           {"gflops", row.gflops},
                           {"gbs", row.gbs}});
  }
}

void print_speed(std::ostream& out, const BenchResult& result) {
  const Totals totals = totals_of(result);
  const double gflops = totals.flops / run_seconds(result) / 1e9, gbs = totals.bytes / run_seconds(result) / 1e9;
  out << "arithmetic  " << totals.flops / 1e9 << " GFLOP a run, " << gflops << " GFLOP/s, "
      << 100 * gflops / result.peak.gflops << " % of " << result.peak.gflops << " (" << result.peak.unit << ", "
      << result.threads << (result.threads == 1 ? " thread)\n" : " threads)\n");
  out << "traffic     " << totals.bytes / 1e6 << " MB a run, " << gbs << " GB/s, " << 100 * gbs / result.peak.read_gbs
      << " % of " << result.peak.read_gbs << " (reading main memory)\n";
}

void print_ops(std::ostream& out, const BenchResult& result, bool all) {
  const std::vector<OpRow> rows = op_rows(result);
  size_t width = 12;
  for (const OpRow& row : rows) width = std::max(width, std::min<size_t>(row.name.size(), 48));
  const auto column = static_cast<int>(width);
  out << "\n"
      << std::left << std::setw(column) << "time of one run by call" << std::right
      << "   calls         ms  share  GFLOP/s     GB/s\n";
  for (size_t i = 0; i < rows.size() && (all || i < kShownOps); ++i) {
    const OpRow& row = rows[i];
    out << std::left << std::setw(column) << row.name << std::right << std::setprecision(0) << std::setw(8) << row.calls
        << std::setprecision(4) << std::setw(11) << row.ms << std::setprecision(1) << std::setw(6) << 100 * row.share
        << '%' << std::setw(9) << row.gflops << std::setw(9) << row.gbs << "\n";
  }
  if (!all && rows.size() > kShownOps) out << "and " << rows.size() - kShownOps << " more: --by-op\n";
}

void print_differences(std::ostream& out, const BenchOptions& options,
                       const std::vector<OutputDifference>& differences) {
  out << "\n"
      << options.model.precision << " against " << options.compare
      << "\noutput      elements    max abs  max relative   mean abs      cosine  same top 1\n";
  for (const OutputDifference& difference : differences) {
    out << std::left << std::setw(10) << difference.name << std::right << std::setw(10) << difference.elements
        << std::scientific << std::setprecision(2) << std::setw(11) << difference.max_abs << std::setw(14)
        << difference.max_relative << std::setw(11) << difference.mean_abs << std::fixed << std::setprecision(8)
        << std::setw(12) << difference.cosine;
    if (difference.top1_agreement >= 0) {
      out << std::setprecision(1) << std::setw(11) << 100 * difference.top1_agreement << '%';
    }
    out << "\n";
  }
}

}  // namespace

void print_json(std::ostream& out, const BenchOptions& options, const BenchResult& result,
                const std::vector<OutputDifference>& differences) {
  Json json = latency_json(options, result);
  if (!options.latency_only) add_speed(json, result);
  if (!options.compare.empty()) {
    json["reference"] = options.compare;
    json["differences"] = Json::array();
    for (const OutputDifference& difference : differences) json["differences"].push_back(difference_json(difference));
  }
  out << json.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
}

void print_text(std::ostream& out, const BenchOptions& options, const BenchResult& result,
                const std::vector<OutputDifference>& differences) {
  out << std::fixed << std::setprecision(3) << "load        " << result.load_ms << " ms\n"
      << "first run   " << result.first_ms << " ms\n"
      << "median      " << percentile(result.latencies_ms, 0.5) << " ms of " << result.latencies_ms.size() << " runs\n"
      << "p90         " << percentile(result.latencies_ms, 0.9) << " ms\n"
      << "p99         " << percentile(result.latencies_ms, 0.99) << " ms\n"
      << "throughput  " << result.runs_per_second() << " runs/s";
  if (options.batch > 0) out << ", " << result.runs_per_second() * static_cast<double>(options.batch) << " items/s";
  out << "\n";
  if (!options.latency_only) print_speed(out, result);
  out << "memory      " << result.arena_bytes << " bytes of arena, " << result.packed_bytes << " of packed weights, "
      << result.memory.live_bytes << " live, " << result.memory.peak_live_bytes << " at peak, "
      << result.memory.reserved_bytes << " reserved\n"
      << "programs    " << result.plans.programs << ", built in " << static_cast<double>(result.plans.build_ns) / 1e6
      << " ms\n";
  if (!options.latency_only) print_ops(out, result, options.all_ops);
  if (!options.compare.empty()) print_differences(out, options, differences);
}

void write_trace(const std::string& path, const BenchOptions& options, const BenchResult& result) {
  const std::string process = "tensord bench " + options.model.model;
  Json events = {{{"name", "process_name"}, {"ph", "M"}, {"pid", 1}, {"tid", 1}, {"args", {{"name", process}}}},
                 {{"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", 1}, {"args", {{"name", "worker"}}}}};
  const int64_t origin_ns = result.profile.events.empty() ? 0 : result.profile.events.front().start_ns;
  for (const jit::Profile::Event& event : result.profile.events) {
    Json details = {{"threads", result.threads}};
    if (!event.detail.empty()) details["call"] = event.detail;
    if (event.flops > 0) details["flops"] = event.flops;
    if (event.bytes > 0) details["bytes"] = event.bytes;
    events.push_back({{"name", event.name},
                      {"cat", "call"},
                      {"ph", "X"},
                      {"pid", 1},
                      {"tid", 1},
                      {"ts", static_cast<double>(event.start_ns - origin_ns) / 1e3},
                      {"dur", static_cast<double>(event.duration_ns) / 1e3},
                      {"args", std::move(details)}});
  }
  const Json document = {{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}};
  std::ofstream file(path);
  file << document.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
  file.close();
  check(!file.fail(), "--trace ", path, ": cannot write the file");
}

}  // namespace tensord::server
