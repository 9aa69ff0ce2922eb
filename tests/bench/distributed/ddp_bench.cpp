// tensord's side of tests/bench/distributed, a worker of `tensord launch` (over Gloo) or of mpirun (over MPI). Rank 0
// prints a line of JSON.
//     ddp_bench all_reduce SECONDS BYTES...     the median of each size, in ms
//     ddp_bench step SECONDS FOLDER             steps of FOLDER/model.pt on FOLDER/batch-RANK.pt: median, time in
//     waiting, losses
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "core/autograd/engine.h"
#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/distributed/ddp/reducer.h"
#include "core/distributed/launch/environment.h"
#include "core/distributed/mpi/mpi_backend.h"
#include "core/jit/archive/torch_file.h"
#include "core/jit/runtime/module.h"
#include "core/nn/optim/optimizer.h"

namespace tensord {
namespace {

using Clock = std::chrono::steady_clock;
using distributed::ProcessGroup;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Runs as many iterations on all ranks as take about this time on rank 0.
template <class Fn>
std::vector<double> times_of(ProcessGroup& group, double seconds, const Fn& fn) {
  for (int i = 0; i < 3; ++i) fn();
  const auto start = Clock::now();
  fn();
  const auto count = std::clamp(static_cast<int>(seconds * 1e3 / ms_since(start)), 3, 2000);
  const int turns = std::stoi(group.broadcast_bytes(std::to_string(count), 0));
  std::vector<double> times;
  for (int i = 0; i < turns; ++i) {
    const auto begin = Clock::now();
    fn();
    times.push_back(ms_since(begin));
  }
  return times;
}

void all_reduce(ProcessGroup& group, double seconds, int count, char** sizes) {
  std::string json;
  for (int i = 0; i < count; ++i) {
    const Tensor tensor = Tensor::empty(Dims{std::stoll(sizes[i]) / 4}, DType::kFloat32);
    std::memset(tensor.raw_data(), 0, tensor.size_bytes());
    const double ms = median(times_of(group, seconds, [&] { group.all_reduce(tensor)->wait(); }));
    json += concat(json.empty() ? "" : ", ", "\"", sizes[i], "\": ", ms);
  }
  if (group.rank() == 0) std::cout << "{" << json << "}" << std::endl;
}

void steps(ProcessGroup& group, double seconds, const std::string& folder) {
  jit::LoadOptions options;
  options.for_training = true;
  const auto module = jit::Module::load(folder + "/model.pt", options);
  module->set_training(true);
  const auto batch = jit::load_torch_file(folder + "/batch-" + std::to_string(group.rank()) + ".pt").to_tuple()->items;
  std::vector<distributed::NamedParameter> parameters;
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : module->named_parameters()) {
    parameters.push_back({name, tensor});
    tensors.push_back(tensor);
  }
  distributed::Reducer reducer(group, parameters, {});
  nn::SGD optimizer(tensors, nn::SGDOptions{.lr = 0.001, .momentum = 0.9});
  const auto frame = jit::make_frame();
  std::string losses;
  int done = 0;
  const auto times = times_of(group, seconds, [&] {
    optimizer.zero_grad();
    const Tensor loss = module->method("training_step").run(*frame, batch).to_tensor();
    reducer.prepare();
    autograd::backward(loss);
    optimizer.step();
    if (done++ < 4) losses += concat(losses.empty() ? "" : ", ", loss.item_double());
  });
  if (group.rank() != 0) return;
  std::cout << "{\"median_ms\": " << median(times)
            << ", \"waited_ms\": " << std::chrono::duration<double, std::milli>(reducer.waited()).count() / done
            << ", \"losses\": [" << losses << "]}" << std::endl;
}

int run(int argc, char** argv) {
  check(argc > 3, "ddp_bench all_reduce SECONDS BYTES... | step SECONDS FOLDER");
  set_thread_budget(1);
  const bool is_of_mpirun = !std::getenv("RANK") && std::getenv("OMPI_COMM_WORLD_RANK");
  const std::unique_ptr<ProcessGroup> world =
      is_of_mpirun ? distributed::make_mpi_world() : distributed::make_world(distributed::WorkerEnvironment::read());
  const double seconds = std::stod(argv[2]);
  if (std::string(argv[1]) == "all_reduce") {
    all_reduce(*world, seconds, argc - 3, argv + 3);
  } else {
    steps(*world, seconds, argv[3]);
  }
  world->close(std::chrono::seconds(10), world->rank() == 0);
  return 0;
}

}  // namespace
}  // namespace tensord

int main(int argc, char** argv) {
  try {
    return tensord::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return 1;
  }
}
