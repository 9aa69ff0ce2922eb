#pragma once

#include <string>
#include <vector>

#include "core/distributed/nccl/nccl_api.h"

// A fake of NCCL's function table: ranks are threads of this process, memory is that of the tests' second device
// (tests/device/async_device.h), and an operation runs when the streams of all its ranks have reached it, as on a GPU.
// Errors that NCCL would not detect or not survive (ranks that call different functions, two threads in one
// communicator, a destroyed communicator, a group that is not ended) are recorded as misuse, which the test checks.
namespace tensord::distributed::fake_nccl {

const NcclApi& api();

// Forgets everything from the previous test.
void reset();

// Makes the function of this name ("ncclAllReduce") return this result on one rank (from the n-th call on), or on all:
// -1. Functions without a communicator have rank -1.
void fail(const std::string& function, NcclResult result, int rank = -1, int from_call = 1);
// Communicators report this many times that they are still being created.
void make_slow(int questions);
// Each call afterwards reports this many times that it is in progress.
void make_calls_slow(int questions);
// The result of ncclCommGetAsyncError on the rank from now on.
void set_async_error(NcclResult result, int rank);

struct Counts {
  int made = 0, aborted = 0, destroyed = 0;
  int alive() const { return made - aborted - destroyed; }
};
Counts counts();
std::vector<std::string> misuses();

}  // namespace tensord::distributed::fake_nccl
