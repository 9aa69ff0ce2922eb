#pragma once

namespace tensord::server {

// What clients are told of a version.
enum class ModelState { kLoading, kReady, kUnloading, kUnavailable };
const char* to_string(ModelState state);  // "READY"

// Where a version of a model is in its life. The first is that of versions that the repository does not know.
enum class VersionState {
  kUnknown,
  kLoading,    // is loaded, or is to be; nothing of its model serves
  kReady,      // serves
  kReloading,  // serves what it was loaded from, and is loaded again
  kUnloading,  // takes no new requests, and answers those it has
  kUnloaded,   // was unloaded, as somebody wanted
  kFailed,     // could not be loaded
  kRetrying,   // the same, and is loaded again beside versions that serve
  kJoining,    // is loaded beside versions that serve, for the first time
  kRefused,    // was, and could not be; its model goes on without it
};
inline constexpr int kVersionStates = 10;

enum class VersionEvent {
  kLoad,        // a load of it begins (or is to begin); nothing of its model serves
  kLoadBeside,  // a load of it begins while versions of its model serve
  kTakeOver,    // what was loaded serves from now on
  kFail,        // it could not be loaded; nothing of its model serves
  kFailBeside,  // it could not be loaded; what serves goes on
  kStayOut,     // it was loaded, but its model stays as it is, since another version could not be
  kDrop,        // its model is to be served without it
  kUnload,      // its model is unloaded
  kGone,        // the last request of what it served has ended
};
inline constexpr int kVersionEvents = 9;

// Whether the event may happen to a version that is in that state.
bool is_legal(VersionState from, VersionEvent event);
// The state after it. Throws Error{kInternal} when it is not legal.
VersionState next_state(VersionState from, VersionEvent event);

ModelState shown_as(VersionState state);  // REQUIRES: not kUnknown
// It answers requests.
bool serves(VersionState state);
// It is one of its model's versions: it may serve, or a request for it is told why it does not. Others are only shown
// in the index.
bool belongs(VersionState state);

const char* to_string(VersionState state);  // "reloading"
const char* to_string(VersionEvent event);  // "take over"

}  // namespace tensord::server
