// The MPI backend: runs this program again under mpirun, each process a rank.
#include "core/distributed/mpi/mpi_backend.h"

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "tests/distributed/ranks.h"

namespace tensord::distributed::mpi_test {
namespace {

using namespace fixtures;
using ::testing::HasSubstr;

bool is_rank() { return std::getenv("OMPI_COMM_WORLD_RANK") != nullptr || std::getenv("PMI_RANK") != nullptr; }

struct Implementation {
  const char* name;
  const char* object;
  const char* launcher;
  const char* flags;
};
const Implementation kOpenMpi{"OpenMpi", "libtensord_mpi.so", "mpirun.openmpi",
                              "--allow-run-as-root --oversubscribe --mca btl_vader_single_copy_mechanism none"};
const Implementation kMpich{"Mpich", "libtensord_mpich.so", "mpiexec.mpich", ""};

struct Ran {
  int code = 0;
  std::string output;
};
Ran run_command(const std::string& command) {
  Ran ran;
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  check(pipe != nullptr, command, " cannot be run");
  for (char piece[4096]; const size_t count = fread(piece, 1, sizeof piece, pipe);) ran.output.append(piece, count);
  const int status = pclose(pipe);
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ran;
}

class UnderMpirun : public ::testing::TestWithParam<Implementation> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(self_.parent_path() / "../lib/tensord" / GetParam().object)) {
      GTEST_SKIP() << "this build has no " << GetParam().object << " (scripts/setup test)";
    }
    if (run_command(concat(GetParam().launcher, " --version")).code != 0) {
      GTEST_SKIP() << GetParam().launcher << " is not installed (scripts/setup test)";
    }
  }
  // Runs the test of this name on this many ranks.
  Ran run_ranks(int size, const std::string& test) const {
    return run_command(concat(GetParam().launcher, " ", GetParam().flags, " -n ", size, " ", self_.string(),
                              " --gtest_color=no --gtest_also_run_disabled_tests --gtest_filter=MpiRanks.DISABLED_",
                              test));
  }

 private:
  const std::filesystem::path self_ = std::filesystem::read_symlink("/proc/self/exe");
};
INSTANTIATE_TEST_SUITE_P(All, UnderMpirun, ::testing::Values(kOpenMpi, kMpich),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(UnderMpirun, CollectivesOfTwoAndThreeRanks) {
  for (const int size : {2, 3}) {
    const Ran ran = run_ranks(size, "Collectives");
    EXPECT_EQ(ran.code, 0) << ran.output;
    EXPECT_THAT(ran.output, HasSubstr("[       OK ] MpiRanks.DISABLED_Collectives"));
  }
}

TEST_P(UnderMpirun, RanksThatDifferAreOneErrorOfAll) {
  const Ran ran = run_ranks(2, "Differ");
  for (const int rank : {0, 1}) {
    EXPECT_THAT(ran.output, HasSubstr(concat("rank ", rank, " got: "))) << ran.output;
  }
  EXPECT_THAT(ran.output, HasSubstr("float32[2]"));
  EXPECT_THAT(ran.output, HasSubstr("float32[3]"));
}

TEST_P(UnderMpirun, ARankThatDiesEndsTheOthers) {
  const Ran ran = run_ranks(2, "Dies");
  EXPECT_NE(ran.code, 0) << ran.output;
}

// --- ranks

struct World {
  World() : group(make_mpi_world({.timeout = 20s, .stall = 200ms})) {}
  ~World() { group->close(10s, group->rank() == 0); }
  std::unique_ptr<ProcessGroup> group;
};

// The sum over ranks, where element i of rank r is (r + 1) * (i % 5).
double expected_sum(int size, int64_t i) { return static_cast<double>(i % 5) * size * (size + 1) / 2; }
std::function<std::complex<double>(int64_t)> own(int rank) {
  return [rank](int64_t i) { return static_cast<double>((i % 5) * (rank + 1)); };
}

void expect(const Tensor& tensor, const std::function<double(int64_t)>& want, const std::string& what) {
  const auto values = values_of(tensor);
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i].real(), want(static_cast<int64_t>(i))) << what << ", element " << i;
  }
}

void check_types_and_layouts(ProcessGroup& group) {
  const int rank = group.rank(), size = group.size();
  for (const DType dtype : kAllDTypes) {
    if (dtype == DType::kBool) continue;
    for (const Layout layout : kAllLayouts) {
      const std::string what = concat(name_of(dtype), ", layout ", static_cast<int>(layout));
      const Laid laid = laid_out({5, 3}, dtype, layout, own(rank));
      group.all_reduce(laid.tensor)->wait();
      expect(
          laid.tensor, [&](int64_t i) { return expected_sum(size, i); }, "all_reduce " + what);
      fill(laid.tensor, own(rank));
      group.reduce(laid.tensor, size - 1)->wait();
      expect(
          laid.tensor, [&](int64_t i) { return rank == size - 1 ? expected_sum(size, i) : own(rank)(i).real(); },
          "reduce " + what);
      fill(laid.tensor, own(rank));
      group.broadcast(laid.tensor, 1)->wait();
      expect(
          laid.tensor, [&](int64_t i) { return own(1)(i).real(); }, "broadcast " + what);
      laid.expect_gaps_untouched();
    }
  }
}

