#pragma once

namespace tensord::server {

// OpenMP reads from the environment how long idle threads spin when it is loaded, before main. This process sets it
// by itself; call it first in main. May start the process again. Who sets the variable decides.
void apply_library_settings(char** argv);

}  // namespace tensord::server
