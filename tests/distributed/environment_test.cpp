// The environment variables of launchers; children that die with their parent, and their output.
#include "core/distributed/launch/environment.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <map>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/thread.h"
#include "core/distributed/launch/child_process.h"

namespace tensord::distributed::environment_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

constexpr const char* kKnown[] = {"RANK",
                                  "WORLD_SIZE",
                                  "LOCAL_RANK",
                                  "LOCAL_WORLD_SIZE",
                                  "MASTER_ADDR",
                                  "MASTER_PORT",
                                  "TORCHELASTIC_RESTART_COUNT",
                                  "OMPI_COMM_WORLD_RANK",
                                  "OMPI_COMM_WORLD_SIZE",
                                  "OMPI_COMM_WORLD_LOCAL_RANK",
                                  "OMPI_COMM_WORLD_LOCAL_SIZE",
                                  "PMI_RANK",
                                  "PMI_SIZE",
                                  "MPI_LOCALRANKID",
                                  "MPI_LOCALNRANKS",
                                  "SLURM_PROCID",
                                  "SLURM_NTASKS",
                                  "SLURM_LOCALID",
                                  "SLURM_NTASKS_PER_NODE",
                                  "SLURM_JOB_ID",
                                  "SLURM_STEP_ID",
                                  "SLURM_JOB_NODELIST",
                                  "SLURM_STEP_NODELIST"};

WorkerEnvironment read(const Variables& variables) {
  for (const char* name : kKnown) unsetenv(name);
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  return WorkerEnvironment::read();
}

std::string error_of(const Variables& variables) {
  try {
    read(variables);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

Variables with(Variables variables) {
  variables.insert({{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29500"}});
  return variables;
}

TEST(WorkerEnvironment, OfTorchrun) {
  const auto e = read(with({{"RANK", "5"},
                            {"WORLD_SIZE", "6"},
                            {"LOCAL_RANK", "1"},
                            {"LOCAL_WORLD_SIZE", "2"},
                            {"TORCHELASTIC_RESTART_COUNT", "3"},
                            {"SLURM_PROCID", "0"},
                            {"SLURM_NTASKS", "1"}}));
  EXPECT_EQ(e.rank, 5);
  EXPECT_EQ(e.world_size, 6);
  EXPECT_EQ(e.local_rank, 1);
  EXPECT_EQ(e.local_world_size, 2);
  EXPECT_EQ(e.master_addr, "127.0.0.1");
  EXPECT_EQ(e.master_port, 29500);
  EXPECT_EQ(e.restart, 3);
}

TEST(WorkerEnvironment, OfMpirunAndSlurm) {
  const Variables cases[] = {{{"OMPI_COMM_WORLD_RANK", "3"},
                              {"OMPI_COMM_WORLD_SIZE", "4"},
                              {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}},
                             {{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}},
                             {{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "1"}}};
  for (const Variables& variables : cases) {
    const auto e = read(with(variables));
    EXPECT_EQ(e.rank, 3);
    EXPECT_EQ(e.world_size, 4);
    EXPECT_EQ(e.local_rank, 1);
    EXPECT_TRUE(WorkerEnvironment::is_there());
  }
}

TEST(WorkerEnvironment, RanksOfSlurmMeetOnTheFirstNode) {
  const Variables slurm = {{"SLURM_PROCID", "3"},
                           {"SLURM_NTASKS", "4"},
                           {"SLURM_LOCALID", "1"},
                           {"SLURM_NTASKS_PER_NODE", "2"},
                           {"SLURM_STEP_ID", "1"},
                           {"SLURM_JOB_ID", "123456"},
                           {"SLURM_JOB_NODELIST", "n[08,10-12]"}};
  const auto e = read(slurm);
  EXPECT_EQ(e.master_addr, "n08");
  EXPECT_EQ(e.master_port, 15000 + 3457);
  EXPECT_EQ(e.local_world_size, 2);
  EXPECT_EQ(variables_of_other_launchers(), (Variables{{"RANK", "3"},
                                                       {"WORLD_SIZE", "4"},
                                                       {"LOCAL_RANK", "1"},
                                                       {"LOCAL_WORLD_SIZE", "2"},
                                                       {"MASTER_ADDR", "n08"},
                                                       {"MASTER_PORT", "18457"}}));
  // Explicit values take precedence, and a step's nodes over the job's.
  Variables given = with(slurm);
  given["SLURM_STEP_NODELIST"] = "m1";
  EXPECT_EQ(read(given).master_port, 29500);
  EXPECT_EQ(first_slurm_node(), "m1");
  read(with({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"SLURM_PROCID", "0"}}));
  EXPECT_EQ(variables_of_other_launchers(), Variables());
}

TEST(WorkerEnvironment, ListsOfSlurmsHosts) {
  for (const auto& [list, first] : Variables{{"n1", "n1"},
                                             {"n1,m[2-3]", "n1"},
                                             {"n[10,20-25],login", "n10"},
                                             {"n[007-100].cluster,x", "n007.cluster"},
                                             {"n[5]", "n5"}}) {
    EXPECT_EQ(first_slurm_host(list), first);
  }
  for (const char* const list : {"", "n[", "n[1-2", "n]1", "n[1]m[2]"}) {
    EXPECT_THROW(first_slurm_host(list), Error) << list;
  }
}

TEST(WorkerEnvironment, SaysWhatIsMissingOrWrong) {
  EXPECT_EQ(error_of(with({})), "environment variable RANK expected, but not set");
  EXPECT_FALSE(WorkerEnvironment::is_there());
  EXPECT_EQ(error_of({{"RANK", "0"}}), "environment variable WORLD_SIZE expected, but not set");
  EXPECT_THAT(error_of(with({{"RANK", "2"}, {"WORLD_SIZE", "2"}})),
              HasSubstr("WORLD_SIZE: '2' is not a number from 3"));
  EXPECT_THAT(error_of(with({{"RANK", "x"}, {"WORLD_SIZE", "2"}})), HasSubstr("RANK: 'x' is not a number"));
  EXPECT_EQ(error_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}}), "environment variable MASTER_ADDR expected, but not set");
  EXPECT_THAT(error_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "70000"}}),
              HasSubstr("MASTER_PORT: '70000' is not a number from 1 to 65535"));
}

