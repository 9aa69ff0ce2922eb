#pragma once

namespace tensord::server {

// The hidden command that WorkerGroup runs for each rank.
inline constexpr const char* kRankCommand = "training-rank";

// A rank of a training job, as a process of its own. Reads what it has to do (RankTask) as a line of JSON from the
// standard input, and says how far it is on file descriptor 3, a line of JSON for each change and at least two a
// second:
//   {"progress": {…}, "message": "…", "points": […], "is_reset": true}
//   {"waits": 17}                                        it waits for other ranks, as it did 17 times before
//   {"ended": "done" | "paused" | "stopped" | "starved", "warning": "…"}
//   {"failed": "why", "code": 3, "is_other": true}       is_other: it only heard of it from another rank
// Rank 0 has streamed batches from file descriptor 4 (StreamBroadcaster). Later lines of the input are "pause" and
// "stop"; its end is that of the process. Gives the exit code.
int run_rank_process();

}  // namespace tensord::server
