#include "server/repository/version_state.h"

#include "core/base/error.h"

namespace tensord::server {
namespace {

using S = VersionState;

// Not a legal transition.
constexpr S kNo = static_cast<S>(-1);

constexpr S kUnk = S::kUnknown, kLoa = S::kLoading, kRea = S::kReady, kRel = S::kReloading, kUng = S::kUnloading,
            kUnd = S::kUnloaded, kFai = S::kFailed, kRet = S::kRetrying, kJoi = S::kJoining, kRef = S::kRefused;

// clang-format off
constexpr S kNext[kVersionStates][kVersionEvents] = {
    //               load  load   take  fail  fail    stay  drop  unload gone
    //                     beside over        beside  out
    /* unknown   */ {kLoa, kJoi,  kNo,  kNo,  kNo,    kNo,  kNo,  kNo,   kUnk},
    /* loading   */ {kLoa, kNo,   kRea, kFai, kNo,    kNo,  kUnk, kUnd,  kLoa},
    /* ready     */ {kNo,  kRel,  kNo,  kNo,  kNo,    kNo,  kUnk, kUng,  kRea},
    /* reloading */ {kNo,  kNo,   kRea, kNo,  kRea,   kRea, kUnk, kUng,  kRel},
    /* unloading */ {kLoa, kNo,   kNo,  kNo,  kNo,    kNo,  kUnk, kUnd,  kUnd},
    /* unloaded  */ {kLoa, kNo,   kNo,  kNo,  kNo,    kNo,  kUnk, kUnd,  kUnd},
    /* failed    */ {kLoa, kRet,  kNo,  kNo,  kNo,    kNo,  kUnk, kUnd,  kFai},
    /* retrying  */ {kNo,  kNo,   kRea, kNo,  kFai,   kFai, kUnk, kUnd,  kRet},
    /* joining   */ {kNo,  kNo,   kRea, kNo,  kRef,   kUnk, kUnk, kUnk,  kJoi},
    /* refused   */ {kNo,  kJoi,  kNo,  kNo,  kNo,    kNo,  kUnk, kUnk,  kRef},
};
// clang-format on

struct Traits {
  const char* name;
  ModelState shown;
  bool serves, belongs;
};

constexpr Traits kTraits[kVersionStates] = {
    {"unknown", ModelState::kUnavailable, false, false}, {"loading", ModelState::kLoading, false, true},
    {"ready", ModelState::kReady, true, true},           {"reloading", ModelState::kReady, true, true},
    {"unloading", ModelState::kUnloading, false, true},  {"unloaded", ModelState::kUnavailable, false, true},
    {"failed", ModelState::kUnavailable, false, true},   {"retrying", ModelState::kUnavailable, false, true},
    {"joining", ModelState::kLoading, false, false},     {"refused", ModelState::kUnavailable, false, false},
};

constexpr const char* kEventNames[kVersionEvents] = {"load",     "load beside", "take over", "fail", "fail beside",
                                                     "stay out", "drop",        "unload",    "gone"};

const Traits& traits(VersionState state) { return kTraits[static_cast<int>(state)]; }

S entry(VersionState from, VersionEvent event) { return kNext[static_cast<int>(from)][static_cast<int>(event)]; }

}  // namespace

bool is_legal(VersionState from, VersionEvent event) { return entry(from, event) != kNo; }

VersionState next_state(VersionState from, VersionEvent event) {
  const VersionState next = entry(from, event);
  if (next == kNo) {
    fail(ErrorCode::kInternal, "repository: '", to_string(event), "' cannot happen to a version that is ",
         to_string(from));
  }
  return next;
}

ModelState shown_as(VersionState state) { return traits(state).shown; }
bool serves(VersionState state) { return traits(state).serves; }
bool belongs(VersionState state) { return traits(state).belongs; }

const char* to_string(VersionState state) { return traits(state).name; }
const char* to_string(VersionEvent event) { return kEventNames[static_cast<int>(event)]; }

const char* to_string(ModelState state) {
  switch (state) {
    case ModelState::kLoading: return "LOADING";
    case ModelState::kReady: return "READY";
    case ModelState::kUnloading: return "UNLOADING";
    case ModelState::kUnavailable: return "UNAVAILABLE";
  }
  return "UNKNOWN";
}

}  // namespace tensord::server