TEST(LineCutter, JoinsPiecesAndBoundsLines) {
  LineCutter cutter;
  std::vector<std::string> lines;
  const auto take = [&](std::string_view line) { lines.emplace_back(line); };
  cutter.add("one\ntw", take);
  cutter.add("o\n\nthree", take);
  EXPECT_THAT(lines, ElementsAre("one", "two", ""));
  cutter.finish(take);
  EXPECT_EQ(lines.back(), "three");
  lines.clear();
  for (int i = 0; i < 5; ++i) cutter.add(std::string(LineCutter::kMaxLine / 2, 'x'), take);
  ASSERT_FALSE(lines.empty());
  for (const std::string& line : lines) EXPECT_LE(line.size(), LineCutter::kMaxLine * 3 / 2);
}

// Reads until it has ended.
std::string output_of(ChildProcess& child) {
  std::string out;
  for (;;) {
    pollfd fd{.fd = child.output(), .events = POLLIN, .revents = 0};
    poll(&fd, 1, 1000);
    if (!ChildProcess::read_some(child.output(), out)) return out;
  }
}

int status_of(ChildProcess& child) {
  while (!child.status()) usleep(1000);
  return *child.status();
}

TEST(ChildProcess, HasItsPipesAndVariables) {
  ChildProcess child({.arguments = {"sh", "-c", "read line; echo $NAME $line; echo event >&3; exit 4"},
                      .environment = {"NAME=value"},
                      .has_input = true,
                      .has_events = true});
  EXPECT_TRUE(child.write_input("input\n"));
  EXPECT_EQ(output_of(child), "value input\n");
  EXPECT_EQ(describe_status(status_of(child)), "exit code 4");
  std::string events;
  ChildProcess::read_some(child.events(), events);
  EXPECT_EQ(events, "event\n");
  EXPECT_FALSE(child.write_input("nobody reads"));
}

int warnings = 0;

TEST(OpenStore, IsWarnedOfWhereOthersReachIt) {
  set_log_sink([](LogLevel, std::string_view message, std::initializer_list<LogField>, const std::source_location&) {
    warnings += message.find("TENSORD_LAUNCH_SECRET is not set") != std::string_view::npos;
  });
  unsetenv(kLaunchSecret);
  for (const char* const here : {"127.0.0.1", "127.3.2.1", "localhost", "::1"}) warn_of_open_store(here);
  EXPECT_EQ(warnings, 0);
  for (const char* const reached : {"10.0.0.1", "0.0.0.0", "node7", "::"}) warn_of_open_store(reached);
  EXPECT_EQ(warnings, 4);
  setenv(kLaunchSecret, "known to all ranks", 1);
  warn_of_open_store("node7");
  unsetenv(kLaunchSecret);
  EXPECT_EQ(warnings, 4);
  set_log_sink(nullptr);
}

TEST(ChildProcess, SignalsReachWhatItStarted) {
  ChildProcess child({.arguments = {"sh", "-c", "echo here; sleep 600; true"}, .environment = {}});
  std::string out;
  while (out.empty()) ChildProcess::read_some(child.output(), out);
  child.send_signal(SIGKILL);
  EXPECT_EQ(output_of(child), "");  // the pipe ends when all of them have exited
  EXPECT_EQ(describe_status(status_of(child)), "signal 9 (Killed)");
}

TEST(ChildProcess, DiesWithTheThreadThatStartedIt) {
  std::unique_ptr<ChildProcess> child;
  Thread("starter", [&] {
    child = std::make_unique<ChildProcess>(ChildProcess::Options{.arguments = {"sleep", "600"}, .environment = {}});
  }).join();
  EXPECT_EQ(describe_status(status_of(*child)), "signal 9 (Killed)");
}

TEST(ChildProcess, AProgramThatIsNotThere) {
  try {
    ChildProcess child({.arguments = {"/no/such/program"}, .environment = {}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("/no/such/program: cannot be started: No such file"));
  }
}

}  // namespace
}  // namespace tensord::distributed::environment_test
