#pragma once

#include <string>
#include <vector>

#include "core/distributed/nccl/nccl_api.h"

// A table of NCCL's functions for tests: ranks are threads of this process, memory is that of the tests' second device
// (tests/device/async_device.h), and an operation runs when it is its turn in the streams of all its ranks, as on a
// GPU. What NCCL would not notice or not survive (ranks that call different things, two threads in one communicator, a
// communicator that is gone, a group that is not ended) is a misuse, which the test asks for.
namespace tensord::distributed::fake_nccl {

const NcclApi& api();

// Forgets everything of the test before.
void reset();

// The function of this name ("ncclAllReduce") gives this result on one rank (of the n-th call on), or on all: -1. What
// has no communicator is of rank -1 alone.
void fail(const std::string& function, NcclResult result, int rank = -1, int from_call = 1);
// Communicators say so often that they are still being made.
void make_slow(int questions);
// Each call after that is said to be in progress so often.
void make_calls_slow(int questions);
// What ncclCommGetAsyncError tells the rank from now on.
void set_async_error(NcclResult result, int rank);

struct Counts {
  int made = 0, aborted = 0, destroyed = 0;
  int alive() const { return made - aborted - destroyed; }
};
Counts counts();
std::vector<std::string> misuses();

}  // namespace tensord::distributed::fake_nccl