Tensor floats(Dims sizes) { return Tensor::empty(std::move(sizes), DType::kFloat32); }

void check_gathers(ProcessGroup& group) {
  const int rank = group.rank(), size = group.size();
  const Tensor mine = floats({rank + 1});  // of different sizes
  fill(mine, own(rank));
  std::vector<Tensor> parts;
  for (int r = 0; r < size; ++r) parts.push_back(floats({r + 1}));
  group.all_gather(parts, mine)->wait();
  for (int r = 0; r < size; ++r)
    expect(
        parts[static_cast<size_t>(r)], [&](int64_t i) { return own(r)(i).real(); }, "all_gather");

  const Tensor four = floats({4});
  fill(four, own(rank));
  std::vector<Tensor> outputs;
  for (int r = 0; r < size && rank == 1; ++r) outputs.push_back(floats({4}));
  group.gather(outputs, four, 1)->wait();
  for (size_t r = 0; r < outputs.size(); ++r) {
    expect(
        outputs[r], [&](int64_t i) { return own(static_cast<int>(r))(i).real(); }, "gather");
  }
  group.scatter(four, outputs, 1)->wait();
  expect(
      four, [&](int64_t i) { return own(rank)(i).real(); }, "scatter");

  std::vector<Tensor> inputs, others;
  for (int r = 0; r < size; ++r) {
    inputs.push_back(floats({4}));
    fill(inputs.back(), own(rank + r));
    others.push_back(floats({4}));
  }
  group.all_to_all(others, inputs)->wait();
  for (int r = 0; r < size; ++r) {
    expect(
        others[static_cast<size_t>(r)], [&](int64_t i) { return own(rank + r)(i).real(); }, "all_to_all");
  }
  group.reduce_scatter(four, inputs)->wait();
  expect(
      four,
      [&](int64_t i) {
        double sum = 0;
        for (int r = 0; r < size; ++r) sum += own(r + rank)(i).real();
        return sum;
      },
      "reduce_scatter");
}

// Tensors with different strides on each rank, for operations that move parts.
class LaidParts {
 public:
  LaidParts(ProcessGroup& group, size_t shift)
      : group_(group), layout_(kAllLayouts[(shift + static_cast<size_t>(group.rank())) % std::size(kAllLayouts)]) {}

  void check() {
    const int rank = group_.rank(), size = group_.size();
    const auto inputs = parts([rank](int r) { return own(rank + r); }), outputs = parts(nothing);
    const Laid mine = part(own(rank)), got = part(nothing(0));
    group_.all_gather(tensors(outputs), mine.tensor)->wait();
    for (int r = 0; r < size; ++r) expect_own(outputs[static_cast<size_t>(r)], r, "all_gather");
    const auto gathered = rank == 1 ? parts(nothing) : std::vector<Laid>();
    group_.gather(tensors(gathered), mine.tensor, 1)->wait();
    for (size_t r = 0; r < gathered.size(); ++r) expect_own(gathered[r], static_cast<int>(r), "gather");
    group_.scatter(got.tensor, tensors(gathered), 1)->wait();
    expect_own(got, rank, "scatter");
    group_.all_to_all(tensors(outputs), tensors(inputs))->wait();
    for (int r = 0; r < size; ++r) expect_own(outputs[static_cast<size_t>(r)], rank + r, "all_to_all");
    group_.reduce_scatter(got.tensor, tensors(inputs))->wait();
    expect_sum(got, "reduce_scatter");
    const WorkPtr works[] = {group_.send(mine.tensor, (rank + 1) % size),
                             group_.recv(got.tensor, (rank + size - 1) % size)};
    for (const WorkPtr& work : works) work->wait();
    expect_own(got, (rank + size - 1) % size, "recv");
    for (const Laid& laid : {mine, got}) laid.expect_gaps_untouched();
    for (const Laid& laid : outputs) laid.expect_gaps_untouched();
  }

  // All parts in one tensor, one after the other.
  void check_whole() {
    const int rank = group_.rank(), size = group_.size();
    const Laid mine = part(own(rank)), got = part(nothing(0));
    const Laid all = laid_out({4 * size, 3}, DType::kFloat32, layout_, nothing(0)),
               in = laid_out({4 * size, 3}, DType::kFloat32, layout_,
                             [rank](int64_t i) { return own(rank + static_cast<int>(i / 12))(i % 12); });
    group_.all_gather_into_tensor(all.tensor, mine.tensor)->wait();
    expect(
        all.tensor, [](int64_t i) { return own(static_cast<int>(i / 12))(i % 12).real(); }, "all_gather_into_tensor");
    group_.reduce_scatter_tensor(got.tensor, in.tensor)->wait();
    expect_sum(got, "reduce_scatter_tensor");
    group_.all_to_all_single(all.tensor, in.tensor)->wait();
    expect(
        all.tensor, [rank](int64_t i) { return own(rank + static_cast<int>(i / 12))(i % 12).real(); },
        "all_to_all_single");
    for (const Laid& laid : {mine, got, all}) laid.expect_gaps_untouched();
  }

