#pragma once

namespace tensord::server {

// Libraries read some settings from the environment when they are loaded, before main: how long idle threads of
// OpenMP spin, and which processor OpenBLAS has code for. This process sets them by itself; call it first in main.
// May start the process again. Who sets the variables decides.
void apply_library_settings(char** argv);

}  // namespace tensord::server
