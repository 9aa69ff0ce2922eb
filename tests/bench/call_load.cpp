// The load generator of peer_servers_bench.py and load. `call_load ADDRESS METHOD REQUEST_FILE,… CLIENTS SECONDS
// WARM_SECONDS` sends the bytes of the files, one after the other, as unary calls; each client sends the next one after
// the previous response. Prints calls a second, p50 and p99 in us, and the bytes of a response.
#include <malloc.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tests/bench/call_client.h"

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fprintf(stderr, "usage: call_load ADDRESS METHOD REQUEST_FILE,... CLIENTS SECONDS WARM_SECONDS\n");
    return 2;
  }
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  std::vector<grpc::ByteBuffer> requests;
  std::istringstream paths(argv[3]);
  for (std::string path; std::getline(paths, path, ',');) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    if (bytes.empty()) {
      std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
      return 1;
    }
    grpc::Slice slice(bytes);
    requests.emplace_back(&slice, 1);
  }
  std::vector<std::unique_ptr<bench::Client>> clients;
  const int count = std::stoi(argv[4]);
  for (int id = 0; id < count; ++id) clients.push_back(std::make_unique<bench::Client>(argv[1], argv[2], id, requests));
  bench::run_burst(clients, std::stod(argv[6]));
  const bench::Burst burst = bench::run_burst(clients, std::stod(argv[5]));
  std::printf("%.3f %.1f %.1f %zu\n", burst.calls_per_s, bench::quantile(burst.latencies_us, 0.5),
              bench::quantile(burst.latencies_us, 0.99), clients.front()->response_bytes());
  return 0;
}
