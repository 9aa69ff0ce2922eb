#include "server/library_settings.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

namespace tensord::server {
namespace {

// Threads that wait for parallel work spin for milliseconds by default: on a machine with anything else to do, a
// parallel region then takes as long as a time slice, and an idle server is not idle. This bounds it to some 20
// microseconds.
char spin_setting[] = "GOMP_SPINCOUNT=1000";

// Entries of the environment that no library reads while it is loaded.
constexpr const char* kHarmless[] = {
    "_=", "OLDPWD=", "SHLVL=", "PWD=", "MAIL=", "LOGNAME=", "USER=", "SHELL=", "HOSTNAME=", "TERM=", "HOME=", "PATH="};

struct Replaced {
  char** place = nullptr;
  char* entry = nullptr;
};
Replaced replaced;
bool is_complete = true;  // nothing was left to set

// What runs before the libraries are initialized calls nothing of theirs, nor of a sanitizer's.
#define TENSORD_EARLY __attribute__((no_sanitize("address", "thread", "undefined"), no_stack_protector))

TENSORD_EARLY bool starts_with(const char* text, const char* prefix) {
  while (*prefix != 0 && *text == *prefix) ++text, ++prefix;
  return *prefix == 0;
}

TENSORD_EARLY char** find_entry(char** environment, const char* prefix) {
  for (char** entry = environment; *entry != nullptr; ++entry) {
    if (starts_with(*entry, prefix)) return entry;
  }
  return nullptr;
}

// The list of the environment cannot grow here, so a setting takes the place of an entry, which main puts back.
TENSORD_EARLY void place_setting(char** environment, char* setting) {
  for (const char* harmless : kHarmless) {
    char** place = find_entry(environment, harmless);
    if (place == nullptr) continue;
    replaced = {place, *place};
    *place = setting;
    return;
  }
  is_complete = false;
}

// OpenBLAS tries for ever to get its 128 MB while it is initialized.
TENSORD_EARLY void check_address_space() {
  constexpr rlim_t kNeeded = rlim_t{512} << 20;
  rlimit limit{};
  if (syscall(SYS_getrlimit, RLIMIT_AS, &limit) != 0 || limit.rlim_cur >= kNeeded) return;
  static constexpr char kText[] =
      "tensord: the process may not map the 512 MB of memory that its libraries need (ulimit -v)\n";
  syscall(SYS_write, STDERR_FILENO, kText, sizeof(kText) - 1);
  syscall(SYS_exit_group, 1);
}

TENSORD_EARLY void set_early(int, char**, char** environment) {
  check_address_space();
  if (!find_entry(environment, "GOMP_SPINCOUNT=") && !find_entry(environment, "OMP_WAIT_POLICY=")) {
    place_setting(environment, spin_setting);
  }
}

// Run by the dynamic linker before the initializers of the libraries.
__attribute__((section(".preinit_array"), used)) void (*const early)(int, char**, char**) = set_early;

}  // namespace

void apply_library_settings(char** argv) {
  if (replaced.place != nullptr) *replaced.place = replaced.entry;
  if (is_complete) return;
  // An environment without one of the usual entries: start again with a longer one. Where that is not possible,
  // the defaults work too.
  if (!find_entry(environ, "OMP_WAIT_POLICY=")) setenv("GOMP_SPINCOUNT", "1000", 0);
  execv("/proc/self/exe", argv);
}

}  // namespace tensord::server