 private:
  static std::function<std::complex<double>(int64_t)> nothing(int) {
    return [](int64_t) { return -1.0; };
  }
  Laid part(const std::function<std::complex<double>(int64_t)>& value) const {
    return laid_out({4, 3}, DType::kFloat32, layout_, value);
  }
  std::vector<Laid> parts(const std::function<std::function<std::complex<double>(int64_t)>(int)>& value) const {
    std::vector<Laid> out;
    for (int r = 0; r < group_.size(); ++r) out.push_back(part(value(r)));
    return out;
  }
  static std::vector<Tensor> tensors(const std::vector<Laid>& parts) {
    std::vector<Tensor> out;
    for (const Laid& laid : parts) out.push_back(laid.tensor);
    return out;
  }
  void expect_own(const Laid& laid, int of, const char* what) const {
    expect(
        laid.tensor, [of](int64_t i) { return own(of)(i).real(); },
        concat(what, ", layout ", static_cast<int>(layout_)));
  }
  void expect_sum(const Laid& laid, const char* what) const {
    const auto sum = [this](int64_t i) {
      double all = 0;
      for (int r = 0; r < group_.size(); ++r) all += own(r + group_.rank())(i).real();
      return all;
    };
    expect(laid.tensor, sum, concat(what, ", layout ", static_cast<int>(layout_)));
  }

  ProcessGroup& group_;
  const Layout layout_;
};

void check_parts_of_any_strides(ProcessGroup& group) {
  for (size_t shift = 0; shift < std::size(kAllLayouts); ++shift) {
    LaidParts(group, shift).check();
    LaidParts(group, shift).check_whole();
  }
}

void check_messages(ProcessGroup& group) {
  const int rank = group.rank(), next = (rank + 1) % group.size(), before = (rank + group.size() - 1) % group.size();
  std::vector<WorkPtr> works;
  const Tensor first = floats({3}), second = floats({2}), from_first = floats({3}), from_second = floats({2}),
               none = floats({0});
  fill(first, own(rank));
  fill(second, own(rank + 10));
  works.push_back(group.send(first, next, 1));
  works.push_back(group.send(second, next, 2));
  works.push_back(group.send(none, next, 3));
  // In another order than they were sent.
  works.push_back(group.recv(none, before, 3));
  works.push_back(group.recv(from_second, before, 2));
  works.push_back(group.recv(from_first, ProcessGroup::kAnyRank, 1));
  for (const WorkPtr& work : works) work->wait();
  expect(
      from_first, [&](int64_t i) { return own(before)(i).real(); }, "recv");
  expect(
      from_second, [&](int64_t i) { return own(before + 10)(i).real(); }, "recv");
  EXPECT_EQ(works.back()->source_rank(), before);
}

void check_groups(ProcessGroup& group) {
  const int ranks[] = {1, 0};
  const auto pair = group.new_group(ranks);
  EXPECT_EQ(pair != nullptr, group.rank() < 2);
  if (pair) {
    EXPECT_EQ(pair->rank(), 1 - group.rank());
    const Tensor tensor = floats({4});
    fill(tensor, own(pair->rank()));
    pair->all_reduce(tensor)->wait();
    expect(
        tensor, [](int64_t i) { return expected_sum(2, i); }, "all_reduce of a group");
    pair->close();
  }
}

TEST(MpiRanks, DISABLED_Collectives) {
  ASSERT_TRUE(is_rank());
  World world;
  ProcessGroup& group = *world.group;
  EXPECT_EQ(group.backend_name(), "mpi");
  check_types_and_layouts(group);
  check_gathers(group);
  check_parts_of_any_strides(group);
  check_messages(group);
  check_groups(group);
  group.barrier()->wait();
  group.monitored_barrier(20s);
  EXPECT_EQ(group.broadcast_bytes(group.rank() == 0 ? "text" : "", 0), "text");
}

TEST(MpiRanks, DISABLED_Differ) {
  ASSERT_TRUE(is_rank());
  World world;
  try {
    world.group->all_reduce(floats({2 + world.group->rank()}))->wait();
  } catch (const Error& error) {
    std::printf("rank %d got: %s\n", world.group->rank(), error.what());
  }
}

TEST(MpiRanks, DISABLED_Dies) {
  ASSERT_TRUE(is_rank());
  World world;
  world.group->barrier()->wait();
  if (world.group->rank() == 1) _exit(3);
  world.group->barrier()->wait();
}

}  // namespace
}  // namespace tensord::distributed::mpi_test
