#pragma once

namespace tensord::server {

// The state of a version as clients see it.
enum class ModelState { kLoading, kReady, kUnloading, kUnavailable };
const char* to_string(ModelState state);  // "READY"

// The state of a model version. kUnknown: the repository does not know the version.
enum class VersionState {
  kUnknown,
  kLoading,    // being loaded or queued for it; the model is not served
  kReady,      // served
  kReloading,  // served, and being loaded again
  kUnloading,  // accepts no new requests, and finishes the accepted ones
  kUnloaded,   // unloaded by a request
  kFailed,     // loading failed
  kRetrying,   // loading failed, and is repeated while other versions are served
  kJoining,    // being loaded for the first time while other versions are served
  kRefused,    // loading failed while other versions are served
};
inline constexpr int kVersionStates = 10;

enum class VersionEvent {
  kLoad,        // a load starts or is queued; the model is not served
  kLoadBeside,  // a load starts while versions of the model are served
  kTakeOver,    // the loaded version is served from now on
  kFail,        // loading failed; the model is not served
  kFailBeside,  // loading failed; the model's other versions are served
  kStayOut,     // loaded, but not served because another version of the model failed to load
  kDrop,        // the version was removed from the model
  kUnload,      // the model is unloaded
  kGone,        // the last request of the old version has ended
};
inline constexpr int kVersionEvents = 9;

// Whether the event may happen in this state.
bool is_legal(VersionState from, VersionEvent event);
// The state after the event. Throws Error{kInternal} if the event is not legal.
VersionState next_state(VersionState from, VersionEvent event);

ModelState shown_as(VersionState state);  // REQUIRES: not kUnknown
// Whether a version in this state answers requests.
bool serves(VersionState state);
// Whether a version in this state counts as one of the model's versions. Others are only listed in the repository
// index.
bool belongs(VersionState state);

const char* to_string(VersionState state);  // "reloading"
const char* to_string(VersionEvent event);  // "take over"

}  // namespace tensord::server
