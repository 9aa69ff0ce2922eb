#pragma once

namespace tensord::server {

// Sets how long idle OpenMP threads spin. OpenMP reads this environment variable when it is loaded, before main, so the
// process sets it and may start itself again. Call it first in main. A variable that the user set takes precedence.
void apply_library_settings(char** argv);

}  // namespace tensord::server
